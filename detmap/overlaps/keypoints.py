"""Object keypoint similarity (OKS)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from detmap.base import column_checks
from detmap.base.immutable import Immutable, keep
from detmap.errors import DataError
from detmap.overlaps.dense_pairs import DensePairs
from detmap.overlaps.shape_records import Place, ShapeReader
from detmap.protocol import Protocol
from detmap.tables import Columns, Detections, Shapes, Truth
from detmap.tables.digests import fold_table

if TYPE_CHECKING:
    from detmap.kernels.cells import ObjectColumns


@dataclass(frozen=True, slots=True, eq=False)
class Keypoints(Immutable):
    """Keypoints of n objects or detections.

    Parameters
    ----------
    points : (n, k, 3) float64: x, y in pixels, and visibility, above 0 if labeled
    area : (n,) float64, used by area ranges
    """

    points: NDArray[np.float64]
    area: NDArray[np.float64]

    def __post_init__(self) -> None:
        shape = self.points.shape if type(self.points) is np.ndarray else ()
        sides = (*shape[:2], 3) if len(shape) == 3 else (0, 0, 3)
        points = column_checks.column("Keypoints.points", self.points, np.float64, *sides)
        column_checks.finite("Keypoints.points", points, column_checks.MAX_PIXEL)
        area = column_checks.column("Keypoints.area", self.area, np.float64, len(points))
        column_checks.no_nan("Keypoints.area", area)
        keep(self, points=points, area=area)

    def __len__(self) -> int:
        return len(self.points)

    def take(self, rows: NDArray[Any]) -> Keypoints:
        """Selects rows."""
        return Keypoints(self.points[rows], self.area[rows])

    def digest(self) -> NDArray[np.uint64]:
        """Returns (n,) one hash per row."""
        if not len(self):
            return np.zeros(0, dtype=np.uint64)
        rows = np.arange(len(self), dtype=np.int32)
        return fold_table(len(self), rows, self.points.reshape(len(self), -1), self.area)


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the body in COCO-WholeBody: its name, number of points, field, and score."""

    name: str
    n: int
    field: str
    score: str = "score"


PARTS = (
    Part("body", 17, "keypoints"),
    Part("foot", 6, "foot_kpts", "foot_score"),
    Part("face", 68, "face_kpts", "face_score"),
    Part("lefthand", 21, "lefthand_kpts", "lefthand_score"),
    Part("righthand", 21, "righthand_kpts", "righthand_score"),
)
"""The parts in the order of their points. Source: xtcocotools cocoeval.py, _prepare."""


class KeypointPairs(DensePairs):
    """Produces pairs of keypoints.

    Parameters
    ----------
    truth, detections : tables with `Keypoints` as their shapes
    sigmas : k, the annotators' deviation per point
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
        """Returns (d, g) similarities; ignored regions are not special.

        Source: COCOeval.computeOks in pycocotools' cocoeval.py, with its order of operations. Only
        labeled points count. Without any, the distances to the doubled box count.
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


def producer(
    truth: Truth, detections: Detections, objects: ObjectColumns, protocol: Protocol, lowest: float
) -> KeypointPairs:
    """Creates the producer of a protocol. Raises `DataError` for a wrong number of sigmas."""
    n_sigmas = len(protocol.iou.sigmas)
    for table in (truth, detections):
        assert isinstance(table.shapes, Keypoints)
        n_points = table.shapes.points.shape[1]
        if len(table) and n_points != n_sigmas:
            raise DataError(
                "iou.sigmas",
                f"{n_sigmas} numbers, where {table.source or 'a table'} has {n_points} keypoints",
                "give a number for each keypoint",
            )
    return KeypointPairs(truth, detections, objects, lowest=lowest, sigmas=protocol.iou.sigmas)


class KeypointReader(ShapeReader):
    """Reads ``keypoints``: x, y and visibility per point."""

    kind = Keypoints
    field = "keypoints"
    array = "keypoints"
    sides = "(n, points, 3)"
    more = ("num_keypoints",)
    box_gives_area = True

    def read(
        self,
        values: Sequence[Any],
        sizes: NDArray[np.float64],
        place: Place,
        like: Shapes | None = None,
    ) -> Keypoints:
        """Reads keypoints; see `ShapeReader`. Detections must have as many points as the ground
        truth.
        """
        points = _points(values, place)
        if isinstance(like, Keypoints) and len(points) and len(like):
            k = like.points.shape[1]
            if points.shape[1] != k:
                what = f"{points.shape[1]} points where the ground truth has {k}"
                raise DataError(place(0), what, "give the points that the ground truth has")
        shapes = Keypoints(points, np.zeros(len(points)))
        boxes = self.around(shapes)
        return replace(shapes, area=boxes[:, 2] * boxes[:, 3])

    def around(self, shapes: Keypoints) -> NDArray[np.float64]:
        """Returns (n, 4) boxes around all points. Source: COCO.loadRes in pycocotools' coco.py."""
        if not len(shapes):
            return np.zeros((0, 4))
        low, high = shapes.points[:, :, :2].min(axis=1), shapes.points[:, :, :2].max(axis=1)
        return np.concatenate([low, high - low], axis=1)

    def around_objects(self, shapes: Keypoints) -> NDArray[np.float64]:
        """Returns (n, 4) boxes around the labeled points; NaN if there are none."""
        if not len(shapes):
            return np.zeros((0, 4))
        points, labelled = shapes.points[:, :, :2], shapes.points[:, :, 2:] > 0
        low = np.where(labelled, points, np.inf).min(axis=1)
        high = np.where(labelled, points, -np.inf).max(axis=1)
        low[~labelled.reshape(len(shapes), -1).any(axis=1)] = np.nan
        return np.concatenate([low, high - low], axis=1)

    def complete(
        self, truth: Truth, shapes: Keypoints, given: Mapping[str, Sequence[Any]], place: Place
    ) -> Truth:
        """Adds keypoints to the ground truth; objects without labeled points get the role
        "unlabelled".

        Source: COCOeval._prepare in cocoeval.py.
        """
        counted = (shapes.points[:, :, 2] > 0).sum(axis=1).tolist()
        count = [
            own if number is None else number
            for own, number in zip(counted, given["num_keypoints"], strict=True)
        ]
        for i, number in enumerate(count):
            if type(number) not in (int, float):
                where = f"{place(i).rpartition('.')[0]}.num_keypoints"
                raise DataError(where, "is not a number", "count the keypoints")
        unlabelled = np.array([number == 0 for number in count], dtype=bool)
        roles = Columns({**truth.roles, "unlabelled": unlabelled})
        return replace(truth, roles=roles, shapes=Keypoints(shapes.points, truth.area))


def _points(given: Sequence[Any], place: Place) -> NDArray[np.float64]:
    if not given:
        return np.zeros((0, 17, 3))
    n = len(given[0]) if isinstance(given[0], list) else 0
    for i, row in enumerate(given):
        if not isinstance(row, list) or len(row) != n or not n or n % 3:
            what = "not a list of x, y and visibility per point, or of another length"
            raise DataError(place(i), what, "give [x1, y1, v1, x2, y2, v2, ...]")
        if not all(type(x) in (int, float) and abs(x) <= column_checks.MAX_PIXEL for x in row):
            raise DataError(place(i), "not numbers of pixels", "give [x1, y1, v1, ...]")
    return np.array(given, dtype=np.float64).reshape(len(given), -1, 3)
