"""Layouts of boxes: what four numbers mean."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Boxes = NDArray[np.float64]

FRACTION = 2.0  # coordinates up to here are fractions of something, not pixels
SHARE = 0.99  # of the rows that have to be so


def corners(b: Boxes) -> Boxes:
    """Returns boxes x, y, width, height of corners."""
    return np.column_stack([b[:, 0], b[:, 1], b[:, 2] - b[:, 0], b[:, 3] - b[:, 1]])


def _centered(b: Boxes) -> Boxes:
    return np.column_stack([b[:, 0] - b[:, 2] / 2, b[:, 1] - b[:, 3] / 2, b[:, 2], b[:, 3]])


def _swapped(b: Boxes) -> Boxes:
    return b[:, [1, 0, 3, 2]]


LAYOUTS: dict[str, Callable[[Boxes], Boxes]] = {
    "xywh": lambda b: b,
    "xyxy": corners,
    "cxcywh": _centered,
    "yxhw": _swapped,
    "yxyx": lambda b: corners(_swapped(b)),
}
"""Four numbers to left, top, width, height."""

MEANT = {
    "xywh": "left, top, width, height",
    "xyxy": "left, top, right, bottom",
    "cxcywh": "center, width, height",
    "yxhw": "top, left, height, width",
    "yxyx": "top, left, bottom, right",
}
