"""Exports that hold the same boxes give the same tables and the same number."""

from pathlib import Path

import pytest

import detmap
from detmap.core.adapters import registry
from detmap.errors import DataError
from tests.support import format_samples, format_samples_3

SAMPLES = format_samples_3.SAMPLES | format_samples_3.VARIANTS


@pytest.mark.parametrize("name", SAMPLES)
def test_the_sample_of_each_format_has_these_boxes(name: str, tmp_path: Path) -> None:
    if "parquet" in name:
        pytest.importorskip("pyarrow")
    paths = SAMPLES[name](tmp_path / name)
    (tmp_path / "csv").mkdir()
    csv = tmp_path / "csv" / "objects.csv", tmp_path / "csv" / "found.csv"
    assert format_samples.csv_files(tmp_path / "csv") == csv
    truth = detmap.read_truth(paths[0] or csv[0])
    ids = truth.categories if name == "rotated-predictions" else None  # the CSV has names alone
    found = detmap.read_detections(paths[1] or csv[1], truth, class_names=ids)
    names, stems = truth.categories.names, truth.images.stems
    assert (names, stems) == (format_samples.NAMES, format_samples.STEMS)
    rows = zip(truth.image.tolist(), truth.label.tolist(), truth.boxes.tolist(), strict=True)
    objects = [(stems[i], names[k], tuple(box)) for i, k, box in rows]
    assert objects == list(format_samples.OBJECTS)
    assert truth.area.tolist() == [128, 256, 512]
    wanted = detmap.evaluate(*csv, "coco-bbox").metrics
    assert detmap.evaluate(truth, found, "coco-bbox").metrics == pytest.approx(wanted, nan_ok=True)


@pytest.mark.parametrize("name", format_samples_3.SAMPLES)
def test_each_format_is_detected(name: str, tmp_path: Path) -> None:
    truth, found = SAMPLES[name](tmp_path)
    rows = registry.FORMATS
    if truth is not None and name != "mmdet-preds":
        assert registry.choose(rows, truth, lambda row: row.truth_looks).name == name
    if found is not None and found.suffix != ".csv":
        assert registry.choose(rows, found, lambda row: row.detections_look).name == name


@pytest.mark.parametrize("name", ["fiftyone", "createml", "supervisely", "huggingface"])
def test_a_truth_is_no_detections(name: str, tmp_path: Path) -> None:
    path = SAMPLES[name](tmp_path)[0]
    assert path is not None
    with pytest.raises(DataError, match=r"no confidence \(give the file of a detector"):
        detmap.read_detections(path, detmap.read_truth(path), format=name)


@pytest.mark.parametrize("name", ["via", "vott"])
def test_formats_of_objects_alone(name: str, tmp_path: Path) -> None:
    path = SAMPLES[name](tmp_path)[0]
    assert path is not None
    truth = detmap.read_truth(path)
    with pytest.raises(DataError, match="without scores"):
        detmap.read_detections(path, truth)


@pytest.mark.parametrize("name", ["ultralytics-json", "mmdet-preds"])
def test_formats_of_detections_alone(name: str, tmp_path: Path) -> None:
    path = SAMPLES[name](tmp_path)[1]
    assert path is not None
    with pytest.raises(DataError, match="not a ground truth"):
        detmap.read_truth(path, format=name)
