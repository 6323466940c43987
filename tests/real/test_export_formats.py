"""Exports of annotation and data set tools and trainers: the AP that pycocotools gives for their
boxes. expected.json lists the files, options and numbers.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.real_data import data_files, data_path
from tests.support.running import run

FORMATS = (
    *("kitti", "tao-kitti", "deepstream-kitti", "dm-kitti", "fiftyone", "labelimg-createml"),
    *("roboflow-createml", "via-json", "supervisely", "vott-json", "hf-imagefolder", "hf-parquet"),
    *("ultralytics-to-json", "ultralytics-obb", "mmdet", "cvat-images", "cvat-yolo"),
    *("cvat-yolo-images", "cvat-ultralytics", "darknet-results-json", "keras-retinanet"),
    *("label-studio-coco", "label-studio-json", "label-studio-json-min", "label-studio-yolo"),
    *("labelimg-yolo", "labelme", "roboflow-coco", "roboflow-retinanet", "roboflow-tfcsv"),
    *("roboflow-voc", "roboflow-yolo"),
)


def cases() -> Iterator[Any]:
    for file in data_files("formats/expected.json"):
        formats = json.loads(file.read_text())["formats"]
        for name in FORMATS:
            for case in formats.get(name, ()):
                yield pytest.param(case, id=f"{name}-{case['case']}")


@pytest.mark.slow
@pytest.mark.parametrize("case", list(cases()))
def test_the_number_of_an_export(case: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    if "parquet" in case["truth"]:
        pytest.importorskip("pyarrow")
    monkeypatch.chdir(data_path("formats"))
    options = case.get("options", [])
    options = [*options, *([] if "-p" in options else ["-p", "coco-bbox"]), "--format", "json"]
    outcome = run("eval", Path(case["truth"]), Path(case["detections"]), *options)
    if "AP" not in case:
        assert outcome.code == 2
    elif case["truth"] == "hf-imagefolder/test" and "--class-names" not in options:
        assert outcome.code == 2, "its classes are numbers without names"
        assert "name them, --class-names FILE" in outcome.err
    else:
        metrics = json.loads(outcome.out)["metrics"]
        assert metrics["AP"] == pytest.approx(case["AP"], abs=2e-4)
        assert metrics["AP50"] == pytest.approx(case["AP50"], abs=2e-4)
