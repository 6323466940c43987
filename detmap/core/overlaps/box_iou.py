"""Intersection over union of boxes, computed by a kernel."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from detmap.core.protocol import Protocol
from detmap.core.tables import BoxFormat, Detections, Truth, boxes_as
from detmap.errors import OverlapError

if TYPE_CHECKING:
    from detmap.kernels.cells import Cells, ObjectColumns
    from detmap.kernels.pairs import Pairs

CROWDED = 24
"""Objects of a cell from which on sorting them by their edges pays. A number of speed, not of
truth: the tests force it to 1, and to never."""

BUFFER = 1 << 15
"""Pairs that are made before they are judged: enough to pay for a call, few enough for a cache."""

NEVER = 2**62

ONLY_BEST = True
"""Whether rules that use only the best object get only that. A number of speed, not of truth: the
tests compare both."""


class BoxPairs:
    """Produces pairs of boxes.

    Parameters
    ----------
    truth, detections : tables of the same images and classes
    objects : the ground truth in the kernels' layout
    extent : "continuous" or "inclusive", see `detmap.core.protocol.Boxes`
    lowest : lowest overlap that can match; if it is 0 or less, all pairs of a cell are produced
    epsilon : added to the union
    best : which of equal overlaps is the best pair of a detection, "first" or "last" object, if
        only its best pair is needed; else ""
    """

    def __init__(
        self,
        truth: Truth,
        detections: Detections,
        objects: ObjectColumns,
        *,
        extent: str,
        lowest: float,
        epsilon: float = 0.0,
        best: str = "",
    ) -> None:
        from detmap.kernels import pairs as kernels

        native: BoxFormat = "voc" if extent == "inclusive" else "xywh"
        self.boxes = boxes_as(detections.boxes, detections.box_format, native)
        self.obj_boxes = boxes_as(truth.boxes, truth.box_format, native)
        self.objects = objects
        self.source = detections.source
        pixel = 1.0 if extent == "inclusive" else 0.0
        listed = {"": kernels.ALL, "first": kernels.FIRST}.get(best, kernels.LAST)
        crowded = CROWDED if lowest > 0 else NEVER  # the sort passes over what does not meet
        self.geometry = kernels.Geometry(pixel, epsilon, float(lowest), crowded, listed)

    def __call__(
        self, cells: Cells, n_cells: int, position: NDArray[np.int32]
    ) -> Iterator[tuple[int, Pairs]]:
        """Yields pairs of cells; see `detmap.core.overlaps.Producer`.

        Raises `OverlapError` for boxes so small that their overlap is 0/0.
        """
        from detmap.kernels import pairs as kernels

        largest = int((cells.bounds[:n_cells, 3] - cells.bounds[:n_cells, 2]).max(initial=0))
        size = max(BUFFER, 2 * largest)
        pairs = kernels.buffer(min(size, len(cells.members)), size)
        scratch = kernels.edges(largest)
        boxes = kernels.Boxes(self.boxes, self.obj_boxes, position)
        cursor = np.array([0, 0, -1], dtype=np.int64)
        while cursor[kernels.CELL] < n_cells:
            n = kernels.pair_boxes(
                n_cells, cells, boxes, self.objects, self.geometry, cursor, pairs, scratch
            )
            if cursor[kernels.BROKEN] >= 0:
                row = int(position[cursor[kernels.BROKEN]])
                raise OverlapError(
                    f"{self.source}: row {row}",
                    f"the box {self.boxes[row].tolist()} and an object's have areas that are 0 "
                    "in double precision: their overlap is 0/0",
                    "give boxes with sides above 1e-150",
                )
            if n:
                yield n, pairs


def producer(
    truth: Truth, detections: Detections, objects: ObjectColumns, protocol: Protocol, lowest: float
) -> BoxPairs:
    """Creates the producer of a protocol that compares boxes."""
    matching = protocol.matching
    single = ONLY_BEST and matching.rule == "best_any" and not protocol.iou.classes
    return BoxPairs(
        truth,
        detections,
        objects,
        extent=protocol.boxes.extent,
        lowest=lowest,
        epsilon=protocol.iou.epsilon,
        best=matching.equal if single else "",
    )
