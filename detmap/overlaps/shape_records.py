"""How the records of a file become what a kind of overlap compares: masks, keypoints, ..."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from detmap.tables import Columns, Shapes, Truth

Place = Callable[[int], str]
"""Where row i is, for messages."""


class ShapeReader(ABC):
    """Reads the shapes of a kind from the records of a file.

    Parameters
    ----------
    kind : the class of the shapes
    field : the key of a record that holds one (COCO JSON)
    more : other keys of an object's record that `complete` looks at
    box_gives_area : whether the area of a result with a box is that of the box, as pycocotools'
        `COCO.loadRes` has it; else it is that of the shape
    """

    kind: ClassVar[type]
    field: ClassVar[str]
    more: ClassVar[tuple[str, ...]] = ()
    box_gives_area: ClassVar[bool] = False

    @abstractmethod
    def read(
        self,
        values: Sequence[Any],
        sizes: NDArray[np.float64],
        place: Place,
        like: Shapes | None = None,
    ) -> Shapes:
        """Shapes of values as JSON has them.

        Parameters
        ----------
        values : n, None where a record has none
        sizes : (n, 2) height and width of their images, NaN where unknown
        like : the shapes of the truth, where these are of detections

        Raises
        ------
        DataError : a value that is none; `place` names row i
        """

    @abstractmethod
    def around(self, shapes: Any) -> NDArray[np.float64]:
        """(n, 4) boxes x, y, width, height around detections that give none."""

    def around_objects(self, shapes: Any) -> NDArray[np.float64]:
        """(n, 4) boxes around objects that give none; NaN where there is none."""
        return self.around(shapes)

    def from_box(self, box: Sequence[float]) -> Any:
        """The value of a detection that gives a box x, y, width, height alone."""
        return None

    def complete(
        self, truth: Truth, shapes: Any, given: Mapping[str, Sequence[Any]], place: Place
    ) -> Truth:
        """The truth with its shapes, and what follows from them: an area that is missing is that
        of the shape, as it is for detections.

        Parameters
        ----------
        given : of each object its ``area``, and the values of `more`; None where missing
        """
        missing = np.array([area is None for area in given["area"]], dtype=bool)
        area = np.where(missing, shapes.area, truth.area)
        text = f"annotations give no area: that of their {self.field} is used"
        notes = tuple(
            replace(note, text=text) if note.code == "area-missing" else note
            for note in truth.notes
        )
        attributes = Columns({**truth.attributes, "area": area})
        return replace(truth, attributes=attributes, shapes=shapes, notes=notes)
