"""The callback of `detmap.integrations.ultralytics` for each task, with a stand-in for the host."""

import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.support import stand_ins

image_module = pytest.importorskip("PIL.Image", reason="needs detmap-eval[images]")

MODULE = "detmap.integrations.ultralytics"
SIZE = np.array([100, 80])
BOXES = np.array([[10, 10, 40, 30], [50, 20, 90, 60], [5, 40, 25, 75.0]])
KINDS = {
    "detect": {"boxes": ""},
    "segment": {"boxes": "", "masks": "(M)"},
    "pose": {"boxes": "", "keypoints": "(P)"},
    "obb": {"rotated boxes": ""},
}
"""What a task predicts, and the suffix of its metrics."""


@pytest.fixture
def logged() -> list[str]:
    return []


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch, logged: list[str]) -> Iterator[Any]:
    yield stand_ins.packages(monkeypatch, MODULE, stand_ins.ultralytics(logged))
    sys.modules.pop(MODULE, None)


def corners(box: Any) -> Any:
    x1, y1, x2, y2 = box
    return np.array([[x1, y1], [x2, y1], [x2, y2], [x1, y2]])


def label(path: Path, task: str) -> dict[str, Any]:
    """The labels of an image as the data set of Ultralytics has them: fractions of the image."""
    low, high = BOXES[:, :2] / SIZE, BOXES[:, 2:] / SIZE
    fields: dict[str, Any] = {"im_file": str(path), "cls": np.array([[0], [1], [0]])}
    fields["bboxes"] = np.concatenate([(low + high) / 2, high - low], axis=1)
    fields["segments"] = [corners(each) / SIZE for each in BOXES]
    if task == "pose":
        visible = np.full((3, 4, 1), 2)
        points = [corners(each) / SIZE for each in BOXES]
        fields["keypoints"] = np.concatenate([np.array(points), visible], axis=2)
    return fields


def row(name: str, task: str, i: int, score: float) -> dict[str, Any]:
    """A row of ``predictions.json`` that finds object i exactly."""
    x1, y1, x2, y2 = BOXES[i]
    found: dict[str, Any] = {"file_name": name, "category_id": (0, 1, 0)[i], "score": score}
    if task == "obb":
        return found | {"poly": corners(BOXES[i]).ravel().tolist()}
    found["bbox"] = [x1, y1, x2 - x1, y2 - y1]
    if task == "segment":
        found["segmentation"] = [corners(BOXES[i]).ravel().tolist()]
    elif task == "pose":
        points = np.concatenate([corners(BOXES[i]), np.ones((4, 1))], axis=1)
        found["keypoints"] = points.ravel().tolist()
    return found


class Validator:
    """A validator of Ultralytics at the end of a validation: two images with the same objects.

    Objects 0 and 1 of the first image are found, and none of the second: AP is that of classes
    with a recall of 1/4 and 1/2.
    """

    def __init__(self, folder: Path, task: str) -> None:
        self.args = SimpleNamespace(task=task, save_json=True, data="d.yaml", single_cls=False)
        self.training, self.is_coco, self.is_lvis = False, False, False
        self.save_dir, self.names, self.class_map = folder, {0: "cat", 1: "dog"}, [0, 1]
        self.data = {"names": self.names}
        self.sigma, self.kpt_shape = np.full(4, 0.25), (4, 3)
        paths = [folder / "a.png", folder / "b.png"]
        for path in paths:
            image_module.new("L", (100, 80)).save(path)
        dataset = SimpleNamespace(labels=[label(path, task) for path in paths])
        self.dataloader = SimpleNamespace(dataset=dataset)
        self.jdict = [row("a.png", task, 0, 0.9), row("a.png", task, 1, 0.8)]


@pytest.mark.parametrize("task", KINDS)
def test_each_task_has_its_numbers(tmp_path: Path, task: str, host: Any, logged: list[str]) -> None:
    validator: Any = Validator(tmp_path, task)
    host.callback(intervals=False, report=None)(validator)
    assert [*validator.detmap_results] == [*KINDS[task]]
    for kind, suffix in KINDS[task].items():
        # 26 and 51 of the 101 recall points have precision 1.
        assert validator.detmap_results[kind].metrics["AP"] == pytest.approx((26 + 51) / 202)
        assert validator.detmap[f"detmap/AP{suffix}"] == pytest.approx((26 + 51) / 202)
        assert any(each.startswith(f"detmap: {kind} AP 38.1") for each in logged)
    assert validator.detmap_result is next(iter(validator.detmap_results.values()))


def test_classify_is_skipped_with_one_line(tmp_path: Path, host: Any, logged: list[str]) -> None:
    for training in (False, True):
        validator: Any = Validator(tmp_path, "classify")
        validator.training = training
        for run in (host.coco_metrics(), host.callback(), host.callback()):
            run(validator)
        assert not hasattr(validator, "detmap")
    line = "detmap: the task classify has no boxes, so there are no numbers of detmap"
    assert logged == [line, line]  # one per validator


@pytest.mark.parametrize("task", KINDS)
def test_bad_rows_are_a_warning_in_a_training_run(
    tmp_path: Path, task: str, host: Any, logged: list[str]
) -> None:
    run, validator = host.callback(intervals=False, report=None), Validator(tmp_path, task)
    validator.jdict[0]["score"] = float("nan")
    validator.training = True
    run(validator)
    run(validator)
    assert len(logged) == 1
    assert "no numbers in this training run: detmap callback: " in logged[0]
    other = Validator(tmp_path, task)
    other.jdict[0]["score"] = float("nan")
    with pytest.raises(ValueError, match="not a finite number"):
        run(other)


def test_labels_without_the_shapes_of_the_task_are_an_error(tmp_path: Path, host: Any) -> None:
    validator = Validator(tmp_path, "pose")
    validator.dataloader.dataset.labels[1]["keypoints"] = None
    with pytest.raises(ValueError, match=r"b\.png: 0 keypoints for 3 objects \(give the labels"):
        host.callback(report=None)(validator)
