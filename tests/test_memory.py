"""What does not fit is refused before it is tried."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import detmap
from detmap import memory
from detmap.adapters import coco_scan
from detmap.cli import eval as command
from tests.running import run

SAMPLE = Path(__file__).resolve().parents[1] / "datasets" / "shapes"


@pytest.fixture
def nothing_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "SPARE", 0)
    monkeypatch.setattr(memory, "available", lambda: 1000)


@pytest.mark.parametrize("least", [1 << 20, 0], ids=["decoded", "scanned"])
def test_a_file_that_does_not_fit(
    nothing_left: None, monkeypatch: pytest.MonkeyPatch, least: int
) -> None:
    monkeypatch.setattr(coco_scan, "LEAST_SIZE", least)
    outcome = run("eval", SAMPLE / "instances_test.json", SAMPLE / "detections" / "contours.json")
    assert outcome.code == 2
    assert "instances_test.json" in outcome.err
    assert "GiB of memory" in outcome.err
    assert "detmap match --images" in outcome.err


def test_matches_that_do_not_fit(nothing_left: None) -> None:
    truth = detmap.truth_from_arrays([1], [1], [[0, 0, 9, 9]])
    n = 1000
    detections = detmap.detections_from_arrays(
        truth, np.ones(n), np.ones(n), np.ones((n, 4)), np.ones(n)
    )
    with pytest.raises(detmap.DataError, match="matching 100 detections"):
        detmap.evaluate(truth, detections)


def test_an_allocation_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object, **options: object) -> None:
        raise MemoryError

    monkeypatch.setattr(command, "read_truth", fail)
    outcome = run("eval", SAMPLE, SAMPLE / "detections" / "contours")
    assert (outcome.code, outcome.out) == (2, "")
    assert "does not fit" in outcome.err


def test_what_is_available_is_known_here() -> None:
    free = memory.available()
    assert free is None or free > 1 << 20
    memory.require(1 << 10, "here", "nothing much")
