"""Checks available memory before large allocations."""

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
    """Returns the bytes that this process may still use, None if unknown.

    The limits of the system and of the container apply. File cache counts as free.
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
    """Returns the bytes of a container's file cache, 0 if unknown."""
    with suppress(OSError, ValueError, IndexError):
        rows = [line.split() for line in (folder / "memory.stat").read_text().splitlines()]
        wanted = (f"{prefix}inactive_file", f"{prefix}active_file")
        return sum(int(row[1]) for row in rows if row[0] in wanted)
    return 0


def require(needed: int, where: str, what: str, way_out: str = WAY_OUT) -> None:
    """Raises `DataError` if fewer bytes are available than needed.

    Parameters
    ----------
    needed : estimated bytes
    where, what : place and subject of the error
    way_out : the fix
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
