"""Exports of annotation tools that hold the same boxes give the same tables and the same number."""

from pathlib import Path

import pytest

import detmap
from detmap.core.adapters import registry
from tests.annotation_tools.refusals import refuses
from tests.support import format_samples, format_samples_2

SAMPLES = format_samples_2.SAMPLES | format_samples_2.VARIANTS


@pytest.mark.parametrize("name", SAMPLES)
def test_the_sample_of_each_format_has_these_boxes(name: str, tmp_path: Path) -> None:
    truth_path, found_path = SAMPLES[name](tmp_path)
    assert truth_path is not None
    assert found_path is not None
    truth = detmap.read_truth(truth_path)
    found = detmap.read_detections(found_path, truth)
    names, stems = truth.categories.names, truth.images.stems
    assert names == format_samples.NAMES
    assert stems[-1][0] == "c", "the image without objects"
    rows = zip(truth.image.tolist(), truth.label.tolist(), truth.boxes.tolist(), strict=True)
    objects = [(stems[i][0], names[k], tuple(box)) for i, k, box in rows]
    assert objects == list(format_samples.OBJECTS)
    assert (len(found), truth.area.tolist()) == (len(format_samples.DETECTIONS), [128, 256, 512])
    (tmp_path / "plain").mkdir()
    wanted = detmap.evaluate(*format_samples.csv_files(tmp_path / "plain"), "coco-bbox").metrics
    assert detmap.evaluate(truth, found, "coco-bbox").metrics["AP"] == pytest.approx(wanted["AP"])


@pytest.mark.parametrize("name", format_samples_2.SAMPLES)
def test_each_format_is_detected(name: str, tmp_path: Path) -> None:
    truth, found = format_samples_2.SAMPLES[name](tmp_path)
    assert truth is not None
    assert found is not None
    row = registry.choose(registry.FORMATS, truth, lambda row: row.truth_looks)
    assert row.name == ("coco" if name == "darknet" else name)
    row = registry.choose(registry.FORMATS, found, lambda row: row.detections_look)
    assert row.name == ("csv" if name in ("roboflow", "cvat") else name)


@pytest.mark.parametrize("name", ["roboflow", "cvat", "labelstudio-min", "darknet"])
def test_a_file_in_the_place_of_the_other(name: str, tmp_path: Path) -> None:
    paths = SAMPLES[name](tmp_path)
    assert paths[0] is not None
    assert paths[1] is not None
    truth = detmap.read_truth(paths[0])
    row = name.partition("-")[0]
    if name == "darknet":
        says = f"truth expected, and this is detections in the format {row}"
        refuses(detmap.read_truth, paths[1], says=says)
    else:
        says = f"detections expected, and this is truth in the format {row} (give detections, or"
        refuses(detmap.read_detections, paths[0], truth, says=says)
