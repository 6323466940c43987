"""Converts polygons to run lengths with pycocotools."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.errors import DataError, require

LONGEST_OUTLINE = 1e7
"""Pixels around a polygon: its outline is rendered point by point."""

FIX = (
    "a mask is a list of polygons [x1, y1, x2, y2, ...], or run lengths with their size and counts"
)


def routines() -> ModuleType:
    """Imports pycocotools.mask, or raises `DetmapError`."""
    module: ModuleType = require("pycocotools.mask", "parity")
    return module


def rasterised(
    given: Sequence[list[Any]],
    size: NDArray[np.int64],
    rows: Sequence[int],
    place: Callable[[int], str],
) -> list[bytes]:
    """Converts lists of polygons to compressed run lengths. Source: COCO.annToRLE of pycocotools'
    coco.py.

    Polygons on images of one size are rendered in one call.
    """
    if not given:
        return []
    _check_polygons(given, rows, place)
    mask = routines()
    like: dict[tuple[int, int, bool], list[int]] = {}
    for k, (height, width) in enumerate(size[list(rows)].tolist()):
        like.setdefault((height, width, len(given[k][0]) == 4), []).append(k)
    drawn = [b""] * len(given)
    for (height, width, _), some in like.items():
        rings = [ring for k in some for ring in given[k]]
        pieces = iter(mask.frPyObjects(rings, height, width))
        for k in some:
            mine = [next(pieces) for _ in given[k]]
            drawn[k] = (mine[0] if len(mine) == 1 else mask.merge(mine))["counts"]
    return drawn


def _check_polygons(
    given: Sequence[list[Any]], rows: Sequence[int], place: Callable[[int], str]
) -> None:
    """Raises `DataError` for the first invalid list of polygons."""
    if _legal(given):
        return
    for i, each in zip(rows, given, strict=True):
        wrong = _wrong_polygons(each)
        if wrong:
            raise DataError(place(i), wrong, FIX)


def _legal(given: Sequence[list[Any]]) -> bool:
    """Fast check that no polygon is wrong; see `_wrong_polygons`."""
    rings = list(chain.from_iterable(given))
    if not all(given) or set(map(type, rings)) != {list}:
        return False
    length = np.fromiter(map(len, rings), np.int64, len(rings))
    if (length < 6).any() or (length % 2).any():
        return False
    if not set(map(type, chain.from_iterable(rings))) <= {int, float}:
        return False
    try:
        points = np.fromiter(chain.from_iterable(rings), np.float64, length.sum()).reshape(-1, 2)
    except OverflowError:
        return False
    if not (np.abs(points) <= LONGEST_OUTLINE).all():
        return False
    end = np.cumsum(length // 2)
    following = np.arange(1, len(points) + 1)
    following[end - 1] = end - length // 2
    sides = np.abs(points - points[following]).max(axis=1)
    first = (end - length // 2)[np.cumsum([0, *map(len, given[:-1])])]  # corner of each list
    return bool((np.add.reduceat(sides, first) <= LONGEST_OUTLINE).all())


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
