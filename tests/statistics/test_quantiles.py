"""Quantiles against closed forms and exact fractions; intervals of one fraction at their edges."""

import math
from fractions import Fraction
from statistics import NormalDist

import pytest

from detmap.core.statistics.formulas import logit_interval as module
from detmap.core.statistics.formulas import quantiles
from detmap.core.statistics.formulas.logit_interval import (
    CLIP,
    edge_interval,
    expit,
    logit_interval,
)
from detmap.core.statistics.formulas.quantiles import (
    beta_quantile,
    exact_bounds,
    incomplete_beta,
    student,
)


def beta_of_integers(a: int, b: int, x: float) -> float:
    """The probability of a or more successes in a + b - 1 trials, exactly."""
    n, p = a + b - 1, Fraction(x)
    return float(sum(math.comb(n, j) * p**j * (1 - p) ** (n - j) for j in range(a, n + 1)))


@pytest.mark.parametrize(("a", "b"), [(1, 1), (2, 1), (1, 3), (5, 2), (3, 8), (20, 30), (80, 7)])
@pytest.mark.parametrize("x", [0.001, 0.1, 0.3, 0.5, 0.9, 0.99])
def test_the_incomplete_beta_function_of_integers_is_binomial(a: int, b: int, x: float) -> None:
    assert incomplete_beta(a, b, x) == pytest.approx(beta_of_integers(a, b, x), rel=3e-13)


def test_the_incomplete_beta_function_at_and_beyond_its_ends() -> None:
    for x, value in ((0.0, 0.0), (-0.5, 0.0), (1.0, 1.0), (1.5, 1.0)):
        assert incomplete_beta(2.5, 0.5, x) == value
    assert incomplete_beta(0.5, 0.5, 0.25) == pytest.approx(1 / 3, rel=1e-14)  # arcsine
    assert incomplete_beta(3e4, 3e4, 0.5) == pytest.approx(0.5, rel=1e-9)


@pytest.mark.parametrize("p", [0.5, 0.501, 0.75, 0.95, 0.975, 0.9995, 1 - 1e-9])
def test_student_has_closed_forms_for_one_two_and_four_degrees(p: float) -> None:
    """Source: Shaw 2006, J. Computational Finance 9(4)."""
    assert student(p, 1.0) == pytest.approx(math.tan(math.pi * (p - 0.5)), rel=1e-6, abs=1e-12)
    spread = 4 * p * (1 - p)
    assert student(p, 2.0) == pytest.approx(2 * (p - 0.5) * math.sqrt(2 / spread), rel=1e-6)
    cosine = math.cos(math.acos(math.sqrt(spread)) / 3) / math.sqrt(spread)
    assert student(p, 4.0) == pytest.approx(2 * math.sqrt(max(cosine - 1, 0)), rel=1e-6, abs=1e-7)
    assert student(1 - p, 2.0) == pytest.approx(-student(p, 2.0), rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("df", [1.0, 2.5, 30.0, 400.0])
def test_student_needs_few_steps_of_newton(df: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """It solves for the tail, and converges as fast as the slope of the tail lets it."""
    tail, asked = quantiles._upper_tail, []
    monkeypatch.setattr(quantiles, "_upper_tail", lambda t, df: asked.append(t) or tail(t, df))
    found = student.__wrapped__(0.975, df)
    assert tail(found, df) == pytest.approx(0.025, rel=1e-14)
    assert asked == sorted(asked)
    assert len(asked) <= 10


@pytest.mark.parametrize("t", [0.0, 0.5, 1.959963984540054, 4.0])
def test_the_two_sided_probability_is_that_of_both_tails(t: float) -> None:
    cauchy = 1 - 2 * math.atan(t) / math.pi
    assert quantiles.two_sided_student(t, 1) == pytest.approx(cauchy, rel=1e-10)
    normal = 2 * NormalDist().cdf(-t)
    assert quantiles.two_sided_student(t, 1e7) == pytest.approx(normal, rel=1e-4)
    assert quantiles.two_sided_student(-t, 24) == quantiles.two_sided_student(t, 24)
    if t:
        level = quantiles.two_sided_student(t, 24)
        assert quantiles.student(1 - level / 2, 24) == pytest.approx(t, rel=1e-9)


@pytest.mark.parametrize("p", [0.001, 0.025, 0.5, 0.975])
def test_the_quantile_of_the_beta_distribution_has_closed_forms(p: float) -> None:
    for n in (1.0, 2.5, 40.0):
        assert beta_quantile(p, n, 1.0) == pytest.approx(p ** (1 / n), rel=1e-13)
        assert beta_quantile(p, 1.0, n) == pytest.approx(1 - (1 - p) ** (1 / n), rel=1e-11)
    assert beta_quantile(0.5, 7.0, 7.0) == pytest.approx(0.5, rel=1e-14)


@pytest.mark.parametrize("p", [1e-5, 1e-4, 1e-3])
def test_the_quantile_of_the_beta_distribution_is_halved_to_its_last_bit(p: float) -> None:
    """The middle of an interval of length 2^-60, below a number with just that probability."""
    assert beta_quantile(incomplete_beta(1.0, 1 / p, 2.0**-20), 1.0, 1 / p) < 2.0**-20
    found = beta_quantile(p, 1.0, 40.0) * 2.0**61
    assert found % 2 == 1
    assert found == pytest.approx((1 - (1 - p) ** (1 / 40)) * 2.0**61, abs=2**10)


@pytest.mark.parametrize("level", [0.9, 0.95])
def test_exact_bounds_leave_out_a_tail_at_either_end(level: float) -> None:
    low, high = exact_bounds(3, 12, level)
    tail = (1 - level) / 2
    assert beta_of_integers(3, 10, low) == pytest.approx(tail, rel=1e-12)  # 3 or more of 12
    assert 1 - beta_of_integers(4, 9, high) == pytest.approx(tail, rel=1e-12)  # 3 or fewer


def test_the_logit_interval_by_hand() -> None:
    """Odds of 4 less a bias: 0.8 is logit log 4, and the slope there is 1 / 0.16."""
    low, high = logit_interval(0.85, 0.02, 0.05, 2.0)
    assert low == pytest.approx(1 / (1 + math.exp(0.25) / 4), rel=1e-14)
    assert high == pytest.approx(1 / (1 + math.exp(-0.25) / 4), rel=1e-14)


def test_the_logit_interval_reaches_to_an_end_that_its_center_passes() -> None:
    assert CLIP == 1e-3
    inside, beyond = CLIP + 1e-9, CLIP - 1e-9
    for bias in (0.0, 0.1):
        assert 0 < logit_interval(inside + bias, 1e-6, bias, 2.0)[0] < CLIP
        assert logit_interval(beyond + bias, 1e-6, bias, 2.0)[0] == 0.0
        assert CLIP < logit_interval(beyond + bias, 1e-6, bias, 2.0)[1] < CLIP + 1e-5
        assert 1 - CLIP < logit_interval(1 - inside + bias, 1e-6, bias, 2.0)[1] < 1
        assert logit_interval(1 - beyond + bias, 1e-6, bias, 2.0)[1] == 1.0
        assert 1 - CLIP - 1e-5 < logit_interval(1 - beyond + bias, 1e-6, bias, 2.0)[0] < 1 - CLIP
    assert logit_interval(1.0, 1e-4, 0.0, 2.0)[0] == logit_interval(1 - CLIP, 1e-4, 0.0, 2.0)[0]
    assert logit_interval(0.0, 1e-4, 0.0, 2.0)[1] == logit_interval(CLIP, 1e-4, 0.0, 2.0)[1]
    assert logit_interval(CLIP, 1e-6, 0.0, 2.0)[0] > 0.0
    assert logit_interval(1 - CLIP, 1e-6, 0.0, 2.0)[1] < 1.0


def test_near_an_end_the_exact_interval_of_the_effective_number_of_objects() -> None:
    """A share of 0.9 with a standard error of 0.03 is worth 100 objects, of which 10 are missed."""
    assert edge_interval(0.9, 0.03 * (1 - 1e-9), 0.95) == (0.9, 0.9)
    for value in (0.9, 0.1):
        se = 0.03 * (1 + 1e-9)
        found = edge_interval(value, se, 0.95)
        assert found == pytest.approx(exact_bounds(100 * value, 100, 0.95), rel=1e-6)
        assert edge_interval(value, se, 0.5) != found
    for value in (0.0, 1.0, 1.5, -0.5):
        assert edge_interval(value, 0.1, 0.95) == (value, value)
    assert edge_interval(0.5, 0.5 / math.sqrt(20) * (1 - 1e-9), 0.95) == (0.5, 0.5)


def test_ten_missed_objects_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    assert module.FEW_MISSES == 10
    monkeypatch.setattr(module, "FEW_MISSES", 8)  # those of 0.5 with an error of 0.125, exactly
    assert edge_interval(0.5, 0.125, 0.95) == (0.5, 0.5)


@pytest.mark.parametrize("x", [0.0, 1e-9, 0.3, 5.0, 40.0, 699.0])
def test_from_the_logit_scale(x: float) -> None:
    assert expit(x) == pytest.approx(1 / (1 + math.exp(-x)), rel=1e-15)
    assert expit(-x) == pytest.approx(math.exp(-x) / (1 + math.exp(-x)), rel=1e-14)


def test_far_out_on_the_logit_scale() -> None:
    assert (expit(1e6), expit(math.inf)) == (1.0, 1.0)
    assert 0 < expit(-math.inf) == expit(-1e6) == expit(-700.0) < expit(-699.0)
