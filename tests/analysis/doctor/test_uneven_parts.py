"""Files of which a part is wrong: the doctor says which."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import detmap
from detmap.analysis.doctor import uneven_parts
from detmap.analysis.doctor.quick_checks import narrow_axes
from tests.support.running import run
from tools.doctor_sets import Look, Set, generated

CROWDED = Look(60, 4, 4.0, 0.85, 0.05, 0.04, 1.0)
Row = dict[str, Any]


def found(place: Path, given: Set, protocol: str = "coco-bbox") -> list[detmap.Finding]:
    """The findings on a set whose ground truth is written."""
    (place / "truth.json").write_text(json.dumps(given.truth, default=float))
    return detmap.doctor(place / "truth.json", given.rows, protocol)


def wrong(change: Callable[[Row, Row], None]) -> Set:
    """A set with some rows changed; `change` gets a row and the record of its image."""
    given = generated(1, "boxes", CROWDED).copy()
    for k, image in enumerate(given.truth["images"]):
        image["place"] = k
    images = {each["id"]: each for each in given.truth["images"]}
    for row in given.rows:
        change(row, images[row["image_id"]])
    return given


def halved(row: Row) -> None:
    row["bbox"] = [v / 2 for v in row["bbox"]]


def every_second(row: Row, image: Row) -> None:
    if image["place"] % 2:
        halved(row)


def one_class(row: Row, image: Row) -> None:
    if row["category_id"] == 1:
        row["bbox"] = [v / image["width"] for v in row["bbox"]]


def other_ids(row: Row, image: Row) -> None:
    if image["place"] >= 30:
        row["category_id"] = {1: 2, 2: 4, 4: 5, 5: 1}[row["category_id"]]


def tiles(row: Row, image: Row) -> None:
    for axis, side in enumerate(("width", "height")):
        if row["bbox"][axis] + row["bbox"][2 + axis] / 2 > image[side] / 2:
            row["bbox"][axis] -= image[side] / 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (every_second, r"^in \d+ of 60 images no high-scoring box is on an object, in the others"),
        (one_class, "boxes of class kettle are on an object, of those of other classes"),
        (other_ids, r"^in \d+ of \d+ images no high-scoring box has the class of its object"),
        (tiles, "one part of the objects .* match as by chance"),
    ],
)
def test_a_part_that_is_wrong_is_named(
    tmp_path: Path, change: Callable[[Row, Row], None], said: str
) -> None:
    (finding,) = found(tmp_path, wrong(change))
    assert finding.name == "unexplained"
    assert re.search(said, finding.sentence)


def test_images_are_uneven_only_beyond_a_binomial_distribution() -> None:
    rng = np.random.default_rng(0)
    n = np.full(100, 4)
    for p in (0.3, 0.6, 0.9):
        assert not uneven_parts.wrong_images(uneven_parts.Counts(n, rng.binomial(n, p)))
    half = np.where(np.arange(100) % 2, 0, rng.binomial(n, 0.8))
    assert len(uneven_parts.wrong_images(uneven_parts.Counts(n, half))) >= 50


def test_a_pixel_of_width_needs_exact_heights() -> None:
    """A right file with a score threshold had 13 of 76 widths a pixel too small by accident."""
    off = np.zeros((76, 4))
    off[:, 2:] = np.random.default_rng(0).uniform(2, 9, (76, 2))
    off[:13, 2] = -1
    off[20:25, 3] = 0
    wanted = np.full((76, 4), 50.0)
    assert not narrow_axes(wanted + off, wanted).any()
    off[:, 3] = 0
    assert narrow_axes(wanted + off, wanted).tolist() == [True, False]


def test_images_without_objects_and_chance_detectors_miss_no_labels(tmp_path: Path) -> None:
    given = generated(1, "boxes", Look(40, 2, 2.0, 0.1, 0.1, 0.0, 8.0)).copy()
    labeled = {each["id"] for each in given.truth["images"][:15]}
    kept = [each for each in given.truth["annotations"] if each["image_id"] in labeled]
    given.truth["annotations"] = kept
    assert [each.name for each in found(tmp_path, given)] in ([], ["unexplained"])


@pytest.mark.slow
def test_too_few_objects_are_not_checked(tmp_path: Path) -> None:
    given = generated(1, "boxes", Look(10, 2, 3.0, 0.9, 0.05, 0.0, 1.0)).copy()
    assert repr(found(tmp_path, given)) == "no findings"
    for row in given.rows:
        row["bbox"] = [row["bbox"][k] * 3 for k in (0, 2, 1, 3)]
    why = f"{len(given.truth['annotations'])} objects are too few to tell a mistake from a weak"
    findings = found(tmp_path, given)
    assert not findings
    assert repr(findings).startswith(f"not checked: {why}")
    (tmp_path / "found.json").write_text(json.dumps(given.rows))
    files = tmp_path / "truth.json", tmp_path / "found.json", "-p", "coco-bbox"
    done = run("doctor", *files)
    assert (done.code, done.out.startswith(f"not checked: {why}")) == (0, True)
    assert json.loads(run("doctor", *files, "--format", "json").out)["not_checked"][0].startswith(
        why
    )
    strict = run("eval", *files, "--strict")
    assert (strict.code, f"note: doctor: not checked: {why}" in strict.err) == (0, True)


@pytest.mark.slow
def test_image_ids_of_a_video_that_count_from_another_number(tmp_path: Path) -> None:
    """Objects hardly move from frame to frame: the wrong frame fits nearly as well."""
    given = generated(1, "boxes", Look(60, 3, 5.0, 0.95, 0.03, 0.0, 1.0, still=True)).copy()
    number = {each["id"]: k for k, each in enumerate(given.truth["images"])}
    for each in (*given.truth["images"], *given.truth["annotations"]):
        key = "image_id" if "image_id" in each else "id"
        each[key] = number[each[key]]
    for row in given.rows:
        row["image_id"] = number[row["image_id"]] + 1
    assert [each.name for each in found(tmp_path, given)] == ["images-shifted"]


@pytest.mark.slow
def test_names_that_join_are_no_other_split(tmp_path: Path) -> None:
    """The boxes are wrong in a way that is no hypothesis."""
    given = generated(1, "boxes", CROWDED).copy()
    stem = {each["id"]: Path(each["file_name"]).stem for each in given.truth["images"]}
    for row in given.rows:
        x, y, w, h = row["bbox"]
        row |= {"image_id": stem[row["image_id"]], "bbox": [x, x + w, y, y + h]}
    assert [each.name for each in found(tmp_path, given)] == ["unexplained"]


@pytest.mark.slow
def test_height_before_width(tmp_path: Path) -> None:
    given = generated(1, "boxes", CROWDED).copy()
    for row in given.rows:
        row["bbox"] = [row["bbox"][k] for k in (0, 1, 3, 2)]
    assert [each.name for each in found(tmp_path, given)] == ["boxes-xyhw"]
