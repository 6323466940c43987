"""Counts match results of few images in one subset, at one score and IoU threshold."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.kernels import kernel
from detmap.kernels.cells import Words
from detmap.kernels.grouping import Sorter, rank_by_score
from detmap.kernels.overlap import Floats, edges_of, shared_area

NO_OBJECT = -1
UNDECIDED = -2  # only the rules of `match` can tell
TP, FOUND, OBJECTS = 0, 1, 2  # what is counted


class FoundBoxes(NamedTuple):
    """Detections, image after image."""

    image: NDArray[np.int32]  # (D,)
    label: NDArray[np.int32]  # (D,)
    score: Floats  # (D,)
    score_bits: NDArray[np.uint64]  # (D,)
    boxes: Floats  # (D, 4)
    outside: Words  # (D,) see `DetectionColumns`


class ObjectBoxes(NamedTuple):
    """The ground truth, image after image; words as in `ObjectColumns`."""

    image: NDArray[np.int32]  # (G,)
    label: NDArray[np.int32]  # (G,)
    boxes: Floats  # (G, 4)
    find: NDArray[np.uint64]  # (G,)
    absorb: NDArray[np.uint64]  # (G,)
    enough: Floats  # (G,)


class Point(NamedTuple):
    """What is counted, and by which rule: the subset; the lowest score of a detection, and IoU of a
    match, above 0; `pixel` of `edges_of`; what is added to the union; the largest number of
    detections of an image; whether a detection uses its best object only (`best_any`), and the
    first of equal ones.
    """

    subset: int
    score: float
    threshold: float
    pixel: float
    epsilon: float
    limit: int
    best_any: int
    first_of_equals: int


class Places(NamedTuple):
    """Scratch arrays for D detections and G objects."""

    order: NDArray[np.int32]  # (D,)
    sorter: Sorter
    edges: Floats  # (G, 5)
    taken: NDArray[np.bool_]  # (G,) false


@kernel
def count_boxes(
    found: FoundBoxes, objects: ObjectBoxes, point: Point, counts: NDArray[np.int64], places: Places
) -> int:
    """Count true positives, detections and objects that are not ignored, into counts (3,). Returns
    0, or `UNDECIDED` for images that do not ascend, more detections of one than the limit, an
    ignored region of some subsets or one that counts, and an overlap of 0/0.

    Source: COCOeval.evaluateImg and VOCevaldet.m, see `best_free` and `best_any`, at one threshold.
    """
    counts[:] = 0
    bit = np.uint64(1) << np.uint64(point.subset)
    for g in range(objects.label.size):
        absorb = objects.absorb[g]
        if g > 0 and objects.image[g] < objects.image[g - 1]:
            return UNDECIDED
        counted = objects.find[g] & bit != np.uint64(0)
        if absorb != np.uint64(0) and (absorb != ~np.uint64(0) or counted):
            return UNDECIDED
        counts[OBJECTS] += counted
        box = edges_of(objects.boxes, g, point.pixel)
        places.edges[g, 0], places.edges[g, 1] = box[0], box[1]
        places.edges[g, 2], places.edges[g, 3], places.edges[g, 4] = box[2], box[3], box[4]
    begin, last = 0, 0
    while begin < found.label.size:
        image, end, n = found.image[begin], begin, 0
        while end < found.label.size and found.image[end] == image:
            if found.score[end] >= point.score:
                places.order[n] = end
                n += 1
            end += 1
        if n > point.limit or (begin > 0 and image < found.image[begin - 1]):
            return UNDECIDED
        while last < objects.label.size and objects.image[last] < image:
            last += 1
        first = last
        while last < objects.label.size and objects.image[last] == image:
            last += 1
        order = places.order[:n]
        rank_by_score(found.score_bits, order, places.sorter)
        for i in range(order.size):
            g = choose(order[i], first, last, found, objects, point, places)
            if g == UNDECIDED:
                return UNDECIDED
            if g != NO_OBJECT and objects.find[g] & bit == np.uint64(0):
                places.taken[g] = True
                continue  # ignored
            hit = g != NO_OBJECT and not places.taken[g]
            if hit:
                places.taken[g] = True
            elif np.uint64(found.outside[order[i]]) & bit != np.uint64(0):
                continue
            counts[TP] += hit
            counts[FOUND] += 1
        begin = end
    return 0


@kernel
def choose(
    d: int,
    first: int,
    last: int,
    found: FoundBoxes,
    objects: ObjectBoxes,
    point: Point,
    places: Places,
) -> int:
    """The object that a detection matches among those of its image, `first` to `last`; under
    `best_any` also one that is taken. `NO_OBJECT`, or `UNDECIDED` if an overlap is 0/0.

    Source: see `count_boxes`.
    """
    bit = np.uint64(1) << np.uint64(point.subset)
    box = edges_of(found.boxes, d, point.pixel)
    best, highest, best_counts, best_reaches = NO_OBJECT, 0.0, False, False
    for g in range(first, last):
        if objects.label[g] != found.label[d]:
            continue
        shared = shared_area(box, places.edges, g, point.pixel)
        if shared < 0.0:
            continue
        absorbs = objects.absorb[g] != np.uint64(0)
        divisor = box[4] + places.edges[g, 4] - shared + point.epsilon
        overlap = shared / (box[4] + point.epsilon if absorbs else divisor)
        if np.isnan(overlap):
            return UNDECIDED
        reaches = overlap >= point.threshold or overlap >= objects.enough[g]
        counts = objects.find[g] & bit != np.uint64(0)
        if not point.best_any and (not reaches or (places.taken[g] and not absorbs)):
            continue
        if best != NO_OBJECT:
            if not point.best_any and counts != best_counts:
                if best_counts:
                    continue
            elif overlap < highest or (overlap == highest and point.first_of_equals):
                continue
        best, highest, best_counts, best_reaches = g, overlap, counts, reaches
    return best if best_reaches else NO_OBJECT
