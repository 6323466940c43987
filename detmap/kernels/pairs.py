"""Pairs of boxes: detections and objects of a cell with sufficient overlap.

This module has the geometry and no matching rules; the rules (`detmap.kernels.match`) have no
geometry. Pairs are produced in blocks of a fixed buffer, so their number does not affect memory.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.kernels import kernel
from detmap.kernels.cells import Cells, ObjectColumns
from detmap.kernels.grouping import Sorter, rank_by_score, sorter
from detmap.kernels.overlap import edges_of, shared_area

Floats = NDArray[np.float64]
CELL, MEMBER, BROKEN = 0, 1, 2  # places in the cursor of `pair_boxes`
ALL, FIRST, LAST = 0, 1, 2  # `Geometry.listed`
UNDEFINED = -2  # `find_best`: an overlap is 0/0
BLOCK = 256  # objects per step of `find_best`


class Pairs(NamedTuple):
    """Pairs of n detections; those of one detection are consecutive, in any order.

    An object that is an ignored region in some subsets only has two overlaps: IoU, and over the
    detection's own area. `absorbing` marks the second.
    """

    detection: NDArray[np.int32]  # (n,) rows of the verdicts
    off: NDArray[np.int64]  # (n + 1,) where each one's pairs begin
    object: NDArray[np.int32]  # (p,) places in the objects' order
    overlap: Floats  # (p,)
    absorbing: NDArray[np.bool_]  # (p,)


def buffer(n_detections: int, n_pairs: int) -> Pairs:
    """A buffer for pairs."""
    return Pairs(
        np.empty(n_detections, np.int32),
        np.zeros(n_detections + 1, np.int64),
        np.empty(n_pairs, np.int32),
        np.empty(n_pairs),
        np.empty(n_pairs, np.bool_),
    )


class Boxes(NamedTuple):
    """Boxes of detections and objects, by row, in one convention."""

    detections: Floats  # (D, 4)
    objects: Floats  # (G, 4)
    position: NDArray[np.int32]  # (D',) the row of the detections of each row of the verdicts


class Geometry(NamedTuple):
    """Parameters of overlaps: `pixel` of `edges_of`; the constant added to the divisor; the lowest
    threshold; the number of objects from which a cell is sorted; and which pairs of a detection are
    listed (`ALL`, or its best pair: `FIRST` or `LAST` object of equal overlaps).
    """

    pixel: float
    epsilon: float
    lowest: float
    crowded: int
    listed: int


class Edges(NamedTuple):
    """Scratch arrays of `pair_boxes`, for the n objects of a cell; those of a crowded one by
    descending left edge.
    """

    object: NDArray[np.int32]  # (n,) places among the cell's objects
    edges: Floats  # (n, 5)
    columns: Floats  # (5, n) the same
    overlap: Floats  # (BLOCK,) of `find_best`
    needed: Floats  # (n,) the lowest overlap that is a match
    absorb: NDArray[np.uint64]  # (n,)
    right_from: Floats  # (n,) the rightmost edge from there on
    left: Floats  # (n,) left edges by object, and the same as bit patterns
    left_bits: NDArray[np.uint64]
    sorter: Sorter


def edges(n_objects: int) -> Edges:
    """Scratch arrays for cells of up to so many objects."""
    left = np.empty(n_objects)
    return Edges(
        object=np.empty(n_objects, np.int32),
        edges=np.empty((n_objects, 5)),
        columns=np.empty((5, n_objects)),
        overlap=np.empty(BLOCK),
        needed=np.empty(n_objects),
        absorb=np.empty(n_objects, np.uint64),
        right_from=np.empty(n_objects),
        left=left,
        left_bits=left.view(np.uint64),
        sorter=sorter(n_objects),
    )


@kernel
def pair_boxes(
    n_cells: int,
    cells: Cells,
    boxes: Boxes,
    objects: ObjectColumns,
    geometry: Geometry,
    cursor: NDArray[np.int64],
    pairs: Pairs,
    scratch: Edges,
) -> int:
    """Produce pairs of the cells from the cursor on, until all are done or the buffer is full.
    Returns the number of detections.

    cursor (3,): the next cell, n_cells at the end; its next member, 0 if the cell is not prepared;
    and, if an overlap is 0/0, that member's row, else -1. The buffer has space for two pairs per
    object of the largest cell. A cell with ignored regions or thresholds of its own lists all
    pairs.

    Source: bbIou of pycocotools' maskApi.c: over the union, or over the detection's own area if the
    object is a crowd. An intersection above 0 with a union of 0 gives infinity.
    """
    n, at = 0, np.int64(0)
    pairs.off[0] = 0
    cell, member = cursor[CELL], cursor[MEMBER]
    pixel, epsilon = geometry.pixel, geometry.epsilon
    everything = geometry.lowest <= 0.0  # an overlap of 0 is a match
    while cell < n_cells:
        begin, end = cells.bounds[cell, 0], cells.bounds[cell, 1]
        first, last = cells.bounds[cell, 2], cells.bounds[cell, 3]
        n_objects = last - first
        sort = n_objects >= geometry.crowded
        if member == 0:
            lay_edges(first, n_objects, sort, boxes.objects, objects, geometry, scratch)
        single = geometry.listed != ALL and not everything
        if single:
            for g in range(first, last):
                single &= objects.absorb[g] == np.uint64(0)
                single &= objects.enough[g] >= geometry.lowest
        most = 1 if single else 2 * n_objects  # pairs of a detection
        while begin + member < end:
            if at + most > pairs.object.size or n == pairs.detection.size:
                cursor[CELL], cursor[MEMBER] = cell, member
                return n
            row = cells.members[begin + member]
            box = edges_of(boxes.detections, boxes.position[row], pixel)
            before = at
            j = 0
            if sort:  # objects that begin left of the box's right edge
                j = skip_right(n_objects, box[2], pixel, scratch.edges)
            if single:
                best = find_best(box, j, n_objects, sort, geometry, scratch)
                if best == UNDEFINED:
                    cursor[BROKEN] = row
                    return 0
                if best >= 0:
                    pairs.object[at] = first + scratch.object[best]
                    pairs.overlap[at], pairs.absorbing[at] = scratch.overlap[0], False
                    at += 1
                j = n_objects
            while j < n_objects:
                if sort and scratch.right_from[j] - box[0] + pixel <= 0:
                    break  # this one and all after it end left of the box
                shared = shared_area(box, scratch.edges, j, pixel)
                if shared >= 0.0 or everything:
                    absorb = scratch.absorb[j]
                    # Over the union where it does not absorb in every subset, over the detection's
                    # own area where it does in some.
                    for absorbing in range(2):
                        if absorbing == 0:
                            divisor = box[4] + scratch.edges[j, 4] - shared + epsilon
                            if absorb == ~np.uint64(0):
                                continue
                        else:
                            divisor = box[4] + epsilon
                            if absorb == np.uint64(0):
                                continue
                        overlap = shared / divisor if shared >= 0.0 else 0.0
                        if overlap < scratch.needed[j]:
                            continue
                        if np.isnan(overlap):
                            cursor[BROKEN] = row
                            return 0
                        pairs.object[at] = first + scratch.object[j]
                        pairs.overlap[at], pairs.absorbing[at] = overlap, absorbing == 1
                        at += 1
                j += 1
            if at > before:
                pairs.detection[n] = row
                n += 1
                pairs.off[n] = at
            member += 1
        cell, member = cell + 1, 0
    cursor[CELL] = cell
    return n


@kernel
def lay_edges(
    first: int,
    n_objects: int,
    sort: bool,
    boxes: Floats,
    objects: ObjectColumns,
    geometry: Geometry,
    scratch: Edges,
) -> None:
    """Prepare the objects of a cell; many objects are sorted by left edge, so that a detection is
    compared only with its neighbors.

    Source: the edges are those of bbIou (maskApi.c) and VOCevaldet.m, see `edges_of`.
    """
    for g in range(n_objects):
        scratch.object[g] = g
    if sort:
        for g in range(n_objects):
            scratch.left[g] = edges_of(boxes, objects.row[first + g], geometry.pixel)[0]
        rank_by_score(scratch.left_bits, scratch.object[:n_objects], scratch.sorter)
    rightmost = -np.inf
    for j in range(n_objects - 1, -1, -1):
        g = first + scratch.object[j]
        box = edges_of(boxes, objects.row[g], geometry.pixel)
        scratch.edges[j, 0], scratch.edges[j, 1] = box[0], box[1]
        scratch.edges[j, 2], scratch.edges[j, 3], scratch.edges[j, 4] = box[2], box[3], box[4]
        for i in range(5):
            scratch.columns[i, j] = scratch.edges[j, i]
        scratch.needed[j] = min(geometry.lowest, objects.enough[g])
        scratch.absorb[j] = objects.absorb[g]
        rightmost = max(rightmost, box[2])
        scratch.right_from[j] = rightmost


@kernel
def skip_right(n_objects: int, right: float, pixel: float, edges: Floats) -> int:
    """The first of (n, 5) edges, by descending left edge, that starts left of the pixel after
    `right`, in the arithmetic of `shared_area`: beyond 2**53, adding 1 to an edge changes nothing.

    Source: none; bisection over the edges that `lay_edges` sorted.
    """
    first, last = 0, n_objects
    while first < last:
        middle = (first + last) // 2
        if right - edges[middle, 0] + pixel > 0:
            last = middle
        else:
            first = middle + 1
    return first


@kernel
def find_best(
    box: tuple[float, float, float, float, float],
    start: int,
    n_objects: int,
    sort: bool,
    geometry: Geometry,
    scratch: Edges,
) -> int:
    """The place of the object with the highest overlap, from `start` on; its overlap is the first
    of `scratch.overlap`. -1 if no overlap is a match, `UNDEFINED` if one is 0/0.

    Source: VOCevaldet.m of the VOC devkit, ``if ov>ovmax``, whose comparison keeps the first of
    equal overlaps.
    """
    best, highest = -1, geometry.lowest
    begin = start
    while begin < n_objects:
        if sort and scratch.right_from[begin] - box[0] + geometry.pixel <= 0:
            break  # this object and all after it end left of the box
        size = min(BLOCK, n_objects - begin)
        end, pixel = begin + size, geometry.pixel
        compute_overlaps(box, scratch.columns, begin, end, pixel, geometry.epsilon, scratch.overlap)
        for k in range(size):
            overlap = scratch.overlap[k]
            if overlap < highest:
                continue
            if np.isnan(overlap):
                return UNDEFINED
            j = begin + k
            if best >= 0 and overlap == highest:
                later = scratch.object[j] > scratch.object[best]
                if later != (geometry.listed == LAST):
                    continue
            best, highest = j, overlap
        begin += size
    scratch.overlap[0] = highest
    return best


@kernel
def compute_overlaps(
    box: tuple[float, float, float, float, float],
    columns: Floats,
    begin: int,
    end: int,
    pixel: float,
    epsilon: float,
    out: Floats,
) -> None:
    """Compute the overlaps of a box, as from `edges_of`, and some of (5, n) edges; -1.0 for none.

    out: space for the overlaps. Source: bbIou of pycocotools' maskApi.c, and VOCevaldet.m, with the
    operations of `shared_area`. The loop does not branch, so that the compiler can vectorize.
    """
    left, top, right, bottom, area = box
    lefts, tops = columns[0, begin:end], columns[1, begin:end]
    rights, bottoms = columns[2, begin:end], columns[3, begin:end]
    areas = columns[4, begin:end]
    for k in range(lefts.size):
        x1 = lefts[k] if lefts[k] > left else left
        x2 = rights[k] if rights[k] < right else right
        y1 = tops[k] if tops[k] > top else top
        y2 = bottoms[k] if bottoms[k] < bottom else bottom
        width, height = x2 - x1 + pixel, y2 - y1 + pixel
        shared = width * height
        overlap = shared / (area + areas[k] - shared + epsilon)
        out[k] = overlap if (width > 0) & (height > 0) else -1.0


@kernel
def list_near(
    rows: NDArray[np.int32],
    first: NDArray[np.int64],
    last: NDArray[np.int64],
    detections: Floats,
    objects: Floats,
    apart: float,
    of_detection: NDArray[np.int64],
    of_object: NDArray[np.int64],
) -> int:
    """List the pairs of detections and objects of their cells whose boxes are not apart. Returns
    their number.

    rows, first, last (n,): each detection's row, and the range of its cell's objects. detections
    (D, 4), objects (G, 4): left, top, right, bottom. apart: boxes are apart if they share no more
    than this in x or in y; NaN keeps every pair. of_detection, of_object: the pairs, as places in
    `rows` and among the objects; with space for every pair.

    Source: none; the overlaps are those of `detmap.core.overlaps.box_edges`, in the protocol's
    type.
    """
    n = 0
    for i in range(rows.size):
        row = rows[i]
        x1, y1 = detections[row, 0], detections[row, 1]
        x2, y2 = detections[row, 2], detections[row, 3]
        for g in range(first[i], last[i]):
            if min(x2, objects[g, 2]) - max(x1, objects[g, 0]) <= apart:
                continue
            if min(y2, objects[g, 3]) - max(y1, objects[g, 1]) <= apart:
                continue
            of_detection[n], of_object[n] = i, g
            n += 1
    return n


@kernel
def list_likely(
    first: NDArray[np.int64],
    last: NDArray[np.int64],
    detections: Floats,
    objects: Floats,
    rows: NDArray[np.int32],
    regional: NDArray[np.bool_],
    change: float,
    below: float,
    off: NDArray[np.int64],
    of_object: NDArray[np.int32],
) -> int:
    """List the pairs of detections and objects of their cells whose IoU can reach `below` if sides
    change. Returns their number; -1 if there is no space.

    first, last (D,): the range of `rows` with each detection's cell. detections (D, 4), objects
    (G, 4): left, top, width, height. regional (G,): objects for which the overlap over the
    detection's area is enough. change: pixels by which a shared side can grow and a side shrink.
    out: off (D + 1,), where each detection's pairs begin; of_object, from `rows`.

    Source: none; an upper bound of shared / (detection + object - shared).
    """
    n = 0
    for d in range(first.size):
        off[d] = n
        x, y = detections[d, 0], detections[d, 1]
        width, height = detections[d, 2], detections[d, 3]
        own = max(width - change, 0.0) * max(height - change, 0.0)
        for i in range(first[d], last[d]):
            g = rows[i]
            left, top = objects[g, 0], objects[g, 1]
            across = min(x + width, left + objects[g, 2]) - max(x, left) + change
            down = min(y + height, top + objects[g, 3]) - max(y, top) + change
            if across <= 0 or down <= 0:
                continue
            shared, others = across * down, 0.0
            if not regional[g]:
                others = max(objects[g, 2] - change, 0.0) * max(objects[g, 3] - change, 0.0)
                others -= shared
            if shared < below * (own + others):
                continue
            if n == of_object.size:
                return -1
            of_object[n] = g
            n += 1
    off[first.size] = n
    return n
