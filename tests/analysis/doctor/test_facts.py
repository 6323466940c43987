"""Facts that no repair changes, and the rarer repairs: each is said of data made for it."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import detmap
from detmap.analysis.doctor.class_hypotheses import OFFICIAL, assigned
from detmap.analysis.doctor.known_benchmarks import VOC, differences
from detmap.analysis.doctor.trial import trial_of
from detmap.core.protocol import load
from detmap.core.results.findings import Finding
from tests.analysis.doctor.sample import RIGHT, TRUTH, Columns, take


def perfect(truth: detmap.Truth, seed: int = 0) -> Columns:
    """Nine of ten objects, found a little beside, and as many boxes anywhere with lower scores."""
    rng = np.random.default_rng(seed)
    rows = np.flatnonzero(rng.random(len(truth)) < 0.9)
    found = truth.boxes[rows] + rng.normal(0, 0.5, (len(rows), 4))
    found[:, 2:] = np.maximum(found[:, 2:], 1)
    else_ = rng.permutation(found)
    place = np.concatenate([truth.image[rows], truth.image[rows]])
    label = np.concatenate([truth.label[rows], rng.permutation(truth.label[rows])])
    score = np.concatenate([rng.uniform(0.4, 1, len(rows)), rng.uniform(0, 0.6, len(rows))])
    return {
        "image_id": truth.images.ids[place],
        "category_id": truth.categories.ids[label],
        "boxes": np.concatenate([found, else_]),
        "score": score,
    }


def eighty(truth: detmap.Truth, ids: list[int]) -> detmap.Truth:
    """The sample with 80 classes of these ids."""
    rng = np.random.default_rng(1)
    names = tuple(f"class {rank:02}" for rank in rng.permutation(80))
    categories = detmap.Categories(np.array(ids), names)
    label = rng.integers(0, 80, len(truth)).astype(np.int32)
    return replace(truth, categories=categories, label=label)


def names(truth: detmap.Truth, wrong: Columns) -> list[str]:
    return [finding.name for finding in detmap.doctor(truth, wrong)]


def test_cocos_gaps_are_the_published_ones() -> None:
    assert len(OFFICIAL) == 80
    assert (OFFICIAL[0], OFFICIAL[11], OFFICIAL[-1]) == (1, 13, 90)


def test_cocos_ids_on_a_truth_that_numbers_through(truth: detmap.Truth) -> None:
    truth = eighty(truth, list(range(1, 81)))
    good = perfect(truth)
    assert names(truth, good) == []
    official = np.array(OFFICIAL)[good["category_id"] - 1]
    assert names(truth, good | {"category_id": official}) == ["classes-coco-ids"]


@pytest.mark.slow
def test_classes_numbered_through_on_cocos_ids(truth: detmap.Truth) -> None:
    truth = eighty(truth, OFFICIAL)
    good = perfect(truth)
    place = np.searchsorted(truth.categories.ids, good["category_id"])
    for start in (0, 1):
        assert names(truth, good | {"category_id": place + start}) == ["classes-contiguous"]


def test_another_split_is_said(truth: detmap.Truth, right: Columns) -> None:
    wrong = right | {"image_id": right["image_id"] + 5000}
    assert names(truth, wrong)[0] in ("images-shifted", "images-other-split")


def test_rounded_scores_are_said(truth: detmap.Truth, right: Columns) -> None:
    assert names(truth, right | {"score": np.round(right["score"], 1)}) == ["scores-rounded"]


def test_a_threshold_that_costs_recall(truth: detmap.Truth) -> None:
    truth = eighty(truth, list(range(1, 81)))
    good = perfect(truth)
    assert "scores-cut" in names(truth, take(good, good["score"] > 0.6))


def test_only_the_best_of_an_image(truth: detmap.Truth) -> None:
    good = perfect(truth)
    order = np.lexsort((-good["score"], good["image_id"]))
    image = good["image_id"][order]
    nth = np.arange(len(order)) - np.searchsorted(image, image)
    assert "scores-top-k" in names(truth, take(good, order[nth < 2]))


Change = Callable[[dict[str, Any]], None]


def _each(change: Callable[[dict[str, Any]], None], every: int = 1) -> Change:
    def changed(file: dict[str, Any]) -> None:
        for record in file["annotations"][::every]:
            change(record)

    return changed


def _twice(file: dict[str, Any]) -> None:
    again = [dict(each, id=10_000 + each["id"]) for each in file["annotations"][::10]]
    file["annotations"] += again


def _images_twice(file: dict[str, Any]) -> None:
    file["images"].append(dict(file["images"][0], id=10_000))


TRUTHS: dict[str, tuple[Change, str]] = {
    "empty": (_each(lambda a: a.update(bbox=[*a["bbox"][:2], 0, 5]), 20), "truth-empty-boxes"),
    "outside": (_each(lambda a: a.update(bbox=[5000, 5000, 9, 9]), 20), "truth-outside"),
    "no area": (_each(lambda a: a.pop("area")), "truth-area-missing"),
    "some crowd flags": (_each(lambda a: a.pop("iscrowd", None), 2), "truth-crowd-missing"),
    "twice": (_twice, "truth-duplicates"),
    "images twice": (_images_twice, "truth-images-twice"),
    "id 0": (lambda file: file["annotations"][0].update(id=0), "truth-id-zero"),
}


@pytest.mark.parametrize("oddity", TRUTHS)
def test_an_odd_truth_is_said(tmp_path: Path, oddity: str) -> None:
    change, name = TRUTHS[oddity]
    content = json.loads(TRUTH.read_text())
    change(content)
    file = tmp_path / "truth.json"
    file.write_text(json.dumps(content))
    found = detmap.doctor(file, RIGHT)
    assert [finding.name for finding in found] == [name]
    assert found[0].ap50_after is None


def test_ignore_that_nobody_reads(truth: detmap.Truth, right: Columns) -> None:
    ignore = np.arange(len(truth)) < 3
    assert names(replace(truth, roles={"ignore": ignore}), right) == ["truth-ignore-unused"]


def test_a_truth_that_is_nearly_a_benchmark() -> None:
    n = 14976 - 2944
    rng = np.random.default_rng(0)
    image = np.concatenate([np.arange(4952), rng.integers(0, 4952, n - 4952)])
    truth = detmap.truth_from_arrays(
        image,
        rng.integers(1, 21, n),
        np.tile([1.0, 2.0, 30.0, 40.0], (n, 1)),
        categories=dict(enumerate(VOC, start=1)),
    )
    ((known, told),) = differences(truth)
    assert known.name == "VOC 2007 test"
    assert told == ["without its 2,944 difficult objects"]


def test_an_assignment_is_the_best_one() -> None:
    from itertools import permutations

    rng = np.random.default_rng(0)
    for rows, columns_ in ((4, 4), (3, 5), (5, 3)):
        gain = rng.random((rows, columns_))
        chosen = assigned(gain)
        total = sum(gain[i, k] for i, k in enumerate(chosen) if k >= 0)
        wide = gain if rows <= columns_ else gain.T
        best = max(
            sum(wide[i, k] for i, k in enumerate(order))
            for order in permutations(range(wide.shape[1]), wide.shape[0])
        )
        assert total == pytest.approx(best)
        assert len({k for k in chosen if k >= 0}) == min(rows, columns_)


def test_frames_of_two_videos_are_not_one_image(truth: detmap.Truth, right: Columns) -> None:
    images = truth.images
    n = len(images)
    frames = replace(images, stems=("000000",) * n, files=tuple(f"vid{i}/000000" for i in range(n)))
    assert names(replace(truth, images=frames), right) == []


def test_a_rule_without_ap50_has_findings_without_it() -> None:
    found = Finding("classes-agnostic", "one class; AP50 after is that of one class", 0.1, 0.2)
    assert found.without_ap50() == Finding("classes-agnostic", "one class")


def test_classes_that_kitti_does_not_evaluate_need_no_detections(truth: detmap.Truth) -> None:
    trial = trial_of(truth, "kitti")
    first = truth.categories.names[0]
    asked = load("kitti").override({"iou.classes": {first.upper(): 0.5}})
    assert not trial.is_own_rule
    assert replace(trial, asked=asked).evaluated().tolist().count(True) == 1
