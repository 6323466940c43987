"""What bounded memory allows: which protocols, and how many rows at a time."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from detmap.adapters import pieces
from detmap.base import memory
from detmap.bounded.spill import MORE_SPACE
from detmap.errors import DataError, ProtocolError
from detmap.protocol import Protocol
from detmap.protocol.metric_rows import POINT

MATCHED = 240  # bytes of memory that matching takes per detection, at its peak
RANKED = 64  # bytes that the curves of a class take per detection, at their peak
FILLED = 0.92  # of the bound that the estimates fill
READ = 320 << 20  # bytes that reading takes, whatever the size of the file
IN_MEMORY = 180  # bytes per detection of an evaluation without a bound
ON_DISK = 92  # bytes per detection in the temporary file
SHARE = 0.8  # of the available memory that a bound takes if the user gives none


@dataclass(frozen=True, slots=True)
class Limits:
    """How many rows are in memory at a time.

    Parameters
    ----------
    block : detections that are matched together
    group : match rows whose curves are computed together
    """

    block: int
    group: int


def refuse_protocol(protocol: Protocol) -> None:
    """Raises `ProtocolError` if a protocol needs all detections at once, or more than boxes."""
    for key, refused, why in _REASONS:
        if refused(protocol):
            raise ProtocolError(
                f"protocol {protocol.name}: {key}",
                f"it {why}, which bounded memory does not support",
                "evaluate without a bound of memory, on a larger machine if necessary",
            )


_REASONS: tuple[tuple[str, Callable[[Protocol], bool], str], ...] = (
    ("evaluation.rule", lambda of: of.evaluation.rule != "matching", "has a rule of its own"),
    ("evaluation.extra", lambda of: bool(of.evaluation.extra), "has metrics of a rule of its own"),
    ("iou.of", lambda of: of.iou.of != "boxes", "compares more than boxes"),
    ("ap.pool", lambda of: of.ap.pool == "all", "computes one curve of all classes"),
    (
        "operating",
        lambda of: any(row.kind in POINT for row in of.rows()[0]),
        "has metrics at one score threshold of all classes",
    ),
    (
        "scope.unknown",
        lambda of: of.scope.unknown in ("classes", "add"),
        "adds the images or classes of the detections to the ground truth",
    ),
    (
        "limits.scope, ranking.sort, ranking.ties, detections.score_scale",
        lambda of: not of.image_by_image(),
        "ranks or limits all detections together",
    ),
)


def require_reading(bound: int) -> None:
    """Raises `DataError` if the bound is too small to read, beside what this process uses now."""
    used = memory.resident()
    if FILLED * bound - used < READ:
        raise DataError(
            "memory",
            f"a bound of {bound / 1e9:.2f} GB, and {used / 1e9:.2f} GB are in use after reading "
            "the ground truth",
            f"give at least {(used + READ) / FILLED / 1e9 + 0.01:.2f}GB",
        )


def limits(bound: int) -> Limits:
    """Returns the rows that fit, beside what this process uses now."""
    room = max(int(FILLED * bound) - memory.resident(), 0)
    return Limits(room // MATCHED, room // RANKED)


def require_disk(n_rows: int, folder: Path) -> None:
    """Raises `DataError` if the temporary file surely does not fit on the disk."""
    free, needed = shutil.disk_usage(folder).free, ON_DISK * n_rows
    if needed > free:
        raise DataError(
            str(folder),
            f"about {n_rows} detections need {needed / 1e9:.1f} GB for temporary files, "
            f"{free / 1e9:.1f} GB are free",
            MORE_SPACE,
        )


def folder() -> Path:
    """Returns the folder of temporary files: TMPDIR, or the default of the system."""
    return Path(tempfile.gettempdir())


def automatic(path: str | Path, protocol: Protocol | None = None) -> int | None:
    """Returns a bound in bytes if an evaluation of these detections would not fit into memory.

    None if it fits, or if the path or the protocol has no evaluation in parts.
    """
    n_rows, free = pieces.estimated_rows(path), memory.available()
    if free is None or IN_MEMORY * n_rows <= free:
        return None
    try:
        if protocol is not None:
            refuse_protocol(protocol)
    except ProtocolError:
        return None
    return int(SHARE * free) + memory.resident()
