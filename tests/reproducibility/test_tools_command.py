"""`detmap tools`: what each named tool gives for the same files."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import detmap
from detmap.core import protocol
from detmap.core.base.resources import folder
from detmap.reproducibility.parity import restated_tools
from tests.support.builders import write
from tests.support.drawing_rules import PROTOCOLS, draw_data
from tests.support.running import run

SAMPLE = folder("datasets") / "shapes"
FILES = (SAMPLE, SAMPLE / "detections" / "contours")


@pytest.mark.slow
def test_a_row_a_tool_and_its_distance() -> None:
    lines = run("tools", *FILES, "-p", "voc2012").out.splitlines()
    names = [line.split()[0] for line in lines[2:-2]]
    assert names == ["voc2012", *protocol.tools()]
    assert lines[-1].startswith("voc2012.")


NAMED = """
pycocotools ultralytics-8.3 ultralytics-8.4 yolov5 torchmetrics mmdet-voc07 mmdet-voc12
mmdet-coco mmeval-07 mmeval-12 detectron2-voc07 detectron2-voc12 py-faster-rcnn-07 py-faster-rcnn-12
voc-devkit-07 voc-devkit-12 chainercv-07 chainercv-12 gluoncv-07 gluoncv-12 rafaelpadilla-odm-11
rafaelpadilla-odm-area rafaelpadilla-review-11 rafaelpadilla-review-area rafaelpadilla-review-coco
cartucho supervision fiftyone tfod-pascal tfod-weighted tfod-oidv2 tfod-oidchallenge darknet-0
darknet-11 darknet-101 tide keras-retinanet ssd-pytorch-07 ssd-pytorch-12 globox od-metrics bes-dev
podm-11 podm-area supervision-0.30.7 supervision-0.31.0 supervision-0.31.1
"""
"""Tools that people know by these names: none is ever renamed."""


def test_every_named_tool_is_a_protocol() -> None:
    assert set(NAMED.split()) <= set(protocol.tools())


def test_versions_of_supervision() -> None:
    """What changed between its releases; the name without a version is the newest."""
    names = ("supervision", *(f"supervision-0.{each}" for each in ("31.1", "31.0", "30.7")))
    rules = [
        (rule.boxes.form, rule.ap.epsilon, rule.boxes.precision, rule.ap.stored)
        for rule in map(detmap.load_protocol, names)
    ]
    single, newest = float(np.finfo(np.float32).eps), ("edges", float(np.spacing(1)))
    both = ("float32", "float32")
    old = [("sides", epsilon, *both) for epsilon in (newest[1], single)]
    assert rules == [(*newest, *both), (*newest, *both), *old]
    truth = detmap.truth_from_arrays([1], [1], [[0, 0, 9, 9]], categories={1: "a"})
    found = detmap.detections_from_arrays(truth, [1], [1], [[0, 0, 9, 9]], [0.5])
    perfect = [
        detmap.evaluate(truth, found, name).metrics["mAP"]
        for name in ("supervision", "supervision-0.30.7")
    ]
    assert perfect == [1, float(np.float32(1 / (1 + single)))]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ultralytics-8.4", "tide", "torchmetrics"])
def test_the_number_is_the_headline_of_its_protocol(name: str) -> None:
    content = json.loads(run("tools", *FILES, "--only", name, "--format", "json").out)
    row = content["tools"][1]
    result = json.loads(run("eval", *FILES, "-p", name, "--format", "json").out)
    metric, value = next(iter(result["metrics"].items()))
    assert (row["tool"], row["metric"], row["value"]) == (name, metric, value)
    iou = {"ultralytics-8.4": "0.50", "tide": "0.50", "torchmetrics": "0.50:0.95"}[name]
    assert row["IoU"] == iou
    same = value - content["tools"][0]["value"] if iou == "0.50" else None
    assert row["difference"] == same  # the sample's protocol has nothing over 0.50:0.95


def test_differences_are_of_the_same_quantity() -> None:
    """AP over 0.50:0.95 was taken off AP at 0.5."""
    files = (SAMPLE / "instances_test.json", SAMPLE / "detections" / "contours.json")
    only = "torchmetrics,yolov5,darknet-25"
    rows = json.loads(run("tools", *files, "--only", only, "--format", "json").out)["tools"]
    stock, mean, yolo, darknet = rows
    result = json.loads(run("eval", *files, "--format", "json").out)["metrics"]
    assert [row["IoU"] for row in rows] == ["0.50:0.95", "0.50:0.95", "0.50", "0.50"]
    assert (stock["value"], stock["difference"]) == (result["AP"], 0)
    assert mean["difference"] == mean["value"] - result["AP"]
    assert yolo["difference"] == yolo["value"] - result["AP50"]
    assert (darknet["metric"], darknet["difference"]) == ("F1", None)


def test_no_number_has_its_reason() -> None:
    truth = detmap.truth_from_arrays([1], [1], [[0, 0, 9, 9]], categories={1: "a", 2: "b"})
    found = detmap.detections_from_arrays(truth, [1, 1], [1, 2], [[0, 0, 9, 9]] * 2, [0.5, 0.4])
    stock = detmap.load_protocol("voc2012")
    (row,) = restated_tools.numbers(truth, found, stock, ["voc-devkit-12"])
    assert row.remark == "undefined"
    assert "the mean undefined if it has detections" in str(row.notes[0])
    with pytest.raises(detmap.DataError, match=r"voc-devkit-12 has no number .* undefined"):
        detmap.explain(truth, found, "voc2012", "voc-devkit-12")


@pytest.mark.parametrize(
    ("side", "cause", "fix"),
    [
        (1e20, "an infinite area in float32, so the IoU is inf/inf", "sides below 1e18"),
        (1e-25, "areas of 0 in float32, so the IoU is 0/0", "sides above 1e-18"),
    ],
)
@pytest.mark.filterwarnings("error")
def test_an_area_beyond_a_tools_type_gives_no_number(side: float, cause: str, fix: str) -> None:
    boxes = [[0, 0, side, side], [0, 0, 50, 50]]
    truth = detmap.truth_from_arrays([1, 1], [1, 1], boxes)
    size = {"width": np.array([640.0]), "height": np.array([480.0])}
    truth = replace(truth, images=replace(truth.images, **size))
    found = detmap.detections_from_arrays(truth, [1, 1], [1, 1], boxes, [0.9, 0.8])
    stock = detmap.load_protocol("coco-bbox")
    rows = restated_tools.numbers(truth, found, stock, ["darknet-0", "pycocotools"])
    assert [row.remark for row in rows] == ["undefined", ""]
    assert math.isnan(rows[0].value)
    assert rows[1].value == pytest.approx(1.0)
    assert cause in str(rows[0].notes[0])
    assert fix in str(rows[0].notes[0])
    with pytest.raises(detmap.DataError, match=r"row 0: .* in float32"):
        detmap.evaluate(truth, found, "darknet-0")


def test_an_unknown_tool_is_refused() -> None:
    found = run("tools", *FILES, "--only", "yolov6")
    assert found.code == 2
    assert "did you mean 'yolov5" in found.err


def test_ties_are_told_in_a_note() -> None:
    truth = detmap.truth_from_arrays([1], [1], [[0, 0, 9, 9]])
    twice = [[0, 0, 9, 9]] * 2
    found = detmap.detections_from_arrays(truth, [1, 1], [1, 1], twice, [0.5, 0.5])
    stock = detmap.load_protocol("voc2012")
    rows = restated_tools.numbers(truth, found, stock, ["py-faster-rcnn-12", "pycocotools"])
    assert [row.remark for row in rows] == ["ties", ""]


def test_what_is_no_table_is_refused() -> None:
    with pytest.raises(detmap.DataError, match="tables are required"):
        restated_tools.numbers("truth", "found", detmap.load_protocol("voc2012"))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", protocol.tools())
def test_show_prints_the_rule_of_a_tool(name: str) -> None:
    assert f'name = "{name}"' in run("show", name).out


@pytest.mark.parametrize("kind", ["masks", "keypoints"])
def test_a_tool_of_boxes_has_no_number_of_shapes(kind: str, tmp_path: Path) -> None:
    contents = draw_data(np.random.default_rng(2), kind)
    files = [write(tmp_path / f"{k}.json", content) for k, content in enumerate(contents)]
    protocol = PROTOCOLS[kind]
    only = "pycocotools,yolov5,tide"
    done = run("tools", *files, "-p", protocol, "--only", only, "--format", "json")
    table = json.loads(done.out)["tools"]
    stock, *rows = (row if isinstance(row, list) else list(row.values()) for row in table)
    assert stock[0] == protocol
    assert rows[0][:4] == ["pycocotools", *stock[1:4]]
    assert [row[3] for row in rows[1:]] == [None, None]
    assert [row[-1] for row in rows[1:]] == ["boxes", "boxes"]


def test_tools_are_sorted_by_distance_from_a_number() -> None:
    only = ("--only", "voc-devkit-12,voc-devkit-07,pycocotools", "--format", "json")
    content = json.loads(run("tools", *FILES, *only, "--near", "60.1").out)
    rows = content["tools"]
    names = " ".join(row["tool"] for row in rows)
    assert names == "voc-devkit-07 voc2012 voc-devkit-12 pycocotools"
    assert rows[0]["difference"] == pytest.approx(rows[0]["value"] - 0.601, abs=1e-15)
    refused = run("tools", *FILES, "--near", "near")
    assert (refused.code, "--near" in refused.err) == (2, True)
