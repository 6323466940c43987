"""The recipes of docs/recipes.md with converters of other projects, where they are installed."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

import detmap
from tests.support import builders as make
from tests.support.format_samples import OBJECTS, SAMPLES, STEMS, pictures

COUNTS = (len(STEMS), len(OBJECTS))


def counts(truth: detmap.Truth) -> tuple[int, int]:
    return len(truth.images), len(truth)


def manifest(folder: Path) -> Path:
    """A manifest of SageMaker with the sample's boxes."""
    lines = []
    for stem in STEMS:
        sides = ("left", "top", "width", "height")
        boxes = [
            {"class_id": int(name == "dog")} | dict(zip(sides, box, strict=True))
            for own, name, box in OBJECTS
            if own == stem
        ]
        size = [{"width": 64, "height": 32, "depth": 3}]
        more = {"class-map": {"0": "cat", "1": "dog"}, "type": "groundtruth/object-detection"}
        more |= {"objects": [{"confidence": 1}] * len(boxes), "human-annotated": "yes"}
        more |= {"creation-date": "2026-01-02T03:04:05", "job-name": "labeling-job/boxes"}
        row = {"source-ref": f"s3://b/{stem}.png", "boxes": {"image_size": size}}
        row["boxes"]["annotations"] = boxes  # type: ignore[index]
        lines.append(json.dumps(row | {"boxes-metadata": more}))
    return make.write(folder / "output.manifest", "\n".join(lines) + "\n")


@pytest.mark.slow
def test_panlabel_keeps_the_counts_of_a_manifest(tmp_path: Path) -> None:
    program = shutil.which("panlabel")
    if program is None:
        pytest.skip("panlabel is not installed")
    out = tmp_path / "instances.json"
    words = [program, "convert", "--from", "sagemaker", "--to", "coco", "--allow-lossy"]
    words += ["-i", str(manifest(tmp_path)), "-o", str(out)]
    subprocess.run(words, check=True, capture_output=True)
    assert counts(detmap.read_truth(out)) == COUNTS


@pytest.mark.slow
def test_datumaro_keeps_the_counts(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datumaro.components.dataset")
    SAMPLES["coco"](tmp_path / "in")
    (tmp_path / "in" / "annotations").mkdir()
    (tmp_path / "in" / "results.json").unlink()
    pictures(tmp_path / "in" / "images")
    (tmp_path / "in" / "instances.json").rename(tmp_path / "in/annotations/instances_a.json")
    data = datasets.Dataset.import_from(str(tmp_path / "in"), "coco_instances")
    data.export(str(tmp_path / "native"), "datumaro", save_media=True)
    again = datasets.Dataset.import_from(str(tmp_path / "native"), "datumaro")
    again.export(str(tmp_path / "out"), "coco_instances")
    (file,) = (tmp_path / "out").rglob("*.json")
    assert counts(detmap.read_truth(file)) == COUNTS


@pytest.mark.slow
def test_supervision_keeps_the_counts(tmp_path: Path) -> None:
    supervision = pytest.importorskip("supervision")
    SAMPLES["yolo"](tmp_path)
    data = supervision.DetectionDataset.from_yolo(
        images_directory_path=str(tmp_path / "images" / "val"),
        annotations_directory_path=str(tmp_path / "labels" / "val"),
        data_yaml_path=str(tmp_path / "data.yaml"),
    )
    data.as_coco(annotations_path=str(tmp_path / "instances.json"))
    assert counts(detmap.read_truth(tmp_path / "instances.json")) == COUNTS


@pytest.mark.slow
def test_fiftyone_keeps_the_counts(tmp_path: Path) -> None:
    fiftyone = pytest.importorskip("fiftyone")
    SAMPLES["coco"](tmp_path)
    data = fiftyone.Dataset.from_dir(
        dataset_type=fiftyone.types.COCODetectionDataset,
        data_path=str(pictures(tmp_path / "images")),
        labels_path=str(tmp_path / "instances.json"),
        label_field="ground_truth",
        include_id=True,
    )
    data.export(
        labels_path=str(tmp_path / "out.json"),
        dataset_type=fiftyone.types.COCODetectionDataset,
        label_field="ground_truth",
    )
    assert counts(detmap.read_truth(tmp_path / "out.json")) == COUNTS
