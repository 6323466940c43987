"""What the quick checks are for: cuts, shifts, shuffled images, missing labels; and the budget."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import detmap
from detmap.base.resources import folder
from detmap.doctor import examine_quickly
from detmap.doctor.clock import Clock
from detmap.doctor.examine import Examination
from detmap.doctor.quick_checks import is_suspicious
from detmap.doctor.raw_rows import from_table
from detmap.doctor.trial import trial_of
from detmap.protocol import load
from tools.doctor_battery import MISTAKES

SHAPES = folder("datasets") / "shapes"


@pytest.fixture(scope="module")
def tables() -> Any:
    truth = detmap.read_truth(SHAPES / "instances_test.json")
    return truth, detmap.read_detections(SHAPES / "detections" / "contours.json", truth)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mistake", "strength"),
    [("cut", 0.4), ("cut", 0.5), ("cut", 0.6), ("shift", 20.0), ("shuffled", 1.0)],
)
def test_a_mistake_is_found(tables: Any, mistake: str, strength: float) -> None:
    truth, right = tables
    make, expected = MISTAKES[mistake][:2]
    found = examine_quickly(*make(truth, right, strength), load("coco-bbox"), seconds=60).findings
    assert {each.name for each in found} & set(expected)


def test_missing_labels_are_reported(tables: Any) -> None:
    truth, right = tables
    few = truth.take(np.flatnonzero(truth.image < len(truth.images) // 3))
    assert is_suspicious(few, right)
    assert is_suspicious(truth.take(np.arange(0)), right)
    assert not is_suspicious(truth, right)


def test_what_there_is_no_time_for_is_listed(tables: Any) -> None:
    truth, right = tables
    found = Examination(trial_of(truth, "coco-bbox", Clock(-1.0)), from_table(right))
    assert "image names" in found.left_out


def test_a_result_has_findings(tables: Any) -> None:
    assert detmap.evaluate(*tables).findings == []
    moved = replace(tables[1], boxes=tables[1].boxes * 2)
    assert detmap.evaluate(tables[0], moved).findings
