"""Rows that lie on better ones: what is looked for, and where it would take too long."""

import numpy as np
import pytest

import detmap
from detmap import Detections
from detmap.analysis.doctor import duplicates as doubles


def stacked(n: int) -> Detections:
    """So many equal detections on one image."""
    box = [[0.0, 0.0, 9.0, 9.0]]
    truth = detmap.truth_from_arrays([1], [1], box)
    return detmap.detections_from_arrays(truth, [1] * n, [1] * n, np.array(box * n), np.ones(n))


def test_equal_boxes_are_doubled() -> None:
    assert doubles.doubled(stacked(50)) == 0.98


def test_many_equal_boxes_are_found_without_all_pairs() -> None:
    """5,000,000,000 pairs would take minutes, in an evaluation of a tenth of a second."""
    many = stacked(100_000)
    assert doubles.doubled(many) > 0.9
    assert doubles.suppressed(many, 0.65).nonzero()[0].tolist() == [0]


def test_suppression_of_large_cells_is_that_of_small_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    boxes = np.hstack([rng.integers(-20, 20, (300, 2)), rng.integers(0, 30, (300, 2))]) / 2.0
    truth = detmap.truth_from_arrays([1], [1], [[0.0, 0.0, 9.0, 9.0]])
    score = rng.integers(0, 9, 300) / 9
    rows = detmap.detections_from_arrays(truth, [1] * 300, [1] * 300, boxes, score)
    for overlap in (0.3, 0.5, 0.65, 0.9):
        small = doubles.suppressed(rows, overlap)
        with monkeypatch.context() as patch:
            patch.setattr(doubles, "MOST_OF_CELL", 1)
            assert np.array_equal(doubles.suppressed(rows, overlap), small)
