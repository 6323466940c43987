"""Converts polygons to run lengths, with the pixels of pycocotools."""

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.core.overlaps.ragged_runs import Ragged, chained, map_slices, offsets, packed
from detmap.errors import DataError

LONGEST_OUTLINE = 1e7
"""Pixels around the polygons of a mask."""
LONGEST_TOGETHER, MEAN_OUTLINE = 20_000_000, 10_000
"""Columns that all outlines pass, and those of each mask beyond: a run takes up to ten bytes."""
AT_ONCE = 1024
"""Masks that a thread draws at a time."""

FIX = (
    "a mask is a list of polygons [x1, y1, x2, y2, ...], or run lengths with their size and counts"
)


class Corners(NamedTuple):
    """The polygons of n masks.

    Parameters
    ----------
    points : (c, 2) float64, x and y of the corners
    corner_off : (p + 1,) int64, where the corners of each polygon begin
    list_off : (n + 1,) int64, where the polygons of each mask begin
    """

    points: NDArray[np.float64]
    corner_off: NDArray[np.int64]
    list_off: NDArray[np.int64]

    def sides(self) -> NDArray[np.float64]:
        """Returns (c, 2) how far the next corner of each corner is, in x and in y."""
        following = np.empty_like(self.points)
        following[:-1] = self.points[1:]
        following[self.corner_off[1:] - 1] = self.points[self.corner_off[:-1]]
        return np.abs(self.points - following)

    def are_legal(self) -> bool:
        """Checks all masks; see `_wrong_polygons`."""
        if not np.diff(self.list_off).all() or (np.diff(self.corner_off) < 3).any():
            return False
        if not np.abs(self.points).max(initial=0) <= LONGEST_OUTLINE:
            return False
        first = self.corner_off[self.list_off[:-1]]  # corner of each mask
        length = np.add.reduceat(np.maximum(*self.sides().T), first)
        return bool((length <= LONGEST_OUTLINE).all())


def corners(
    given: Sequence[list[Any]], rows: Sequence[int], place: Callable[[int], str]
) -> Corners:
    """Returns the polygons of n lists of polygons; raises `DataError` for the first wrong list.

    Parameters
    ----------
    rows : of the lists; `place` names a row
    """
    found = _corners(given)
    if found is None or not found.are_legal():
        for i, each in zip(rows, given, strict=True):
            if wrong := _wrong_polygons(each):
                raise DataError(place(i), wrong, FIX)
    assert found is not None
    return found


def _corners(given: Sequence[list[Any]]) -> Corners | None:
    """Returns polygons, None if they are no lists of an even number of numbers."""
    rings = list(chain.from_iterable(given))
    if not all(given) or not set(map(type, rings)) <= {list}:
        return None
    n_numbers = np.fromiter(map(len, rings), np.int64, len(rings))
    if (n_numbers % 2).any() or not n_numbers.all():
        return None
    if not set(map(type, chain.from_iterable(rings))) <= {int, float}:
        return None
    try:
        points = np.fromiter(chain.from_iterable(rings), np.float64, n_numbers.sum())
    except OverflowError:
        return None
    return Corners(points.reshape(-1, 2), offsets(rings) // 2, offsets(given))


def draw(
    polygons: Corners, size: NDArray[np.int64], rows: Sequence[int], place: Callable[[int], str]
) -> Ragged:
    """Converts legal polygons to run lengths. Source: COCO.annToRLE of pycocotools' coco.py.

    Parameters
    ----------
    size : (n, 2) height and width; rows : (n,) of the masks, which `place` names

    Raises `DataError` if all outlines together are too long.
    """
    from detmap.kernels.polygon_runs import Outlines, Scratch, draw_polygons
    from detmap.kernels.runs import WIDEST

    n = len(size)
    if not n:
        return np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.uint16)
    room = _room(polygons, size)
    if room.sum() > LONGEST_TOGETHER + MEAN_OUTLINE * n:
        what = (
            f"the outlines of {n:,} masks pass {room.sum():,} columns of pixels, most of them here"
        )
        raise DataError(place(rows[int(np.argmax(room))]), what, "use smaller images")
    outlines = Outlines(np.ascontiguousarray(size), polygons.list_off, *polygons[1::-1])

    def draw_some(some: slice) -> Ragged:
        ends = slice(some.start, some.stop + 1)
        part = outlines._replace(size=outlines.size[some], ring_off=outlines.ring_off[ends])
        most = int(room[some].max())
        places = np.empty((4, most), dtype=np.int64)
        scratch = Scratch(*places, *np.empty((2, most), dtype=np.uint32))
        off = np.empty(some.stop - some.start + 1, dtype=np.int64)
        counts = np.empty(int(room[some].sum()), dtype=np.uint32)
        draw_polygons(part, scratch, off, counts)
        return packed((off, counts[: off[-1]]))

    return chained(map_slices(draw_some, n, AT_ONCE), n, WIDEST * int(room.sum()))


def _room(polygons: Corners, size: NDArray[np.int64]) -> NDArray[np.int64]:
    """Returns (n,) the number of runs of each mask, at most: one more per polygon than its outline
    passes middles of columns.
    """
    width = np.repeat(size[:, 1], np.diff(polygons.list_off))
    width = np.repeat(width, np.diff(polygons.corner_off))
    passed = np.minimum(np.ceil(polygons.sides()[:, 0]) + 1, width)
    room = np.add.reduceat(passed, polygons.corner_off[:-1]).astype(np.int64) + 1
    return np.add.reduceat(room, polygons.list_off[:-1])


def _wrong_polygons(rings: list[Any]) -> str:
    """Returns what is wrong with a list of polygons, "" if it is valid.

    Four numbers are invalid: frPyObjects reads them as a box and then rejects the list.
    """
    if not rings or not all(isinstance(ring, list) for ring in rings):
        return "no polygon" if not rings else "a polygon that is not a list"
    length = 0.0
    for ring in rings:
        if len(ring) < 6 or len(ring) % 2:
            return f"a polygon of {len(ring)} numbers"
        if not all(type(x) in (int, float) for x in ring):
            return "a polygon with values that are not numbers"
        try:
            points = np.array(ring, dtype=np.float64)
        except OverflowError:
            return "a number that is too large"
        if not np.isfinite(points).all() or (np.abs(points) > LONGEST_OUTLINE).any():
            return "a number that is not finite or too large"
        sides = np.abs(points.reshape(-1, 2) - np.roll(points.reshape(-1, 2), 1, axis=0))
        length += float(sides.max(axis=1).sum())
    return "" if length <= LONGEST_OUTLINE else "an outline that is too long"
