"""Each rule of an interval at its edge, texts and options: numbers are given, not evaluated."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import detmap
from detmap import DataError
from detmap.core.statistics import intervals as made
from detmap.core.statistics import replicates as drawing
from detmap.core.statistics import support
from detmap.core.statistics.bias import Bias
from detmap.core.statistics.formulas.logit_interval import logit_interval
from detmap.core.statistics.formulas.quantiles import student
from detmap.core.statistics.influence import influence
from detmap.core.statistics.intervals import Interval, Intervals, Maker, spread
from detmap.core.statistics.sampling_units import units
from tests.statistics.drawn_matches import draw
from tests.statistics.test_influence import planned

NAN = math.nan
AP50, AR1 = 1, 4  # rows of the drawn matches


def maker(integrator: str = "all_points", method: str = "influence", n_images: int = 90) -> Maker:
    """Of drawn matches, with replicates."""
    matches = draw(5, n_images, integrator)
    own, drawn = planned(matches), units(matches.image_ids)
    sample = drawing.replicates(own, drawn, 20, 3)
    n_rows, n_classes = len(own.of_class), len(own.positives)
    rest = np.zeros((5, 1)), np.zeros((n_rows, n_classes)), np.full(5, 1.5), np.full(5, 0.03)
    off = Bias(np.zeros(5), *rest)
    return Maker(own, influence(own, drawn), sample, off, drawn, 0.95, method)


def one(of: Maker, row: int = AP50, **changes: Any) -> Interval:
    """An interval of a value of 0.5 with standard errors of 0.02."""
    given = {"value": 0.5, "se": 0.02, "error": 0.02, "ratio": 1.0, "sampled": np.full(100, 0.5)}
    given |= {"bias": 0.0, "df": 10.0, "single": None, "unsupported": ""} | changes
    return of.interval(of.plan.of_metric[row], **given)


def test_a_value_at_its_bound_is_inside() -> None:
    for value, outside in (
        (0.1, False),
        (0.3, False),
        (0.0999, True),
        (0.3001, True),
        (NAN, False),
    ):
        assert Interval(value, 0.1, 0.1, 0.3, 0.0, 0.95).outside is outside


def test_an_interval_as_plain_values() -> None:
    assert Interval(0.5, 0.1, 0.4, NAN, 0.0, 0.95).to_dict() == {
        "value": 0.5,
        "se": 0.1,
        "low": 0.4,
        "high": None,
        "bias": 0.0,
        "level": 0.95,
        "why_not": None,
    }
    assert Interval(0.5, 0.1, 0.4, NAN, 0.0, 0.95, "few").to_dict()["why_not"] == "few"


@pytest.mark.parametrize(
    ("interval", "said"),
    [
        (Interval(0.5, 0.02, 0.461, 0.539, 0.001, 0.9), "AP 50.0 (90 % CI 46.1-53.9, {}"),
        (
            Interval(0.5, 0.02, 0.401, 0.479, 0.06, 0.9),
            "AP 50.0 (90 % CI 40.1-47.9 after a bias of +6.0, {}",
        ),
        (Interval(0.5, 0.09, NAN, NAN, 0.0, 0.9, "few"), "AP 50.0 +- 9.0 (standard error, {}"),
        (
            Interval(0.5, NAN, NAN, NAN, 0.0, 0.9, "few"),
            "AP 50.0 (no standard error: few; 1,234 images)",
        ),
        (Interval(NAN, NAN, NAN, NAN, 0.0, 0.9, "no object"), "AP is undefined (no object)"),
    ],
)
def test_sentences(interval: Interval, said: str) -> None:
    drawn: Any = SimpleNamespace(n=1234, noun="images")
    other = Interval(0.25, 0.02, NAN, NAN, 0.0, 0.9, "few")
    of = Intervals({"AP": interval, "AR": other}, {}, "influence", 0, 0, 0.9, drawn)
    scope = "1,234 images; the interval covers sampling of images, not training variance)"
    assert of.sentence() == said.replace("{}", scope)
    assert of.sentence("AR").startswith("AR 25.0 +- 2.0")


def test_the_signature_has_the_version_of_the_method() -> None:
    single: Any = SimpleNamespace(digest="")
    assert made.signature("influence", 9, 7, single) == "ci:influence.4|B=9|seed=7"
    assert made.signature("z+holm", 9, 7, single) == "ci:z+holm.3|B=9|seed=7"
    assert made.signature("percentile", 9, 7, single) == "ci:percentile.2|B=9|seed=7"
    grouped: Any = SimpleNamespace(digest="abc")
    assert made.signature("jackknife", 9, 7, grouped) == "ci:jackknife.2|B=9|seed=7|unit=abc"


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"level": 0.49}, "level: 0.49"),
        ({"level": 1.0}, "level: 1.0"),
        ({"level": 1.5}, "level: 1.5"),
        ({"level": NAN}, "level: nan"),
        ({"level": 1}, "level: 1"),
        ({"level": "x"}, "level: 'x'"),
        ({"method": "other"}, "method: 'other'"),
        ({"replicates": -1}, "replicates: -1"),
        ({"replicates": 20, "seed": -1}, "seed: -1"),
        ({"progress": "x"}, "progress: a str"),
    ],
)
def test_options_that_are_refused(options: dict[str, Any], what: str) -> None:
    with pytest.raises(DataError, match=what):
        detmap.summarize(draw(5, 3)).intervals(**{"replicates": 0, **options})


def test_options_at_their_edges() -> None:
    result, seen = detmap.summarize(draw(5, 3)), []
    level = np.float64(0.5)
    found = result.intervals(level, 20, progress=lambda done, of: seen.append((done, of)))
    assert found.level == 0.5
    assert seen[-1] == (20, 20)
    assert result.intervals(0.999, 0).replicates == 0


@pytest.mark.parametrize("lost", [5, 6])
def test_a_metric_may_be_undefined_in_one_of_twenty_replicates(lost: int) -> None:
    sampled = np.full(100, 0.5)
    sampled[:lost] = NAN
    why = "" if lost == 5 else "undefined in 6 of 100 replicates; more images would help"
    assert one(maker(), sampled=sampled).why_not == why


def test_all_or_nothing_but_for_rounding_has_the_exact_interval() -> None:
    of = maker()
    edge = 0.025 ** (1 / 90)
    for value in (support.ROUNDING, 0.0, -support.ROUNDING):
        found = one(of, value=value, single=90, se=0.0)
        assert (found.low, found.high, found.why_not) == (0.0, 1 - edge, "")
    found = one(of, value=1.0, single=90, se=0.0)
    assert (found.low, found.high) == (edge, 1.0)
    assert one(of, value=2 * support.ROUNDING, single=90, se=0.0).why_not
    assert one(of, value=1.0, se=0.0).why_not == "all images agree: the standard error is 0"


def test_a_standard_error_of_rounding_counts_as_none() -> None:
    of = maker()
    assert "the standard error is 0" in one(of, se=support.ROUNDING).why_not
    assert one(of, se=2 * support.ROUNDING).why_not == ""


def test_the_error_makes_the_interval_and_the_standard_error_is_printed() -> None:
    found = one(maker(), error=0.03, bias=0.01)
    low, high = logit_interval(0.5, 0.03, 0.01, student(0.975, 10.0))
    assert (found.low, found.high, found.se, found.bias) == (low, high, 0.02, 0.01)


@pytest.mark.parametrize("row", [AP50, AR1])
def test_the_error_of_a_mean_has_that_of_its_bias(row: int) -> None:
    """`wider` times the standard error, and `errors` of the bias beside it."""
    of = maker()
    found = of.metric_interval(row, 0.5)
    error = math.hypot(1.5 * of.error_of_mean(row), 0.03)
    quantile = student(0.975, of.degrees(row))
    assert (found.low, found.high) == pytest.approx(logit_interval(0.5, error, 0.0, quantile))
    assert found.se == of.error_of_mean(row)


@pytest.mark.parametrize("kind", ["AP50", "AR@1"])
def test_the_error_of_a_class_is_wider_for_ap(kind: str) -> None:
    own = maker().plan.matches
    plan = maker().plan
    rows = tuple(row for row in plan.metrics if row.name == kind)
    of = maker()
    of.plan = replace(
        planned(own), classes=rows, of_class=(plan.of_metric[AP50 if kind == "AP50" else AR1],)
    )
    of.off = replace(of.off, classes=np.full((1, 3), 0.01))
    found = of.class_interval(0, 0, 0.5)
    wider = 1.08 if kind == "AP50" else 1.0
    error = math.hypot(wider * found.se, 0.01)
    n_units = int(of.moved.n_units[of.plan.of_class[0], 0])
    if n_units < support.LEAST_UNITS:
        assert math.isnan(found.low)
        n_units = support.LEAST_UNITS
        of.moved = replace(of.moved, n_units=np.full_like(of.moved.n_units, n_units))
        found = of.class_interval(0, 0, 0.5)
    expected = logit_interval(0.5, error, 0.01, student(0.975, n_units - 1))
    assert (found.low, found.high) == pytest.approx(expected)


def test_no_replicates_no_interval() -> None:
    of, eleven = maker(), maker("eleven_point")
    of.off = eleven.off = None
    found = one(of, sampled=None, unsupported="few")
    assert (found.se, found.why_not) == (0.02, "the bias needs replicates")
    assert math.isnan(one(eleven, sampled=None).se)
    assert one(eleven, AR1, sampled=None).se == 0.02


def test_percentiles_have_the_spread_and_the_bias_of_the_replicates() -> None:
    sampled = np.concatenate([np.arange(99) / 100, [NAN]])
    found = one(maker(method="percentile"), sampled=sampled, unsupported="few")
    expected = np.quantile(sampled[:99], [0.025, 0.975])
    assert (found.low, found.high) == pytest.approx(tuple(expected))
    assert found.bias == pytest.approx(0.49 - 0.5)
    assert found.se == pytest.approx(sampled[:99].std(ddof=1))
    assert found.why_not == ""


def test_two_images_are_not_too_few_for_a_standard_error() -> None:
    for n in (1, 2):
        found = detmap.summarize(draw(5, n)).intervals(replicates=20).metrics["AR@1000"]
        assert (found.why_not == "fewer than two images") == (n == 1)
        assert math.isnan(found.se) == math.isnan(found.bias) == (n == 1)


def test_the_eleven_point_rule_has_the_spread_of_its_replicates() -> None:
    """With the leverage correction, in the ratio of the two standard errors; recall as always."""
    of = maker("eleven_point")
    row = of.metric_interval(AP50, 0.5)
    ratio = of.se[AP50] / of.uncorrected_se[AP50]
    draws = of.sample.metrics  # type: ignore[union-attr]
    assert row.se == pytest.approx(draws[:, AP50].std(ddof=1) * ratio, rel=1e-12)
    assert of.metric_interval(AR1, 0.5).se == of.error_of_mean(AR1)
    assert "11-point rule" in row.why_not
    assert "11-point rule" not in of.metric_interval(AR1, 0.5).why_not
    s = of.plan.of_class[0]
    corrected, plain = (
        math.sqrt(each[s, 1]) for each in (of.moved.class_unbiased, of.moved.class_uncorrected)
    )
    draws = of.sample.classes[:, 0, 1]  # type: ignore[union-attr]
    found = of.class_interval(0, 1, 0.5, draws)
    assert corrected > plain > 0
    assert found.se == pytest.approx(draws.std(ddof=1) * corrected / plain, rel=1e-12)
    nothing = np.zeros_like(of.moved.class_unbiased)
    of.moved = replace(of.moved, class_unbiased=nothing, class_uncorrected=nothing)
    assert of.class_interval(0, 1, 0.5, draws).se == pytest.approx(draws.std(ddof=1), rel=1e-12)
    of.se = of.uncorrected_se = np.zeros(5)
    draws = of.sample.metrics  # type: ignore[union-attr]
    assert of.metric_interval(AP50, 0.5).se == pytest.approx(draws[:, AP50].std(ddof=1))


@pytest.mark.parametrize(("undefined", "value"), [("skip", None), ("one", 1.0), ("zero", 0.0)])
def test_the_error_of_a_mean_has_that_of_rare_classes(undefined: str, value: float | None) -> None:
    of = maker()
    of.plan = replace(
        of.plan,
        matches=replace(
            of.plan.matches, protocol=of.plan.protocol.override({"mean.undefined": undefined})
        ),
    )
    s = of.plan.of_metric[AP50]
    of.moved = replace(of.moved, n_units=np.full_like(of.moved.n_units, 2))
    rare = support.variance_of_rare_classes(
        of.shares[AP50],
        of.moved.n_units[s],
        of.moved.values[s],
        of.moved.class_unbiased[s],
        of.units,
        value,
    )
    assert rare > 1e-6
    assert of.error_of_mean(AP50) == pytest.approx(math.sqrt(of.se[AP50] ** 2 + rare), rel=1e-14)


@pytest.mark.parametrize(
    ("shares", "variances", "n_units", "expected"),
    [
        ([1.0, 0, 0], [4.0, 1, 1], [90, 90, 90], 89.0),
        ([0.5, 0.25, 0.25], [4.0, 4, 16], [11, 5, 2], 2.25**2 / (1 / 10 + 0.0625 / 4 + 1.0)),
        ([0.5, 0.5, 0], [0.0, 1, 1], [90, 1, 90], 1.0),
        ([0.5, 0.5, 0], [0.0, 1, 1], [90, 2, 90], 1.0),
        ([0.5, 0.5, 0], [0.0, 0, 1], [90, 90, 90], math.inf),
    ],
)
def test_degrees_of_freedom_by_hand(
    shares: list[float], variances: list[float], n_units: list[int], expected: float
) -> None:
    """Satterthwaite: (sum of v)^2 over the sum of v^2 / (n - 1), v of a class times its share^2."""
    of = maker()
    s, shape = of.plan.of_metric[AP50], of.moved.class_unbiased.shape
    of.shares = np.tile(shares, (5, 1))
    of.has_objects = of.shares > 0
    v, n = np.full(shape, NAN), np.full(shape, -1)
    v[s], n[s] = variances, n_units
    of.moved = replace(of.moved, class_unbiased=v, n_units=n)
    assert of.degrees(AP50) == pytest.approx(expected, rel=1e-14)


def test_the_spread_of_two_values() -> None:
    assert spread(np.array([1.0, 2.0])) == pytest.approx(math.sqrt(0.5))
    assert math.isnan(spread(np.array([1.0])))
    assert math.isnan(made.mean_of(np.zeros(0)))
    assert made.mean_of(np.array([1.0, 2.0, 6.0])) == 3.0


def test_notes_count_rare_classes_and_values_outside() -> None:
    of = maker()
    s, n = of.plan.of_metric[0], np.full_like(of.moved.n_units, 90)
    inside, outside = Interval(0.5, 0.1, 0.4, 0.6, 0, 0.95), Interval(0.5, 0.1, 0.6, 0.7, 0, 0.95)
    for counts, metrics, expected in (
        ([3, 9, 90], [inside], []),
        ([2, 3, 1], [inside], [("few-images", 2)]),
        ([3, 3, 3], [inside, outside, outside], [("outside-interval", 2)]),
    ):
        n[s] = counts
        named = dict(zip("abc", metrics, strict=False))
        notes = made._notes(of.plan, replace(of.moved, n_units=n), of.units, named)
        assert [(note.code, note.count) for note in notes] == expected


def test_an_interval_over_half_of_the_scale_is_not_printed() -> None:
    """A value of .06 with a bias of .045: on the logit scale the interval would reach 1."""
    found = one(maker(), value=0.057, se=0.036, error=0.05, bias=0.045)
    assert math.isnan(found.low)
    assert math.isnan(found.high)
    assert found.se == 0.036
    assert found.why_not.startswith("the interval would be 0.00 to 0.9")
    assert "more images would help" in found.why_not
    drawn = maker().units
    assert not support.too_wide(0.25, 0.75, drawn)
    assert support.too_wide(0.25, 0.7500001, drawn)
