"""The same bad images through every integration: the host's type of error, place, cause and fix."""

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import detmap
from tests.support import stand_ins

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

Images = list[dict[str, Any]]
NAN = float("nan")
GOOD = {"boxes": [[10.0, 10.0, 50.0, 50.0]], "labels": [1], "scores": [0.9]}
EMPTY: dict[str, Any] = {"boxes": [], "labels": [], "scores": []}
BAD = {
    "score": {"scores": [NAN]},
    "infinite score": {"scores": [float("inf")]},
    "coordinate": {"boxes": [[10.0, 10.0, NAN, 50.0]]},
    "two scores": {"scores": [0.9, 0.8]},
    "two labels": {"labels": [1, 1]},
    "box of three": {"boxes": [[10.0, 10.0, 50.0]]},
    "no scores": {"scores": None},
}


def given(image: dict[str, Any], *names: str) -> dict[str, Any]:
    """The fields of these names that an image has."""
    return {name: image[name] for name in names if image.get(name) is not None}


def array(rows: Any) -> Any:
    return np.array(rows, dtype=float).reshape(len(rows), -1 if len(rows) else 4)


def truth_file(folder: Path, targets: Images) -> Path:
    """A COCO file with the images 1, 2, ... and the class 1."""
    annotations: list[dict[str, Any]] = []
    for image, target in enumerate(targets, 1):
        for x, y, right, bottom in target["boxes"]:
            box = [x, y, right - x, bottom - y]
            record = {"id": len(annotations) + 1, "image_id": image, "category_id": 1, "bbox": box}
            annotations.append({**record, "area": box[2] * box[3], "iscrowd": 0})
    images = [{"id": i, "width": 100, "height": 80} for i, _ in enumerate(targets, 1)]
    content = {"images": images, "categories": [{"id": 1, "name": "cat"}]}
    path = folder / "truth.json"
    path.write_text(json.dumps({**content, "annotations": annotations}))
    return path


# ---- hosts with tensors or arrays


def evaluator(predictions: Images, targets: Images, folder: Path) -> float:
    stream = detmap.Evaluator(classes={1: "cat"})
    found = [given(each, "boxes", "labels", "scores") for each in predictions]
    stream.update(found, [given(each, "boxes", "labels") for each in targets])
    return stream.compute().metrics["AP"]


def shards(predictions: Images, targets: Images, folder: Path) -> float:
    pytest.importorskip("pyarrow", reason="needs detmap-eval[parquet]")
    names = {"boxes": "bbox", "labels": "category_id", "scores": "score"}
    rows = [
        {
            "image_id": i,
            "truth": {names[name]: target[name] for name in ("boxes", "labels")},
            "detections": {names[name]: value for name, value in given(found, *names).items()},
        }
        for i, (found, target) in enumerate(zip(predictions, targets, strict=True))
    ]
    part = detmap.distributed.match_shard(rows, {1: "cat"}, box_format="xyxy")
    return detmap.distributed.reduce([part]).metrics["AP"]


def torchmetrics(predictions: Images, targets: Images, folder: Path) -> float:
    torch = pytest.importorskip("torch", reason="needs detmap-eval[torchmetrics]")
    pytest.importorskip("torchmetrics", reason="needs detmap-eval[torchmetrics]")
    from detmap.integrations.torchmetrics import MeanAveragePrecision

    def tensors(each: dict[str, Any], *names: str) -> dict[str, Any]:
        fields = given(each, *names) | {"boxes": array(each["boxes"])}
        return {
            name: torch.tensor(value, dtype=torch.int64 if name == "labels" else torch.float32)
            for name, value in fields.items()
        }

    found = [tensors(each, "labels", "scores") for each in predictions]
    with pytest.MonkeyPatch.context() as patch:
        stand_ins.torchvision(patch)
        metric = MeanAveragePrecision()
        metric.update(found, [tensors(each, "labels") for each in targets])
        return float(metric.compute()["map"])


def supervision(predictions: Images, targets: Images, folder: Path) -> float:
    sv = pytest.importorskip("supervision", reason="needs detmap-eval[supervision]")
    from detmap.integrations.supervision import DetmapMetric

    def detections(each: dict[str, Any]) -> Any:
        # supervision checks lengths when it makes an object, not when a field is set.
        made = sv.Detections.empty()
        made.xyxy, made.class_id = array(each["boxes"]), np.array(each["labels"], dtype=int)
        made.confidence = None if each.get("scores") is None else np.array(each["scores"])
        return made

    targets = [given(each, "boxes", "labels") for each in targets]
    metric = DetmapMetric("coco-bbox", classes={1: "cat"})
    metric.update([*map(detections, predictions)], [*map(detections, targets)])
    return metric.compute().map50_95


def evaluate(predictions: Images, targets: Images, folder: Path) -> float:
    pytest.importorskip("evaluate", reason="needs detmap-eval[huggingface]")
    from detmap.integrations.evaluate import DetmapMetric

    metric = DetmapMetric(cache_dir=str(folder))
    found = [{"image_id": i, **given(each, *GOOD)} for i, each in enumerate(predictions)]
    known = [{"image_id": i, **given(each, "boxes", "labels")} for i, each in enumerate(targets)]
    metric.add_batch(predictions=found, references=known)
    return metric.compute(classes={1: "cat"}).get("AP", NAN)


def transformers(predictions: Images, targets: Images, folder: Path) -> float:
    """A processor that returns what is given, as a faulty one would."""
    torch = pytest.importorskip("torch", reason="needs detmap-eval[torch]")
    from detmap.integrations.transformers import compute_metrics

    found = [
        {name: torch.tensor(value) for name, value in given(each, *GOOD).items()}
        for each in predictions
    ]
    processor = SimpleNamespace(post_process_object_detection=lambda *_, **__: found)
    labels = []
    for i, each in enumerate(targets):
        corners = array(each["boxes"]) / 100
        middle, side = (corners[:, :2] + corners[:, 2:]) / 2, corners[:, 2:] - corners[:, :2]
        fields = {"boxes": np.hstack([middle, side]), "class_labels": np.array(each["labels"], int)}
        labels.append({**fields, "orig_size": np.array([100, 100]), "image_id": np.array([i])})
    batch = ({}, np.zeros((len(found), 1, 3)), np.zeros((len(found), 1, 4)))
    run = SimpleNamespace(predictions=[batch], label_ids=[labels])
    return compute_metrics(processor, {1: "cat"})(run).get("AP", NAN)


def mmengine(predictions: Images, targets: Images, folder: Path) -> float:
    pytest.importorskip("mmengine", reason="needs detmap-eval[mmengine]")
    from detmap.integrations.mmengine import DetmapMetric

    metric = DetmapMetric(truth_file(folder, targets))
    for image, each in enumerate(predictions, 1):
        fields = given({**each, "bboxes": each["boxes"]}, "bboxes", "scores")
        fields["labels"] = [label - 1 for label in each["labels"]]
        metric.process(None, [{"img_id": image, "pred_instances": fields}])
    return metric.evaluate(len(predictions))["coco/bbox_mAP"]


def detectron2(predictions: Images, targets: Images, folder: Path) -> float:
    pytest.importorskip("detectron2.evaluation", reason="detectron2 is not installed")
    from detmap.integrations.detectron2 import DetmapEvaluator

    run = DetmapEvaluator(truth_file(folder, targets))
    for image, each in enumerate(predictions, 1):
        labels = np.array([label - 1 for label in each["labels"]])
        boxes = SimpleNamespace(tensor=each["boxes"])
        found = SimpleNamespace(pred_classes=labels, pred_boxes=boxes, **given(each, "scores"))
        found.to = lambda _, found=found: found
        run.process([{"image_id": image}], [{"instances": found}])
    metrics = run.evaluate()
    return metrics["bbox"]["AP"] / 100


def torchvision(predictions: Images, targets: Images, folder: Path) -> float:
    coco = pytest.importorskip("pycocotools.coco", reason="needs detmap-eval[parity]")
    from detmap.integrations.torchvision import CocoEvaluator

    run = CocoEvaluator(coco.COCO(str(truth_file(folder, targets))), ["bbox"])
    run.update({i: given(each, *GOOD) for i, each in enumerate(predictions, 1)})
    run.accumulate()
    run.summarize()
    return float(run.coco_eval["bbox"].stats[0])


def fiftyone(predictions: Images, targets: Images, folder: Path) -> float:
    fo = pytest.importorskip("fiftyone", reason="needs detmap-eval[fiftyone]")
    from detmap.integrations.fiftyone import DetmapEvaluationConfig

    def labels(each: dict[str, Any]) -> Any:
        found = []
        for i, corners in enumerate(each["boxes"]):
            sides = [b - a for a, b in zip(corners, corners[2:], strict=False)]
            box = [value / 100 for value in (*corners[:2], *sides)]
            score = each["scores"][i] if each.get("scores") else None
            found.append(fo.Detection(label="cat", bounding_box=box, confidence=score))
        return fo.Detections(detections=found)

    config = DetmapEvaluationConfig("found", "known", iou=0.5, classwise=True)
    backend = config.build()
    backend.gt_field, backend.pred_field = "known", "found"
    matches: list[Any] = []
    for i, (found, known) in enumerate(zip(predictions, targets, strict=True)):
        size = fo.ImageMetadata(width=100, height=100)
        one = fo.Sample(filepath=f"/images/{i}.jpg", metadata=size)
        one["found"], one["known"] = labels(found), labels({**known, "scores": None})
        matches += backend.evaluate(one)
    return backend.generate_results(None, matches, classes=["cat"]).detmap.metrics["AP"]


# ---- hosts with files


def submission(predictions: Images, folder: Path) -> Path:
    rows = []
    for image, each in enumerate(predictions, 1):
        columns = [each["boxes"], each["labels"], *([each["scores"]] if each["scores"] else [])]
        for box, label, *score in zip(*columns, strict=True):
            sides = [b - a for a, b in zip(box, box[2:], strict=False)]
            row = {"image_id": image, "category_id": label, "bbox": [*box[:2], *sides]}
            rows.append({**row, **({"score": score[0]} if score else {})})
    path = folder / "results.json"
    path.write_text(json.dumps(rows))
    return path


def challenges(predictions: Images, targets: Images, folder: Path) -> float:
    from detmap.integrations.challenges import evalai

    run = evalai("split", "coco-bbox", {"AP": "mAP"})
    output = run(str(truth_file(folder, targets)), str(submission(predictions, folder)), "phase")
    return output["result"][0]["split"].get("mAP", NAN)


LENGTHS = {"two scores", "two labels"}
HOSTS: dict[str, tuple[Callable[[Images, Images, Path], float], type[Exception], set[str]]] = {
    "Evaluator": (evaluator, detmap.DataError, set()),
    "ray spark dask": (shards, detmap.DataError, set()),
    "torchmetrics": (torchmetrics, ValueError, set()),
    "supervision": (supervision, ValueError, set()),
    "evaluate": (evaluate, ValueError, set()),
    "transformers": (transformers, ValueError, set()),
    "mmengine": (mmengine, ValueError, set()),
    "detectron2": (detectron2, ValueError, set()),
    "torchvision": (torchvision, ValueError, set()),
    # A detection is one object there: its fields have one length. Without confidence, it is last.
    "fiftyone": (fiftyone, ValueError, {*LENGTHS, "no scores"}),
    "challenges": (challenges, ValueError, LENGTHS),
}
"""What feeds a host, the type of its errors, and what its input cannot be."""
THREE_PARTS = r"(?s)^.+: .+ \(.+\)|fix: "
HOSTS_OWN = {
    ("evaluate", "box of three"): "match the expected format",
    ("torchmetrics", "two scores"): "sample 1 in predictions",
    ("torchmetrics", "two labels"): "sample 1 in predictions",
    ("torchmetrics", "no scores"): "`scores` key",
}
"""Errors that the host raises before it calls detmap."""


@pytest.mark.parametrize("host", HOSTS)
def test_images_without_objects_and_detections_are_evaluated(host: str, tmp_path: Path) -> None:
    feed, _, _ = HOSTS[host]
    assert feed([GOOD, EMPTY], [GOOD, EMPTY], tmp_path) == pytest.approx(1)
    assert feed([EMPTY, EMPTY], [GOOD, EMPTY], tmp_path) == 0
    assert not feed([EMPTY, EMPTY], [EMPTY, EMPTY], tmp_path) >= 0  # undefined: NaN or -1


@pytest.mark.parametrize(
    "host, change",
    [(host, change) for host in HOSTS for change in BAD if change not in HOSTS[host][2]],
)
def test_bad_images_have_place_cause_and_fix(host: str, change: str, tmp_path: Path) -> None:
    feed, error, _ = HOSTS[host]
    with pytest.raises(error, match=HOSTS_OWN.get((host, change), THREE_PARTS)):
        feed([GOOD, {**GOOD, **BAD[change]}], [GOOD, GOOD], tmp_path)
