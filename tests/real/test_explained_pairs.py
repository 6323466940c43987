"""Pairs of tools on real detectors: every step; the ends are held to the original codes in
`test_tool_goldens`.
"""

from fractions import Fraction
from pathlib import Path

import pytest

import detmap
from tests.support.tier import some

PAIRS: dict[tuple[str, str, str], tuple[tuple[float, float], dict[str, float]]] = {
    ("yolov2-voc", "voc-devkit-12", "keras-retinanet"): (
        (74.3876, 63.8460),
        {"extent": -0.2625, "neutral": -8.5633, "floor": -1.7159},
    ),
    ("yolov2-voc", "voc-devkit-12", "ultralytics-8.4"): (
        (74.3876, 72.9804),
        {"extent": -0.2625, "neutral": -1.1492, "integration": -0.0086, "matching": 0.0131},
    ),
    ("detector-8603", "pycocotools", "fiftyone"): ((62.3461, 62.3617), {"order": 0.0156}),
    ("detector-8603", "voc-devkit-07", "darknet-11"): (
        (86.0310, 85.9677),
        {"extent": -0.0483, "integration": 0.0020, "matching": -0.0170},
    ),
    ("tiny-yolov2-voc", "voc-devkit-12", "rafaelpadilla-odm-area"): (
        (54.4145, 47.5182),
        {"neutral": -6.8963},
    ),
}
"""Detector and two tools: both numbers, and the steps that move a printed digit, in points."""


@pytest.mark.slow
@pytest.mark.parametrize("pair", some(PAIRS, 2), ids=" ".join)
def test_every_step_of_a_pair(pair: tuple[str, str, str], voc2007: Path) -> None:
    detector, start, end = pair
    truth = detmap.read_truth(voc2007 / "VOCdevkit")
    why = detmap.explain(truth, detmap.read_detections(voc2007 / detector, truth), start, end)
    moved = {step.name: round(100 * float(step.change), 4) for step in why.steps}
    ends = round(100 * why.before, 4), round(100 * why.after, 4)
    assert (ends, {name: change for name, change in moved.items() if change}) == PAIRS[pair]
    assert why.total == Fraction(why.after) - Fraction(why.before)
