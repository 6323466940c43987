"""Object keypoint similarity (OKS)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from detmap.core.base import column_checks
from detmap.core.base.flat_rows import flatten_rows
from detmap.core.base.immutable import Immutable, keep, vouched
from detmap.core.overlaps.keypoint_pairs import KeypointPairs
from detmap.core.overlaps.shape_records import Place, ShapeReader
from detmap.core.protocol import Protocol
from detmap.core.tables import Columns, Detections, Shapes, Truth
from detmap.core.tables.digests import fold_table
from detmap.errors import DataError

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
        rows = np.arange(len(self), dtype=np.int32)
        return fold_table(len(self), rows, flatten_rows(self.points), self.area)


def producer(
    truth: Truth, detections: Detections, objects: ObjectColumns, protocol: Protocol, lowest: float
) -> KeypointPairs:
    """Creates the producer of a protocol. Raises `DataError` for a wrong number of sigmas."""
    n_sigmas = len(protocol.iou.sigmas)
    assert isinstance(truth.shapes, Keypoints)
    assert isinstance(detections.shapes, Keypoints)
    for table, shapes in ((truth, truth.shapes), (detections, detections.shapes)):
        n_points = shapes.points.shape[1]
        if len(table) and n_points != n_sigmas:
            raise DataError(
                "iou.sigmas",
                f"{n_sigmas} numbers, where {table.source or 'a table'} has {n_points} keypoints",
                "give a number for each keypoint",
            )
    return KeypointPairs(
        detections.shapes.points,
        truth.shapes.points,
        truth.boxes,
        truth.area,
        objects,
        lowest=lowest,
        sigmas=protocol.iou.sigmas,
    )


class KeypointReader(ShapeReader):
    """Reads ``keypoints``: x, y and visibility per point."""

    kind = Keypoints
    field = "keypoints"
    array = "keypoints"
    sides = "(n, points, 3)"
    more = ("num_keypoints",)
    listed = True
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
        return self.from_numbers(_numbers(values, place), place, like)

    def from_numbers(
        self, numbers: NDArray[np.float64], place: Place, like: Shapes | None = None
    ) -> Keypoints:
        """Reads keypoints from rows of x, y and visibility per point; see `ShapeReader`.

        Raises `DataError` for numbers that are no pixels.
        """
        points = numbers.reshape(len(numbers), numbers.shape[1] // 3, 3)
        boxes, n_good = boxes_around(points)
        if n_good < len(points):
            raise DataError(place(n_good), "not numbers of pixels", "give [x1, y1, v1, ...]")
        if isinstance(like, Keypoints) and len(points) and len(like):
            k = like.points.shape[1]
            if points.shape[1] != k:
                what = f"{points.shape[1]} points where the ground truth has {k}"
                raise DataError(place(0), what, "give the points that the ground truth has")
        return vouched(Keypoints, points=points, area=boxes[:, 2] * boxes[:, 3])

    def around(self, shapes: Keypoints) -> NDArray[np.float64]:
        """Returns (n, 4) boxes around all points. Source: COCO.loadRes in pycocotools' coco.py."""
        return boxes_around(shapes.points)[0]

    def around_objects(self, shapes: Keypoints) -> NDArray[np.float64]:
        """Returns (n, 4) boxes around the labeled points; NaN if there are none."""
        if not len(shapes):
            return np.zeros((0, 4))
        points, labelled = shapes.points[:, :, :2], shapes.points[:, :, 2:] > 0
        low = np.where(labelled, points, np.inf).min(axis=1)
        high = np.where(labelled, points, -np.inf).max(axis=1)
        low[~flatten_rows(labelled).any(axis=1)] = np.nan
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


def boxes_around(points: NDArray[np.float64]) -> tuple[NDArray[np.float64], int]:
    """Returns (n, 4) boxes around (n, k, 3) points, and the first row that has no numbers of
    pixels, n if there is none; k is 0 for no rows alone.
    """
    from detmap.kernels.keypoints import put_around

    boxes = np.zeros((len(points), 4))
    return boxes, put_around(points, column_checks.MAX_PIXEL, boxes) if points.size else len(points)


def _numbers(given: Sequence[Any], place: Place) -> NDArray[np.float64]:
    if not given:
        return np.zeros((0, 51))
    n = len(given[0]) if isinstance(given[0], list) else 0
    for i, row in enumerate(given):
        if not isinstance(row, list) or len(row) != n or not n or n % 3:
            what = "not a list of x, y and visibility per point, or of another length"
            raise DataError(place(i), what, "give [x1, y1, v1, x2, y2, v2, ...]")
        if not all(type(x) in (int, float) and abs(x) <= column_checks.MAX_PIXEL for x in row):
            raise DataError(place(i), "not numbers of pixels", "give [x1, y1, v1, ...]")
    return np.array(given, dtype=np.float64)
