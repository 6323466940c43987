"""Exports of annotation tools that hold the same boxes give the same tables and the same number."""

from __future__ import annotations

from pathlib import Path

import pytest

import detmap
from detmap.adapters import registry
from tests.support import format_samples, format_samples_2

SAMPLES = format_samples_2.SAMPLES | format_samples_2.VARIANTS


@pytest.mark.parametrize("name", SAMPLES)
def test_the_sample_of_each_format_has_these_boxes(name: str, tmp_path: Path) -> None:
    paths = SAMPLES[name](tmp_path / name)
    (tmp_path / "csv").mkdir()
    csv = format_samples.csv_files(tmp_path / "csv")
    truth = detmap.read_truth(paths[0] or csv[0])
    found = detmap.read_detections(paths[1] or csv[1], truth)
    names, stems = truth.categories.names, truth.images.stems
    assert names == format_samples.NAMES
    assert stems[-1][0] == "c", "the image without objects"
    rows = zip(truth.image.tolist(), truth.label.tolist(), truth.boxes.tolist(), strict=True)
    objects = [(stems[i][0], names[k], tuple(box)) for i, k, box in rows]
    assert objects == list(format_samples.OBJECTS)
    assert len(found) == len(format_samples.DETECTIONS)
    assert truth.area.tolist() == [128, 256, 512]
    wanted = detmap.evaluate(*csv, "coco-bbox").metrics["AP"]
    assert detmap.evaluate(truth, found, "coco-bbox").metrics["AP"] == pytest.approx(wanted)


@pytest.mark.parametrize("name", format_samples_2.SAMPLES)
def test_each_format_is_detected(name: str, tmp_path: Path) -> None:
    for kind, path in enumerate(SAMPLES[name](tmp_path)):
        looks = ("truth_looks", "detections_look")[kind]
        if path is not None and not (name == "darknet" and kind == 0):
            row = registry.choose(
                registry.FORMATS, path, lambda row, looks=looks: getattr(row, looks)
            )
            assert row.name == name
