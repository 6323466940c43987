"""Checks available memory before large allocations."""

import ctypes
import os
import re
from contextlib import suppress
from pathlib import Path

from detmap.errors import DataError

CGROUP = Path("/sys/fs/cgroup")
MEMINFO = Path("/proc/meminfo")
STATUS = Path("/proc/self/status")
SPARE = 64 << 20  # bytes that are always assumed to be there: small work is never refused
WAY_OUT = (
    "evaluate in bounded memory with --memory, such as --memory 3GB (COCO results, JSON lines, "
    "Parquet; memory= in Python); or evaluate parts of the images with `detmap match --images` and "
    "join them with `detmap merge`, or use a larger machine"
)

_GIVEN_BACK: set[str] = set()  # steps of this process that returned their memory


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


def resident() -> int:
    """Returns the bytes of memory that this process uses, 0 if unknown."""
    with suppress(OSError, ValueError, IndexError):
        lines = STATUS.read_text().splitlines()
        return next(1024 * int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))
    return 0


def give_back(step: str = "") -> None:
    """Returns memory that a step has freed to the system, if the C library can (glibc).

    Each thread's heap otherwise keeps megabytes of what it freed, beside what is allocated next.
    Once for each step that has a name: the next evaluation in the same process needs those pages
    again.
    """
    if step in _GIVEN_BACK:
        return
    _GIVEN_BACK.update([step] if step else [])
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if os.name == "posix" else None
    if trim is not None:
        trim(ctypes.c_size_t(0))


def parse_size(where: str, value: int | str) -> int:
    """Returns a number of bytes: a whole number, or text such as ``3GB`` or ``512 MiB``.

    Raises
    ------
    DataError : neither, or not above 0
    """
    if isinstance(value, str):
        found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?\s*", value.lower())
        size = 0.0
        if found is not None:
            base = 1024 if found[3] else 1000
            size = float(found[1]) * base ** " kmgt".index(found[2] or " ")
    else:
        size = 0 if isinstance(value, bool) or not isinstance(value, int) else value
    if not 0 < size < 2**62:
        raise DataError(where, f"{value!r} is not a size", "give bytes, or text such as 3GB")
    return int(size)


def shown(size: float) -> str:
    """Returns bytes for messages: ``1.2 GB``, ``300 MB``, ``20 kB``."""
    for unit, name in ((1e9, "GB"), (1e6, "MB")):
        if size >= unit:
            return f"{size / unit:.{1 if size < 10 * unit else 0}f} {name}"
    return f"{size / 1e3:.0f} kB"


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
