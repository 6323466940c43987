"""Exports of annotation tools and trainers, one folder a format, against pycocotools' AP on the
boxes that the files hold (`expected.json` of the data)."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.real_data import data_path
from tests.support.running import run

FORMATS = (
    "cvat-images",
    "cvat-yolo",
    "cvat-yolo-images",
    "cvat-ultralytics",
    "darknet-results-json",
    "keras-retinanet",
    "label-studio-coco",
    "label-studio-json",
    "label-studio-json-min",
    "label-studio-yolo",
    "labelimg-yolo",
    "labelme",
    "roboflow-coco",
    "roboflow-retinanet",
    "roboflow-tfcsv",
    "roboflow-voc",
    "roboflow-yolo",
)


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMATS)
def test_the_ap_of_an_export(name: str) -> None:
    folder = data_path("formats")
    wanted = json.loads((folder / "expected.json").read_text())
    for case in wanted["formats"][name]:
        assert ap(folder, case) == pytest.approx(case["AP"], abs=wanted["tolerance"]), case["case"]


def ap(folder: Path, case: dict[str, Any]) -> float:
    """AP by the command line, whose paths are those of the case."""
    options = [
        str(folder / word) if word.startswith("common/") else word for word in case["options"]
    ]
    options += [] if "-p" in options else ["-p", "coco-bbox"]
    paths = [str(folder / case[kind]) for kind in ("truth", "detections")]
    status, out, error = run("eval", *paths, *options, "--format", "json")
    assert status == 0, error
    return float(json.loads(out)["metrics"]["AP"])
