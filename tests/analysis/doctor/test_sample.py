"""Mistakes made of the bundled sample: each is found; the sample is well."""

from pathlib import Path

import numpy as np
import pytest

import detmap
from detmap.core.results.findings import Finding
from tests.analysis.doctor.sample import SHAPES, TRUTH, Columns, columns, take, with_mistakes
from tests.support import builders
from tools.doctor_kinds import KINDS


def named(findings: list[Finding]) -> list[str]:
    return [finding.name for finding in findings]


@pytest.mark.parametrize("detector", ["contours", "template"])
@pytest.mark.parametrize("suffix", ["", ".json"])
def test_nothing_is_wrong_with_the_sample(detector: str, suffix: str) -> None:
    found = SHAPES / "detections" / f"{detector}{suffix}"
    assert detmap.doctor(TRUTH if suffix else SHAPES, found) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "mistakes",
    [
        ("corners", "classes from 0"),
        ("fractions, centers", "classes from 0"),
        ("half the size", "file stems"),
        ("x and y swapped", "percent"),
        ("the first half", "centers"),
        ("all rows twice", "corners"),
    ],
    ids=" and ".join,
)
def test_two_mistakes_are_found_together(mistakes: tuple[str, str]) -> None:
    wrong = with_mistakes(*mistakes)
    wanted = sorted(KINDS[mistake].wanted[0] for mistake in mistakes)
    assert sorted(named(detmap.doctor(wrong.truth, wrong.rows))) == wanted


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_weak_detector_is_well(truth: detmap.Truth, right: Columns, seed: int) -> None:
    rng = np.random.default_rng(seed)
    boxes = right["boxes"] + right["boxes"][:, [2, 3, 2, 3]] * rng.normal(
        0, 0.4, right["boxes"].shape
    )
    boxes[:, 2:] = np.maximum(boxes[:, 2:], 1.0)
    for weak in (
        {"boxes": boxes},
        {"category_id": rng.permutation(right["category_id"])},
        {"score": rng.random(len(boxes))},
    ):
        found = detmap.detections_from_arrays(truth, **(right | weak))
        assert detmap.evaluate(truth, found).metrics["AP50"] < 0.25
        assert set(named(detmap.doctor(truth, found))) <= {"unexplained"}


@pytest.mark.slow
def test_a_path_tables_records_and_arrays_are_alike(truth: detmap.Truth, tmp_path: Path) -> None:
    rows = with_mistakes("corners").rows
    file = builders.write(tmp_path / "wrong.json", rows)
    forms = (file, detmap.read_detections(file, truth), rows, columns(rows))
    found = [detmap.doctor(truth, each) for each in forms]
    assert all(each == found[0] for each in found)
    assert named(found[0]) == ["boxes-xyxy"]


def test_no_detections_are_said(truth: detmap.Truth, right: Columns) -> None:
    """AP 0 without a word looks like a bad detector."""
    nothing = take(right, slice(0))
    (finding,) = detmap.doctor(truth, nothing)
    assert (finding.name, finding.fix) == ("images-without-detections", "")
    assert "no detection at all" in finding.sentence
    assert detmap.doctor(truth.take(np.arange(0)), nothing) == []


@pytest.mark.slow
@pytest.mark.parametrize("wanted", ["boxes-xyxy", "boxes-xywh"])
def test_numbers_taken_for_centers(truth: detmap.Truth, right: Columns, wanted: str) -> None:
    """As in YOLO's labels: the table holds what the reader made of them."""
    boxes = right["boxes"].copy()
    if wanted == "boxes-xyxy":
        boxes[:, 2:] += boxes[:, :2]
    boxes[:, :2] -= boxes[:, 2:] / 2
    (finding,) = detmap.doctor(truth, right | {"boxes": boxes})
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
def test_what_are_no_detections_is_bad_input(truth: detmap.Truth, given: object) -> None:
    with pytest.raises(detmap.DataError):
        detmap.doctor(truth, given)  # type: ignore[arg-type]


def test_swapped_arguments_are_bad_input(truth: detmap.Truth, right: Columns) -> None:
    found = detmap.detections_from_arrays(truth, **right)
    with pytest.raises(detmap.DataError, match="swapped"):
        detmap.doctor(found, truth)  # type: ignore[arg-type]
