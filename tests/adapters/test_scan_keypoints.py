"""The fast reader of keypoints, which looks for the end of a list before it reads the numbers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.lanes import taken

SAME = {
    "mask": {"segmentation": {"size": [4, 5], "counts": [10, 10]}},
    "polygon mask": {"segmentation": [[1, 1, 3, 1, 3, 3]]},
    "keypoint": {"keypoints": [1, 2.5, 2, 0, 0, 0], "num_keypoints": 1},
}
"""Shapes that consecutive records share."""


@pytest.fixture(autouse=True)
def _small_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("detmap.adapters.coco.scan_json.LEAST_SIZE", 0)


@pytest.mark.parametrize("kind", SAME)
def test_consecutive_records_may_have_the_same_shape(kind: str, tmp_path: Path) -> None:
    shape, kind = SAME[kind], kind.rpartition(" ")[2]
    file = tmp_path / "file.json"
    records = [
        {"image_id": 1, "category_id": 1, "score": 0.5 + i / 100, **shape} for i in range(40)
    ]
    file.write_text(json.dumps(records))
    assert taken(f"{kind} results", file)
    annotations = [
        {"id": i + 1, "image_id": 1, "category_id": 1, "bbox": [1, 2, 3, 4], "area": i} | shape
        for i in range(40)
    ]
    groups = {"images": [{"id": 1, "height": 4, "width": 5}], "annotations": annotations}
    file.write_text(json.dumps(groups | {"categories": [{"id": 1, "name": "person"}]}))
    assert taken(f"{kind} instances", file)
