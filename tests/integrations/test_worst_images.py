"""The worst images as W&B and MLflow take them."""

import shutil
from pathlib import Path

import numpy as np
import pytest

import detmap
from detmap.errors import DataError
from detmap.integrations.worst_images import FOUND, MISSED, RIGHT, WRONG, worst_images
from tests.support import builders as make

cv2 = pytest.importorskip("cv2", reason="needs detmap-eval[report]")
PICTURES = make.SHAPES / "JPEGImages"


@pytest.fixture(scope="module")
def diagnosis() -> detmap.Diagnosis:
    return detmap.diagnose(make.SHAPES, make.SHAPES / "detections" / "contours", "coco-bbox")


@pytest.mark.parametrize("confidence", [None, 0.3])
def test_boxes_and_counts_are_those_of_the_diagnosis(
    diagnosis: detmap.Diagnosis, confidence: float | None
) -> None:
    found = worst_images(diagnosis, PICTURES, 60, confidence=confidence)
    assert [each.errors for each in found] == detmap.analysis.diagnosis.mistakes.images(
        diagnosis, confidence=confidence
    )
    for each in found:
        boxes, labels, hit = each.objects
        assert (len(boxes), len(labels)) == (each.errors.objects, each.errors.objects)
        assert sum(hit) == each.errors.tp
        assert hit.count(False) == each.errors.missed
        kinds = each.detections[3]
        assert kinds.count("TP") == each.errors.tp
        assert len(kinds) == each.errors.tp + each.errors.fp
        assert each.path.stem == each.errors.image


def test_a_picture_has_the_colors_of_its_boxes(diagnosis: detmap.Diagnosis) -> None:
    (each,) = worst_images(diagnosis, PICTURES, 1)
    plain = cv2.imread(str(each.path))[:, :, ::-1]
    drawn = each.drawn()
    assert drawn.shape == plain.shape
    new = {tuple(color) for color in drawn[(drawn != plain).any(axis=2)].tolist()}
    assert new <= {FOUND, MISSED, RIGHT, WRONG}
    assert MISSED in new
    left, top = np.rint(each.objects[0][each.objects[2].index(False), :2]).astype(int)
    assert tuple(drawn[top, left].tolist()) in {FOUND, MISSED, RIGHT, WRONG}


def test_boxes_as_wandb_takes_them(diagnosis: detmap.Diagnosis) -> None:
    (each,) = worst_images(diagnosis, PICTURES, 1)
    groups = each.wandb_boxes()
    objects, detections = (groups[name]["box_data"] for name in ("ground_truth", "detections"))
    assert [row["position"]["minX"] for row in objects] == each.objects[0][:, 0].tolist()
    assert sum(row["box_caption"].endswith(", missed") for row in objects) == each.errors.missed
    assert [row["scores"]["score"] for row in detections] == each.detections[2]
    names = groups["detections"]["class_labels"]
    assert {row["class_id"] for row in objects} <= set(names)
    assert all(row["box_caption"].startswith(names[row["class_id"]]) for row in detections)


def test_images_without_a_file_are_left_out(diagnosis: detmap.Diagnosis, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="has none of the images"):
        worst_images(diagnosis, tmp_path)
    with pytest.raises(DataError, match="is not a folder"):
        worst_images(diagnosis, tmp_path / "x")
    second = worst_images(diagnosis, PICTURES, 2)[1]
    shutil.copy(second.path, tmp_path)
    (only,) = worst_images(diagnosis, tmp_path)
    assert only.errors == second.errors
    (tmp_path / second.path.name).write_bytes(b"x")
    with pytest.raises(DataError, match="images without a file"):
        worst_images(diagnosis, tmp_path)[0].drawn()


def test_images_may_be_named_by_files(tmp_path: Path) -> None:
    shutil.copy(PICTURES / "000001.jpg", tmp_path / "a.jpg")
    box = {"boxes": [[1, 2, 30, 40]], "labels": [1]}
    for name in ("a.jpg", "a", "x/a.jpg"):
        image = {**box, "image_id": name, "orig_size": (240, 320)}
        made = detmap.diagnose([image], [{**image, "scores": [0.5]}])
        (only,) = worst_images(made, tmp_path)
        assert only.errors.tp == 1
        assert "Pictures" not in repr(only)
