"""Evaluated objects and detections, and the notes on the scope, by hand."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import detmap
from detmap.core.matching import scope
from detmap.core.overlaps.rotated_boxes import RotatedBoxes
from detmap.core.tables import ABSENT, DERIVED, NOT_EXHAUSTIVE, Scope

BOX = [0.0, 0.0, 10.0, 10.0]
NAMES = {1: "a", 2: "b"}
RULES = detmap.load_protocol("coco-bbox")


def listed(*images: list[tuple[int, int]]) -> Scope:
    """Pairs of class position and kind, by image."""
    pairs = [pair for image in images for pair in image]
    return Scope(
        np.concatenate([[0], np.cumsum([len(image) for image in images])]),
        np.array([label for label, _ in pairs], dtype=np.int32),
        np.array([kind for _, kind in pairs], dtype=np.uint8),
    )


def look(truth: detmap.Truth, found: detmap.Detections, rules: dict[str, Any]) -> scope.Looked:
    return scope.look(truth, None, found, RULES.override(rules))


def test_objects_without_area_or_with_an_absent_role_take_no_part() -> None:
    """Areas 0, 0.5 and 2; the last object is a crowd region."""
    truth = detmap.truth_from_arrays([1] * 3, [1] * 3, [BOX] * 3, area=[0, 0.5, 2], crowd=[0, 0, 1])
    absent = {"matching.neutral": {"crowd": "absent"}}
    for rules, rows in (
        ({"boxes.empty": "drop"}, [1, 2]),
        (absent, [0, 1]),
        (absent | {"boxes.empty": "drop"}, [1]),
    ):
        objects = scope.objects_that_take_part(truth, RULES.override(rules))
        assert objects.tolist() == rows
    assert scope.objects_that_take_part(truth, RULES) is None


def test_empty_detections_are_counted_as_excluded() -> None:
    """Image 1 has an empty detection within the limit; that of image 2 is beyond it."""
    truth = detmap.truth_from_arrays([1, 2], [1, 1], [BOX] * 2)
    small, empty = [0.0, 0.0, 1.0, 0.5], [0.0, 0.0, 0.0, 9.0]
    found = detmap.detections_from_arrays(
        truth, [1, 1, 2, 2], [1] * 4, [small, empty, BOX, empty], [0.9, 0.8, 0.7, 0.6]
    )
    looked = look(truth, found, {"boxes.empty": "drop"})
    assert (looked.rows.tolist(), looked.unjudged.tolist()) == ([0, 2], [1, 1])
    looked = look(truth, found, {"boxes.empty": "drop", "limits.max_dets": [1]})
    assert (looked.rows.tolist(), looked.unjudged.tolist()) == ([0, 2], [0, 0])


def test_classes_of_each_image() -> None:
    """Image 1 has an object of a and lists b as absent; image 2 has an object of a, whose
    annotation is not exhaustive there.
    """
    truth = detmap.truth_from_arrays([1, 2], [1, 1], [BOX] * 2, categories=NAMES)
    truth = replace(truth, scope=listed([(1, ABSENT)], [(0, NOT_EXHAUSTIVE)]))
    found = detmap.detections_from_arrays(
        truth, [1, 1, 2, 2], [1, 2, 1, 2], [BOX] * 4, [0.9, 0.8, 0.7, 0.6]
    )
    looked = look(truth, found, {"scope.unlisted": "drop"})
    assert (looked.rows.tolist(), looked.unjudged.tolist()) == ([0, 1, 2], [0, 1])
    assert len(looked.lenient) == 0
    looked = look(truth, found, {"scope.not_exhaustive": "neutral"})
    assert looked.rows is None
    assert looked.lenient.tolist() == [False, False, True, False]
    looked = look(truth, found, {"limits.scope": "image", "limits.max_dets": [1]})
    assert (looked.rows.tolist(), len(looked.lenient)) == ([0, 2], 0)


@pytest.mark.parametrize(
    ("order", "rank"), [("score", [2, 0, 1, 1, 0]), ("input", [0, 0, 1, 1, 2])]
)
def test_ranks_in_the_data_set(order: str, rank: list[int]) -> None:
    """Ranks are per class; of equal scores the earlier row is first."""
    truth = detmap.truth_from_arrays([1, 2], [1, 2], [BOX] * 2, categories=NAMES)
    found = detmap.detections_from_arrays(
        truth, [1, 1, 2, 2, 1], [1, 2, 1, 2, 1], [BOX] * 5, [0.5, 0.7, 0.6, 0.7, 0.9]
    )
    settings = {"limits.scope": "dataset", "limits.order": order, "limits.max_dets": [9]}
    rules = RULES.override(settings | {"metrics": ["AP"]})
    assert scope.rank_in_dataset(found, rules).tolist() == rank


def test_a_note_where_rotated_objects_are_compared_as_upright_boxes() -> None:
    truth = detmap.truth_from_arrays([1, 1], [1, 1], [BOX] * 2)
    assert scope.noted_upright(truth, RULES) is truth
    rotated = replace(truth, shapes=RotatedBoxes(np.array([[5, 5, 10, 10, 0.5]] * 2)))
    assert scope.noted_upright(rotated, detmap.load_protocol("dota")) is rotated
    (note,) = scope.noted_upright(rotated, RULES).notes[len(truth.notes) :]
    assert (note.code, note.count) == ("rotated-upright", 2)
    assert note.text.endswith("see -p dota")


NOTHING = listed([], [])
SOFT = {"scope.not_exhaustive": "neutral"}


@pytest.mark.parametrize(
    ("given", "rules", "codes"),
    [
        (None, {}, []),
        (None, {"scope.unlisted": "drop"}, ["scope-missing"]),
        (None, SOFT, []),
        (NOTHING, {}, ["scope-unused"]),
        (NOTHING, {"scope.unlisted": "drop"}, []),
        (NOTHING, SOFT, []),
        (listed([(1, ABSENT)], []), {}, ["scope-unused"]),
        (listed([(1, ABSENT)], []), SOFT, ["scope-unused"]),
        (listed([(1, ABSENT)], []), {"scope.unlisted": "drop"}, []),
        (listed([(1, DERIVED)], []), {}, []),
    ],
)
def test_a_note_where_the_rules_do_not_fit_the_scope(
    given: Scope | None, rules: dict[str, Any], codes: list[str]
) -> None:
    truth = detmap.truth_from_arrays([1, 2], [1, 1], [BOX] * 2, categories=NAMES)
    every = scope.scope_notes(replace(truth, scope=given), RULES.override(rules))
    notes = [note for note in every if note.is_shown]
    assert [note.code for note in notes] == codes
    assert [note.count for note in notes] == [2] * len(codes)


@pytest.mark.parametrize(("width", "height"), [(np.nan, 20), (20, np.nan), (np.nan, np.nan)])
def test_clipping_needs_both_sides_of_an_image(width: float, height: float) -> None:
    truth = detmap.truth_from_arrays([1], [1], [BOX])
    found = detmap.detections_from_arrays(truth, [1], [1], [BOX], [0.9])
    w, h = np.array([width], dtype=float), np.array([height], dtype=float)
    truth = replace(truth, images=replace(truth.images, width=w, height=h))
    with pytest.raises(detmap.DataError, match="image 1 has no size"):
        scope.clipped(truth, found, RULES.override({"boxes.clip": "crowdhuman"}))
