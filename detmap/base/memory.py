"""Whether something fits into memory, asked before it is tried: an operating system that runs
out kills without a word.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from detmap.errors import DataError

CGROUP = Path("/sys/fs/cgroup")
MEMINFO = Path("/proc/meminfo")
SPARE = 64 << 20  # bytes that are always assumed to be there: small work is never refused
WAY_OUT = (
    "evaluate parts of the images with `detmap match --images` and join them with `detmap merge`, "
    "or use a larger machine"
)


def available() -> int | None:
    """Bytes that this process may still use, by the system and by the limit of its container;
    None where nothing says.

    Pages that only cache files count as free: the system takes them back before it refuses.
    """
    limits = []
    with suppress(OSError, ValueError, IndexError):
        lines = MEMINFO.read_text().splitlines()
        limits += [
            1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")
        ]
    for folder, limit, usage, prefix in (
        (CGROUP, "memory.max", "memory.current", ""),
        (CGROUP / "memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_"),  # v1
    ):
        with suppress(OSError, ValueError, IndexError):
            most = (folder / limit).read_text().strip()
            if most != "max":
                used = int((folder / usage).read_text())
                limits.append(int(most) - max(0, used - _reclaimable(folder, prefix)))
    return min(limits, default=None)


def _reclaimable(folder: Path, prefix: str) -> int:
    """Bytes of a container that cache files; 0 where it does not say."""
    with suppress(OSError, ValueError, IndexError):
        rows = [line.split() for line in (folder / "memory.stat").read_text().splitlines()]
        wanted = (f"{prefix}inactive_file", f"{prefix}active_file")
        return sum(int(row[1]) for row in rows if row[0] in wanted)
    return 0


def require(needed: int, where: str, what: str, way_out: str = WAY_OUT) -> None:
    """A `DataError` where fewer bytes are available than needed.

    Parameters
    ----------
    needed : bytes, an estimate
    where, what : the place and the subject of the error
    way_out : what helps against this cause
    """
    if needed <= SPARE:
        return
    free = available()
    if free is not None and needed > free:
        raise DataError(
            where,
            f"{what} needs about {needed / 2**30:.1f} GiB of memory, "
            f"{max(free, 0) / 2**30:.1f} GiB are free",
            way_out,
        )
