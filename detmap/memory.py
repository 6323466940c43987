"""Whether something fits into memory, asked before it is tried: an operating system that runs
out kills without a word.
"""

from __future__ import annotations

from pathlib import Path

from detmap.errors import DataError

CGROUP = Path("/sys/fs/cgroup")
SPARE = 64 << 20  # bytes that are always assumed to be there: small work is never refused


def available() -> int | None:
    """Bytes that this process may still use, by the system and by the limit of its container;
    None where nothing says.
    """
    found = []
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        found += [1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")]
        limit = (CGROUP / "memory.max").read_text().strip()
        if limit != "max":
            found.append(int(limit) - int((CGROUP / "memory.current").read_text()))
    except (OSError, ValueError, IndexError):
        pass
    return min(found, default=None)


def require(needed: int, where: str, what: str) -> None:
    """A `DataError` where fewer bytes are available than needed.

    Parameters
    ----------
    needed : bytes, an estimate
    where, what : the place and the subject of the error
    """
    if needed <= SPARE:
        return
    free = available()
    if free is not None and needed > free:
        raise DataError(
            where,
            f"{what} needs about {needed / 2**30:.1f} GiB of memory, {max(free, 0) / 2**30:.1f} GiB are free",
            "evaluate parts of the images with `detmap match --images` and join them with `detmap merge`, or use a "
            "larger machine",
        )
