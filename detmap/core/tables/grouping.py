"""Groups and ranks table rows for matching and merging."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.core.base.immutable import blank


def group(
    image: NDArray[np.int32] | None,
    label: NDArray[np.int32],
    n_images: int,
    n_classes: int,
    some: NDArray[np.int32] | None = None,
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Returns rows by class, then by image (unless None), then in input order, and each class's
    begin.

    some : (n,) ascending rows to use, None for all
    """
    start = np.arange(len(label), dtype=np.int32) if some is None else some
    # Detectors write image by image.
    if image is not None and (some is not None or (image[1:] < image[:-1]).any()):
        start = _group_by_key(image, start, n_images)[0]
    return _group_by_key(label, start, n_classes)


def group_images(
    image: NDArray[np.int32], n_images: int, some: NDArray[np.int32] | None = None
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Returns rows by image, then in input order, and each image's begin."""
    return _group_by_key(
        image, np.arange(len(image), dtype=np.int32) if some is None else some, n_images
    )


def _group_by_key(
    key: NDArray[np.int32], start: NDArray[np.int32], n_keys: int
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    from detmap.kernels import grouping

    rows, off = np.empty_like(start), np.empty(n_keys + 1, dtype=np.int64)
    grouping.group(key, start, rows, off)
    return rows, off


def ranked(
    image: NDArray[np.int32] | None,
    label: NDArray[np.int32],
    score: NDArray[np.float64],
    first: Sequence[NDArray[Any]],
    sizes: tuple[int, int],
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Returns rows by class and descending score, and each class's begin.

    Ties are ordered by the columns `first` (most important first), then image, then input order.
    image: None without `first`, if tied rows ascend already. sizes: I images and K classes.
    """
    from detmap.kernels import grouping
    from detmap.kernels.ranked import rank_lists

    n_images, n_classes = sizes
    if image is None or not first:
        order, off = group(image, label, n_images, n_classes)
    else:
        start = np.lexsort((image, *reversed(first))).astype(np.int32)
        order, off = np.empty_like(start), np.empty(n_classes + 1, dtype=np.int64)
        grouping.group(label, start, order, off)
    rank_lists(score.view(np.uint64), off, order, grouping.sorter(int(np.diff(off).max(initial=0))))
    return order, off


def reordered(column: NDArray[Any], order: NDArray[np.integer[Any]]) -> NDArray[Any]:
    """Returns the rows in this order, in memory that a table takes over without a copy."""
    out = blank((len(order), *column.shape[1:]), column.dtype)
    return np.take(column, order, axis=0, out=out, mode="clip")


def last(true: NDArray[np.bool_]) -> int | None:
    """Returns the last true position, None if there is none."""
    return int(np.flatnonzero(true)[-1]) if true.any() else None


def rows_of(
    off: NDArray[np.int64], classes: NDArray[Any]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Returns the rows of some classes, class after class, and where each begins."""
    sizes = off[classes + 1] - off[classes]
    begins = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return np.arange(begins[-1]) + np.repeat(off[classes] - begins[:-1], sizes), begins


def cell_bounds(
    cell: NDArray[np.int64], own: NDArray[np.int64], n_cells: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Returns where the rows of each `own` (n,) cell begin and end among those of the ascending
    `cell` (m,); counting is faster for few cells.
    """
    if n_cells > 4 * (len(cell) + len(own)):
        return np.searchsorted(cell, own, "left"), np.searchsorted(cell, own, "right")
    ends = np.concatenate([[0], np.cumsum(np.bincount(cell, minlength=n_cells))])
    return ends[own], ends[own + 1]


def runs(*keys: NDArray[Any]) -> NDArray[np.int64]:
    """Returns where runs of equal keys begin, and the end."""
    new = np.ones(len(keys[0]), dtype=bool)
    if len(new):
        new[1:] = np.any([key[1:] != key[:-1] for key in keys], axis=0)
    return np.append(np.flatnonzero(new), len(new)).astype(np.int64)


def sizes(off: NDArray[np.int64]) -> NDArray[np.int64]:
    """Returns (K,) the number of rows of each class, as `np.diff`, which takes five times as long
    for few classes.
    """
    return off[1:] - off[:-1]


def labels(off: NDArray[np.int64]) -> NDArray[np.int32]:
    """Returns (n,) the class of each row, from offsets."""
    return np.repeat(np.arange(len(off) - 1, dtype=np.int32), sizes(off))


def offsets(label: NDArray[np.int32], n_classes: int) -> NDArray[np.int64]:
    """Returns (K + 1,) offsets, from the ascending class of each row."""
    return np.concatenate([[0], np.cumsum(np.bincount(label, minlength=n_classes))]).astype(
        np.int64
    )


def places_in_cells(off: NDArray[np.int64], image: NDArray[np.int32]) -> NDArray[np.int32]:
    """Returns (n,) the place of each row within its class and image, for rows sorted by both."""
    if not len(image):
        return np.zeros(0, dtype=np.int32)
    begins = np.ones(len(image), dtype=bool)
    begins[1:] = image[1:] != image[:-1]
    begins[off[:-1][np.diff(off) > 0]] = True
    rows = np.arange(len(image))
    return (rows - np.maximum.accumulate(np.where(begins, rows, 0))).astype(np.int32)


def places_of(
    image: NDArray[np.int32], label: NDArray[np.int32], n_images: int, n_classes: int
) -> NDArray[np.int32]:
    """Returns (n,) the place of each row within its image and class, in input order."""
    rows, off = group(image, label, n_images, n_classes)
    places = np.empty(len(rows), dtype=np.int32)
    places[rows] = places_in_cells(off, image[rows])
    return places


class Positions:
    """Looks up ids in an ascending array of known ids; -1 if unknown.

    Parameters
    ----------
    known : (n,) ids, ascending and unique, integers or strings
    """

    def __init__(self, known: NDArray[Any]) -> None:
        self.known = known
        self.table: NDArray[np.int32] | None = None
        if (
            known.dtype.kind in "iu"
            and len(known)
            and int(known[-1]) - int(known[0]) < (1 << 20) + 64 * len(known)
        ):
            self.low = int(known[0])  # a table beats a binary search
            self.table = np.empty(int(known[-1]) - self.low + 1, dtype=np.int32)
            self.table.fill(-1)
            self.table[known - self.low] = np.arange(len(known), dtype=np.int32)

    def __call__(self, wanted: NDArray[Any]) -> NDArray[np.int32]:
        """Returns (m,) int32 positions of (m,) ids."""
        if not len(self.known) or not len(wanted):
            return np.full(len(wanted), -1, dtype=np.int32)
        if self.table is not None and wanted.dtype == np.int64:
            from detmap.kernels.grouping import look_up

            place = blank(len(wanted), np.int32)  # tables take it over as it is
            look_up(np.ascontiguousarray(wanted), self.low, self.table, place)
            return place
        nearest = np.minimum(np.searchsorted(self.known, wanted), len(self.known) - 1)
        return np.where(self.known[nearest] == wanted, nearest, -1).astype(np.int32)


def positions(known: NDArray[Any], wanted: NDArray[Any]) -> NDArray[np.int32]:
    """Looks up positions once; see `Positions`."""
    return Positions(known)(wanted)
