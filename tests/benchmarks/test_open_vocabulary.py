"""OV-COCO: base and novel classes, and SAM 3's positive split."""

import json
from pathlib import Path

import numpy as np
import pytest

import detmap
from tests.benchmarks import goldens

GROUPS = {"base_ap": "AP-base", "novel_ap": "AP-novel", "base_ap50": "AP50-base",
          "novel_ap50": "AP50-novel", "all ap50": "AP50", "all ap": "AP"}  # fmt: skip


@pytest.mark.parametrize("case", goldens.CASES)
def test_goldens(case: str) -> None:
    place, known = goldens.folder("ov-coco") / case, goldens.of_case("ov-coco", case)
    paths = place / "truth.json", place / "dets.json"
    result = detmap.evaluate(*paths, "ov-coco")
    for golden, name in GROUPS.items():
        value = known["mmdet OVCocoMetric"][golden]
        assert abs(result.metrics[name] - value) <= goldens.WITHIN
    assert "group-partial" in {note.code for note in result.notes}  # the case has 13 classes
    for key, unlisted in (("all", "judge"), ("positive split", "positive")):
        settings = {"scope.unlisted": unlisted}
        metrics = detmap.evaluate(*paths, "coco-bbox", settings=settings).metrics
        for name, value in known["SAM 3 99d02f2 coco_eval_offline.py"][key].items():
            assert abs(metrics[name] - value) <= goldens.WITHIN


@pytest.mark.slow
def test_the_limit_of_mmdetection_is_a_setting(tmp_path: Path) -> None:
    """OVCocoMetric sets maxDets to 100, 300 and 1,000; all but the mean AP are of the last."""
    coco = pytest.importorskip("pycocotools.coco")
    cocoeval = pytest.importorskip("pycocotools.cocoeval")
    rng = np.random.default_rng(5)
    names = ("person", "cup")  # a base and a novel class
    boxes = np.concatenate([rng.integers(0, 900, (160, 2)), np.full((160, 2), 40)], axis=1)
    rows = [
        {"image_id": 1, "category_id": 1 + i % 2, "bbox": box}
        for i, box in enumerate(np.repeat(boxes, 2, axis=0).tolist())
    ]
    truth = {
        "images": [{"id": 1, "width": 1000, "height": 1000}],
        "categories": [{"id": k, "name": name} for k, name in enumerate(names, start=1)],
        "annotations": [
            {**row, "id": i, "area": 1600, "iscrowd": 0} for i, row in enumerate(rows, start=1)
        ],
    }
    scores = rng.permutation(len(rows)) / len(rows)
    found = [{**row, "score": float(s)} for row, s in zip(rows, scores, strict=True)]
    paths = tmp_path / "truth.json", tmp_path / "found.json"
    for path, tree in zip(paths, (truth, found), strict=True):
        path.write_text(json.dumps(tree))
    index = coco.COCO(str(paths[0]))
    reference = cocoeval.COCOeval(index, index.loadRes(str(paths[1])), "bbox")
    reference.params.maxDets = [100, 300, 1000]
    reference.evaluate()
    reference.accumulate()
    reference.summarize()
    precision = reference.eval["precision"]
    wanted = {"AP50-base": precision[0, :, 0, 0, -1].mean(), "AP50": reference.stats[1]}
    wanted |= {"AP50-novel": precision[0, :, 1, 0, -1].mean(), "AP75": reference.stats[2]}
    wanted |= {"AP-base": precision[:, :, 0, 0, -1].mean()}
    many = detmap.evaluate(*paths, "ov-coco", settings={"limits.max_dets": [1000]}).metrics
    few = detmap.evaluate(*paths, "ov-coco").metrics
    assert {name: many[name] for name in wanted} == pytest.approx(wanted, abs=1e-12)
    assert few["AP"] == pytest.approx(reference.stats[0], abs=1e-12)
    assert few["AP50-novel"] < many["AP50-novel"]


def tables() -> tuple[detmap.Truth, detmap.Detections]:
    """Cats on both images, dogs detected on one without a dog; birds nowhere."""
    box = [0.0, 0.0, 10.0, 10.0]
    truth = detmap.truth_from_arrays(
        [1, 2], [1, 1], [box, box], images=[1, 2], categories={1: "cat", 2: "dog", 3: "bird"}
    )
    return truth, detmap.detections_from_arrays(
        truth, [1, 2, 1], [1, 1, 2], [box, box, box], [0.9, 0.8, 0.7]
    )


def test_selected_classes_reduce_the_groups() -> None:
    groups = {"seen": ["cat", "bird"], "new": ["dog"]}
    settings = {"metrics": ["AP", "AP@group"], "groups": groups}
    result = detmap.evaluate(*tables(), "coco-bbox", settings=settings, classes=["cat"])
    assert result.metrics == {"AP": 1.0, "AP-seen": 1.0}
    assert [n.count for n in result.notes if n.code == "groups-part"] == [2]
