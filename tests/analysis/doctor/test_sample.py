"""Mistakes made of the bundled sample: each is found, first and alone; the sample is well."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import detmap
from detmap.core.base.resources import folder
from detmap.core.results.findings import Finding
from tests.analysis.doctor.mistakes import WRONG, Columns, columns
from tests.support.tier import some

SHAPES = folder("datasets") / "shapes"
TRUTH = SHAPES / "instances_test.json"


@pytest.fixture(scope="module")
def right() -> Columns:
    truth = detmap.read_truth(TRUTH)
    return columns(truth, detmap.read_detections(SHAPES / "detections" / "contours.json", truth))


def named(findings: list[Finding]) -> list[str]:
    return [finding.name for finding in findings]


@pytest.mark.parametrize("detector", ["contours", "template"])
@pytest.mark.parametrize("suffix", ["", ".json"])
def test_nothing_is_wrong_with_the_sample(detector: str, suffix: str) -> None:
    truth = TRUTH if suffix else SHAPES
    assert detmap.doctor(truth, SHAPES / "detections" / f"{detector}{suffix}") == []


@pytest.mark.slow
@pytest.mark.parametrize("mistake", some(WRONG, 3))
def test_a_mistake_is_found_first_and_alone(right: Columns, mistake: str) -> None:
    make, name = WRONG[mistake]
    findings = detmap.doctor(right.truth, make(right).arrays())
    assert named(findings) == [name]


@pytest.mark.slow
@pytest.mark.parametrize(
    "mistakes",
    [
        ("xyxy", "from zero"),
        ("normalised cxcywh", "from zero"),
        ("stems", "half the size"),
        ("swapped", "percent"),
        ("first images", "cxcywh"),
        ("doubled", "xyxy"),
    ],
    ids=" ".join,
)
def test_two_mistakes_are_found_together(right: Columns, mistakes: tuple[str, str]) -> None:
    wrong = right
    for mistake in mistakes:
        wrong = WRONG[mistake][0](wrong)
    findings = detmap.doctor(right.truth, wrong.arrays())
    assert sorted(named(findings)) == sorted(WRONG[mistake][1] for mistake in mistakes)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_weak_detector_is_well(right: Columns, seed: int) -> None:
    rng = np.random.default_rng(seed)
    boxes = right.boxes + right.boxes[:, [2, 3, 2, 3]] * rng.normal(0, 0.4, right.boxes.shape)
    boxes[:, 2:] = np.maximum(boxes[:, 2:], 1.0)
    for weak in (
        replace(right, boxes=boxes),
        replace(right, category=rng.permutation(right.category)),
        replace(right, score=rng.random(len(right.score))),
    ):
        found = detmap.detections_from_arrays(right.truth, **weak.arrays())
        assert detmap.evaluate(right.truth, found).metrics["AP50"] < 0.25
        assert set(named(detmap.doctor(right.truth, found))) <= {"unexplained"}


@pytest.mark.slow
def test_a_path_tables_records_and_arrays_are_alike(right: Columns, tmp_path: Path) -> None:
    wrong = WRONG["xyxy"][0](right)
    file = tmp_path / "wrong.json"
    file.write_text(json.dumps(wrong.records()))
    table = detmap.read_detections(file, right.truth)
    found = [
        detmap.doctor(right.truth, each) for each in (file, table, wrong.records(), wrong.arrays())
    ]
    assert all(each == found[0] for each in found)
    assert named(found[0]) == ["boxes-xyxy"]


def test_no_detections_are_said(right: Columns) -> None:
    """AP 0 without a word looks like a bad detector."""
    nothing = right.take(np.arange(0)).arrays()
    assert named(detmap.doctor(right.truth, nothing)) == ["images-without-detections"]
    assert detmap.doctor(right.truth.take(np.arange(0)), nothing) == []


@pytest.mark.slow
def test_two_classes_in_each_others_place_are_found(right: Columns) -> None:
    """Of many classes two cost little: less than by what a repair has to multiply AP50."""
    category = right.category.copy()
    category[right.category == 1], category[right.category == 2] = 2, 1
    found = detmap.doctor(right.truth, {**right.arrays(), "category_id": category})
    assert named(found) == ["classes-permuted"]


@pytest.mark.slow
@pytest.mark.parametrize("wanted", ["boxes-xyxy", "boxes-xywh"])
def test_numbers_that_a_reader_took_for_centers(right: Columns, wanted: str) -> None:
    """As in YOLO's labels: the table holds what the reader made of them."""
    boxes = right.boxes.copy()
    if wanted == "boxes-xyxy":
        boxes[:, 2:] += boxes[:, :2]
    boxes[:, :2] -= boxes[:, 2:] / 2
    (finding,) = detmap.doctor(right.truth, {**right.arrays(), "boxes": boxes})
    assert finding.name == wanted
    assert finding.ap50_after == pytest.approx(0.606, abs=0.001)
    assert "are read as center" in finding.sentence


@pytest.mark.parametrize(
    "given",
    [
        {"image_id": [1]},
        [{"image_id": 1}],
        [5],
        {"image_id": [1], "category_id": [1], "boxes": [[1, 2]], "score": [1]},
    ],
)
def test_what_are_no_detections_is_bad_input(right: Columns, given: object) -> None:
    with pytest.raises(detmap.DataError):
        detmap.doctor(right.truth, given)  # type: ignore[arg-type]


def test_swapped_arguments_are_bad_input(right: Columns) -> None:
    found = detmap.detections_from_arrays(right.truth, **right.arrays())
    with pytest.raises(detmap.DataError, match="swapped"):
        detmap.doctor(found, right.truth)  # type: ignore[arg-type]
