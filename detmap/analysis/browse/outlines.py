"""Outlines of masks, keypoints and rotated boxes, of at most 24 points, for display."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.analysis.browse.columns import packed

MOST_POINTS = 24
Points = tuple[NDArray[np.int64], NDArray[np.float64]]
"""(n,) points of each row, (p, 2) x and y of all."""


def kind_of(shapes: Any) -> str:
    """Returns ``polygon``, ``points``, or "" for shapes that are shown as boxes."""
    names = {"Masks": "polygon", "RotatedBoxes": "polygon", "Keypoints": "points"}
    return names.get(type(shapes).__name__, "")


def outlines(shapes: Any, rows: NDArray[np.int64]) -> Points:
    """Returns the outlines of some rows."""
    name = type(shapes).__name__
    some = shapes.take(rows)
    if name == "Masks":
        return _mask_outlines(some.runs)
    if name == "RotatedBoxes":
        return np.full(len(rows), 4), some.corners().reshape(-1, 2)
    labeled = some.points[:, :MOST_POINTS, 2] > 0
    return labeled.sum(axis=1), some.points[:, :MOST_POINTS][labeled][:, :2]


def outline_content(found: Points, scale: int, origin: int, largest: int) -> dict[str, Any]:
    """Returns outlines as columns of 16 bits, as the coordinates of boxes."""
    count, points = found
    whole = np.clip(np.rint((points + origin) * scale), 0, largest).astype(np.int64)
    return {"points": packed(count), "x": packed(whole[:, 0]), "y": packed(whole[:, 1])}


def _mask_outlines(runs: Any) -> Points:
    """The highest and the lowest pixel in up to 12 columns of each mask."""
    n, most = len(runs.size), MOST_POINTS // 2
    height = np.maximum(runs.size[:, 0], 1)
    first_column = runs.boxes[:, 0].astype(np.int64)
    width = np.maximum(runs.boxes[:, 2].astype(np.int64), 1)
    total = height * runs.size[:, 1]
    base = np.concatenate([[0], np.cumsum(total)])[:-1]  # pixels of all masks, one after the other
    ends = np.cumsum(runs.counts.astype(np.int64))
    odd = (np.arange(len(ends)) - np.repeat(runs.off[:-1], np.diff(runs.off))) % 2 == 1
    start, end = (ends - runs.counts)[odd], ends[odd]  # of the runs inside
    share = np.linspace(0, 1, most)
    column = first_column[:, None] + np.rint(share * (width[:, None] - 1)).astype(np.int64)
    low = base[:, None] + column * height[:, None]  # its first pixel, and the one after its last
    high = low + height[:, None]
    if not len(start):
        return np.zeros(n, dtype=np.int64), np.zeros((0, 2))
    after = np.minimum(np.searchsorted(end, low, side="right"), len(end) - 1)
    before = np.maximum(np.searchsorted(start, high, side="left") - 1, 0)
    top = np.maximum(start[after], low) - low
    bottom = np.minimum(end[before], high) - low
    there = (start[after] < high) & (end[after] > low) & (bottom > top)
    there &= (runs.pixels > 0)[:, None]
    there[:, 1:] &= column[:, 1:] != column[:, :-1]
    x = column + np.where(share > 0.5, 1, 0)
    ring = np.stack([np.hstack([x, x[:, ::-1]]), np.hstack([top, bottom[:, ::-1]])], axis=2)
    both = np.hstack([there, there[:, ::-1]])
    return both.sum(axis=1), ring[both].astype(np.float64)
