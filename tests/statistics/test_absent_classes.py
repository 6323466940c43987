"""Intervals and comparisons leave out classes that do not occur; all numbers keep their bits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import detmap
from detmap.core.statistics import intervals, paired_differences
from detmap.core.statistics import replicates as drawing
from detmap.core.statistics.class_terms import occurring

N_IMAGES, N_CLASSES = 100, 300
ONLY_DETECTED = 7
IMAGES, CLASSES = np.arange(N_IMAGES), range(N_CLASSES)
BOXES = [[0, 0, 10, 10], [1, 0, 11, 10], [50, 50, 60, 60]]


def detect(truth: detmap.Truth, seed: int) -> detmap.Detections:
    """Detections of the classes of `truth`, and of one without objects."""
    rng = np.random.default_rng(seed)
    label = np.append(rng.choice([0, 150, 151, 299], 150), [ONLY_DETECTED])
    image, kind = rng.integers(0, N_IMAGES, 151), rng.integers(0, 3, 151)
    boxes = [BOXES[i] for i in kind]
    return detmap.detections_from_arrays(truth, image, label, boxes, rng.random(151))


def drawn(rules: Any = "coco-bbox") -> tuple[detmap.Result, detmap.Result]:
    """Two detectors on 300 classes, of which four have objects."""
    rng = np.random.default_rng(1)
    image, label = np.tile(IMAGES, 2), rng.choice([0, 150, 151, 299], 2 * N_IMAGES)
    truth = detmap.truth_from_arrays(
        image,
        label,
        [BOXES[0]] * len(image),
        images=IMAGES,
        categories={k: str(k) for k in CLASSES},
    )
    a, b = (detmap.evaluate(truth, detect(truth, seed), rules) for seed in (2, 3))
    return a, b


def every_class(plans: Any) -> list[Any]:
    """Leaves nothing out."""
    return list(plans)


def both_ways(monkeypatch: pytest.MonkeyPatch, call: Callable[[], Any]) -> tuple[Any, Any]:
    fast = call()
    for module in (intervals, paired_differences):
        monkeypatch.setattr(module, "occurring", every_class)
    return fast, call()


def listed(made: intervals.Intervals) -> list[Any]:
    rows = [made.metrics, *made.classes]
    return [{name: one.to_dict() for name, one in row.items()} for row in rows]


COUNTED = detmap.core.protocol.load("coco-bbox").override({"mean.undefined": "zero"})


@pytest.mark.parametrize("rules", ["coco-bbox", "voc2012", COUNTED])
@pytest.mark.parametrize("method", ["influence", "percentile"])
def test_intervals_keep_their_bits(
    monkeypatch: pytest.MonkeyPatch, rules: Any, method: str
) -> None:
    one, _ = drawn(rules)
    fast, whole = both_ways(monkeypatch, lambda: one.intervals(replicates=33, method=method))
    assert len(fast.classes) == N_CLASSES
    assert listed(fast) == listed(whole)
    assert fast.notes == whole.notes


@pytest.mark.parametrize("adjust", ["holm", "maxt"])
def test_comparisons_keep_their_bits(monkeypatch: pytest.MonkeyPatch, adjust: str) -> None:
    a, b = drawn()
    fast, whole = both_ways(monkeypatch, lambda: detmap.compare(a, b, replicates=33, adjust=adjust))
    assert fast.to_dict() == whole.to_dict()
    assert [one.place for one in fast.classes] == [one.place for one in whole.classes]
    assert {one.place for one in fast.classes} == {0, 150, 151, 299}


def test_replicates_hold_classes_that_occur_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """45,000 classes need no gigabytes."""
    one, _ = drawn()
    shapes = []

    def spy(*given: Any, **options: Any) -> drawing.Replicates:
        take = options.pop("take")

        def seen(some: Any, classes: Any) -> None:
            shapes.append(classes.shape)
            take(some, classes)

        return drawing.replicates(*given, **options, take=seen)

    monkeypatch.setattr(intervals, "drawing", _Spied(spy))
    one.intervals(replicates=33, method="percentile")
    assert shapes == [(33, 4, 5)]  # four have objects, one has a detection


class _Spied:
    """The module of replicates with another function."""

    def __init__(self, replicates: Callable[..., Any]) -> None:
        self.replicates = replicates

    def __getattr__(self, name: str) -> Any:
        return getattr(drawing, name)


def test_a_result_without_any_object_or_detection_keeps_its_classes() -> None:
    one, _ = drawn()
    matches = one.matches
    empty = replace(
        matches,
        **{name: getattr(matches, name)[:0] for name in ("image", "obj_image", "rank", "position")},
        **{name: getattr(matches, name)[:0] for name in ("score", "tp", "ignored", "counted")},
        off=np.zeros_like(matches.off),
        obj_off=np.zeros_like(matches.obj_off),
    )
    planned = intervals.plan(empty, one.rows, one.rows[:1])
    assert occurring([planned]) == [planned]
