"""Converts records of a file to masks, keypoints and other shapes."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from detmap.core.tables import Columns, Shapes, Truth
from detmap.errors import DataError

Place = Callable[[int], str]
"""Where row i is, for messages."""


class ShapeReader(ABC):
    """Reads the shapes of a kind from the records of a file.

    Parameters
    ----------
    kind : the class of the shapes
    field : the key of a record that holds one (COCO JSON)
    array : the key of a batch that holds an array of all of an image; "" for `field`
    sides : the shape of that array, for messages
    more : other keys of an object's record that `complete` reads
    runs : whether the shapes are run lengths or values that become some, so `from_runs` reads them
    listed : whether the shapes are lists of numbers, so `from_numbers` reads them
    box_gives_area : whether the area of a result with a box is that of the box, as in pycocotools'
        `COCO.loadRes`; else it is that of the shape
    """

    kind: ClassVar[type]
    field: ClassVar[str]
    array: ClassVar[str] = ""
    sides: ClassVar[str] = "(n, numbers)"
    more: ClassVar[tuple[str, ...]] = ()
    runs: ClassVar[bool] = False
    listed: ClassVar[bool] = False
    box_gives_area: ClassVar[bool] = False

    @abstractmethod
    def read(
        self,
        values: Sequence[Any],
        sizes: NDArray[np.float64],
        place: Place,
        like: Shapes | None = None,
    ) -> Shapes:
        """Reads shapes from JSON values.

        Parameters
        ----------
        values : n values, None if missing
        sizes : (n, 2) height and width of their images, NaN if unknown
        like : the ground truth's shapes, when reading detections

        Raises `DataError` for an invalid value; `place` names row i.
        """

    def from_numbers(
        self, numbers: NDArray[np.float64], place: Place, like: Shapes | None = None
    ) -> Shapes:
        """Reads shapes from rows of numbers (n, m); `place` and `like` as in `read`."""
        raise NotImplementedError

    @abstractmethod
    def around(self, shapes: Any) -> NDArray[np.float64]:
        """Returns (n, 4) boxes x, y, width, height around detections without boxes."""

    def around_objects(self, shapes: Any) -> NDArray[np.float64]:
        """Returns (n, 4) boxes around objects without boxes; NaN if there is none."""
        return self.around(shapes)

    def from_box(self, box: Sequence[float]) -> Any:
        """Returns the value of a detection that has only a box x, y, width, height."""
        return None

    def join(self, parts: Sequence[Any]) -> Any:
        """Returns the shapes of several parts, whose fields are arrays; each part has a row, or
        there is one part.
        """
        if len(parts) == 1:
            return parts[0]
        columns = [[getattr(part, each.name) for part in parts] for each in fields(parts[0])]
        try:
            return type(parts[0])(*map(np.concatenate, columns))
        except ValueError:
            what = f"{self.field} of different lengths in different batches"
            raise DataError("targets", what, "give as many numbers for each") from None

    def complete(
        self, truth: Truth, shapes: Any, given: Mapping[str, Sequence[Any]], place: Place
    ) -> Truth:
        """Adds shapes to the ground truth; a missing area is that of the shape.

        Parameters
        ----------
        given : each object's ``area`` and values of `more`; None if missing
        """
        missing = np.array([area is None for area in given["area"]], dtype=bool)
        area = np.where(missing, shapes.area, truth.area)
        text = f"annotations have no area: the area of their {self.field} is used"
        notes = tuple(
            replace(note, template=text) if note.code == "area-missing" else note
            for note in truth.notes
        )
        attributes = Columns({**truth.attributes, "area": area})
        return replace(truth, attributes=attributes, shapes=shapes, notes=notes)
