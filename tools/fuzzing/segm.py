"""Every array and stat of segm equal (==) to pycocotools' on drawn data."""

import numpy as np

from tests.support.drawing_shapes import draw_segm
from tests.support.shapes import difference


def case(seed: int) -> str | None:
    """What differs on one data set."""
    return difference(draw_segm(np.random.default_rng(seed)), "segm")
