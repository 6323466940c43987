"""Runs the pycocotools drop-in on tiny inputs."""

from contextlib import redirect_stdout
from io import StringIO

import numpy as np

from detmap import compat
from detmap.warmup import BOXES, CLASSES, IMAGES


def evaluate_like_pycocotools() -> None:
    """Runs the pycocotools drop-in."""
    rows = [
        {"id": i, "image_id": image, "category_id": label, "bbox": box, "area": 9, "iscrowd": 0}
        for i, (image, label, box) in enumerate(zip(IMAGES, CLASSES, BOXES, strict=True), 1)
    ]
    truth, detections = compat.COCO(), [{**row, "score": 0.5} for row in rows]
    truth.dataset = {
        "images": [{"id": 1, "width": 99, "height": 99}, {"id": 2, "width": 99, "height": 99}],
        "categories": [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}],
        "annotations": rows,
    }
    with redirect_stdout(StringIO()):
        truth.createIndex()
        for thresholds in (10, 17):
            run = compat.COCOeval(truth, truth.loadRes([dict(row) for row in detections]), "bbox")
            run.params.iouThrs = np.linspace(0.5, 0.9, thresholds)
            run.evaluate()
            run.accumulate()
            run.summarize()
            assert run.evalImgs
