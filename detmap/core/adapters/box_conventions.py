"""Names of box conventions, and their conversion to table boxes.

`IN_MEMORY` lists those of arrays; files have one more.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.core.base.flat_rows import first_true
from detmap.core.tables import MAX_PIXEL, BoxFormat, Truth
from detmap.errors import DataError

IN_MEMORY: tuple[str, ...] = (
    "xyxy",
    "xywh",
    "cxcywh",
    "voc",
    "normalized xyxy",
    "normalized xywh",
    "normalized cxcywh",
)
"""Corners; left, top, width, height; center, width, height: in continuous pixels from 0, or in
fractions of the image's sides. ``voc``: first and last pixel, counted from 1 and both inside the
box."""

FORMATS: tuple[str, ...] = (*IN_MEMORY, "voc xywh", "voc from 0")
"""``xyxy``: left, top, right, bottom; ``xywh``: left, top, width, height; ``cxcywh``: center,
width, height: pixels, continuous from 0. ``normalized`` before it: fractions of the image's sides.
``voc``: first and last pixel, from 1, both inside the box; ``voc xywh``: first pixel and what lies
between it and the last (``x2 = x1 + w``, rafaelpadilla's reading of its XYWH); ``voc from 0``:
first and last pixel, from 0."""

CORNERS = ("xyxy", "voc", "voc from 0", "normalized xyxy")
VOC_XML = ("voc", "voc from 0", "xyxy")


MANY = 0.1  # share of boxes of a negative size, from which the box format is wrong
MOST_PIXELS = 1e9
"""Largest coordinate in readers that convert sides to corners: the pixel that is added to a side
must not be lost by rounding.
"""


def require(box_format: str | None, choices: Sequence[str] = FORMATS) -> str:
    """Checks the name of a box format."""
    if box_format not in choices:
        what = "not given" if box_format is None else f"unknown box format {box_format!r}"
        raise DataError("box format", what, f"choose one of: {', '.join(choices)}")
    return str(box_format)


def table_boxes(
    values: NDArray[np.float64],
    box_format: str,
    *,
    sizes: tuple[NDArray[np.float64], NDArray[np.float64]],
    place: Callable[[int], str],
) -> tuple[NDArray[np.float64], BoxFormat]:
    """Converts boxes to the tables' format.

    Parameters
    ----------
    values : (n, 4), as written
    box_format : one of `FORMATS`
    sizes : (n,) widths and (n,) heights of each box's image; NaN if unknown
    place : place of row i, for messages

    Raises `DataError` for negative sizes, numbers that are not finite or too large, and unknown
        image sizes.
    """
    boxes = np.array(values, dtype=np.float64).reshape(-1, 4)
    kind, _, corners = box_format.rpartition(" ")
    _refuse(~(np.abs(boxes) <= MAX_PIXEL).all(axis=1), values, box_format, place, "is not finite")
    if kind == "normalized":
        sides = np.column_stack(sizes)
        unknown = np.isnan(sides).any(axis=1)
        if unknown.any():
            raise DataError(
                place(int(np.argmax(unknown))),
                "a normalized box on an image of unknown size",
                "give the sizes of the images when the ground truth is read (--image-sizes FILE)",
            )
        boxes *= np.hstack([sides, sides])
    if box_format in ("voc", "voc from 0"):
        boxes += box_format != "voc"
        _refuse((boxes[:, 2:] - boxes[:, :2] + 1 < 0).any(axis=1), values, box_format, place)
        return boxes, "voc"
    if corners == "xyxy":
        boxes[:, 2:] -= boxes[:, :2]
    _refuse((boxes[:, 2:] < 0).any(axis=1), values, box_format, place)
    if corners == "cxcywh":
        boxes[:, :2] -= boxes[:, 2:] / 2
    if box_format == "voc xywh":
        boxes[:, 2:] += boxes[:, :2]
        return boxes, "voc"
    return boxes, "xywh"


def require_pixels(values: NDArray[np.float64], place: Callable[[int], str]) -> None:
    """Raises `DataError` for the first box with a coordinate beyond `MOST_PIXELS`."""
    bad = (np.abs(values) > MOST_PIXELS).any(axis=1)
    if (row := first_true(bad)) is not None:
        what = f"box {' '.join(f'{each:g}' for each in values[row].tolist())} is too large"
        raise DataError(place(row), what, f"coordinates are pixels, at most {MOST_PIXELS:g}")


def sizes_of(
    truth: Truth, image: NDArray[np.int32]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Returns (n,) widths and heights of the rows' images; 1 for unknown images."""
    known = np.maximum(image, 0)
    width, height = truth.images.width, truth.images.height
    if not len(width):
        return np.ones(len(image)), np.ones(len(image))
    return np.where(image < 0, 1.0, width[known]), np.where(image < 0, 1.0, height[known])


def unknown_sizes(n: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Returns NaN sizes of n images."""
    return np.full(n, np.nan), np.full(n, np.nan)


def areas(boxes: NDArray[np.float64], box_format: BoxFormat) -> NDArray[np.float64]:
    """Returns (n,) square pixels of table boxes."""
    if box_format == "voc":
        return (boxes[:, 2] - boxes[:, 0] + 1) * (boxes[:, 3] - boxes[:, 1] + 1)
    return boxes[:, 2] * boxes[:, 3]


def _refuse(
    bad: Any,
    values: NDArray[np.float64],
    box_format: str,
    place: Callable[[int], str],
    what: str = "has a negative width or height",
) -> None:
    if (row := first_true(bad)) is not None:
        fix = f"boxes are read as {box_format}: fix the row, or choose the right box format"
        if what.startswith("has") and np.mean(bad) > MANY and box_format in CORNERS:
            fix = (
                f"{np.sum(bad):,} of {len(values):,} boxes are none as {box_format}: if they are "
                "x, y, width, height, choose that box format, or rename the columns to "
                "x, y, width, height"
            )
        numbers = " ".join(f"{each:g}" for each in values[row].tolist())
        raise DataError(place(row), f"box {numbers} {what}", fix)
