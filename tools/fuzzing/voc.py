"""Drawn VOC data: every AP equal (==) to the slow twin of the devkit."""

import math

import numpy as np

import detmap
from detmap.core.protocol import Grid
from tests.reference import voc
from tests.support.drawing import draw_voc
from tests.support.drawn_tables import voc_tables

POINTS = Grid("arange 0:0.1:1").values().tolist()


def case(seed: int) -> str | None:
    """What differs from the slow twin on one drawn data set."""
    objects, detections = draw_voc(np.random.default_rng(seed))
    tables = voc_tables(objects, detections)
    for protocol, strict, integrate in (
        ("voc2007", False, eleven),
        ("voc2007-python", True, eleven),
        ("voc2012", False, voc.all_points),
        ("voc2012-python", True, voc.all_points),
    ):
        for row in detmap.evaluate(*tables, protocol, threads=1).per_class:
            expected = voc.class_ap(
                detections[row["name"]], objects[row["name"]], strict=strict, integrate=integrate
            )
            if row["AP"] != expected and not (math.isnan(row["AP"]) and math.isnan(expected)):
                return f"{protocol}, {row['name']}: {row['AP']!r} and {expected!r}"
    return None


def eleven(recall: list[float], precision: list[float]) -> float:
    """The twin on NumPy's points; a class whose detections are all neutral has AP 0."""
    ap = voc.eleven_point(recall, precision, POINTS)
    return 0.0 if math.isnan(ap) else ap
