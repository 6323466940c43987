"""Replicates of all cells of a class: L replicates in parallel lanes, in two passes over the ranked
rows.

The forward pass adds the weights; the backward pass subtracts them row by row, while the envelope
grows from the end. So nothing is stored per true positive. Each lane has its own sum in the same
order.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.kernels import kernel
from detmap.kernels.digest import finalise
from detmap.kernels.integrate import ALL_POINTS, STEP

LANES = 16
GOLDEN = 0x9E3779B97F4A7C15


class Lanes(NamedTuple):
    """The state of a class: weights (L,) of the false positives at every threshold, always_fp
    (A, L); of the others and of true positives, fp and tp (A, T, L); the envelope, the recall
    points reached, and the sum, (A, T, L) each.
    """

    always_fp: NDArray[np.float64]
    fp: NDArray[np.float64]
    tp: NDArray[np.float64]
    envelope: NDArray[np.float64]
    reached: NDArray[np.float64]
    total: NDArray[np.float64]


class Grid(NamedTuple):
    """Recall points 0, step, 2 step ...: how many, and the step; 0 points for a rule without."""

    n_points: int
    step: float


class Readings(NamedTuple):
    """S readings of each class: area (S,) int64; words (S,) uint64, one bit per averaged threshold;
    limit (S,) int64, -1 for AP, else the detection limit of a recall.
    """

    area: NDArray[np.int64]
    words: NDArray[np.uint64]
    limit: NDArray[np.int64]


def empty_lanes(n_areas: int, n_thresholds: int) -> Lanes:
    """The state of a class."""
    shape = (n_areas, n_thresholds, LANES)
    return Lanes(np.empty((n_areas, LANES)), *(np.empty(shape) for _ in range(5)))


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
def count_lanes(k: Any, ranked: Any, image: Any, weights: Any, state: Any) -> None:
    """Weights of all true and false positives of a class, in every cell.

    Source: as `find_weighted`, lane by lane.
    """
    n_areas, n_thresholds = state.tp.shape[0], state.tp.shape[1]
    zero = np.uint64(0)
    full = ~zero >> np.uint64(64 - n_thresholds)
    always_fp, fp, tp = state.always_fp, state.fp, state.tp
    always_fp[:] = 0.0
    fp[:] = 0.0
    tp[:] = 0.0
    for r in range(ranked.off[k], ranked.off[k + 1]):
        i = image[r]
        for a in range(n_areas):
            hits, ignored = np.uint64(ranked.tp[r, a]), np.uint64(ranked.ignored[r, a])
            if (hits | ignored) == zero:
                for lane in range(LANES):
                    always_fp[a, lane] += weights[i, lane]
            elif hits != zero or ignored != full:
                for t in range(n_thresholds):
                    bit = np.uint64(1) << np.uint64(t)
                    if hits & bit:
                        for lane in range(LANES):
                            tp[a, t, lane] += weights[i, lane]
                    elif not ignored & bit:
                        for lane in range(LANES):
                            fp[a, t, lane] += weights[i, lane]


@kernel
def rise_lanes(tp: Any, always_fp: Any, fp: Any, weight: Any, epsilon: float, total: Any) -> None:
    """Add the precisions of a run of true positives of whole weight, all arrays (L,).

    Source: the definition of average precision, as `weighted.rise`.
    """
    for lane in range(LANES):
        false = always_fp[lane] + fp[lane] + epsilon
        for j in range(int(weight[lane])):
            total[lane] += (tp[lane] - j) / (tp[lane] - j + false)


@kernel
def area_lanes(
    tp: Any, always_fp: Any, fp: Any, weight: Any, epsilon: float, envelope: Any, total: Any
) -> None:
    """Add the area under the envelope that a run of true positives covers, all arrays (L,).

    Source: VOCap.m, on a file in which images are repeated.
    """
    for lane in range(LANES):
        c = tp[lane]
        ranked = c + always_fp[lane] + fp[lane] + epsilon
        highest = max(envelope[lane], c / max(ranked, 1e-300))
        envelope[lane] = highest
        total[lane] += highest * weight[lane]


@kernel
def points_lanes(
    tp: Any,
    always_fp: Any,
    fp: Any,
    weight: Any,
    n_objects: Any,
    grid: Any,
    epsilon: float,
    envelope: Any,
    reached: Any,
    total: Any,
) -> None:
    """Add the envelope at the recall points that a run of true positives reaches, all arrays (L,).

    How many points are reached is counted without a table: a guess, and whether the next two are
    reached too. Source: COCOeval.accumulate, on a file in which images are repeated.
    """
    last, step = float(grid.n_points - 1), grid.step
    for lane in range(LANES):
        c = tp[lane]
        ranked = c + always_fp[lane] + fp[lane] + epsilon
        highest = max(envelope[lane], c / max(ranked, 1e-300))
        envelope[lane] = highest
        before = c - weight[lane]
        recall = before / max(n_objects[lane], 1e-300)
        guess = float(np.int32(recall * last))
        more = (1.0 if (guess + 1.0) * step <= recall else 0.0) + (
            1.0 if guess * step <= recall else 0.0
        )
        points = min(guess + more, last + 1.0) if before > 0.0 else 0.0
        total[lane] += highest * (reached[lane] - points)
        reached[lane] = points


@kernel
def start_lanes(tp: Any, n_objects: Any, grid: Any, reached: Any) -> None:
    """Recall points that the last true positive reaches, all arrays (L,).

    Source: as `points_lanes`.
    """
    last, step = float(grid.n_points - 1), grid.step
    for lane in range(LANES):
        recall = tp[lane] / max(n_objects[lane], 1e-300)
        guess = float(np.int32(recall * last))
        more = (1.0 if (guess + 1.0) * step <= recall else 0.0) + (
            1.0 if guess * step <= recall else 0.0
        )
        reached[lane] = min(guess + more, last + 1.0) if tp[lane] > 0.0 else 0.0


@kernel
def integrate_lanes(
    k: Any, ranked: Any, image: Any, weights: Any, n_objects: Any, rule: Any, grid: Any, state: Any
) -> None:
    """AP of every cell of a class, from the state that `count_lanes` left; it is in state.total.

    n_objects (A, L), at least 1; AP of an area without objects means nothing.

    Source: as `score_weighted_classes`, lane by lane.
    """
    n_areas, n_thresholds = state.tp.shape[0], state.tp.shape[1]
    zero = np.uint64(0)
    full = ~zero >> np.uint64(64 - n_thresholds)
    state.envelope[:] = 0.0
    state.total[:] = 0.0
    if grid.n_points > 0:
        for a in range(n_areas):
            for t in range(n_thresholds):
                start_lanes(state.tp[a, t], n_objects[a], grid, state.reached[a, t])
    for back in range(ranked.off[k + 1] - ranked.off[k]):
        r = ranked.off[k + 1] - 1 - back
        weight = weights[image[r]]
        for a in range(n_areas):
            hits, ignored = np.uint64(ranked.tp[r, a]), np.uint64(ranked.ignored[r, a])
            always_fp = state.always_fp[a]
            if (hits | ignored) == zero:
                for lane in range(LANES):
                    always_fp[lane] -= weight[lane]
                continue
            if hits == zero and ignored == full:
                continue
            for t in range(n_thresholds):
                bit = np.uint64(1) << np.uint64(t)
                tp, fp, total = state.tp[a, t], state.fp[a, t], state.total[a, t]
                if hits & bit:
                    if grid.n_points > 0:
                        points_lanes(
                            tp,
                            always_fp,
                            fp,
                            weight,
                            n_objects[a],
                            grid,
                            rule.epsilon,
                            state.envelope[a, t],
                            state.reached[a, t],
                            total,
                        )
                    elif rule.code == ALL_POINTS:
                        area_lanes(
                            tp, always_fp, fp, weight, rule.epsilon, state.envelope[a, t], total
                        )
                    elif rule.code == STEP:
                        rise_lanes(tp, always_fp, fp, weight, rule.epsilon, total)
                    for lane in range(LANES):
                        tp[lane] -= weight[lane]
                elif not ignored & bit:
                    for lane in range(LANES):
                        fp[lane] -= weight[lane]
    for a in range(n_areas):
        for t in range(n_thresholds):
            for lane in range(LANES):
                size = float(grid.n_points) if grid.n_points > 0 else n_objects[a, lane]
                if size > 0.0:  # the sign of 0/0 depends on the processor
                    state.total[a, t, lane] /= size


@kernel
def recall_lanes(
    k: Any, ranked: Any, image: Any, weights: Any, n_objects: Any, readings: Any, values: Any
) -> None:
    """Recall of a class in L replicates, averaged over the thresholds of each reading of recall.

    As `replicate_classes`, values (S, L). Source: COCOeval.accumulate, ``recall[t,k,a,m] =
    rc[-1]``.
    """
    for s in range(readings.area.size):
        if readings.limit[s] < 0:
            continue
        a, n = readings.area[s], 0.0
        out = values[s]
        out[:] = 0.0
        for t in range(64):
            n += float((readings.words[s] >> np.uint64(t)) & np.uint64(1))
        for r in range(ranked.off[k], ranked.off[k + 1]):
            hits = np.uint64(ranked.tp[r, a]) & readings.words[s]
            if hits == np.uint64(0) or ranked.rank[r] >= readings.limit[s]:
                continue
            count = 0.0
            while hits != np.uint64(0):
                hits &= hits - np.uint64(1)
                count += 1.0
            for lane in range(LANES):
                out[lane] += count * weights[image[r], lane]
        for lane in range(LANES):
            none = n_objects[a, lane] <= 0.0
            out[lane] = np.nan if none else out[lane] / (n * n_objects[a, lane])


@kernel
def replicate_classes(
    classes: Any,
    ranked: Any,
    image: Any,
    weights: Any,
    n_objects: Any,
    rule: Any,
    grid: Any,
    readings: Any,
    state: Any,
    values: Any,
) -> None:
    """AP and recall of some classes in L replicates, averaged over the thresholds of each reading.

    classes (n,) int32; n_objects (K, A, L); readings: a `Readings`; out: values (K, S, L), NaN
    where the class has no object in the area. Source: as `score_weighted_classes`, lane by lane.
    """
    for c in range(classes.size):
        k = classes[c]
        recall_lanes(k, ranked, image, weights, n_objects[k], readings, values[k])
        count_lanes(k, ranked, image, weights, state)
        integrate_lanes(k, ranked, image, weights, n_objects[k], rule, grid, state)
        for s in range(readings.area.size):
            if readings.limit[s] >= 0:
                continue
            a, n = readings.area[s], 0.0
            values[k, s, :] = 0.0
            for t in range(state.tp.shape[1]):
                if (readings.words[s] >> np.uint64(t)) & np.uint64(1):
                    n += 1.0
                    for lane in range(LANES):
                        values[k, s, lane] += state.total[a, t, lane]
            for lane in range(LANES):
                none = (
                    n_objects[k, a, lane] <= 0.0 or n == 0.0
                )  # the sign of 0/0 depends on the processor
                values[k, s, lane] = np.nan if none else values[k, s, lane] / n
