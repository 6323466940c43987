"""What an interval is corrected by, when there is none, and that its p-value is on one basis."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

import detmap
from detmap.html_report.numbers import known, moved
from detmap.statistics import gate as gates
from detmap.statistics import replicates as drawing
from detmap.statistics import support
from detmap.statistics.bias import bias
from detmap.statistics.influence import influence
from detmap.statistics.interval_tables import comparison_tables, metric_tables
from detmap.statistics.intervals import Interval
from detmap.statistics.resampled_numbers import Sampled, differences
from detmap.statistics.sampling_units import units
from tests.statistics.drawn_matches import draw
from tests.statistics.goldens import INTEGRATORS
from tests.statistics.test_comparison import two, with_rare_classes
from tests.statistics.test_influence import planned
from tests.support.running import run


@pytest.mark.parametrize("integrator", INTEGRATORS.values())
def test_the_bias_is_the_step_to_halves(integrator: str) -> None:
    """By `summarize` with weights 0 and 1: a coin an image, and its complement, class by class."""
    matches = draw(5, 40, integrator)
    own = planned(matches)
    each = units(matches.image_ids)
    n_units = influence(own, each).n_units
    found = bias(own, each, n_units, 16, 3)
    side = drawing.random_words(3, drawing.HALVES, 0, (8, 40)) >= 1 << 63
    weights = np.concatenate([side, ~side]).astype(float)
    halves = [_ap_of_classes(detmap.summarize(matches, weights=w)) for w in weights]
    step = np.nanmean(halves, axis=0) - _ap_of_classes(detmap.summarize(matches))
    expected = step / ((2 - 2.0 ** (1 - n_units[own.of_class[0]])) ** (2 / 3) - 1)
    np.testing.assert_allclose(found.classes[0], expected, atol=1e-12)
    assert found.metrics[0] == pytest.approx(np.nanmean(expected), abs=1e-12)
    known = expected[~np.isnan(expected)] / (~np.isnan(expected)).sum()
    assert found.errors[0] == pytest.approx(math.sqrt((known**2).sum()), abs=1e-12)
    again = bias(own, each, n_units, 16, 3, threads=4)
    assert np.array_equal(found.classes, again.classes)


def _ap_of_classes(result: detmap.Result) -> np.ndarray:
    return np.array([row["AP"] for row in result.per_class], dtype=float)


def test_a_mean_over_rare_classes_has_no_interval_anywhere(tmp_path: Path) -> None:
    matches = with_rare_classes()[1]
    result = detmap.summarize(matches)
    made = result.intervals(replicates=20)
    one = made.metrics["mAP"]
    assert (math.isnan(one.low), math.isnan(one.high), one.se > 0) == (True, True, True)
    for words in ("3 of 4 classes are on 1 to 3 images", "more images would help", "a group of"):
        assert words in one.why_not
    assert "standard error" in made.sentence()
    table = metric_tables(made, per_class=True)[0]
    assert table.rows[0][0] == "mAP*"
    assert one.why_not in " ".join(table.lines)
    assert one.to_dict()["low"] is None
    assert known(one.value, one).under.startswith("±")
    percentile = result.intervals(replicates=20, method="percentile").metrics["mAP"]
    assert not percentile.why_not


def test_a_command_without_an_interval_says_why(tmp_path: Path) -> None:
    files = []
    for place, matches in enumerate(with_rare_classes()):
        matches.save(tmp_path / f"{place}.npz")
        files.append(tmp_path / f"{place}.npz")
    told = run("compare", *files, "--replicates=16", "--format=json")
    pair = json.loads(told.out)["pairs"][0]
    assert (pair["low"], pair["p"], "more images would help" in pair["why_not"]) == (
        None,
        None,
        True,
    )
    for gate, code in (
        ("--fail-if-drop=1", 1),
        ("--fail-if-drop=100", 0),
        ("--require-within=1", 1),
    ):
        told = run("compare", *files, "--replicates=16", gate)
        assert (told.code, "no test of it holds its level" in told.err) == (code, True)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("integrator", ["all_points", "eleven_point"])
def test_an_interval_without_zero_has_a_small_p(seed: int, integrator: str) -> None:
    """In every row of every table, and beside it the adjusted p-value is named so."""
    first, second = two(seed, 110, integrator)
    found = detmap.compare(first, second, replicates=16)
    rows = [one for one in (*found.pairs, *found.classes) if not one.why_not]
    assert rows
    for one in rows:
        assert (one.low > 0 or one.high < 0) == (one.p < found.alpha)
        assert one.p_adjusted >= one.p
    for table in comparison_tables(found)[1:3]:
        assert "adjusted p" in table.header
        assert any("adjusted p: for all rows together" in line for line in table.lines)


@pytest.mark.parametrize("apart", [0.01, 0.02, 0.03, 0.04])
def test_a_difference_of_fractions_keeps_to_the_same_rule(apart: float) -> None:
    rng = np.random.default_rng(1)
    each = units(np.arange(120))
    sides = []
    for value, off in ((0.5, 0.01), (0.5 + apart, 0.0)):
        draws = rng.normal(value, 0.01, (300, 1))
        interval = Interval(value, 0.01, value - 0.02, value + 0.02, off, 0.95)
        sides.append(Sampled(np.array([value]), draws, each, (interval,)))
    one = differences(sides[1], sides[0])[0]
    assert (one.low > 0 or one.high < 0) == (one.p < 0.05)


def test_a_value_outside_of_its_interval_is_noted() -> None:
    one = Interval(0.027, 0.0005, 0.024, 0.026, 0.002, 0.95)
    assert one.outside
    assert known(one.value, one).under == "2.40 to 2.60, bias +0.20"
    matches = draw(0, 100)
    made = detmap.summarize(matches).intervals(replicates=16)
    noted = [note.count for note in made.notes if note.code == "outside-interval"]
    assert noted == ([n] if (n := sum(each.outside for each in made.metrics.values())) else [])


def test_interval_and_p_value_on_the_page_are_of_one_test() -> None:
    pairs = detmap.compare(*two(1, 110), replicates=16).pairs
    assert ", p " in moved(pairs[0].difference, pairs[0]).under
    assert all((one.low > 0 or one.high < 0) == (one.p < 0.05) for one in pairs if one.p == one.p)


def test_a_gate_takes_the_bias_off() -> None:
    found = detmap.compare(*two(7, 110), replicates=16)
    one = found.pairs[0]
    margin = -100 * (one.difference - one.bias)
    for shift, passed in ((1.7, True), (1.6, False)):
        gate = gates.Gate("require-within", margin + 100 * shift * one.se)
        assert gates.judge(found, gate, 0.05).passed is passed


def test_few_images_have_no_interval_of_a_mean() -> None:
    why = [
        support.refuse_mean(np.ones(2), np.array([n, n]), units(np.arange(n), None))
        for n in (20, 50)
    ]
    assert why == ["fewer than 50 images; more images would help", ""]
