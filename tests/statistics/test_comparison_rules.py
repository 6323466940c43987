"""Each rule of a comparison, and its tables, from numbers that are given."""

import math
from dataclasses import replace
from itertools import islice
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import detmap
from detmap.core.statistics import comparison as module
from detmap.core.statistics.comparison import Comparison, Maker
from detmap.core.statistics.estimates import Estimates, Interval, Rule
from detmap.core.statistics.evaluations import Evaluated
from detmap.core.statistics.formulas import multiple_comparisons as multiple
from detmap.core.statistics.intervals import Intervals
from detmap.core.statistics.sampling_units import units
from detmap.core.statistics.subsets import subsets
from detmap.core.statistics.ties import Tied, tie_table
from detmap.core.statistics.verdict import comparison_tables
from detmap.core.tables import Categories

NAN = math.nan
VALUES = {"x": (0.5, 0.6, 0.2, 0.7), "y": (0.6, 0.6, 0.4, 0.7), "z": (0.44, 0.7, 0.2, 0.7)}
"""Of three detectors: AP, AR, AP of two classes."""


def evaluated(name: str, n: int = 100, spread: float = 0.1, **values: Any) -> Evaluated:
    """Numbers whose parts vary by so much; AR has no interval."""
    made = subsets(units(np.arange(n)), 0)
    value = np.array({**VALUES, **values}[name])
    noise = np.random.default_rng(sum(map(ord, name))).normal(0, spread / 50, (len(made), 4))
    noise[:, 3] = 0
    rules = tuple(Rule(why_not=why) for why in ("", "few", "", ""))
    estimates = Estimates(value, value, value + noise, made, rules)
    return Evaluated(("AP", "AR"), ((0, "AP"), (1, "AP")), estimates)


def maker(names: str = "xyz", adjust: str = "holm", **changes: Any) -> Maker:
    classes = Categories(np.array([3, 7]), ("cat", "dog"))
    return Maker(list(names), [evaluated(name, **changes) for name in names], classes, 0.05, adjust)


def comparison(names: str = "xy", **changes: Any) -> Comparison:
    of = maker(names, **changes)
    pairs = of.pairs()
    board = of.leaderboard(pairs)
    method: Any = (0.05, "t", "holm", 7, of.units, "signature", of.notes())
    values = {"AP": (0.5, NAN)}
    return Comparison(
        of.names, values, of.intervals(), tuple(pairs), tuple(of.classes()), tuple(board), *method
    )


def test_pairs_are_differences_of_the_estimates() -> None:
    of = maker()
    wanted = [(a, b, metric) for a, b in ("xy", "xz", "yz") for metric in ("AP", "AR")]
    assert [(one.a, one.b, one.metric) for one in of.pairs()] == wanted
    for one in of.pairs():
        q = ("AP", "AR").index(one.metric)
        apart = evaluated(one.b).estimates.differences(evaluated(one.a).estimates)[q]
        own = one.difference, one.se, one.low, one.high, one.bias, one.p, one.mdd, one.why_not
        its = apart.value, apart.se, apart.low, apart.high, apart.bias, apart.p, apart.mdd
        assert one.df == apart.df == 24
        assert str(own) == str((*its, apart.why_not))
    assert [one.why_not for one in of.pairs()] == ["", "few"] * 3
    assert of.values()["AP"] == (0.5, 0.6, 0.44)


@pytest.mark.parametrize("adjust", multiple.ADJUSTMENTS)
def test_each_metric_is_adjusted_over_its_pairs(adjust: str) -> None:
    p = [one.p for one in maker().pairs() if one.metric == "AP"]
    found = [one.p_adjusted for one in maker(adjust=adjust).pairs() if one.metric == "AP"]
    expected = {"holm": multiple.holm(p), "bh": multiple.bh(p), "none": p}[adjust]
    assert found == expected


def test_classes_are_sorted_by_their_adjusted_p_value() -> None:
    rows = maker("xy").classes()
    wanted = [("cat", 3, "AP"), ("dog", 7, "AP")]
    assert [(one.name, one.id, one.metric) for one in rows] == wanted
    assert rows[0].difference == pytest.approx(0.2)
    assert (rows[1].difference, rows[1].p) == (0, 1)
    assert rows[0].p_adjusted == pytest.approx(2 * rows[0].p)
    undefined = maker("xy", x=(0.5, 0.6, NAN, 0.7)).classes()
    assert [one.name for one in undefined] == ["dog"]


def test_the_leaderboard() -> None:
    of = maker()
    expected = [("y", 0.6, "a"), ("x", 0.5, "b"), ("z", 0.44, "c")]
    assert of.leaderboard(of.pairs()) == expected
    same = (0.5, 0.6, 0.2, 0.7)
    of = maker(x=same, y=same, z=same)
    assert of.leaderboard(of.pairs()) == [("x", 0.5, "a"), ("y", 0.5, "a"), ("z", 0.5, "a")]
    of = maker(n=99)
    assert [letters for *_, letters in of.leaderboard(of.pairs())] == ["", "", ""]
    of = maker(x=(NAN, 0.6, 0.2, 0.7), y=(0.0, 0.6, 0.2, 0.7))
    assert [name for name, *_ in of.leaderboard(of.pairs())] == ["z", "y", "x"]
    of = maker()
    edge = [pair for pair in of.pairs() if pair.metric == "AP"]
    of.alpha = max(one.p_adjusted for one in edge)  # below it, not at it
    assert len({letters for *_, letters in of.leaderboard(edge)}) == 2


def test_notes() -> None:
    assert maker().notes() == ()
    assert [note.code for note in maker(n=99).notes()] == ["few-images"]


def test_letters_of_groups() -> None:
    assert [module._letter(n) for n in (0, 1, 25, 26)] == ["a", "b", "z", "(27)"]


@pytest.mark.parametrize(
    ("alpha", "adjust", "what"),
    [
        (0.0, "holm", "alpha: 0.0"),
        (0.51, "holm", "alpha: 0.51.*level from 1e-06 to 0.5"),
        (1, "holm", "alpha: 1"),
        (NAN, "holm", "alpha: nan"),
        (0.05, "maxt", "adjust: 'maxt'"),
    ],
)
def test_options_that_are_refused(alpha: Any, adjust: str, what: str) -> None:
    with pytest.raises(detmap.DataError, match=what):
        module.check(alpha, adjust)
    module.check(0.5, "bh")


def test_a_comparison_as_plain_values() -> None:
    found = comparison(n=99).to_dict()
    assert found["names"] == ["x", "y"]
    assert found["metrics"] == {"AP": [0.5, None]}
    assert found["pairs"][0]["difference"] == pytest.approx(0.1)
    why = "fewer than 100 images: no p-value; use the interval"
    assert (found["pairs"][0]["p"], found["pairs"][0]["why_not"]) == (None, why)
    assert found["pairs"][1]["why_not"] == "few"
    assert (found["classes"][0]["class"], found["classes"][0]["id"]) == ("cat", 3)
    assert "name" not in found["classes"][0]
    assert "images" not in found
    assert found["leaderboard"][0] == {"name": "y", "value": 0.6, "groups": ""}
    rest = {key: found[key] for key in ("alpha", "test", "adjust", "signature")}
    assert rest == {"alpha": 0.05, "test": "t", "adjust": "holm", "signature": "signature"}
    assert [note["code"] for note in found["notes"]] == ["few-images"]


def test_a_comparison_in_a_few_words() -> None:
    said = repr(comparison())
    assert "AP of y - x: +0.1000, 95 % [" in said
    assert "100 images" in said
    assert "AR of" not in said


def test_the_leaderboard_of_a_miss_rate_begins_with_the_lowest() -> None:
    of = maker()
    of.metrics = ("MR50", "AR")
    assert [name for name, *_ in of.leaderboard(of.pairs())] == ["z", "x", "y"]
    of.evaluated[1].estimates.value[0] = NAN
    assert [name for name, *_ in of.leaderboard(of.pairs())] == ["z", "x", "y"]


def test_the_number_of_images_that_is_needed() -> None:
    of = comparison()
    pair = of.pairs[0]
    assert of.images_needed(pair, pair.mdd) == 100
    assert of.images_needed(pair, pair.mdd / 2) == 400
    assert of.images_needed(pair, pair.mdd / 1.001) == 101


def test_the_tables_of_two_detectors() -> None:
    found = comparison()
    board, pairs, classes = comparison_tables(found)
    assert board.title == "leaderboard by AP, 100 images"
    assert board.header == ("detector", "AP", "group")
    assert board.rows == (("y", 0.6, "a"), ("x", 0.5, "b"))
    assert board.lines == ("detectors with a common letter do not differ significantly",)
    assert pairs.title == "y minus x: 95 % intervals, test t, adjusted by holm"
    header = ("metric", "difference", "SE", "low", "high", "p", "adjusted p", "MDD")
    assert pairs.header == header
    assert [row[0] for row in pairs.rows] == ["AP", "AR*"]
    assert pairs.rows[0][5:7] == (found.pairs[0].p, found.pairs[0].p_adjusted)
    assert str(pairs.rows[1][5:7]) == "(nan, nan)"
    assert pairs.lines[0].startswith("MDD: minimum detectable difference")
    assert pairs.lines[1].startswith("low, high and p: per row; adjusted p")
    assert pairs.lines[2].startswith("a difference of ")
    assert pairs.lines[3:] == ("* no interval: few",)
    assert classes.title == "classes that changed most, adjusted by holm"
    assert classes.lines == (pairs.lines[1], "signature")
    assert classes.header == ("class", *header)
    assert [row[:2] for row in classes.rows] == [("cat", "AP")]
    assert [one.name for one in (board, pairs, classes)] == ["leaderboard", "pairs", "classes"]


def test_the_tables_of_three_detectors_name_the_pairs() -> None:
    board, pairs, classes = comparison_tables(comparison("xyz", n=99))
    assert board.lines == ()
    assert pairs.title == "all pairs, b minus a: 95 % intervals, test t, adjusted by holm"
    assert pairs.header[:3] == ("a", "b", "metric")
    assert pairs.rows[2][:3] == ("x", "z", "AP")
    assert classes.header[:4] == ("a", "b", "class", "metric")
    assert {row[:3] for row in classes.rows} == {("x", "y", "cat"), ("y", "z", "cat")}


def test_ten_classes_are_shown_and_none_that_did_not_change() -> None:
    of = comparison()
    moved = [replace(of.classes[0], name=f"c{i}", difference=0.01 * i) for i in range(13)]
    shown = comparison_tables(replace(of, classes=tuple(moved)))[2].rows
    assert [row[0] for row in shown] == [f"c{i}" for i in range(1, 11)]


@pytest.mark.parametrize(
    ("mdd", "points"),
    [(0.0009, 0.1), (0.002, 0.1), (0.0021, 0.2), (0.006, 0.5), (0.015, 1), (0.3, 2)],
)
def test_the_difference_that_more_images_would_show(mdd: float, points: float) -> None:
    of = comparison()
    lines = comparison_tables(replace(of, pairs=(replace(of.pairs[0], mdd=mdd),)))[1].lines
    needed = math.ceil(100 * (mdd / (points / 100)) ** 2)
    assert f"a difference of {points:g} points in AP needs {needed:,} images" in lines
    for none in (0.0, NAN):
        lines = comparison_tables(replace(of, pairs=(replace(of.pairs[0], mdd=none),)))[1].lines
        assert not any("needs" in line for line in lines)
        assert any(line.startswith("MDD") for line in lines) == (none == 0)


def intervals() -> Intervals:
    inside, none, other = (
        Interval(0.5, 0.02, 0.46, 0.54, 0.001, 0.9),
        Interval(0.5, 0.02, NAN, NAN, 0.0, 0.9, "few"),
        Interval(0.5, NAN, NAN, NAN, 0.0, 0.9, "rare"),
    )
    drawn: Any = SimpleNamespace(n=1234, noun="images", counted=lambda: "1,234 images")
    metrics = {"AP": inside, "APs": none, "APm": none, "APl": other}
    return Intervals(metrics, ("cat",), ({"AP": inside},), 0, 0.9, drawn)


def test_the_table_of_intervals() -> None:
    (table,) = intervals().tables()
    wanted = "90 % intervals, 1,234 images: jackknife, corrected for the small-sample bias"
    assert table.title == wanted
    assert table.header == ("metric", "value", "SE", "low", "high", "bias")
    assert table.rows[0] == ("AP", 0.5, 0.02, 0.46, 0.54, 0.001)
    assert [row[0] for row in table.rows] == ["AP", "APs*", "APm*", "APl*"]
    assert table.lines == ("* no interval: few (and 2 more rows)",)
    some = dict(islice(intervals().metrics.items(), 3))
    expected = "* no interval: few (and 1 more row)"
    assert replace(intervals(), metrics=some).tables()[0].lines == (expected,)
    _, classes = intervals().tables(per_class=True)
    assert classes.title == "90 % intervals, 1,234 images, per class"
    assert classes.rows == (("cat", "AP", 0.5, 0.02, 0.46, 0.54, 0.001),)
    assert classes.lines == ()


def test_the_table_of_ties() -> None:
    one = Tied(0.5, 0.4, 0.6, 0.5, 0.01)
    found = tie_table({"AP": one})
    assert found.title == "in 100 random orders of tied scores, and as evaluated"
    assert found.header == ("metric", "value", "lowest", "highest", "mean", "SD")
    assert found.rows == (("AP", 0.5, 0.4, 0.6, 0.5, 0.01),)
    assert one.shows
    assert not Tied(0.5, 0.40001, 0.40002, 0.5, 0.0).shows
    assert Tied(0.5, 0.4, 0.6, NAN, NAN, 0).to_dict()["mean"] is None
