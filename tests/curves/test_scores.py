"""Scores: joined from classes, curves at every rank, and arrays of undefined classes."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

import detmap
from detmap.curves import scores as curves
from tests.statistics.drawn_matches import draw, objects_of_cell, rows_of_cell


def test_scores_of_some_classes_join_to_those_of_all() -> None:
    matches = draw(3)
    classes = [np.array([0, 2]), np.array([1])]
    parts = [curves.scores(matches.select_classes(some)) for some in classes]
    joined, whole = curves.join(parts, classes), curves.scores(matches)
    for field in fields(whole):
        one, other = getattr(joined, field.name), getattr(whole, field.name)
        if isinstance(other, np.ndarray):
            np.testing.assert_array_equal(one, other)
        else:
            assert one == other


@pytest.mark.parametrize("a", [0, 1])
def test_a_curve_has_every_rank_that_is_not_ignored(a: int) -> None:
    matches = draw(5)
    verdicts = [verdict for _, verdict in rows_of_cell(matches, 1, a, 2) if verdict != "I"]
    hits = np.cumsum([verdict == "T" for verdict in verdicts])
    recall, precision, score = curves.whole_curve(matches, 1, a, 2, 100)
    assert recall == pytest.approx(hits / len(objects_of_cell(matches, 1, a)))
    assert precision == pytest.approx(hits / np.arange(1, len(hits) + 1))
    assert (np.diff(score) <= 0).all()


def test_arrays_of_a_class_without_objects_are_minus_one() -> None:
    box = [[0, 0, 9, 9]]
    truth = detmap.truth_from_arrays([1], [1], box, categories={1: "a", 2: "b"})
    found = detmap.detections_from_arrays(truth, [1, 1], [1, 2], box * 2, [0.5, 0.5])
    arrays = curves.coco_arrays(detmap.match(truth, found, detmap.load_protocol("coco-bbox")))
    for name, axis in (("precision", 2), ("scores", 2), ("recall", 1)):
        assert (arrays[name].take(1, axis=axis) == -1).all()
        assert (arrays[name].take(0, axis=axis) >= 0).any()
