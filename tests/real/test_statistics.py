"""VOC 2007 test: what the study of statistics found there."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import detmap

pytestmark = pytest.mark.slow


def test_a_real_detector_with_rounded_scores(voc2007: Path) -> None:
    """In percent: 86.0303 was committed by its authors; the study's bounds of all orders are
    86.0184 and 86.0336.
    """
    truth = detmap.read_truth(voc2007 / "VOCdevkit")
    found = detmap.read_detections(voc2007 / "detector-8603", truth)
    one = detmap.evaluate(truth, found, "voc2007-python").ties(orders=30)["mAP"]
    assert 0.860184 < one.low < 0.860303 < one.high < 0.860336
    assert round(100 * one.mean, 2) == 86.03


@pytest.mark.parametrize("detector", ["detector-8603", "yolov2-voc", "tiny-yolov2-voc"])
@pytest.mark.parametrize("protocol", ["voc2007", "coco-bbox"])
def test_a_shuffled_table_is_one_of_the_orders(voc2007: Path, detector: str, protocol: str) -> None:
    """Its value is no more than six standard deviations from the mean of the orders."""
    truth = detmap.read_truth(voc2007 / "VOCdevkit")
    found = detmap.read_detections(voc2007 / detector, truth)
    known = detmap.evaluate(truth, found, protocol).ties(orders=12)
    order = np.random.default_rng(1).permutation(len(found))
    names = ("image", "label", "boxes", "score")
    shuffled = replace(found, **{name: getattr(found, name)[order] for name in names})
    for name, value in detmap.evaluate(truth, shuffled, protocol).metrics.items():
        one = known[name]  # images stay in order, so a shuffled table is near the file's own order
        width = max(6 * one.sd, one.high - one.low)
        assert one.low - width - 1e-12 <= value <= one.high + width + 1e-12
