"""Overlaps of boxes row by row, of any class, for checks outside of a protocol."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.core.tables import Truth, boxes_as
from detmap.core.tables.grouping import labels

Boxes = NDArray[np.float64]
MOST_PAIRS = 4_000_000  # that are looked at


class Met(NamedTuple):
    """Rows with the object of the highest overlap.

    Parameters
    ----------
    row, place : (n,) rows of the detections and of the ground truth
    iou : (n,) float64
    """

    row: NDArray[np.int64]
    place: NDArray[np.int64]
    iou: NDArray[np.float64]


def edges(rows: Any, some: NDArray[Any] | None = None, *, inclusive: bool = False) -> Boxes:
    """Returns (n, 5) left, top, right, bottom edge and area, of a table or raw rows of the doctor.

    With `inclusive` the last pixel belongs to the box; right and bottom are then the pixel after
    it. `some` selects rows.
    """
    boxes = rows.boxes if some is None else rows.boxes[some]
    with np.errstate(all="ignore"):  # what is wrong may be out of all proportion
        if inclusive:
            corners = boxes_as(boxes, rows.box_format, "voc")
            right, bottom = corners[:, 2] + 1, corners[:, 3] + 1
            area = (right - corners[:, 0]) * (bottom - corners[:, 1])
        else:
            corners = boxes_as(boxes, rows.box_format, "xywh")
            right, bottom = corners[:, 0] + corners[:, 2], corners[:, 1] + corners[:, 3]
            area = corners[:, 2] * corners[:, 3]
    return np.stack([corners[:, 0], corners[:, 1], right, bottom, area], axis=1)


def ious(a: Boxes, b: Boxes) -> NDArray[np.float64]:
    """Returns (n,) IoU of (n, 5) and (n, 5) `edges`; 0 if undefined."""
    with np.errstate(all="ignore"):
        width = np.minimum(a[:, 2], b[:, 2]) - np.maximum(a[:, 0], b[:, 0])
        height = np.minimum(a[:, 3], b[:, 3]) - np.maximum(a[:, 1], b[:, 1])
        shared = np.where((width > 0) & (height > 0), width * height, 0.0)
        union = a[:, 4] + b[:, 4] - shared
        return np.divide(shared, union, out=np.zeros_like(shared), where=union > 0)


def meetings(
    begin: NDArray[np.int64], count: NDArray[np.int64], at_once: int
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Yields pairs of k and each of the `count[k]` places from `begin[k]` on, in this order, about
    so many at once.
    """
    ends = np.concatenate([[0], np.cumsum(count)])
    first = 0
    while first < len(count):
        last = max(first + 1, int(np.searchsorted(ends, ends[first] + at_once, "right")) - 1)
        off = ends[first : last + 1] - ends[first]
        nth = labels(off).astype(np.int64)
        yield first + nth, begin[first:last][nth] + np.arange(off[-1]) - off[nth]
        first = last


def best_overlaps(
    rows: Any, image: NDArray[Any], some: NDArray[np.int64], truth: Truth, least: float
) -> Met:
    """Returns rows with the object of highest overlap on their image, of any class, if it is at
    least `least`.

    `image` holds the position of each row's image. Of more than
    `MOST_PAIRS` pairs, every n-th row is examined.
    """
    from detmap.analysis.kernels.diagnosis import find_best

    objects = np.argsort(truth.image, kind="stable")
    off = np.searchsorted(truth.image[objects], np.arange(len(truth.images) + 1))
    count = np.diff(off)[image[some]]
    thin = int(np.ceil(count.sum() / MOST_PAIRS))
    if thin > 1:  # rows spread evenly
        some, count = some[::thin], count[::thin]
    some, count = some[count > 0], count[count > 0]
    begin = off[image[some]].astype(np.int64)
    best, iou = np.empty(len(some), dtype=np.int64), np.empty(len(some))
    find_best(edges(rows, some), begin, count.astype(np.int64), edges(truth)[objects], best, iou)
    near = iou >= least
    return Met(some[near], objects[best[near]], iou[near])
