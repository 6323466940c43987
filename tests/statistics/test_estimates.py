"""Errors, intervals and differences from values on subsets, against plain loops and by hand."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from detmap.core.protocol import load
from detmap.core.statistics.estimates import Estimates, Rule, rule_of_ap
from detmap.core.statistics.evaluations import nearly_perfect
from detmap.core.statistics.formulas.quantiles import student
from detmap.core.statistics.sampling_units import units
from detmap.core.statistics.subsets import SPLITS, subsets
from tests.reference import jackknife as reference

AP = rule_of_ap(4)
DEGREE = 3  # effective units


def estimates(
    of: Callable[[np.ndarray], Any], n: int = 60, rule: Rule = AP, **changes: Any
) -> Estimates:
    """Numbers that are functions of the positions of images."""
    made = subsets(units(np.arange(n)), 3)
    value = np.atleast_1d(np.asarray(of(np.arange(n)), dtype=np.float64))
    parts = [np.atleast_1d(of(np.flatnonzero(keep))) for keep in made.keep]
    nothing = np.array(parts, dtype=np.float64).reshape(-1, len(value))
    q = len(value)
    found = Estimates(value, value, nothing, made, (rule,) * q)
    return replace(found, **changes)


def mean_of(values: np.ndarray) -> Callable[[np.ndarray], float]:
    return lambda some: float(values[some].mean())


def squared(values: np.ndarray) -> Callable[[np.ndarray], float]:
    """A biased number."""
    return lambda some: float(values[some].mean()) ** 2


VALUES = np.random.default_rng(3).random(400)


def test_the_standard_error_of_a_mean_is_the_textbooks() -> None:
    """25 images are 25 parts."""
    se, bias, error = estimates(mean_of(VALUES), 25, Rule(1.0, 1.0, 0.0)).errors()
    assert se[0] == pytest.approx(VALUES[:25].std(ddof=1) / 5, rel=1e-12)
    assert error[0] == se[0]
    assert abs(estimates(mean_of(VALUES), 60).errors()[1][0]) < 1e-12
    assert bias.shape == (1,)


@pytest.mark.parametrize("n", [50, 61, 400])
@pytest.mark.parametrize("step", [0.0, 0.02])
def test_an_interval_is_that_of_plain_loops(n: int, step: float) -> None:
    found = estimates(squared(VALUES), n, rule_of_ap(4, step))
    without, halves = found.parts[:25, 0].tolist(), found.parts[25:, 0].tolist()
    assert len(halves) == 2 * SPLITS
    se, bias = reference.errors(float(found.value[0]), without, halves, 2 / 3)
    error = reference.error_of_ap(se, bias, 4, step)
    low, high = reference.logit_bounds(float(found.value[0]), bias, error, reference.T24[0.975])
    (one,) = found.intervals(0.95)
    assert (one.se, one.bias) == pytest.approx((se, bias), rel=1e-12)
    assert (one.low, one.high) == pytest.approx((low, high), rel=1e-9)
    assert (one.level, one.why_not) == (0.95, "")
    (narrow,) = found.intervals(0.9)
    assert one.low < narrow.low < narrow.high < one.high


def test_a_difference_is_that_of_plain_loops() -> None:
    before, after = (estimates(squared(VALUES[k:]), 150) for k in (0, 150))
    (one,) = after.differences(before)
    apart = (after.parts - before.parts)[:, 0].tolist()
    value = float(after.value[0] - before.value[0])
    _, bias = reference.errors(value, apart[:25], apart[25:], 2 / 3)
    error = reference.error_of_difference(apart[:25], apart[25:], bias)
    half = reference.T24[0.975] * error
    assert (one.value, one.se, one.bias) == pytest.approx((value, error, bias), rel=1e-9)
    assert (one.low, one.high) == pytest.approx((value - bias / 2 - half, value - bias / 2 + half))
    assert one.mdd == pytest.approx(reference.detectable(error))
    assert 0 < one.p < 1
    assert (one.p < 0.05) == (one.low > 0 or one.high < 0)
    (back,) = before.differences(after)
    assert (back.value, back.p) == pytest.approx((-one.value, one.p))


def test_few_effective_units_have_few_degrees_of_freedom() -> None:
    """Student's distribution has closed forms for 2 degrees of freedom."""
    before, after = (estimates(mean_of(VALUES[k:]), 150) for k in (0, 150))
    (many,) = after.differences(before)
    few = [replace(of, rules=(AP._replace(effective=2.0 * DEGREE),)) for of in (before, after)]
    (one,) = few[1].differences(few[0])
    t = abs(one.value - one.bias / 2) / one.se
    assert (many.df, one.df, one.se) == (24, 2, many.se)
    assert one.p == pytest.approx(1 - t / math.sqrt(2 + t * t))
    assert (one.high - one.low) / 2 == pytest.approx(4.302652729911275 * one.se)
    assert one.mdd - one.se * 4.302652729911275 == pytest.approx(0.8416212335729143 * one.se)
    (least,) = after.differences(replace(before, rules=(AP._replace(effective=1.0),)))
    assert least.df == 24  # that of the second detector; both see the same objects
    (least,) = replace(after, rules=(AP._replace(effective=1.0),)).differences(before)
    assert least.df == 1


def test_half_of_a_bias_is_subtracted_and_all_of_it_is_error() -> None:
    """The number falls with the images, and hardly varies between parts."""
    after, before = (estimates(lambda some, c=c: c / len(some), 110) for c in (3.0, 1.0))
    (one,) = after.differences(before)
    apart = (after.parts - before.parts)[:, 0].tolist()
    _, bias = reference.errors(one.value, apart[:25], apart[25:], 2 / 3)
    assert one.se == pytest.approx(reference.error_of_difference(apart[:25], apart[25:], bias))
    assert one.se == pytest.approx(abs(one.bias), rel=0.1)
    assert (one.low + one.high) / 2 == pytest.approx(one.value - bias / 2)
    assert one.low < one.value - one.bias < one.value < one.high


def test_errors_are_larger_for_few_classes() -> None:
    assert rule_of_ap(1).of_bias == pytest.approx(math.sqrt(1.01))
    assert rule_of_ap(80).of_bias == pytest.approx(0.15, abs=1e-3)
    assert [rule_of_ap(k).wider for k in (1, 20, 80)] == pytest.approx([1.12, 1.12, 1.03])
    many = estimates(squared(VALUES), 100, rule_of_ap(80))
    ratio = estimates(squared(VALUES), 100, Rule())
    assert (ratio.rules[0].wider, ratio.rules[0].rate) == (1.08, 1.0)
    assert ratio.errors()[1][0] < many.errors()[1][0]
    stepped = replace(ratio, rules=(Rule(step=0.3, why_not="few", alone=9),))
    wanted = (Rule(step=0.5, why_not="few"),)
    assert stepped.minus(replace(ratio, rules=(Rule(step=0.4),))).rules == wanted


def test_the_error_of_a_mean_is_that_of_parts_and_of_halves() -> None:
    """A mean has no part of second order: each variance is that of the mean."""
    of = [estimates(mean_of(VALUES[k:]), 200) for k in (0, 200)]
    found = [after.differences(before)[0].se for after, before in (of, of[::-1])]
    own = (VALUES[:200] - VALUES[200:]).std(ddof=1) / math.sqrt(200)
    assert found[0] == found[1] == pytest.approx(own, rel=0.25)


def test_what_moves_the_means_of_halves_is_taken_off_once() -> None:
    """A product of two sums of signs has no linear part: parts and halves count it twice."""
    rng = np.random.default_rng(5)
    ratio = []
    for _ in range(60):
        u, v = rng.choice([-1.0, 1.0], (2, 200))
        own = estimates(lambda some, u=u, v=v: float(u[some].mean() * v[some].mean()), 200)
        ratio.append((own.spread()[0] ** 2, own.errors()[0][0] ** 2))
    se, of_parts = np.mean(ratio, axis=0)
    assert se < 0.75 * of_parts
    assert se == pytest.approx(200.0**-2, rel=0.3)


def test_equal_detectors_have_a_p_value_of_one_on_enough_images() -> None:
    for n, p in ((60, math.nan), (99, math.nan), (100, 1.0)):
        own = estimates(squared(VALUES), n)
        (one,) = own.differences(own)
        assert (one.value, one.se, one.low, one.high, one.mdd) == (0, 0, 0, 0, 0)
        assert (str(one.p), one.why_not) == (str(p), "")


def test_a_p_value_needs_a_hundred_images() -> None:
    for n in (99, 100):
        (one,) = estimates(squared(VALUES), n).differences(estimates(mean_of(VALUES), n))
        assert math.isnan(one.p) is (n < 100)
        assert one.low < one.high


def test_a_constant_difference_has_no_spread() -> None:
    own = estimates(squared(VALUES), 120)
    shifted = replace(own, value=own.value + 0.1, whole=own.whole + 0.1, parts=own.parts + 0.1)
    (one,) = shifted.differences(own)
    assert one.why_not == "all images agree: the standard error is 0"
    assert all(map(math.isnan, (one.low, one.high, one.p, one.mdd)))


def test_a_difference_of_numbers_without_interval_has_its_reason() -> None:
    own = estimates(squared(VALUES), 120)
    few = replace(own, rules=(AP._replace(why_not="few"),))
    for one in (*few.differences(own), *estimates(mean_of(VALUES), 120).differences(few)):
        assert (one.why_not, math.isnan(one.low), math.isnan(one.p)) == ("few", True, True)
    (kept,) = few.differences(estimates(mean_of(VALUES), 120))
    assert kept.why_not == "few"
    assert kept.se > 0


@pytest.mark.parametrize(
    ("of", "changes", "why"),
    [
        (lambda some: math.nan, {}, "no objects or no detections"),
        (lambda some: 0.5, {}, "all images agree: the standard error is 0"),
        (lambda some: 0.5 if 0 in some else math.nan, {}, "undefined on 17 of 57 subsets"),
        (mean_of(VALUES), {"rules": (AP._replace(why_not="rare"),)}, "rare"),
        (lambda some: 0.5 + 0.2 * (0 in some), {}, "the interval would be "),
    ],
)
def test_what_has_no_interval_says_why(
    of: Callable[[np.ndarray], float], changes: dict[str, Any], why: str
) -> None:
    (one,) = estimates(of, **changes).intervals(0.95)
    assert one.why_not.startswith(why)
    assert math.isnan(one.low)
    assert math.isnan(one.high)


def test_a_single_unit_has_no_standard_error() -> None:
    (one,) = estimates(mean_of(VALUES), 1).intervals(0.95)
    assert math.isnan(one.se)
    assert one.why_not == "fewer than two images"
    (two,) = estimates(mean_of(VALUES), 2).intervals(0.95)
    assert two.se > 0


def test_all_or_nothing_of_a_single_class_has_the_exact_interval() -> None:
    for value, bounds in (
        (1.0, (0.025 ** (1 / 30), 1.0)),
        (1 - 1e-13, (0.025 ** (1 / 30), 1.0)),
        (0.0, (0.0, 1 - 0.025 ** (1 / 30))),
    ):
        (one,) = estimates(lambda some, v=value: v, rule=AP._replace(alone=30)).intervals(0.95)
        assert (one.low, one.high, one.why_not) == (*bounds, "")


@pytest.mark.parametrize(
    ("value", "alone", "printed"),
    [
        (0.975, 50, False),
        (1 - 4 / 101, 50, False),
        (0.95, 50, True),  # five steps of 1 / 101 from 1
        (0.975, 0, False),  # a mean over classes
        (1.0, 50, True),  # the exact interval
    ],
)
def test_a_nearly_perfect_ap_by_points_of_recall_has_no_interval(
    value: float, alone: int, printed: bool
) -> None:
    nearly = nearly_perfect(load("coco-bbox").ap, units(np.arange(50)), "--set ap.integrator")
    rule = rule_of_ap(1, 1 / (101 * math.sqrt(12)))._replace(alone=alone, nearly=nearly)
    made = estimates(lambda some: value + (1 - value) * (VALUES[some].mean() - 0.5), rule=rule)
    made = replace(made, value=np.array([value]))
    (one,) = made.intervals(0.95)
    assert ("moves in steps" in one.why_not) == (not printed)
    assert (one.low == one.low) == printed
    (apart,) = made.differences(replace(made, parts=made.parts[::-1].copy()))
    assert apart.why_not == ""


def test_a_single_class_has_the_quantile_of_its_units() -> None:
    wide, narrow = (
        estimates(squared(VALUES), 100, rule=AP._replace(alone=m)).intervals(0.95)[0]
        for m in (21, 25)
    )
    assert wide.se == narrow.se
    assert wide.high - wide.low > narrow.high - narrow.low
    assert estimates(squared(VALUES), 100).quantile(0.975, 21) == student(0.975, 20)


def test_numbers_beyond_a_fraction_are_not_on_the_logit_scale() -> None:
    for scale, shift in ((10.0, -20.0), (10.0, 0.0), (1e3, 5.0)):
        (one,) = estimates(lambda some, a=scale, b=shift: a * VALUES[some].mean() + b).intervals(
            0.95
        )
        assert one.low + one.high == pytest.approx(2 * (one.value - one.bias))
        assert one.low < one.value < one.high
        assert one.why_not == ""


def test_rounding_is_no_standard_error() -> None:
    (one,) = estimates(lambda some: 0.5 + 1e-15 * len(some)).intervals(0.95)
    assert "standard error is 0" in one.why_not
    (large,) = estimates(lambda some: 1e6 + 1e-9 * len(some)).intervals(0.95)
    assert "standard error is 0" in large.why_not


def test_a_step_is_not_added_to_nothing() -> None:
    still = estimates(lambda some: 1.0, rule=rule_of_ap(1, 0.01))
    assert still.errors()[2][0] == 0
    (one,) = still.differences(still)
    assert one.se == 0


@given(st.integers(2, 120), st.integers(1, 4), st.integers(0, 3))
def test_numbers_do_not_depend_on_their_neighbors(n: int, q: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = rng.random((q, n)).round(int(rng.integers(0, 4)))
    together = estimates(lambda some: np.array([float(row[some].mean()) for row in values]), n)
    for k in range(q):
        alone = estimates(mean_of(values[k]), n)
        found = together.intervals(0.95)[k]
        for field in ("value", "se", "bias", "low", "high"):
            own = getattr(alone.intervals(0.95)[0], field)
            assert str(getattr(found, field)) == str(own)


@pytest.mark.slow
def test_it_covers_a_mean_as_promised() -> None:
    rng = np.random.default_rng(1)
    held = 0
    for _ in range(200):
        (one,) = estimates(mean_of(rng.beta(2, 3, 50)), 50, Rule()).intervals(0.95)
        held += one.low <= 0.4 <= one.high
    assert held >= 180  # 95 % of 200, minus three standard errors
