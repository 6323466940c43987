"""Pairs of detections and objects of the same image, and the overlaps of their boxes.

An image may have thousands of boxes: pairs come some at a time, and a reader keeps what it needs.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.core.base.pair_limits import limit_compared, limit_listed
from detmap.core.overlaps.near_boxes import EVERY_PAIR as EVERY_PAIR
from detmap.core.overlaps.near_boxes import near
from detmap.core.tables import Detections, Images, Truth, boxes_as

Rows = NDArray[np.int64]
Floats = NDArray[np.float64]
AT_ONCE = 1 << 16
"""Pairs per step: few enough for a cache."""
SLOWER = 25
"""Times as long as a pair takes in the kernel that leaves out what is apart."""


def pairs_near(
    images: Images,
    first: tuple[NDArray[Any], Floats],
    second: tuple[NDArray[Any], Floats],
    apart: float,
) -> Iterator[tuple[Rows, Rows]]:
    """Yields pairs of rows of the same image that are not apart, by first row, then by second.

    Parameters
    ----------
    images : of both
    first, second : (n,) image of each row and (n, 4) left, top, right and bottom
    apart : boxes are apart if they share no more than this in x or in y, or `EVERY_PAIR`

    Raises
    ------
    CrowdedError : too many pairs to compare
    """
    (image, sides), (of_image, of_sides) = first, second
    order = np.argsort(of_image, kind="stable")
    cells = tuple(np.searchsorted(of_image[order], image, side) for side in ("left", "right"))
    count = cells[1] - cells[0]
    where, n_rows = most_crowded(images, image, count), len(image) + len(of_image)
    limit_compared(where, int(count.sum()), n_rows)
    rows, n_near = np.arange(len(image), dtype=np.int32), 0
    for i, g in near(rows, (cells[0], cells[1]), (sides, of_sides[order]), apart, AT_ONCE):
        n_near += len(i)
        limit_compared(where, n_near, n_rows, SLOWER)
        yield i, order[g]


def most_crowded(images: Images, image: NDArray[Any], count: Rows) -> str:
    """Names the image with the most pairs, of which rows have a `count`."""
    if not len(image):
        return "evaluate"
    return named(images, int(np.argmax(np.bincount(image, weights=count))))


def named(images: Images, i: int) -> str:
    """Names an image as the place of an error."""
    return f"image {images.ids[i].item()!r}"


Pairs = tuple[NDArray[np.integer[Any]], NDArray[np.integer[Any]], Floats]


def collected(parts: Iterable[Pairs], images: Images, image: NDArray[Any], n_rows: int) -> Pairs:
    """Joins the pairs and overlaps that a reader keeps.

    Parameters
    ----------
    images, image : of the first of each pair
    n_rows : boxes on both sides

    Raises
    ------
    CrowdedError : too many for the memory
    """
    nothing = np.zeros(0, dtype=np.int32)
    kept: list[Pairs] = [(nothing, nothing, np.zeros(0))]
    n_kept = 0
    for part in parts:
        if len(part[0]):
            kept.append(part)
            n_kept += len(part[0])
            limit_listed(named(images, int(image[part[0][-1]])), n_kept, n_rows)
    first, second, overlap = map(np.concatenate, zip(*kept, strict=True))
    return first, second, overlap


def corners(table: Truth | Detections) -> Floats:
    """Returns (n, 4) left, top, right and bottom in continuous pixels."""
    boxes = boxes_as(table.boxes, table.box_format, "xywh")
    return np.hstack([boxes[:, :2], boxes[:, :2] + boxes[:, 2:]])


def overlaps(
    a: Floats,
    b: Floats,
    rows: tuple[NDArray[Any], NDArray[Any]],
    area: tuple[Floats, Floats],
    pixel: float = 0.0,
) -> tuple[Floats, Floats]:
    """Returns the shared area of pairs of boxes, and that over the union; 0 for boxes that do not
    meet.

    Parameters
    ----------
    a, b : left, top, right, bottom of all boxes
    rows : (n,) of each
    area : (n,) of the pairs' boxes
    pixel : added to each side: 1 if the last pixel is inside the box
    """
    shared = shared_areas(a, b, rows, pixel)
    return shared, ratio(shared, area[0] + area[1] - shared)


def shared_areas(
    a: Floats, b: Floats, rows: tuple[NDArray[Any], NDArray[Any]], pixel: float = 0.0
) -> Floats:
    """Returns the shared area of pairs of boxes; see `overlaps`."""
    i, j = rows
    width, height = (
        np.minimum(a[i, end], b[j, end]) - np.maximum(a[i, begin], b[j, begin]) + pixel
        for begin, end in ((0, 2), (1, 3))
    )
    return np.where((width > 0) & (height > 0), width * height, 0.0)


def ratio(shared: Floats, area: Floats) -> Floats:
    """Returns a shared area over another; 0 where nothing is shared."""
    return np.divide(shared, area, out=np.zeros_like(shared), where=shared > 0)


def areas(boxes: Floats, pixel: float = 0.0) -> Floats:
    """Returns (n,) areas of boxes left, top, right, bottom."""
    sides: Floats = boxes[:, 2:] - boxes[:, :2] + pixel
    return sides[:, 0] * sides[:, 1]


def table_areas(table: Truth | Detections) -> Floats:
    """Returns (n,) width times height."""
    boxes = boxes_as(table.boxes, table.box_format, "xywh")
    return boxes[:, 2] * boxes[:, 3]
