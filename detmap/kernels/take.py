"""Who took what: the rule of `best_free` once more, with its outcome written out instead of
packed into verdicts.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.kernels import kernel
from detmap.kernels.overlap import edges_of


class Objects(NamedTuple):
    """Ground truth: rows grouped by class, then by image, and the columns that they point into;
    counted (G, A) bool.
    """

    rows: NDArray[np.int32]
    off: NDArray[np.int64]
    image: NDArray[np.int32]
    boxes: NDArray[np.float64]
    absorb: NDArray[np.bool_]
    counted: NDArray[np.bool_]


class Takers(NamedTuple):
    """Detections: rows by class, then by image, best first; off (K + 1,); the columns that the rows
    point into.

    holds (D,) bool: whether an object that the detection takes is taken for the others.
    """

    rows: NDArray[np.int32]
    off: NDArray[np.int64]
    image: NDArray[np.int32]
    boxes: NDArray[np.float64]
    holds: NDArray[np.bool_]


class Counter(NamedTuple):
    """Room for the n objects of a class."""

    edges: NDArray[np.float64]  # (n, 5)
    overlaps: NDArray[np.float64]  # (n,) of one detection
    gone: NDArray[np.bool_]  # (n, A, T)


def counter(n_objects: int, n_areas: int, n_thresholds: int) -> Counter:
    """Room for a class of up to so many objects."""
    return Counter(
        np.empty((n_objects, 5)),
        np.empty(n_objects),
        np.empty((n_objects, n_areas, n_thresholds), np.bool_),
    )


@kernel
def overlap(
    left: Any,
    top: Any,
    right: Any,
    bottom: Any,
    area: Any,
    edges: Any,
    g: Any,
    pixel: Any,
    absorb: Any,
) -> Any:
    """Intersection over union of a detection and the g-th object; over the detection's own area
    where the object absorbs.

    left to area: of the detection; edges (n, 5) of the objects; pixel as in `edges_of`. The
    order of operations is that of bbIou (maskApi.c) and of VOCevaldet.m, which agree.
    """
    width = min(right, edges[g, 2]) - max(left, edges[g, 0]) + pixel
    if width <= 0:
        return 0.0
    height = min(bottom, edges[g, 3]) - max(top, edges[g, 1]) + pixel
    if height <= 0:
        return 0.0
    shared = width * height
    if absorb:
        return shared / area
    return shared / (area + edges[g, 4] - shared)


@kernel
def take_objects(k: int, takers: Any, goods: Any, thresholds: Any, room: Any, taken: Any) -> None:
    """The object that each detection of a class takes in each area range and at each threshold.

    Source: COCOeval.evaluateImg, loop by loop: of the objects that are left the one with the
    largest overlap, of equal overlaps the later; one that is not counted only where no other
    will do; one that absorbs is always left. Thresholds (T,) may stand in any order and may be 0
    or less. goods: `Objects`. out: taken (n, A, T) int32 for the
    class's n detections in their order here: a row of the objects' columns, or -1.
    """
    n_areas, n_thresholds = taken.shape[1], taken.shape[2]
    begin, n_objects = goods.off[k], goods.off[k + 1] - goods.off[k]
    first, last, image = 0, 0, -1
    for i in range(takers.off[k], takers.off[k + 1]):
        row = takers.rows[i]
        if takers.image[row] != image:
            image = takers.image[row]
            first = last
            while first < n_objects and goods.image[goods.rows[begin + first]] < image:
                first += 1
            last = first
            while last < n_objects and goods.image[goods.rows[begin + last]] == image:
                left, top, right, bottom, area = edges_of(
                    goods.boxes, goods.rows[begin + last], 0.0
                )
                room.edges[last, 0], room.edges[last, 1], room.edges[last, 2] = left, top, right
                room.edges[last, 3], room.edges[last, 4] = bottom, area
                room.gone[last] = False
                last += 1
        left, top, right, bottom, area = edges_of(takers.boxes, row, 0.0)
        for g in range(first, last):
            absorb = goods.absorb[goods.rows[begin + g]]
            room.overlaps[g] = overlap(left, top, right, bottom, area, room.edges, g, 0.0, absorb)
        for a in range(n_areas):
            for t in range(n_thresholds):
                best, who = thresholds[t], -1
                for counted in range(1, -1, -1):
                    for g in range(first, last):
                        target = goods.rows[begin + g]
                        if goods.counted[target, a] != (counted == 1) or (
                            room.gone[g, a, t] and not goods.absorb[target]
                        ):
                            continue
                        if room.overlaps[g] >= best:
                            best, who = room.overlaps[g], g
                    if who >= 0:
                        break
                taken[i - takers.off[k], a, t] = -1
                if who >= 0:
                    taken[i - takers.off[k], a, t] = goods.rows[begin + who]
                    room.gone[who, a, t] = takers.holds[row]
