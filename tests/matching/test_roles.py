"""What a protocol makes of rows, by hand."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import detmap
from detmap.core.matching.roles import missing_roles
from detmap.errors import DataError


@pytest.mark.parametrize("refuses", [False, True])
@pytest.mark.parametrize("reversed_box", [False, True])
def test_reversed_boxes_are_refused_by_protocol(refuses: bool, reversed_box: bool) -> None:
    truth = detmap.truth_from_arrays([1], [1], [[0, 0, 9, 9]], categories={1: "a"})
    boxes = np.array([[0, 0, 9, 9], [1, 1, 4, 4.0]])
    found = detmap.detections_from_arrays(truth, [1, 1], [1, 1], boxes, [0.9, 0.8])
    if reversed_box:
        boxes[1, 2:] = -4
        found = replace(found, boxes=boxes)
    rules = detmap.load_protocol("coco-bbox")
    rules = rules.override({"boxes.reversed": "refuse" if refuses else "no_overlap"})
    if refuses and reversed_box:
        with pytest.raises(DataError, match="1 box has reversed corners, the first is 1"):
            detmap.match(truth, found, rules)
    else:
        assert len(detmap.match(truth, found, rules)) == 2


def objects(*roles: str) -> detmap.Truth:
    """One object without any of these roles."""
    truth = detmap.truth_from_arrays([1], [1], [[0, 0, 9, 9]], categories={1: "a"})
    return replace(truth, roles={role: np.zeros(1, dtype=bool) for role in roles})


@pytest.mark.parametrize(
    ("roles", "noted"),
    [
        ((), ["crowd", "difficult"]),
        (("ignore",), ["crowd", "difficult"]),
        (("crowd",), []),
        (("difficult",), []),
    ],
)
def test_crowd_and_difficult_stand_for_each_other(roles: tuple[str, ...], noted: list[str]) -> None:
    rules = replace(detmap.load_protocol("coco-bbox"), stock=False)
    notes = missing_roles(objects(*roles), rules)
    assert [note.text.split("'")[1] for note in notes] == noted


@pytest.mark.parametrize(
    ("roles", "rules", "noted"),
    [
        ((), {}, True),
        (("ignore",), {}, False),
        (("crowd",), {"crowd": "count"}, True),  # counts as others do: it does not matter
        ((), {"unlabelled": "ignore"}, True),
        (("unlabelled",), {"unlabelled": "ignore"}, False),
    ],
)
def test_a_benchmark_notes_that_its_flag_ignore_is_missing(
    roles: tuple[str, ...], rules: dict[str, Any], noted: bool
) -> None:
    settings = {f"matching.neutral.{role}": what for role, what in rules.items()}
    protocol = detmap.load_protocol("citypersons").override(settings)
    notes = missing_roles(objects(*roles), protocol)
    assert any("the flag ignore" in note.text for note in notes) == noted
