"""Curves over the orders that equal scores leave open.

In each group of equal scores the true positives come first, or the false ones do: at every true
positive the fewest, or the most, false ones rank before it, whatever the cell; so every integral
is extremal. Under a random order the un-interpolated AP has a closed form.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from detmap.kernels import kernel
from detmap.kernels.curves import curve_at_true_positives
from detmap.kernels.integrate import integrate


@kernel
def find_in_extreme_order(k: Any, ranked: Any, score: Any, worst: Any, curves: Any) -> None:
    """`find_true_positives` with the true positives of each group of equal scores first, or, for
    `worst`, last.

    score (D,) float64; curves.row is left alone. Source: study of statistics, section 3; twin:
    enumeration of all orders in tests/statistics/test_ties.py.
    """
    n_areas, n_thresholds = curves.n_tp.shape
    zero = np.uint64(0)
    curves.n_tp[:] = 0
    curves.n_fp[:] = 0
    curves.n_always_fp[:] = 0
    full = ~zero >> np.uint64(64 - n_thresholds)
    first, end = ranked.off[k], ranked.off[k + 1]
    while first < end:
        last = first + 1
        while last < end and score[last] == score[first]:
            last += 1
        alone = last == first + 1
        for turn in range(1 if alone else 2):
            true_ones = alone or (turn == 0) != worst
            false_ones = alone or not true_ones
            for r in range(first, last):
                for a in range(n_areas):
                    hits, ignored = np.uint64(ranked.tp[r, a]), np.uint64(ranked.ignored[r, a])
                    if (hits | ignored) == zero:
                        curves.n_always_fp[a] += false_ones
                        continue
                    if hits == zero and (ignored == full or not false_ones):
                        continue
                    for t in range(n_thresholds):
                        bit = np.uint64(1) << np.uint64(t)
                        if hits & bit:
                            if true_ones:
                                i = curves.n_tp[a, t]
                                n_false = curves.n_always_fp[a] + curves.n_fp[a, t]
                                curves.false_before[a, t, i] = n_false
                                curves.n_tp[a, t] = i + 1
                        elif false_ones and not ignored & bit:
                            curves.n_fp[a, t] += 1
        first = last


@kernel
def score_extreme_order(
    classes: Any,
    ranked: Any,
    score: Any,
    worst: Any,
    n_objects: Any,
    rule: Any,
    curves: Any,
    recall: Any,
    precision: Any,
    place: Any,
    terms: Any,
) -> None:
    """`score_classes` in the best or the worst order of equal scores; out: terms (J, A, T, R).

    Source: as `find_in_extreme_order`.
    """
    for c in range(classes.size):
        k = classes[c]
        if place[k] < 0:
            continue
        find_in_extreme_order(k, ranked, score, worst, curves)
        for a in range(n_objects.shape[1]):
            for t in range(curves.n_tp.shape[1]):
                n = curves.n_tp[a, t]
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
                        rule.code, recall[:n], precision[:n], rule.points, terms[place[k], a, t]
                    )


@kernel
def expect_step(
    classes: Any, ranked: Any, score: Any, n_objects: Any, rule: Any, place: Any, terms: Any
) -> None:
    """Expected un-interpolated AP when the order of equal scores is random.

    A group of g rows with p true ones, after c true and f false ones, adds the sum over its places
    q of (p / g) * (c + 1 + (q - 1)(p - 1) / (g - 1)) / (c + f + q). Out: terms (J, A, T, 1).
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
