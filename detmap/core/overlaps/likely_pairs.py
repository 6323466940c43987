"""Pairs of boxes that can reach an IoU of 0.5 under some box convention, listed once for many
protocols.

Protocols of tools differ in the last pixel, in rounding and in a shift. The list has every pair
whose IoU can be 0.5 or more under any of them: about a tenth of the pairs of an image and class.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from detmap.core.protocol import Protocol
from detmap.core.tables import Detections, Truth, boxes_as
from detmap.core.tables.grouping import cell_bounds, group, rows_of

if TYPE_CHECKING:
    from detmap.kernels.cells import ObjectColumns

LOWEST = 0.5
"""Thresholds from here on can use the list."""
BELOW = 0.49
"""IoU of pairs that are left out; the distance to `LOWEST` leaves room for rounding."""
CHANGE = 1.25
"""Pixels by which a shared side can grow and a side of a box can shrink, at most: 1 for the last
pixel or for ``boxes.object_shift``, 0.1 for ``detections.box_decimals``, the rest for rounding to
float32 below `MOST_PIXELS`.
"""
MOST_PIXELS = 1e5
MOST_PAIRS = 1 << 22
"""Beyond this, there is no list: it would take too much memory."""


@dataclass(frozen=True, slots=True, eq=False)
class LikelyPairs:
    """The pairs of each detection.

    Parameters
    ----------
    off : (D + 1,) int64, where each detection's pairs begin
    object : (P,) int32, rows of the ground truth, by input order
    regional : (G,) bool, objects that may be ignored regions: those with a role
    """

    off: NDArray[np.int64]
    object: NDArray[np.int32]
    regional: NDArray[np.bool_]

    def select(self, objects: NDArray[np.int32] | None, rows: NDArray[Any] | None) -> LikelyPairs:
        """Returns the pairs of some objects and detections, by their rows; None for all."""
        off, object_, regional = self.off, self.object, self.regional
        if rows is not None:
            at, off = rows_of(off, rows)
            object_ = object_[at]
        if objects is not None:
            place = np.full(len(regional), -1, dtype=np.int32)
            place[objects] = np.arange(len(objects))
            object_, regional = place[object_], regional[objects]
            kept = object_ >= 0
            off = np.concatenate([[0], np.cumsum(kept)]).astype(np.int64)[off]
            object_ = object_[kept]
        return LikelyPairs(off, object_, regional)


def list_pairs(truth: Truth, detections: Detections) -> LikelyPairs | None:
    """Lists the pairs; None if boxes are reversed or too large, or if there are too many pairs."""
    from detmap.kernels.pairs import list_likely

    boxes, of_objects = (
        boxes_as(table.boxes, table.box_format, "xywh") for table in (detections, truth)
    )
    if not (_plain(boxes) and _plain(of_objects)):
        return None
    n_images, n_classes = len(truth.images), len(truth.categories)
    rows, _ = group(truth.image, truth.label, n_images, n_classes)
    cell, own = (
        table.label.astype(np.int64) * n_images + table.image for table in (truth, detections)
    )
    first, last = cell_bounds(cell[rows], own, n_images * n_classes)
    regional = np.zeros(len(truth), dtype=bool)
    for flag in truth.roles.values():
        regional |= flag
    off = np.zeros(len(detections) + 1, dtype=np.int64)
    found = np.empty(min(MOST_PAIRS, int((last - first).sum())), dtype=np.int32)
    n = list_likely(first, last, boxes, of_objects, rows, regional, CHANGE, BELOW, off, found)
    return LikelyPairs(off, found[:n].copy(), regional) if n >= 0 else None


def _plain(boxes: NDArray[np.float64]) -> bool:
    """Whether no box (n, 4) is reversed or reaches beyond `MOST_PIXELS`."""
    corner, side = boxes[:, :2], boxes[:, 2:]
    return bool(
        side.min(initial=0) >= 0
        and corner.min(initial=0) >= -MOST_PIXELS
        and (corner + side).max(initial=0) <= MOST_PIXELS
    )


def can_use(protocol: Protocol, pairs: LikelyPairs, objects: ObjectColumns, lowest: float) -> bool:
    """Whether the list has every pair that a protocol needs.

    Parameters
    ----------
    pairs : of the protocol's tables
    objects : the evaluated objects
    lowest : the lowest threshold
    """
    regions = objects.absorb != 0
    return bool(
        protocol.iou.of == "boxes"
        and min(lowest, objects.enough.min(initial=np.inf)) >= LOWEST
        and protocol.boxes.form != "fractions"
        and abs(protocol.boxes.object_shift) <= 1
        and protocol.detections.box_decimals != 0
        and protocol.iou.absorb_from != "iou"
        and pairs.regional[objects.row[regions]].all()
    )
