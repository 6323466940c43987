"""Drawn LVIS data: every array and every number equal (==) to lvis-api's."""

import math

import numpy as np

import detmap
from detmap.core.curves import scores as curves
from tests.reference import lvis_official as official
from tests.support.drawing import draw_lvis
from tests.support.drawn_tables import read_coco


def case(seed: int) -> str | None:
    """What differs from lvis-api on one drawn data set, under a drawn limit."""
    rng = np.random.default_rng(seed)
    limit = int(rng.choice([1, 2, 3, 5, 8, 300]))
    data = draw_lvis(rng)
    settings = {"limits.max_dets": [limit]}
    result = detmap.evaluate(*read_coco(*data), "lvis", settings=settings, threads=1)
    expected = official.run(*data, max_dets=limit)
    arrays = curves.coco_arrays(result.matches)
    for name in ("precision", "recall"):
        if not np.array_equal(arrays[name][..., 0], expected.eval[name]):
            n = int((arrays[name][..., 0] != expected.eval[name]).sum())
            return f"{name}: {n} cells at limit {limit}"
    found = {name: -1.0 if math.isnan(x) else x for name, x in result.metrics.items()}
    if found != dict(expected.results):
        return f"numbers {found} and {dict(expected.results)}"
    return None
