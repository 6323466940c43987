"""Means, tables of classes and counts, by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import detmap
from detmap.curves import aggregation

BOX, FAR, HALF = [0, 0, 10, 10], [50, 50, 10, 10], [0, 0, 10, 7]


def result(settings: dict[str, Any] | None = None) -> detmap.Result:
    """Class a has an object that is found, b a false detection alone, c nothing."""
    names = {1: "a", 2: "b", 3: "c"}
    truth = detmap.truth_from_arrays([1], [1], [BOX], categories=names)
    found = detmap.detections_from_arrays(truth, [1, 1], [1, 2], [BOX, FAR], [0.9, 0.8])
    return detmap.evaluate(truth, found, settings=settings)


@pytest.mark.parametrize(
    "settings, expected",
    [
        ({}, [1, np.nan, np.nan]),
        ({"ap.no_objects": "zero"}, [1, 0, 0]),
        ({"mean.undefined": "no_mean"}, [1, np.nan, 0]),
        ({"mean.undetected": -1}, [1, np.nan, -1]),
    ],
)
def test_classes_without_objects(settings: dict[str, Any], expected: list[float]) -> None:
    rows = result(settings).per_class
    assert [row["AP"] for row in rows] == pytest.approx(expected, nan_ok=True)
    recall = [name for name in rows[0] if name.startswith("AR")]
    assert [row[recall[-1]] for row in rows] == pytest.approx([1, np.nan, np.nan], nan_ok=True)


@pytest.mark.parametrize(
    "undefined, mean", [("skip", 1), ("zero", 1 / 3), ("one", 1), ("no_mean", np.nan)]
)
def test_a_mean_over_classes_without_objects(undefined: str, mean: float) -> None:
    found = result({"mean.undefined": undefined, "metrics": ["AP"]})
    assert found.metrics["AP"] == pytest.approx(mean, nan_ok=True)


def test_a_class_that_is_only_ignored_is_not_detected() -> None:
    """`detected` counts a class as 0 where it has a detection that is not ignored."""
    for crowd, mean in ((False, 0.5), (True, 1.0)):
        boxes = [BOX, FAR] if crowd else [BOX]
        labels = [1, 2] if crowd else [1]
        names = {1: "a", 2: "b"}
        truth = detmap.truth_from_arrays(
            [1] * len(boxes), labels, boxes, categories=names, crowd=[False, True][: len(boxes)]
        )
        found = detmap.detections_from_arrays(truth, [1, 1], [1, 2], [BOX, FAR], [0.9, 0.8])
        rules = {"mean.undefined": "detected", "metrics": ["AP"]}
        assert detmap.evaluate(truth, found, settings=rules).metrics["AP"] == pytest.approx(mean)


def test_points_are_read_at_their_threshold() -> None:
    truth = detmap.truth_from_arrays([1], [1], [BOX], categories={1: "a"})
    found = detmap.detections_from_arrays(truth, [1], [1], [HALF], [0.9])
    rules = {"metrics": ["P50", "P90", "R90"], "iou.thresholds": [0.5, 0.9]}
    done = detmap.evaluate(truth, found, settings=rules)
    assert done.metrics == {"P50": 1.0, "P90": 0.0, "R90": 0.0}
    assert done.per_class[0]["P50"] == 1.0
    assert done.per_class[0]["P90"] == 0.0


def test_a_point_of_all_classes_is_not_that_of_the_first() -> None:
    found = result({"metrics": ["AP", "P50"], "mean.undefined": "skip"})
    assert found.metrics["P50"] == 0.5
    assert found.per_class[0]["P50"] == 1.0


def test_counts_of_verdicts() -> None:
    truth = detmap.truth_from_arrays(
        [1, 1, 1], [1, 1, 1], [BOX, FAR, [80, 80, 9, 9]], categories={1: "a"}, crowd=[0, 1, 0]
    )
    boxes = [BOX, FAR, [30, 30, 5, 5], [20, 30, 5, 5]]
    found = detmap.detections_from_arrays(truth, [1] * 4, [1] * 4, boxes, [0.9, 0.8, 0.7, 0.6])
    done = detmap.evaluate(truth, found)
    counts = aggregation.count(done.scores, done.protocol)
    columns = [getattr(counts, name)[0] for name in aggregation.COUNTS]
    assert columns == [2, 4, 1, 2, 1, 1]
    assert counts.iou == 0.5


@pytest.mark.parametrize("weights, mean", [("images", 2 / 3), ("objects", 3 / 4), ("equal", 1 / 2)])
def test_weights_of_classes(weights: str, mean: float) -> None:
    """Class a is on two images with three objects, all found; b on one, not found."""
    boxes = [BOX, FAR, BOX, BOX]
    truth = detmap.truth_from_arrays([1, 1, 2, 2], [1, 1, 1, 2], boxes, categories={1: "a", 2: "b"})
    found = detmap.detections_from_arrays(truth, [1, 1, 2], [1] * 3, boxes[:3], [0.9, 0.8, 0.7])
    rules = {"mean.weights": weights, "metrics": ["AP", "AR@100"]}
    done = detmap.evaluate(truth, found, settings=rules).metrics
    assert list(done.values()) == pytest.approx([mean, mean])


def test_a_group_of_other_classes_is_refused_unless_a_benchmark_names_them() -> None:
    given = result({"groups": {"some": ["a", "b"]}, "metrics": ["AP-some"]}).metrics
    assert given["AP-some"] == pytest.approx(1)
    with pytest.raises(detmap.ProtocolError, match="unknown class 'z'"):
        _ = result({"groups": {"some": ["a", "z"]}, "metrics": ["AP-some"]}).metrics
    names = {1: "person", 2: "airplane"}
    truth = detmap.truth_from_arrays([1], [1], [BOX], categories=names)
    found = detmap.detections_from_arrays(truth, [1], [1], [BOX], [0.9])
    base = detmap.evaluate(truth, found, "ov-coco").metrics["AP-base"]
    assert base == pytest.approx(1)  # 47 classes of the group are not here
