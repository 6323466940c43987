"""Pairs of detections and objects of the same image, and the overlaps of their boxes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.base import memory
from detmap.tables import Detections, Truth, boxes_as

Rows = NDArray[np.int64]
Floats = NDArray[np.float64]
BYTES = 120
"""Memory per pair while overlaps are computed."""


def image_pairs(first: NDArray[Any], second: NDArray[Any]) -> tuple[Rows, Rows]:
    """Returns all pairs of rows of the same image: by first row, then by second.

    Parameters
    ----------
    first, second : (n,) and (m,) the image of each row
    """
    order = np.argsort(second, kind="stable")
    images = second[order]
    begin = np.searchsorted(images, first, side="left")
    count = np.searchsorted(images, first, side="right") - begin
    n_pairs = int(count.sum())
    memory.require(n_pairs * BYTES, "evaluate", f"{n_pairs} pairs of detections and objects")
    rows = np.repeat(np.arange(len(first)), count)
    nth = np.arange(n_pairs) - np.repeat(np.cumsum(count) - count, count)
    return rows, order[begin[rows] + nth]


def corners(table: Truth | Detections) -> Floats:
    """Returns (n, 4) left, top, right and bottom in continuous pixels."""
    boxes = boxes_as(table.boxes, table.box_format, "xywh")
    return np.hstack([boxes[:, :2], boxes[:, :2] + boxes[:, 2:]])


def overlaps(
    a: Floats, b: Floats, area: tuple[Floats, Floats], pixel: float = 0.0
) -> tuple[Floats, Floats]:
    """Returns the shared area of boxes (n, 4), row by row, and that over the union; 0 for boxes
    that do not meet.

    Parameters
    ----------
    a, b : left, top, right, bottom
    area : (n,) of each
    pixel : added to each side: 1 if the last pixel is inside the box
    """
    shared = shared_areas(a, b, pixel)
    return shared, ratio(shared, area[0] + area[1] - shared)


def shared_areas(a: Floats, b: Floats, pixel: float = 0.0) -> Floats:
    """Returns the shared area of boxes (..., 4)."""
    sides = np.minimum(a[..., 2:], b[..., 2:]) - np.maximum(a[..., :2], b[..., :2]) + pixel
    return np.where((sides > 0).all(axis=-1), sides[..., 0] * sides[..., 1], 0.0)


def ratio(shared: Floats, area: Floats) -> Floats:
    """Returns a shared area over another; 0 where nothing is shared."""
    return np.divide(shared, area, out=np.zeros_like(shared), where=shared > 0)


def areas(boxes: Floats, pixel: float = 0.0) -> Floats:
    """Returns (n,) areas of boxes left, top, right, bottom."""
    sides: Floats = boxes[:, 2:] - boxes[:, :2] + pixel
    return sides[:, 0] * sides[:, 1]


def table_areas(table: Truth | Detections) -> Floats:
    """Returns (n,) width times height."""
    boxes = boxes_as(table.boxes, table.box_format, "xywh")
    return boxes[:, 2] * boxes[:, 3]
