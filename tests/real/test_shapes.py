"""Masks and keypoints of COCO: the numbers that pycocotools gave."""

import json
from pathlib import Path

import pytest

import detmap
from detmap.core.curves.scores import coco_arrays

pytestmark = pytest.mark.slow

FILES = {"segm": ("segm", "coco-segm"), "keypoints": ("kp", "coco-keypoints")}


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize("seed", ["1", "2"])
def test_masks_and_keypoints_give_the_goldens(data: Path, kind: str, seed: str) -> None:
    folder = data / "benchmarks" / "coco-segm-keypoints"
    golden = json.loads((folder / "goldens_public.json").read_text())["cases"][seed][kind]
    stem, protocol = FILES[kind]
    files = (folder / seed / f"{stem}_{name}.json" for name in ("truth", "dets"))
    result = detmap.evaluate(*files, protocol)
    assert list(result.metrics.values()) == golden["stats"]
    arrays = coco_arrays(result.matches)
    defined = arrays["precision"] > -1
    assert int(defined.sum()) == golden["precision_cells"]
    assert arrays["precision"][defined].sum() == pytest.approx(golden["precision_sum"], rel=1e-12)
