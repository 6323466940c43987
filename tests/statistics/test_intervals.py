"""Intervals of results: the rule's own arithmetic, its edges, the command line."""

import json
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import detmap
from detmap import DataError
from detmap.core.statistics.estimates import Interval
from detmap.core.statistics.formulas.logit_interval import edge_interval, logit_interval
from detmap.core.statistics.formulas.quantiles import exact_bounds
from detmap.core.statistics.intervals import Intervals
from detmap.core.statistics.sampling_units import units
from tests.statistics.drawn_matches import draw
from tests.support import builders as make
from tests.support.running import run

SHAPES, CONTOURS = make.SHAPES, make.SHAPES / "detections" / "contours"


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
    perfect = one_class([1] * 100).intervals().metrics["mAP"]
    assert (perfect.low, perfect.high) == (0.025 ** (1 / 100), 1.0)
    nothing = one_class([0] * 100).intervals().metrics["mAP"]
    assert (nothing.low, nothing.high) == (0.0, 1 - 0.025 ** (1 / 100))
    few = one_class([1] * 20 + [0] * 80)
    assert few.intervals().metrics["mAP"].low < few.metrics["mAP"]
    assert few.intervals().per_class["1"]["AP"].low < few.metrics["mAP"]
    less = one_class([1] * 20, 20).intervals().metrics["mAP"]
    assert less.why_not == "fewer than 50 images; more images would help"


def test_where_there_is_no_interval_there_is_a_reason() -> None:
    result = one_class([1] * 40 + [0] * 60)
    one = detmap.summarize(result.matches.select([0])).intervals().metrics["mAP"]
    assert one.why_not == "fewer than two images"
    empty = detmap.truth_from_arrays([], [], np.zeros((0, 4)), images=[1, 2], categories={1: "a"})
    none = detmap.detections_from_arrays(empty, [], [], np.zeros((0, 4)), [])
    nothing = detmap.evaluate(empty, none, "voc2012").intervals()
    assert nothing.metrics["mAP"].why_not == "no objects or no detections"
    assert nothing.sentence() == "mAP is undefined (no objects or no detections)"
    rare = detmap.truth_from_arrays([1], [1], [[0, 0, 9, 9]], images=list(range(1, 100)))
    hit = detmap.detections_from_arrays(rare, [1], [1], [[0, 0, 9, 9]], [0.5])
    few = detmap.evaluate(rare, hit, "voc2012").intervals().metrics["mAP"]
    assert "a single class on 1 image" in few.why_not
    assert "+-" not in nothing.sentence()


def test_images_of_a_group_stay_together() -> None:
    """Five copies of each image: grouped, the standard error is about that of the images."""
    from tests.statistics.drawn_matches import repeated

    matches = draw(6, 60)
    copies = repeated(matches, [5] * 60)
    groups = {image: image // 5 for image in range(300)}
    alone, grouped, ignored = (
        each.intervals(groups=of)
        for each, of in (
            (detmap.summarize(matches), None),
            (detmap.summarize(copies), groups),
            (detmap.summarize(copies), None),
        )
    )
    for name, one in alone.metrics.items():
        assert grouped.metrics[name].se == pytest.approx(one.se, rel=0.02)
        assert ignored.metrics[name].se < 0.75 * one.se
    assert grouped.units.noun == "groups"
    assert "|unit=" in grouped.signature
    assert "60 groups" in grouped.sentence()


def test_threads_and_merging_change_no_bit() -> None:
    matches = draw(3, 60)
    parts = [matches.select(matches.image_ids[i::2]) for i in (1, 0)]
    found = [
        detmap.summarize(each).intervals(threads=threads)
        for each, threads in ((matches, 1), (matches, 4), (parts[0].merge(parts[1]), 2))
    ]
    texts = {repr((each.metrics, each.per_class, each.signature)) for each in found}
    assert len(texts) == 1


@pytest.mark.slow
def test_the_command_prints_what_the_call_gives() -> None:
    told = run("eval", SHAPES, CONTOURS, "--ci", "--seed=7", "--format=json")
    assert told.code == 0
    content = json.loads(told.out)
    expected = detmap.evaluate(SHAPES, CONTOURS).intervals(seed=7)
    assert content["intervals"]["mAP"] == expected.metrics["mAP"].to_dict()
    keys = {"value", "se", "low", "high", "bias", "level", "why_not"}
    assert set(content["intervals"]["mAP"]) == keys
    for row in content["per_class"]:
        assert row["intervals"]["AP"] == expected.per_class[row["name"]]["AP"].to_dict()
    assert content["signature"].endswith("|ci:jackknife.8|B=57|seed=7")
    text = run("eval", "--ci", SHAPES, CONTOURS, "--per-class", "--ties")
    assert "95 % CI" in " ".join(text.out.split())
    assert "not training variance" in " ".join(text.out.split())
    assert "ci:jackknife.8|B=57|seed=0" in text.out
    assert "SD" in text.out
    same = run("eval", SHAPES, CONTOURS, "--ci=jackknife", "--seed=7", "--format=json")
    assert same.out == told.out
    table = run("eval", SHAPES, CONTOURS, "--ci", "--table=class-intervals")
    assert "circle" in table.out


@pytest.mark.slow
def test_groups_from_a_file(tmp_path: Path) -> None:
    ids = detmap.evaluate(SHAPES, CONTOURS).matches.image_ids.tolist()
    lines = "".join(f"{name},{i // 3}\n" for i, name in enumerate(ids))
    good = make.write(tmp_path / "groups.csv", f"image,group\n{lines}")
    told = run("eval", SHAPES, CONTOURS, "--ci", "--groups", good)
    assert "20 groups" in told.out
    for text, where in (
        ("", "no group for"),
        (f"{ids[0]}\n", "1 fields"),
        (f"{lines}{ids[0]},other\n", "in two groups"),
        (b"a,b\xff\n", "line 1: not UTF-8"),
    ):
        bad = make.write(tmp_path / "bad.csv", text)
        told = run("eval", SHAPES, CONTOURS, "--ci", "--groups", bad)
        assert (told.code, told.out) == (2, "")
        assert where in told.err


def test_groups_by_file_name_need_the_ground_truth(tmp_path: Path) -> None:
    image = [{"id": k, "file_name": f"{k}.jpg", "width": 9, "height": 9} for k in range(6)]
    truth = {"images": image, "annotations": [], "categories": [{"id": 1, "name": "x"}]}
    groups = make.write(tmp_path / "groups.csv", "".join(f"{k}.jpg,{k // 3}\n" for k in range(6)))
    assert detmap.compare(truth, [], [], groups=groups).units.n == 2
    saved = detmap.evaluate(truth, []).matches
    with pytest.raises(detmap.DataError, match="saved matches have no file names"):
        detmap.compare(saved, saved, groups=groups)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "where"),
    [
        (("--level=.9",), "--level: needs --ci"),
        (("--ci", "--level=1"), "level: 1.0"),
        (("--ci", "--level=nan"), "level: nan"),
        (("--ci", "--level=x"), "'x' is not a number"),
        (("--ci", "--replicates=1000"), "--replicates"),
        (("--ci=influence",), "no value 'influence'"),
        (("--ci", "--seed=-1"), "--seed"),
        (("--ci=other",), "no value 'other'"),
    ],
)
def test_options_that_cannot_be(options: tuple[str, ...], where: str) -> None:
    told = run("eval", SHAPES, CONTOURS, *options)
    assert (told.code, told.out) == (2, "")
    assert where in told.err
    assert "Traceback" not in told.err


def test_a_clipped_center_stays_an_interval() -> None:
    assert logit_interval(0.999999, 0.1, -0.1, 2.0)[1] <= 1.0
    assert logit_interval(0.0, 1e-6, 0.0, 2.0)[0] == 0.0
    assert logit_interval(1e-5, 1e-6, 0.0, 2.0)[1] > 1e-5
    assert logit_interval(1.0, 1e-6, 0.0, 2.0)[1] == 1.0
    low, high = logit_interval(1e-9, 5.0, 0.1, 200.0)
    assert 0.0 <= low < 1e-300
    assert high == 1.0


def test_a_file_of_groups_with_a_quote_that_never_ends(tmp_path: Path) -> None:
    file = tmp_path / "groups.csv"
    file.write_text('image,group\n"' + "x" * 200_000)
    with pytest.raises(DataError, match="not CSV"):
        units(np.arange(3), file)


def test_a_sentence_without_an_interval_has_the_standard_error() -> None:
    drawn: Any = SimpleNamespace(n=1234, noun="images", counted=lambda: "1,234 images")
    one = Interval(0.5, 0.02, math.nan, math.nan, 0.0, 0.95, "few images")
    said = Intervals({"AP": one}, (), (), 0, 0.95, drawn).sentence()
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
    made_of = two_classes(0).intervals().metrics
    for name in ("AP", "AP50", "AR1", "AR100", "ARs"):
        assert math.isnan(made_of[name].low)
        assert made_of[name].why_not == "all images agree: the standard error is 0"


@pytest.mark.parametrize("missed", [1, 3, 5])
def test_few_misses_have_a_wider_interval(missed: int) -> None:
    """At least Clopper and Pearson's, of the objects that the standard error is worth."""
    one = two_classes(missed).intervals().metrics["AR100"]
    assert one.low < one.value < one.high
    n = one.value * (1 - one.value) / one.se**2
    low, high = exact_bounds(n * one.value, n, 0.95)
    assert one.low <= low + 1e-3
    assert one.high >= high - 1e-3


def test_many_misses_keep_the_logit_interval() -> None:
    one = two_classes(20).intervals().metrics["AR100"]
    assert edge_interval(one.value, one.se, 0.95) == (one.value, one.value)


def test_exact_bounds_are_those_of_tables() -> None:
    """Of 20: none, one and ten; the tables have three digits."""
    assert exact_bounds(1, 20, 0.95) == pytest.approx((0.00127, 0.24873), abs=1e-5)
    assert exact_bounds(10, 20, 0.95) == pytest.approx((0.27196, 0.72804), abs=1e-5)
    assert exact_bounds(19, 20, 0.95)[0] == pytest.approx(1 - exact_bounds(1, 20, 0.95)[1])
