"""Runs the kernels of the benchmarks' own rules on tiny inputs."""

from dataclasses import replace

import numpy as np

from detmap.core.adapters.in_memory.arrays import detections_from_arrays, truth_from_arrays
from detmap.evaluate import evaluate
from detmap.warmup import BOXES, CLASSES, IMAGES


def evaluate_next_to_no_cars() -> None:
    """Evaluates boxes by KITTI's rule."""
    boxes = np.array(BOXES) * 10  # large enough for each level
    truth = truth_from_arrays(IMAGES, CLASSES, boxes)
    detections = detections_from_arrays(truth, IMAGES, CLASSES, boxes, [0.9, 0.8, 0.7])
    columns = {name: np.zeros(len(boxes)) for name in ("occluded", "truncated", "alpha")}
    truth = replace(truth, attributes={**truth.attributes, **columns})
    detections = replace(detections, attributes={"alpha": np.zeros(len(boxes))})
    car = {"iou.classes": dict.fromkeys(truth.categories.names, 0.5)}
    evaluate(truth, detections, "kitti", settings=car)
