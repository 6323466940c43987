"""`detmap.integrations.ultralytics` in a validation of Ultralytics itself."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import detmap

os.environ |= {"YOLO_AUTOINSTALL": "false", "YOLO_OFFLINE": "true"}
ultralytics = pytest.importorskip("ultralytics", reason="needs detmap-eval[ultralytics]")
torch = pytest.importorskip("torch")

from detmap.integrations import ultralytics as host  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


def data(folder: Path) -> str:
    """60 images of several shapes with up to four objects each."""
    import cv2

    rng = np.random.default_rng(0)
    for split in ("train", "val"):
        (folder / "images" / split).mkdir(parents=True)
        (folder / "labels" / split).mkdir(parents=True)
    for i in range(60):
        h, w = rng.integers(80, 180, 2)
        cv2.imwrite(str(folder / f"images/val/{i:03}.png"), np.zeros((h, w, 3), np.uint8))
        lines = []
        for _ in range(rng.integers(0, 5)):
            side = rng.uniform(0.2, 0.4, 2)
            center = side / 2 + rng.random(2) * (1 - side)
            lines.append(f"{rng.integers(3)} {center[0]} {center[1]} {side[0]} {side[1]}")
        (folder / f"labels/val/{i:03}.txt").write_text("\n".join(lines))
    text = f"path: {folder}\ntrain: images/train\nval: images/val\n"
    (folder / "data.yaml").write_text(text + "names: {0: cat, 1: dog, 2: owl}\n")
    return str(folder / "data.yaml")


class Noisy(host.DetmapValidator):
    """A validator whose model finds the objects twice, beside the ground truth and over the
    border.
    """

    detmap_protocol = "coco-bbox"

    def preprocess(self, batch: Any) -> Any:
        self.batch = super().preprocess(batch)
        return self.batch

    def postprocess(self, preds: Any) -> Any:
        generator = torch.Generator().manual_seed(1)
        found = []
        for i in range(len(self.batch["im_file"])):
            target = self._prepare_batch(i, self.batch)
            boxes = target["bboxes"].repeat(2, 1)
            shift = 6 * torch.randn((len(boxes), 2), generator=generator).repeat(1, 2)
            score = torch.rand(len(boxes), generator=generator).sort(descending=True).values
            fields = {"bboxes": boxes + shift, "conf": score, "cls": target["cls"].repeat(2)}
            found.append({**fields, "extra": torch.zeros(len(boxes), 0)})
        return found


def validate(folder: Path, *callbacks: Any, names: Any = None, **options: Any) -> tuple[Any, Any]:
    """The metrics and the validator."""
    seen: list[Any] = []
    model = ultralytics.YOLO("yolov8n.yaml")
    model.model.names = names or {0: "cat", 1: "dog", 2: "owl"}
    for each in (*callbacks, seen.append):
        model.add_callback("on_val_end", each)
    options = {"save_json": True, **options}
    fixed = {"imgsz": 96, "plots": False, "workers": 0, "device": "cpu", "project": str(folder)}
    metrics = model.val(data=data(folder), validator=Noisy, name="val", **fixed, **options)
    return metrics, seen[0]


def test_the_numbers_of_val_and_of_the_files(tmp_path: Path) -> None:
    pytest.importorskip("jinja2")
    metrics, validator = validate(tmp_path, host.callback())
    network, files = validator.network_result.metrics, validator.files_result.metrics
    printed = metrics.results_dict
    assert network["mAP50"] > 0.1
    for name, key in (
        ("mAP50", "mAP50"),
        ("mAP50-95", "mAP50-95"),
        ("P", "precision"),
        ("R", "recall"),
    ):
        # Ultralytics adds up the classes in another order: the last bit may differ.
        assert network[name] == pytest.approx(printed[f"metrics/{key}(B)"], rel=1e-14), name
    own = detmap.evaluate(tmp_path / "data.yaml", tmp_path / "val/predictions.json", "coco-bbox")
    assert validator.detmap["detmap/AP"] == own.metrics["AP"]
    assert files["AP"] == pytest.approx(own.metrics["AP"], abs=1e-3)  # the file's digits are cut
    clipped = detmap.evaluate(
        tmp_path / "data.yaml", tmp_path / "val/predictions.json", host.OWN_RULES
    )
    assert clipped.metrics["mAP50-95"] > network["mAP50-95"] + 0.003
    assert "detmap/AP_low" in validator.detmap
    assert b"<html" in (tmp_path / "val/detmap.html").read_bytes()[:2000]


def test_a_callback_without_rows_is_a_value_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="save_json is off"):
        validate(tmp_path, host.callback(), save_json=False)


class Validator:
    """The attributes of a validator that tell a training run from a validation."""

    args = SimpleNamespace(save_json=False)
    training = True


def test_a_model_of_other_classes_than_the_data_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"data.yaml: 3 classes, but the model has 80 "):
        validate(tmp_path, names=dict(enumerate(map(str, range(80)))))


@pytest.mark.parametrize("names", [["cat"], ["fox", "cat", "dog", "owl"]])
def test_another_number_of_classes_than_the_data_is_an_error(names: list[str]) -> None:
    from detmap.integrations import ultralytics_tables as tables

    args = SimpleNamespace(data="pets.yaml", single_cls=False)
    given = {"names": dict(enumerate(["cat", "dog", "owl"]))}
    validator = SimpleNamespace(data=given, names=dict(enumerate(names)), args=args)
    message = rf"^pets.yaml: 3 classes, but the model has {len(names)} \("
    with pytest.raises(ValueError, match=message):
        tables.require_classes(validator)
    args.single_cls = True
    tables.require_classes(validator)
    args.single_cls, validator.names = False, dict(enumerate(["cat", "dog", "owl", "fox"]))
    tables.require_classes(validator)  # the classes of the data come first
    with pytest.raises(ValueError, match="detmap callback: protocol: no protocol 'foo'"):
        host.callback("foo")


def test_a_callback_without_rows_does_nothing_in_a_training_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    logged: list[str] = []
    monkeypatch.setattr(host._log, "warning", logged.append)
    run, validator = host.callback(), Validator()
    run(validator)  # an epoch
    assert not logged
    validator.training = False
    run(validator)  # the best weights, at the end
    assert len(logged) == 1
    assert "model.train(save_json=True)" in logged[0]
    other = Validator()
    other.training = False
    with pytest.raises(ValueError, match="save_json is off"):
        run(other)
