"""VOC 2007 test: what the study of statistics found there."""

from __future__ import annotations

from dataclasses import replace
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
    assert not eleven.attained  # duplicates with the score of their true positive rank behind it
    assert eleven.low < 0.860303 < eleven.high
    assert round(100 * eleven.mean, 2) == 86.03
    step = detmap.evaluate(truth, found, "voc2012", settings={"ap.integrator": "step"})
    one = step.ties(orders=20)["mAP"]
    assert np.isnan(one.expected)  # equal scores of an image reach the same objects
    assert one.low < one.mean < one.high


@pytest.mark.slow
@pytest.mark.parametrize("detector", ["detector-8603", "yolov2-voc", "tiny-yolov2-voc"])
@pytest.mark.parametrize("protocol", ["voc2007", "coco-bbox"])
def test_shuffled_equal_scores_stay_within_the_bounds(
    voc2007: Path, detector: str, protocol: str
) -> None:
    truth = detmap.read_truth(voc2007 / "VOCdevkit")
    found = detmap.read_detections(voc2007 / detector, truth)
    bounds = detmap.evaluate(truth, found, protocol).ties(orders=2)
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(len(found))
        names = ("image", "label", "boxes", "score")
        shuffled = replace(found, **{name: getattr(found, name)[order] for name in names})
        for name, value in detmap.evaluate(truth, shuffled, protocol).metrics.items():
            assert bounds[name].low - 1e-12 <= value <= bounds[name].high + 1e-12
