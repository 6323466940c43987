"""Matching: match results from the overlaps of detections and objects, by two rules.

`best_free` is the rule of COCO, `best_any` that of VOC. Both use overlaps, of any kind of shape.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.kernels import kernel
from detmap.kernels.cells import Verdicts, Words
from detmap.kernels.pairs import Pairs


class Judging(NamedTuple):
    """The input of the rules beside the pairs.

    Words of subsets have bit a for subset a, words of thresholds bit t for threshold t. Objects
    have the order of `ObjectColumns`.
    """

    thresholds: NDArray[np.float64]  # (T,) ascending
    first_of_equals: int  # 1 if the first object wins among equal overlaps, else 0
    find: NDArray[np.uint64]  # (G,) subsets in which the object is counted
    # (G,) subsets in which it is an ignored region (COCO's crowd): many detections match it
    absorb: NDArray[np.uint64]  # all ones if in every subset
    enough: NDArray[np.float64]  # (G,) the overlap that is a match at any threshold
    dropped: NDArray[np.uint64]  # (D,) subsets in which a detection never matches, or (0,)
    taken: Words  # (G, A) thresholds at which an object is matched
    cell: NDArray[np.int64]  # (G, 2) start and end of the objects of its cell, or (0, 2)


class Takings(NamedTuple):
    """The assignments, one row per detection and object; (0,) if not requested."""

    detection: NDArray[np.int32]  # (n,) rows of the verdicts
    object: NDArray[np.int32]  # (n,) places in the objects' order
    overlap: NDArray[np.float64]  # (n,)
    words: Words  # (n, A) thresholds at which they are matched


def empty_takings(n: int, n_subsets: int, word: Any) -> Takings:
    """Arrays for n rows; the number of pairs is sufficient."""
    return Takings(
        np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n), np.empty((n, n_subsets), word)
    )


class Walk(NamedTuple):
    """Scratch arrays of the rules, for A subsets and n pairs of a detection."""

    still_open: NDArray[np.uint64]  # (A,) thresholds at which the detection is unmatched
    hit: NDArray[np.uint64]  # (A,) thresholds at which it matched a counted object
    slot: NDArray[np.int64]  # (n,) row of each candidate in `Takings`, -1 for none


def walk(n_subsets: int, n_pairs: int) -> Walk:
    """Scratch arrays of the rules."""
    return Walk(
        np.empty(n_subsets, np.uint64), np.empty(n_subsets, np.uint64), np.empty(n_pairs, np.int64)
    )


@kernel
def best_free(
    n: int, pairs: Pairs, judging: Judging, verdicts: Verdicts, takings: Takings, scratch: Walk
) -> int:
    """Match n detections, given their pairs: each matches, at each threshold, the best unmatched
    object. Returns the number of rows in `takings`.

    Source: COCOeval.evaluateImg in pycocotools' cocoeval.py. Among the unmatched objects whose
    overlap reaches the threshold, a detection matches the one with the largest overlap, the later
    one of equal overlaps. It matches an ignored object only if it reaches no counted one, or, with
    `Judging.cell`, if all counted objects of the cell are matched (globox evaluation.py,
    evaluate_boxes). An ignored region (`absorb`) can match any number of detections. An unmatched
    detection keeps the result of one without pairs.

    Candidates are visited in descending order, as long as a result is open. One pass handles all
    subsets and thresholds, with one bit each: a candidate decides those bits that are still open.
    """
    zero, one = np.uint64(0), np.uint64(1)
    n_subsets = verdicts.tp.shape[1]
    full = ~zero >> np.uint64(64 - judging.thresholds.size)
    every_subset = ~zero >> np.uint64(64 - n_subsets)
    n_taken = 0
    for i in range(n):
        at = pairs.detection[i]
        row = verdicts.position[at]
        begin = pairs.off[i]
        # Objects matched in every subset at every threshold they reach are no candidates.
        # With many equal boxes, this leaves nearly nothing to visit.
        end, to_find, neutral, own_threshold = begin, zero, zero, False
        for j in range(begin, pairs.off[i + 1]):
            g = pairs.object[j]
            reach = reached(pairs.overlap[j], judging.thresholds, judging.enough[g])
            if not pairs.absorbing[j] and is_used_up(g, reach, judging.taken):
                continue
            pairs.object[end], pairs.overlap[end] = g, pairs.overlap[j]
            pairs.absorbing[end] = pairs.absorbing[j]
            find = judging.find[g]
            to_find, neutral = to_find | find, neutral | ~find
            own_threshold |= judging.enough[g] < np.inf
            end += 1
        size = end - begin
        make_heap(begin, size, pairs, judging.first_of_equals)
        live = every_subset
        if judging.dropped.size:
            live &= ~judging.dropped[row]
        for a in range(n_subsets):
            scratch.still_open[a], scratch.hit[a] = full, zero
        n_sorted = 0
        # First the counted objects, then the others.
        for turn in range(2):
            wanted = live & (to_find if turn == 0 else neutral)
            wished = union_of(scratch.still_open, wanted)
            place = 0
            while wanted != zero and place < size:
                if place == n_sorted:  # the best of the rest goes to the end of the heap
                    swap(begin, begin + size - 1 - place, pairs)
                    sift_down(begin, 0, size - 1 - place, pairs, judging.first_of_equals)
                    scratch.slot[place] = -1
                    n_sorted += 1
                j = begin + size - 1 - place
                g = pairs.object[j]
                find, where = judging.find[g], judging.absorb[g]
                if not pairs.absorbing[j]:
                    where = ~where
                reach = reached(pairs.overlap[j], judging.thresholds, judging.enough[g])
                if reach & wished == zero and not own_threshold:
                    break  # no later candidate reaches more
                bits = wanted & where & (find if turn == 0 else ~find)
                if bits != zero:
                    for a in range(n_subsets):
                        bit = one << np.uint64(a)
                        if bits & bit == zero:
                            continue
                        take = reach & scratch.still_open[a]
                        if turn == 1 and judging.cell.size:
                            for other in range(judging.cell[g, 0], judging.cell[g, 1]):
                                if judging.find[other] & bit:
                                    take &= np.uint64(judging.taken[other, a])
                        if not pairs.absorbing[j]:
                            take &= ~np.uint64(judging.taken[g, a])
                            judging.taken[g, a] |= take
                        if take == zero:
                            continue
                        scratch.still_open[a] &= ~take
                        if scratch.still_open[a] == zero:
                            wanted &= ~bit
                            live &= ~bit
                        if turn == 0:
                            scratch.hit[a] |= take
                        if takings.detection.size:
                            if scratch.slot[place] < 0:
                                scratch.slot[place] = n_taken
                                open_row(n_taken, at, g, pairs.overlap[j], takings)
                                n_taken += 1
                            takings.words[scratch.slot[place], a] |= take
                    wished = union_of(scratch.still_open, wanted)
                place += 1
        for a in range(n_subsets):
            if judging.dropped.size and (judging.dropped[row] >> np.uint64(a)) & one:
                continue
            hit, nothing = scratch.hit[a], scratch.still_open[a]
            verdicts.tp[at, a] = hit
            verdicts.ignored[at, a] = (full & ~hit & ~nothing) | (
                nothing & np.uint64(verdicts.ignored[at, a])
            )
    return n_taken


@kernel
def best_any(
    n: int, pairs: Pairs, judging: Judging, verdicts: Verdicts, takings: Takings, scratch: Walk
) -> int:
    """Match n detections, given their pairs: each by the best of all objects, matched or not.
    Returns the number of rows in `takings`.

    Source: VOCevaldet.m of the VOC devkit. A detection uses only the object with the largest
    overlap, the first of equal overlaps (or the last, by protocol). If this overlap reaches the
    threshold, the result is IGNORED if the object is ignored (it can match any number of
    detections), TP if it is unmatched, FP if it is matched. An unmatched detection outside the
    subset is IGNORED.
    """
    zero, one = np.uint64(0), np.uint64(1)
    n_subsets = verdicts.tp.shape[1]
    full = ~zero >> np.uint64(64 - judging.thresholds.size)
    n_taken = 0
    for i in range(n):
        at = pairs.detection[i]
        row = verdicts.position[at]
        begin, end = pairs.off[i], pairs.off[i + 1]
        # Only ignored regions of some subsets make the best object differ between subsets.
        mixed = False
        for j in range(begin, end):
            absorb = judging.absorb[pairs.object[j]]
            mixed |= absorb != zero and absorb != ~zero
        first_row = n_taken
        best, reach = -1, zero
        for a in range(n_subsets):
            bit = one << np.uint64(a)
            if a == 0 or mixed:
                best = -1
                for j in range(begin, end):
                    where = judging.absorb[pairs.object[j]]
                    if not pairs.absorbing[j]:
                        where = ~where
                    beats = best < 0 or is_better(j, best, pairs, judging.first_of_equals)
                    if where & bit != zero and pairs.overlap[j] > 0.0 and beats:
                        best = j
                reach = zero
                if best >= 0:
                    enough = judging.enough[pairs.object[best]]
                    reach = reached(pairs.overlap[best], judging.thresholds, enough)
            if judging.dropped.size and judging.dropped[row] & bit:
                continue
            hit, excused = zero, zero
            if reach != zero:
                g = pairs.object[best]
                if judging.find[g] & bit:
                    hit = reach & ~np.uint64(judging.taken[g, a])
                    judging.taken[g, a] |= hit
                else:
                    excused = reach
                if takings.detection.size and hit | excused != zero:
                    slot = first_row
                    while slot < n_taken and not (
                        takings.object[slot] == g and takings.overlap[slot] == pairs.overlap[best]
                    ):
                        slot += 1
                    if slot == n_taken:
                        open_row(slot, at, g, pairs.overlap[best], takings)
                        n_taken += 1
                    takings.words[slot, a] |= hit | excused
            verdicts.tp[at, a] = hit
            verdicts.ignored[at, a] = excused | (np.uint64(verdicts.ignored[at, a]) & full & ~hit)
    return n_taken


@kernel
def reached(overlap: float, thresholds: NDArray[np.float64], enough: float) -> np.uint64:
    """The thresholds (T,), ascending, that an overlap reaches, one bit each; all if it is at least
    `enough`.

    Source: min(t, 1-1e-10) in COCOeval.evaluateImg, where the bound applies to the threshold; here
    it applies to the object.
    """
    n = thresholds.size
    t = n if overlap >= enough else 0
    while t < n and overlap >= thresholds[t]:
        t += 1
    return ~np.uint64(0) >> np.uint64(64 - t) if t > 0 else np.uint64(0)


@kernel
def is_used_up(g: int, reach: np.uint64, taken: Words) -> bool:
    """Whether an object is matched in every subset at every threshold of `reach`.

    Source: COCOeval.evaluateImg, ``gtm[tind,gind]>0``, over all thresholds and area ranges.
    """
    left = np.uint64(0)
    for a in range(taken.shape[1]):
        left |= reach & ~np.uint64(taken[g, a])
    return bool(left == np.uint64(0))


@kernel
def union_of(words: NDArray[np.uint64], subsets: np.uint64) -> np.uint64:
    """The union of the thresholds of these subsets.

    Source: none; a step of the matching.
    """
    union = np.uint64(0)
    for a in range(words.size):
        if (subsets >> np.uint64(a)) & np.uint64(1):
            union |= words[a]
    return union


@kernel
def open_row(slot: int, at: int, g: int, overlap: float, takings: Takings) -> None:
    """Start the row of a detection and an object.

    Source: dtMatches of COCOeval.evaluateImg, which has one id per threshold.
    """
    takings.detection[slot], takings.object[slot], takings.overlap[slot] = at, g, overlap
    for a in range(takings.words.shape[1]):
        takings.words[slot, a] = 0


# --- a heap over the pairs of one detection, the best first ---------------------------------------


@kernel
def is_better(i: int, j: int, pairs: Pairs, first_of_equals: int) -> bool:
    """Whether the i-th pair precedes the j-th: by overlap, then by position of the object.

    Source: COCOeval.evaluateImg, ``ious[dind,gind] < iou``: the later object of equal overlaps.
    """
    if pairs.overlap[i] != pairs.overlap[j]:
        return bool(pairs.overlap[i] > pairs.overlap[j])
    if first_of_equals:
        return bool(pairs.object[i] < pairs.object[j])
    return bool(pairs.object[i] > pairs.object[j])


@kernel
def swap(i: int, j: int, pairs: Pairs) -> None:
    """Exchange two pairs. Source: none; a step of the heap."""
    g, overlap, absorbing = pairs.object[i], pairs.overlap[i], pairs.absorbing[i]
    pairs.object[i], pairs.overlap[i] = pairs.object[j], pairs.overlap[j]
    pairs.absorbing[i] = pairs.absorbing[j]
    pairs.object[j], pairs.overlap[j], pairs.absorbing[j] = g, overlap, absorbing


@kernel
def make_heap(begin: int, size: int, pairs: Pairs, first_of_equals: int) -> None:
    """Arrange the pairs from `begin` so that each is better than its two children.

    Source: none; a binary heap, linear to build.
    """
    for node in range(size // 2 - 1, -1, -1):
        sift_down(begin, node, size, pairs, first_of_equals)


@kernel
def sift_down(begin: int, node: int, size: int, pairs: Pairs, first_of_equals: int) -> None:
    """Move a pair down to its place in the heap. Source: none; a step of the heap."""
    while 2 * node + 1 < size:
        child = 2 * node + 1
        if child + 1 < size and is_better(begin + child + 1, begin + child, pairs, first_of_equals):
            child += 1
        if not is_better(begin + child, begin + node, pairs, first_of_equals):
            return
        swap(begin + child, begin + node, pairs)
        node = child
