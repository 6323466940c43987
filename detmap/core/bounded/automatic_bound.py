"""The bound of memory that an evaluation takes if the user gives none."""

from __future__ import annotations

from pathlib import Path

from detmap.core.adapters import row_estimates
from detmap.core.base import memory
from detmap.core.protocol import Protocol

IN_MEMORY = 180  # bytes per detection of an evaluation without a bound
READ_WHOLE = 150  # bytes per detection that a Parquet file adds while it is read
SHARE = 0.8  # of the available memory that a bound takes if the user gives none


def automatic(path: str | Path, protocol: Protocol | None = None) -> int | None:
    """Returns a bound in bytes if an evaluation of these detections would not fit into memory.

    None if it fits, or if the path or the protocol has no evaluation in parts.
    """
    n_rows, free = row_estimates.estimated_rows(path), memory.available()
    is_json = Path(path).suffix.lower() in row_estimates.JSON
    if free is None or n_rows * (IN_MEMORY + (0 if is_json else READ_WHOLE)) <= free:
        return None
    if protocol is not None and not protocol.supports("bounded memory"):
        return None
    return int(SHARE * free) + memory.resident()
