"""Each rule of a comparison, and its tables, from numbers that are given."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import islice
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import detmap
from detmap.core.statistics import comparison as module
from detmap.core.statistics import permutation, support
from detmap.core.statistics.comparison import Comparison, Maker, Pair
from detmap.core.statistics.formulas import multiple_comparisons as multiple
from detmap.core.statistics.interval_tables import comparison_tables, metric_tables, tie_table
from detmap.core.statistics.intervals import Interval, Intervals
from detmap.core.statistics.ties import Tied

NAN = math.nan
Z, ONE_SIDED = 1.959963984540054, 0.8416212335729143  # quantiles of 0.975 and 0.8


def paired(n_units: int = 100, **changes: Any) -> Any:
    """Three detectors, two metrics of which the second has no interval, two classes."""
    rows = [SimpleNamespace(name="AP", kind="AP"), SimpleNamespace(name="AR", kind="AR")]
    categories = SimpleNamespace(names=("cat", "dog"))
    plan = SimpleNamespace(
        metrics=rows,
        classes=rows[:1],
        matches=SimpleNamespace(categories=categories),
        places=np.arange(2),
    )
    rng = np.random.default_rng(0)
    moved = np.zeros((3, 2, n_units))
    moved[1, 0, :13] = [0, *(0.01 * (-1) ** i * (1 + i) for i in range(12))]
    values = {
        "plans": [plan] * 3,
        "units": SimpleNamespace(
            n=n_units, noun="images", digest="", names=[f"i{i}" for i in range(n_units)]
        ),
        "pairs": [(0, 1), (0, 2), (1, 2)],
        "values": np.array([[0.5, 0.6], [0.53, 0.6], [0.44, 0.7]]),
        "class_values": np.array([[[0.4, 0.6]], [[0.46, 0.6]], [[0.4, NAN]]]),
        "moved": moved,
        "se": np.array([[0.01, 0.02], [0.02, 0.02], [0.02, 0.02]]),
        "bias": np.array([[0.005, 0.0], [0.0, 0.0], [0.0, 0.0]]),
        "class_se": np.array([[[0.02, 0.0]], [[0.0, NAN]], [[0.02, NAN]]]),
        "class_bias": np.array([[[0.01, 0.0]], [[0.0, NAN]], [[0.0, NAN]]]),
        "draws": rng.normal(0, 0.01, (50, 3, 2)),
        "class_draws": rng.normal(0, 0.01, (50, 3, 1, 2)),
        "drawn": np.arange(2),
        "why_not": ["", "few"],
        "class_why_not": [["", "rare"]],
    }
    return SimpleNamespace(**values | changes)


def maker(adjust: str = "none", test: str = "z", **changes: Any) -> Maker:
    return Maker(["x", "y", "z"], paired(**changes), 0.05, adjust, test)


@pytest.mark.parametrize(
    ("difference", "bias", "se", "why_not", "p"),
    [
        (0.03, 0.005, 0.01, "", math.erfc(2.5 / math.sqrt(2))),
        (-0.03, 0.005, 0.01, "", math.erfc(3.5 / math.sqrt(2))),
        (0.03, 0.0, 0.01, "few", NAN),
        (NAN, 0.0, 0.01, "", NAN),
        (0.03, 0.0, NAN, "", NAN),
        (0.0, 0.0, 0.0, "few", 1.0),
        (0.0, 0.0, NAN, "few", NAN),
        (0.0, 0.0, NAN, "", NAN),
        (1e-12, 0.0, 1e-12, "few", 1.0),
        (3e-12, 0.0, 1e-12, "", NAN),
        (3e-12, 0.0, 2e-12, "", math.erfc(1.5 / math.sqrt(2))),
    ],
)
def test_the_p_value_by_hand(
    difference: float, bias: float, se: float, why_not: str, p: float
) -> None:
    assert maker().p_of(difference, bias, se, why_not) == pytest.approx(p, nan_ok=True)
    assert math.isnan(maker(n_units=99).p_of(difference, bias, se, why_not))


def test_pairs_by_hand() -> None:
    first, untested, *others = maker().pairs()
    assert (first.a, first.b, first.metric, first.bias, first.why_not) == (
        "x",
        "y",
        "AP",
        0.005,
        "",
    )
    p = math.erfc(2.5 / math.sqrt(2))
    numbers = (first.difference, first.se, first.low, first.high, first.p, first.p_adjusted)
    half = 0.01 * Z
    assert numbers == pytest.approx((0.03, 0.01, 0.025 - half, 0.025 + half, p, p))
    assert first.mdd == pytest.approx(0.01 * (Z + ONE_SIDED))
    assert not first.outside
    assert (untested.difference, untested.se, untested.why_not) == (0, 0.02, "few")
    numbers = (untested.low, untested.high, untested.p, untested.p_adjusted, untested.mdd)
    assert all(map(math.isnan, numbers))
    assert [(one.a, one.b) for one in others] == [("x", "z")] * 2 + [("y", "z")] * 2
    same = maker(se=np.zeros((3, 2)), values=np.full((3, 2), 0.5), bias=np.zeros((3, 2))).pairs()[1]
    assert (same.low, same.high, same.p, same.mdd, same.why_not) == (0, 0, 1, 0, "")
    alike = maker(values=np.full((3, 2), 0.5)).pairs()[1]  # no difference, but a standard error
    assert alike.why_not == "few"


@pytest.mark.parametrize("adjust", multiple.ADJUSTMENTS)
def test_each_metric_is_adjusted_over_its_pairs(adjust: str) -> None:
    of = maker(adjust)
    own, difference, pairs = of.paired, of.difference()[:, 0], of.pairs()
    p = [one.p for one in pairs if one.metric == "AP"]
    expected = {
        "none": p,
        "holm": multiple.holm(p),
        "bh": multiple.bh(p),
        "maxt": multiple.maxt(
            difference - own.bias[:, 0], own.se[:, 0], own.draws[:, :, 0] - own.bias[:, 0]
        ),
    }
    assert [one.p_adjusted for one in pairs if one.metric == "AP"] == expected[adjust]
    assert all(math.isnan(one.p_adjusted) for one in pairs if one.metric == "AR")
    few = maker(adjust, n_units=99).pairs()
    assert all(math.isnan(one.p_adjusted) for one in few)


def test_maxt_takes_no_row_without_a_test() -> None:
    of = maker("maxt")
    given = [np.array([0.02, 0.5, 0.0]), np.zeros(3), np.array([0.01, 0.01, 0.0])]
    draws = np.random.default_rng(1).normal(0, 0.02, (40, 3))
    found = of.adjusted(np.zeros(3), *given, draws, ["", "few", "few"])
    alone = multiple.maxt(given[0][:1], given[2][:1], draws[:, :1])
    assert (found[0], found[2]) == (alone[0], 1.0)
    assert math.isnan(found[1])


def test_classes_by_hand() -> None:
    """The lowest adjusted p-value first, then those without one, the largest difference first."""
    rows = maker().classes()
    assert [(one.a, one.b, one.name, one.place) for one in rows] == [
        ("y", "z", "cat", 0),
        ("x", "y", "cat", 0),
        ("x", "y", "dog", 1),
        ("x", "z", "cat", 0),
    ]
    lost, found, same, equal = rows
    assert (lost.difference, lost.p) == pytest.approx((-0.06, math.erfc(3 / math.sqrt(2))))
    assert (found.difference, found.p) == pytest.approx((0.06, math.erfc(2.5 / math.sqrt(2))))
    assert found.p_adjusted == found.p
    assert (found.low, found.high) == pytest.approx((0.05 - 0.02 * Z, 0.05 + 0.02 * Z))
    assert found.mdd == pytest.approx(0.02 * (Z + ONE_SIDED))
    assert (found.metric, found.se, found.bias) == ("AP", 0.02, 0.01)
    assert (same.p, same.p_adjusted, same.low, same.why_not) == (1, 1, 0, "")
    assert (equal.p, equal.p_adjusted) == (1, 1)
    assert "place" not in found.to_dict()
    assert found.to_dict()["name"] == "cat"
    values = np.array([[[0.4, 0.6]], [[0.46, 0.8]], [[0.41, 0.5]]])
    se = np.full((3, 1, 2), 0.02)
    rare = maker(class_values=values, class_se=se, class_why_not=[["rare", "rare"]]).classes()
    differences = [abs(one.difference) for one in rare]
    assert differences == sorted(differences, reverse=True)
    assert [one.why_not for one in rare] == ["rare"] * 6


def test_the_images_that_changed_most() -> None:
    rows = maker().images()
    first = [(name, change) for a, b, name, change in rows if (a, b) == ("x", "y")]
    assert [name for name, _ in first] == [f"i{i}" for i in range(12, 2, -1)]
    assert first[0][1] == pytest.approx(-0.12)
    assert not [row for row in rows if row[:2] == ("x", "z")]
    assert next(row[3] for row in rows if row[:2] == ("y", "z")) == pytest.approx(0.12)
    few = np.zeros((3, 2, 100))
    few[1, 0, 4] = 1e-9
    assert [row[2] for row in maker(moved=few).images()] == ["i4", "i4"]


def test_the_leaderboard() -> None:
    of = maker()
    expected = [("y", 0.53, "a"), ("x", 0.5, "b"), ("z", 0.44, "c")]
    assert of.leaderboard(of.pairs()) == expected
    same = np.full((3, 2), 0.5)
    of = maker(values=same, bias=np.zeros((3, 2)))
    assert of.leaderboard(of.pairs()) == [("x", 0.5, "a"), ("y", 0.5, "a"), ("z", 0.5, "a")]
    of = maker(why_not=["few", ""])
    assert [letters for *_, letters in of.leaderboard(of.pairs())] == ["", "", ""]
    of = maker(n_units=99)
    assert [letters for *_, letters in of.leaderboard(of.pairs())] == ["", "", ""]
    values = np.array([[NAN, 0.6], [0.0, 0.6], [0.44, 0.7]])
    of = maker(values=values)
    assert [name for name, *_ in of.leaderboard(of.pairs())] == ["z", "y", "x"]
    edge = [pair for pair in maker().pairs() if pair.metric == "AP"]
    of = maker()
    of.alpha = edge[0].p_adjusted  # below it, not at it
    assert [letters for *_, letters in of.leaderboard(edge)] == ["a", "a", "b"]


def test_letters_of_groups() -> None:
    assert [module._letter(n) for n in (0, 1, 25, 26)] == ["a", "b", "z", "(27)"]


@pytest.mark.parametrize("test", module.TESTS)
def test_notes_and_signature(test: str) -> None:
    plain = [("plain-permutation", 1)] if test == "plain-permutation" else []
    assert [(note.code, note.count) for note in maker("bh", test).notes()] == plain
    few = maker("bh", test, n_units=99).notes()
    assert [(note.code, note.count) for note in few][:1] == [("few-images", 99)]
    assert "99" not in few[0].text
    assert "images are fewer than 100" in few[0].text
    assert maker("bh", test).signature("s", 9, 7) == f"s|ci:{test}+bh.3|B=9|seed=7"


@pytest.mark.parametrize("test", ["permutation", "plain-permutation"])
def test_permutation_p_values_of_tested_rows(test: str, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []

    def given(*arguments: Any, **options: Any) -> list[float]:
        calls.append((arguments, options))
        return [0.25, 0.5]

    monkeypatch.setattr(permutation, "p_values", given)
    se = np.array([[0.01, 0.0], [support.ROUNDING, 0.02], [0.02, 0.02]])
    values = np.array([[0.5, 0.6], [0.53, 0.6], [0.53, 0.7]])
    of = maker(test=test, se=se, values=values)
    p = of.permutation_p_values(9, 7, 1, print)
    np.testing.assert_array_equal(p, [[0.25, 1.0], [NAN, NAN], [0.25, NAN]])
    assert len(calls) == 3
    arguments, options = calls[0]
    assert np.array_equal(arguments[3], [values[1, 0] - values[0, 0], 0.0])
    assert arguments[4:] == (9, 7)
    assert options == {"studentised": test == "permutation", "threads": 1, "progress": print}
    few = maker(test=test, se=se, values=values, n_units=99).permutation_p_values(9, 7, 1, print)
    assert np.isnan(few).all()
    rows = of.pairs(p)
    assert [one.p for one in rows][:2] == [0.25, 1.0]


@pytest.mark.parametrize(
    ("alpha", "adjust", "test", "what"),
    [
        (0.0, "holm", "z", "alpha: 0.0"),
        (1.0, "holm", "z", "alpha: 1.0"),
        (1, "holm", "z", "alpha: 1"),
        (NAN, "holm", "z", "alpha: nan"),
        (0.05, "other", "z", "adjust: 'other'"),
        (0.05, "holm", "other", "test: 'other'"),
    ],
)
def test_options_that_are_refused(alpha: Any, adjust: str, test: str, what: str) -> None:
    with pytest.raises(detmap.DataError, match=what):
        module.check(alpha, adjust, test)
    module.check(0.999, "maxt", "plain-permutation")


def comparison(n: int = 2, test: str = "z", **changes: Any) -> Comparison:
    """The numbers of `paired`, of the first n detectors."""
    of = maker("holm", test, **changes)
    if n == 2:
        own = paired(**changes)
        for name in ("se", "bias", "class_se", "class_bias"):
            setattr(own, name, getattr(own, name)[:1])
        own.pairs, own.values = own.pairs[:1], own.values[:2]
        own.draws, own.class_draws = own.draws[:, :1], own.class_draws[:, :1]
        of = Maker(["x", "y"], own, 0.05, "holm", test)
    pairs = of.pairs()
    return Comparison(
        of.names,
        {"AP": (0.5, NAN)},
        tuple(pairs),
        tuple(of.classes()),
        tuple(of.images()),
        tuple(of.leaderboard(pairs)),
        0.05,
        test,
        "holm",
        9,
        7,
        of.paired.units,
        "signature",
        of.notes(),
    )


def test_a_comparison_as_plain_values() -> None:
    found = comparison(n_units=99).to_dict()
    assert found["names"] == ["x", "y"]
    assert found["metrics"] == {"AP": [0.5, None]}
    assert found["pairs"][0]["difference"] == pytest.approx(0.03)
    assert (found["pairs"][0]["p"], found["pairs"][0]["why_not"]) == (None, None)
    assert found["pairs"][1]["why_not"] == "few"
    assert found["classes"][0]["class"] == "cat"
    assert "name" not in found["classes"][0]
    assert found["images"][0] == {"a": "x", "b": "y", "image": "i12", "change": -0.12}
    assert found["leaderboard"][0] == {"name": "y", "value": 0.53, "groups": ""}
    rest = {key: found[key] for key in ("alpha", "test", "adjust", "signature")}
    assert rest == {"alpha": 0.05, "test": "z", "adjust": "holm", "signature": "signature"}
    assert [note["code"] for note in found["notes"]] == ["few-images"]


def test_a_comparison_in_a_few_words() -> None:
    said = repr(comparison())
    assert "AP of y - x: +0.0300, 95 % [+0.0054, +0.0446]" in said
    assert "100 images" in said
    assert "AR of" not in said


def test_the_number_of_images_that_is_needed() -> None:
    of = comparison()
    pair = of.pairs[0]
    assert of.images_needed(pair, pair.mdd) == 100
    assert of.images_needed(pair, pair.mdd / 2) == 400
    assert of.images_needed(pair, pair.mdd / 1.001) == 101


def test_the_tables_of_two_detectors() -> None:
    board, pairs, classes, images = comparison_tables(comparison())
    assert board.title == "leaderboard by AP, 100 images"
    assert board.header == ("detector", "AP", "group")
    assert board.rows == (("y", 0.53, "a"), ("x", 0.5, "b"))
    assert board.lines == ("detectors with a common letter do not differ significantly",)
    assert pairs.title == "y minus x: 95 % intervals, test z, adjusted by holm"
    header = ("metric", "difference", "SE", "low", "high", "p", "adjusted p", "MDD")
    assert pairs.header == header
    assert [row[0] for row in pairs.rows] == ["AP", "AR*"]
    assert pairs.rows[0][5:7] == pytest.approx((0.01241933, 0.01241933))
    assert pairs.rows[1][5:7] == (None, None)
    mdd = 0.01 * (Z + ONE_SIDED)
    needed = math.ceil(100 * (mdd / 0.02) ** 2)
    assert pairs.lines == (
        "MDD: minimum detectable difference: the test detects it with a power of 80 %",
        "low, high and p: per row, corrected for bias; adjusted p: for all rows together",
        f"a difference of 2 points in AP needs {needed:,} images",
        "* no interval: few",
    )
    assert classes.title == "classes that changed most, adjusted by holm"
    assert classes.lines == pairs.lines[1:2]
    assert classes.header == ("class", *header)
    assert [row[:2] for row in classes.rows] == [("cat", "AP")]
    assert images.title == "images that changed AP most, and the part of the difference due to each"
    assert images.header == ("image", "change")
    assert images.rows[0] == ("i12", pytest.approx(-0.12))
    assert images.lines == ("signature",)
    assert [one.name for one in (board, pairs, classes, images)] == [
        "leaderboard",
        "pairs",
        "classes",
        "images",
    ]


def test_the_tables_of_three_detectors_name_the_pairs() -> None:
    board, pairs, classes, images = comparison_tables(comparison(3, "permutation", n_units=99))
    assert board.lines == ()
    assert pairs.title == "all pairs, b minus a: 95 % intervals, test permutation, adjusted by holm"
    assert pairs.header[:3] == ("a", "b", "metric")
    assert pairs.header[7] == "p (permutation)"
    assert pairs.rows[2][:3] == ("x", "z", "AP")
    assert "low, high: normal, corrected for bias; p: permutation" in " ".join(pairs.lines)
    assert classes.header[:4] == ("a", "b", "class", "metric")
    assert {row[:3] for row in classes.rows} == {("x", "y", "cat"), ("y", "z", "cat")}
    assert images.rows[0][:3] == ("x", "y", "i12")


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


def intervals(method: str) -> Intervals:
    inside, outside, none, other = (
        Interval(0.5, 0.02, 0.46, 0.54, 0.001, 0.9),
        Interval(0.5, 0.02, 0.4, 0.48, 0.06, 0.9),
        Interval(0.5, 0.02, NAN, NAN, 0.0, 0.9, "few"),
        Interval(0.5, NAN, NAN, NAN, 0.0, 0.9, "rare"),
    )
    drawn: Any = SimpleNamespace(n=1234, noun="images")
    metrics = {"AP": inside, "AP50": outside, "APs": none, "APm": none, "APl": other}
    return Intervals(metrics, {"cat": {"AP": inside}}, method, 9, 0, 0.9, drawn)


@pytest.mark.parametrize(
    ("method", "how"),
    [
        ("influence", "influence functions, corrected for the small-sample bias"),
        ("jackknife", "jackknife of 9 parts, corrected for the small-sample bias"),
        ("percentile", "percentile bootstrap, 9 replicates, for comparison with papers: its"),
    ],
)
def test_the_table_of_intervals(method: str, how: str) -> None:
    (table,) = metric_tables(intervals(method), False)
    assert table.title.startswith(f"90 % intervals, 1,234 images: {how}")
    assert table.header == ("metric", "value", "SE", "low", "high", "bias")
    assert table.rows[0] == ("AP", 0.5, 0.02, 0.46, 0.54, 0.001)
    assert [row[0] for row in table.rows] == ["AP", "AP50+", "APs*", "APm*", "APl*"]
    assert table.lines == (
        "+ outside of its interval, which is corrected for the bias",
        "* no interval: few (and 2 more rows)",
    )
    some = dict(islice(intervals(method).metrics.items(), 4))
    assert metric_tables(replace(intervals(method), metrics=some), False)[0].lines[1] == (
        "* no interval: few (and 1 more row)"
    )
    _, classes = metric_tables(intervals(method), True)
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


def test_a_difference_at_its_bound_is_inside() -> None:
    for value, outside in ((0.1, False), (0.3, False), (0.0999, True), (0.3001, True)):
        pair = Pair("a", "b", "AP", value, 0.1, 0.1, 0.3, 0, 0.5, 0.5, 0.1, "")
        assert pair.outside is outside


@pytest.mark.parametrize("rounding", [1.4e-17, 1e-12])
@pytest.mark.parametrize("adjust", multiple.ADJUSTMENTS)
def test_rounding_is_no_standard_error(adjust: str, rounding: float) -> None:
    """Of a difference that is the same on all images, and of one that is rounding itself."""
    values = np.array([[0.5, 0.6], [0.6, 0.6 + 1e-16], [0.5, 0.6]])
    se = np.full((3, 2), rounding)
    constant, same = maker(adjust, values=values, se=se, bias=np.zeros((3, 2))).pairs()[:2]
    assert constant.why_not == "all images agree: the standard error is 0"
    numbers = (constant.low, constant.high, constant.p, constant.p_adjusted, constant.mdd)
    assert all(map(math.isnan, numbers))
    assert (same.p, same.p_adjusted, same.why_not) == (1, 1, "")
