"""What bounded memory allows: the bound itself, and how many rows at a time."""

import os
from dataclasses import dataclass
from pathlib import Path

from detmap.core.adapters import row_estimates
from detmap.core.base import memory
from detmap.core.base.immutable import Value
from detmap.core.curves import every_rank
from detmap.core.protocol import Protocol
from detmap.errors import DataError

IN_MEMORY = 180  # bytes per detection of an evaluation without a bound
READ_WHOLE = 150  # bytes per detection that a Parquet file adds while it is read
SHORTEST_RECORD = 40  # bytes of JSON per detection
SPARE = 8 << 20  # bytes of memory that are always there
SHARE = 0.8  # of the available memory that a bound takes if the user gives none
MATCHED = 240  # bytes of memory that matching takes per detection, at its peak
TOGETHER = 1 << 20  # detections that are matched, or ranked, at a time; more are not faster
RANKED = 44  # bytes that the curves of a class take per detection, at their peak
RANKED_WHOLE = 92  # the same if they need all columns
HELD = 80  # bytes per object that matching adds to the ground truth
KEPT = 16  # those of them that are left for the curves
FILLED = 0.92  # of the bound that the estimates fill
FIXED = 40 << 20  # bytes that matching and ranking take, whatever the number of rows
MORE_SPACE = "make room, raise the quota, or set TMPDIR to a folder on a larger disk"
OTHER_FOLDER = "create it, or set TMPDIR to another folder"
ON_DISK = 80  # bytes per detection in the temporary files


@dataclass(slots=True, eq=False, repr=False)
class Limits(Value):
    """How many rows are in memory at a time.

    Parameters
    ----------
    block : detections that are matched together
    group : match rows whose curves are computed together: the largest class
    """

    block: int
    group: int


def automatic(path: str | Path, protocol: Protocol | None = None) -> int | None:
    """Returns a bound in bytes if an evaluation of these detections would not fit into memory.

    None if it fits, or if the path or the protocol has no evaluation in parts.
    """
    is_json = Path(path).suffix.lower() in row_estimates.JSON
    if is_json and os.path.isfile(path) and _most_bytes(path) < SPARE:
        return None
    n_rows, free = row_estimates.estimated_rows(path), memory.available()
    if free is None or n_rows * (IN_MEMORY + (0 if is_json else READ_WHOLE)) <= free:
        return None
    if protocol is not None and not protocol.supports("bounded memory"):
        return None
    return int(SHARE * free) + memory.resident()


def _most_bytes(path: str | Path) -> int:
    """Returns the memory that an evaluation of a JSON file takes at most."""
    return os.path.getsize(path) // SHORTEST_RECORD * IN_MEMORY


def require_reading(bound: int, reading: int) -> None:
    """Raises `DataError` if the bound is too small to read, beside what this process uses now.

    `reading` has the bytes that reading takes.
    """
    used, more = memory.resident(), max(reading, FIXED)
    if FILLED * bound - used < more:
        raise DataError(
            "memory",
            f"the bound is {memory.shown(bound)}: {memory.shown(used)} are in use after reading "
            f"the ground truth, reading the detections takes about {memory.shown(more)}, and "
            f"{1 - FILLED:.0%} are kept free",
            f"give at least {(used + more) / FILLED / 1e6 + 5:.0f}MB",
        )


def limits(bound: int, n_objects: int, protocol: Protocol) -> Limits:
    """Returns the rows that fit, beside what this process uses now and what it adds to objects."""
    room = int(FILLED * bound) - memory.resident() - FIXED
    ranked = RANKED if scores_suffice(protocol) else RANKED_WHOLE
    block = max(room - HELD * n_objects, 0) // MATCHED
    return Limits(min(block, TOGETHER), max(room - KEPT * n_objects, 0) // ranked)


def scores_suffice(protocol: Protocol) -> bool:
    """Whether scores alone decide the order of match rows, and the curves do not need them later:
    then a class takes less memory.
    """
    ranking = protocol.ranking
    ordered = ranking.ties == "image" and ranking.ignored != "leave"
    return ordered and not every_rank.needed(protocol, protocol.ap) and not protocol.lower_limits()


def require_disk(n_rows: int, folder: Path) -> None:
    """Raises `DataError` if the temporary files of that many detections do not fit on the disk.

    `n_rows` is a low estimate: with more of them, a full disk is found when it is full.
    """
    import shutil  # an evaluation that fits does not need it

    free, needed = shutil.disk_usage(folder).free, ON_DISK * n_rows
    if needed > free:
        raise DataError(
            str(folder),
            f"{n_rows} detections or more need {memory.shown(needed)} for temporary files, "
            f"{memory.shown(free)} are free",
            MORE_SPACE,
        )


def folder() -> Path:
    """Returns the folder of temporary files: TMPDIR, or the default of the system.

    Raises `DataError` if TMPDIR is not a folder that can be written; `tempfile` would take another.
    """
    given = os.environ.get("TMPDIR")
    if not given:
        import tempfile

        return Path(tempfile.gettempdir())
    if not os.path.isdir(given):
        kind = "is not a folder" if os.path.exists(given) else "does not exist"
        raise DataError("TMPDIR", f"the folder of temporary files, {given!r}, {kind}", OTHER_FOLDER)
    if not os.access(given, os.W_OK | os.X_OK):
        what = f"the folder of temporary files, {given!r}, cannot be written"
        raise DataError("TMPDIR", what, OTHER_FOLDER)
    return Path(given)
