"""Rotated boxes: quadrilaterals as eight numbers, or rectangles as five."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from detmap.core.base import column_checks
from detmap.core.base.flat_rows import first_true
from detmap.core.base.immutable import Immutable, keep
from detmap.core.base.open_files import shown
from detmap.core.overlaps.shape_records import Place, ShapeReader
from detmap.core.tables import Shapes
from detmap.core.tables.digests import fold_table
from detmap.errors import DataError

Floats = NDArray[np.float64]

LARGEST = 1e9
"""Pixels of a coordinate or side."""
THINNEST = 1e-12
"""A polygon whose area is at most this share of its squared diagonal is a line: rounding would
decide its overlaps."""
NUMBERS = {5: "cx cy w h angle, the angle in radians", 8: "x1 y1 x2 y2 x3 y3 x4 y4"}
FIX = f"a rotated box is {NUMBERS[8]}, or {NUMBERS[5]}"


@dataclass(frozen=True, slots=True, eq=False)
class RotatedBoxes(Immutable):
    """Rotated boxes of n objects or detections.

    Parameters
    ----------
    values : (n, 8) float64 corners, or (n, 5) center, width, height and angle in radians, that
        turns x towards y
    area : (n,) float64; default that of the polygons
    """

    protocol: ClassVar[str] = "dota"
    """The default protocol of files with these shapes."""

    values: Floats
    area: Any = None

    def __post_init__(self) -> None:
        shape = self.values.shape if type(self.values) is np.ndarray else ()
        n_numbers = shape[1] if len(shape) == 2 and shape[1] in NUMBERS else 8
        values = column_checks.column(
            "RotatedBoxes.values", self.values, np.float64, shape[0] if shape else 0, n_numbers
        )
        column_checks.finite("RotatedBoxes.values", values, LARGEST)
        keep(self, values=values)
        area = np.abs(polygon_areas(self.corners())) if self.area is None else self.area
        keep(self, area=column_checks.column("RotatedBoxes.area", area, np.float64, len(values)))

    def __len__(self) -> int:
        return len(self.values)

    def take(self, rows: NDArray[Any]) -> RotatedBoxes:
        """Selects rows."""
        return RotatedBoxes(self.values[rows], self.area[rows])

    def digest(self) -> NDArray[np.uint64]:
        """Returns (n,) one hash per row."""
        return fold_table(len(self), np.arange(len(self), dtype=np.int32), self.values)

    def corners(self) -> Floats:
        """Returns (n, 4, 2) corners."""
        return corners_of(self.values)


def corners_of(values: Floats) -> Floats:
    """Returns (n, 4, 2) corners of (n, 8) corners or (n, 5) rectangles."""
    if values.shape[1] == 8:
        return values.reshape(-1, 4, 2)
    center, sides, angle = values[:, :2], values[:, 2:4] / 2, values[:, 4]
    cos, sin = np.cos(angle), np.sin(angle)
    along = np.stack([cos, sin], axis=1) * sides[:, :1]
    across = np.stack([-sin, cos], axis=1) * sides[:, 1:]
    signs = ((-1, -1), (1, -1), (1, 1), (-1, 1))
    return np.stack([center + i * along + j * across for i, j in signs], axis=1)


def upright(corners: Floats) -> Floats:
    """Returns (n, 4) boxes x, y, width, height around corners."""
    low, high = corners.min(axis=1), corners.max(axis=1)
    return np.concatenate([low, high - low], axis=1)


class RotatedBoxReader(ShapeReader):
    """Reads ``segmentation``: a polygon of four corners, or five numbers."""

    kind = RotatedBoxes
    field = "segmentation"
    array = "polygons"
    sides = "(n, 4, 2), (n, 8) or (n, 5)"

    def read(
        self,
        values: Sequence[Any],
        sizes: NDArray[np.float64],
        place: Place,
        like: Shapes | None = None,
    ) -> RotatedBoxes:
        """Reads rotated boxes; see `ShapeReader`."""
        rows = [each[0] if _is_nested(each) else each for each in values]
        n_numbers = len(rows[0]) if rows and isinstance(rows[0], list) else 8
        for i, row in enumerate(rows):
            if not isinstance(row, list) or len(row) not in NUMBERS or len(row) != n_numbers:
                what = "missing" if row is None else f"{row!r:.60} is no rotated box"
                raise DataError(place(i), what, f"{FIX}, the same in the whole file")
            if not all(type(x) in (int, float) and abs(x) <= LARGEST for x in row):
                raise DataError(place(i), "not numbers of pixels", FIX)
        table = np.array(rows, dtype=np.float64).reshape(len(rows), -1 if rows else 8)
        return rotated_boxes(table, place)

    def around(self, shapes: RotatedBoxes) -> Floats:
        """Returns (n, 4) upright boxes."""
        return upright(shapes.corners())


def _is_nested(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 1 and isinstance(value[0], list)


def rotated_boxes(values: Floats, place: Place) -> RotatedBoxes:
    """Creates rotated boxes from (n, 5) or (n, 8) numbers.

    Raises `DataError` for a negative side or a coordinate that is too large.
    """
    wrong = ~(np.abs(values) <= LARGEST).all(axis=1)
    what = "a number that is not finite or above a billion"
    if not wrong.any() and values.shape[1] == 5:
        wrong, what = (values[:, 2:4] < 0).any(axis=1), "a negative width or height"
    if (row := first_true(wrong)) is not None:
        box = " ".join(f"{each:g}" for each in values[row].tolist())
        raise DataError(place(row), f"box {box} has {what}", FIX)
    return RotatedBoxes(np.ascontiguousarray(values))


def require_rotated(shapes: str, path: Path, name: str) -> None:
    """Raises `DataError` if other shapes are required of a format that has rotated boxes."""
    if shapes not in ("boxes", "polygons", "rotated", "probiou"):
        what = f"shapes {shapes!r} is not an option of {name} files"
        raise DataError(shown(path), what, "remove shapes")


def polygon_areas(corners: Floats) -> Floats:
    """Returns (n,) signed areas of (n, 4, 2) corners, 0 for points and lines."""
    one, other = corners[:, 2] - corners[:, 0], corners[:, 3] - corners[:, 1]  # diagonals
    area = (one[:, 0] * other[:, 1] - one[:, 1] * other[:, 0]) / 2
    sides = corners.max(axis=1) - corners.min(axis=1)
    return np.where(np.abs(area) <= THINNEST * (sides**2).sum(axis=1), 0.0, area)
