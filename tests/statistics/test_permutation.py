"""The permutation test against a slow one, and what is exchanged."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import detmap
from detmap.core.statistics import permutation
from detmap.core.statistics import replicates as drawing
from detmap.core.statistics.influence import influence, variance
from detmap.core.statistics.sampling_units import units
from tests.statistics.drawn_matches import draw
from tests.statistics.test_comparison import two
from tests.statistics.test_influence import planned

N = 19  # permutations: more than one batch of lanes


@pytest.mark.parametrize("studentised", [True, False])
@pytest.mark.parametrize("grouped", [True, False])
def test_p_values_are_counted_as_by_definition(studentised: bool, grouped: bool) -> None:
    """How many exchanges move a metric at least as far, in standard errors or plainly, and the
    observed one.
    """
    first, second = (planned(each) for each in two(4, 14))
    groups = {i: i // 2 for i in range(14)} if grouped else None
    of = units(first.matches.image_ids, groups)
    exchange = permutation.Exchange(first, second)

    def statistic(swapped: np.ndarray) -> np.ndarray:
        values = exchange.values(swapped[None])[:, 0]
        apart = np.abs(values[1] - values[0])
        if not studentised:
            return apart
        a, b = (influence(each, of).corrected for each in exchange.exchanged(swapped))
        return apart / np.sqrt([variance(row) for row in b - a])

    observed = statistic(np.zeros(14, bool))
    counts = np.zeros(len(observed), int)
    for b in range(N):
        counts += statistic(drawing.swaps(5, b, of.n)[of.of_image]) >= observed * (1 - 1e-12)
    values = exchange.values(np.zeros((1, 14), bool))[:, 0]
    seen: list[tuple[int, int]] = []
    found = permutation.p_values(
        first,
        second,
        of,
        values[1] - values[0],
        N,
        5,
        studentised=studentised,
        threads=1,
        progress=lambda *now: seen.append(now),
    )
    assert found == ((1 + counts) / (N + 1)).tolist()
    assert len(set(found)) > 1
    assert seen[0] == (drawing.LANES, N) or drawing.LANES > N
    assert seen[-1] == (N, N)


def test_metrics_without_a_standard_error_or_a_value() -> None:
    """Two equal detectors: every exchange is as far as none; an undefined metric has no p-value."""
    first = planned(two(4, 14)[0])
    of = units(first.matches.image_ids)
    difference = np.zeros(len(first.metrics))
    difference[1] = math.nan
    found = permutation.p_values(first, first, of, difference, 9, 5)
    assert math.isnan(found[1])
    assert found[0] == found[2] == 1.0


def test_exchanged_detectors_keep_ranks_and_results() -> None:
    """Exchanging all images is the other detector; none, the same; both are ranked by score."""
    first, second = (planned(each) for each in two(3, 12))
    exchange = permutation.Exchange(first, second)
    for swapped, expected in (
        (np.zeros(12, bool), (first, second)),
        (np.ones(12, bool), (second, first)),
    ):
        for found, own in zip(exchange.exchanged(swapped), expected, strict=True):
            assert np.array_equal(found.image, own.image)
            for column, other in zip(found.ranked, own.ranked, strict=True):
                assert np.array_equal(column, other)


def test_values_are_those_of_the_exchanged_detectors() -> None:
    both = two(4, 14)
    first, second = (planned(each) for each in both)
    ids, exchange = first.matches.image_ids, permutation.Exchange(first, second)
    swapped = np.arange(14) % 3 == 0
    for given in (swapped, ~swapped):
        values = exchange.values(given[None])[:, 0]
        for side, (own, other) in enumerate((both, both[::-1])):
            merged = own.select(ids[~given]).merge(other.select(ids[given]))
            expected = list(detmap.summarize(merged).metrics.values())
            np.testing.assert_allclose(values[side], expected, rtol=0, atol=1e-13)


def test_studentised_p_values_differ_from_plain_ones() -> None:
    whole, rng = draw(4, 14, "all_points"), np.random.default_rng(1)
    missed = rng.random((2, len(whole))) < 0.4  # either misses what the other finds
    first, second = (
        planned(replace(whole, tp=np.where(m[:, None], 0, whole.tp).astype(np.uint16)))
        for m in missed
    )
    of = units(first.matches.image_ids)
    exchange = permutation.Exchange(first, second)
    values = exchange.values(np.zeros((1, 14), bool))[:, 0]
    plain, fixed = (
        permutation.p_values(first, second, of, values[1] - values[0], 60, 5, studentised=each)
        for each in (False, True)
    )
    a, b = (influence(each, of).corrected for each in (first, second))
    ratio = np.abs(values[1] - values[0]) / np.sqrt([variance(row) for row in b - a])
    counts = np.zeros(len(ratio), int)
    for n in range(60):
        swapped = drawing.swaps(5, n, 14)
        x = exchange.values(swapped[None])[:, 0]
        a, b = (influence(each, of).corrected for each in exchange.exchanged(swapped))
        se = np.sqrt([variance(row) for row in b - a])
        counts += np.abs(x[1] - x[0]) / se >= ratio * (1 - 1e-12)
    assert fixed == ((1 + counts) / 61).tolist()
    assert fixed != plain
