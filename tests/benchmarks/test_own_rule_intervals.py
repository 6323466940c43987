"""Intervals of results by a rule of their own."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import detmap
from detmap.benchmarks.shared.own_rule_intervals import evaluate_result, units_of_truth
from detmap.benchmarks.suites import evaluate_suite
from detmap.core.base.resources import folder
from detmap.core.statistics.sampling_units import units
from detmap.core.statistics.subsets import subsets
from tests.statistics.test_interval_traps import drawn

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


def test_extra_metrics_leave_the_intervals_of_others_alone(tmp_path: Path) -> None:
    files = drawn(tmp_path, ("cat", "cat", "dog"))
    whole = detmap.evaluate(*files, "aitod").intervals()
    matches = detmap.match(*files, "aitod")
    merged = detmap.summarize(matches).intervals()
    assert {*merged.metrics} < {*whole.metrics}
    assert {name: whole.metrics[name] for name in merged.metrics} == merged.metrics
    assert merged.classes == whole.classes
    assert whole.metrics["oLRP"].value > 0


def test_extra_metrics_have_the_refusals_and_the_rule_of_their_kind(tmp_path: Path) -> None:
    rare = drawn(tmp_path, ("a",))
    truth = json.loads(rare[0].read_text())
    truth["annotations"] = [one for one in truth["annotations"] if one["image_id"] < 18]
    rare[0].write_text(json.dumps(truth))
    for name in ("aitod", "visdrone"):
        made = detmap.evaluate(*rare, name).intervals().metrics
        assert all("single class on 1" in one.why_not for one in made.values() if one.se > 0)
    made = detmap.evaluate(*drawn(tmp_path, ("a",)), "visdrone").intervals().metrics
    assert made["AR100"].value == made["AR500"].value
    assert made["AR100"] == made["AR500"]


def test_a_suite_of_one_data_set_has_its_intervals(tmp_path: Path) -> None:
    truth, found = drawn(tmp_path, ("cat", "cat", "dog"))
    row = f'[[data]]\nname = "{{}}"\ntruth = "{truth}"\ndetections = "{found}"\n'
    path = tmp_path / "suite.toml"
    for name in ("coco-bbox", "voc2007", "aitod"):
        path.write_text(f'protocol = "{name}"\n' + row.format("one"))
        own = detmap.evaluate(truth, found, name).intervals().metrics
        for metric, bounds in (
            evaluate_suite(path, intervals=True).figure_intervals()["mean"].items()
        ):
            one = own[metric]
            np.testing.assert_array_equal(bounds, (one.se, one.low, one.high))


def test_a_figure_has_no_bounds_if_one_of_its_data_sets_has_none(tmp_path: Path) -> None:
    (tmp_path / "perfect").mkdir()
    both = [drawn(tmp_path / "perfect", ("a", "b"), 1.0, 0.0), drawn(tmp_path, ("a", "b"))]
    path = tmp_path / "suite.toml"
    rows = [
        f'[[data]]\nname = "{k}"\ntruth = "{truth}"\ndetections = "{found}"\n'
        for k, (truth, found) in enumerate(both)
    ]
    path.write_text('protocol = "coco-bbox"\n' + "".join(rows))
    se, low, high = evaluate_suite(path, intervals=True).figure_intervals()["mean"]["AP"]
    assert se > 0
    assert np.isnan([low, high]).all()
