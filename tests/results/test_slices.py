"""Slices: all of one matching, each equal in every bit to an evaluation of it alone; rows of
images that add up."""

import contextlib
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import detmap
from detmap.core.protocol import names
from detmap.core.results import slices as slicing
from detmap.errors import DataError
from tests.support import builders as make
from tests.support.drawing import CocoData, coco_data, voc_data
from tests.support.drawn_tables import read_coco, voc_tables
from tests.support.running import on_a_terminal, run
from tests.support.tier import drawn

COCO, RESULTS = make.SHAPES / "instances_test.json", make.SHAPES / "detections" / "contours.json"
relaxed = settings(
    deadline=None, max_examples=drawn(40), suppress_health_check=[HealthCheck.too_slow]
)


def assert_equal(a: detmap.Result, b: detmap.Result) -> None:
    """In every bit of what a result tells."""
    assert a.signature == b.signature
    assert list(a.metrics) == list(b.metrics)
    assert np.array_equal(list(a.metrics.values()), list(b.metrics.values()), equal_nan=True)
    assert a.counts() == b.counts()
    assert repr(a.per_class) == repr(b.per_class)


def alone(
    truth: detmap.Truth, found: detmap.Detections, images: Any, protocol: str
) -> detmap.Result:
    """The evaluation of tables that hold nothing else."""
    places = np.flatnonzero(np.isin(truth.images.ids, images))
    return detmap.evaluate(truth.select_images(places), found.select_images(places), protocol)


def some(truth: detmap.Truth, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    return truth.images.ids[rng.random(len(truth.images)) < 0.5]


@pytest.mark.slow
@relaxed
@given(coco_data(), st.integers(0, 99), st.sampled_from(["coco-bbox", "voc2012", "lvis"]))
def test_a_slice_is_what_evaluating_it_gives(data: CocoData, seed: int, protocol: str) -> None:
    truth, found = read_coco(*data)
    whole = detmap.evaluate(truth, found, protocol)
    images = {"a": some(truth, seed), "b": some(truth, seed + 1), "none": truth.images.ids[:0]}
    for name, result in whole.slices(images).items():
        assert_equal(result, alone(truth, found, images[name], protocol))
        if len(images[name]):
            again = detmap.evaluate(truth, found, protocol, images=images[name].tolist())
            assert_equal(result, again)
    assert_equal(whole.select(truth.images.ids), whole)


@relaxed
@given(voc_data(), st.integers(0, 99))
def test_a_slice_with_ties_in_input_order(data: tuple, seed: int) -> None:
    truth, found = voc_tables(*data)
    whole = detmap.evaluate(truth, found, "voc2007")
    images = some(truth, seed)
    assert_equal(whole.select(images), alone(truth, found, images, "voc2007"))


@pytest.mark.slow
@relaxed
@given(coco_data(), st.integers(0, 99))
def test_some_classes_alone_are_the_evaluation_of_them(data: CocoData, seed: int) -> None:
    """As if the files had never held the others."""
    instances, results = data
    rng = np.random.default_rng(seed)
    ids = [each["id"] for each in instances["categories"] if rng.random() < 0.6]
    assume(ids)
    truth, found = read_coco(*data)
    part = dict(instances)
    part["categories"] = [each for each in instances["categories"] if each["id"] in ids]
    part["annotations"] = [a for a in instances["annotations"] if a["category_id"] in ids]
    rest = [each for each in results if each["category_id"] in ids]
    cut = detmap.evaluate(truth, found, "coco-bbox", classes=ids)
    assert_equal(cut, detmap.evaluate(*read_coco(part, rest), "coco-bbox"))
    places = np.flatnonzero(np.isin(truth.categories.ids, ids))
    matches = detmap.match(truth, found, detmap.load_protocol("coco-bbox"))
    rows = detmap.summarize(matches.select_classes(places))
    assert np.array_equal(list(rows.metrics.values()), list(cut.metrics.values()), equal_nan=True)


@relaxed
@given(coco_data(), st.sampled_from(["coco-bbox", "voc2012", "lvis"]), st.sampled_from([0.5, None]))
def test_the_rows_of_images_add_up(data: CocoData, protocol: str, iou: float | None) -> None:
    truth, found = read_coco(*data)
    result = detmap.evaluate(truth, found, protocol)
    rows, totals = result.per_image(iou), result.counts(iou)
    assert [row["image"] for row in rows] == truth.images.ids.tolist()
    for name in slicing.COUNTS:
        assert sum(row[name] for row in rows) == totals[name]
    for row in rows:  # each is what its image alone gives
        single = result.select([row["image"]])
        wanted = {name: single.counts(iou)[name] for name in slicing.COUNTS}
        assert {name: row[name] for name in slicing.COUNTS} == wanted
        matches = single.matches
        bit = matches.tp.dtype.type(1 << result.protocol.axes().threshold(0.5))
        a = result.protocol.subset()
        false = [
            score
            for score, tp, ignored in zip(
                matches.score, matches.tp[:, a], matches.ignored[:, a], strict=True
            )
            if not (tp | ignored) & bit
        ]
        assert repr(row["worst_score"]) == repr(float(max(false)) if false else float("nan"))


# ---- files


@pytest.fixture
def truth() -> detmap.Truth:
    return detmap.read_truth(COCO)


def test_slices_are_read_from_json(tmp_path: Path, truth: detmap.Truth) -> None:
    file = make.write(tmp_path / "s.json", {"night": [3, 1], "day": ["000002"], "none": []})
    found = detmap.read_slices(file, truth)
    wanted = {"night": [1, 3], "day": [2], "none": []}
    assert {name: ids.tolist() for name, ids in found.items()} == wanted


def test_slices_without_images_are_a_note(tmp_path: Path) -> None:
    file = make.write(tmp_path / "s.json", {"night": [3, 1], "none": []})
    outcome = run("eval", COCO, RESULTS, "--slices", file)
    assert outcome.code == 0
    assert "1 slice has no images: 'none'" in outcome.err + outcome.out


def test_slices_are_made_of_attributes(tmp_path: Path, truth: detmap.Truth) -> None:
    text = "image,weather,hour\n000001,rain,day\n2,,night\n000003,sun,day\n".replace(
        "\n2,", "\n000002,"
    )
    file = make.write(tmp_path / "a.csv", text)
    found = detmap.read_slices(file, truth)
    wanted = {"weather=rain": [1], "weather=sun": [3], "hour=day": [1, 3], "hour=night": [2]}
    assert {name: ids.tolist() for name, ids in found.items()} == wanted


def test_more_slices_than_anybody_looks_at(tmp_path: Path) -> None:
    file = tmp_path / "slices.json"
    file.write_text(json.dumps({f"s{k}": [1] for k in range(2001)}))
    truth = detmap.truth_from_arrays([1], [1], [[0, 0, 9, 9]])
    with pytest.raises(DataError, match="2001 slices"):
        detmap.read_slices(file, truth)


BAD = {
    "an unknown image": ("s.json", '{"a": [999999]}', "no image 999999"),
    "an image twice": ("s.json", '{"a": [1, 1]}', "image 1 occurs twice"),
    "a slice twice": ("s.json", '{"a": [1], "a": [2]}', "already exists"),
    "no list": ("s.json", '{"a": 1}', "is not a list"),
    "no names": ("s.json", " [1, 2]", "a list, where slices have names"),
    "no names in another file": ("s.txt", "[[1], [2]]", "a list, where slices have names"),
    "a text": ("s.json", '"night"', "where slices have names"),
    "no slices": ("s.json", "{}", "no slices"),
    "a header alone": ("a.csv", "image,hour\n", "no slices"),
    "empty cells": ("a.csv", "image,hour\n000001, \n", "no slices"),
    "an empty name": ("s.json", '{"": [1]}', "the name ''"),
    "a blank name": ("s.json", '{" ": [1]}', "the name ' '"),
    "a blank column": ("a.csv", "image, \n000001,a\n", "a column without a name"),
    "mixed ids": ("s.json", '{"a": [1, "000002"]}', "not all images are strings"),
    "no ids": ("s.json", '{"a": [null]}', "not all images are strings"),
    "broken": ("s.json", '{"a": [1', "truncated"),
    "deep": ("s.json", '{"a": ' + "[" * 100_000, "nested too deeply"),
    "a number": ("s.json", '{"a": [1e400]}', "not all images"),
    "huge": ("s.json", f'{{"a": [{2**70}]}}', "not all images"),
    "no attribute": ("a.csv", "image\n1\n", "names no attribute"),
    "empty": ("a.csv", "", "names no attribute"),
    "a row too short": ("a.csv", "image,x\n000001\n", "1 columns"),
    "a row twice": ("a.csv", "image,x\n000001,a\n000001,b\n", "is repeated"),
    "a column twice": ("a.csv", "image,x,x\n000001,a,b\n", "a column twice"),
    "an unknown row": ("a.csv", "image,x\nnope,a\n", "no image 'nope'"),
    "a quote": ("a.csv", 'image,x\n"000001"y,a\n', "not CSV"),
    "measurements": (
        "a.csv",
        "image,x\n" + "".join(f"{i:06},{i / 7}\n" for i in range(1, 200)),
        "199 values",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "text", "what"), BAD.values(), ids=BAD)
def test_slices_that_cannot_be(tmp_path: Path, name: str, text: str, what: str) -> None:
    file = make.write(tmp_path / name, text)
    outcome = run("eval", COCO, RESULTS, "--slices", file)
    assert (outcome.code, outcome.out) == (2, "")
    assert what in outcome.err
    assert outcome.err.startswith(f"detmap: error: {file}")


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"images": [999]}, "no images 999"),
        ({"images": ["000001"]}, "the ground truth has 1"),
        ({"classes": ["unicorn"]}, "no class 'unicorn'"),
        ({"classes": "circle"}, "is not a list"),
        ({"classes": [77]}, "no class 77"),
    ],
)
def test_parts_that_cannot_be(options: dict[str, Any], what: str) -> None:
    with pytest.raises(DataError, match=what):
        detmap.evaluate(COCO, RESULTS, **options)


# ---- the command


def test_the_command_prints_every_slice(
    tmp_path: Path, truth: detmap.Truth, monkeypatch: pytest.MonkeyPatch
) -> None:
    pandas = pytest.importorskip("pandas")
    slices = {"low": list(range(1, 21)), "high": list(range(21, 61))}
    file = make.write(tmp_path / "s.json", slices)
    result = detmap.evaluate(COCO, RESULTS)
    content = json.loads(run("eval", COCO, RESULTS, "--slices", file, "--format", "json").out)
    for name, each in result.slices(slices).items():
        assert content["slices"][name]["metrics"] == each.metrics
        assert content["slices"][name]["signature"] == each.signature
        assert content["slices"][name]["counts"] == each.counts()
    text = run("eval", COCO, RESULTS, "--slices", file, "--table", "slices", "--format", "csv").out
    frame = pandas.read_csv(io.StringIO(text), dtype=str)  # old readers of floats round
    assert frame["slice"].tolist() == ["low", "high"]
    assert frame["signature"].tolist() == [each["signature"] for each in content["slices"].values()]
    wanted = [each["metrics"]["AP"] for each in content["slices"].values()]
    assert frame["AP"].map(float).tolist() == wanted
    monkeypatch.setenv("COLUMNS", "1000")  # the default of a pipe is 120
    plain = run("eval", COCO, RESULTS, "--slices", file)
    assert plain.out.splitlines()[-1] == result.signature
    for name, each in result.slices(slices).items():  # one line per slice
        (line,) = (row for row in plain.out.splitlines() if row.startswith(f"{name} "))
        assert line.endswith(each.signature)
    monkeypatch.setenv("COLUMNS", "80")
    lines = on_a_terminal("eval", COCO, RESULTS, "--slices", file).out.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[-1] == result.signature


def test_the_command_takes_some_images_and_classes(tmp_path: Path) -> None:
    file = make.write(tmp_path / "list.txt", "000005\n000007\n000009\n")
    words = ("eval", COCO, RESULTS, "--images", file, "--classes", "star,circle")
    words = (*words, "--format", "json")
    content = json.loads(run(*words).out)
    expected = detmap.evaluate(COCO, RESULTS, images=[5, 7, 9], classes=["star", "circle"])
    assert content["signature"] == expected.signature
    wanted = {name: None if np.isnan(value) else value for name, value in expected.metrics.items()}
    assert content["metrics"] == wanted
    assert [row["name"] for row in content["per_class"]] == ["circle", "star"]
    mixed = run("eval", COCO, RESULTS, "--classes", "star,1")
    assert mixed.code == 2
    assert "no class 'star' by id, no class '1' by name" in mixed.err
    slices = make.write(tmp_path / "s.json", {"both": [5, 60], "none": [60]})
    part = json.loads(run(*words, "--slices", slices).out)["slices"]
    assert {name: each["counts"]["images"] for name, each in part.items()} == {"both": 1, "none": 0}


@pytest.mark.parametrize("suffix", ["csv", "json", "data"])
def test_the_file_of_images_adds_up(tmp_path: Path, suffix: str) -> None:
    pandas = pytest.importorskip("pandas")
    file = tmp_path / f"images.{suffix}"
    content = json.loads(run("eval", COCO, RESULTS, "--per-image", file, "--format", "json").out)
    if suffix == "json":
        frame = pandas.DataFrame(json.loads(file.read_text())["images"])
    else:
        frame = pandas.read_csv(file)
    assert len(frame) == content["counts"]["images"]
    for name in slicing.COUNTS:
        assert frame[name].sum() == content["counts"][name]
    assert "is an input" in run("eval", RESULTS, RESULTS, "--per-image", RESULTS).err
    text = run("eval", COCO, RESULTS, "-o", file, "--per-image", file).err
    assert "is used for two outputs" in text


TOGETHER = [
    name
    for name in names()
    for rules in [detmap.load_protocol(name)]
    if rules.iou.of == "boxes"
    and rules.evaluation.rule == "matching"
    and not rules.image_by_image()
]


def tied(seed: int) -> tuple[detmap.Truth, detmap.Detections]:
    """Six images of an object and four detections of two scores each."""
    rng = np.random.default_rng(seed)
    images, rows = np.arange(1, 7), np.repeat(np.arange(1, 7), 4)
    size, box = np.full(6, 400.0), [0.0, 0.0, 10.0, 10.0]
    listed = {f"listed_{each}": np.ones(6) for each in ("easy", "medium", "hard")}
    truth = detmap.truth_from_arrays(
        images, [1] * 6, [box] * 6, images=images, categories={1: "a"}, attributes=listed
    )
    truth = replace(truth, images=replace(truth.images, width=size, height=size))
    near = (np.arange(24) % 4 == 0) & (rng.random(24) < 0.7)
    boxes = np.where(near[:, None], [box], [[50.0, 50, 5, 5]])
    return truth, detmap.detections_from_arrays(
        truth, rows, [1] * 24, boxes, rng.choice([0.5, 0.6], 24)
    )


@pytest.mark.parametrize("protocol", TOGETHER)
def test_tied_scores_of_a_slice_are_ordered_as_those_of_its_images(protocol: str) -> None:
    for seed in range(drawn(16)):
        tables = tied(seed)
        whole = detmap.evaluate(*tables, protocol)
        for images in ([1, 2, 3], [2, 5], [6]):
            with contextlib.suppress(DataError):  # one score of all: no scale
                alone_again = detmap.evaluate(*tables, protocol, images=images)
                part = whole.slices({"a": images})["a"]
                assert_equal(part, alone_again)
                assert_equal(part.select(images[:1]), whole.select(images[:1]))


def test_match_rows_alone_do_not_order_a_slice_anew() -> None:
    """Without the tables a slice with tied scores is refused; without ties it has its numbers."""
    truth, found = tied(0)
    kept = detmap.match(truth, found, "bes-dev")
    with pytest.raises(detmap.DetmapError, match=r"bes-dev orders all detections together"):
        detmap.summarize(kept).select([1, 2, 3])
    different = replace(found, score=np.linspace(0.1, 0.9, len(found)))
    part = detmap.summarize(detmap.match(truth, different, "bes-dev")).select([1, 2, 3])
    assert_equal(part, detmap.evaluate(truth, different, "bes-dev", images=[1, 2, 3]))


def test_match_rows_in_another_order_have_another_signature() -> None:
    rng = np.random.default_rng(0)
    truth, found = tied(0)
    found = replace(found, score=np.full(24, 0.5))
    hits = (np.arange(24) % 4 == 0) & (rng.random(24) < 0.7)
    found = replace(found, boxes=np.where(hits[:, None], truth.boxes[:1], [[50.0, 50, 5, 5]]))
    kept = detmap.summarize(detmap.match(truth, found, "bes-dev").select([1, 2, 3]))
    alone_again = detmap.evaluate(truth, found, "bes-dev", images=[1, 2, 3])
    assert kept.metrics != alone_again.metrics
    assert kept.signature != alone_again.signature
