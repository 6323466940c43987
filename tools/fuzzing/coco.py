"""Drawn COCO data, of boxes, masks and keypoints: every array and every stat equal (==) to
pycocotools'.
"""

import math

import numpy as np

import detmap
from detmap.core.curves import scores as curves
from tests.reference import official
from tests.support.drawing import draw_coco, draw_many_detections, draw_round_recall
from tests.support.drawing_shapes import draw_keypoints, draw_segm
from tests.support.drawn_tables import read_coco
from tests.support.shapes import difference

SHAPES = {"segm": draw_segm, "keypoints": draw_keypoints}
KINDS = {2: "segm", 3: "keypoints"}  # of every 5 seeds; else boxes
DRAWS = {0: draw_many_detections, 1: draw_round_recall}  # of every 50 seeds; else draw_coco


def case(seed: int) -> str | None:
    """What differs from pycocotools on one drawn data set."""
    kind = KINDS.get(seed % 5)
    if kind is not None:
        return difference(SHAPES[kind](np.random.default_rng(seed)), kind)
    data = DRAWS.get(seed % 50, draw_coco)(np.random.default_rng(seed))
    result = detmap.evaluate(*read_coco(*data), threads=1)
    expected = official.run(*data)
    for name, found in curves.coco_arrays(result.matches).items():
        if not np.array_equal(found, expected.eval[name]):
            return f"{name}: {int((found != expected.eval[name]).sum())} cells"
    stats = [-1.0 if math.isnan(value) else value for value in result.metrics.values()]
    if stats != expected.stats.tolist():
        return f"stats {stats} and {expected.stats.tolist()}"
    return None
