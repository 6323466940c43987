"""Keypoints: object keypoint similarity (OKS)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from detmap import checks
from detmap.immutable import Immutable, keep
from detmap.overlaps.dense import DensePairs
from detmap.signature import fold_table
from detmap.tables import Detections, Truth

if TYPE_CHECKING:
    from detmap.kernels.cells import ObjectColumns


@dataclass(frozen=True, slots=True, eq=False)
class Keypoints(Immutable):
    """The keypoints of n objects or detections.

    Parameters
    ----------
    points : (n, k, 3) float64: x, y in pixels, and the visibility, above 0 where labelled
    area : (n,) float64, what subsets by area look at
    """

    points: NDArray[np.float64]
    area: NDArray[np.float64]

    def __post_init__(self) -> None:
        shape = np.shape(self.points)
        sides = (*shape[:2], 3) if len(shape) == 3 else (0, 0, 3)
        points = checks.column("Keypoints.points", self.points, np.float64, *sides)
        checks.finite("Keypoints.points", points, checks.MAX_PIXEL)
        area = checks.column("Keypoints.area", self.area, np.float64, len(points))
        checks.no_nan("Keypoints.area", area)
        keep(self, points=points, area=area)

    def __len__(self) -> int:
        return len(self.points)

    def take(self, rows: NDArray[Any]) -> Keypoints:
        """Some of the rows."""
        return Keypoints(self.points[rows], self.area[rows])

    def digest(self) -> NDArray[np.uint64]:
        """(n,) a fingerprint a row."""
        if not len(self):
            return np.zeros(0, dtype=np.uint64)
        rows = np.arange(len(self), dtype=np.int32)
        return fold_table(len(self), rows, self.points.reshape(len(self), -1), self.area)


class KeypointPairs(DensePairs):
    """The producer of pairs of keypoints.

    Parameters
    ----------
    truth, detections : tables with `Keypoints` as their shapes
    sigmas : k, how far annotators disagree on each point
    """

    def __init__(
        self,
        truth: Truth,
        detections: Detections,
        objects: ObjectColumns,
        *,
        lowest: float,
        sigmas: Sequence[float],
    ) -> None:
        super().__init__(objects, lowest)
        assert isinstance(truth.shapes, Keypoints)
        assert isinstance(detections.shapes, Keypoints)
        self.found, self.truth = detections.shapes.points, truth.shapes.points
        self.boxes, self.area = truth.boxes, truth.area
        self.variances = (np.array(sigmas) * 2) ** 2

    def overlaps(
        self, detections: NDArray[Any], objects: NDArray[Any], absorbing: NDArray[np.bool_]
    ) -> NDArray[np.float64]:
        """(d, g) similarities; an object that absorbs is no different.

        Source: COCOeval.computeOks in pycocotools' cocoeval.py, its operations in their order. A
        point that is not labelled has no part; where none is, what counts is how far the
        detection's points lie outside the box, which is doubled in each direction.
        """
        xd, yd = self.found[detections, :, 0], self.found[detections, :, 1]
        table = np.zeros((len(detections), len(objects)))
        for j, row in enumerate(objects.tolist()):
            xg, yg, visible = self.truth[row].T
            labelled = visible > 0
            if labelled.any():
                dx, dy = xd - xg, yd - yg
            else:
                left, top, width, height = self.boxes[row]
                x0, x1 = left - width, left + width * 2
                y0, y1 = top - height, top + height * 2
                dx = np.maximum(0, x0 - xd) + np.maximum(0, xd - x1)
                dy = np.maximum(0, y0 - yd) + np.maximum(0, yd - y1)
            e = (dx**2 + dy**2) / self.variances / (self.area[row] + np.spacing(1)) / 2
            if labelled.any():
                e = np.ascontiguousarray(e[:, labelled])
            table[:, j] = np.exp(-e).sum(axis=1) / e.shape[1]
        return table
