"""Intervals by the jackknife: against influence functions, by hand, and what has none."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import detmap
from detmap.core.statistics.formulas.logit_interval import logit_interval
from detmap.core.statistics.formulas.quantiles import student
from detmap.core.statistics.jackknife import ALONE, How, _interval, intervals
from detmap.core.statistics.sampling_units import units
from tests.support import builders as make

SHAPES = make.SHAPES
CONTOURS = SHAPES / "detections" / "contours"


class Mean:
    """A metric whose standard error is known: the mean of one number per image."""

    per_class: list[dict[str, Any]] = []  # noqa: RUF012

    def __init__(self, values: np.ndarray) -> None:
        self.metrics = {"mean": float(np.mean(values)) if len(values) else math.nan}


def of_mean(values: np.ndarray, **how: Any) -> Any:
    ids = np.arange(len(values))
    return intervals(Mean(values), ids, lambda some: Mean(values[some]), How(**how)).metrics["mean"]


def test_the_standard_error_of_a_mean() -> None:
    """One part per image gives the textbook's standard error exactly."""
    values = np.random.default_rng(3).random(60)
    one = of_mean(values, parts=60)
    assert one.se == pytest.approx(values.std(ddof=1) / math.sqrt(60), rel=1e-12)
    assert one.low < one.value < one.high
    assert abs(one.bias) < 1e-12
    assert of_mean(values, level=0.5, parts=60).high < one.high
    assert of_mean(10 * values - 20, parts=60).high < 0  # no fraction: no logit scale


def test_it_covers_a_mean_as_promised() -> None:
    rng = np.random.default_rng(1)
    held = 0
    for seed in range(200):
        one = of_mean(rng.beta(2, 3, 50), parts=10, seed=seed)
        held += one.low <= 0.4 <= one.high
    assert held >= 180  # 95 % of 200, less three standard errors


class Table:
    """Three metrics of some images, and a table of two classes of which one may be missing. A
    square of a mean is biased.
    """

    def __init__(self, values: np.ndarray) -> None:
        share = float(np.mean(values)) ** 2
        self.metrics = {"share": share, "count": 10 * share - 2, "sure": 0.5}
        self.per_class: list[dict[str, Any]] = [{"id": 1, "name": "a", "AP": share, "n": 3}]
        if values[0] < 2:
            self.per_class.append({"id": 2, "name": "b", "AP": share / 2, "n": 3})


def test_every_number_by_its_definition() -> None:
    values, seed = np.random.default_rng(3).random(60) * 0.8, 7
    values[5] = 9.0  # a part without it changes much
    ids, asked, told = np.arange(100, 160), [], []

    def evaluate(some: np.ndarray) -> Table:
        asked.append(some)
        return Table(values[some - 100])

    how = How(0.9, 6, seed, None, lambda *now: told.append(now))
    found = intervals(Table(values), ids, evaluate, how)
    assert told == [(i, 6 + 16) for i in range(1, 23)]
    parts = [set(ids.tolist()) - set(some.tolist()) for some in asked[:6]]
    assert {len(part) for part in parts} == {10}
    assert set.union(*parts) == set(ids.tolist())
    assert parts[0] != set(range(100, 110))
    for one, other in zip(asked[6::2], asked[7::2], strict=True):
        assert sorted([*one.tolist(), *other.tolist()]) == ids.tolist()
        assert len(one) == len(other) == 30
    assert len({tuple(some.tolist()) for some in asked}) == 22
    for name, mean in (("share", 1.0), ("count", 10.0)):
        left_out, halves = (
            np.array([Table(values[some - 100]).metrics[name] for some in several])
            for several in (asked[:6], asked[6:])
        )
        value, one = Table(values).metrics[name], found.metrics[name]
        se = math.sqrt(5 / 6 * ((left_out - left_out.mean()) ** 2).sum())
        bias = (halves.mean() - value) / (2 ** (2 / 3) - 1)
        assert (one.value, one.level) == (value, 0.9)
        assert (one.se, one.bias) == pytest.approx((se, bias), abs=1e-12 * mean)
        q = student(0.95, 5.0)
        expected = value - bias - q * 1.08 * se, value - bias + q * 1.08 * se
        if name == "share":
            expected = logit_interval(value, 1.08 * one.se, one.bias, q)
            if expected[1] - expected[0] > 0.5:
                expected = math.nan, math.nan
        assert (one.low, one.high) == pytest.approx(expected, nan_ok=True)
    assert found.metrics["sure"].why_not == "no part changes the number: the standard error is 0"
    assert found.metrics["sure"].se == 0
    assert (found.method, found.replicates, found.seed) == ("jackknife", 6, seed)
    assert set(found.per_class) == {"a", "b"}
    assert set(found.per_class["a"]) == {"AP"}  # a count has no interval
    assert found.per_class["a"]["AP"].se == pytest.approx(found.metrics["share"].se)
    assert found.per_class["a"]["AP"].why_not == ALONE
    assert found.classes[0] is found.per_class["a"]


def test_a_class_that_a_part_lacks_is_undefined_there() -> None:
    values = np.random.default_rng(3).random(60)
    ids = np.arange(60)
    values[0] = 0.5

    def evaluate(some: np.ndarray) -> Table:
        made = Table(values[some])
        if 0 not in some:
            made.per_class.pop()
            made.metrics.pop("count")
        return made

    found = intervals(Table(values), ids, evaluate, How(parts=6))
    lost = 1 + 8  # the part with image 0, and half of the halves
    assert (
        found.per_class["b"]["AP"].why_not == f"undefined on {lost} of 22 selections of the images"
    )
    assert found.metrics["count"].why_not == f"undefined on {lost} of 22 selections of the images"


def test_the_numbers_of_images_at_their_edges() -> None:
    values = np.random.default_rng(3).random(60)
    assert math.isnan(of_mean(values[:9]).se)
    assert of_mean(values[:10]).se > 0
    assert "fewer than 50 images" in of_mean(values[:49]).why_not
    assert of_mean(values[:50]).why_not == ""
    assert of_mean(values, parts=2).se > 0
    assert of_mean(values).se == of_mean(values, parts=25).se
    assert of_mean(values[:20]).se == of_mean(values[:20], parts=20).se
    assert of_mean(values, parts=3, seed=1).se != of_mean(values, parts=3, seed=2).se
    assert of_mean(values[:10], parts=99).se == of_mean(values[:10], parts=10).se


@pytest.mark.parametrize(
    ("value", "parts", "fraction"),
    [
        (0.5, [0.4, 0.5, 0.7], True),
        (0.5, [0.48, 0.5, 0.53], True),
        (0.02, [0.0, 0.02, 0.1], True),
        (0.98, [0.9, 0.98, 1.0], True),
        (0.1, [-0.01, 0.1, 0.2], False),
        (0.9, [0.8, 0.9, 1.01], False),
        (1.5, [1.4, 1.5, 1.7], False),
        (0.0, [1.5e-12, 0.0, -1.5e-12], False),
    ],
)
def test_an_interval_from_its_values(value: float, parts: list[float], fraction: bool) -> None:
    halves = [value + 0.01, value + 0.03]
    one = _interval(value, np.array([*parts, *halves]), 3, units(np.arange(60)), 0.9, "")
    se = math.sqrt(2 / 3 * sum((each - sum(parts) / 3) ** 2 for each in parts))
    bias = 0.02 / 0.5874010519681994  # 2^(2/3) - 1
    assert (one.value, one.level) == (value, 0.9)
    assert (one.se, one.bias) == pytest.approx((se, bias))
    half = 2.919985580353726 * 1.08 * se  # Student's quantile of 0.95 for 2 degrees of freedom
    bounds = value - bias - half, value - bias + half
    if fraction:
        bounds = logit_interval(value, 1.08 * se, bias, 2.919985580353726)
    if fraction and bounds[1] - bounds[0] > 0.5:
        assert "the interval would be" in one.why_not
        bounds = math.nan, math.nan
    assert (one.low, one.high) == pytest.approx(bounds, abs=1e-13, nan_ok=True)
    assert (one.why_not == "") == (bounds[0] == bounds[0])


def test_a_standard_error_at_the_bound_of_rounding_is_none() -> None:
    parts = np.array([-1e-12, 1e-12])
    one = _interval(0.0, np.append(parts, parts), 2, units(np.arange(60)), 0.9, "")
    assert math.sqrt((parts**2).sum() / 2) == 1e-12
    assert one.why_not == "no part changes the number: the standard error is 0"


def test_parts_and_splits_are_dealt_anew() -> None:
    asked: list[tuple[int, ...]] = []
    values = np.random.default_rng(3).random(60)

    def evaluate(some: np.ndarray) -> Mean:
        asked.append(tuple(some.tolist()))
        return Mean(values[some])

    intervals(Mean(values), np.arange(60), evaluate, How(parts=2))
    assert len(set(asked)) == 2 + 16


def one_class(values: np.ndarray) -> Table:
    made = Table(values)
    del made.per_class[1:]
    return made


def test_a_single_class_has_the_interval_of_its_metric() -> None:
    values, ids = np.random.default_rng(3).random(60), np.arange(60)
    found = intervals(one_class(values), ids, lambda some: one_class(values[some]), How(parts=6))
    assert found.metrics["share"].why_not == ""
    assert found.per_class == {"a": {"AP": found.metrics["share"]}}


@pytest.mark.parametrize("parts", [0, -1, 1, 2.0, True, "x"])
def test_parts_that_are_refused(parts: Any) -> None:
    with pytest.raises(detmap.DataError, match="parts of a jackknife"):
        of_mean(np.ones(60), parts=parts)


def test_options_that_are_refused() -> None:
    for how in ({"level": 1.0}, {"level": 0.4}, {"seed": -1}, {"groups": {0: 1}}):
        with pytest.raises(detmap.DataError):
            of_mean(np.ones(60), **how)


def test_a_spread_of_rounding_is_none_also_of_large_numbers() -> None:
    rng = np.random.default_rng(0)
    assert "standard error is 0" in of_mean(1e6 + 1e-7 * rng.random(60)).why_not
    assert of_mean(1 + 1e-7 * rng.random(60)).why_not == ""


@pytest.mark.slow
def test_it_is_near_influence_functions() -> None:
    result = detmap.evaluate(SHAPES, CONTOURS, "coco-bbox")
    one, other = (result.intervals(method=m).metrics for m in ("influence", "jackknife"))
    for name in ("AP", "AP50", "AR100"):
        assert 0.6 < other[name].se / one[name].se < 1.6
        assert other[name].value == one[name].value
    circle = result.intervals(replicates=3, method="jackknife").per_class["circle"]["AP"]
    assert circle.se > 0
    assert "only the standard error" in circle.why_not


def test_what_has_no_interval_says_why() -> None:
    values = np.random.default_rng(3).random(60)
    assert "fewer than 10 images" in of_mean(values[:9]).why_not
    few = of_mean(values[:40])
    assert few.se > 0
    assert "fewer than 50 images" in few.why_not
    assert "standard error is 0" in of_mean(np.ones(60)).why_not
    some = np.full(60, np.nan)
    some[:2] = 1
    assert "undefined" in of_mean(some).why_not
    with pytest.raises(detmap.DataError, match="parts of a jackknife"):
        of_mean(values, parts=1)
    groups = {i: i // 4 for i in range(60)}
    assert of_mean(values, groups=groups).se > 0
    with pytest.raises(detmap.DataError, match="no group"):
        of_mean(values, groups={0: 1})


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{"metrics": ["MR50"]}, {"ranking.sort": "unstable"}])
def test_protocols_without_influence_functions(settings: dict[str, Any]) -> None:
    result = detmap.evaluate(SHAPES, CONTOURS, "coco-bbox", settings=settings)
    with pytest.raises(detmap.ProtocolError, match="not available with"):
        result.intervals()
    made = result.intervals(replicates=3, method="jackknife")
    assert all(one.se > 0 for one in made.metrics.values())
    assert "ci:jackknife" in made.signature


def test_parts_that_need_all_detections_are_evaluated_anew() -> None:
    settings = {"limits.scope": "dataset", "limits.max_dets": [50], "metrics": ["AP"]}
    result = detmap.evaluate(SHAPES, CONTOURS, "coco-bbox", settings=settings)
    assert result.intervals(replicates=2, method="jackknife").metrics["AP"].se > 0
    with pytest.raises(detmap.DetmapError, match="all detections together"):
        detmap.summarize(result.matches).intervals(replicates=2, method="jackknife")


def test_an_interval_over_half_of_the_scale_is_not_printed() -> None:
    parts, halves = [0.2, 0.5, 0.3], [0.6, 0.6]
    one = _interval(0.3, np.array([*parts, *halves]), 3, units(np.arange(60)), 0.95, "")
    assert math.isnan(one.low)
    assert math.isnan(one.high)
    assert one.why_not.startswith("the interval would be ")
    assert one.se > 0
    assert one.bias == pytest.approx((0.6 - 0.3) / (2 ** (2 / 3) - 1))
