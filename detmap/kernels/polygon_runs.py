"""Polygons as run-length masks, with the pixels of pycocotools."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.kernels import kernel

FINE = 5  # outlines are drawn on a grid that is so many times finer
MIDDLE = 2  # the fine column in the middle of a pixel: those after it belong to the next


class Outlines(NamedTuple):
    """The polygons of n masks; each mask has one or more, each of them three corners or more."""

    size: NDArray[np.int64]  # (n, 2) height and width
    ring_off: NDArray[np.int64]  # (n + 1,) where the polygons of each mask begin
    off: NDArray[np.int64]  # (p + 1,) where the corners of each polygon begin
    points: NDArray[np.float64]  # (c, 2) x, y


class Scratch(NamedTuple):
    """Space for the polygon, and the mask, with the most crossings."""

    column: NDArray[np.int64]  # (m,)
    row: NDArray[np.int64]  # (m,)
    begin: NDArray[np.int64]  # (m + 1,)
    sorted: NDArray[np.int64]  # (m,)
    first: NDArray[np.uint32]  # (m,)
    second: NDArray[np.uint32]  # (m,)


@kernel
def draw_polygons(
    outlines: Outlines, scratch: Scratch, off: NDArray[np.int64], counts: NDArray[np.uint32]
) -> None:
    """Run lengths of n masks: the pixels in any of a mask's polygons.

    out: off (n + 1,), counts (off[n],), which has space for all crossings and a run per polygon.

    Source: COCO.annToRLE of pycocotools' coco.py: rleFrPoly and rleMerge of maskApi.c.
    """
    off[0] = 0
    for i in range(outlines.size.shape[0]):
        height, width = outlines.size[i, 0], outlines.size[i, 1]
        at, n = off[i], 0
        for ring in range(outlines.ring_off[i], outlines.ring_off[i + 1]):
            n_crossings = cross_columns(outlines, ring, height, width, scratch.column, scratch.row)
            sort_crossings(n_crossings, height, scratch)
            if ring == outlines.ring_off[i]:
                n = list_runs(scratch.sorted, n_crossings, height * width, counts, at)
            else:
                m = list_runs(scratch.sorted, n_crossings, height * width, scratch.second, 0)
                for k in range(n):
                    scratch.first[k] = counts[at + k]
                n = unite(scratch.first, n, scratch.second, m, counts, at)
        off[i + 1] = at + n


@kernel
def cross_columns(
    outlines: Outlines,
    ring: int,
    height: int,
    width: int,
    column: NDArray[np.int64],
    row: NDArray[np.int64],
) -> int:
    """Where the outline of a polygon passes the middles of columns; how often it does.

    out: column, and the row from which on the column changes sides, `height` below the last.

    Source: rleFrPoly of pycocotools' maskApi.c. It lists all points of the outline on the fine grid
    and takes those where the fine column changes from the middle of a column to the next or back.
    Here only these are computed, by the same operations: a flat side has a point in each fine
    column, a steep one in each fine row, whose first beyond the middle is found by a guess. Fine
    rows are halves of pixels and more below a row if they belong to the next.
    """
    n, end = 0, outlines.off[ring + 1]
    for corner in range(outlines.off[ring], end):
        following = corner + 1 if corner + 1 < end else outlines.off[ring]
        xs = int(FINE * outlines.points[corner, 0] + 0.5)
        ys = int(FINE * outlines.points[corner, 1] + 0.5)
        xe = int(FINE * outlines.points[following, 0] + 0.5)
        ye = int(FINE * outlines.points[following, 1] + 0.5)
        wide, high = abs(xe - xs), abs(ye - ys)
        if (wide >= high and xs > xe) or (wide < high and ys > ye):
            xs, ys, xe, ye = xe, ye, xs, ys
        low, up = min(xs, xe), max(xs, xe)
        c = max(0, (low - MIDDLE + FINE - 1) // FINE)
        last = min(width - 1, (up - 1 - MIDDLE) // FINE)
        if c > last:
            continue
        slope = (ye - ys) / wide if wide >= high else (xe - xs) / high
        while c <= last:
            edge = FINE * c + MIDDLE + 1
            if wide >= high:
                t = edge - xs
                fine = min(int(ys + slope * t + 0.5), int(ys + slope * (t - 1) + 0.5))
            else:
                # Never too large: a step of at least 1e-8 is more than rounding of numbers to 1e8.
                t = max(int((edge - 0.5 - xs) / slope), 1)
                rising = slope > 0.0
                while (xs + slope * t + 0.5 >= edge) != rising:
                    t += 1
                fine = ys + t - 1
            column[n] = c
            row[n] = min(max((fine - MIDDLE + FINE - 1) // FINE, 0), height)
            n += 1
            c += 1
    return n


@kernel
def sort_crossings(n: int, height: int, scratch: Scratch) -> None:
    """Crossings as ascending places, column by column.

    scratch: column, row -> sorted. Source: rleFrPoly of pycocotools' maskApi.c, with another way of
    sorting: an outline is closed, so there are at most as many columns between its first and its
    last as crossings.
    """
    if n == 0:
        return
    column, row, begin, places = scratch.column, scratch.row, scratch.begin, scratch.sorted
    low, up = column[0], column[0]
    for i in range(n):
        low, up = min(low, column[i]), max(up, column[i])
    for c in range(up - low + 2):
        begin[c] = 0
    for i in range(n):
        begin[column[i] - low + 1] += 1
    for c in range(up - low + 1):
        begin[c + 1] += begin[c]
    for i in range(n):
        c = column[i] - low
        places[begin[c]] = column[i] * height + row[i]
        begin[c] += 1
    for i in range(1, n):  # the few of a column, and the end of a column is the next one's begin
        at, place = i, places[i]
        while at > 0 and places[at - 1] > place:
            places[at] = places[at - 1]
            at -= 1
        places[at] = place


@kernel
def list_runs(
    places: NDArray[np.int64], n: int, n_pixels: int, counts: NDArray[np.uint32], at: int
) -> int:
    """Runs between ascending places where a mask changes; how many there are.

    out: counts, from `at` on. Source: rleFrPoly of pycocotools' maskApi.c: no pixels between two
    places make one run of both sides.
    """
    m, before, joined = 0, 0, False
    for j in range(n + 1):
        place = int(places[j]) if j < n else n_pixels
        length, before = place - before, place
        if joined:
            counts[at + m - 1] += np.uint32(length)
            joined = False
        elif j > 0 and length == 0:
            joined = True
        else:
            counts[at + m] = np.uint32(length)
            m += 1
    return m


@kernel
def unite(
    first: NDArray[np.uint32],
    n_first: int,
    second: NDArray[np.uint32],
    n_second: int,
    counts: NDArray[np.uint32],
    at: int,
) -> int:
    """Runs of the pixels in either of two masks of one size; how many there are.

    out: counts, from `at` on. Source: rleMerge of pycocotools' maskApi.c.
    """
    left, right = np.int64(first[0]), np.int64(second[0])
    a, b, m, run = 1, 1, 0, np.int64(0)
    in_a, in_b, inside, more = False, False, False, True
    while more:
        step = min(left, right)
        run += step
        left -= step
        right -= step
        more = False
        if left == 0 and a < n_first:
            left = np.int64(first[a])
            a += 1
            in_a = not in_a
        if left > 0:
            more = True
        if right == 0 and b < n_second:
            right = np.int64(second[b])
            b += 1
            in_b = not in_b
        if right > 0:
            more = True
        was, inside = inside, in_a or in_b
        if inside != was or not more:
            counts[at + m] = run
            m += 1
            run = np.int64(0)
    return m
