"""Intervals of results: the rule's own arithmetic, its edges, the command line."""

from __future__ import annotations

import json
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import detmap
from detmap import DataError
from detmap.core.statistics import intervals as made
from detmap.core.statistics import replicates as drawing
from detmap.core.statistics.bias import bias
from detmap.core.statistics.formulas.quantiles import exact_bounds, student
from detmap.core.statistics.influence import influence
from detmap.core.statistics.sampling_units import units
from tests.statistics.drawn_matches import draw
from tests.statistics.goldens import INTEGRATORS
from tests.statistics.test_influence import planned
from tests.support import builders as make
from tests.support.running import run

SHAPES, CONTOURS = make.SHAPES, make.SHAPES / "detections" / "contours"


@pytest.mark.parametrize("integrator", INTEGRATORS.values())
def test_a_mean_by_hand(integrator: str) -> None:
    """Section 5.3 of the study, step by step."""
    matches = draw(5, 90, integrator)
    result = detmap.summarize(matches)
    found = result.intervals(replicates=30, seed=3).metrics["AP50"]
    own, each = planned(matches), units(matches.image_ids)
    moved = influence(own, each)
    draws = drawing.replicates(own, each, 30, 3).metrics[:, 1]
    value = result.metrics["AP50"]
    se = math.sqrt(90 / 89 * (moved.unbiased[1] ** 2).sum())
    s = own.of_metric[1]
    v, m = moved.class_unbiased[s], moved.n_units[s]
    lost = (1 - m / 90) ** 90
    apart = (moved.values[s] - moved.values[s].mean()) / 3
    if integrator == "eleven_point":
        se *= draws.std(ddof=1) / math.sqrt(90 / 89 * (moved.uncorrected[1] ** 2).sum())
    else:
        se = math.hypot(se, math.sqrt((lost * apart**2).sum()))
    df = v.sum() ** 2 / (v**2 / (m - 1)).sum()
    biases = bias(own, each, moved.n_units, 30, 3)
    off = biases.metrics[1]
    center = value - off
    error = math.hypot(1.08 * se, biases.errors[1])
    g, h = math.log(center / (1 - center)), student(0.975, df) * error / (center * (1 - center))
    expected = (se, 1 / (1 + math.exp(h - g)), 1 / (1 + math.exp(-h - g)), off)
    assert found.value == value
    if integrator == "eleven_point":  # measured: too few of them hold
        assert found.se == pytest.approx(se, abs=1e-12)
        assert math.isnan(found.low)
        assert math.isnan(found.high)
        assert "11-point rule" in found.why_not
        return
    assert (found.se, found.low, found.high, found.bias) == pytest.approx(expected, abs=1e-12)
    assert found.why_not == ""


def test_the_11_point_rule_has_no_interval_and_no_test_but_recall_has() -> None:
    settings = {"ap.integrator": "eleven_point", "metrics": ["AP50", "AR@limit"]}
    rules = detmap.load_protocol("coco-bbox").override(settings)
    truth = detmap.read_truth(SHAPES / "instances_test.json")
    folder = SHAPES / "detections"
    found = {
        name: detmap.read_detections(folder / f"{name}.json", truth)
        for name in ("contours", "template")
    }
    made = detmap.evaluate(truth, found["contours"], rules).intervals(replicates=100)
    assert "11-point rule" in made.metrics["AP50"].why_not
    assert "11-point rule" not in made.metrics["AR@100"].why_not
    both = detmap.compare(
        truth, found["contours"], found["template"], protocol=rules, replicates=100
    )
    why = {pair.metric: pair.why_not for pair in both.pairs}
    assert "11-point rule" in why["AP50"]
    assert "11-point rule" not in why["AR@100"]


def test_percentiles_are_those_of_the_replicates() -> None:
    matches = draw(5, 40)
    found = detmap.summarize(matches).intervals(0.9, 50, 1, method="percentile").metrics["AP"]
    draws = drawing.replicates(planned(matches), units(matches.image_ids), 50, 1).metrics[:, 0]
    assert (found.low, found.high) == tuple(np.quantile(draws, [0.05, 0.95]))
    assert found.se == pytest.approx(draws.std(ddof=1), abs=1e-15)


def one_class(found: list[float], n_images: int = 100) -> detmap.Result:
    """One object an image of one class, one detection an image; found at these places."""
    box = [[0, 0, 10, 10]] * n_images
    ids = list(range(n_images))
    truth = detmap.truth_from_arrays(ids, [1] * n_images, box)
    shifted = [[0 if hit else 50, 0, 10, 10] for hit in found]
    scores = np.linspace(0.9, 0.1, n_images)
    detections = detmap.detections_from_arrays(truth, ids, [1] * n_images, shifted, scores)
    return detmap.evaluate(truth, detections, "voc2012")


def test_edges_of_a_single_class() -> None:
    """All or nothing found: the exact interval of a binomial share; nothing else has a spread."""
    perfect = one_class([1] * 100).intervals(replicates=20).metrics["mAP"]
    assert (perfect.low, perfect.high) == (0.025 ** (1 / 100), 1.0)
    nothing = one_class([0] * 100).intervals(replicates=20).metrics["mAP"]
    assert (nothing.low, nothing.high) == (0.0, 1 - 0.025 ** (1 / 100))
    few = one_class([1] * 40 + [0] * 40, 80).intervals(replicates=20)
    for one in (few.metrics["mAP"], few.per_class["1"]["AP"]):
        assert one.se > 0
        assert math.isnan(one.low)
        assert "80 images" in one.why_not
    enough = one_class([1] * 40 + [0] * 41, 81).intervals(replicates=20)
    assert enough.per_class["1"]["AP"].low < enough.metrics["mAP"].value
    assert enough.per_class["1"]["AP"] == enough.metrics["mAP"]


def test_where_there_is_no_interval_there_is_a_reason() -> None:
    result = one_class([1] * 40 + [0] * 60)
    without = result.intervals(replicates=0).metrics["mAP"]
    assert "replicates" in without.why_not
    assert math.isnan(without.low)
    assert "+-" in result.intervals(replicates=0).sentence()
    one = detmap.summarize(result.matches.select([0])).intervals(replicates=5).metrics["mAP"]
    assert one.why_not == "fewer than two images"
    empty = detmap.truth_from_arrays([], [], np.zeros((0, 4)), images=[1, 2], categories={1: "a"})
    none = detmap.detections_from_arrays(empty, [], [], np.zeros((0, 4)), [])
    nothing = detmap.evaluate(empty, none, "voc2012").intervals(replicates=5)
    assert nothing.metrics["mAP"].why_not == "no ground-truth object"
    assert nothing.sentence() == "mAP is undefined (no ground-truth object)"
    rare = detmap.truth_from_arrays([1], [1], [[0, 0, 9, 9]], images=list(range(1, 100)))
    hit = detmap.detections_from_arrays(rare, [1], [1], [[0, 0, 9, 9]], [0.5])
    few = detmap.evaluate(rare, hit, "voc2012").intervals(replicates=50).metrics["mAP"]
    assert "a single class on 1 image" in few.why_not
    lost = detmap.evaluate(rare, hit, "voc2012").intervals(replicates=50, method="percentile")
    assert "undefined in" in lost.metrics["mAP"].why_not
    assert "more images would help" in lost.metrics["mAP"].why_not
    assert [note.count for note in lost.notes] == [1]


def test_images_of_a_group_are_drawn_together() -> None:
    """Five copies of each image: grouped, the standard error is that of the images."""
    from tests.statistics.drawn_matches import repeated

    matches = draw(6, 60)
    copies = repeated(matches, [5] * 60)
    groups = {image: image // 5 for image in range(300)}
    alone, grouped, ignored = (
        each.intervals(replicates=20, groups=of)
        for each, of in (
            (detmap.summarize(matches), None),
            (detmap.summarize(copies), groups),
            (detmap.summarize(copies), None),
        )
    )
    for name, one in alone.metrics.items():
        assert grouped.metrics[name].se == pytest.approx(one.se, abs=1e-13)
        assert grouped.metrics[name].bias == pytest.approx(one.bias, abs=1e-13)
        assert ignored.metrics[name].se < 0.6 * one.se
    assert grouped.units.noun == "groups"
    assert "|unit=" in grouped.signature
    assert "60 groups" in grouped.sentence()


def test_threads_and_merging_change_no_bit() -> None:
    matches = draw(3, 60)
    parts = [matches.select(matches.image_ids[i::2]) for i in (1, 0)]
    found = [
        detmap.summarize(each).intervals(replicates=40, threads=threads)
        for each, threads in ((matches, 1), (matches, 4), (parts[0].merge(parts[1]), 2))
    ]
    texts = {repr((each.metrics, each.per_class, each.signature)) for each in found}
    assert len(texts) == 1


@pytest.mark.slow
def test_the_command_prints_what_the_call_gives() -> None:
    told = run("eval", SHAPES, CONTOURS, "--ci", "--replicates=40", "--seed=7", "--format=json")
    assert told.code == 0
    content = json.loads(told.out)
    expected = detmap.evaluate(SHAPES, CONTOURS).intervals(replicates=40, seed=7)
    assert content["intervals"]["mAP"] == expected.metrics["mAP"].to_dict()
    keys = {"value", "se", "low", "high", "bias", "level", "why_not"}
    assert set(content["intervals"]["mAP"]) == keys
    for row in content["per_class"]:
        assert row["intervals"]["AP"] == expected.per_class[row["name"]]["AP"].to_dict()
        assert row["intervals"]["AP"]["low"] is None
        assert "single class" in row["intervals"]["AP"]["why_not"]
    assert content["signature"].endswith("|ci:influence.4|B=40|seed=7")
    text = run("eval", "--ci", SHAPES, CONTOURS, "--replicates=40", "--per-class", "--ties")
    assert "95 % CI" in " ".join(text.out.split())
    assert "not training variance" in " ".join(text.out.split())
    assert "ci:influence.4|B=40|seed=0" in text.out
    assert "SD" in text.out
    other = run("eval", SHAPES, CONTOURS, "--ci", "percentile", "--replicates=40")
    assert "coverage was 36 to 94 %" in " ".join(other.out.split())
    table = run("eval", SHAPES, CONTOURS, "--ci", "--replicates=9", "--table=class-intervals")
    assert "circle" in table.out


@pytest.mark.slow
def test_groups_from_a_file(tmp_path: Path) -> None:
    ids = detmap.evaluate(SHAPES, CONTOURS).matches.image_ids.tolist()
    lines = "".join(f"{name},{i // 3}\n" for i, name in enumerate(ids))
    good = make.write(tmp_path / "groups.csv", f"image,group\n{lines}")
    told = run("eval", SHAPES, CONTOURS, "--ci", "--replicates=20", "--groups", good)
    assert "20 groups" in told.out
    for text, where in (
        ("", "no group for"),
        (f"{ids[0]}\n", "1 fields"),
        (f"{lines}{ids[0]},other\n", "in two groups"),
        (b"\xff\xfe\x00", "is not text"),
    ):
        bad = make.write(tmp_path / "bad.csv", text)
        told = run("eval", SHAPES, CONTOURS, "--ci", "--groups", bad)
        assert (told.code, told.out) == (2, "")
        assert where in told.err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "where"),
    [
        (("--replicates=5",), "--replicates: needs --ci"),
        (("--ci", "--level=1"), "level: 1.0"),
        (("--ci", "--level=nan"), "level: nan"),
        (("--ci", "--level=x"), "'x' is not a number"),
        (("--ci", "--replicates=0"), "at least 1"),
        (("--ci", "--replicates=99999999"), "replicates: 99999999"),
        (("--ci", "--seed=-1"), "--seed"),
        (("--ci=other",), "invalid choice"),
    ],
)
def test_options_that_cannot_be(options: tuple[str, ...], where: str) -> None:
    told = run("eval", SHAPES, CONTOURS, *options)
    assert (told.code, told.out) == (2, "")
    assert where in told.err
    assert "Traceback" not in told.err


def test_a_clipped_center_stays_an_interval() -> None:
    assert made.logit_interval(0.999999, 0.1, -0.1, 2.0)[1] <= 1.0
    assert made.logit_interval(0.0, 1e-6, 0.0, 2.0)[0] == 0.0
    assert made.logit_interval(1e-5, 1e-6, 0.0, 2.0)[1] > 1e-5
    assert made.logit_interval(1.0, 1e-6, 0.0, 2.0)[1] == 1.0
    low, high = made.logit_interval(1e-9, 5.0, 0.1, 200.0)
    assert 0.0 <= low < 1e-300
    assert high == 1.0


def test_a_file_of_groups_with_a_quote_that_never_ends(tmp_path: Path) -> None:
    file = tmp_path / "groups.csv"
    file.write_text('image,group\n"' + "x" * 200_000)
    with pytest.raises(DataError, match="not CSV"):
        units(np.arange(3), file)


def test_a_sentence_without_an_interval_has_the_standard_error() -> None:
    drawn: Any = SimpleNamespace(n=1234, noun="images")
    one = made.Interval(0.5, 0.02, math.nan, math.nan, 0.0, 0.95, "few images")
    said = made.Intervals({"AP": one}, {}, "influence", 0, 0, 0.95, drawn).sentence()
    assert said.startswith("AP 50.0 +- 2.0 (standard error, 1,234 images; ")


def two_classes(missed: int, n_images: int = 60) -> detmap.Result:
    """One object of each of two classes on each image; the first of the first class are missed."""
    image, category = np.repeat(np.arange(n_images), 2), np.tile([1, 2], n_images)
    box = np.array([10.0, 10, 20, 20])
    truth = detmap.truth_from_arrays(image, category, np.tile(box, (2 * n_images, 1)))
    kept = np.flatnonzero((category == 2) | (image >= missed))
    score = np.random.default_rng(1).random(len(kept))
    boxes = np.tile(box, (len(kept), 1))
    found = detmap.detections_from_arrays(truth, image[kept], category[kept], boxes, score)
    return detmap.evaluate(truth, found, "coco-bbox")


def test_a_standard_error_of_rounding_is_none() -> None:
    """The influences of a detector that finds all are sums of rounding, such as 1e-15."""
    made_of = two_classes(0).intervals(replicates=20).metrics
    for name in ("AP", "AP50", "AR1", "AR100", "ARs"):
        assert math.isnan(made_of[name].low)
        assert made_of[name].why_not == "all images agree: the standard error is 0"


@pytest.mark.parametrize("missed", [1, 3, 5])
def test_few_misses_have_a_wider_interval(missed: int) -> None:
    """At least Clopper and Pearson's, of the objects that the standard error is worth."""
    one = two_classes(missed).intervals(replicates=20).metrics["AR100"]
    assert one.low < one.value < one.high
    n = one.value * (1 - one.value) / one.se**2
    assert (n * (1 - one.value)) == pytest.approx(missed, rel=0.2)
    low, high = exact_bounds(n * one.value, n, 0.95)
    assert one.low <= low + 1e-3
    assert one.high >= high - 1e-3
    assert one.high > 1 - missed / 360


def test_many_misses_keep_the_logit_interval() -> None:
    one = two_classes(20).intervals(replicates=20).metrics["AR100"]
    assert made.edge_interval(one.value, one.se, 0.95) == (one.value, one.value)


def test_exact_bounds_are_those_of_tables() -> None:
    """Of 20: none, one and ten; the tables have three digits."""
    assert exact_bounds(1, 20, 0.95) == pytest.approx((0.00127, 0.24873), abs=1e-5)
    assert exact_bounds(10, 20, 0.95) == pytest.approx((0.27196, 0.72804), abs=1e-5)
    assert exact_bounds(19, 20, 0.95)[0] == pytest.approx(1 - exact_bounds(1, 20, 0.95)[1])


@pytest.mark.parametrize("method", ["influence", "percentile"])
def test_a_single_image_draws_no_replicates(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    truth = detmap.truth_from_arrays([1, 1], [1, 2], [[0, 0, 9, 9], [5, 5, 9, 9]])
    found = detmap.detections_from_arrays(truth, [1], [1], [[0, 0, 9, 8]], [0.5])
    monkeypatch.delattr(drawing, "lanes_of")
    monkeypatch.delattr(drawing, "random_words")
    result = detmap.evaluate(truth, found)
    intervals = result.intervals(method=method, replicates=1000)
    assert {each.why_not for each in intervals.metrics.values() if each.value == each.value} == {
        "fewer than two images"
    }
    assert intervals.replicates == 1000
