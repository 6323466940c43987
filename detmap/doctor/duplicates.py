"""Rows of detections that lie on a better row of their image and class: what suppression leaves
out. Rows are a table, or what the doctor makes of a file (`detmap.doctor.raw_rows`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.overlaps.row_overlaps import edges, ious
from detmap.tables.grouping import labels

SAME_OBJECT = 0.85  # overlap of two boxes of a class that are one detection
PAIRS_AT_ONCE = 1_000_000
MOST_PAIRS = 20_000_000


def too_many(rows: Any) -> bool:
    """Whether the rows of an image and class are so many that their pairs take many seconds."""
    cell = rows.image.astype(np.int64) * (1 + rows.label.max(initial=0)) + rows.label
    size = np.unique(cell, return_counts=True)[1]
    return bool((size * (size - 1) // 2).sum() > MOST_PAIRS)


def doubled(rows: Any) -> float:
    """The share of rows that a better row of their image and class lies on; 0 for too many."""
    if too_many(rows):
        return 0.0
    lies = np.zeros(len(rows), dtype=bool)
    lies[pairs(rows, SAME_OBJECT)[1]] = True
    return float(lies.sum() / max(1, len(rows)))


def pairs(rows: Any, least: float) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pairs of rows of an image and class that overlap, the better one first."""
    cell = rows.image.astype(np.int64) * (1 + rows.label.max(initial=0)) + rows.label
    order = np.lexsort((np.arange(len(rows)), -rows.score, cell))
    cell = cell[order]
    first = np.searchsorted(cell, cell)
    behind = np.arange(len(cell)) - first  # how many better ones the cell has
    boxes = edges(rows)[order]
    ends = np.concatenate([[0], np.cumsum(behind)])
    parts = [np.zeros((2, 0), dtype=np.int64)]
    begin = 0
    while begin < len(cell):
        end = max(begin + 1, int(np.searchsorted(ends, ends[begin] + PAIRS_AT_ONCE, "right")) - 1)
        off = ends[begin : end + 1] - ends[begin]
        nth = labels(off)
        worse = begin + nth
        better = first[worse] + np.arange(off[-1]) - off[nth]
        met = ious(boxes[better], boxes[worse]) > least
        parts.append(np.stack([order[better[met]], order[worse[met]]]))
        begin = end
    both = np.concatenate(parts, axis=1)
    return both[0], both[1]
