"""Intervals by the jackknife: against influence functions, by hand, and what has none."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import detmap
from detmap.statistics.jackknife import How, intervals
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
