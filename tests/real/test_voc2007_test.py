"""PASCAL VOC 2007 test, three real detectors: the numbers that their authors and an independent
slow program got."""

from __future__ import annotations

from pathlib import Path

import pytest

import detmap

# mAP in percent to four decimals: 11-point strict, 11-point devkit, all-point strict, all-point
# devkit
EXPECTED = {
    "yolov2-voc": (72.1868, 72.1868, 74.3876, 74.3876),
    "tiny-yolov2-voc": (53.9744, 53.9744, 54.4145, 54.4145),
    "detector-8603": (86.0310, 86.0310, 89.9941, 89.9943),
}
PROTOCOLS = ("voc2007-python", "voc2007", "voc2012-python", "voc2012")
COUNTS = {"yolov2-voc": 98_023, "tiny-yolov2-voc": 254_590, "detector-8603": 14_178}


@pytest.fixture(scope="module")
def truth(voc2007: Path) -> detmap.Truth:
    return detmap.read_truth(voc2007 / "VOCdevkit")


def test_the_split(truth: detmap.Truth) -> None:
    assert (len(truth.images), len(truth), int(truth.difficult.sum()), len(truth.categories)) == (
        4952,
        14976,
        2944,
        20,
    )
    assert (truth.split, truth.year) == ("test", 2007)


@pytest.mark.parametrize("detector", EXPECTED)
def test_published_numbers(voc2007: Path, truth: detmap.Truth, detector: str) -> None:
    detections = detmap.read_detections(voc2007 / detector, truth)
    assert len(detections) == COUNTS[detector]
    found = [detmap.evaluate(truth, detections, protocol).metrics["mAP"] for protocol in PROTOCOLS]
    assert [round(100 * value, 4) for value in found] == list(EXPECTED[detector])


def test_the_default_protocol_is_that_of_the_year(voc2007: Path, truth: detmap.Truth) -> None:
    result = detmap.evaluate(voc2007 / "VOCdevkit" / "VOC2007", voc2007 / "detector-8603")
    assert result.signature.startswith("voc2007.1|stock|")
    assert round(100 * result.metrics["mAP"], 4) == 86.0310
