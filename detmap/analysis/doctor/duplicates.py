"""Detections that overlap a higher-scoring one of their image and class: what suppression leaves
out. Rows are a table, or what the doctor makes of a file (`detmap.analysis.doctor.raw_rows`).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.analysis.row_overlaps import edges, ious, meetings

SAME_OBJECT = 0.85  # overlap of two boxes of a class that are one detection
PAIRS_AT_ONCE = 1_000_000
MOST_PAIRS = 20_000_000
MOST_OF_CELL = 1000  # rows of an image and class, of which all pairs are made


def too_many(rows: Any) -> bool:
    """Whether the rows of an image and class are so many that their pairs take many seconds."""
    cell = _cells(rows)
    size = np.unique(cell, return_counts=True)[1]
    return bool((size * (size - 1) // 2).sum() > MOST_PAIRS)


def doubled(rows: Any) -> float:
    """The share of rows that a better row of their image and class lies on; of each image and class
    at most `MOST_OF_CELL` rows, spread evenly.
    """
    cell = _cells(rows)
    order = np.argsort(cell, kind="stable")
    size = np.diff(np.flatnonzero(np.diff(cell[order], prepend=-1, append=-1)))
    thin = np.repeat(-(-size // MOST_OF_CELL), size)
    nth = np.arange(len(cell)) - np.repeat(np.cumsum(size) - size, size)
    some = rows.take(np.sort(order[nth % thin == 0]))
    worse = np.zeros(len(some), dtype=bool)
    worse[pairs(some, SAME_OBJECT)[1]] = True
    return float(worse.sum() / max(1, len(some)))


def suppressed(rows: Any, overlap: float) -> NDArray[np.bool_]:
    """(n,) which rows greedy suppression per image and class leaves."""
    cell = _cells(rows)
    _, place, size = np.unique(cell, return_inverse=True, return_counts=True)
    large = size[place] > MOST_OF_CELL
    kept = np.zeros(len(rows), dtype=bool)
    small = np.flatnonzero(~large)
    kept[small] = _suppress_pairs(rows.take(small), overlap)
    for one in np.unique(place[large]).tolist():
        some = np.flatnonzero(place == one)
        kept[some] = _suppress_large(rows.take(some), overlap)
    return kept


def _suppress_pairs(rows: Any, overlap: float) -> NDArray[np.bool_]:
    better, worse = pairs(rows, overlap)
    open_, kept = np.ones(len(rows), dtype=bool), np.zeros(len(rows), dtype=bool)
    while open_.any():
        live = open_[better] & open_[worse]
        better, worse = better[live], worse[live]
        now = open_.copy()
        now[worse] = False  # what no better box that is still open lies on
        kept |= now
        open_ &= ~now
        open_[worse[now[better]]] = False
    return kept


def _suppress_large(rows: Any, overlap: float) -> NDArray[np.bool_]:
    """Of one image and class, without all pairs: an overlap above t bounds how far the left edges
    of two boxes are apart.
    """
    boxes = edges(rows)
    by_left = np.argsort(boxes[:, 0], kind="stable")
    boxes = boxes[by_left]
    width = boxes[:, 2] - boxes[:, 0]
    slack = 1e-6 * (1 + np.abs(boxes[:, 0]) + width)
    low = np.searchsorted(boxes[:, 0], boxes[:, 0] - width * (1 / overlap - 1) - slack)
    high = np.searchsorted(boxes[:, 0], boxes[:, 0] + width * (1 - overlap) + slack, "right")
    open_, kept = np.ones(len(boxes), dtype=bool), np.zeros(len(boxes), dtype=bool)
    for i in np.lexsort((by_left, -rows.score[by_left])).tolist():
        if open_[i]:
            kept[by_left[i]] = True
            near = low[i] + np.flatnonzero(open_[low[i] : high[i]])
            over = ious(np.broadcast_to(boxes[i], (len(near), 5)), boxes[near]) > overlap
            open_[near[over]] = False
            open_[i] = False
    return kept


def _cells(rows: Any) -> NDArray[np.int64]:
    """(n,) a number per image and class."""
    cell = rows.image.astype(np.int64) * (1 + rows.label.max(initial=0)) + rows.label
    return np.asarray(cell, dtype=np.int64)


def pairs(rows: Any, least: float) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pairs of rows of an image and class that overlap, the better one first; of objects, which
    have no score, the first one in the file.
    """
    cell, score = _cells(rows), getattr(rows, "score", np.zeros(len(rows)))
    order = np.lexsort((np.arange(len(rows)), -score, cell))
    cell = cell[order]
    first = np.searchsorted(cell, cell)
    behind = np.arange(len(cell)) - first  # how many better ones the cell has
    boxes = edges(rows)[order]
    parts = [np.zeros((2, 0), dtype=np.int64)]
    for worse, better in meetings(first, behind, PAIRS_AT_ONCE):
        met = ious(boxes[better], boxes[worse]) > least
        parts.append(np.stack([order[better[met]], order[worse[met]]]))
    both = np.concatenate(parts, axis=1)
    return both[0], both[1]
