"""What an interval is corrected by, when there is none, and that its p-value is on one basis."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import detmap
from detmap.analysis.html_report.numbers import known, moved
from detmap.core.statistics import gate as gates
from detmap.core.statistics import replicates as drawing
from detmap.core.statistics import support
from detmap.core.statistics.bias import bias
from detmap.core.statistics.influence import influence
from detmap.core.statistics.interval_tables import comparison_tables, metric_tables
from detmap.core.statistics.intervals import Interval
from detmap.core.statistics.resampled_numbers import Sampled, differences
from detmap.core.statistics.sampling_units import units
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
        ("--fail-if-drop=.01", 1),
        ("--fail-if-drop=1", 0),
        ("--require-within=.01", 1),
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


def test_reasons_and_their_edges() -> None:
    images, groups = units(np.arange(100)), units(np.arange(100), {i: i for i in range(100)})
    assert support.few_units(groups) == "fewer than 50 groups; more groups would help"
    assert support.no_spread(groups) == "all groups agree: the standard error is 0"
    assert support.refuse_class(81, images) == ""
    text = "a single class on {}: coverage is too low below 81; more {} of it would help"
    assert support.refuse_class(80, images) == text.format("80 images", "images")
    assert support.refuse_class(1, groups) == text.format("1 group", "groups")
    assert support.refuse_class(0, images) == text.format("0 images", "images")
    eleven = detmap.load_protocol("voc2007")
    assert "--set ap.integrator=all_points" in support.refuse_rule(eleven, "AP")
    assert support.refuse_rule(eleven, "AR") == ""
    assert support.refuse_rule(detmap.load_protocol("voc2012"), "AP") == ""


def test_the_rule_with_intervals_is_the_all_point_rule_for_the_eleven_point_rule_alone() -> None:
    eleven = detmap.load_protocol("voc2007")
    assert support.with_intervals(eleven) == eleven.override({"ap.integrator": "all_points"})
    for name in ("voc2012", "coco-bbox"):
        protocol = detmap.load_protocol(name)
        assert support.with_intervals(protocol) is protocol


@pytest.mark.parametrize(
    ("grid", "known"),
    [
        ("0:0.01:1", True),
        ("float32 0:0.01:1", True),
        ("0:0.002:1", True),
        ("0:0.0101:1", False),  # 100 points
        ("0:0.05:1", False),
        ("0:0.005:0.5", False),
        ("0.01:0.005:1", False),
    ],
)
def test_few_or_other_recall_points_have_no_influence_function(grid: str, known: bool) -> None:
    rules = detmap.load_protocol("coco-bbox").override({"ap.grid": grid})
    assert support.has_influence(rules) is known
    assert support.refuse_rule(rules, "AR") == ""
    assert ("at least 101 evenly spaced" in support.refuse_rule(rules, "AP")) is not known


def test_at_few_recall_points_the_standard_error_is_that_of_replicates() -> None:
    """That of the area under the whole curve is less than two thirds of it."""
    matches = draw(1, 200)
    result = detmap.summarize(matches)
    half = matches.protocol.override({"ap.grid": "0:0.05:0.5"})
    other = detmap.summarize(replace(matches, protocol=half))
    area, found = (each.intervals(replicates=200) for each in (result, other))
    assert not area.metrics["AP"].why_not
    one = found.metrics["AP"]
    assert "recall points" in one.why_not
    assert np.isnan(one.low)
    own = planned(replace(matches, protocol=half))
    draws = drawing.replicates(own, units(matches.image_ids), 200, 0).metrics[:, 0]
    assert one.se == pytest.approx(draws.std(ddof=1), rel=0.1)
    assert area.metrics["AP"].se < 2 / 3 * one.se
    assert found.metrics["AR@1"] == area.metrics["AR@1"]
    second = detmap.summarize(replace(draw(2, 200), protocol=half))
    pairs = detmap.compare(other, second, replicates=20).pairs
    assert ["recall points" in each.why_not for each in pairs] == [True] * 3 + [False] * 2


@pytest.mark.parametrize("same", [True, False])
def test_what_differs_by_rounding_alone(same: bool) -> None:
    edge = support.ROUNDING if same else 2 * support.ROUNDING
    for difference, se in ((edge, 0.0), (-edge, 0.0), (0.0, edge)):
        assert support.same(difference, se) == same
    assert not support.same(0.0, math.nan)
    assert not support.same(math.nan, 0.0)


def test_a_mean_that_a_sample_lacks_three_percent_of(monkeypatch: pytest.MonkeyPatch) -> None:
    """Classes on one image of 100 lack (1 - 1/100)^100 = .366 of the samples: 8.2 % of the mean
    makes 3 %.
    """
    images, n_units = units(np.arange(100)), np.array([90, 1, 3, 4, 0, 1])
    lost = (1 - 1 / 100) ** 100
    for share, refused in ((0.0299 / lost, False), (0.0301 / lost, True)):
        shares = np.array([1 - share, share, 0.0, 0.0, 1.0, 0.0])
        assert bool(support.refuse_mean(shares, n_units, images)) is refused
    shares = np.array([0.25, 0.25, 0.25, 0.25, 0.0, 0.0])
    total = (lost + (1 - 3 / 100) ** 100 + (1 - 4 / 100) ** 100 + (1 - 0.9) ** 100) / 4
    assert support.lacking_share(shares, n_units, images) == pytest.approx(total)
    assert support.lacking_share(shares[4:], n_units[4:], images) == 0.0
    assert support.refuse_mean(shares, n_units, images) == (
        f"2 of 4 classes are on 1 to 3 images: a sample like this lacks {total:.0%} of the mean; "
        "more images would help, or the mean of a group of classes that are on more of them"
    )
    assert support.refuse_mean(shares, n_units, units(np.arange(49))).startswith("fewer than 50")
    zero = np.array([0.25, 0.25, 0.25, 0.0, 0.25, 0.0])  # a class without objects counts as 0
    assert support.refuse_mean(zero, n_units, images).startswith("2 of 3 classes are on 1 to 3 im")
    monkeypatch.setattr(support, "MOST_LACKING", support.lacking_share(shares, n_units, images))
    assert support.refuse_mean(shares, n_units, images) == ""


def test_units_are_images_or_groups() -> None:
    names = np.array(["b", "a", "c", "d"])
    alone = units(names)
    assert (alone.n, alone.names, alone.digest, alone.noun) == (
        4,
        ("b", "a", "c", "d"),
        "",
        "images",
    )
    assert alone.of_image.tolist() == [0, 1, 2, 3]
    values = np.arange(8.0).reshape(2, 1, 4)
    assert alone.gathered(values) is values
    grouped = units(names, {"b": "x", "a": 7, "c": "x", "d": "y", "other": "z"})
    assert (grouped.n, grouped.names, grouped.noun) == (3, ("x", "7", "y"), "groups")
    assert grouped.of_image.tolist() == [0, 1, 0, 2]
    assert grouped.gathered(values).tolist() == [[[2.0, 1.0, 3.0]], [[10.0, 5.0, 7.0]]]
    assert len(grouped.digest) == 12
    assert units(names, {"b": 1, "a": 2, "c": 1, "d": 3}).digest == grouped.digest
    assert units(names, {"b": 1, "a": 2, "c": 3, "d": 3}).digest != grouped.digest


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("Image, Group\nb,x\n\na , 7\nc,x\nd,y\n", None),
        ("\ufeffimage,group\nb,x\na,7\nc,x\nd,y\nb,x\n", None),
        ("b,x\na,7\nc,x\nd,y\n , \nimage,group\n", None),
        ("b,x\na,7\nc,x\n", "no group for 1 of 4 images: d"),
        ("b,x,1\n", "csv:1.*3 fields"),
        ("b,x\na\n", "csv:2.*1 fields"),
        ("b,x\na,\n", "csv:2.*2 fields"),
        ("b,x\na,7\nb,y\n", "csv:3.*image 'b' is in two groups"),
        ("image,group\nimage,z\nb,x\na,7\nc,x\nd,y\n", None),  # an image of that name
        ("b,x\nimage,group\nimage,z\n", "csv:3.*image 'image' is in two groups"),
        ("b," + 200_000 * "x", "csv: not CSV: field larger than field limit"),
    ],
)
def test_a_file_of_groups(text: str, what: str | None, tmp_path: Path) -> None:
    names, file = np.array(["b", "a", "c", "d"]), tmp_path / "groups.csv"
    file.write_text(text, encoding="utf-8")
    if what is None:
        for path in (file, str(file)):
            found = units(names, path)
            assert found.names == ("x", "7", "y")
            assert found.of_image.tolist() == [0, 1, 0, 2]
        return
    with pytest.raises(detmap.DataError, match=what):
        units(names, file)


def test_groups_of_a_wrong_kind(tmp_path: Path) -> None:
    with pytest.raises(detmap.DataError, match="groups: a list"):
        units(np.arange(3), [1, 2, 3])  # type: ignore[arg-type]
    file = tmp_path / "groups.csv"
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(detmap.DataError, match="is not text"):
        units(np.arange(3), file)
    with pytest.raises(detmap.DataError, match=r"^groups: no group for 2 of 3 images: 1, 2"):
        units(np.arange(3), {0: 1})


@pytest.mark.parametrize("undefined", ["skip", "zero", "one"])
@pytest.mark.parametrize("weights", ["equal", "images"])
def test_the_shares_of_classes_in_a_mean(undefined: str, weights: str) -> None:
    matches = draw(3, 12)
    counted, tp, of_2 = matches.counted.copy(), matches.tp.copy(), matches.off[2]
    counted[matches.obj_off[2] :, 1] = tp[of_2:, 1] = 0  # no small object of class 2
    groups = {"group": ["class 0", "class 2"], "alone": ["class 1"]}
    rules = {"groups": groups, "metrics": ["AP", "APs", "AP-group", "AP-alone"]}
    rules |= {"mean.undefined": undefined, "mean.weights": weights}
    protocol = matches.protocol.override(rules)
    own = planned(replace(matches, counted=counted, tp=tp, protocol=protocol))
    two, alone = [True, False, True], [False, True, False]
    assert own.members.tolist() == [[True] * 3, [True] * 3, two, alone]
    assert own.has_objects().tolist() == [[True] * 3, [True, True, False], two, alone]
    images = [
        len(set(matches.obj_image[matches.obj_off[k] : matches.obj_off[k + 1]])) for k in range(3)
    ]
    assert own.n_images.tolist() == images
    for q, found in enumerate(own.shares()):
        mine = own.has_objects()[q] if undefined == "skip" else own.members[q]
        weight = np.where(mine, images if weights == "images" else 1.0, 0.0)
        assert found == pytest.approx(weight / weight.sum())
    objects = [counted[a:b].sum(axis=0).tolist() for a, b in pairwise(matches.obj_off)]
    assert own.positives.tolist() == objects


def test_rules_of_single_tools_have_no_interval() -> None:
    matches = draw(3, 12)
    rules = matches.protocol.override({"mean.undefined": "no_mean"})
    with pytest.raises(
        detmap.ProtocolError, match=r"interval is not available with mean\.undefined"
    ):
        planned(replace(matches, protocol=rules))


def test_a_reading_has_a_bit_for_each_of_its_thresholds() -> None:
    matches = draw(3, 12)
    rules = matches.protocol.override({"metrics": ["AP70", "AP60", "AP", "AR@1"]})
    own = planned(replace(matches, protocol=rules))
    words = own.readings.words[list(own.of_metric)]
    assert words.tolist() == [0b100, 0b010, 0b111, 0b111]


def test_readings_are_shared_by_rows() -> None:
    matches = draw(3, 12)
    own = planned(matches)  # AP, AP50, APs, AR@1000, AR@1; of classes AP, AP50 ...
    assert own.of_metric == (0, 1, 2, 3, 4)
    assert own.readings.area.tolist()[:5] == [0, 0, 1, 0, 0]
    assert own.readings.words.tolist()[:5] == [7, 1, 7, 7, 7]
    assert own.readings.limit.tolist()[:5] == [-1, -1, -1, 1000, 1]
    assert own.of_class[0] == 0
    assert set(own.of_class) <= set(range(len(own.readings.area)))
    every = matches.protocol.override({"ap.recall_over": "all"})
    assert planned(replace(matches, protocol=every)).counts.all()
    assert not own.counts.all()
    empty = replace(own, positives=np.zeros_like(own.positives), n_images=np.zeros(3))
    assert not empty.shares().any()
