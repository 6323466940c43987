"""Counts the pixels of boxes that regions of an image cover, in strips between their edges.

No pixel is looked at: neither time nor memory depends on the size of the image.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from detmap.errors import CrowdedError

MOST = 2.0**31  # pixels of a side: a larger one has no other result
MOST_PARTS = 1_000_000_000
"""Parts of an image between the edges of its regions: about 5 s of processor time."""

Places = NDArray[np.int64]
Floats = NDArray[np.float64]


def half_covered(
    regions: Floats, boxes: Floats, width: int, height: int, where: str
) -> NDArray[np.bool_]:
    """Returns (n,) whether half of a box's pixels or more are in regions.

    Pixels count from 1; a region includes its end, a box begins after its first pixel.

    Source: VisDrone2018-DET-toolkit dropObjectsInIgr.m.

    Parameters
    ----------
    regions, boxes : (r, 4) and (n, 4) x, y, width, height
    width, height : of the image
    where : the place of an error

    Raises
    ------
    CrowdedError : too many regions
    """
    size = np.array([width, height])
    first = np.clip(regions, 1, MOST).astype(np.int64)
    begin, end = first[:, :2] - 1, np.minimum(size, first[:, :2] + first[:, 2:])
    rounded = np.clip(np.floor(boxes + 0.5), 1, MOST).astype(np.int64)
    corner, sides = np.minimum(size, rounded[:, :2]), rounded[:, 2:]
    (left, top), (right, bottom) = corner.T, np.minimum(size, corner + sides).T
    x, y = np.concatenate([left, right, right, left]), np.concatenate([top, bottom, top, bottom])
    total = covered_before(begin, end, x, y, where).reshape(4, -1)
    inside = total[0] + total[1] - total[2] - total[3]
    return np.asarray(inside / sides.prod(axis=1) >= 0.5)


def covered_before(begin: Places, end: Places, x: Places, y: Places, where: str) -> Floats:
    """Returns (n,) the number of covered pixels in the first y rows and the first x columns.

    Parameters
    ----------
    begin, end : (r, 2) the first column and row of each region, and those after its last, from 0
    x, y : (n,)

    Raises
    ------
    CrowdedError : too many regions
    """
    some = (begin < end).all(axis=1)
    begin, end = begin[some], end[some]
    columns, rows = (np.unique(np.stack([begin, end])[..., axis]) for axis in range(2))
    if len(columns) * len(rows) > MOST_PARTS:
        n_parts = len(columns) * len(rows)
        what = f"{len(begin):,} ignored regions divide it into {n_parts:,} parts"
        fix = f"join regions: the edges of all may make {MOST_PARTS:,} parts"
        raise CrowdedError(where, what, fix)
    found = np.zeros(len(x))
    order = np.argsort(y, kind="stable")
    bounds = np.searchsorted(y[order], np.append(rows, np.inf))
    above = np.zeros(len(columns))  # covered pixels left of each edge, in all rows above the strip
    for k, row in enumerate(_strips(begin, end, columns, rows)):
        mine = order[bounds[k] : bounds[k + 1]]
        found[mine] = np.interp(x[mine], columns, above)
        found[mine] += (y[mine] - rows[k]) * np.interp(x[mine], columns, row)
        if k + 1 < len(rows):
            above += (rows[k + 1] - rows[k]) * row
    return found


def _strips(begin: Places, end: Places, columns: Places, rows: Places) -> Iterator[Floats]:
    """Yields for the strip below each of the `rows` how many pixels of one row are covered, left of
    each of the `columns`.
    """
    left, right = np.searchsorted(columns, begin[:, 0]), np.searchsorted(columns, end[:, 0])
    starts, stops = (np.argsort(each[:, 1], kind="stable") for each in (begin, end))
    start_off, stop_off = (
        np.searchsorted(each[order, 1], rows, "right").tolist()
        for each, order in ((begin, starts), (end, stops))
    )
    width = np.diff(columns).astype(np.float64)
    n_regions, covered = np.zeros(len(width), dtype=np.int32), np.zeros(len(columns))
    n_started = n_stopped = 0
    for to_start, to_stop in zip(start_off, stop_off, strict=True):
        for r in starts[n_started:to_start].tolist():
            n_regions[left[r] : right[r]] += 1
        for r in stops[n_stopped:to_stop].tolist():
            n_regions[left[r] : right[r]] -= 1
        n_started, n_stopped = to_start, to_stop
        np.cumsum(np.where(n_regions > 0, width, 0.0), out=covered[1:])
        yield covered
