"""Cheap checks of tables that were read plainly: signs that the doctor should look closer.

They look at columns as a whole, or at a few thousand rows: a few milliseconds where an evaluation
takes hundreds.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from detmap.doctor.duplicates import doubled
from detmap.tables import Detections, Truth, boxes_as

FRACTION = 2.0  # coordinates up to here are fractions of something, not pixels
SHARE = 0.99  # of the rows that have to be so
BEYOND = 1.0 + 1e-6  # a score above is no probability
LEAST_ROWS = 20  # from which equal scores are no accident
DOUBLES = 0.15  # share of rows that a better row of their class lies on
LOOKED_AT = 2048  # rows
PIECES = 8  # of the table that these come from
BEYOND_SIDE = 1.02  # of an image's side, from which a box reaches out of it
REACHING = 0.25  # share of boxes that reach out of their images
BARE = 0.3  # share of images, or of objects by their class, without detections


def signs(truth: Truth, detections: Detections) -> bool:
    """Whether one cheap check fails."""
    if len(detections) < LEAST_ROWS or not len(truth):
        return False
    low, high = float(detections.score.min()), float(detections.score.max())
    if low < 0 or high > BEYOND or low == high:
        return True
    some = _pieces(len(detections))
    boxes = boxes_as(detections.boxes[some], detections.box_format, "xywh")
    if (np.abs(boxes) <= FRACTION).mean() >= SHARE or _reach_out(truth, detections, boxes, some):
        return True
    images = np.zeros(len(truth.images), dtype=bool)
    classes = np.zeros(len(truth.categories), dtype=bool)
    images[detections.image], classes[detections.label] = True, True
    if images[truth.image].mean() < 1 - BARE or classes[truth.label].mean() < 1 - BARE:
        return True
    return doubled(detections.take(some)) > DOUBLES


def _reach_out(
    truth: Truth, detections: Detections, boxes: NDArray[np.float64], some: NDArray[np.int64]
) -> bool:
    """Whether many boxes end outside of their image."""
    size = np.column_stack([truth.images.width, truth.images.height])[detections.image[some]]
    beyond = (boxes[:, :2] + boxes[:, 2:] > BEYOND_SIDE * size + 1).any(axis=1)
    return bool(beyond.mean() > REACHING)


def _pieces(n_rows: int) -> NDArray[np.int64]:
    """Rows of a few pieces of a table: what belongs together mostly stands together."""
    if n_rows <= LOOKED_AT:
        return np.arange(n_rows)
    begins = np.linspace(0, n_rows - LOOKED_AT // PIECES, PIECES).astype(np.int64)
    return (begins[:, None] + np.arange(LOOKED_AT // PIECES)).ravel()
