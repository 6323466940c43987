"""Measures and ranges of subsets, listed pairs, missing roles and limits, by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import detmap
from detmap.matching import roles, scope, subsets
from detmap.tables import ABSENT, DERIVED, Scope

BOX = np.array([[10.0, 20.0, 3.0, 5.0]])


@pytest.mark.parametrize(
    ("settings", "sizes"),
    [
        ({}, (3, 5)),
        ({"boxes.extent": "as_written"}, (3, 5)),
        ({"boxes.extent": "inclusive"}, (3, 5)),
        ({"boxes.form": "corners"}, (3, 5)),
        ({"boxes.precision": "float32"}, (3, 5)),
    ],
)
def test_the_area_of_a_box_is_width_times_height(
    settings: dict[str, Any], sizes: tuple[float, float]
) -> None:
    protocol = detmap.load_protocol("coco-bbox").override(settings)
    width, height = sizes
    for name, value in (("width", width), ("height", height), ("box_area", width * height)):
        assert subsets.measure(name, BOX, "xywh", protocol) == pytest.approx([value])


def test_a_margin_widens_both_ends() -> None:
    bounds = np.array([[50.0, 200.0], [-np.inf, np.inf]])
    widened = subsets._widened(bounds, 1.25, upper_end=True)
    np.testing.assert_array_equal(widened, [[40, 250], [-np.inf, np.inf]])
    below = subsets._widened(bounds, 1.25, upper_end=False)
    np.testing.assert_array_equal(below, [[40, np.nextafter(250, 0)], [-np.inf, np.inf]])


def test_positive_pairs_are_those_that_are_not_known_to_be_absent() -> None:
    truth = detmap.truth_from_arrays([1, 2], [1, 1], np.repeat(BOX, 2, axis=0))
    protocol = detmap.load_protocol("coco-bbox").override({"scope.unlisted": "positive"})
    nothing = scope._listed(truth, protocol)
    assert nothing is not None
    assert (nothing.off.tolist(), len(nothing.label)) == ([0, 0, 0], 0)
    given = Scope(
        np.array([0, 1, 3]),
        np.array([0, 0, 1], dtype=np.int32),
        np.array([ABSENT, DERIVED, ABSENT], dtype=np.uint8),
    )
    names = {1: "a", 2: "b"}
    truth = detmap.truth_from_arrays([1, 2], [1, 1], np.repeat(BOX, 2, axis=0), categories=names)
    kept = scope._listed(replace(truth, scope=given), protocol)
    assert kept is not None
    assert (kept.off.tolist(), kept.label.tolist()) == ([0, 0, 1], [0])


@pytest.mark.parametrize(
    ("name", "noted"), [("coco-bbox", False), ("citypersons", True), ("caltech", False)]
)
def test_a_note_where_a_benchmark_reads_ignore_from_coco_files(name: str, noted: bool) -> None:
    truth = detmap.truth_from_arrays([1], [1], BOX)
    notes = roles.missing_roles(truth, detmap.load_protocol(name))
    assert any("flag ignore" in note.text for note in notes) == noted


def test_rows_beyond_a_limit_of_the_image_are_not_matched() -> None:
    truth = detmap.truth_from_arrays([1], [1], BOX, categories={1: "a", 2: "b"})
    found = detmap.detections_from_arrays(
        truth, [1, 1, 1], [1, 2, 2], np.repeat(BOX, 3, axis=0), [0.7, 0.9, 0.8]
    )
    rules = {"limits.scope": "image", "limits.max_dets": [2], "metrics": ["AP"]}
    matches = detmap.match(truth, found, detmap.load_protocol("coco-bbox").override(rules))
    assert matches.off.tolist() == [0, 0, 2]
    assert matches.score.tolist() == [0.9, 0.8]
