"""From boxes to verdicts: classes are ranked and walked, and each detection is judged by one of two
rules.

`best_free` is the rule of COCO, `best_any` that of VOC; nothing else differs between the two
families.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.kernels import kernel
from detmap.kernels.grouping import Sorter, rank_by_score, sorter
from detmap.kernels.overlap import edges_of, overlap

CROWDED = 24  # objects of a class in an image, from which on sorting them pays


class Found(NamedTuple):
    """Detections: rows by class, then by image; the same rows by class in the order of ties; the
    columns they point into.
    """

    rows: NDArray[np.int32]
    ranked_from: NDArray[np.int32]
    off: NDArray[np.int64]
    image: NDArray[np.int32]
    boxes: NDArray[np.float64]
    score_bits: NDArray[np.uint64]


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


class Rules(NamedTuple):
    """The protocol in numbers: thresholds (T,), areas (A, 2) with both ends included, pixel of
    `find_edges`, the limit.
    """

    limit: int
    pixel: float
    thresholds: NDArray[np.float64]
    areas: NDArray[np.float64]


class Verdicts(NamedTuple):
    """The output: rows by class, best score first; off (K + 1,); tp, ignored (D, A) words, bit t
    for threshold t.
    """

    off: NDArray[np.int64]
    image: NDArray[np.int32]
    rank: NDArray[np.int32]
    position: NDArray[np.int32]
    tp: NDArray[np.unsignedinteger[Any]]
    ignored: NDArray[np.unsignedinteger[Any]]


class Room(NamedTuple):
    """Room to match a class in: I images, n objects and A areas, m detections of the class."""

    seen: NDArray[np.int32]  # (I,) detections of the image so far; zero between classes
    place: NDArray[np.int32]  # (I,) where the image's run of detections begins
    members: NDArray[np.int32]  # (m,) the output rows of each run, best first
    edges: NDArray[np.float64]  # (n, 5) of the class's objects
    image: NDArray[np.int32]  # (n,)
    left: NDArray[np.float64]  # (n,) left edges, and the same as bit patterns
    left_bits: NDArray[np.uint64]
    by_left: NDArray[np.int32]  # (n,) the objects of a crowded image by descending left edge
    right_from: NDArray[np.float64]  # (n,) the rightmost edge from there on
    absorb: NDArray[np.bool_]  # (n,)
    counted: NDArray[np.bool_]  # (n, A)
    taken: NDArray[np.uint64]  # (n, A) thresholds at which an object is taken
    best: NDArray[np.float64]  # (n,) overlaps of a detection's candidates, largest first
    who: NDArray[np.int32]  # (n,) the candidates
    reach: NDArray[np.uint64]  # (n,) thresholds that their overlap reaches
    order: NDArray[np.int32]  # (m,) the class's rows, ranked
    sorter: Sorter


def room(n_images: int, n_objects: int, n_areas: int, n_detections: int) -> Room:
    """Room for classes of up to these sizes."""
    left = np.empty(n_objects)
    return Room(
        seen=np.zeros(n_images, np.int32),
        place=np.empty(n_images, np.int32),
        members=np.empty(n_detections, np.int32),
        edges=np.empty((n_objects, 5)),
        image=np.empty(n_objects, np.int32),
        left=left,
        left_bits=left.view(np.uint64),
        by_left=np.empty(n_objects, np.int32),
        right_from=np.empty(n_objects),
        absorb=np.empty(n_objects, np.bool_),
        counted=np.empty((n_objects, n_areas), np.bool_),
        taken=np.empty((n_objects, n_areas), np.uint64),
        best=np.empty(n_objects),
        who=np.empty(n_objects, np.int32),
        reach=np.empty(n_objects, np.uint64),
        order=np.empty(n_detections, np.int32),
        sorter=sorter(max(n_detections, n_objects)),
    )


@kernel
def open_class(k: Any, found: Any, objects: Any, rules: Any, verdicts: Any, room: Any) -> None:
    """Lay out a class: its objects with their edges, its detections ranked, and regrouped by
    image, still best first.
    """
    begin = objects.off[k]
    for g in range(objects.off[k + 1] - begin):
        row = objects.rows[begin + g]
        left, top, right, bottom, area = edges_of(objects.boxes, row, rules.pixel)
        room.edges[g, 0], room.edges[g, 1], room.edges[g, 2] = left, top, right
        room.edges[g, 3], room.edges[g, 4] = bottom, area
        room.image[g], room.absorb[g] = objects.image[row], objects.absorb[row]
        for a in range(rules.areas.shape[0]):
            room.counted[g, a] = objects.counted[row, a]
            room.taken[g, a] = 0
    begin = found.off[k]
    n = found.off[k + 1] - begin
    before = -1
    for i in range(n):
        room.order[i] = found.ranked_from[begin + i]
        image = found.image[found.rows[begin + i]]
        if image != before:  # a run begins
            room.place[image] = i
            before = image
    rank_by_score(found.score_bits, room.order[:n], room.sorter)
    at = verdicts.off[k]
    for i in range(n):
        row = room.order[i]
        image = found.image[row]
        rank = room.seen[image]
        room.seen[image] = rank + 1
        if rank < rules.limit:
            room.members[room.place[image] + rank] = at
            verdicts.image[at], verdicts.rank[at], verdicts.position[at] = image, rank, row
            at += 1


@kernel
def open_image(i: Any, k: Any, found: Any, objects: Any, rules: Any, first: Any, room: Any) -> Any:
    """The image of the class's i-th run of detections: its number of members and of detections, and
    its objects' range.

    first: where to look for its objects, those of earlier images being passed. In a crowded
    image the objects are sorted by their left edge, so that a detection meets only those beside
    it.
    """
    image = found.image[found.rows[found.off[k] + i]]
    n = room.seen[image]
    room.seen[image] = 0
    n_objects = objects.off[k + 1] - objects.off[k]
    while first < n_objects and room.image[first] < image:
        first += 1
    last = first
    while last < n_objects and room.image[last] == image:
        last += 1
    if last - first >= CROWDED:
        for g in range(first, last):
            room.left[g], room.by_left[g] = room.edges[g, 0], g
        rank_by_score(room.left_bits, room.by_left[first:last], room.sorter)
        rightmost = -np.inf
        for j in range(last - 1, first - 1, -1):
            rightmost = max(rightmost, room.edges[room.by_left[j], 2])
            room.right_from[j] = rightmost
    return min(n, rules.limit), n, first, last


@kernel
def skip_right(first: Any, last: Any, right: Any, room: Any) -> Any:
    """The first place in by_left whose object begins left of `right`, in a crowded image."""
    while first < last:
        middle = (first + last) // 2
        if room.edges[room.by_left[middle], 0] < right:
            last = middle
        else:
            first = middle + 1
    return first


@kernel
def best_free(classes: Any, found: Any, objects: Any, rules: Any, verdicts: Any, room: Any) -> None:
    """Judge all detections of some classes: each takes, at each threshold, the best object that is
    still free.

    Source: COCOeval.evaluateImg. Of the free objects whose overlap reaches the threshold a
    detection takes the one with the largest, of equal overlaps the later object; a neutral object
    only where no other will do. An absorbing object is never used up. A detection that took nothing
    is IGNORED where its own area is out of range. All thresholds are walked at once, a bit each:
    visiting candidates best first, a candidate gives the detection those of its bits that are still
    open.

    classes (n,) int32; the other arguments are described with their types.
    """
    zero = np.uint64(0)
    full = ~zero >> np.uint64(64 - rules.thresholds.size)
    lowest, pixel = rules.thresholds[0], rules.pixel
    best, who, reach = room.best, room.who, room.reach
    for c in range(classes.size):
        k = classes[c]
        open_class(k, found, objects, rules, verdicts, room)
        i, last = 0, 0
        while i < found.off[k + 1] - found.off[k]:
            n_members, n_detections, first, last = open_image(
                i, k, found, objects, rules, last, room
            )
            for m in range(i, i + n_members):
                at = room.members[m]
                left, top, right, bottom, area = edges_of(found.boxes, verdicts.position[at], pixel)
                n_best = 0
                crowded = last - first >= CROWDED
                for j in range(
                    skip_right(first, last, right + pixel, room) if crowded else first, last
                ):
                    g = j
                    if crowded:
                        if room.right_from[j] + pixel <= left:
                            break
                        g = room.by_left[j]
                    iou = overlap(
                        left, top, right, bottom, area, room.edges, g, pixel, room.absorb[g]
                    )
                    if iou < lowest:
                        continue
                    place = n_best
                    while place > 0 and (
                        best[place - 1] < iou or (best[place - 1] == iou and who[place - 1] < g)
                    ):
                        best[place], who[place] = best[place - 1], who[place - 1]
                        place -= 1
                    best[place], who[place] = iou, g
                    n_best += 1
                for j in range(n_best):
                    reach[j] = reached(best[j], rules.thresholds)
                for a in range(rules.areas.shape[0]):
                    out_of_range = area < rules.areas[a, 0] or area > rules.areas[a, 1]
                    if n_best == 0:  # most detections
                        verdicts.tp[at, a], verdicts.ignored[at, a] = (
                            zero,
                            full if out_of_range else zero,
                        )
                        continue
                    hit, excused, still_open = zero, zero, full
                    for j in range(n_best):
                        g = who[j]
                        if room.counted[g, a]:
                            take = reach[j] & still_open & ~room.taken[g, a]
                            room.taken[g, a] |= take
                            hit |= take
                            still_open &= ~take
                    for j in range(n_best):
                        g = who[j]
                        if not room.counted[g, a]:
                            take = reach[j] & still_open
                            if not room.absorb[g]:
                                take &= ~room.taken[g, a]
                                room.taken[g, a] |= take
                            excused |= take
                            still_open &= ~take
                    if out_of_range:
                        excused |= still_open
                    verdicts.tp[at, a], verdicts.ignored[at, a] = hit, excused
            i += n_detections


@kernel
def best_any(classes: Any, found: Any, objects: Any, rules: Any, verdicts: Any, room: Any) -> None:
    """Judge all detections of some classes: each by the best object of all, taken or not.

    Source: VOCevaldet.m of the VOC devkit. A detection looks only at the object with the largest
    overlap, of equal overlaps the first. Where that overlap reaches the threshold: IGNORED if the
    object is neutral (it is never used up), TP if it is free, FP if it is taken. A detection that
    took nothing is IGNORED where its own area is out of range.

    Arguments as in `best_free`.
    """
    zero = np.uint64(0)
    full = ~zero >> np.uint64(64 - rules.thresholds.size)
    pixel = rules.pixel
    for c in range(classes.size):
        k = classes[c]
        open_class(k, found, objects, rules, verdicts, room)
        i, last = 0, 0
        while i < found.off[k + 1] - found.off[k]:
            n_members, n_detections, first, last = open_image(
                i, k, found, objects, rules, last, room
            )
            for m in range(i, i + n_members):
                at = room.members[m]
                left, top, right, bottom, area = edges_of(found.boxes, verdicts.position[at], pixel)
                best, who = 0.0, -1
                crowded = last - first >= CROWDED
                for j in range(
                    skip_right(first, last, right + pixel, room) if crowded else first, last
                ):
                    g = j
                    if crowded:
                        if room.right_from[j] + pixel <= left:
                            break
                        g = room.by_left[j]
                    iou = overlap(
                        left, top, right, bottom, area, room.edges, g, pixel, room.absorb[g]
                    )
                    if iou > best or (iou == best and iou > 0.0 and g < who):
                        best, who = iou, g
                reach = reached(best, rules.thresholds) if who >= 0 else zero
                for a in range(rules.areas.shape[0]):
                    hit, excused = zero, zero
                    if reach != zero:
                        if room.counted[who, a]:
                            hit = reach & ~room.taken[who, a]
                            room.taken[who, a] |= hit
                        else:
                            excused = reach
                    if area < rules.areas[a, 0] or area > rules.areas[a, 1]:
                        excused |= full & ~hit
                    verdicts.tp[at, a], verdicts.ignored[at, a] = hit, excused
            i += n_detections


@kernel
def reached(iou: Any, thresholds: Any) -> Any:
    """The thresholds (T,), ascending, that an overlap reaches, a bit each."""
    t = 0
    while t < thresholds.size and iou >= thresholds[t]:
        t += 1
    return ~np.uint64(0) >> np.uint64(64 - t) if t > 0 else np.uint64(0)
