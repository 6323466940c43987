"""Exports of annotation tools that hold the same boxes give the same tables and the same number."""

from pathlib import Path

import pytest

import detmap
from detmap.core.adapters import registry
from detmap.core.tables import boxes_as
from tests.annotation_tools.refusals import refuses
from tests.support.format_samples import DETECTIONS, NAMES, OBJECTS, SAMPLES, TOOLS

LOOKS = {kind: (kind, "csv") for kind in ("roboflow", "cvat", "via", "vott")} | {
    "darknet": ("coco", "darknet"),
    "ultralytics-json": ("coco", "ultralytics-json"),
    "mmdet-preds": ("fiftyone", "mmdet-preds"),
}
"""The formats of ground truth and detections of samples with two."""


@pytest.mark.parametrize("name", SAMPLES)
def test_the_sample_of_each_format_has_these_boxes(name: str, tmp_path: Path) -> None:
    if "parquet" in name:
        pytest.importorskip("pyarrow")
    csv = SAMPLES["csv"](tmp_path / "csv")
    paths = SAMPLES[name](tmp_path / "sample")
    truth = detmap.read_truth(paths[0])
    found = detmap.read_detections(paths[1], truth)
    names = truth.categories.names
    stems = [stem.rpartition("-")[2] for stem in truth.images.stems]  # after Label Studio's hash
    assert names == NAMES
    assert stems[-1][0] == "c", "the image without objects"
    boxes = boxes_as(truth.boxes, truth.box_format, "xywh").tolist()
    rows = zip(truth.image.tolist(), truth.label.tolist(), boxes, strict=True)
    objects = [(stems[i][0], names[k], tuple(box)) for i, k, box in rows]
    assert objects == list(OBJECTS)
    assert (len(found), truth.area.tolist()) == (len(DETECTIONS), [128, 256, 512])
    wanted = detmap.evaluate(*csv, "coco-bbox").metrics
    assert detmap.evaluate(truth, found, "coco-bbox").metrics == pytest.approx(wanted, nan_ok=True)


@pytest.mark.parametrize("name", ["kitti", *TOOLS])
def test_each_format_is_detected(name: str, tmp_path: Path) -> None:
    truth, found = SAMPLES[name](tmp_path)
    row, _ = registry.choose_noted(registry.FORMATS, truth, lambda row: row.truth_looks)
    other, _ = registry.choose_noted(registry.FORMATS, found, lambda row: row.detections_look)
    assert (row.name, other.name) == LOOKS.get(name, (name, name))


@pytest.mark.parametrize("name", ["fiftyone", "createml", "supervisely", "huggingface"])
def test_a_truth_is_no_detections(name: str, tmp_path: Path) -> None:
    path = SAMPLES[name](tmp_path)[0]
    truth = detmap.read_truth(path)
    says = "no confidence (give the file of a detector"
    refuses(detmap.read_detections, path, truth, says=says, format=name)


@pytest.mark.parametrize(
    ("name", "says"),
    [(kind, "without scores") for kind in ("via", "vott")]
    + [
        (kind, f"detections expected, and this is truth in the format {kind.partition('-')[0]}")
        for kind in ("roboflow", "cvat", "labelstudio-min")
    ],
)
def test_formats_of_objects_alone(name: str, says: str, tmp_path: Path) -> None:
    path = SAMPLES[name](tmp_path)[0]
    refuses(detmap.read_detections, path, detmap.read_truth(path), says=says)


@pytest.mark.parametrize("name", ["ultralytics-json", "mmdet-preds", "darknet"])
def test_formats_of_detections_alone(name: str, tmp_path: Path) -> None:
    path = SAMPLES[name](tmp_path)[1]
    if name == "darknet":
        says = "truth expected, and this is detections in the format darknet"
        refuses(detmap.read_truth, path, says=says)
    else:
        refuses(detmap.read_truth, path, says="not a ground truth", format=name)
