"""Curves over all orders of tied scores.

Within each group of tied scores the true positives come first, or the false positives: then the
fewest, or the most, false positives precede every true positive, so every integral is at its bound.
For a random order the step AP has a closed form.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from detmap.kernels import kernel
from detmap.kernels.curves import curve_at_true_positives
from detmap.kernels.integrate import integrate


@kernel
def end_of_group(r: Any, end: Any, score: Any) -> Any:
    """The first row after r, before `end`, with another score than r. Source: none; a search."""
    last = r + 1
    while last < end and score[last] == score[r]:
        last += 1
    return last


@kernel
def has_hits(first: Any, last: Any, tp: Any) -> bool:
    """Whether one of these rows is a true positive at any threshold. Source: none; a search."""
    for r in range(first, last):
        for a in range(tp.shape[1]):
            if tp[r, a] != np.uint64(0):
                return True
    return False


@kernel
def is_open(k: Any, ranked: Any, score: Any) -> bool:
    """Whether the order of tied scores can change a curve of a class: one of them is a true
    positive where another has another result. Source: none; a search.
    """
    first, end = ranked.off[k], ranked.off[k + 1]
    while first < end:
        last = end_of_group(first, end, score)
        if last > first + 1 and has_hits(first, last, ranked.tp):
            for r in range(first + 1, last):
                for a in range(ranked.tp.shape[1]):
                    if (
                        ranked.tp[r, a] != ranked.tp[first, a]
                        or ranked.ignored[r, a] != ranked.ignored[first, a]
                    ):
                        return True
        first = last
    return False


@kernel
def find_in_extreme_orders(k: Any, ranked: Any, score: Any, best: Any, worst: Any) -> None:
    """`find_true_positives` with the true positives of each group of equal scores first, in best,
    and last, in worst.

    score (D,) float64; both `row` and the counts of worst's false ones are left alone. Source:
    study of statistics, section 3; twin: enumeration of all orders in
    tests/statistics/test_ties.py.
    """
    n_areas, n_thresholds = best.n_tp.shape
    zero = np.uint64(0)
    best.n_tp[:] = 0
    worst.n_tp[:] = 0
    best.n_fp[:] = 0
    best.n_always_fp[:] = 0
    full = ~zero >> np.uint64(64 - n_thresholds)
    first, end = ranked.off[k], ranked.off[k + 1]
    while first < end:
        last = end_of_group(first, end, score)
        alone = last == first + 1 or not has_hits(first, last, ranked.tp)  # any order will do
        for turn in range(1 if alone else 2):
            early, false_ones = alone or turn == 0, alone or turn == 1
            for r in range(first, last):
                for a in range(n_areas):
                    hits, ignored = np.uint64(ranked.tp[r, a]), np.uint64(ranked.ignored[r, a])
                    if (hits | ignored) == zero:
                        best.n_always_fp[a] += false_ones
                        continue
                    if hits == zero and (ignored == full or not false_ones):
                        continue
                    for t in range(n_thresholds):
                        bit = np.uint64(1) << np.uint64(t)
                        if hits & bit:
                            n_false = best.n_always_fp[a] + best.n_fp[a, t]
                            if early:
                                best.false_before[a, t, best.n_tp[a, t]] = n_false
                                best.n_tp[a, t] += 1
                            if alone:
                                worst.false_before[a, t, worst.n_tp[a, t]] = n_false
                                worst.n_tp[a, t] += 1
                        elif false_ones and not ignored & bit:
                            best.n_fp[a, t] += 1
        if (
            not alone
        ):  # in the worst order all false positives of the group precede its true positives
            for a in range(n_areas):
                for t in range(n_thresholds):
                    n_false = best.n_always_fp[a] + best.n_fp[a, t]
                    for i in range(worst.n_tp[a, t], best.n_tp[a, t]):
                        worst.false_before[a, t, i] = n_false
                    worst.n_tp[a, t] = best.n_tp[a, t]
        first = last


@kernel
def score_extreme_orders(
    classes: Any,
    ranked: Any,
    score: Any,
    n_objects: Any,
    rule: Any,
    best: Any,
    worst: Any,
    recall: Any,
    precision: Any,
    place: Any,
    low: Any,
    high: Any,
) -> None:
    """`score_classes` in the worst and in the best order of equal scores; out: low and high
    (J, A, T, R), left as they are where no order of a class changes them.

    Source: as `find_in_extreme_orders`.
    """
    for c in range(classes.size):
        k = classes[c]
        if place[k] < 0 or not is_open(k, ranked, score):
            continue
        find_in_extreme_orders(k, ranked, score, best, worst)
        for a in range(n_objects.shape[1]):
            for t in range(best.n_tp.shape[1]):
                n, sought = best.n_tp[a, t], n_objects[k, a]
                if sought > 0:
                    for is_best in range(2):
                        before = best.false_before[a, t] if is_best else worst.false_before[a, t]
                        terms = high[place[k], a, t] if is_best else low[place[k], a, t]
                        curve_at_true_positives(before, n, sought, rule.epsilon, recall, precision)
                        integrate(rule.code, recall[:n], precision[:n], rule.points, terms)


@kernel
def expect_step(
    classes: Any, ranked: Any, score: Any, n_objects: Any, rule: Any, place: Any, terms: Any
) -> None:
    """Expected step AP for a random order of tied scores.

    A group of g rows with p true positives, after c true and f false positives, adds the sum over
    its positions q of (p / g) * (c + 1 + (q - 1)(p - 1) / (g - 1)) / (c + f + q). Out: terms (J, A,
    T, 1).

    Source: McSherry and Najork, ECIR 2008.
    """
    for i in range(classes.size):
        k = classes[i]
        if place[k] < 0:
            continue
        for a in range(n_objects.shape[1]):
            if n_objects[k, a] <= 0:
                continue
            for t in range(terms.shape[2]):
                bit = np.uint64(1) << np.uint64(t)
                total, c, f = 0.0, 0.0, 0.0
                first, end = ranked.off[k], ranked.off[k + 1]
                while first < end:
                    last, p, g = first, 0.0, 0.0
                    while last < end and score[last] == score[first]:
                        hit = (np.uint64(ranked.tp[last, a]) & bit) != np.uint64(0)
                        excused = (np.uint64(ranked.ignored[last, a]) & bit) != np.uint64(0)
                        p += 1.0 if hit else 0.0
                        g += 0.0 if excused else 1.0
                        last += 1
                    if p > 0.0:
                        q = 1.0
                        while q <= g:
                            others = (q - 1.0) * (p - 1.0) / max(g - 1.0, 1.0)
                            total += p / g * (c + 1.0 + others) / (c + f + q + rule.epsilon)
                            q += 1.0
                    c += p
                    f += g - p
                    first = last
                terms[place[k], a, t, 0] = total / float(n_objects[k, a])
