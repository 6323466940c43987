"""Mistakes made of real data: each is found first; the real detectors are well."""

from pathlib import Path

import pytest

import detmap
from tests.support.tier import some
from tools.doctor_battery import base_set, try_kind
from tools.doctor_kinds import KINDS

pytestmark = pytest.mark.slow

BOXES = [
    kind
    for kind, how in KINDS.items()
    if "boxes" in how.shapes and not kind.startswith("ground truth")
]
DETECTORS = ("detector-8603", "tiny-yolov2-voc", "yolov2-voc")
PIXELS = {  # show where boxes are else exact
    "boxes-zero-based": (-1, -1, 0, 0),
    "boxes-one-based": (1, 1, 0, 0),
    "boxes-off-by-one": (0, 0, -1, -1),
    "boxes-too-wide-by-one": (0, 0, 1, 1),
}


def test_nothing_is_wrong_with_the_demo(data: Path) -> None:
    demo = base_set("coco-bbox", data, None)
    assert detmap.doctor(demo.truth, demo.rows) == []


@pytest.mark.parametrize("name", some(DETECTORS, 3))
def test_nothing_is_wrong_with_a_real_detector(voc2007: Path, name: str) -> None:
    assert detmap.doctor(voc2007 / "VOCdevkit" / "VOC2007", voc2007 / name) == []


@pytest.mark.parametrize("name", PIXELS)
def test_a_pixel_in_the_demo_is_found_first_and_alone(data: Path, name: str) -> None:
    demo = base_set("coco-bbox", data, None).copy()
    for row in demo.rows:
        row["bbox"] = [max(v + by, 0) for v, by in zip(row["bbox"], PIXELS[name], strict=True)]
    assert [finding.name for finding in detmap.doctor(demo.truth, demo.rows)] == [name]


@pytest.mark.parametrize("place", ["coco-bbox", "detector-8603"])
@pytest.mark.parametrize("kind", BOXES)
def test_a_mistake_is_found_first_and_alone(
    data: Path, voc2007: Path, kind: str, place: str
) -> None:
    tried = try_kind(kind, place, data, voc2007)
    if tried is None:
        pytest.skip("this set has no such mistake")
    assert (tried.first, tried.others) == (True, ())
