"""Shared areas of quadrilaterals, many pairs at a time.

The shared area of two closed polygons is the integral of the product of their winding numbers,
the area of their intersection for simple polygons that run the same way round. Each edge bounds the
area below it, so the integral is a sum over pairs of edges of the integral of the lower edge.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.core.base.pair_limits import WAY_OUT
from detmap.core.overlaps.rotated_boxes import polygon_areas
from detmap.errors import CrowdedError

Floats = NDArray[np.float64]

MOST_POLYGONS, POLYGONS_PER_ROW = 5_000_000, 200
"""Pairs of polygons whose shared area is computed: about 10 s."""
AT_ONCE = 1 << 11
"""Pairs that are computed at a time: few enough for a cache."""


class Polygons:
    """Quadrilaterals that run the same way round.

    Parameters
    ----------
    corners : (n, 4, 2)
    area : (n,)
    most : (n,) the largest possible shared area; parts of crossed polygons count with both signs
    low, high : (n, 2) the ends in x and y
    """

    def __init__(self, corners: Floats) -> None:
        signed = polygon_areas(corners)
        self.corners = np.where((signed < 0)[:, None, None], corners[:, ::-1], corners)
        self.area = np.abs(signed)
        self.most = np.where(crossed(corners), np.inf, self.area)
        self.low, self.high = corners.min(axis=1), corners.max(axis=1)


def overlaps(
    found: Polygons,
    truth: Polygons,
    rows: tuple[NDArray[Any], NDArray[Any]],
    absorbing: NDArray[np.bool_],
    needed: Floats,
    count: Callable[[int], None] = lambda n: None,
) -> Floats:
    """Returns (n,) shared areas over the union, or over the own area of `found`, from 0 to 1.

    Without an area the overlap is 0.

    Parameters
    ----------
    rows : (n,) of `found` and of `truth`
    absorbing : (n,) which overlaps are over the own area
    needed : (n,) overlaps below it may be 0
    count : takes the number of pairs whose shared area takes time; may raise an error
    """
    d, g = rows
    own, area = found.area[d], truth.area[g]
    sides = np.minimum(found.high[d], truth.high[g]) - np.maximum(found.low[d], truth.low[g])
    most = np.maximum(sides, 0).prod(axis=1)
    most = np.minimum(most, np.minimum(found.most[d], truth.most[g]))
    # No pair shares more than this; with room for rounding.
    near = most * (1 + 1e-9) >= needed * np.where(absorbing, own, own + area - most)
    near = np.flatnonzero(near & (area > 0) & (own > 0))
    count(len(near))
    d, g, own, area = d[near], g[near], own[near], area[near]
    one, other = found.corners[d], truth.corners[g]
    shared = np.maximum(shared_areas(one, other), 0)
    shared = np.where((one == other).all(axis=(1, 2)), own, shared)
    whole = np.where(absorbing[near], own, own + area - shared)
    overlap = np.zeros(len(rows[0]))
    overlap[near] = np.divide(shared, whole, out=np.zeros_like(whole), where=whole > 0)
    return np.minimum(overlap, 1)


def crossed(corners: Floats) -> NDArray[np.bool_]:
    """Returns (n,) bool, quadrilaterals with two edges that cross."""
    found = np.zeros(len(corners), dtype=bool)
    for i in (0, 1):
        a, b, c, d = (corners[:, (i + k) % 4] for k in range(4))
        found |= (_turn(a, b, c) * _turn(a, b, d) < 0) & (_turn(c, d, a) * _turn(c, d, b) < 0)
    return found


def _turn(a: Floats, b: Floats, c: Floats) -> Floats:
    """(n,) the sign of the turn from a over b to c."""
    one, other = b - a, c - a
    return np.asarray(np.sign(one[:, 0] * other[:, 1] - one[:, 1] * other[:, 0]))


def shared_areas(a: Floats, b: Floats) -> Floats:
    """Returns (n,) integrals of the product of winding numbers of (n, 4, 2) and (n, 4, 2) corners.

    Polygons that run the other way round give a negative area.
    """
    total = np.empty(len(a))
    for begin in range(0, len(a), AT_ONCE):
        some = slice(begin, begin + AT_ONCE)
        total[some] = _shared(a[some], b[some])
    return total


def _shared(a: Floats, b: Floats) -> Floats:
    low = np.maximum(a.min(axis=1), b.min(axis=1))
    middle = (low + np.minimum(a.max(axis=1), b.max(axis=1)))[:, None] / 2
    one = [each[:, None] for each in _edges(a - middle)]
    other = [each[None, :] for each in _edges(b - middle)]
    begin, end = np.maximum(one[0], other[0]), np.minimum(one[1], other[1])
    width = np.maximum(end - begin, 0.0)
    begin, end = np.minimum(begin, end), np.maximum(begin, end)
    left, right = _height(one, begin), _height(one, end)
    left_b, right_b = _height(other, begin), _height(other, end)
    lower = (left_b + right_b) / 2 + _below(left - left_b, right - right_b)
    return np.asarray((one[4] * other[4] * width * lower).sum(axis=(0, 1)))


def _edges(corners: Floats) -> tuple[Floats, ...]:
    """(4, n) each: left and right end of the edges, height and slope at the left end, and 1 for
    edges to the right, -1 to the left, 0 for vertical ones.
    """
    points = corners.transpose(1, 2, 0)
    to = np.roll(points, -1, axis=0)
    step = to - points
    back = step[:, 0] < 0
    left = np.where(back[:, None], to, points)
    slope = np.divide(step[:, 1], step[:, 0], out=np.zeros_like(back, float), where=step[:, 0] != 0)
    return left[:, 0], left[:, 0] + np.abs(step[:, 0]), left[:, 1], slope, np.sign(step[:, 0])


def _height(edges: Any, x: Floats) -> Floats:
    return np.asarray(edges[2] + (x - edges[0]) * edges[3])


def _below(left: Floats, right: Floats) -> Floats:
    """The integral over a unit of what is below 0 of a line from `left` to `right`."""
    low, high = np.minimum(left, right), np.maximum(left, right)
    span = np.where(high > low, high - low, 1.0)
    part = np.where(high <= 0, (low + high) / 2, -low * low / (2 * span))
    return np.where(low < 0, part, 0.0)


def limit_polygons(where: str, n_pairs: int, n_rows: int) -> None:
    """Raises `CrowdedError` if computing what pairs of polygons share takes too long.

    Parameters
    ----------
    where : place of the error
    n_pairs : pairs so far
    n_rows : polygons
    """
    most = max(MOST_POLYGONS, POLYGONS_PER_ROW * n_rows)
    if n_pairs > most:
        what = f"the polygons are too crowded: more than {most:,} pairs of them may overlap"
        raise CrowdedError(where, what, WAY_OUT)
