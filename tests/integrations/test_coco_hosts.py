"""mmengine, detectron2 and torchvision's CocoEvaluator, beside files and pycocotools."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from detmap.integrations.inputs import coco_rows
from tests.integrations import host_samples as sample
from tests.support import builders as make

LABELS = {identifier: label for label, identifier in enumerate(sorted(sample.names()))}


def label_of(fields: dict[str, Any]) -> Any:
    return np.array([LABELS[each] for each in fields["labels"].tolist()], dtype=int)


def masks() -> Any:
    """Two overlapping rectangles in an image of 20 x 30."""
    found = np.zeros((2, 20, 30), bool)
    found[0, 2:9, 3:20] = found[1, :, 25:] = True
    return found


def mask_truth(folder: Path) -> Path:
    mask_utils = pytest.importorskip("pycocotools.mask")
    annotations = []
    for i, mask in enumerate(masks()):
        code = mask_utils.encode(np.asfortranarray(mask))
        code["counts"] = code["counts"].decode()
        box = mask_utils.toBbox(code).tolist()
        fields = {"id": i + 1, "bbox": box, "area": int(mask.sum()), "segmentation": code}
        annotations.append(make.annotation(**fields))
    image = make.image(width=30, height=20)
    tree = make.instances(images=[image], annotations=annotations)
    return make.write(folder / "masks.json", tree)


def test_masks_keep_every_pixel(tmp_path: Path) -> None:
    truth = mask_truth(tmp_path)
    rows = coco_rows.rows(1, [0.9, 0.8], [1, 1], "segm", masks())
    assert coco_rows.evaluate(truth, rows, "segm").metrics["AP"] == pytest.approx(1)


@pytest.mark.parametrize(
    "kind, shapes, scores, message",
    [
        ("bbox", [[0, 0, 1]], [0.5], r"bbox: shape \(1, 3\)"),
        ("bbox", [[0, 0, 1, 1]], [0.5, 0.5], "scores: 2 values for 1 of bbox"),
        ("bbox", [[0, 0, np.inf, 1]], [0.5], r"bbox\[0\]: not finite"),
        ("bbox", [[0, 0, 1, 1]], [np.nan], r"scores\[0\]: nan is not a finite number"),
        ("segm", np.zeros((1, 5)), [0.5], "segm: shape"),
        ("keypoints", np.zeros((1, 17, 2)), [0.5], "keypoints: shape"),
        ("bbox", [[0, 1], [0, 1, 2, 3]], [0.5], "bbox: not an array of numbers"),
        ("bbox", [[0, 0, 1, 1]], ["a"], "scores: not an array of numbers"),
        ("segm", [{"size": [5, 5]}], [0.5], "segm: no size or counts"),
    ],
)
def test_rows_that_are_refused(kind: str, shapes: Any, scores: Any, message: str) -> None:
    with pytest.raises(coco_rows.DataError, match=message):
        coco_rows.rows(7, scores, [1], kind, shapes)


def test_an_image_without_ground_truth_and_a_new_folder(tmp_path: Path) -> None:
    rows = coco_rows.rows(99999, [0.9], [1], "bbox", [[0, 0, 9, 9]])
    place = tmp_path / "new" / "rows.json"
    for file in (None, place):
        with pytest.raises(coco_rows.DataError, match=r"^image 99999: is not in .*\(give the gr"):
            coco_rows.evaluate(sample.TRUTH, rows, "bbox", file=file)
    assert json.loads(place.read_text()) == rows


# ---- mmengine


@pytest.mark.slow
def test_mmengine_evaluates_as_the_files() -> None:
    evaluator = pytest.importorskip("mmengine.evaluator", reason="needs detmap-eval[mmengine]")
    import torch

    import detmap.integrations.mmengine  # noqa: F401 - registers the metric

    config = {"type": "DetmapMetric", "ann_file": str(sample.TRUTH), "classwise": True}
    with pytest.raises(ValueError, match="DetmapMetric: protocol: no protocol 'foo'"):
        evaluator.Evaluator([{**config, "protocol": "foo"}])
    with pytest.raises(ValueError, match=r"ann_file: no file .*none\.json"):
        evaluator.Evaluator([{**config, "ann_file": "none.json"}])
    run = evaluator.Evaluator([config])
    run.dataset_meta = {"classes": tuple(sample.names().values())}
    samples = []
    for image, found in sample.predictions().items():
        boxes, scores = torch.tensor(found["boxes"]), torch.tensor(found["scores"])
        instances = {"bboxes": boxes, "scores": scores, "labels": torch.tensor(label_of(found))}
        samples.append({"img_id": image, "pred_instances": instances})
    run.process(data_samples=samples[:32])
    run.process(data_samples=samples[32:] + samples[-2:])  # a padded tail
    metrics = run.evaluate(len(samples))
    expected = sample.expected()
    assert metrics["coco/bbox_mAP"] == expected.metrics["AP"]
    assert metrics["coco/bbox_mAP_s"] == expected.metrics["APs"]
    assert metrics["coco/star_precision"] == expected.per_class[4]["AP"]
    found = {"bboxes": torch.tensor([[0.0, 0, 9, 9]]), "scores": torch.tensor([0.5])}
    found["labels"] = torch.tensor([99])
    with pytest.raises(ValueError, match="no class 99 of 6"):
        run.process(data_samples=[{"img_id": 3, "pred_instances": found}])


# ---- detectron2


@pytest.mark.slow
def test_detectron2_evaluates_as_the_files() -> None:
    evaluation = pytest.importorskip("detectron2.evaluation", reason="detectron2 is not installed")
    import torch
    from detectron2.structures import Boxes, Instances

    from detmap.integrations.detectron2 import DetmapEvaluator

    found = sample.predictions()

    def model(inputs: Any) -> Any:
        outputs = []
        for each in inputs:
            fields = found[each["image_id"]]
            instances = Instances(sample.sizes()[each["image_id"]])
            instances.pred_boxes = Boxes(torch.tensor(fields["boxes"], dtype=torch.float32))
            instances.scores = torch.tensor(fields["scores"])
            instances.pred_classes = torch.tensor(label_of(fields))
            outputs.append({"instances": instances})
        return outputs

    loader = [[{"image_id": image}] for image in found]
    network = torch.nn.Identity()
    network.forward = model
    results = evaluation.inference_on_dataset(network, loader, DetmapEvaluator(sample.TRUTH))
    expected = sample.expected()
    assert results["bbox"]["AP"] == 100 * expected.metrics["AP"]
    assert results["bbox"]["AP-star"] == 100 * expected.per_class[4]["AP"]
    with pytest.raises(ValueError, match="'cow' is not in"):
        DetmapEvaluator(sample.TRUTH, class_names=["cow"])


class Found(SimpleNamespace):
    """Instances of detectron2, as far as an evaluator reads them."""

    def to(self, device: str) -> Found:
        assert device == "cpu"
        return self


def outputs_of(image: int) -> Any:
    fields = sample.predictions()[image]
    boxes = SimpleNamespace(tensor=fields["boxes"])
    found = Found(pred_boxes=boxes, scores=fields["scores"], pred_classes=label_of(fields))
    return {"instances": found}


@pytest.fixture
def detectron2_ranks(monkeypatch: pytest.MonkeyPatch) -> Any:
    """`DetmapEvaluator` on two ranks of a run without detectron2 itself."""
    ranks = SimpleNamespace(rows=[], main=True)

    def gather(rows: Any, dst: int) -> Any:
        assert dst == 0
        ranks.rows.append(rows)
        return ranks.rows if ranks.main else []

    comm = SimpleNamespace(gather=gather, is_main_process=lambda: ranks.main)
    evaluation = SimpleNamespace(DatasetEvaluator=object)
    modules = {"detectron2": None, "detectron2.evaluation": evaluation}
    modules["detectron2.utils"] = SimpleNamespace(comm=comm)
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module or ModuleType(name))
    monkeypatch.delitem(sys.modules, "detmap.integrations.detectron2", raising=False)
    from detmap.integrations.detectron2 import DetmapEvaluator

    yield DetmapEvaluator, ranks
    sys.modules.pop("detmap.integrations.detectron2")


def test_detectron2_evaluates_the_images_of_all_ranks_once(detectron2_ranks: Any) -> None:
    evaluator, ranks = detectron2_ranks
    first, second = (evaluator(sample.TRUTH) for _ in range(2))
    images = [*sample.predictions()]
    for run, own in ((second, images[30:]), (first, images[:32])):  # two images on both
        run.process([{"image_id": 0}], [outputs_of(images[0])])
        run.reset()
        run.process([{"image_id": each} for each in own], [outputs_of(each) for each in own])
    ranks.main = False
    assert second.evaluate() is None
    assert second.results == {}
    ranks.main = True
    metrics, expected = first.evaluate()["bbox"], sample.expected()
    names = ("AP", "AP50", "AP75", "APs", "APm", "APl")
    wanted = {name: 100 * expected.metrics[name] for name in names}
    wanted |= {f"AP-{row['name']}": 100 * row["AP"] for row in expected.per_class}
    assert metrics == pytest.approx(wanted, abs=0, nan_ok=True)
    assert first.results["bbox"].signature == expected.signature
    with pytest.raises(ValueError, match="outputs: 1 for 2 inputs"):
        first.process([{"image_id": 1}, {"image_id": 2}], [outputs_of(images[0])])
    with pytest.raises(ValueError, match=r"tasks: 'bbox' \(give a tuple"):
        evaluator(sample.TRUTH, tasks="bbox")


# ---- torchvision


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::detmap.compat.PycocotoolsQuirk")
def test_the_evaluator_of_torchvision_gives_the_stats(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pycocotools", reason="needs detmap-eval[parity]")
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    from detmap.integrations.torchvision import CocoEvaluator

    truth = COCO(str(sample.TRUTH))
    run = CocoEvaluator(truth, ["bbox"])
    with pytest.raises(ValueError, match="there are no images"):
        run.accumulate()
    found = sample.predictions()
    half = dict(list(found.items())[:30])
    run.update(half)
    run.update({image: each for image, each in found.items() if image not in half})
    run.synchronize_between_processes()
    run.accumulate()
    run.summarize()
    theirs = COCOeval(truth, truth.loadRes(json.loads(sample.FOUND.read_text())), "bbox")
    theirs.evaluate()
    theirs.accumulate()
    theirs.summarize()
    assert np.array_equal(run.coco_eval["bbox"].stats, theirs.stats)
    ours, text = capsys.readouterr().out.split("IoU metric:")[0], " Average Precision  (AP)"
    assert ours.count(text) == 12
    with pytest.raises(ValueError, match=r"predictions\['x'\]: the image is not in coco_gt"):
        run.update({"x": half[1]})
    image = {"boxes": [[0, 0, 9, 9]], "labels": [1], "scores": [0.5]}
    for change, message in (
        ({"labels": [np.nan]}, r"image 1: labels\[0\]: nan is not a whole number"),
        ({"labels": [1.5]}, r"image 1: labels\[0\]: 1.5"),
        ({"labels": [1, 2]}, "image 1: labels: 2 values for 1 of bbox"),
    ):
        with pytest.raises(ValueError, match=message):
            run.update({1: {**image, **change}})
    for some in ({"boxes": [[0, 0, 9, 9]]}, None):
        with pytest.raises(ValueError, match="image 1: no 'labels'"):
            run.update({1: some})
    with pytest.raises(TypeError, match="give a list"):
        CocoEvaluator(truth, "bbox")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::detmap.compat.PycocotoolsQuirk")
@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
def test_the_evaluator_of_torchvision_beside_its_own(tmp_path: Path) -> None:
    host = pytest.importorskip("coco_eval", reason="not torchvision's references/detection")
    import torch
    from pycocotools.coco import COCO

    from detmap.integrations.torchvision import CocoEvaluator

    def stats(make: Any, truth: Any, kinds: list[str], batches: list[Any]) -> Any:
        run = make(truth, kinds)
        for batch in batches:
            run.update(batch)
        run.synchronize_between_processes()
        run.accumulate()
        run.summarize()
        return [run.coco_eval[kind].stats for kind in kinds]

    found = [
        (image, {key: torch.as_tensor(each[key]) for key in ("boxes", "scores", "labels")})
        for image, each in sample.predictions().items()
    ]
    batches = [dict(found[start : start + 8]) for start in range(0, len(found), 8)]
    drawn = torch.tensor(masks()[:, None]).float()
    fields = {"masks": drawn, "labels": torch.tensor([1, 1]), "scores": torch.tensor([0.9, 0.8])}
    fields["boxes"] = torch.tensor([[3.0, 2, 20, 9], [24, 0, 30, 20]])
    for truth, kinds, given in (
        (sample.TRUTH, ["bbox"], batches),
        (mask_truth(tmp_path), ["bbox", "segm"], [{1: fields}]),
    ):
        coco = COCO(str(truth))
        both = [stats(each, coco, kinds, given) for each in (host.CocoEvaluator, CocoEvaluator)]
        assert np.array_equal(*both)


@pytest.mark.filterwarnings("ignore::detmap.compat.PycocotoolsQuirk")
def test_masks_and_no_detections_in_the_evaluator_of_torchvision(tmp_path: Path) -> None:
    coco = pytest.importorskip("pycocotools.coco", reason="needs detmap-eval[parity]")
    from detmap.integrations.torchvision import CocoEvaluator

    truth = coco.COCO(str(mask_truth(tmp_path)))
    found = SimpleNamespace(masks=masks()[:, None].astype(np.float32), labels=[1, 1])
    fields = {"boxes": [[3, 2, 20, 9], [25, 0, 30, 20]], "scores": [0.9, 0.8], **vars(found)}
    empty = {"boxes": np.zeros((0, 4)), "scores": [], "labels": [], "masks": np.zeros((0, 1, 9, 9))}
    for each, expected in ((fields, 1), (empty, 0)):
        run = CocoEvaluator(truth, ["bbox", "segm"])
        run.update({1: each})
        run.accumulate()
        run.summarize()
        assert [run.coco_eval[kind].stats[0] for kind in ("bbox", "segm")] == [
            pytest.approx(expected)
        ] * 2
