"""Both files are suspects: causes in the ground truth, and causes that must explain the loss."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.analysis.doctor.sample import write
from tests.support.running import run
from tools.doctor_kinds import KINDS
from tools.doctor_sets import PROTOCOLS, Look, Set, generated, right

IN_TRUTH = [name for name in KINDS if name.startswith("ground truth: ")]
NO_NOTE = ("nearly twice", "ids restart", "unlisted", "half the size")
"""What the quick checks of `eval` do not look for, or say in a note of the reader."""


def made(kind: str, seed: int = 0) -> Set:
    base = generated(seed, KINDS[kind].shapes[0])
    return KINDS[kind].make(base, np.random.default_rng(5)) or base


@pytest.mark.slow
@pytest.mark.parametrize("kind", IN_TRUTH)
def test_a_contradiction_in_the_ground_truth(tmp_path: Path, kind: str) -> None:
    given = made(kind)
    files, protocol = write(tmp_path, given), ("-p", PROTOCOLS[given.shape])
    found = json.loads(run("doctor", *files, *protocol, "--format", "json").out)["findings"]
    assert found[0]["name"] in KINDS[kind].wanted
    assert found[0]["fix"] is None
    assert run("eval", *files, *protocol, "--strict").code == 2
    if not any(word in kind for word in NO_NOTE):
        assert f"doctor: {found[0]['name']}: " in run("eval", *files, *protocol).err


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", [name for name in IN_TRUTH if KINDS[name].close is not None and "half" not in name]
)
def test_boxes_of_the_ground_truth_alone(tmp_path: Path, kind: str) -> None:
    truth, _ = write(tmp_path, made(kind))
    assert "1. truth-boxes" in run("doctor", truth).out


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_a_set_without_a_mistake_has_no_finding(tmp_path: Path, seed: int) -> None:
    given = right(seed)
    done = run("doctor", *write(tmp_path, given), "-p", PROTOCOLS[given.shape])
    assert (done.code, done.out) == (0, "nothing found\n")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda x, y, w, h: [x / 2, y / 2, w / 2, h / 2], "1/2 of their size by `area`"),
        (lambda x, y, w, h: [x, y, x + w, y + h], "left, top, right, bottom"),
    ],
)
def test_a_mistake_of_both_files_is_not_corrected_in_one(
    tmp_path: Path, change: Callable[..., list[float]], words: str
) -> None:
    given = generated(2)
    for row in (*given.truth["annotations"], *given.rows):
        row["bbox"] = change(*row["bbox"])
    done = run("doctor", *write(tmp_path, given), "--format", "json")
    sentence = json.loads(done.out)["findings"][0]["sentence"]
    assert words in sentence
    assert "correct both files, or neither" in sentence


@pytest.mark.slow
def test_what_nothing_explains_shows_what_was_measured(tmp_path: Path) -> None:
    """Boxes at random are stretched to fit by no hypothesis."""
    given = generated(0, how=Look())
    rng = np.random.default_rng(0)
    for row in given.rows:
        row["bbox"] = [*rng.uniform(0, 300, 2).tolist(), *rng.uniform(20, 150, 2).tolist()]
    done = run("doctor", *write(tmp_path, given), "--format", "json")
    (finding,) = json.loads(done.out)["findings"]
    assert finding["name"] == "unexplained"
    for words in ("first half", "portrait", "small", "kettle", "Boxes go from", "800 x 640"):
        assert words in finding["sentence"]


def test_every_structural_error_of_a_ground_truth_at_once(tmp_path: Path) -> None:
    """The reader stops at the first one."""
    given = generated(2)
    rows, categories = given.truth["annotations"], given.truth["categories"]
    rows[3]["bbox"][2] = -5
    rows[6]["id"] = rows[7]["id"]
    rows[9]["image_id"] = 99_999
    rows[10]["bbox"] = [1, 2, 3]
    rows[11]["bbox"] = [0, 0, 400, 2]
    rows[12]["area"] = "large"
    rows[13]["segmentation"] = [[1, 2, 3]]
    categories.append(dict(categories[0]))
    given.truth["images"][0]["width"] = 0
    truth, _ = write(tmp_path, given)
    done = run("doctor", truth)
    assert done.code == 2
    assert "bbox: width -5 is negative" in done.err
    for words in (
        "images have no width and height above 0; first: truth.json: images[0]",
        "categories have the id of another one; first: truth.json: categories[5]",
        "categories have the name of another one",
        "negative width or height; first: truth.json: annotations[3]",
        "annotations have the id of another one",
        "on images that are not listed: they are dropped; first: truth.json: annotations[9]",
        "no bbox of four finite numbers; first: truth.json: annotations[10]",
        "sides more than 50 to 1; first: truth.json: annotations[11] 400 x 2",
        "an area that is no number >= 0; first: truth.json: annotations[12]",
        "a polygon of fewer than three points",
    ):
        assert words in done.out


def test_classes_with_few_objects_are_noted(tmp_path: Path) -> None:
    given = generated(2)
    given.truth["categories"].append({"id": 900, "name": "unused"})
    truth, _ = write(tmp_path, given)
    done = run("doctor", truth)
    assert (done.code, done.out) == (0, "nothing found\n")
    assert "1 of 6 classes have no objects: unused (0)" in done.err
