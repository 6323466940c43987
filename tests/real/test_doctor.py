"""Mistakes made of real data: each is found, first and alone; the real detectors are well."""

from dataclasses import replace
from pathlib import Path

import pytest

import detmap
from tests.analysis.doctor.mistakes import GAPS, PIXELS, WRONG, Columns, columns, in_coco_form
from tests.support.tier import some

pytestmark = pytest.mark.slow

MISTAKES = {**WRONG, **PIXELS, **GAPS}
DEMO = [name for name in MISTAKES if name != "upside down"]  # no order of drawn scores is right
DETECTORS = ("detector-8603", "tiny-yolov2-voc", "yolov2-voc")


@pytest.fixture(scope="module")
def demo(data: Path) -> Columns:
    """The fake results of the COCO demo; their scores are drawn, so no order is their right one."""
    folder = data / "coco-val2014-100"
    truth = detmap.read_truth(folder / "instances_val2014_100.json")
    file = folder / "instances_val2014_fakebbox100_results.json"
    return columns(truth, detmap.read_detections(file, truth))


@pytest.fixture(scope="module")
def detector(voc2007: Path) -> Columns:
    """A real detector on VOC 2007 test, in COCO's form."""
    truth = detmap.read_truth(voc2007 / "VOCdevkit" / "VOC2007")
    found = detmap.read_detections(voc2007 / "detector-8603", truth)
    coco = in_coco_form(truth)
    return replace(columns(truth, found), truth=coco, image=coco.images.ids[found.image])


def test_nothing_is_wrong_with_the_demo(demo: Columns) -> None:
    assert detmap.doctor(demo.truth, demo.arrays()) == []


@pytest.mark.parametrize("name", some(DETECTORS, 3))
def test_nothing_is_wrong_with_a_real_detector(voc2007: Path, name: str) -> None:
    assert detmap.doctor(voc2007 / "VOCdevkit" / "VOC2007", voc2007 / name) == []


@pytest.mark.parametrize("mistake", some(DEMO, 4))
def test_a_mistake_in_the_demo_is_found_first_and_alone(demo: Columns, mistake: str) -> None:
    make, name = MISTAKES[mistake]
    found = detmap.doctor(demo.truth, make(demo).arrays())
    assert [finding.name for finding in found] == [name]


@pytest.mark.slow
@pytest.mark.parametrize("mistake", WRONG)
def test_a_mistake_of_a_real_detector_is_found_first_and_alone(
    detector: Columns, mistake: str
) -> None:
    make, name = WRONG[mistake]
    found = detmap.doctor(detector.truth, make(detector).arrays())
    assert [finding.name for finding in found] == [name]
