"""Replicates of all cells: L replicates in parallel lanes, in two passes over the listed rows.

The forward pass adds the weights of all rows once for all thresholds. The backward pass visits the
true positives of a threshold, while the envelope grows from the end. Weights are whole, so the sums
are exact in any order.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.kernels import inline_kernel, kernel
from detmap.kernels.digest import finalise
from detmap.kernels.integrate import ALL_POINTS, STEP
from detmap.kernels.resampling.influence import count_bits
from detmap.kernels.resampling.steps import PARTLY, TRUE

LANES = 16
GOLDEN = 0x9E3779B97F4A7C15
TRUE_AT, PARTLY_AT, ENVELOPE, REACHED, TOTAL, OBJECTS = range(0, 6 * LANES, LANES)
"""Places in `Lanes.cell`: weight of the true positives, of rows ignored at another threshold,
envelope, recall points reached, sum, weight of the objects."""


class Weights(NamedTuple):
    """Whole weights of I images in L replicates, at most 255: lanes (I, L) float64; packed (I, 2)
    uint64, the same in bytes; room, how many sums of bytes do not overflow.
    """

    lanes: NDArray[np.float64]
    packed: NDArray[np.uint64]
    room: int


class Lanes(NamedTuple):
    """The state of a cell of up to E events: events (E, 2 * L), see `rank_lanes`; sums (L,); cell
    (6 * L,), from each of the places TRUE_AT ... on one number per lane. It is one array because
    then LLVM knows that the numbers do not overlap, and uses vectors.
    """

    events: NDArray[np.float64]
    sums: NDArray[np.float64]
    cell: NDArray[np.float64]


class Grid(NamedTuple):
    """Recall points 0, step, 2 step ...: how many, at least 2, the step, and points per unit of
    recall, which is 1 / step but for rounding; 0 points for a rule without.
    """

    n_points: int
    step: float
    density: float


class Readings(NamedTuple):
    """S readings of each class: area (S,) int64; words (S,) uint64, one bit per averaged threshold;
    limit (S,) int64, -1 for AP, else the detection limit of a recall.
    """

    area: NDArray[np.int64]
    words: NDArray[np.uint64]
    limit: NDArray[np.int64]


def empty_lanes(most: int) -> Lanes:
    """The state of a cell of up to `most` events."""
    return Lanes(np.empty((most, 2 * LANES)), np.empty(LANES), np.empty(6 * LANES))


@kernel
def word(seed: Any, tag: Any, b: Any, j: Any) -> Any:
    """Random word j of stream b; tag 1 for the bootstrap, 2 for swaps, 3 for the keys of ties.

    Source: splitmix64, Steele, Lea and Flood 2014, its finaliser over seed, stream and place.
    """
    golden, one = np.uint64(GOLDEN), np.uint64(1)
    state = finalise(finalise(seed + golden * tag) + golden * (b + one))
    return finalise(state + golden * (j + one))


@kernel
def draw_words(seed: Any, tag: Any, first: Any, words: Any) -> None:
    """Words 0, 1 ... of the streams from `first` on; seed, tag, first (1,) uint64; out: words (n,
    m) uint64. Source: none; a loop over `word`.
    """
    for b in range(words.shape[0]):
        for j in range(words.shape[1]):
            words[b, j] = word(seed[0], tag[0], first[0] + np.uint64(b), np.uint64(j))


@kernel
def draw_lanes(seed: Any, first: Any, of_image: Any, drawn: Any, weights: Any) -> None:
    """The count of each image in each of the replicates from `first` on.

    seed, first (1,) uint64; of_image (I,) int32, the unit of each image; drawn (U, L) float64 is
    scratch space; out: weights (I, L) float64. U units are sampled with replacement.

    Source: Efron 1979, the bootstrap; a sampled unit is the upper half of a word times U, over 2^32
    (Lemire 2019).
    """
    n_units = np.uint64(drawn.shape[0])
    drawn[:] = 0.0
    for lane in range(weights.shape[1]):
        b = first[0] + np.uint64(lane)
        for j in range(drawn.shape[0]):
            upper = word(seed[0], np.uint64(1), b, np.uint64(j)) >> np.uint64(32)
            drawn[np.int64((upper * n_units) >> np.uint64(32)), lane] += 1.0
    for i in range(of_image.size):
        for lane in range(weights.shape[1]):
            weights[i, lane] = drawn[of_image[i], lane]


@kernel
def add_lanes(off: Any, image: Any, counts: Any, weights: Any, totals: Any) -> None:
    """Weighted counts of each class: objects, or images.

    off (K + 1,); image (n,) int32; counts (n, A) float64; weights (I, L); out: totals (K, A, L).
    Source: none; a sum.
    """
    totals[:] = 0.0
    for k in range(off.size - 1):
        for i in range(off[k], off[k + 1]):
            for a in range(counts.shape[1]):
                if counts[i, a] != 0.0:
                    for lane in range(LANES):
                        totals[k, a, lane] += counts[i, a] * weights[image[i], lane]


@kernel
def unpack(low: Any, high: Any, sums: Any) -> None:
    """Add 16 numbers of 8 bits to sums (L,). Source: none; a sum."""
    for lane in range(LANES // 2):
        shift = np.uint64(8 * lane)
        sums[lane] += float(np.int64((low >> shift) & np.uint64(255)))
        sums[LANES // 2 + lane] += float(np.int64((high >> shift) & np.uint64(255)))


@kernel
def rank_lanes(cell: Any, steps: Any, weights: Any, state: Any) -> None:
    """Weight of each event of a cell, and of all rows up to and with it that count at all
    thresholds.

    out: state.events, the weight of all rows in the first L columns, then the weight.

    Source: as `find_weighted`, lane by lane.
    """
    sums, room = state.sums, weights.room
    sums[:] = 0.0
    row, first = steps.row_off[cell], steps.event_off[cell]
    for e in range(steps.event_off[cell + 1] - first):
        end = steps.upto[first + e]
        while row < end:
            low, high = np.uint64(0), np.uint64(0)
            stop = min(end, row + room)
            for r in range(row, stop):
                low += weights.packed[steps.row[r], 0]
                high += weights.packed[steps.row[r], 1]
            unpack(low, high, sums)
            row = stop
        i = steps.event[first + e]
        for lane in range(LANES):
            state.events[e, lane] = sums[lane]
            state.events[e, LANES + lane] = weights.lanes[i, lane]


@kernel
def count_lanes(begin: Any, end: Any, first: Any, steps: Any, weights: Any, state: Any) -> None:
    """Weight of the true positives of a cell at a threshold, and of its rows that are ignored at
    another.

    begin, end, its steps; first, the first event of the cell; out: TRUE_AT and PARTLY_AT of
    state.cell. Source: as `find_weighted`, lane by lane.
    """
    state.sums[:] = 0.0
    for lane in range(LANES):
        state.cell[PARTLY_AT + lane] = 0.0
    at = begin
    while at < end:
        low, high = np.uint64(0), np.uint64(0)
        stop = min(end, at + weights.room)
        for s in range(at, stop):
            e = steps.step[s] >> 2
            if steps.step[s] & TRUE:
                i = steps.event[first + e]
                low += weights.packed[i, 0]
                high += weights.packed[i, 1]
            if steps.step[s] & PARTLY:
                for lane in range(LANES):
                    state.cell[PARTLY_AT + lane] += state.events[e, LANES + lane]
        unpack(low, high, state.sums)
        at = stop
    for lane in range(LANES):
        state.cell[TRUE_AT + lane] = state.sums[lane]


@kernel
def rise_lanes(event: Any, epsilon: float, cell: Any) -> None:
    """Add the precisions of a run of true positives of whole weight.

    event (2 * L,), a row of `Lanes.events`; in and out: cell. Source: the definition of average
    precision, as `weighted.rise`.
    """
    for lane in range(LANES):
        c = cell[TRUE_AT + lane]
        false = event[lane] + cell[PARTLY_AT + lane] - c + epsilon
        for j in range(int(event[LANES + lane])):
            cell[TOTAL + lane] += (c - j) / (c - j + false)
        cell[TRUE_AT + lane] = c - event[LANES + lane]


@kernel
def area_lanes(event: Any, epsilon: float, cell: Any) -> None:
    """Add the area under the envelope that a run of true positives covers.

    As `rise_lanes`. Source: VOCap.m, on a file in which images are repeated.
    """
    for lane in range(LANES):
        c, weight = cell[TRUE_AT + lane], event[LANES + lane]
        ranked = event[lane] + cell[PARTLY_AT + lane] + epsilon
        highest = max(cell[ENVELOPE + lane], c / max(ranked, 1e-300))
        cell[ENVELOPE + lane] = highest
        cell[TOTAL + lane] += highest * weight
        cell[TRUE_AT + lane] = c - weight


@inline_kernel
def points_reached(n_true: float, n_objects: float, grid: Any) -> Any:
    """How many of the recall points some true positives reach.

    It is counted without a table and without a branch: a guess, which is wrong by one point at
    most, and whether this point and the next are reached. Source: COCOeval.accumulate, on a file in
    which images are repeated.
    """
    recall = n_true / n_objects
    guess = float(np.int32(min(grid.n_points - 2.0, recall * grid.density)))
    more = (1.0 if (guess + 1.0) * grid.step <= recall else 0.0) + (
        1.0 if guess * grid.step <= recall else 0.0
    )
    return (guess + more) * (1.0 if n_true > 0.0 else 0.0)


@kernel
def points_lanes(event: Any, grid: Any, epsilon: float, cell: Any) -> None:
    """Add the envelope at the recall points that a run of true positives reaches.

    As `rise_lanes`. Source: as `points_reached`.
    """
    for lane in range(LANES):
        c = cell[TRUE_AT + lane]
        ranked = event[lane] + cell[PARTLY_AT + lane] + epsilon
        highest = max(cell[ENVELOPE + lane], c / max(ranked, 1e-300))
        cell[ENVELOPE + lane] = highest
        before = c - event[LANES + lane]
        cell[TRUE_AT + lane] = before
        points = points_reached(before, cell[OBJECTS + lane], grid)
        cell[TOTAL + lane] += highest * (cell[REACHED + lane] - points)
        cell[REACHED + lane] = points


@kernel
def start_lanes(n_objects: Any, grid: Any, cell: Any) -> None:
    """The state behind the last true positive, after `count_lanes`.

    n_objects (L,); out: cell. Source: as `points_reached`.
    """
    for lane in range(LANES):
        n = max(n_objects[lane], 1e-300)
        cell[OBJECTS + lane] = n
        cell[ENVELOPE + lane], cell[TOTAL + lane] = 0.0, 0.0
        n_true = cell[TRUE_AT + lane]
        cell[REACHED + lane] = points_reached(n_true, n, grid) if grid.n_points > 0 else 0.0


@kernel
def integrate_lanes(
    place: Any,
    first: Any,
    steps: Any,
    weights: Any,
    n_objects: Any,
    rule: Any,
    grid: Any,
    state: Any,
) -> None:
    """AP of a cell at a threshold, after `rank_lanes`; it is in state.cell, TOTAL.

    place, of the threshold in steps.step_off; first, the first event of the cell; n_objects (L,),
    at least 1; AP of an area without objects means nothing.

    Source: as `score_weighted_classes`, lane by lane.
    """
    cell = state.cell
    at, end = steps.step_off[place], steps.step_off[place + 1]
    count_lanes(at, end, first, steps, weights, state)
    start_lanes(n_objects, grid, cell)
    for back in range(end - at):
        step = steps.step[end - 1 - back]
        event = state.events[step >> 2]
        if step & TRUE:
            if grid.n_points > 0:
                points_lanes(event, grid, rule.epsilon, cell)
            elif rule.code == ALL_POINTS:
                area_lanes(event, rule.epsilon, cell)
            elif rule.code == STEP:
                rise_lanes(event, rule.epsilon, cell)
        if step & PARTLY:
            for lane in range(LANES):
                cell[PARTLY_AT + lane] -= event[LANES + lane]
    for lane in range(LANES):
        size = float(grid.n_points) if grid.n_points > 0 else n_objects[lane]
        if size > 0.0:  # the sign of 0/0 depends on the processor
            cell[TOTAL + lane] /= size


@kernel
def replicate_classes(
    steps: Any,
    weights: Any,
    n_objects: Any,
    n_true: Any,
    rule: Any,
    grid: Any,
    readings: Any,
    state: Any,
    values: Any,
) -> None:
    """AP and recall of all classes in L replicates, averaged over the thresholds of each reading.

    steps: `Steps`; weights: `Weights`; n_objects (K, A, L); n_true (K, S, L), sums of true
    positives over the thresholds of each reading of recall; readings: `Readings`; out: values
    (K, S, L), NaN where the class has no object in the area. Source: as `score_weighted_classes`,
    lane by lane; COCOeval.accumulate, ``recall[t,k,a,m] = rc[-1]``.
    """
    n_classes, n_areas = n_objects.shape[0], n_objects.shape[1]
    n_thresholds = (steps.step_off.size - 1) // (n_classes * n_areas)
    for k in range(n_classes):
        for s in range(readings.area.size):
            for lane in range(LANES):
                values[k, s, lane] = n_true[k, s, lane] if readings.limit[s] >= 0 else 0.0
        for a in range(n_areas):
            cell = k * n_areas + a
            rank_lanes(cell, steps, weights, state)
            for t in range(n_thresholds):
                place, first = cell * n_thresholds + t, steps.event_off[cell]
                integrate_lanes(place, first, steps, weights, n_objects[k, a], rule, grid, state)
                for s in range(readings.area.size):
                    bit = (readings.words[s] >> np.uint64(t)) & np.uint64(1)
                    if readings.area[s] == a and readings.limit[s] < 0 and bit:
                        for lane in range(LANES):
                            values[k, s, lane] += state.cell[TOTAL + lane]
        for s in range(readings.area.size):
            n = count_bits(readings.words[s])
            for lane in range(LANES):
                size = n_objects[k, readings.area[s], lane]
                none = size <= 0.0 or n == 0.0  # the sign of 0/0 depends on the processor
                n_all = n * size if readings.limit[s] >= 0 else n
                values[k, s, lane] = np.nan if none else values[k, s, lane] / n_all
