"""Means, tables of classes and counts, by hand."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import detmap
from detmap.core.curves import aggregation, terms
from tests.statistics.drawn_matches import draw

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
    with pytest.raises(detmap.ProtocolError, match=r"class z \(.*without groups"):
        _ = result({"groups": {"some": ["a", "z"]}, "metrics": ["AP-some"]}).metrics
    names = {1: "person", 2: "airplane"}
    truth = detmap.truth_from_arrays([1], [1], [BOX], categories=names)
    found = detmap.detections_from_arrays(truth, [1], [1], [BOX], [0.9])
    base = detmap.evaluate(truth, found, "ov-coco").metrics["AP-base"]
    assert base == pytest.approx(1)  # 47 classes of the group are not here


def several(settings: dict[str, Any]) -> detmap.Result:
    """Class a is found, b is a false detection on an image of its crowd region, c and d have
    nothing.
    """
    names = {1: "a", 2: "b", 3: "c", 4: "d"}
    truth = detmap.truth_from_arrays([1, 1], [1, 2], [BOX, FAR], categories=names, crowd=[0, 1])
    boxes = [BOX, FAR, [80, 80, 5, 5]]
    found = detmap.detections_from_arrays(truth, [1] * 3, [1, 2, 2], boxes, [0.9, 0.8, 0.7])
    return detmap.evaluate(truth, found, settings=settings)


def test_a_value_for_undetected_classes_enters_the_mean_of_ap_alone() -> None:
    """Class b has a false detection and an ignored one: it is not among the undetected."""
    done = several({"metrics": ["AP", "AR@100"], "mean.undetected": -1})
    assert done.metrics["AP"] == pytest.approx((1 - 1 - 1) / 3)
    assert done.metrics["AR@100"] == pytest.approx(1)


def found_share(n_found: int, n_objects: int, settings: dict[str, Any]) -> detmap.Result:
    """Class a has the first of its objects found, one per image; class b has none."""
    boxes, images = [BOX] * n_objects, list(range(n_objects))
    truth = detmap.truth_from_arrays(images, [1] * n_objects, boxes, categories={1: "a", 2: "b"})
    found = detmap.detections_from_arrays(
        truth, images[:n_found], [1] * n_found, boxes[:n_found], np.linspace(0.9, 0.5, n_found)
    )
    rules = {"ap.integrator": "all_points", "ap.epsilon": 0} | settings
    return detmap.evaluate(truth, found, settings=rules)


def test_a_miss_rate_is_not_filled_for_classes_without_objects() -> None:
    done = found_share(1, 2, {"metrics": ["MR"], "mean.undefined": "zero"})
    assert done.metrics["MR"] == pytest.approx(0.5)
    assert done.per_class[0]["MR"] == pytest.approx(0.5)


@pytest.mark.parametrize(
    "precision, mean, of_class",
    [
        ("float64", 1 / 3, 1 / 3),
        ("rounded", float(np.float32(1 / 3)), float(np.float32(1 / 3))),
        ("float32", float(np.float32(1 / 3)), 1 / 3),
    ],
)
def test_precision_of_means(precision: str, mean: float, of_class: float) -> None:
    rules = {"metrics": ["AP50"], "mean.precision": precision, "iou.thresholds": [0.5, 0.6]}
    done = found_share(1, 3, rules)
    assert done.metrics["AP50"] == mean
    assert done.per_class[0]["AP50"] == of_class


def test_a_mean_in_float32_divides_by_the_number_of_terms() -> None:
    rules = {"metrics": ["AP"], "mean.precision": "float32", "mean.undefined": "zero"}
    assert found_share(1, 2, rules).metrics["AP"] == 0.25


def test_a_mean_of_each_class_is_over_its_own_terms() -> None:
    """Class a is found up to IoU 0.7, b up to 0.5, and c is not."""
    truth = detmap.truth_from_arrays([1] * 3, [1, 2, 3], [BOX] * 3)
    boxes: list[list[float]] = [[0, 0, 10, 7], [0, 0, 10, 5.5], [50, 50, 10, 10]]
    found = detmap.detections_from_arrays(truth, [1] * 3, [1, 2, 3], boxes, [0.9, 0.8, 0.7])
    rules = {"iou.thresholds": [0.5, 0.6], "metrics": ["AP", "AP60", "AR@100"]}
    done = detmap.evaluate(truth, found, settings=rules)
    for name, expected in (("AP", [1, 0.5, 0]), ("AP60", [1, 0, 0]), ("AR@100", [1, 0.5, 0])):
        assert [row[name] for row in done.per_class] == pytest.approx(expected)


def test_means_by_blocks_are_those_of_one_array(monkeypatch: pytest.MonkeyPatch) -> None:
    matches = draw(7)
    rules = matches.protocol.override({"metrics": ["AP", "AP60", "APs", "AR@1", "AR@1000"]})
    matches = replace(matches, protocol=rules)
    kept = detmap.summarize(matches)
    monkeypatch.setattr(terms, "MOST_KEPT", 0)
    monkeypatch.setattr(terms, "BLOCK", 1)
    made = detmap.summarize(matches)
    assert isinstance(made.scores.terms, terms.Blocks)
    assert made.metrics == kept.metrics
    assert len(set(kept.metrics.values())) == 5
    for row in rules.rows()[0]:
        one, other = (aggregation.per_class(done.scores, row, rules) for done in (kept, made))
        np.testing.assert_array_equal(one, other)


def test_rows_of_the_table_of_classes() -> None:
    """AP within every limit, AR within the highest one, and one AR where no row asks."""
    rules = detmap.load_protocol("coco-bbox")
    for metrics, names in (
        (["AP@1", "AP", "APs", "AR@1", "AR@100"], ["AP@1", "AP", "AR@100"]),
        (["AP75", "AR@1"], ["AP75", "AR"]),
    ):
        rows = aggregation.class_rows(rules.override({"metrics": metrics}))
        assert [row.name for row in rows] == names


def test_counts_are_those_of_iou_one_half_if_there_is_one() -> None:
    rules = detmap.load_protocol("coco-bbox")
    for thresholds, t in (([0.3, 0.5, 0.7], 1), ([0.3, 0.7], 0)):
        asked = rules.override({"iou.thresholds": thresholds, "metrics": ["AP"]})
        assert aggregation.threshold_of(asked, None) == t
        assert aggregation.threshold_of(asked, 0.7) == len(thresholds) - 1


def test_a_note_lists_the_classes_without_objects() -> None:
    done = result({"mean.undefined": "zero"})
    (note,) = aggregation.classes_without_truth(done.scores, done.matches.categories, done.protocol)
    assert (note.code, note.count) == ("class-without-truth", 2)
    assert note.text.endswith("whose AP is 0: b, c")
    shorter = replace(done.matches.categories, ids=np.array([1]), names=("a",))
    with pytest.raises(ValueError, match="longer"):
        aggregation.classes_without_truth(done.scores, shorter, done.protocol)


def test_no_note_where_every_class_has_objects() -> None:
    truth = detmap.truth_from_arrays([1], [1], [BOX])
    found = detmap.detections_from_arrays(truth, [1], [1], [BOX], [0.9])
    done = detmap.evaluate(truth, found)
    parts = done.scores, done.matches.categories, done.protocol
    assert aggregation.classes_without_truth(*parts) == []
