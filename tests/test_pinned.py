"""The bundled sample gives the numbers that are written down, and every one has its history."""

import json
from datetime import date
from itertools import pairwise
from pathlib import Path

import pytest

import detmap
from tests.reference import official
from tests.support import pinned

SHAPES = Path(__file__).resolve().parents[1] / "datasets" / "shapes"


@pytest.mark.parametrize(("protocol", "detector"), pinned.SAMPLE, ids="-".join)
def test_the_sample_gives_its_pinned_number(protocol: str, detector: str) -> None:
    found = detmap.evaluate(SHAPES, SHAPES / "detections" / detector, protocol).metrics
    assert next(iter(found.values())) == pinned.SAMPLE[protocol, detector][-1].value


@pytest.mark.parametrize(
    "protocol, key, value, bits",
    [
        ("voc2007", "ranking.equal", "true_first", "0x1.33c0a1ff4ed30p-1"),
        ("voc2012", "ranking.equal", "true_first", "0x1.3579b9f5f5c4bp-1"),
        ("voc2012", "ap.pool", "all", "0x1.11b46654766bep-1"),
    ],
)
def test_sums_have_the_bits_of_python_3_11(protocol: str, key: str, value: str, bits: str) -> None:
    """Later versions add floats with compensation; `tools/same_bits.py` compares more numbers."""
    files = SHAPES, SHAPES / "detections" / "contours"
    found = detmap.evaluate(*files, protocol, settings={key: value}).metrics["mAP"]
    assert float(found).hex() == bits


@pytest.mark.slow
@pytest.mark.parametrize("detector", ["contours", "template"])
def test_the_pinned_coco_number_is_that_of_pycocotools(detector: str) -> None:
    files = SHAPES / "instances_test.json", SHAPES / "detections" / f"{detector}.json"
    stats = official.run(*(json.loads(file.read_text()) for file in files)).stats
    assert stats[0] == pinned.SAMPLE["coco-bbox", detector][-1].value


def test_every_history_goes_forward_and_gives_reasons() -> None:
    for history in (*pinned.SAMPLE.values(), *pinned.VOC2007.values()):
        days = [date.fromisoformat(pin.date) for pin in history]
        assert days == sorted(days)
        assert all(len(pin.reason.split()) > 3 for pin in history)
        values = [pin.value for pin in history]
        assert all(a != b for a, b in pairwise(values))
