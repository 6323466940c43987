"""Masks and keypoints of files are columns; dicts that are made later are those of pycocotools."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from detmap.compat import COCO, COCOeval
from detmap.compat import annotation_sources as sources
from tests.compat.both import OURS, Classes, assert_same, evaluation, from_files, run_both, same
from tests.compat.test_cocoeval import finish, masks_and_keypoints
from tests.reference import official
from tests.support import builders as make
from tests.support.drawing_shapes import draw_keypoints, draw_segm, packed
from tests.support.tier import drawn

pytestmark = pytest.mark.filterwarnings("ignore::detmap.compat.PycocotoolsQuirk")

DRAW = {"segm": draw_segm, "keypoints": draw_keypoints}
MARKS = ("ignore", "_ignore")
"""Keys that pycocotools writes into records, and the drop-in does not."""


@pytest.fixture(scope="module", autouse=True)
def lane() -> None:
    """These tests are about one lane."""


@pytest.fixture(autouse=True)
def forced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "LEAST_SIZE", 1)


def records(coco: Any) -> list[dict[str, Any]]:
    """The annotations as a program sees them, without the marks of an evaluation."""
    return [
        {key: value for key, value in each.items() if key not in MARKS}
        for each in coco.dataset["annotations"]
    ]


def are_columns(coco: Any, *, scored: bool) -> bool:
    return COCO.columns(coco, scored=scored) is not None


def with_results(kind: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Instances, and results without boxes."""
    instances, _, results = masks_and_keypoints()
    if kind == "segm":
        image = np.zeros((100, 100), dtype=np.uint8, order="F")
        image[10:40, 8:30] = 1
        for each in results:
            del each["keypoints"]
            each["segmentation"] = packed(image)
    return instances, results


@pytest.mark.parametrize("kind", DRAW)
@pytest.mark.parametrize("seed", range(drawn(12)))
def test_dicts_after_an_evaluation(kind: str, seed: int, tmp_path: Path) -> None:
    data = DRAW[kind](np.random.default_rng(seed))

    def script(classes: Classes) -> Any:
        truth, found = from_files(classes, tmp_path, official.complete(data[0]), data[1])
        made = finish(evaluation(classes, (truth, found), {}, kind))
        if classes is OURS and data[0]["annotations"]:
            assert are_columns(truth, scored=False)
            assert are_columns(found, scored=True)
        return made, [records(each) for each in (truth, found)], found.dataset.keys()

    expected, found = run_both(script)
    if expected is not None:
        assert [repr(each) for each in expected[1:]] == [repr(each) for each in found[1:]]
        assert_same(expected[0], found[0])


EDITS: dict[str, Callable[[Any, Any], Any]] = {
    "a height": lambda truth, found: truth.imgs[1].update(height=60),
    "a height in words": lambda truth, found: truth.imgs[1].update(height="60"),
    "no height": lambda truth, found: truth.imgs[1].pop("height"),
    "an image away": lambda truth, found: truth.imgs.pop(1),
    "a shape of the truth": lambda truth, found: truth.anns[1].update(
        segmentation=[[1, 1, 9, 1, 9, 9]], keypoints=[5, 5, 2] * 17
    ),
    "a shape of a result": lambda truth, found: found.anns[1].update(
        segmentation=found.anns[2].get("segmentation"), keypoints=[5, 5, 2] * 17
    ),
    "no count of points": lambda truth, found: truth.anns[1].pop("num_keypoints"),
    "own run lengths": lambda truth, found: setattr(
        truth, "annToRLE", lambda each: packed(np.ones((100, 100), dtype=np.uint8))
    ),
    "own look-up": lambda truth, found: setattr(truth, "getAnnIds", lambda **_: [1, 2]),
}


@pytest.mark.parametrize("kind", DRAW)
@pytest.mark.parametrize("edit", EDITS)
def test_edits_after_an_evaluation_count(edit: str, kind: str, tmp_path: Path) -> None:
    """Of some classes, whose masks keep the sizes that their images had."""
    instances, results = with_results(kind)
    some = sorted({each["category_id"] for each in instances["annotations"]})[:1]

    def script(classes: Classes) -> Any:
        truth, found = from_files(classes, tmp_path, instances, results)
        first = finish(evaluation(classes, (truth, found), {"catIds": some}, kind))
        EDITS[edit](truth, found)
        return first.stats, finish(evaluation(classes, (truth, found), {}, kind))

    expected, found = run_both(script)
    if expected is not None:
        assert same(expected[0], found[0])
        assert_same(expected[1], found[1])


@pytest.mark.parametrize("kind", DRAW)
@pytest.mark.parametrize("edit", EDITS)
def test_edits_before_an_evaluation_count(edit: str, kind: str, tmp_path: Path) -> None:
    instances, results = with_results(kind)

    def script(classes: Classes) -> Any:
        truth, found = from_files(classes, tmp_path, instances, results)
        EDITS[edit](truth, found)
        return finish(evaluation(classes, (truth, found), {}, kind))

    expected, found = run_both(script)
    if expected is not None:
        assert_same(expected, found)


@pytest.mark.parametrize("kind", DRAW)
def test_edits_between_evaluations_count(kind: str, tmp_path: Path) -> None:
    """As an error analysis does: boxes, then shapes, then some of the results."""
    instances, results = with_results(kind)

    def script(classes: Classes) -> Any:
        truth, found = from_files(classes, tmp_path, instances, results)
        made = [finish(evaluation(classes, (truth, found), {}, each)) for each in ("bbox", kind)]
        part = evaluation(classes, (truth, found), {"imgIds": [0], "useCats": 0}, kind)
        truth.imgs[1]["height"] = 10  # after the run lengths were made
        for each in found.dataset["annotations"][::2]:
            each["score"] = 0.25
        seen = copy.deepcopy(records(truth))
        return *made, finish(part), finish(evaluation(classes, (truth, found), {}, kind)), seen

    expected, found = run_both(script)
    for one, other in zip(expected[:-1], found[:-1], strict=True):
        assert_same(one, other)
    assert repr(expected[-1]) == repr(found[-1])


CHANGES: dict[str, Callable[[list[dict[str, Any]]], Any]] = {
    "a box of one": lambda rows: rows[1].update(bbox=[1, 2, 3, 4]),
    "boxes": lambda rows: [each.update(bbox=[1, 2, 30, 40]) for each in rows],
    "empty boxes": lambda rows: [each.update(bbox=[]) for each in rows],
    "a caption": lambda rows: rows[0].update(caption="a cat"),
    "a later caption": lambda rows: rows[1].update(caption="a cat"),
    "polygons": lambda rows: [
        each.update(segmentation=[[1, 1, 9, 1, 9, 9]]) for each in rows if "segmentation" in each
    ],
    "a polygon": lambda rows: rows[-1].update(segmentation=[[1, 1, 9, 1, 9, 9]]),
    "lists of runs": lambda rows: [
        each.update(segmentation={"size": [100, 100], "counts": [50, 9950]})
        for each in rows
        if "segmentation" in each
    ],
    "a list of one run": lambda rows: rows[-1].update(
        segmentation={"size": [100, 100], "counts": [10000]}
    ),
    "another size": lambda rows: [
        each.update(segmentation=packed(np.ones((50, 20), dtype=np.uint8)))
        for each in rows
        if "segmentation" in each
    ],
    "a point less": lambda rows: rows[-1].update(keypoints=[1, 2, 2] * 16),
    "no shape": lambda rows: [rows[-1].pop(name, None) for name in ("segmentation", "keypoints")],
    "no points": lambda rows: [each.update(keypoints=[]) for each in rows],
    "both shapes": lambda rows: [
        each.update(keypoints=[1, 2, 2] * 17, segmentation=packed(np.eye(100, dtype=np.uint8)))
        for each in rows
    ],
}


@pytest.mark.parametrize("kind", DRAW)
@pytest.mark.parametrize("change", CHANGES)
def test_results_of_other_forms(change: str, kind: str, tmp_path: Path) -> None:
    instances, results = with_results(kind)
    CHANGES[change](results)

    def script(classes: Classes) -> Any:
        truth, found = from_files(classes, tmp_path, instances, results)
        made = finish(evaluation(classes, (truth, found), {}, kind))
        return made, [records(each) for each in (truth, found)]

    expected, found = run_both(script)
    if expected is not None:
        assert_same(expected[0], found[0])
        assert repr(expected[1]) == repr(found[1])


@pytest.mark.parametrize("missing", ["num_keypoints", "keypoints", "segmentation", "area"])
@pytest.mark.parametrize("kind", DRAW)
def test_a_missing_key_is_the_same_error(kind: str, missing: str, tmp_path: Path) -> None:
    instances, results = with_results(kind)
    del instances["annotations"][3][missing]

    def script(classes: Classes) -> Any:
        truth, found = from_files(classes, tmp_path, instances, results)
        return finish(evaluation(classes, (truth, found), {}, kind)).stats

    assert same(*run_both(script))


def test_an_image_with_detections_alone_needs_its_size(tmp_path: Path) -> None:
    instances, results = with_results("segm")
    image = results[0]["image_id"]
    kept = [each for each in instances["annotations"] if each["image_id"] != image]
    images = [
        {key: each[key] for key in each if key != "height" or each["id"] != image}
        for each in instances["images"]
    ]

    def script(classes: Classes) -> Any:
        pair = from_files(
            classes, tmp_path, instances | {"images": images, "annotations": kept}, results
        )
        return evaluation(classes, pair, {}, "segm")

    assert run_both(script) == (None, None)  # KeyError


@pytest.mark.parametrize("kind", DRAW)
def test_copies_share_what_an_evaluation_changes(kind: str, tmp_path: Path) -> None:
    instances, results = with_results(kind)

    def script(classes: Classes) -> Any:
        truth, found = from_files(classes, tmp_path, instances, results)
        deep, shallow = copy.deepcopy(truth), copy.copy(truth)
        finish(evaluation(classes, (truth, found), {}, kind))
        return [json.dumps(records(each), default=str) for each in (deep, shallow, truth)]

    expected, found = run_both(script)
    assert expected == found


def test_edits_after_an_evaluation_stay_and_objects_may_go() -> None:
    """The records of an evaluation are read late, but they are not changed any more."""
    tree = json.loads((make.SHAPES / "instances_test.json").read_text())
    for each in tree["annotations"]:
        x, y, w, h = each["bbox"]
        each["segmentation"] = [[x, y, x + w, y, x + w, y + h, x, y + h]]
    truth = COCO()
    truth.dataset = tree
    truth.createIndex()
    keys = ("image_id", "category_id")
    found = truth.loadRes(
        [
            {**{key: each[key] for key in keys}, "score": 0.5, "segmentation": truth.annToRLE(each)}
            for each in tree["annotations"]
        ]
    )
    run = COCOeval(truth, found, "segm")
    run.evaluate()
    polygon = [[1, 1, 10, 1, 10, 12, 1, 9]]
    first, second = tree["annotations"][:2]
    first["segmentation"] = polygon
    run.cocoGt = run.cocoDt = None
    assert first in run._gts[first["image_id"], first["category_id"]]
    assert first["segmentation"] is polygon
    assert isinstance(second["segmentation"], dict)
    assert {"_gts", "_dts"} <= set(vars(run))
