"""Scoring programs for EvalAI and Codabench, and boxes of language models."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

import detmap
from detmap.integrations import challenges
from detmap.integrations.lmms import Box, parse
from tests.integrations import host_samples as sample
from tests.support import builders as make
from tests.support.running import python


def test_evalai_gets_rows_of_its_leaderboard() -> None:
    evaluate = challenges.evalai("test_split", "coco-bbox", {"AP": "mAP", "APl": "large"})
    output = evaluate(str(sample.TRUTH), str(sample.FOUND), "phase", submission_metadata={})
    metrics = sample.expected().metrics
    assert output["result"] == [{"test_split": {"mAP": metrics["AP"], "large": metrics["APl"]}}]
    with pytest.raises(detmap.DataError, match="labels: no metric 'mAP'"):
        challenges.leaderboard(sample.expected(), {"mAP": "AP"})


def codabench(folder: Path, submission: str) -> Any:
    """A run of the page's scoring program."""
    for name, text in (("ref", sample.TRUTH.read_text()), ("res", submission)):
        (folder / "input" / name).mkdir(parents=True)
        (folder / "input" / name / "file.json").write_text(text)
    (folder / "input" / "res" / "metadata").write_text("")
    page = (make.ROOT / "docs" / "integrations" / "servers.md").read_text()
    program = re.search(r"^(import sys\n.*?)^```", page, re.DOTALL | re.MULTILINE)
    assert program
    (folder / "score.py").write_text(program[1])
    return python("score.py", "input", "output", cwd=folder, PYTHONPATH=make.ROOT)


@pytest.mark.slow
def test_codabench_writes_scores_and_a_table(tmp_path: Path) -> None:
    assert codabench(tmp_path, sample.FOUND.read_text()).code == 0
    scores = json.loads((tmp_path / "output" / "scores.json").read_text())
    assert scores == sample.expected().flat()
    assert "<table" in (tmp_path / "output" / "detailed_results.html").read_text()


@pytest.mark.slow
def test_a_bad_submission_does_not_show_paths_of_the_server(tmp_path: Path) -> None:
    submission = [{"image_id": 999, "category_id": 1, "bbox": [0, 0, 1, 1], "score": 1}]
    done = codabench(tmp_path, json.dumps(submission))
    assert done.code == 1
    text = done.err
    assert text.startswith("the submission[0].image_id")
    assert "999" in text
    assert str(tmp_path) not in text + (tmp_path / "output/detailed_results.html").read_text()
    assert not (tmp_path / "output" / "scores.json").exists()
    with pytest.raises(challenges.SubmissionError) as raised:
        challenges.score(tmp_path / "input" / "missing.json", sample.FOUND)
    assert str(tmp_path) not in str(raised.value)


def test_folders_of_codabench(tmp_path: Path) -> None:
    """An archive made on macOS has a second folder; an empty one is an error without paths."""
    source, output = tmp_path / "input", tmp_path / "output"
    for name in ("ref", "res"):
        with pytest.raises(challenges.SubmissionError, match="there is no file") as raised:
            challenges.codabench(source, output)
        assert str(tmp_path) not in str(raised.value)
        assert "there is no file" in (output / "detailed_results.html").read_text()
        (source / name / "__MACOSX").mkdir(parents=True)
        (source / name / ".DS_Store").write_bytes(b"\0")
        (source / name / "metadata").write_text("")
        file = {"ref": sample.TRUTH, "res": sample.FOUND}[name]
        (source / name / "file.json").write_text(file.read_text())
    assert challenges.codabench(source, output) == sample.expected().flat()


def test_a_folder_in_the_archive_and_an_old_score_of_codabench(tmp_path: Path) -> None:
    source, output = tmp_path / "input", tmp_path / "output"
    (source / "ref").mkdir(parents=True)
    (source / "ref" / "truth.json").write_text(sample.TRUTH.read_text())
    inner = source / "res" / "mine"
    inner.mkdir(parents=True)
    (inner / "found.json").write_text(sample.FOUND.read_text())
    assert challenges.codabench(source, output) == sample.expected().flat()
    (inner / "found.json").write_text("[1]")
    with pytest.raises(challenges.SubmissionError):
        challenges.codabench(source, output)
    assert not (output / "scores.json").exists()


ENTRY = {"bbox_2d": [100, 200, 500, 800], "label": "cat"}
PIXELS = {"bbox_2d": [100, 200, 500, 400], "label": "cat"}
IN_PIXELS = {"unit": "pixels"}


@pytest.mark.parametrize(
    "text, unit, options, expected",
    [
        (json.dumps([PIXELS]), "pixels", {}, (100, 200, 500, 400)),
        (json.dumps(PIXELS), "pixels", {}, (100, 200, 500, 400)),
        (json.dumps({"note": [], "objects": [PIXELS]}), "pixels", {}, (100, 200, 500, 400)),
        (
            f"As in [1] [] {{x}} [a:\n```python\nx = 1\n```\n{[PIXELS]}".replace("'", '"'),
            "pixels",
            {},
            (100, 200, 500, 400),
        ),
        (f"Here:\n```json\n{json.dumps([ENTRY])}\n```", "thousandths", {}, (64, 96, 320, 384)),
        (f"I see {json.dumps([ENTRY])}.", "thousandths", {"order": "yxyx"}, (128, 48, 512, 240)),
        ('[{"box": [0, 0.5, 1, 1], "name": "cat"}]', "fractions", {}, (0, 240, 640, 480)),
    ],
)
def test_boxes_of_a_text(text: str, unit: str, options: Any, expected: Any) -> None:
    (box,) = parse(text, (640, 480), unit=unit, **options)
    assert box == Box("cat", pytest.approx(expected))


@pytest.mark.parametrize(
    "text, options, message",
    [
        ("[]", {"unit": "percent"}, "unit: 'percent'"),
        ("[]", {"order": "xywh"}, "order: 'xywh'"),
        ('[{"label": "cat"}]', {}, "entry 0: .* has none of bbox_2d"),
        ('[{"bbox": [0, 0, 1]}]', {}, "entry 0: .* has none of label"),
        ('[{"bbox": [0, 0, 1], "label": "cat"}]', {}, "a box is four numbers"),
        ('[{"bbox": [0, 0, 1, NaN], "label": "cat"}]', {}, "a box is four numbers"),
        ('[{"bbox": [0, 0, 1, true], "label": "cat"}]', {}, "a box is four numbers"),
        ('[{"bbox": [0, 0, 30, 1], "label": "cat"}]', {}, r"outside 0 to 1 \(fractions\)"),
        ('[{"bbox": [1, 0, 0, 1], "label": "cat"}]', {}, "a side is negative"),
        ('[{"bbox": [0, 0, 1, 1], "label": "cow"}]', {"labels": ["cat"]}, "classes: cat"),
        ('[{"bbox": [0, 0, 1, 1], "label": "c', {}, "the answer may be cut"),
        ('[{"bbox": [0, 0, 1, 1], "label": null}]', {}, "None .a label is a string"),
        ('[{"bbox": [1' + "0" * 5000 + "]}]", {}, "text: Exceeds the limit"),
        ('[{"a":' * 50_000, {}, "text: maximum recursion depth"),
        ("[]", {"labels": "cat"}, "give a list of names"),
        ("[]", {"size": (640,)}, "size: .*give width and height"),
        ("[]", {"size": (0, float("nan"))}, "size: "),
        (b"[]", {}, "text: a bytes"),
        ("[", {}, "the answer may be cut"),
        ("```json\n[\n```", {}, "the answer may be cut"),
        ("[[1, 2, 3, 4], [5,", {}, "the answer may be cut"),
        ("[1, 2,", {}, "the answer may be cut"),
        ('{"bbox_2d": [1, 2', {}, "the answer may be cut"),
        ("[{'bbox': [0, 0, 1, 1], 'label': 'cat'}]", {}, "which has double quotes"),
        ("[[1, 2, 3, 4], [5, 6, 7, 8]]", {}, "a list of numbers without labels"),
        ("[0.1, 0.2, 0.3, 0.4]", {}, "a list of numbers without labels"),
        (f"{json.dumps([PIXELS])} and {json.dumps([PIXELS])}", IN_PIXELS, "2 lists of boxes"),
        (json.dumps([ENTRY]), IN_PIXELS, "outside the image of 640 x 480 pixels"),
        ('[{"bbox": [-1, 0, 1, 1], "label": "cat"}]', IN_PIXELS, "outside the image"),
        ('[{"bbox": [0, 0, 1' + "0" * 400 + ', 1], "label": "cat"}]', {}, "a box is four numbers"),
        ("[]", {"labels": ["dog", 1]}, "give a list of names"),
        ("[]", {"labels": [["dog"]]}, "give a list of names"),
        ("[]", {"labels": 5}, "give a list of names"),
        ("[]", {"size": ("640", "480")}, "give width and height"),
        ("[]", {"size": "ab"}, "give width and height"),
        ("cat: (100,200),(500,800)", {}, "character 5 of the text: boxes as"),
        ("<box>100 200 500 800</box>", {}, "boxes as '<box'"),
        ("<|box_start|>(1,2),(3,4)<|box_end|>", {}, "boxes as"),
        ("<loc0100><loc0200><loc0500><loc0800> cat", {}, "boxes as '<loc0'"),
        ("bbox: 1, 2, 3, 4", {}, "boxes as 'bbox: 1, 2'"),
        ("[null]", {}, "a list of None, not of boxes"),
        ('```json\n["cat"]\n```', {}, "a list of 'cat', not of boxes"),
    ],
)
def test_texts_that_are_refused(text: str, options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse(text, **{"size": (640, 480), "unit": "fractions", **options})


@pytest.mark.parametrize(
    "text",
    ["[]", "```json\n[]\n```", "None (see 3).", "bounding box 2 is empty", 'no ["cat"] here', ""],
)
def test_texts_without_boxes(text: str) -> None:
    assert parse(text, (640, 480), unit="pixels") == []


def test_boxes_of_a_text_under_the_scoreless_protocol() -> None:
    assert parse("There is no cat.", (640, 480), unit="pixels") == []
    boxes = parse(json.dumps([PIXELS, PIXELS]), iter((640, 480)), unit="pixels")
    x, y, right, bottom = boxes[0].xyxy
    xywh = [[x, y, right - x, bottom - y]]
    truth = detmap.truth_from_arrays([1], [1], xywh, categories={1: "cat"})
    found = detmap.detections_from_arrays(truth, [1, 1], [1, 1], xywh * 2, None)
    metrics = detmap.evaluate(truth, found, "scoreless").metrics
    assert (metrics["precision@0.5"], metrics["recall@0.5"]) == (0.5, 1)
