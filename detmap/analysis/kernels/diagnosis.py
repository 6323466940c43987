"""Error analysis in one pass over the images: overlaps and error kind of each detection."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.kernels import kernel
from detmap.kernels.overlap import edges_of, shared_area

Floats = NDArray[np.float64]
TP, CLS, LOC, BOTH, DUPE, BKG, BEYOND = range(7)
"""Kinds of detections: correct; wrong class (right location); poor localization; both; duplicate;
background; beyond the limit.
"""


class Boxes(NamedTuple):
    """Rows of a table by image, best score first of detections and in input order of objects."""

    off: NDArray[np.int64]  # (I + 1,) where each image begins
    order: NDArray[np.int32]  # (n,) rows of the table
    label: NDArray[np.int32]  # (n,) by row of the table, as all that follow
    boxes: Floats  # (n, 4)
    counts: NDArray[np.bool_]  # (n,) detection within the limit, or counted object


class Seen(NamedTuple):
    """The results, by row of the tables."""

    same: Floats  # (D,) best overlap with a counted object of its class; 0.0 for none
    same_object: NDArray[np.int32]  # (D,) that object, the first of equals; -1
    other: Floats  # (D,) the same with an object of another class
    other_object: NDArray[np.int32]  # (D,)
    twin: NDArray[np.float32]  # (D,) best overlap with a better detection of its class
    kind: NDArray[np.uint8]  # (D,) one of the kinds; TP if it was TP at the start
    near: NDArray[np.float32]  # (G,) best overlap with another counted object of any class
    reach: NDArray[np.float32]  # (G,) best overlap of a detection of its class


class Edges(NamedTuple):
    """Scratch arrays for the objects and the detections of an image, and for K classes."""

    objects: Floats  # (most objects, 5)
    row: NDArray[np.int32]  # (most objects,)
    detections: Floats  # (most detections, 5)
    before: NDArray[np.int32]  # (most detections,) the better one of its class that is next to it
    last: NDArray[np.int32]  # (K,) the last detection of each class; -1 between calls


def edges(n_objects: int, n_detections: int, n_classes: int) -> Edges:
    """Scratch arrays for images of up to so many rows."""
    return Edges(
        np.empty((n_objects, 5)),
        np.empty(n_objects, np.int32),
        np.empty((n_detections, 5)),
        np.empty(n_detections, np.int32),
        np.full(n_classes, -1, np.int32),
    )


@kernel
def diagnose_images(
    images: NDArray[np.int32],
    detections: Boxes,
    objects: Boxes,
    taken: NDArray[np.bool_],
    pixel: float,
    epsilon: float,
    iou: float,
    background: float,
    seen: Seen,
    scratch: Edges,
) -> None:
    """Overlaps and kinds of the detections of some images.

    images (m,) positions; taken (G,) the objects that a detection took; pixel of `edges_of`;
    epsilon is added to the union; iou, background: the two thresholds.
    Source: the kinds and their order are those of tidecv 1.0.1, quantify.py, _eval_image.
    """
    for i in images:
        n = lay_objects(i, objects, pixel, scratch)
        crowding(n, objects, pixel, epsilon, seen, scratch)
        begin, end = detections.off[i], detections.off[i + 1]
        for place in range(end - begin):
            row = detections.order[begin + place]
            seen.same_object[row], seen.other_object[row] = -1, -1
            seen.same[row], seen.other[row], seen.twin[row] = 0.0, 0.0, 0.0
            if not detections.counts[row]:
                seen.kind[row] = BEYOND
                continue
            label = detections.label[row]
            box = edges_of(detections.boxes, row, pixel)
            for side in range(5):
                scratch.detections[place, side] = box[side]
            best_taken = -1.0
            for g in range(n):
                there = scratch.row[g]
                overlap = over_union(box, scratch.objects, g, pixel, epsilon)
                if objects.label[there] == label:
                    if seen.same_object[row] < 0 or overlap > seen.same[row]:
                        seen.same[row], seen.same_object[row] = overlap, there
                    if taken[there]:
                        best_taken = max(best_taken, overlap)
                    seen.reach[there] = max(seen.reach[there], overlap)
                elif seen.other_object[row] < 0 or overlap > seen.other[row]:
                    seen.other[row], seen.other_object[row] = overlap, there
            other = scratch.last[label]
            scratch.before[place], scratch.last[label] = other, place
            while other >= 0:
                overlap = over_union(box, scratch.detections, other, pixel, epsilon)
                seen.twin[row] = max(seen.twin[row], overlap)
                other = scratch.before[other]
            if seen.kind[row] != TP:
                same, of_other = seen.same[row], seen.other[row]
                if n == 0:
                    kind = BKG
                elif seen.same_object[row] >= 0 and background <= same <= iou:
                    kind = LOC
                elif seen.other_object[row] >= 0 and of_other >= iou:
                    kind = CLS
                elif best_taken >= iou:
                    kind = DUPE
                elif max(same, of_other) <= background:
                    kind = BKG
                else:
                    kind = BOTH
                seen.kind[row] = kind
        for place in range(end - begin):
            scratch.last[detections.label[detections.order[begin + place]]] = -1


@kernel
def lay_objects(image: int, objects: Boxes, pixel: float, scratch: Edges) -> int:
    """Write the counted objects of an image. Returns their number.

    Source: none; the box convention is that of `edges_of`.
    """
    n = 0
    for at in range(objects.off[image], objects.off[image + 1]):
        row = objects.order[at]
        if objects.counts[row]:
            box = edges_of(objects.boxes, row, pixel)
            for side in range(5):
                scratch.objects[n, side] = box[side]
            scratch.row[n] = row
            n += 1
    return n


@kernel
def crowding(
    n: int, objects: Boxes, pixel: float, epsilon: float, seen: Seen, scratch: Edges
) -> None:
    """The best overlap of each of the n objects with another one.

    Source: none; the measure of crowding.
    """
    for g in range(n):
        box = edges_of(objects.boxes, scratch.row[g], pixel)
        for h in range(g):
            overlap = over_union(box, scratch.objects, h, pixel, epsilon)
            if overlap > seen.near[scratch.row[g]]:
                seen.near[scratch.row[g]] = overlap
            if overlap > seen.near[scratch.row[h]]:
                seen.near[scratch.row[h]] = overlap


@kernel
def over_union(
    box: tuple[float, float, float, float, float],
    edges: Floats,
    g: int,
    pixel: float,
    epsilon: float,
) -> float:
    """IoU of a box and the g-th of (n, 5) edges; 0.0 without intersection.

    Source: bbIou in pycocotools' maskApi.c, as `detmap.kernels.pairs.pair_boxes`.
    """
    shared = shared_area(box, edges, g, pixel)
    if shared < 0.0:
        return 0.0
    overlap = shared / (box[4] + edges[g, 4] - shared + epsilon)
    return overlap if overlap == overlap else 0.0


class Rows(NamedTuple):
    """Boxes by image, in the order that decides between equal overlaps."""

    off: NDArray[np.int64]  # (I + 1,) where each image begins
    label: NDArray[np.int32]  # (n,)
    edges: Floats  # (n, 5) left, top, right and bottom edge, area


@kernel
def pair_by_class(
    detections: Rows,
    objects: Rows,
    least: float,
    most: int,
    found: NDArray[np.int64],
    overlaps: Floats,
) -> int:
    """Pair detections and objects of each image one to one: pairs of the same class first, then by
    overlap. Returns the number of overlaps computed, -1 if it would exceed `most`.

    least: lowest overlap of a pair. out: found (G,) the detection of each object, -1 for none;
    overlaps (G,) that of the pair.

    A detection takes its best object unless another detection has the better pair with it; the one
    that loses an object takes its next one. As both sides rank pairs by one order, the result is
    that of taking the pairs in this order, without a list of them.

    Source: Gale and Shapley 1962, deferred acceptance.
    """
    count = 0
    for i in range(detections.off.size - 1):
        first, last = objects.off[i], objects.off[i + 1]
        for g in range(first, last):
            found[g] = -1
        for begin in range(detections.off[i], detections.off[i + 1]):
            d = begin
            while d >= 0:
                count += last - first
                if count > most:
                    return -1
                best = find_class_first(d, first, last, detections, objects, least, found, overlaps)
                if best < 0:
                    break
                loser = found[best]
                found[best] = d
                overlaps[best] = overlap_of(detections.edges, d, objects.edges, best)
                d = loser
    return count


@kernel
def find_class_first(
    d: int,
    first: int,
    last: int,
    detections: Rows,
    objects: Rows,
    least: float,
    found: NDArray[np.int64],
    overlaps: Floats,
) -> int:
    """The best object from `first` to `last` whose pair with another detection is not better; -1.

    Source: none; the order is that of `pair_by_class`, of equals the first object.
    """
    best, highest, same_best = -1, -1.0, False
    label = detections.label[d]
    for g in range(first, last):
        same = objects.label[g] == label
        if same_best and not same:
            continue
        overlap = overlap_of(detections.edges, d, objects.edges, g)
        if not overlap >= least or (same == same_best and overlap <= highest):
            continue
        other = found[g]
        if other >= 0:
            same_other = objects.label[g] == detections.label[other]
            if same_other and not same:
                continue
            if same_other == same and (
                overlap < overlaps[g] or (overlap == overlaps[g] and other < d)
            ):
                continue
        best, highest, same_best = g, overlap, same
    return best


@kernel
def find_best(
    edges: Floats,
    begin: NDArray[np.int64],
    count: NDArray[np.int64],
    obj_edges: Floats,
    best: NDArray[np.int64],
    overlaps: Floats,
) -> None:
    """The object of highest overlap with each row, of equals the first.

    edges (n, 5) and obj_edges (m, 5), areas included; begin, count (n,), the objects of each row,
    one or more; out: best, overlaps (n,). Source: none; a search.
    """
    for d in range(begin.size):
        best[d], overlaps[d] = -1, -1.0
        for g in range(begin[d], begin[d] + count[d]):
            overlap = overlap_of(edges, d, obj_edges, g)
            if overlap > overlaps[d]:
                best[d], overlaps[d] = g, overlap


@kernel
def overlap_of(edges: Floats, d: int, obj_edges: Floats, g: int) -> float:
    """IoU of the d-th and the g-th of (n, 5) edges, areas included; 0.0 if undefined.

    Source: none; bit for bit `detmap.analysis.row_overlaps.ious`.
    """
    width = min(edges[d, 2], obj_edges[g, 2]) - max(edges[d, 0], obj_edges[g, 0])
    height = min(edges[d, 3], obj_edges[g, 3]) - max(edges[d, 1], obj_edges[g, 1])
    shared = width * height if width > 0 and height > 0 else 0.0
    union = edges[d, 4] + obj_edges[g, 4] - shared
    return float(shared / union) if union > 0 else 0.0
