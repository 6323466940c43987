"""Adjusted p-values and groups, against slow definitions."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest

from detmap.core.statistics.formulas.multiple_comparisons import bh, groups, holm, maxt
from detmap.core.statistics.support import ROUNDING


def slow_holm(p: list[float]) -> list[float]:
    ranked = sorted(p)
    return [
        max(min(1.0, (len(p) - j) * q) for j, q in enumerate(ranked) if q <= each) for each in p
    ]


def slow_bh(p: list[float]) -> list[float]:
    ranked = sorted(p)
    return [
        min(min(1.0, len(p) / (j + 1) * q) for j, q in enumerate(ranked) if q >= each) for each in p
    ]


@pytest.mark.parametrize("seed", range(6))
def test_adjusted_p_values_are_those_of_the_definitions(seed: int) -> None:
    rng = np.random.default_rng(seed)
    p = (rng.random(7) * rng.choice([0.05, 1.0], 7)).tolist()
    assert holm(p) == pytest.approx(slow_holm(p), rel=1e-14)
    assert bh(p) == pytest.approx(slow_bh(p), rel=1e-14)
    some = [*p[:3], math.nan, *p[3:]]
    for adjust in (holm, bh):
        assert adjust(some)[3] != adjust(some)[3]
        assert [*adjust(some)[:3], *adjust(some)[4:]] == adjust(p)


def test_without_p_values_nothing_is_adjusted() -> None:
    for adjust in (holm, bh):
        assert adjust([]) == []
        assert str(adjust([math.nan])) == "[nan]"
        assert adjust([0.3]) == [0.3]
        assert adjust([0.9, 0.8]) == [1.0, 1.0] if adjust is holm else [0.9, 0.9]


def test_maxt_by_hand() -> None:
    """Four draws: their distances from the differences, in standard errors, are 1 to 4 in the first
    column, 2, 0, 2, 0 in the second and half of that in the third. The statistics are 3.5, 2, 1.
    """
    difference, se = np.array([7.0, -2.0, 0.5]), np.array([2.0, 1.0, 0.5])
    draws = np.array([[9.0, 0, 0], [3.0, -2, 0.5], [13.0, -4, 1], [15.0, -2, 0.5]])
    # First: 1 of 4 is at least 3.5. Second, of the other two columns: 2 of 4 are at least 2.
    # Third, of itself alone: 2 of 4 are at least 1.
    assert maxt(difference, se, draws) == [2 / 5, 3 / 5, 3 / 5]
    order = [2, 0, 1]
    assert maxt(difference[order], se[order], draws[:, order]) == [3 / 5, 2 / 5, 3 / 5]


def test_maxt_never_falls_with_the_statistic() -> None:
    """The weaker statistic would have a lower p-value alone."""
    found = maxt(np.array([3.0, 2.0]), np.ones(2), np.array([[0.0, 2.0], [0.0, 2.0]]))
    assert found == [1.0, 1.0]


def test_maxt_has_no_p_value_where_the_standard_error_is_rounding() -> None:
    difference, draws = np.array([1.0, 1.0]), np.ones((3, 2))
    found = maxt(difference, np.array([ROUNDING, 2 * ROUNDING]), draws)
    assert str(found) == "[nan, 0.25]"


def test_maxt_without_a_standard_error_or_in_lost_draws() -> None:
    nan = math.nan
    draws = np.array([[nan, 0.0, 0], [1.0, 0.0, 0], [5.0, 0.0, 0]])
    found = maxt(np.array([1.0, 0.0, nan]), np.array([1.0, 0.0, 1.0]), draws)
    assert found[0] == 2 / 4  # a draw without the metric is not beyond
    assert found[1] == 1.0  # no difference, no error
    assert math.isnan(maxt(np.array([1.0]), np.array([nan]), draws[:, :1])[0])


@pytest.mark.parametrize("seed", range(12))
def test_groups_are_the_largest_sets_without_a_difference(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(0, 6))
    apart = {pair for pair in combinations(range(n), 2) if rng.random() < 0.4}
    alike = [
        set(some)
        for size in range(1, n + 1)
        for some in combinations(range(n), size)
        if not any(pair in apart for pair in combinations(some, 2))
    ]
    largest = [sorted(some) for some in alike if not any(some < other for other in alike)]
    assert groups(n, apart) == (sorted(largest) if n else [[]])
