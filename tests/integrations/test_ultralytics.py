"""`detmap.integrations.ultralytics` in validations and training runs of Ultralytics itself."""

import csv
import json
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

TASKS = {"detect": "", "segment": "-seg", "pose": "-pose", "obb": "-obb"}
COCO = ("AP", "AP50", "AP75", "APs", "APm", "APl")


def data(folder: Path, task: str = "detect", n_images: int = 60) -> str:
    """Images of several shapes with up to four objects each."""
    import cv2

    rng = np.random.default_rng(0)
    for split in ("train", "val"):
        (folder / "images" / split).mkdir(parents=True)
        (folder / "labels" / split).mkdir(parents=True)
        for i in range(n_images):
            h, w = rng.integers(80, 180, 2)
            cv2.imwrite(str(folder / f"images/{split}/{i:03}.png"), np.zeros((h, w, 3), np.uint8))
            lines = []
            for _ in range(rng.integers(0, 5)):
                side = rng.uniform(0.2, 0.4, 2)
                center = side / 2 + rng.random(2) * (1 - side)
                x, y = np.stack([center - side / 2, center + side / 2], axis=1)
                corners = np.array([[x[0], y[0]], [x[1], y[0]], [x[1], y[1]], [x[0], y[1]]])
                points = np.concatenate([corners, np.full((4, 1), 2)], axis=1)
                shape = {
                    "detect": [*center, *side],
                    "segment": corners.ravel(),
                    "obb": corners.ravel(),
                    "pose": [*center, *side, *points.ravel()],
                }[task]
                lines.append(" ".join(map(str, [rng.integers(3), *shape])))
            (folder / f"labels/{split}/{i:03}.txt").write_text("\n".join(lines))
    text = f"path: {folder}\ntrain: images/train\nval: images/val\n"
    text += "names: {0: cat, 1: dog, 2: owl}\n" + "kpt_shape: [4, 3]\n" * (task == "pose")
    (folder / "data.yaml").write_text(text)
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
        if hasattr(self, "process"):
            ops = host._val.ops
            native = self.args.save_json
            self.process = ops.process_mask_native if native else ops.process_mask
        for i in range(len(self.batch["im_file"])):
            target = self._prepare_batch(i, self.batch)
            boxes = target["bboxes"].repeat(2, 1)
            shift = 6 * torch.randn((len(boxes), 2), generator=generator)
            score = torch.rand(len(boxes), generator=generator).sort(descending=True).values
            pair = shift if boxes.shape[1] == 5 else shift.repeat(1, 2)
            fields = {"bboxes": boxes.clone(), "conf": score, "cls": target["cls"].repeat(2)}
            fields["bboxes"][:, : pair.shape[1]] += pair
            if "masks" in target:
                fields["masks"] = target["masks"].repeat(2, 1, 1).roll(3, -1).to(torch.uint8)
            elif "keypoints" in target:
                fields["keypoints"] = target["keypoints"].repeat(2, 1, 1).clone()
                fields["keypoints"][..., :2] += shift[:, None]
            found.append(fields)
        return found


def validate(
    folder: Path, *callbacks: Any, task: str = "detect", names: Any = None, **options: Any
) -> tuple[Any, Any]:
    """The metrics and the validator."""
    seen: list[Any] = []
    model = ultralytics.YOLO(f"yolo11n{TASKS[task]}.yaml", task=task)
    model.model.names = names or {0: "cat", 1: "dog", 2: "owl"}
    model.model.kpt_shape = [4, 3]
    for each in (*callbacks, seen.append):
        model.add_callback("on_val_end", each)
    options = {"save_json": True, **options}
    fixed = {"imgsz": 96, "plots": False, "workers": 0, "device": "cpu", "project": str(folder)}
    source = data(folder, task)
    metrics = model.val(data=source, validator=Noisy, name="val", **fixed, **options)
    return metrics, seen[0]


def reference(folder: Path, kind: str, sigmas: Any = None, outlines: bool = False) -> float:
    """AP of ``predictions.json`` by pycocotools, with the label files as the ground truth."""
    from PIL import Image
    from pycocotools import mask
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    images: list[Any] = []
    objects: list[Any] = []
    for path in sorted((folder / "images/val").iterdir()):
        width, height = Image.open(path).size
        number = int(path.stem)
        images.append({"id": number, "width": width, "height": height})
        for line in (folder / f"labels/val/{path.stem}.txt").read_text().splitlines():
            label, *numbers = map(float, line.split())
            record: Any = {"id": len(objects) + 1, "image_id": number, "iscrowd": 0}
            record["category_id"] = int(label) + 1
            if kind == "segm":
                outline = (np.array(numbers).reshape(-1, 2) * [width, height]).ravel().tolist()
                runs = mask.frPyObjects([outline], height, width)
                record |= {"segmentation": [outline], "area": float(mask.area(runs)[0])}
                record["bbox"] = mask.toBbox(runs)[0].tolist()
            else:
                if outlines:
                    corners = np.array(numbers).reshape(-1, 2)
                    low, high = corners.min(axis=0), corners.max(axis=0)
                    numbers = [*((low + high) / 2), *(high - low)]
                center, side = np.array(numbers[:2]), np.array(numbers[2:4])
                size = np.array([width, height])
                low, high = center * size - side * size / 2, center * size + side * size / 2
                record["bbox"] = [*low, *(high - low)]
                record["area"] = record["bbox"][2] * record["bbox"][3]
            if kind == "keypoints":
                points = np.array(numbers[4:]).reshape(-1, 3) * [width, height, 1]
                record |= {"keypoints": points.ravel().tolist(), "num_keypoints": len(points)}
                record["area"] *= 0.53
            objects.append(record)
    truth = COCO()
    categories = [{"id": i + 1, "name": name} for i, name in enumerate(("cat", "dog", "owl"))]
    truth.dataset = {"images": images, "annotations": objects, "categories": categories}
    truth.createIndex()
    rows = json.loads((folder / "val/predictions.json").read_text())
    run = COCOeval(truth, truth.loadRes(rows), kind)
    if sigmas is not None:
        run.params.kpt_oks_sigmas = np.array(sigmas, dtype=np.float64)
    run.evaluate()
    run.accumulate()
    run.summarize()
    return float(run.stats[0])


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


@pytest.mark.parametrize("task", ["segment", "pose", "obb"])
def test_every_task_has_the_numbers_of_val_and_of_the_files(tmp_path: Path, task: str) -> None:
    pytest.importorskip("jinja2")
    kept: list[Any] = []

    def keep(validator: Any) -> None:
        kept.append((validator.detmap_results, validator.detmap))

    metrics, validator = validate(tmp_path, keep, host.callback(), task=task)
    printed, network = metrics.results_dict, validator.network_result.metrics
    assert network["mAP50"] > 0.1
    for key in ("mAP50", "mAP50-95"):  # probiou is computed in float32 there
        close = 1e-5 if task == "obb" else 1e-14
        assert network[key] == pytest.approx(printed[f"metrics/{key}(B)"], rel=close), key
    (memory, named), written = kept[0], validator.detmap_results
    assert "detmap/files/AP" in named
    for kind, result in written.items():
        in_memory = memory[kind].metrics["AP"]
        assert result.metrics["AP"] > 0.1, kind
        assert in_memory == pytest.approx(result.metrics["AP"], abs=2e-3), kind
    if task == "segment":
        assert written["boxes"].metrics["AP"] == reference(tmp_path, "bbox", outlines=True)
        assert written["masks"].metrics["AP"] == reference(tmp_path, "segm")
        assert "detmap/APs(M)" in validator.detmap
    elif task == "pose":
        assert written["boxes"].metrics["AP"] == reference(tmp_path, "bbox")
        sigmas = validator.sigma
        assert written["keypoints"].metrics["AP"] == reference(tmp_path, "keypoints", sigmas)
        assert "detmap/APm(P)" in validator.detmap
    else:
        assert [*written] == ["rotated boxes"]


def test_a_callback_without_rows_is_a_value_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="save_json is off"):
        validate(tmp_path, host.callback(), save_json=False)


def test_a_model_of_other_classes_than_the_data_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"data.yaml: 3 classes, but the model has 80 "):
        validate(tmp_path, names=dict(enumerate(map(str, range(80)))))


def train(folder: Path, task: str, **options: Any) -> list[dict[str, str]]:
    """Trains a small model with both callbacks; returns the rows of ``results.csv``."""
    model = ultralytics.YOLO(f"yolo11n{TASKS[task]}.yaml", task=task)
    model.add_callback("on_val_start", host.coco_metrics())
    model.add_callback("on_val_end", host.callback())
    fixed = {"imgsz": 64, "batch": 4, "workers": 0, "device": "cpu", "project": str(folder)}
    options = {"epochs": 1, "plots": True, "amp": False, **options}
    model.train(data=data(folder, task, 4), name="run", verbose=False, **fixed, **options)
    with (folder / "run/results.csv").open() as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("save_json", [False, True])
@pytest.mark.parametrize("task", TASKS)
def test_a_training_run_has_cocos_metrics_in_results_csv(
    tmp_path: Path, task: str, save_json: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    logged: list[str] = []
    for level in ("warning", "error"):
        monkeypatch.setattr(host._log, level, lambda text, *_: logged.append(str(text)))
    (row,) = train(tmp_path, task, save_json=save_json)
    for suffix, other in (("", ""), ("(M)", "segment"), ("(P)", "pose")):
        names = [f"detmap/{name}{suffix}" for name in COCO if suffix != "(P)" or name != "APs"]
        for name in names if other in ("", task) else ():
            assert row[name] == "nan" or 0 <= float(row[name]) <= 1, name
        assert (f"detmap/AP{suffix}" in row) == (other in ("", task))
    assert None not in row  # as many columns as names
    assert (tmp_path / "run/results.png").exists()
    own = [each for each in logged if "detmap" in each or "lotting" in each]
    assert own == ([] if save_json else [each for each in own if "save_json is off" in each])
    assert len(own) == (not save_json)


HOOKS = (
    ("detmap.integrations.inputs.ultralytics_images", "labelled"),
    ("detmap.integrations.inputs.ultralytics_images", "kinds_of"),
    ("detmap.integrations.inputs.ultralytics_images", "image_of"),
    ("detmap.integrations.inputs.ultralytics_images", "tables"),
    ("detmap.Evaluator", "compute"),
    ("detmap.analysis.html_report", "report"),
    ("detmap.integrations.ultralytics", "_mixed"),
)


@pytest.mark.parametrize("place", HOOKS, ids=lambda place: place[1])
def test_a_training_run_survives_a_failure_of_detmap(
    tmp_path: Path, place: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise RuntimeError("broken on purpose")

    monkeypatch.setattr(".".join(place), fail)
    logged: list[str] = []
    monkeypatch.setattr(host._log, "warning", lambda text, *_: logged.append(str(text)))
    rows = train(tmp_path, "detect", save_json=True, epochs=2, plots=False)
    assert len(rows) == 2
    assert all(None not in row for row in rows)
    own = [each for each in logged if "broken on purpose" in each]
    # One warning for each of the two callbacks that meets the failure.
    assert 1 <= len(own) <= 2, own
    assert len(set(own)) == len(own)


@pytest.mark.parametrize("names", [["cat"], ["fox", "cat", "dog", "owl"]])
def test_another_number_of_classes_than_the_data_is_an_error(names: list[str]) -> None:
    from detmap.integrations.inputs import ultralytics_images as images

    args = SimpleNamespace(data="pets.yaml", single_cls=False)
    given = {"names": dict(enumerate(["cat", "dog", "owl"]))}
    validator = SimpleNamespace(data=given, names=dict(enumerate(names)), args=args)
    message = rf"^pets.yaml: 3 classes, but the model has {len(names)} \("
    with pytest.raises(ValueError, match=message):
        images.require_classes(validator)
    args.single_cls = True
    images.require_classes(validator)
    args.single_cls, validator.names = False, dict(enumerate(["cat", "dog", "owl", "fox"]))
    images.require_classes(validator)  # the classes of the data come first
    with pytest.raises(ValueError, match="detmap callback: protocol: no protocol 'foo'"):
        host.callback("foo")


class Validator:
    """The attributes of a validator that tell a training run from a validation."""

    def __init__(self, task: str = "detect") -> None:
        self.args = SimpleNamespace(save_json=False, task=task)
        self.training = True


def test_callbacks_without_rows_in_a_training_run(monkeypatch: Any) -> None:
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
