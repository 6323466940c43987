"""Clients that read ``evalImgs`` gain too."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

from tests.compat.both import OFFICIAL, OURS, Classes, run

pytestmark = pytest.mark.slow
N_IMAGES, N_FOUND, N_CLASSES = 100, 147, 80


def dataset() -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Images with 7 objects and 147 detections each, half of these near an object."""
    rng = np.random.default_rng(0)
    annotations, results = [], []
    for image in range(N_IMAGES):
        boxes = np.column_stack([rng.uniform(0, 400, (7, 2)), rng.uniform(20, 150, (7, 2))])
        labels = rng.integers(0, N_CLASSES, 7)
        for box, label in zip(boxes.round(1).tolist(), labels.tolist(), strict=True):
            annotations.append(
                {"id": len(annotations) + 1, "image_id": image, "category_id": label, "bbox": box}
                | {"area": box[2] * box[3], "iscrowd": 0}
            )
        near = rng.integers(0, 7, N_FOUND)
        found = boxes[near] + rng.normal(0, 8, (N_FOUND, 4))
        found[:, 2:] = np.abs(found[:, 2:]) + 1
        other = rng.random(N_FOUND) < 0.1
        classes = np.where(other, rng.integers(0, N_CLASSES, N_FOUND), labels[near])
        for box, label, score in zip(
            found.tolist(), classes.tolist(), rng.random(N_FOUND).tolist(), strict=True
        ):
            results.append({"image_id": image, "category_id": label, "bbox": box, "score": score})
    images = [{"id": i, "width": 640, "height": 480} for i in range(N_IMAGES)]
    categories = [{"id": k, "name": str(k)} for k in range(N_CLASSES)]
    return {"images": images, "categories": categories, "annotations": annotations}, results


def seconds(classes: Classes) -> float:
    """Processor time of evaluate, evalImgs and accumulate, as torchvision's references go."""
    instances, results = dataset()
    truth = classes.coco()
    truth.dataset = instances
    truth.createIndex()
    made = classes.evaluation(truth, truth.loadRes(results), "bbox")
    begin = time.process_time()
    made.evaluate()
    cells = np.asarray(made.evalImgs, dtype=object).reshape(N_CLASSES, 4, N_IMAGES)
    made.evalImgs = list(cells.flatten())
    made.accumulate()
    return time.process_time() - begin


def test_reading_the_cells_takes_a_fifth_of_pycocotools_time() -> None:
    run(seconds, OURS)  # compiled by now
    ours = min(run(seconds, OURS).value for _ in range(3))
    theirs = min(run(seconds, OFFICIAL).value for _ in range(2))
    assert 5 * ours < theirs, f"{ours:.2f} s and {theirs:.2f} s"
