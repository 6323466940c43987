"""Reads masks from COCO records."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.core.overlaps.masks import Masks, join, read
from detmap.core.overlaps.shape_records import Place, ShapeReader
from detmap.core.tables import Shapes


class MaskReader(ShapeReader):
    """Reads ``segmentation``: polygons or run lengths."""

    kind = Masks
    field = "segmentation"
    array = "masks"
    sides = "(n, height, width)"
    runs = True
    box_gives_area = True

    def read(
        self,
        values: Sequence[Any],
        sizes: NDArray[np.float64],
        place: Place,
        like: Shapes | None = None,
    ) -> Masks:
        """Reads masks; see `read`."""
        return read(values, sizes, place)

    def around(self, shapes: Masks) -> NDArray[np.float64]:
        """Returns (n, 4) boxes around the pixels."""
        return shapes.runs.boxes

    def join(self, parts: Sequence[Masks]) -> Masks:
        """Returns the masks of several parts."""
        return join(parts)

    def from_box(self, box: Sequence[float]) -> list[list[float]]:
        """Returns the mask of a result that has only a box. Source: COCO.loadRes."""
        left, top, right, bottom = box[0], box[1], box[0] + box[2], box[1] + box[3]
        return [[left, top, left, bottom, right, bottom, right, top]]
