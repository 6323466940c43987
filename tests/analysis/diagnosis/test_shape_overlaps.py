"""A diagnosis of masks, keypoints and rotated boxes."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import detmap
from detmap.analysis.diagnosis import diagnose, merge
from detmap.analysis.diagnosis.analysis import OF_DETECTIONS, OF_OBJECTS
from detmap.analysis.diagnosis.olrp import overlap_taken
from detmap.analysis.diagnosis.shape_overlaps import overlap_of_pairs
from detmap.analysis.diagnosis.summary import summary
from detmap.core.overlaps.keypoints import Keypoints
from tests.analysis.diagnosis.troublesome_tables import tables
from tests.support import builders as make
from tests.support.running import run
from tests.support.tier import drawn

SIDE = 64


def filled(box: list[int]) -> dict[str, Any]:
    """A box of whole pixels as uncompressed run lengths."""
    x, y, w, h = box
    counts, last = [], 0
    for column in range(x, x + w):
        counts += [column * SIDE + y - last, h]
        last = column * SIDE + y + h
    return {"size": [SIDE, SIDE], "counts": [*counts, SIDE * SIDE - last]}


def rectangles(folder: Path, seed: int) -> tuple[Path, Path]:
    """Files of boxes of whole pixels, some crowds, each with the mask of its box."""
    rng = np.random.default_rng(seed)
    objects: list[dict[str, Any]] = []
    for n in range(int(rng.integers(0, 25))):
        box = [*rng.integers(0, 40, 2).tolist(), *rng.integers(1, 24, 2).tolist()]
        image, label = int(rng.integers(1, 6)), int(rng.integers(1, 4))
        crowd = int(rng.random() < 0.1)
        objects.append(
            {"id": n + 1, "image_id": image, "category_id": label, "bbox": box, "iscrowd": crowd}
            | {"area": box[2] * box[3], "segmentation": filled(box)}
        )
    found = []
    for _ in range(int(rng.integers(0, 60))):
        box = [*rng.integers(0, 40, 2).tolist(), *rng.integers(1, 24, 2).tolist()]
        image, label = int(rng.integers(1, 6)), int(rng.integers(1, 4))
        if objects and rng.random() < 0.7:  # near an object, mostly of its class
            near = objects[int(rng.integers(len(objects)))]
            box = [max(0, near["bbox"][0] + int(rng.integers(-2, 3))), *near["bbox"][1:]]
            image = near["image_id"]
            label = near["category_id"] if rng.random() < 0.7 else label
        found.append(
            {"image_id": image, "category_id": label, "bbox": box, "segmentation": filled(box)}
            | {"score": int(rng.integers(1, 10)) / 10}
        )
    images = [{"id": i, "width": SIDE, "height": SIDE} for i in range(1, 6)]
    categories = [{"id": i, "name": f"c{i}"} for i in (1, 2, 3)]
    truth = {"images": images, "annotations": objects, "categories": categories}
    return make.write(folder / "gt.json", truth), make.write(folder / "dt.json", found)


@pytest.mark.parametrize("seed", range(drawn(30)))
def test_masks_of_rectangles_have_the_diagnosis_of_their_boxes(tmp_path: Path, seed: int) -> None:
    files = rectangles(tmp_path, seed)
    boxes, masks = diagnose(*files, "coco-bbox"), diagnose(*files, "coco-segm")
    for name in (*OF_DETECTIONS, *OF_OBJECTS):
        assert np.array_equal(getattr(boxes, name), getattr(masks, name)), name
    assert json.dumps(summary(boxes)) == json.dumps(summary(masks))


def test_parts_of_masks_merge_to_the_whole(tmp_path: Path) -> None:
    truth, found = rectangles(tmp_path, 3)
    table = detmap.read_truth(truth, shapes="masks")
    detections = detmap.read_detections(found, table)
    whole = diagnose(table, detections, "coco-segm")
    parts = [
        diagnose(table.select_images(some), detections.select_images(some), "coco-segm")
        for some in (np.array([1, 3]), np.array([0, 2, 4]))
    ]
    assert json.dumps(summary(merge(parts))) == json.dumps(summary(merge([whole])))


@pytest.mark.parametrize("seed", range(drawn(10)))
def test_the_overlap_of_pairs_is_found_again(tmp_path: Path, seed: int) -> None:
    found = diagnose(*rectangles(tmp_path, seed), "coco-segm")
    rows = np.flatnonzero(found.same > 0)
    objects = found.same_object[rows].astype(np.int64)
    tables_of = (found.truth, found.detections, rows, objects, found.protocol)
    assert np.array_equal(overlap_of_pairs(*tables_of), found.same[rows])


@pytest.mark.slow
def test_commands_analyze_masks(tmp_path: Path) -> None:
    files = rectangles(tmp_path, 3)
    page = tmp_path / "report.html"
    assert run("report", *files, "-p", "coco-segm", "-o", page).code == 0
    assert "Worst mistakes" in page.read_text()
    masks, boxes = (
        json.loads(run("diagnose", *files, "-p", name, "--format", "json").out)
        for name in ("coco-segm", "coco-bbox")
    )
    assert masks["tide"] == boxes["tide"]
    assert masks["olrp"] == boxes["olrp"]


def test_boxes_have_no_shapes_to_compare() -> None:
    truth, detections = tables(1)
    with pytest.raises(detmap.DataError, match="has no masks, which coco-segm compares"):
        diagnose(truth, detections, "coco-segm")


def test_keypoints_are_compared_by_their_similarity() -> None:
    points = [float(x) for i in range(17) for x in (10 + i, 20 + 2 * i, 2)]
    truth, detections = _posed(points)
    found = diagnose(truth, detections, "coco-keypoints")
    assert found.counts()["TP"] == 1
    assert overlap_taken(found, np.array([0])).tolist() == [1.0]
    assert summary(found)["olrp"]["olrp"] == 0.5  # one of two objects, in its place


def _posed(points: list[float]) -> tuple[Any, Any]:
    """Two people of one image; one is found in its place, of which the other is 100 px away."""
    pose = np.array(points).reshape(1, 17, 3)
    away = pose + np.array([100.0, 0, 0])
    boxes = np.array([[10.0, 20, 16, 32], [110.0, 20, 16, 32]])
    truth = detmap.truth_from_arrays([1, 1], [1, 1], boxes)
    area = np.full(2, 512.0)
    truth = replace(truth, shapes=Keypoints(np.concatenate([pose, away]), area))
    detections = detmap.detections_from_arrays(truth, [1], [1], boxes[:1], [0.9])
    return truth, replace(detections, shapes=Keypoints(pose, area[:1]))
