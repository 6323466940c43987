"""Precision-recall curves of ranked match results, stored at true positives only, and their AP.

Recall rises only at a true positive, and precision only falls between two of them. So the true
positives determine the envelope and every integral over recall.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.kernels import kernel
from detmap.kernels.integrate import envelop, integrate
from detmap.kernels.ranked import recall_precision


class Ranked(NamedTuple):
    """Match results by class, by descending score: off (K + 1,), tp and ignored (D, A) words, rank
    (D,) in image and class.
    """

    off: NDArray[np.int64]
    tp: NDArray[np.unsignedinteger[Any]]
    ignored: NDArray[np.unsignedinteger[Any]]
    rank: NDArray[np.int32]


class TruePositives(NamedTuple):
    """The curves of one class, of up to P true positives: at least the number of counted objects.

    false_before (A, T, P), number of false positives before each true positive; row (A, T, P), its
    row in the class, or (A, T, 0) if not needed; n_tp, n_fp (A, T); n_always_fp (A,) is scratch
    space.
    """

    false_before: NDArray[np.int32]
    row: NDArray[np.int32]
    n_tp: NDArray[np.int64]
    n_fp: NDArray[np.int64]
    n_always_fp: NDArray[np.int64]


class Integrator(NamedTuple):
    """The AP interpolation: index of the rule, its recall points (R,), epsilon in the denominator
    of precision.
    """

    code: int
    points: NDArray[np.float64]
    epsilon: float


class Summary(NamedTuple):
    """The output: place (K,), the index of a class among the J with an object, else -1; for these
    terms (J, A, T, R), whose mean is AP, and n_within (J, M, A, T); for all n_tp, n_fp (K, A, T).
    """

    place: NDArray[np.int64]
    terms: NDArray[np.float64]
    n_tp: NDArray[np.int64]
    n_fp: NDArray[np.int64]
    n_within: NDArray[np.int64]


def empty_true_positives(
    n_areas: int, n_thresholds: int, most: int, *, rows: bool = False
) -> TruePositives:
    """Arrays for the curves of a class with up to `most` true positives, and their rows."""
    shape = (n_areas, n_thresholds)
    return TruePositives(
        np.empty((*shape, most), np.int32),
        np.empty((*shape, most if rows else 0), np.int32),
        np.empty(shape, np.int64),
        np.empty(shape, np.int64),
        np.empty(n_areas, np.int64),
    )


@kernel
def find_true_positives(k: Any, ranked: Any, limit: Any, curves: Any) -> None:
    """Find the true positives of each of a class's curves in the ranked list; rows of rank `limit`
    or more are left out.

    Source: COCOeval.accumulate, cumsum of dtm and of its complement, without ignored detections.
    """
    n_areas, n_thresholds = curves.n_tp.shape
    zero = np.uint64(0)
    full = ~zero >> np.uint64(64 - n_thresholds)
    curves.n_tp[:] = 0
    curves.n_fp[:] = 0
    curves.n_always_fp[:] = 0  # rows that are false positives at every threshold
    keeps_rows = curves.row.size > 0
    for r in range(ranked.off[k], ranked.off[k + 1]):
        if ranked.rank[r] >= limit:
            continue
        for a in range(n_areas):
            hits, ignored = np.uint64(ranked.tp[r, a]), np.uint64(ranked.ignored[r, a])
            curves.n_always_fp[a] += (hits | ignored) == zero
            if hits == zero and ignored in (zero, full):
                continue
            for t in range(n_thresholds):
                bit = np.uint64(1) << np.uint64(t)
                if hits & bit:
                    i = curves.n_tp[a, t]
                    curves.false_before[a, t, i] = curves.n_always_fp[a] + curves.n_fp[a, t]
                    if keeps_rows:
                        curves.row[a, t, i] = r - ranked.off[k]
                    curves.n_tp[a, t] = i + 1
                elif not ignored & bit:
                    curves.n_fp[a, t] += 1
    for a in range(n_areas):
        for t in range(n_thresholds):
            curves.n_fp[a, t] += curves.n_always_fp[a]


@kernel
def count_within(k: Any, ranked: Any, limits: Any, n_within: Any) -> None:
    """True positives of a class within each detection limit.

    limits (M,) int64, ascending; out: n_within (M, A, T) int64. Source: COCOeval.accumulate,
    ``dtMatches[:, 0:maxDet]``.
    """
    n_limits, n_areas, n_thresholds = n_within.shape
    n_within[:] = 0
    for r in range(ranked.off[k], ranked.off[k + 1]):
        any_hit = np.uint64(0)
        for a in range(n_areas):
            any_hit |= np.uint64(ranked.tp[r, a])
        if any_hit == np.uint64(0):
            continue
        m = 0
        while m < n_limits and ranked.rank[r] >= limits[m]:
            m += 1
        if m == n_limits:
            continue
        for a in range(n_areas):
            hits = np.uint64(ranked.tp[r, a])
            for t in range(n_thresholds):
                if hits & (np.uint64(1) << np.uint64(t)):
                    n_within[m, a, t] += 1
    for m in range(1, n_limits):
        for a in range(n_areas):
            for t in range(n_thresholds):
                n_within[m, a, t] += n_within[m - 1, a, t]


@kernel
def curve_at_true_positives(
    false_before: Any, n_tp: Any, n_objects: Any, epsilon: Any, recall: Any, precision: Any
) -> None:
    """Recall and precision at the true positives of one curve.

    Out: recall, precision (n_tp or more,). Source: `recall_precision`, rank by rank.
    """
    for i in range(n_tp):
        recall[i], precision[i] = recall_precision(
            float(i + 1), float(false_before[i]), float(n_objects), epsilon
        )


@kernel
def score_classes(
    classes: Any,
    ranked: Any,
    n_objects: Any,
    limits: Any,
    rule: Any,
    curves: Any,
    recall: Any,
    precision: Any,
    summary: Any,
) -> None:
    """Integrate all curves of some classes.

    classes (n,) int32; n_objects (K, A) int64 to find; limits (M,) int64, ascending; curves,
    recall and precision (P,) are scratch space; the terms of an area without objects are left as
    they are. Source: COCOeval.accumulate and VOCevaldet.m, whose loops over classes these are.
    """
    for c in range(classes.size):
        k = classes[c]
        find_true_positives(k, ranked, limits[limits.size - 1], curves)
        place = summary.place[k]
        if place >= 0:
            count_within(k, ranked, limits, summary.n_within[place])
        for a in range(n_objects.shape[1]):
            for t in range(curves.n_tp.shape[1]):
                n = curves.n_tp[a, t]
                summary.n_tp[k, a, t], summary.n_fp[k, a, t] = n, curves.n_fp[a, t]
                if n_objects[k, a] > 0:
                    curve_at_true_positives(
                        curves.false_before[a, t],
                        n,
                        n_objects[k, a],
                        rule.epsilon,
                        recall,
                        precision,
                    )
                    integrate(
                        rule.code,
                        recall[:n],
                        precision[:n],
                        rule.points,
                        summary.terms[place, a, t],
                    )


class Samples(NamedTuple):
    """The arrays of pycocotools: precision and score (T, R, K, A, M), recall (T, K, A, M)."""

    precision: NDArray[np.float64]
    score: NDArray[np.float64]
    recall: NDArray[np.float64]


@kernel
def first_within(k: Any, ranked: Any, limit: Any) -> Any:
    """The first row of a class whose rank is below `limit`; -1 if there is none.

    Source: none; a search.
    """
    for r in range(ranked.off[k], ranked.off[k + 1]):
        if ranked.rank[r] < limit:
            return r
    return -1


@kernel
def sample_classes(
    classes: Any,
    ranked: Any,
    score: Any,
    n_objects: Any,
    limits: Any,
    rule: Any,
    curves: Any,
    recall: Any,
    precision: Any,
    samples: Any,
) -> None:
    """Precision, score and recall of all curves of some classes at each recall point and within
    each detection limit.

    Source: COCOeval.accumulate. Recall 0 is reached by the first detection, whatever its verdict.
    From the first point on that is not reached, precision and score are 0: in ascending points none
    is reached behind it.

    classes (n,) int32; score (D,) float64; n_objects (K, A) int64; limits (M,) int64; rule: an
    `Integrator`, of which the points and epsilon are used; curves, recall and precision (P,) are
    scratch space; out: `samples`, where there is an object to find.
    """
    n_areas, n_thresholds = curves.n_tp.shape
    points = rule.points
    for c in range(classes.size):
        k = classes[c]
        for m in range(limits.size):
            find_true_positives(k, ranked, limits[m], curves)
            first = first_within(k, ranked, limits[m])
            for a in range(n_areas):
                if n_objects[k, a] == 0:
                    continue
                for t in range(n_thresholds):
                    n = curves.n_tp[a, t]
                    curve_at_true_positives(
                        curves.false_before[a, t],
                        n,
                        n_objects[k, a],
                        rule.epsilon,
                        recall,
                        precision,
                    )
                    envelop(precision[:n])
                    samples.recall[t, k, a, m] = float(n) / float(n_objects[k, a])
                    i, reached = 0, first >= 0
                    for r in range(points.size):
                        if r > 0 and points[r] < points[r - 1]:
                            i = 0
                        while i < n and recall[i] < points[r]:
                            i += 1
                        reached = reached and (i < n or points[r] <= 0.0)
                        samples.precision[t, r, k, a, m] = (
                            precision[i] if reached and i < n else 0.0
                        )
                        if not reached:
                            samples.score[t, r, k, a, m] = 0.0
                        elif points[r] <= 0.0:
                            samples.score[t, r, k, a, m] = score[first]
                        else:
                            samples.score[t, r, k, a, m] = score[
                                ranked.off[k] + curves.row[a, t, i]
                            ]
