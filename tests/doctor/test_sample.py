"""Mistakes made of the bundled sample: each is found, first and alone; the sample is well."""

from __future__ import annotations

import pytest

import detmap
from detmap.doctor.findings import Finding
from detmap.resources import folder
from tests.doctor.wrong import WRONG, Columns, columns

SHAPES = folder("datasets") / "shapes"
TRUTH = SHAPES / "instances_test.json"


@pytest.fixture(scope="module")
def right() -> Columns:
    truth = detmap.read_truth(TRUTH)
    return columns(truth, detmap.read_detections(SHAPES / "detections" / "contours.json", truth))


def named(findings: list[Finding]) -> list[str]:
    return [finding.name for finding in findings]


@pytest.mark.parametrize("detector", ["contours", "template"])
@pytest.mark.parametrize("suffix", ["", ".json"])
def test_nothing_is_wrong_with_the_sample(detector: str, suffix: str) -> None:
    truth = TRUTH if suffix else SHAPES
    assert detmap.doctor(truth, SHAPES / "detections" / f"{detector}{suffix}") == []


@pytest.mark.parametrize("mistake", WRONG)
def test_a_mistake_is_found_first_and_alone(right: Columns, mistake: str) -> None:
    make, name = WRONG[mistake]
    findings = detmap.doctor(right.truth, make(right).arrays())
    assert named(findings) == [name]
