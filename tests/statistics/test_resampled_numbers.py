"""Intervals of any fractions, differences of them, and the sums over images that they come from."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from detmap.core.statistics import replicates as drawing
from detmap.core.statistics import support
from detmap.core.statistics.formulas.logit_interval import logit_interval
from detmap.core.statistics.formulas.quantiles import normal, student, two_sided
from detmap.core.statistics.image_sums import tally
from detmap.core.statistics.influence import influence, variance
from detmap.core.statistics.intervals import Interval
from detmap.core.statistics.resampled_numbers import (
    Part,
    Sampled,
    differences,
    fraction,
    joined,
    less,
    resample_ap,
    resample_fractions,
)
from detmap.core.statistics.sampling_units import units
from tests.statistics.drawn_matches import draw
from tests.statistics.test_influence import planned

NAN = math.nan
OF = units(np.arange(120))


def test_a_fraction_by_hand() -> None:
    draws = np.array([0.5, 0.6, 0.7, 0.6, 0.5])
    found = fraction(0.57, draws, 20, OF)
    se, bias = draws.std(ddof=1), draws.mean() - 0.57
    assert (found.value, found.level, found.why_not) == (0.57, 0.95, "")
    assert (found.se, found.bias) == pytest.approx((se, bias))
    expected = logit_interval(0.57, found.se, found.bias, student(0.975, 19.0))
    assert (found.low, found.high) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("value", "draws", "n_units", "why"),
    [
        (NAN, [0.5, 0.6], 50, "no cases"),
        (0.5, [NAN] * 2 + [0.5, 0.6] * 9, 50, "undefined in 2 of 20 replicates"),
        (0.5, [0.5, 0.6] * 10, 19, "on 19 images, fewer than 20"),
        (0.5, [0.5] * 20, 50, "all images agree: the standard error is 0"),
        (0.5, [NAN] + [0.5, 0.6] * 9 + [0.5], 20, ""),
    ],
)
def test_a_fraction_without_an_interval(
    value: float, draws: list[float], n_units: int, why: str
) -> None:
    found = fraction(value, np.array(draws), n_units, OF)
    assert found.why_not == why
    assert math.isnan(found.low) == math.isnan(found.high) == bool(why)
    assert math.isnan(found.se) == math.isnan(value)


def test_a_fraction_of_all_or_nothing() -> None:
    edge = 0.025 ** (1 / 40)
    for value in (1.0, 1 - support.ROUNDING / 2):
        found = fraction(value, np.ones(20), 40, OF)
        assert (found.low, found.high) == pytest.approx((edge, 1.0))
    for value in (0.0, support.ROUNDING):
        found = fraction(value, np.zeros(20), 40, OF)
        assert (found.low, found.high) == pytest.approx((0.0, 1 - edge))
        assert found.high > 0
    tiny = np.array([0.5, 0.5 + 2e-12] * 10)
    assert fraction(0.5, tiny, 40, OF).why_not == ""
    assert fraction(0.5, (tiny - 0.5) / 2 + 0.5, 40, OF).why_not  # 1e-12 apart: rounding


def sampled(value: float, seed: int, bias: float = 0.0, why: str = "", **more: Any) -> Sampled:
    draws = np.random.default_rng(seed).normal(value, 0.02, (50, 1))
    interval = Interval(value, 0.02, value - 0.04, value + 0.04, bias, 0.95, why)
    return Sampled(np.array([value]), draws, more.pop("of", OF), (interval,), **more)


def test_a_difference_by_hand() -> None:
    before, after = sampled(0.5, 1, 0.01), sampled(0.57, 2, 0.03)
    apart = (after.draws - before.draws)[:, 0]
    se, half = apart.std(ddof=1), 1.959963984540054 * apart.std(ddof=1)
    (found,) = differences(after, before)
    assert (found.value, found.se) == pytest.approx((0.07, se))
    assert (found.low, found.high) == pytest.approx((0.05 - half, 0.05 + half))
    assert found.p == pytest.approx(two_sided(0.05 / se))
    known = less(after, before)
    assert known.values == pytest.approx([0.07])
    assert known.draws[:, 0] == pytest.approx(apart)
    assert (known.moved, known.rare, known.units) == (None, (), OF)
    assert known.intervals[0].bias == pytest.approx(0.02)
    after.draws[3] = NAN
    lost = differences(after, before)[0].se
    assert lost == pytest.approx(np.delete(apart, 3).std(ddof=1))


def test_a_difference_by_influence() -> None:
    rng = np.random.default_rng(3)
    first, second = rng.normal(0, 1e-3, (2, 1, 120))
    before, after = sampled(0.5, 1, moved=first), sampled(0.57, 2, moved=second)
    (found,) = differences(after, before)
    assert found.se == pytest.approx(math.sqrt(variance((second - first)[0])))
    assert less(after, sampled(0.5, 1)).moved is None
    assert less(sampled(0.57, 2), before).moved is None
    rare = sampled(0.57, 2, moved=second, rare=("rare",))
    apart = (rare.draws - before.draws)[:, 0]
    one = less(rare, before).intervals[0]
    assert (one.why_not, one.se) == ("rare", pytest.approx(apart.std(ddof=1)))
    assert less(before, rare).intervals[0].why_not == "rare"
    assert less(rare, before).rare == ("rare",)


def test_a_difference_without_an_interval() -> None:
    few = units(np.arange(99))
    good, bad = sampled(0.5, 1), sampled(0.57, 2, why="few")
    for after, before in ((good, bad), (bad, good)):
        (found,) = differences(after, before)
        assert all(map(math.isnan, (found.low, found.high, found.p)))
        assert found.se > 0
    (same,) = differences(bad, bad)
    assert (same.value, same.se, same.low, same.high, same.p) == (0, 0, 0, 0, 1)
    (same,) = differences(sampled(0.5, 1, of=few), sampled(0.5, 1, of=few))
    assert math.isnan(same.p)
    (found,) = differences(sampled(0.57, 2, of=few), sampled(0.5, 1, of=few))
    assert math.isnan(found.p)
    assert found.low < found.high
    (equal,) = differences(sampled(0.5, 2, why="few"), sampled(0.5, 1))
    assert math.isnan(equal.p)  # no difference, but a standard error
    assert math.isnan(equal.low)
    undefined = Interval(NAN, NAN, NAN, NAN, NAN, 0.95, "")
    none = Sampled(np.array([NAN]), np.full((50, 1), NAN), OF, (undefined,))
    assert math.isnan(differences(none, good)[0].p)


def test_rounding_is_no_standard_error() -> None:
    """Fractions that are the same in every replicate have a spread such as 1e-17."""
    constant, other = (
        Sampled(np.array([x]), np.full((50, 1), x), OF, (Interval(x, 0, 0, 1, 0, 0.95),))
        for x in (0.6, 0.5)
    )
    known = less(constant, other)
    assert 0 < known.intervals[0].se < 1e-16
    assert known.intervals[0].why_not == "all images agree: the standard error is 0"
    assert math.isnan(differences(constant, other)[0].p)
    assert differences(constant, constant)[0].p == 1.0
    near = Sampled(other.values + 1e-16, other.draws, OF, other.intervals)
    assert differences(near, other)[0].p == 1.0


def test_the_fewest_units_of_a_p_value() -> None:
    least = units(np.arange(100))
    before, after = sampled(0.5, 1, of=least), sampled(0.57, 2, of=least)
    assert differences(after, before)[0].p < 0.05
    assert differences(before, before)[0].p == 1.0
    assert joined([before]).units is least


def test_a_standard_error_at_the_edge_of_rounding(monkeypatch: pytest.MonkeyPatch) -> None:
    draws, before, after = np.array([0.5, 0.6] * 10), sampled(0.5, 1), sampled(0.75, 2)
    monkeypatch.setattr(support, "ROUNDING", fraction(0.5, draws, 40, OF).se)
    assert fraction(0.5, draws, 40, OF).why_not == "all images agree: the standard error is 0"
    monkeypatch.setattr(support, "ROUNDING", less(after, before).intervals[0].se)
    assert less(after, before).intervals[0].why_not == "all images agree: the standard error is 0"
    monkeypatch.setattr(support, "ROUNDING", 0.25)  # the difference itself
    assert less(after, before).intervals[0].why_not == ""


def test_p_values_are_adjusted_together_on_request() -> None:
    after, before = (
        joined([sampled(x, seed), sampled(x + 0.3, seed + 1)]) for x, seed in ((0.5, 1), (0.54, 5))
    )
    plain = [one.p for one in differences(after, before)]
    fixed = [one.p for one in differences(after, before, adjust=True)]
    assert sorted(fixed)[0] == pytest.approx(min(1, 2 * min(plain)))
    assert fixed != plain


def test_statistics_are_joined_and_chosen() -> None:
    rng = np.random.default_rng(3)
    moved = rng.normal(0, 1e-3, (1, 120))
    first, second = sampled(0.5, 1, moved=moved, rare=("rare",)), sampled(0.6, 2, moved=2 * moved)
    both = joined([first, second])
    assert both.values.tolist() == [0.5, 0.6]
    assert both.rare == ("rare", "")
    assert both.moved is not None
    assert np.array_equal(both.moved, np.concatenate([moved, 2 * moved]))
    assert joined([first, sampled(0.6, 2)]).moved is None
    one = both.some([1])
    assert one.values.tolist() == [0.6]
    assert np.array_equal(one.draws, second.draws)
    assert one.moved is not None
    assert np.array_equal(one.moved, 2 * moved)
    assert (one.intervals, one.rare) == (second.intervals, ("",))
    assert sampled(0.5, 1).some([0]).rare == ()
    assert sampled(0.5, 1).some([0]).moved is None


def test_fractions_are_evaluated_by_image_weights() -> None:
    rng = np.random.default_rng(2)
    hits, cases = rng.integers(0, 3, 120).astype(float), np.full(120, 3.0)

    def shares(weights: np.ndarray) -> np.ndarray:
        return np.stack(
            [hits @ weights / (cases @ weights), 1 - hits @ weights / (cases @ weights)]
        )

    part = Part(shares(np.ones((120, 1)))[:, 0], shares, np.array([120, 9]))
    n = drawing.LANES + 3
    found, again = resample_fractions([part, part], OF, n, 5)
    for b in (0, drawing.LANES - 1, drawing.LANES, n - 1):
        weights = np.bincount(drawing.draws(5, b, 120), minlength=120)[:, None]
        assert found.draws[b] == pytest.approx(shares(weights)[:, 0])
    assert found.draws.shape == (n, 2)
    assert np.array_equal(found.draws, again.draws)
    assert found.intervals[0] == fraction(float(part.values[0]), found.draws[:, 0], 120, OF)
    assert found.intervals[1].why_not == "on 9 images, fewer than 20"


@pytest.mark.parametrize("integrator", ["all_points", "eleven_point"])
def test_ap_with_its_replicates_and_influence(integrator: str) -> None:
    matches = draw(5, 110, integrator)
    rules = matches.protocol.override({"limits.max_dets": [], "metrics": ["AP"]})
    matches, of = replace(matches, protocol=rules), units(matches.image_ids)
    found = resample_ap(matches, of, 20, 3)
    own = planned(matches)
    assert found.draws[:, 0] == pytest.approx(
        drawing.replicates(own, of, 20, 3).metrics[:, 0], abs=1e-14
    )
    assert found.rare == ("",)
    assert (found.moved is None) == (integrator == "eleven_point")
    if found.moved is not None:
        assert found.moved[0] == pytest.approx(influence(own, of).corrected[0], abs=1e-15)
        assert found.intervals[0].low < found.values[0]
    tp = matches.tp.copy()
    tp[::7] = 0
    (apart,) = differences(resample_ap(replace(matches, tp=tp), of, 20, 3), found)
    assert math.isnan(apart.p) == math.isnan(apart.low) == (integrator == "eleven_point")
    assert normal(0.975) == pytest.approx(1.959963984540054)


def test_sums_of_rows_by_group_and_image() -> None:
    place, image = [1, -1, 0, 1, 1, 0], np.array([2, 0, 1, 0, 2, 1], np.int32)
    columns = [[1, 2, 4, 8, 16, 32], [1.5] * 6]
    found = tally(place, image, columns, 3, 4)
    assert found.off.tolist() == [0, 1, 3, 3]
    assert found.image.tolist() == [1, 0, 2]
    assert found.sums.tolist() == [[36, 3], [8, 1.5], [17, 3]]
    assert found.n_images().tolist() == [1, 2, 0]
    weights = np.zeros((4, drawing.LANES))
    weights[:, 0], weights[:, 1] = 1, [0, 2, 5, 0]
    totals = found.totals(weights)
    assert totals[:, 0, :2].tolist() == [[36, 72], [25, 85], [0, 0]]
    assert totals[:, 1, :2].tolist() == [[3, 6], [4.5, 15], [0, 0]]
    empty = tally([-1] * 6, image, columns, 2, 4)
    assert (empty.off.tolist(), empty.sums.shape) == ([0, 0, 0], (0, 2))
    single = tally([0, 1], np.zeros(2, np.int32), [[3, 4]], 2, 1)  # one image, two groups
    assert (single.off.tolist(), single.sums.tolist()) == ([0, 1, 2], [[3], [4]])


def test_sums_of_consecutive_groups() -> None:
    whole = tally([0, 1, 1, 2, 3], np.array([0, 0, 1, 1, 0], np.int32), [[1, 2, 4, 8, 16]], 4, 2)
    weights = np.full((2, drawing.LANES), 3.0)
    for some in (slice(0, 1), slice(1, 3), slice(3, 4), slice(0, 4), slice(2, 2)):
        found = whole.of_groups(some)
        assert found.n_images().tolist() == [1, 2, 1, 1][some]
        assert found.totals(weights).tolist() == whole.totals(weights)[some].tolist()
