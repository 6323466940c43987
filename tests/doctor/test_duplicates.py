"""Rows that lie on better ones: what is looked for, and where it would take too long."""

from __future__ import annotations

import numpy as np
import pytest

import detmap
from detmap import Detections
from detmap.doctor import duplicates as doubles


def stacked(n: int) -> Detections:
    """So many equal detections on one image."""
    box = [[0.0, 0.0, 9.0, 9.0]]
    truth = detmap.truth_from_arrays([1], [1], box)
    return detmap.detections_from_arrays(truth, [1] * n, [1] * n, np.array(box * n), np.ones(n))


def test_equal_boxes_are_doubled() -> None:
    assert doubles.doubled(stacked(50)) == 0.98


def test_a_heap_of_boxes_is_not_paired(monkeypatch: pytest.MonkeyPatch) -> None:
    """5,000,000,000 pairs would take minutes, in an evaluation of a tenth of a second."""

    def refuse(*_: object) -> None:
        raise AssertionError("pairs are looked at")

    monkeypatch.setattr(doubles, "pairs", refuse)
    assert doubles.doubled(stacked(100_000)) == 0.0
