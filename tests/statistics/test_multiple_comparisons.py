"""Adjusted p-values and groups, against slow definitions."""

import math
from itertools import combinations

import numpy as np
import pytest

from detmap.core.statistics.formulas.multiple_comparisons import bh, groups, holm


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
