"""Every array and stat of keypoints equal (==) to pycocotools' on drawn data."""

import numpy as np

from tests.support.drawing_shapes import draw_keypoints
from tests.support.shapes import difference


def case(seed: int) -> str | None:
    """What differs on one data set."""
    return difference(draw_keypoints(np.random.default_rng(seed)), "keypoints")
