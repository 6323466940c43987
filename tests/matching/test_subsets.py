"""Measures and ranges of subsets, listed pairs, missing roles and limits, by hand."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import detmap
from detmap.core.matching import roles, scope, subsets
from detmap.core.overlaps.rotated_boxes import RotatedBoxes
from detmap.core.tables import ABSENT, DERIVED, Scope

BOX = np.array([[10.0, 20.0, 3.0, 5.0]])


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"boxes.extent": "as_written"},
        {"boxes.extent": "inclusive"},
        {"boxes.form": "corners"},
        {"boxes.precision": "float32"},
    ],
)
def test_the_area_of_a_box_is_width_times_height(settings: dict[str, Any]) -> None:
    protocol = detmap.load_protocol("coco-bbox").override(settings)
    for name, value in (("width", 3), ("height", 5), ("box_area", 15)):
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
    assert (nothing.off.tolist(), len(nothing.label)) == ([0, 0, 0], 0)
    given = Scope(
        np.array([0, 1, 3]),
        np.array([0, 0, 1], dtype=np.int32),
        np.array([ABSENT, DERIVED, ABSENT], dtype=np.uint8),
    )
    names = {1: "a", 2: "b"}
    truth = detmap.truth_from_arrays([1, 2], [1, 1], np.repeat(BOX, 2, axis=0), categories=names)
    kept = scope._listed(replace(truth, scope=given), protocol)
    assert (kept.off.tolist(), kept.label.tolist()) == ([0, 0, 1], [0])


@pytest.mark.parametrize(
    ("name", "noted"), [("coco-bbox", False), ("citypersons", True), ("caltech", False)]
)
def test_a_note_where_a_benchmark_reads_ignore_from_coco_files(name: str, noted: bool) -> None:
    truth = detmap.truth_from_arrays([1], [1], BOX)
    notes = roles.missing_roles(truth, detmap.load_protocol(name))
    assert any("flag ignore" in note.text for note in notes) == noted


INF = np.inf


def rules_of(settings: dict[str, Any]) -> detmap.Protocol:
    return detmap.load_protocol("coco-bbox").override(settings)


def objects(sizes: list[tuple[float, float]], **attributes: list[float]) -> detmap.Truth:
    boxes = [(0, 0, width, height) for width, height in sizes]
    n = len(boxes)
    return detmap.truth_from_arrays([1] * n, [1] * n, boxes, attributes=attributes)


@pytest.mark.parametrize("bounds", [[5, INF], [-INF, 5], [0, 5]])
def test_an_object_without_a_value_is_outside_ranges_with_one_end(bounds: list[float]) -> None:
    """Subset 0 has no range, subset 1 has one of the attribute."""
    truth = objects([(3, 5)] * 2, distance=[np.nan, 5])
    rules = rules_of({"subsets": {"all": {}, "some": {"distance": bounds}}})
    find = subsets.object_words(truth, rules).find & np.uint64(3)
    assert find.tolist() == [1, 3]


def test_objects_outside_a_subset_absorb_there_and_those_of_none_in_every() -> None:
    """Areas 15, in subset 0 alone, and 400, in none."""
    ranges = {"small": {"box_area": [0, 20]}, "tiny": {"box_area": [0, 10]}}
    words = {
        what: subsets.object_words(
            objects([(3, 5), (20, 20)]), rules_of({"subsets": ranges, "matching.outside": what})
        )
        for what in ("absorb", "ignore")
    }
    assert words["absorb"].absorb.tolist() == [2, 2**64 - 1]
    assert words["ignore"].absorb.tolist() == [0, 0]


@pytest.mark.parametrize(("n", "kind"), [(7, np.uint8), (8, np.uint8), (9, np.uint64)])
def test_detections_outside_of_the_last_subset(n: int, kind: Any) -> None:
    """Only the last subset has a range, which begins above the area of the box."""
    ranges: dict[str, Any] = {f"s{a}": {} for a in range(n - 1)} | {"last": {"area": [20, 100]}}
    truth = objects([(3, 5)])
    found = detmap.detections_from_arrays(truth, [1], [1], BOX, [0.9])
    words = subsets.detection_words(found, rules_of({"subsets": ranges}), "xywh")
    assert words.outside.dtype == kind
    assert words.outside.tolist() == [2 ** (n - 1)]
    assert len(words.dropped) == 0


def test_areas_of_detections_are_those_of_their_shapes_where_shapes_are_compared() -> None:
    """A rotated square of area 8, or 12 as given, in a box of 4 by 4, which counts otherwise."""
    truth = objects([(4, 4)])
    found = detmap.detections_from_arrays(truth, [1], [1], [[0, 0, 4, 4]], [0.9])
    square = RotatedBoxes(np.array([[2, 0, 4, 2, 2, 4, 0, 2.0]]))
    ranges = {"a": {"area": [0, 10]}, "w": {"width": [3, 5]}}
    for name, each, outside in (
        ("dota", replace(found, shapes=square), 0),
        ("dota", replace(found, shapes=replace(square, area=np.array([12.0]))), 1),
        ("dota", found, 1),
        ("coco-bbox", replace(found, shapes=square), 1),
    ):
        rules = detmap.load_protocol(name).override({"subsets": ranges, "metrics": ["AP"]})
        rules = rules.override({"detections.outside": "neutral"})
        assert subsets.detection_words(each, rules, "xywh").outside.tolist() == [outside], name


X, WIDTH = 0.1, 0.2
"""The edge at X + WIDTH is rounded: its distance to X is not WIDTH."""
EDGES = np.float32(X + WIDTH).astype(float) - np.float32(X).astype(float)


@pytest.mark.parametrize(
    ("settings", "width", "box_width"),
    [
        ({"boxes.form": "edges"}, WIDTH, WIDTH),
        ({"boxes.form": "corners"}, WIDTH, X + WIDTH - X),
        ({"boxes.form": "sides"}, WIDTH, WIDTH),
        ({"boxes.form": "corners", "boxes.extent": "inclusive"}, WIDTH, WIDTH),
        ({"boxes.extent": "as_written"}, WIDTH, X + WIDTH - X),
        ({"boxes.form": "edges", "boxes.precision": "float32"}, EDGES, EDGES),
        (
            {"boxes.form": "sides", "boxes.precision": "float32"},
            float(np.float32(EDGES)),
            float(np.float32(EDGES)),
        ),
    ],
)
def test_rounded_widths(settings: dict[str, Any], width: float, box_width: float) -> None:
    """The box is 1 high, so that its area is its width."""
    box, rules = np.array([[X, 0, WIDTH, 1]]), rules_of(settings)
    assert subsets.measure("width", box, "xywh", rules).tolist() == [width]
    assert subsets.measure("area", box, "xywh", rules).tolist() == [width]
    assert subsets.measure("box_area", box, "xywh", rules).tolist() == [box_width]


@pytest.mark.parametrize(
    ("tolerance", "enough"), [(0, INF), (1, 15 / (4 * 6)), (10, 15 / (13 * 15))]
)
def test_overlap_that_is_enough_for_a_small_object(tolerance: float, enough: float) -> None:
    """Of 3 by 5 pixels: w h / ((w + tolerance)(h + tolerance)), to be exceeded under ``>``."""
    truth = objects([(3, 5)])
    for comparison, expected in ((">=", enough), (">", np.nextafter(enough, INF))):
        rules = rules_of({"iou.tolerance": tolerance, "iou.comparison": comparison})
        assert subsets.object_words(truth, rules).enough.tolist() == [expected]


EXTENTS = ("continuous", "inclusive", "as_written", "padded")
PLACES = (0.0, 0.1, 1 / 3, 4.406, 77.77)


@pytest.mark.parametrize("extent", EXTENTS)
@pytest.mark.parametrize("side", [31.999, 32.0, 32.001])
def test_an_area_at_the_border_of_a_range(extent: str, side: float) -> None:
    """Both ends belong to a range: 32 x 32 is small and medium, wherever it lies, as an object and
    as a detection.
    """
    ranges = {"all": {}, "small": {"area": [0, 1024]}, "medium": {"area": [1024, 9216]}}
    rules = rules_of({"subsets": ranges, "boxes.extent": extent, "metrics": ["AP"]})
    wanted = [True, side <= 32, side >= 32]
    boxes = [[x, y, side, side] for x in PLACES for y in PLACES]
    n = len(boxes)
    truth = detmap.truth_from_arrays([1] * n, [1] * n, boxes)
    found = detmap.detections_from_arrays(truth, [1] * n, [1] * n, boxes, [0.9] * n)
    find = subsets.object_words(truth, rules).find
    outside = subsets.detection_words(found, rules, "xywh").outside
    for a, inside in enumerate(wanted):
        assert ((find >> np.uint64(a) & np.uint64(1)) == inside).all()
        assert ((outside >> a & 1) == (not inside)).all()


@pytest.mark.parametrize("extent", EXTENTS)
@pytest.mark.parametrize("side", [31.999, 32.0, 32.001])
def test_an_area_of_corners_is_that_of_the_source(extent: str, side: float) -> None:
    """Files of corners: x2 - x1 + 1, with the rounding of these operations, for both tables."""
    corners = np.array([[x, 0, x + side - 1, 31] for x in PLACES])
    sides = corners[:, 2] - corners[:, 0] + 1
    rules = rules_of({"boxes.extent": extent})
    assert subsets.measure("area", corners, "voc", rules).tolist() == (sides * 32).tolist()
    written = corners[:, 2] - corners[:, 0] if extent == "as_written" else sides
    height = 31 if extent == "as_written" else 32
    found = subsets.measure("box_area", corners, "voc", rules)
    assert found.tolist() == (written * height).tolist()
