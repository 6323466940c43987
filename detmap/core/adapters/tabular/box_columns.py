"""Finds the columns of a table that form a box, and their box convention."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.core.adapters import box_conventions, text_fields
from detmap.core.adapters.tabular import csv_parquet
from detmap.core.adapters.tabular.csv_parquet import Sheet
from detmap.core.overlaps.rotated_boxes import corners_of, upright
from detmap.core.tables import Note
from detmap.errors import DataError, few

COCO_KEYS = {"category_id", "bbox"}
_BETWEEN = re.compile(r"np\.float\d+|[\s,;()\[\]]+")  # the numbers of a box as text
WHOLE_BOX = ("", "bbox", "box", "boxes")  # the columns bbox and box are spelled thus

SLACK = 0.01  # by which a fraction of the image may lie outside of 0 to 1

WIDTHS, HEIGHTS = ("w", "width"), ("h", "height")
LAYOUTS: tuple[tuple[str, tuple[tuple[str, ...], ...]], ...] = (
    ("xyxy", (("xmin",), ("ymin",), ("xmax",), ("ymax",))),
    ("xyxy", (("x0",), ("y0",), ("x1",), ("y1",))),
    ("xyxy", (("x1",), ("y1",), ("x2",), ("y2",))),
    ("xyxy", (("left",), ("top",), ("right",), ("bottom",))),
    ("xywh", (("x",), ("y",), WIDTHS, HEIGHTS)),
    ("xywh", (("xmin",), ("ymin",), WIDTHS, HEIGHTS)),
    ("xywh", (("left",), ("top",), WIDTHS, HEIGHTS)),
    ("cxcywh", (("cx",), ("cy",), WIDTHS, HEIGHTS)),
    ("cxcywh", (("xcenter",), ("ycenter",), WIDTHS, HEIGHTS)),
    ("cxcywh", (("centerx",), ("centery",), WIDTHS, HEIGHTS)),
    ("cxcywh", (("xc",), ("yc",), WIDTHS, HEIGHTS)),
)
CENTERS = tuple(sides for layout, sides in LAYOUTS if layout == "cxcywh")
ROTATED = (
    *((*sides, ("angle",)) for sides in CENTERS),
    tuple((f"{axis}{i}",) for i in (1, 2, 3, 4) for axis in "xy"),
)
"""Columns of rotated boxes: as five numbers, the angle in radians, or four corners."""
MEANINGS: dict[str, tuple[str, ...]] = {
    "rotated": (),
    "xyxy": box_conventions.CORNERS,
    "xywh": ("xywh", "voc xywh", "normalized xywh"),
    "cxcywh": ("cxcywh", "normalized cxcywh"),
}


@dataclass(frozen=True, slots=True, eq=False)
class Boxes:
    """The boxes of a sheet: (n, 4) numbers, NaN for empty cells, and their convention; and (n, 5)
    or (n, 8) numbers of rotated boxes, with upright boxes around them.
    """

    values: NDArray[np.float64]
    box_format: str
    columns: tuple[str, ...]
    rotated: NDArray[np.float64] | None = None


def find(sheet: Sheet, box_format: str | None, blank: NDArray[np.bool_] | None = None) -> Boxes:
    """Finds the boxes of a sheet.

    Parameters
    ----------
    sheet : with columns of one box
    box_format : one of `box_conventions.FORMATS` that the columns allow; default: from their names
    blank : (n,) rows that may be empty; default none

    Raises `DataError` if there is no box or more than one, or a cell is not a finite number.
    """
    if box_format is not None:
        box_conventions.require(box_format)
    rotated = next((each for sides in ROTATED if (each := _columns(sheet, sides))), None)
    layouts = _layouts(sheet) if rotated is None else [("rotated", rotated)]
    if box_format is not None and layouts:
        fitting = [each for each in layouts if box_format in MEANINGS[each[0]]]
        if not fitting:
            kinds = few(sorted({each[0] for each in layouts}))
            known = chain.from_iterable(MEANINGS[each[0]] for each in layouts)
            raise DataError(
                sheet.source,
                f"box format {box_format!r}, but the columns define {kinds}",
                f"choose one of: {', '.join(known)}",
            )
        layouts = fitting
    if len(layouts) > 1:
        both = " and ".join("/".join(columns) for _, columns in layouts)
        raise DataError(
            sheet.source, f"the columns define several boxes: {both}", "remove the others"
        )
    if layouts:
        layout, columns = layouts[0]
        values = np.column_stack(
            [sheet.numbers(column, blank=blank is not None, flags=False) for column in columns]
        )
        boxes = Boxes(values, box_format or layout, columns)
        if rotated is not None:
            _require_finite(sheet, boxes, blank)
            return Boxes(upright(corners_of(values)), "xywh", columns, values)
    else:
        boxes = _whole_boxes(sheet, box_format)
    _require_finite(sheet, boxes, blank)
    return boxes


def _require_finite(sheet: Sheet, boxes: Boxes, blank: NDArray[np.bool_] | None) -> None:
    bad = ~np.isfinite(boxes.values)
    if blank is not None:
        bad &= ~(np.isnan(boxes.values).all(axis=1) & blank)[:, None]
    if bad.any():
        row, column = np.argwhere(bad)[0].tolist()
        name = boxes.columns[column] if len(boxes.columns) > 1 else boxes.columns[0]
        raise DataError(
            f"{sheet.place(row)}, column {name}",
            f"{boxes.values[row, column]} is not a finite number",
            "write a number of pixels",
        )


def find_meaning(
    sheet: Sheet, box_format: str | None, blank: NDArray[np.bool_] | None = None
) -> tuple[Boxes, tuple[Note, ...]]:
    """Finds boxes as `find` does, and reads them as fractions of the image if they are.

    Without a box format, boxes that all lie in 0 to 1 are fractions: in pixels, no box of the file
    would have more than one. If all numbers are 0 and 1, either is possible, and pixels are read.
    """
    boxes = find(sheet, box_format, blank)
    values = boxes.values[~np.isnan(boxes.values).all(axis=1)]
    if box_format is not None or not len(values):
        return boxes, ()
    ends = np.hstack([values[:, :2], values[:, :2] + values[:, 2:]])
    inside = ((values >= -SLACK) & (values <= 1 + SLACK)).all()
    if boxes.box_format == "xywh":
        inside &= (ends <= 1 + SLACK).all()
    if not inside or (values == np.floor(values)).all():
        return boxes, ()
    meaning = f"normalized {boxes.box_format}"
    text = (
        f"boxes lie in 0 to 1: read as fractions of the image ({meaning}); for pixels use "
        f"the box format {boxes.box_format}"
    )
    note = Note("boxes-fractions", text, len(values), sheet.source)
    return replace(boxes, box_format=meaning), (note,)


def _layouts(sheet: Sheet) -> list[tuple[str, tuple[str, ...]]]:
    """Returns the possible ways to read boxes."""
    layouts: dict[tuple[str, ...], str] = {}
    for layout, sides in LAYOUTS:
        if (columns := _columns(sheet, sides)) is not None:
            layouts[columns] = layout
    corners = {columns: layout for columns, layout in layouts.items() if layout == "xyxy"}
    if corners:  # beside corners, columns width and height are those of the image
        used = {column for columns in corners for column in columns}
        layouts = corners | {
            columns: layout
            for columns, layout in layouts.items()
            if layout != "xyxy"
            and not used & set(columns)
            and csv_parquet.spelled(columns[2]) != "width"
        }
    return [(layout, columns) for columns, layout in layouts.items()]


def _columns(sheet: Sheet, sides: Sequence[tuple[str, ...]]) -> tuple[str, ...] | None:
    """The columns of these names; None if one is missing."""
    columns = [sheet.named(names) for names in sides]
    found = tuple(column for column in columns if column is not None)
    return found if len(found) == len(columns) else None


def _whole_boxes(sheet: Sheet, box_format: str | None) -> Boxes:
    """Reads a column with four numbers per row, or their text; beside ``category_id`` it is
    COCO's ``bbox``.
    """
    column = sheet.named(WHOLE_BOX)
    if column is None:
        raise DataError(
            sheet.source,
            f"no columns of a box; there are {few(sheet.columns)}",
            "name them xmin, ymin, xmax, ymax, or x, y, w, h, or cx, cy, w, h",
        )
    if box_format is None and sheet.columns.keys() >= COCO_KEYS:
        box_format = "xywh"
    if box_format is None:
        raise DataError(
            f"{sheet.source}: column {column}",
            "contains boxes of unknown format",
            "give the box format (--truth-box-format, --detections-box-format, in Python "
            f"box_format=), one of: {', '.join(box_conventions.FORMATS)}",
        )
    values = np.full((len(sheet), 4), np.nan)
    for row, cell in enumerate(sheet.columns[column]):
        if not (csv_parquet.missing(cell) or (isinstance(cell, str) and not cell)):
            values[row] = _four(sheet, column, row, cell)
    return Boxes(values, box_format, (column,))


def _four(sheet: Sheet, column: str, row: int, cell: Any) -> NDArray[np.float64]:
    """The four numbers of a cell: a list, or its text as pandas writes it."""
    try:
        if isinstance(cell, str):
            cell = [float(each) for each in _BETWEEN.split(cell) if each]
        numbers = np.asarray(cell, dtype=np.float64)
        if numbers.shape == (4,):
            return numbers
    except (TypeError, ValueError):
        pass
    what = f"{text_fields.short(str(cell))} where a box has four numbers"
    raise DataError(f"{sheet.place(row)}, column {column}", what, "write four numbers")
