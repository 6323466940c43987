"""Match results on some of the images, whose columns are taken when they are first read.

A statistic evaluates metrics on tens of parts, and most metrics read a few of the columns.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.core.base.immutable import keep, vouched
from detmap.core.matching.matches import Matches
from detmap.core.tables.grouping import reordered
from detmap.core.tables.notes import keep_for_part


class Part(Matches):
    """The part of `whole` on the images where (I,) `kept` is true.

    It has the rows of `whole` in the same order, keeps `whole` alive, and belongs to one thread.
    """

    __slots__ = ("kept", "obj_rows", "rows", "whole")
    kept: NDArray[np.bool_]
    obj_rows: NDArray[np.int64]
    rows: NDArray[np.int64]
    whole: Matches

    @classmethod
    def on(cls, whole: Matches, kept: NDArray[np.bool_]) -> Part:
        """Makes a part without columns; a changed copy of it has them all."""
        part = object.__new__(cls)
        of_rows, of_objects = (  # half of the time of an index
            np.take(kept, of, mode="clip") for of in (whole.image, whole.obj_image)
        )
        rows, obj_rows = np.flatnonzero(of_rows), np.flatnonzero(of_objects)
        keep(part, whole=whole, kept=kept, rows=rows, obj_rows=obj_rows)
        return part

    def __getattr__(self, name: str) -> Any:
        """Fills a column that nothing has read before."""
        if name not in Matches.__dataclass_fields__:
            raise AttributeError(name)
        keep(self, **{name: self._take(name)})
        return getattr(self, name)

    def _take(self, name: str) -> Any:
        column = getattr(self.whole, name)
        match name:
            case "image_ids" | "digest" | "beyond" | "unjudged":
                return column[self.kept]
            case "off":
                return np.searchsorted(self.rows, column)
            case "obj_off":
                return np.searchsorted(self.obj_rows, column)
            case "image" | "obj_image":
                place = (np.cumsum(self.kept) - 1).astype(np.int32)
                rows = self.rows if name == "image" else self.obj_rows
                return reordered(place, reordered(column, rows))
            case "rank" | "position" | "score" | "tp" | "ignored":
                if not column[:1].any() and not column.any():  # as of lists made for one curve
                    return column[: len(self.rows)]
                return reordered(column, self.rows)
            case "counted":
                return column[self.obj_rows]
            case "notes":
                return keep_for_part(column, self.whole.image_ids, self.whole.digest)
            case "taken":
                return None if column is None else column.take(self.rows)
        return column


def part_of(whole: Matches, kept: NDArray[np.bool_]) -> Matches:
    """The part of `whole` with all of its columns."""
    part = Part.on(whole, kept)
    columns = {each.name: getattr(part, each.name) for each in fields(Matches)}
    return vouched(Matches, **columns)  # rows that were checked
