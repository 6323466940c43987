"""Files without detections, without objects and of a perfect detector, whole and in parts."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import detmap
from detmap.integrations.inputs import coco_rows

SQUARE = [10.0, 10, 30, 10, 30, 30, 10, 30]
POINTS = [20.0, 20, 2] * 17
KINDS = {
    "coco-bbox": {"bbox": [10.0, 10, 20, 20]},
    "coco-segm": {"bbox": [10.0, 10, 20, 20], "segmentation": [SQUARE]},
    "coco-keypoints": {"bbox": [10.0, 10, 20, 20], "keypoints": POINTS, "num_keypoints": 17},
    "scoreless": {"bbox": [10.0, 10, 20, 20]},
}


def write(folder: Path, shape: dict[str, Any], objects: bool, found: bool) -> tuple[Path, Path]:
    own = {"image_id": 1, "category_id": 1, **shape}
    tree = {
        "images": [{"id": 1, "width": 60, "height": 60}],
        "categories": [{"id": 1, "name": "person"}],
        "annotations": [own | {"id": 1, "area": 400, "iscrowd": 0}] if objects else [],
    }
    paths = folder / "truth.json", folder / "dets.json"
    paths[0].write_text(json.dumps(tree))
    paths[1].write_text(json.dumps([own | {"score": 1.0}] if found else []))
    return paths


@pytest.mark.parametrize("objects", [True, False])
@pytest.mark.parametrize("found", [True, False])
@pytest.mark.parametrize("name", KINDS)
def test_an_empty_file_has_a_number_whole_and_in_parts(
    tmp_path: Path, name: str, objects: bool, found: bool
) -> None:
    paths = write(tmp_path, KINDS[name], objects, found)
    metrics = detmap.evaluate(*paths, name).metrics
    main = next(iter(metrics.values()))
    if objects:
        assert main == pytest.approx(float(found))
    elif name != "scoreless":
        assert np.isnan(main)
    try:
        parts = detmap.evaluate(*paths, name, memory="4GB").metrics
    except detmap.DetmapError as error:
        assert name in str(error) or "memory" in str(error), error  # noqa: PT017
        return
    np.testing.assert_equal(parts, metrics)


@pytest.mark.parametrize("kind", ["bbox", "segm", "keypoints"])
def test_a_host_without_detections(tmp_path: Path, kind: str) -> None:
    truth, _ = write(tmp_path, KINDS[f"coco-{kind}"], True, False)
    shapes = {"bbox": (0, 4), "segm": (0, 60, 60), "keypoints": (0, 17, 3)}
    for empty in (np.zeros(shapes[kind]), np.zeros((0,)), []):
        rows = coco_rows.rows(1, np.zeros(0), [], kind, empty)
        assert coco_rows.evaluate(truth, rows, kind).metrics["AP"] == 0
