"""Scores: joined from classes, curves at every rank, and arrays of undefined classes."""

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

import detmap
from detmap.core.curves import scores as curves
from detmap.core.curves import terms
from detmap.kernels import curves as kernels
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


def asking(matches: detmap.Matches, rules: dict[str, Any]) -> detmap.Matches:
    """The same match results under a protocol with other rules."""
    return replace(matches, protocol=matches.protocol.override(rules))


def without_objects(matches: detmap.Matches, k: int) -> detmap.Matches:
    """Leaves out the objects of a class; its detections become false positives."""
    kept = np.ones(len(matches.obj_image), dtype=bool)
    kept[matches.obj_off[k] : matches.obj_off[k + 1]] = False
    sizes = np.diff(matches.obj_off)
    sizes[k] = 0
    tp = matches.tp.copy()
    tp[matches.off[k] : matches.off[k + 1]] = 0
    return replace(
        matches,
        tp=tp,
        obj_off=np.concatenate([[0], np.cumsum(sizes)]),
        obj_image=matches.obj_image[kept],
        counted=matches.counted[kept],
    )


def require_equal(one: curves.Scores, other: curves.Scores) -> None:
    for field in fields(one):
        a, b = getattr(one, field.name), getattr(other, field.name)
        if isinstance(a, np.ndarray):
            np.testing.assert_array_equal(a, b)
        elif field.name == "pooled":
            assert a is b is None
        else:
            assert a.keys() == b.keys(), field.name
            for name in a:
                if field.name == "lower":
                    require_equal(a[name], b[name])
                else:
                    np.testing.assert_array_equal(a[name], b[name])


@pytest.mark.parametrize("classes", [[[1, 2], [0]], [[1], [0, 2]], [[0, 1, 2]]], ids=str)
def test_a_class_without_objects_joins_with_all_kinds_of_scores(classes: list[list[int]]) -> None:
    """Class 1 has no curve; a metric has terms of its own, and one asks for a lower limit."""
    matches = asking(without_objects(draw(4), 1), {"metrics": ["AP@1", "AP@1000", "MR@subset"]})
    places = [np.array(some) for some in classes]
    parts = [curves.scores(matches.select_classes(some)) for some in places]
    whole = curves.scores(matches)
    assert whole.judged.tolist() == [0, 2]
    assert list(whole.lower) == [1]
    assert whole.own["MR"].shape == (2, 3, 9, 2)
    require_equal(curves.join(parts, places), whole)


def test_scores_join_with_the_classes_of_every_part() -> None:
    matches = draw(3)
    parts = [curves.scores(matches.select_classes([k])) for k in range(3)]
    with pytest.raises(ValueError, match="shorter"):
        curves.join(parts, [np.array([0]), np.array([1])])


@pytest.mark.parametrize(
    "rules", [{"ap.pool": "all"}, {"metrics": ["AP", "P50"]}], ids=["pool", "point"]
)
def test_one_number_of_all_classes_is_not_joined(rules: dict[str, Any]) -> None:
    matches = asking(draw(3), rules)
    classes = [np.array([0, 2]), np.array([1])]
    parts = [curves.scores(matches.select_classes(some)) for some in classes]
    with pytest.raises(detmap.ProtocolError, match="cannot be joined from parts"):
        curves.join(parts, classes)


def test_another_order_of_ties_needs_rules_that_support_it() -> None:
    matches = draw(3)
    rows = kernels.Ranked(matches.off, matches.tp, matches.ignored, matches.rank)
    plain = curves.scores(matches, rows=rows).terms
    assert np.array_equal(plain, curves.scores(matches).terms, equal_nan=True)
    with pytest.raises(detmap.ProtocolError, match="another order of tied scores"):
        curves.scores(asking(matches, {"ap.pool": "all"}), rows=rows)


def test_ap_within_a_lower_limit_counts_one_detection_per_image() -> None:
    """Two objects of one image are found, one of them within limit 1."""
    boxes = [[0, 0, 9, 9], [50, 50, 9, 9]]
    truth = detmap.truth_from_arrays([1, 1], [1, 1], boxes)
    found = detmap.detections_from_arrays(truth, [1, 1], [1, 1], boxes, [0.9, 0.8])
    rules = {"metrics": ["AP@1", "AP@100"], "ap.integrator": "all_points", "ap.epsilon": 0}
    matches = detmap.match(truth, found, "coco-bbox", settings=rules)
    assert detmap.summarize(matches).metrics == {"AP@1": 0.5, "AP@100": 1.0}
    assert not curves.scores(asking(matches, {"metrics": ["AP"]})).lower


@pytest.mark.parametrize("integrator", ["trapezoid", "all_points"])
def test_every_rank_is_made_by_blocks(integrator: str, monkeypatch: pytest.MonkeyPatch) -> None:
    matches = asking(draw(1), {"ap.integrator": integrator})
    kept = curves.scores(matches).terms
    monkeypatch.setattr(terms, "MOST_KEPT", 0)
    made = curves.scores(matches).terms
    assert isinstance(made, terms.Blocks)
    assert np.array_equal(made, kept, equal_nan=True)


def test_a_curve_ends_at_the_detection_limit() -> None:
    """The second detection of the image has rank 1."""
    boxes = [[0, 0, 9, 9], [50, 50, 9, 9]]
    truth = detmap.truth_from_arrays([1, 1], [1, 1], boxes)
    found = detmap.detections_from_arrays(truth, [1, 1], [1, 1], boxes, [0.9, 0.8])
    matches = detmap.match(truth, found, "coco-bbox", settings={"ap.epsilon": 0})
    for limit, score in ((0, []), (1, [0.9]), (2, [0.9, 0.8])):
        read = curves.whole_curve(matches, 0, 0, 0, limit)
        assert read[0].tolist() == [0.5, 1.0][:limit]
        assert read[1].tolist() == [1.0, 1.0][:limit]
        assert read[2].tolist() == score


def test_arrays_have_pycocotools_axes() -> None:
    """Three thresholds, 101 recall points, three classes, two areas, two limits."""
    arrays = curves.coco_arrays(draw(2))
    assert arrays["precision"].shape == arrays["scores"].shape == (3, 101, 3, 2, 2)
    assert arrays["recall"].shape == (3, 3, 2, 2)
