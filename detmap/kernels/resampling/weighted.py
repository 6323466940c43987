"""Weighted curves: each image has a weight, integer or not; match results do not change.

A row of weight w counts as w equal rows in its place, an object of weight w as w objects. A file
with repeated images ranks whole copies instead: ties of one class inside an image have another
order there (docs/statistics.md). In a run of w true positives precision rises, so a rule with an
envelope needs only the end of the run.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.kernels import kernel
from detmap.kernels.integrate import STEP, integrate
from detmap.kernels.ranked import recall_precision


class WeightedPositives(NamedTuple):
    """The curves of one class, of up to P rows with a true positive and a weight.

    false_before and true_at (A, T, P): weight of the false positives ranked before each, and of the
    true positives up to and with it; n_rows (A, T) how many there are; n_tp, n_fp (A, T) their
    weight, n_always_fp (A,) scratch space.
    """

    false_before: NDArray[np.float64]
    true_at: NDArray[np.float64]
    n_rows: NDArray[np.int64]
    n_tp: NDArray[np.float64]
    n_fp: NDArray[np.float64]
    n_always_fp: NDArray[np.float64]


class WeightedSummary(NamedTuple):
    """Like `curves.Summary`, with weights instead of counts."""

    place: NDArray[np.int64]
    terms: NDArray[np.float64]
    n_tp: NDArray[Any]
    n_fp: NDArray[Any]
    n_within: NDArray[Any]


def empty_weighted(n_areas: int, n_thresholds: int, most: int) -> WeightedPositives:
    """Arrays for the curves of a class with up to `most` true positives."""
    shape = (n_areas, n_thresholds)
    return WeightedPositives(
        np.empty((*shape, most)),
        np.empty((*shape, most)),
        np.empty(shape, np.int64),
        np.empty(shape),
        np.empty(shape),
        np.empty(n_areas),
    )


@kernel
def find_weighted(k: Any, ranked: Any, image: Any, weight: Any, curves: Any) -> None:
    """`find_true_positives` for rows with the weight of their image.

    image (D,) int32; weight (I,) float64, above 0. Source: COCOeval.accumulate on a file that
    repeats every image by its weight; reference implementation in tests/reference/weighted.py.
    """
    n_areas, n_thresholds = curves.n_tp.shape
    zero = np.uint64(0)
    full = ~zero >> np.uint64(64 - n_thresholds)
    curves.n_rows[:] = 0
    curves.n_tp[:] = 0.0
    curves.n_fp[:] = 0.0
    curves.n_always_fp[:] = 0.0
    for r in range(ranked.off[k], ranked.off[k + 1]):
        w = weight[image[r]]
        for a in range(n_areas):
            hits, ignored = np.uint64(ranked.tp[r, a]), np.uint64(ranked.ignored[r, a])
            if (hits | ignored) == zero:
                curves.n_always_fp[a] += w
            if hits == zero and ignored in (zero, full):
                continue
            for t in range(n_thresholds):
                bit = np.uint64(1) << np.uint64(t)
                if hits & bit:
                    i = curves.n_rows[a, t]
                    curves.n_tp[a, t] += w
                    curves.false_before[a, t, i] = curves.n_always_fp[a] + curves.n_fp[a, t]
                    curves.true_at[a, t, i] = curves.n_tp[a, t]
                    curves.n_rows[a, t] = i + 1
                elif not ignored & bit:
                    curves.n_fp[a, t] += w
    for a in range(n_areas):
        for t in range(n_thresholds):
            curves.n_fp[a, t] += curves.n_always_fp[a]


@kernel
def weigh_within(k: Any, ranked: Any, image: Any, weight: Any, limits: Any, n_within: Any) -> None:
    """Weight of the true positives of a class within each detection limit.

    limits (M,) int64, ascending; out: n_within (M, A, T) float64. Source: COCOeval.accumulate,
    ``dtMatches[:, 0:maxDet]``.
    """
    n_limits, n_areas, n_thresholds = n_within.shape
    n_within[:] = 0.0
    for r in range(ranked.off[k], ranked.off[k + 1]):
        for m in range(n_limits):
            if ranked.rank[r] >= limits[m]:
                continue
            for a in range(n_areas):
                hits = np.uint64(ranked.tp[r, a])
                if hits == np.uint64(0):
                    continue
                for t in range(n_thresholds):
                    if hits & (np.uint64(1) << np.uint64(t)):
                        n_within[m, a, t] += weight[image[r]]


@kernel
def rise(tp: float, fp: float, w: float) -> float:
    """Sum of the precisions in a run of w true positives that ends at `tp` of them, after `fp`
    false ones: sum over j of (tp - w + j) / (tp - w + j + fp), j from 1 to w.

    A weight that is not whole has that sum's one smooth continuation, w - fp * (psi(tp + fp + 1) -
    psi(tp - w + fp + 1)) with the digamma function psi. Source: the definition of average
    precision; Abramowitz and Stegun 6.3.5 and 6.3.18.
    """
    total, whole = 0.0, int(w)
    for j in range(whole):
        total += (tp - j) / (tp - j + fp)
    part = w - whole
    if part == 0.0 or fp == 0.0:
        return total + part
    x, difference = tp - w + fp + 1.0, 0.0
    while x < 24.0:  # psi(x) = psi(x + 1) - 1 / x
        difference += part / (x * (x + part))
        x += 1.0
    y = x + part
    z = part / (x + y)  # log(y / x) = 2 atanh(z)
    difference += 2.0 * z * (1.0 + z * z * (1.0 / 3.0 + z * z * (0.2 + z * z / 7.0)))
    u, v = 1.0 / (x * x), 1.0 / (y * y)
    difference += 0.5 * part / (x * y)
    difference += u * (1.0 / 12.0 - u * (1.0 / 120.0 - u * (1.0 / 252.0 - u / 240.0)))
    difference -= v * (1.0 / 12.0 - v * (1.0 / 120.0 - v * (1.0 / 252.0 - v / 240.0)))
    return total + part - fp * difference


@kernel
def weighted_step(
    true_at: Any, false_before: Any, n_rows: Any, n_objects: float, epsilon: float
) -> float:
    """AP by `step`: the sum of the precisions at all true positives, over the number of objects.

    Source: the definition of average precision, run by run (`rise`).
    """
    total, before = 0.0, 0.0
    for i in range(n_rows):
        total += rise(true_at[i], false_before[i] + epsilon, true_at[i] - before)
        before = true_at[i]
    return total / n_objects


@kernel
def score_weighted_classes(
    classes: Any,
    ranked: Any,
    image: Any,
    weight: Any,
    n_objects: Any,
    limits: Any,
    rule: Any,
    curves: Any,
    recall: Any,
    precision: Any,
    summary: Any,
) -> None:
    """`score_classes` with one weight per image.

    n_objects (K, A) float64, weight of the counted objects; recall, precision (P,) are scratch
    space. Source: as `score_classes`, on a file with repeated images.
    """
    for c in range(classes.size):
        k = classes[c]
        find_weighted(k, ranked, image, weight, curves)
        place = summary.place[k]
        if place >= 0:
            weigh_within(k, ranked, image, weight, limits, summary.n_within[place])
        for a in range(n_objects.shape[1]):
            for t in range(curves.n_tp.shape[1]):
                n = curves.n_rows[a, t]
                true_at, false_before = curves.true_at[a, t], curves.false_before[a, t]
                summary.n_tp[k, a, t] = curves.n_tp[a, t]
                summary.n_fp[k, a, t] = curves.n_fp[a, t]
                if n_objects[k, a] <= 0.0:
                    continue
                if rule.code == STEP:
                    summary.terms[place, a, t, 0] = weighted_step(
                        true_at, false_before, n, n_objects[k, a], rule.epsilon
                    )
                    continue
                for i in range(n):
                    recall[i], precision[i] = recall_precision(
                        true_at[i], false_before[i], n_objects[k, a], rule.epsilon
                    )
                integrate(
                    rule.code, recall[:n], precision[:n], rule.points, summary.terms[place, a, t]
                )
