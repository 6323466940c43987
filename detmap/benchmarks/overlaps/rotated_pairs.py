"""Pairs of rotated boxes: near ones by the kernel of upright boxes, then their exact overlap."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from detmap.benchmarks.overlaps import polygon_iou, probiou
from detmap.core.overlaps.box_iou import BoxPairs
from detmap.core.overlaps.rotated_boxes import LARGEST, RotatedBoxes, corners_of, upright
from detmap.core.protocol import Protocol
from detmap.core.tables import Detections, Truth

if TYPE_CHECKING:
    from detmap.kernels.cells import Cells, ObjectColumns
    from detmap.kernels.pairs import Pairs

Floats = NDArray[np.float64]
Rows = NDArray[Any]

MARGIN = 1e-3
"""Pixels around an upright box, so that lines and points have one."""
TOUCHING = 1e-300


class NearPairs(ABC):
    """Produces pairs of rotated boxes whose upright boxes meet.

    Parameters
    ----------
    truth, detections : tables with `RotatedBoxes` as their shapes
    objects : the ground truth in the kernels' layout
    lowest : lowest overlap that can match
    """

    def __init__(
        self, truth: Truth, detections: Detections, objects: ObjectColumns, lowest: float
    ) -> None:
        assert isinstance(truth.shapes, RotatedBoxes)
        assert isinstance(detections.shapes, RotatedBoxes)
        self.shapes = detections.shapes, truth.shapes
        self.objects, self.lowest = objects, lowest
        self.needed = np.minimum(objects.enough, lowest)
        least = min(lowest, float(objects.enough.min(initial=np.inf)))
        tables = []
        for table, shapes in ((truth, truth.shapes), (detections, detections.shapes)):
            boxes = self.reach(shapes, least)
            near: Any = replace(table, boxes=boxes, box_format="xywh", shapes=None)
            tables.append(near)
        self.near = BoxPairs(
            tables[0], tables[1], objects, extent="continuous", lowest=min(lowest, TOUCHING)
        )

    @abstractmethod
    def reach(self, shapes: RotatedBoxes, lowest: float) -> Floats:
        """Returns (n, 4) upright boxes that meet if an overlap is at least `lowest`, above 0."""

    @abstractmethod
    def overlaps(
        self, detections: Rows, objects: Rows, absorbing: NDArray[np.bool_], needed: Floats
    ) -> Floats:
        """Returns (n,) overlaps of rows; any lower number for one below `needed` (n,)."""

    def __call__(
        self, cells: Cells, n_cells: int, position: NDArray[np.int32]
    ) -> Iterator[tuple[int, Pairs]]:
        """Yields pairs of cells; see `detmap.core.overlaps.Producer`."""
        for n, near in self.near(cells, n_cells, position):
            size = int(near.off[n])
            member = np.repeat(np.arange(n), np.diff(near.off[: n + 1]))
            place, absorbing = near.object[:size], near.absorbing[:size]
            needed = self.needed[place]
            overlap = self.overlaps(
                position[near.detection[member]], self.objects.row[place], absorbing, needed
            )
            enough = overlap >= needed
            count = np.bincount(member[enough], minlength=n)
            off = np.concatenate([[0], np.cumsum(count[count > 0])]).astype(np.int64)
            if len(off) > 1:
                yield (
                    len(off) - 1,
                    type(near)(
                        near.detection[:n][count > 0],
                        off,
                        place[enough],
                        overlap[enough],
                        absorbing[enough],
                    ),
                )


class PolygonPairs(NearPairs):
    """Produces pairs by the IoU of polygons."""

    def __init__(
        self,
        truth: Truth,
        detections: Detections,
        objects: ObjectColumns,
        lowest: float,
        *,
        rectangles: bool = False,
    ) -> None:
        super().__init__(truth, detections, objects, lowest)
        self.image, self.images, self.n_pairs = detections.image, truth.images, 0
        self.found, self.truth = (
            polygon_iou.Polygons(corners_of(rectangles_of(each)) if rectangles else each.corners())
            for each in self.shapes
        )

    def reach(self, shapes: RotatedBoxes, lowest: float) -> Floats:
        """Returns the upright boxes with a margin."""
        del lowest
        boxes = upright(shapes.corners())
        return np.concatenate([boxes[:, :2] - MARGIN, boxes[:, 2:] + 2 * MARGIN], axis=1)

    def overlaps(
        self, detections: Rows, objects: Rows, absorbing: NDArray[np.bool_], needed: Floats
    ) -> Floats:
        """Returns the shared area over the union, or over the detection's own area."""
        count = partial(self.count, detections)
        return polygon_iou.overlaps(
            self.found, self.truth, (detections, objects), absorbing, needed, count
        )

    def count(self, detections: Rows, n_pairs: int) -> None:
        """Raises `CrowdedError`, with the image of one of the detections, for too many pairs."""
        self.n_pairs += n_pairs
        if n_pairs:
            where = f"image {self.images.ids[self.image[detections[0]]].item()!r}"
            polygon_iou.limit_polygons(
                where, self.n_pairs, len(self.found.area) + len(self.truth.area)
            )


class ProbiouPairs(NearPairs):
    """Produces pairs by probabilistic IoU; ignored regions are not special."""

    def __init__(
        self, truth: Truth, detections: Detections, objects: ObjectColumns, lowest: float
    ) -> None:
        super().__init__(truth, detections, objects, lowest)
        self.found, self.truth = map(rectangles_of, self.shapes)

    def reach(self, shapes: RotatedBoxes, lowest: float) -> Floats:
        """Returns boxes around the centers."""
        boxes = rectangles_of(shapes)
        sides = np.minimum(probiou.reach(boxes, lowest) + MARGIN, 4 * LARGEST)
        return np.concatenate([boxes[:, :2] - sides, 2 * sides], axis=1)

    def overlaps(
        self, detections: Rows, objects: Rows, absorbing: NDArray[np.bool_], needed: Floats
    ) -> Floats:
        """Returns the overlaps of all."""
        del absorbing, needed
        return probiou.overlaps(self.found[detections], self.truth[objects])


def rectangles_of(shapes: RotatedBoxes) -> Floats:
    """Returns (n, 5) center, width, height and angle; for corners of the smallest rectangle
    around them, which has a side through two of them.
    """
    if shapes.values.shape[1] == 5:
        return shapes.values
    corners = shapes.corners()
    first = corners[:, 0].copy()
    corners = corners - first[:, None]  # near 0, for precision
    best = np.zeros((len(shapes), 5))
    smallest = np.full(len(shapes), np.inf)
    for i, j in ((0, 1), (1, 2), (2, 3), (3, 0), (0, 2), (1, 3)):
        side = corners[:, j] - corners[:, i]
        angle = np.arctan2(side[:, 1], side[:, 0])
        boxes = _around(corners, angle)
        area = boxes[:, 2] * boxes[:, 3]
        better = area < smallest
        best[better], smallest[better] = boxes[better], area[better]
    best[:, :2] += first
    return best


def _around(corners: Floats, angle: Floats) -> Floats:
    """(n, 5) the rectangles of these angles around the corners."""
    cos, sin = np.cos(angle)[:, None], np.sin(angle)[:, None]
    x, y = corners[:, :, 0], corners[:, :, 1]
    along, across = x * cos + y * sin, y * cos - x * sin
    ends = [(each.min(axis=1), each.max(axis=1)) for each in (along, across)]
    (u, v) = ((low + high) / 2 for low, high in ends)
    (width, height) = (high - low for low, high in ends)
    cos, sin = cos[:, 0], sin[:, 0]
    return np.stack([u * cos - v * sin, u * sin + v * cos, width, height, angle], axis=1)


def polygons(
    truth: Truth, detections: Detections, objects: ObjectColumns, protocol: Protocol, lowest: float
) -> PolygonPairs:
    """Creates the producer of a protocol that compares polygons."""
    return PolygonPairs(truth, detections, objects, lowest)


def rectangles(
    truth: Truth, detections: Detections, objects: ObjectColumns, protocol: Protocol, lowest: float
) -> PolygonPairs:
    """Creates the producer of a protocol that compares rectangles."""
    return PolygonPairs(truth, detections, objects, lowest, rectangles=True)


def gaussians(
    truth: Truth, detections: Detections, objects: ObjectColumns, protocol: Protocol, lowest: float
) -> ProbiouPairs:
    """Creates the producer of a protocol that compares by probabilistic IoU."""
    return ProbiouPairs(truth, detections, objects, lowest)
