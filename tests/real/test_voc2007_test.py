"""PASCAL VOC 2007 test, three real detectors: the numbers that their authors and an independent
slow program got."""

from pathlib import Path

import pytest

import detmap
from tests.support.pinned import VOC2007

pytestmark = pytest.mark.slow

PROTOCOLS = ("voc2007-python", "voc2007", "voc2012-python", "voc2012")
COUNTS = {"yolov2-voc": 98_023, "tiny-yolov2-voc": 254_590, "detector-8603": 14_178}


@pytest.fixture(scope="module")
def truth(voc2007: Path) -> detmap.Truth:
    return detmap.read_truth(voc2007 / "VOCdevkit")


def test_the_split_has_its_known_counts(truth: detmap.Truth) -> None:
    assert (len(truth.images), len(truth), int(truth.difficult.sum()), len(truth.categories)) == (
        4952,
        14976,
        2944,
        20,
    )
    assert (truth.split, truth.year) == ("test", 2007)


@pytest.mark.parametrize("detector", COUNTS)
def test_published_numbers_come_out(voc2007: Path, truth: detmap.Truth, detector: str) -> None:
    detections = detmap.read_detections(voc2007 / detector, truth)
    assert len(detections) == COUNTS[detector]
    found = [detmap.evaluate(truth, detections, protocol).metrics["mAP"] for protocol in PROTOCOLS]
    expected = [VOC2007[detector, protocol][-1].value for protocol in PROTOCOLS]
    assert [round(100 * value, 4) for value in found] == expected


def test_the_default_protocol_is_that_of_the_year(voc2007: Path, truth: detmap.Truth) -> None:
    result = detmap.evaluate(voc2007 / "VOCdevkit" / "VOC2007", voc2007 / "detector-8603")
    assert result.signature.startswith("voc2007.3|default|")
    expected = VOC2007["detector-8603", "voc2007"][-1].value
    assert round(100 * result.metrics["mAP"], 4) == expected
