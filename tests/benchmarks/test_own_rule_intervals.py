"""Intervals of results by a rule of their own."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import detmap
from detmap.benchmarks.shared.own_rule_intervals import evaluate_result, units_of_truth
from detmap.core.base.resources import folder
from detmap.core.statistics.sampling_units import units
from detmap.core.statistics.subsets import subsets

SHAPES = folder("datasets") / "shapes"


def test_any_evaluation_is_read_by_its_metrics_and_rows() -> None:
    """The general way gives the numbers of the fast way."""
    result = detmap.evaluate(SHAPES, SHAPES / "detections" / "contours", "voc2012")
    ids = result.matches.image_ids
    made, told = subsets(units(ids), 1), []
    n_units = units_of_truth(result.matched[0], made.units)
    slow = evaluate_result(
        result, ids, made, n_units, 0, {}, progress=lambda *now: told.append(now)
    )
    fast = result.evaluate_subsets(made)
    assert told == [(e, 57) for e in range(1, 58)]
    assert slow.metrics == fast.metrics
    np.testing.assert_array_equal(slow.estimates.parts[:, 0], fast.estimates.parts[:, 0])
    cells = {cell: slow.estimates.parts[:, 1 + c] for c, cell in enumerate(slow.cells)}
    for c, cell in enumerate(fast.cells):
        np.testing.assert_array_equal(cells[cell], fast.estimates.parts[:, 1 + c])
    assert slow.estimates.rules[0].why_not == fast.estimates.rules[0].why_not


@pytest.mark.parametrize(
    ("n_points", "m", "why"),
    [
        (40, 90, "few recall points"),
        (40, 6, "on 6 images"),
        (0, 6, "on 6 images"),
        (0, 90, ""),
        (101, 90, ""),
    ],
)
def test_metrics_of_one_class_have_the_rule_of_a_class(n_points: int, m: int, why: str) -> None:
    ids, rng = np.arange(120), np.random.default_rng(0)
    found = rng.random(120)

    def select(some: np.ndarray) -> Any:
        value = float(found[some].mean())
        row = {"name": "car", "id": 7, "easy": value}
        return SimpleNamespace(metrics={"car-easy": value}, per_class=[row], select=select)

    dealt = subsets(units(ids), 0)
    made = evaluate_result(select(ids), ids, dealt, {7: m}, n_points, {"car-easy": 7})
    metric, cell = made.estimates.intervals(0.95)
    assert metric == cell
    assert why in metric.why_not
    assert bool(metric.why_not) == bool(why)
