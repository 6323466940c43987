"""VOC 2007 test: what the study of statistics found there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import detmap

pytestmark = pytest.mark.slow


def test_a_real_detector_with_rounded_scores(voc2007: Path) -> None:
    """The study's interval; what the authors committed lies inside, in percent 86.0303."""
    truth = detmap.read_truth(voc2007 / "VOCdevkit")
    found = detmap.read_detections(voc2007 / "detector-8603", truth)
    eleven = detmap.evaluate(truth, found, "voc2007-python").ties(orders=100)["mAP"]
    assert (round(100 * eleven.low, 4), round(100 * eleven.high, 4)) == (86.0184, 86.0336)
    assert eleven.attained
    assert eleven.low < 0.860303 < eleven.high
    assert round(100 * eleven.mean, 2) == 86.03
    assert round(100 * eleven.sd, 4) == 0.0024
    step = detmap.evaluate(truth, found, "voc2012", settings={"ap.integrator": "step"})
    one = step.ties(orders=20)["mAP"]
    assert round(100 * one.expected, 5) == 89.25561
    assert abs(one.mean - one.expected) < 4 * one.sd / np.sqrt(20)
