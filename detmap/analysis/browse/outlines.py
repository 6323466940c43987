"""What is drawn: boxes, and outlines of masks, keypoints and rotated boxes of at most 24 points."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.analysis.browse.columns import packed
from detmap.core.overlaps.ragged_runs import unpacked
from detmap.core.tables import Detections, Truth, boxes_as

MOST_POINTS = 24
ORIGIN, QUARTERS, LARGEST = 1024, 4, 65535
"""Of the coordinates in 16 bits: pixels left of 0, and parts of a pixel."""
Table = Truth | Detections
Points = tuple[NDArray[np.int64], NDArray[np.float64]]
"""(n,) points of each row, (p, 2) x and y of all."""


def scale_of(truth: Truth) -> int:
    """Returns the parts of a pixel that coordinates are rounded to: 1 if images are large."""
    sides = np.concatenate([truth.images.width, truth.images.height])
    boxes = boxes_as(truth.boxes, truth.box_format, "xywh")
    corner = (boxes[:, :2] + boxes[:, 2:]).max(initial=0)
    largest = max(float(np.nan_to_num(sides).max(initial=0)), float(corner))
    return QUARTERS if largest + ORIGIN <= LARGEST / QUARTERS else 1


def box_columns(table: Table, rows: NDArray[np.int64], scale: int) -> list[dict[str, Any]]:
    """Returns x, y, width and height in 16 bits."""
    boxes = boxes_as(table.boxes[rows], table.box_format, "xywh")
    return _packed_columns(boxes + np.array([ORIGIN, ORIGIN, 0, 0]), scale)


def outline_columns(table: Table, rows: NDArray[np.int64], scale: int) -> dict[str, Any]:
    """Returns the outlines of some rows, in 16 bits."""
    count, points = outlines(table.shapes, rows)
    x, y = _packed_columns(points + ORIGIN, scale)
    return {"points": packed(count), "x": x, "y": y}


def _packed_columns(places: NDArray[np.float64], scale: int) -> list[dict[str, Any]]:
    return [packed(each) for each in np.clip(np.rint(places * scale), 0, LARGEST).astype(int).T]


def shares(overlap: NDArray[Any]) -> dict[str, Any]:
    """Returns overlaps in 8 bits."""
    return packed(np.rint(np.clip(np.nan_to_num(overlap), 0, 1) * 255).astype(int))


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


def _mask_outlines(runs: Any) -> Points:
    """The highest and the lowest pixel in up to 12 columns of each mask."""
    n, most = len(runs.size), MOST_POINTS // 2
    height = np.maximum(runs.size[:, 0], 1)
    first_column = runs.boxes[:, 0].astype(np.int64)
    width = np.maximum(runs.boxes[:, 2].astype(np.int64), 1)
    total = height * runs.size[:, 1]
    base = np.concatenate([[0], np.cumsum(total)])[:-1]  # pixels of all masks, one after the other
    off, counts = unpacked(runs.off, runs.counts)
    ends = np.cumsum(counts.astype(np.int64))
    odd = (np.arange(len(ends)) - np.repeat(off[:-1], np.diff(off))) % 2 == 1
    start, end = (ends - counts)[odd], ends[odd]  # of the runs inside
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
