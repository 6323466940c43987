"""The keys that named tools need: for each the smallest data that it changes, by hand."""

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import detmap
from detmap.core import protocol
from detmap.core.matching import unstable_sorts as orders
from tests.protocol.test_keys import FAR, PLAIN, TWO, A, B, Boxes, Data, data
from tests.support import builders as make

f32 = np.float32
VOC = {"boxes.extent": "as_written"}


def result(tables: Data, settings: dict[str, Any]) -> detmap.Result:
    return detmap.evaluate(*tables, "coco-bbox", settings=PLAIN | settings)


def counts(tables: Data, settings: dict[str, Any]) -> str:
    found = result(tables, settings).counts()
    return " ".join(str(found[name]) for name in ("tp", "fp", "ignored", "missed"))


def ap(tables: Data, settings: dict[str, Any]) -> float:
    return result(tables, {"ap.integrator": "all_points"} | settings).metrics["AP"]


def overlap(tables: Data, settings: dict[str, Any]) -> float:
    """Of the single detection with the single object, as it was compared."""
    rules = detmap.load_protocol("coco-bbox").override(
        PLAIN | {"iou.thresholds": [0.01]} | settings
    )
    matches = detmap.match(*tables, rules, taken=True)
    (found,) = matches.taken.overlap.tolist()
    return float(found)


# ---- overlaps, to the last bit

OBJECT, FOUND = (10.1, 255.7, 30.3, 40.4), (11.3, 256.7, 29.1, 41.9)


def iou(number: Any, a: Any, b: Any, pixel: int = 0) -> float:
    """Of corners (4,), every step rounded to `number`."""
    a, b, one = number(a), number(b), number(pixel)
    width = min(a[2], b[2]) - max(a[0], b[0]) + one
    height = min(a[3], b[3]) - max(a[1], b[1]) + one
    areas = [(c[2] - c[0] + one) * (c[3] - c[1] + one) for c in (a, b)]
    shared = width * height
    return float(shared / (areas[1] + areas[0] - shared))


def corners(box: tuple[float, ...], *, voc: bool = False) -> Any:
    x, y, width, height = box
    return np.array([x + voc, y + voc, x + width, y + height])


a, b = corners(OBJECT), corners(FOUND)
va, vb = corners(OBJECT, voc=True), corners(FOUND, voc=True)
SINGLE = {"boxes.precision": "float32", "iou.arithmetic": "float32"}
INCLUSIVE = {"boxes.extent": "inclusive"}
sides = [np.concatenate([f32(c[:2]), f32(c[2:]) - f32(c[:2])]).astype(float) for c in (a, b)]
centers = [
    (f32((c[0] + c[2]) / 2), f32((c[1] + c[3]) / 2), f32(w), f32(h))
    for c, (_, _, w, h) in ((a, OBJECT), (b, FOUND))
]
from_center = [
    np.array([x - w / f32(2), y - h / f32(2), x + w / f32(2), y + h / f32(2)])
    for x, y, w, h in centers
]


def of_centers() -> float:
    """darknet: edges from the centre, areas from the sides."""
    p, q = from_center
    shared = (min(p[2], q[2]) - max(p[0], q[0])) * (min(p[3], q[3]) - max(p[1], q[1]))
    areas = [w * h for _, _, w, h in centers]
    return float(shared / (areas[1] + areas[0] - shared))


OVERLAPS: dict[str, tuple[dict[str, Any], dict[Any, float]]] = {
    "boxes.precision": (
        VOC,
        {
            "float64": iou(np.float64, a, b),
            "float32": iou(np.float64, f32(a).astype(float), f32(b).astype(float)),
        },
    ),
    "iou.arithmetic": (
        VOC | {"boxes.precision": "float32"},
        {
            "float64": iou(np.float64, f32(a).astype(float), f32(b).astype(float)),
            "float32": iou(f32, a, b),
        },
    ),
    "boxes.first_pixel": (
        INCLUSIVE | SINGLE,
        {"one": iou(f32, va, vb, 1), "zero": iou(f32, va - 1, vb - 1, 1)},
    ),
    "boxes.extent": (SINGLE, {"inclusive": iou(f32, va, vb, 1), "as_written": iou(f32, a, b)}),
    "boxes.form": (VOC | SINGLE, {"edges": iou(f32, a, b), "center": of_centers()}),
    "boxes.object_shift": (VOC, {0: iou(np.float64, a, b), -1: iou(np.float64, a - 1, b)}),
    "detections.box_decimals": (
        VOC,
        {-1: iou(np.float64, a, b), 0: iou(np.float64, a, np.array([11, 257, 40, 299]))},
    ),
}


@pytest.mark.parametrize("key", OVERLAPS)
def test_a_key_moves_an_overlap(key: str) -> None:
    settings, expected = OVERLAPS[key]
    tables = data([OBJECT], [FOUND])
    found = {value: overlap(tables, settings | {key: value}) for value in expected}
    assert found == expected
    assert len(set(expected.values())) > 1


def test_the_shared_area_alone_may_be_in_float64() -> None:
    p, q = f32(a), f32(b)
    width, height = min(p[2], q[2]) - max(p[0], q[0]), min(p[3], q[3]) - max(p[1], q[1])
    shared = float(width) * float(height)
    areas = [(c[2] - c[0]) * (c[3] - c[1]) for c in (q, p)]
    mixed = shared / (float(areas[0] + areas[1]) - shared)
    found = overlap(data([OBJECT], [FOUND]), VOC | SINGLE | {"iou.arithmetic": "mixed"})
    assert found == mixed != iou(f32, a, b)


def test_sides_in_float32_and_fractions_of_an_image() -> None:
    left, right = ([*s[:2], s[0] + s[2], s[1] + s[3]] for s in sides)
    areas = [s[2] * s[3] for s in sides]
    shared = (min(left[2], right[2]) - max(left[0], right[0])) * (
        min(left[3], right[3]) - max(left[1], right[1])
    )
    settings = VOC | {"boxes.precision": "float32", "boxes.form": "sides"}
    assert overlap(data([OBJECT], [FOUND]), settings) == shared / (areas[1] + areas[0] - shared)
    tables = data([(0, 0, 30, 10)], [(0, 0, 10, 10)], size=(1000, 1000))
    ways = {form: overlap(tables, {"boxes.form": form}) for form in ("edges", "fractions")}
    assert ways["edges"] == 1 / 3 != ways["fractions"]
    assert ways["fractions"] == overlap(tables, {"boxes.form": "thousandths"})
    with pytest.raises(detmap.DataError, match=r"has no size, but boxes\.form requires it"):
        overlap(data([A], [A]), {"boxes.form": "fractions"})


def test_sides_anew_from_the_corners() -> None:
    tables = data([OBJECT], [FOUND])
    anew = overlap(tables, {"boxes.form": "corners"})
    assert anew == iou(np.float64, a, b)
    assert anew != overlap(tables, {"boxes.form": "edges"})  # areas of the sides as given


def test_areas_are_in_the_numbers_of_the_boxes() -> None:
    """Of an object by the ground truth, and of a detection by its box: just below 1024, and
    1024.
    """
    below, boxes = 1024 - 1e-9, [(0, 0, 32, 32)]
    truth = detmap.truth_from_arrays([0], [0], boxes, area=[below])
    found = detmap.detections_from_arrays(truth, [0], [0], [(55.7, 0, 64, 16)], [0.5])
    of_large = {"subsets": {"large": {"area": [1024, 1e10]}}}
    assert counts((truth, found), of_large) == "0 1 0 0"
    single = of_large | {"boxes.precision": "float32"}
    assert float(np.float32(119.7)) - float(np.float32(55.7)) < 64
    assert counts((truth, found), single) == "0 0 1 1"


def test_the_area_of_the_box_whatever_the_truth_says() -> None:
    """Under extents by COCO, by VOC and as the files have them, from either truth."""
    truth = detmap.truth_from_arrays([0], [0], [(0, 0, 10, 10)], area=[5000])
    found = detmap.detections_from_arrays(truth, [0], [0], [(0, 0, 10, 10)], [0.5])
    voc = replace(truth, boxes=np.array([[1.0, 1, 10, 10]]), box_format="voc")

    def areas(of: detmap.Truth, extent: str) -> list[int]:
        ranges = {f"s{n}": {"box_area": [n, n]} for n in (81, 99, 100, 121)}
        rules = {"subsets": ranges, "boxes.extent": extent, "metrics": ["AR@subset", "AR"]}
        return result((of, found), rules).scores.n_objects[0].tolist()

    assert areas(truth, "continuous") == areas(voc, "continuous") == [0, 0, 1, 0]
    assert areas(voc, "inclusive") == areas(truth, "inclusive") == [0, 0, 1, 0]
    assert areas(truth, "as_written") == [0, 0, 1, 0]  # 0 0 10 10
    assert areas(voc, "as_written") == [1, 0, 0, 0]  # 1 1 10 10


def test_corners_as_vocs_files_have_them() -> None:
    truth, found = data([OBJECT], [FOUND])
    tables = (
        replace(truth, boxes=va[None], box_format="voc"),
        replace(found, boxes=vb[None], box_format="voc"),
    )
    assert overlap(tables, SINGLE | {"boxes.extent": "inclusive"}) == iou(f32, va, vb, 1)
    assert overlap(tables, SINGLE | VOC) == iou(f32, va, vb)
    rest = np.array([1, 1, 1, 1])
    zero = SINGLE | VOC | {"boxes.first_pixel": "zero"}
    assert overlap(tables, zero) == iou(f32, va - rest, vb - rest)


def test_a_padded_box_ends_a_pixel_later_in_float32() -> None:
    padded = [np.array([*f32(c[:2] - 1), *(f32(c[2:] - 1) + f32(1))]) for c in (va, vb)]
    settings = SINGLE | {"boxes.extent": "padded", "boxes.first_pixel": "zero"}
    assert overlap(data([OBJECT], [FOUND]), settings) == iou(f32, *padded)


def test_the_least_area_that_is_divided_by() -> None:
    tables = data([(0, 0, 0.5, 0.5)], [(0, 0, 0.5, 0.5)])
    found = [overlap(tables, {"iou.least_union": least}) for least in (0, 1)]
    assert found == [1.0, 0.25]


# ---- verdicts

VERDICTS: dict[str, tuple[Data, dict[str, Any], dict[Any, str]]] = {
    # Half of the detection lies on the crowd.
    "iou.absorb": (
        data([(0, 0, 10, 10)], [(5, 0, 10, 10)], roles={"crowd": [True]}),
        {},
        {">=": "0 0 1 0", ">": "0 1 0 0"},
    ),
    "matching.prefer": (
        data([A, (2, 0, 10, 10)], [A], roles={"crowd": [True, False]}),
        {"matching.rule": "best_any", "matching.neutral": {"crowd": "ignore"}},
        {"overlap": "0 0 1 1", "to_find": "1 0 0 0"},
    ),
    # The first detection meets the flags of the first object, the second those of the second.
    "matching.flags": (
        data([A, B], [B, A], roles={"crowd": [True, False]}),
        {"matching.rule": "best_any", "matching.neutral": {"crowd": "ignore"}},
        {"own": "1 0 1 0", "repeated": "1 0 1 1"},
    ),
    "matching.neutral": (
        data([A, B], [A], roles={"crowd": [True, False]}),
        {},
        {"{crowd='ignore'}": "0 0 1 1", "{crowd='absent'}": "0 1 0 1"},
    ),
    # The neutral object is first in the ground truth.
    "matching.equal": (
        data([A, A], [A], roles={"crowd": [True, False]}),
        {"matching.rule": "best_any", "matching.neutral": {"crowd": "ignore"}},
        {"first": "0 0 1 1", "first_to_find": "1 0 0 0"},
    ),
    "detections.above": (
        data([A], [A, FAR], [0.5, 0.3]),
        {},
        {"[]": "1 1 0 0", "[0.3]": "1 0 0 0", "[0.5]": "0 0 0 1"},
    ),
    # The score is more than 0.1, but its nearest float32 is that of 0.1.
    "detections.score_precision": (
        data([A], [A], [0.1 + 1e-12]),
        {"detections.above": [0.1]},
        {"float64": "1 0 0 0", "float32": "0 0 0 1"},
    ),
    "boxes.empty": (
        data([A], [(0, 0, 0, 5), A], [0.9, 0.5]),
        {"limits.max_dets": [1]},
        {"drop": "0 0 0 1", "detections": "1 0 0 0"},
    ),
}


# A small object that nobody finds; a large one, outside the subset, that the detection meets.
VERDICTS["matching.neutral_when"] = (
    data([(50, 0, 4, 4), A], [A]),
    {"subsets": {"small": {"area": [0, 50]}}, "detections.outside": "count"},
    {"unmatched": "0 0 1 1", "none_free": "0 1 0 1"},
)


@pytest.mark.parametrize("key", VERDICTS)
def test_a_key_moves_verdicts(key: str) -> None:
    tables, settings, expected = VERDICTS[key]
    found = {value: counts(tables, settings | {key: value}) for value in expected}
    assert found == expected
    assert len(set(expected.values())) > 1


def test_a_region_takes_what_no_object_took() -> None:
    """A region over A and its neighbourhood; three detections in it, one of which is A's, one that
    comes too late for A, one alone; and one elsewhere.
    """
    region, inside, outside = (0, 0, 40, 40), (20, 20, 10, 10), (80, 80, 10, 10)
    tables = data([A, region], [A, A, inside, outside], roles={"group_of": [False, True]})
    rules = {"matching.rule": "best_any", "matching.neutral": {}}
    expected = {
        "count": "1 3 0 1",
        "absorb": "0 1 3 1",  # the largest overlap is that with the region
        "region": "1 1 2 0",
        "region_to_find": "2 1 1 0",
        "absent": "1 3 0 0",
    }
    found = {what: counts(tables, rules | {"matching.neutral.group_of": what}) for what in expected}
    assert found == expected
    for what in ("region", "region_to_find"):
        settings = rules | {"matching.neutral.group_of": what}
        taken = result(tables, settings).matches.taken
        assert taken is None
        protocol = detmap.load_protocol("coco-bbox").override(PLAIN | settings)
        taken = detmap.match(*tables, protocol, taken=True).taken
        assert taken.overlap.tolist() == [1.0, 1.0, 1.0]
        assert taken.object.tolist() == [0, 1, 1]


def test_of_two_regions_a_detection_is_in_the_one_that_holds_more_of_it() -> None:
    tables = data(
        [(0, 0, 10, 10), (5, 0, 10, 10)],
        [(4, 0, 10, 10), (6, 0, 10, 10), (0, 0, 4, 4)],
        roles={"group_of": [True, True]},
    )
    rules = {"matching.rule": "best_any", "matching.neutral": {"group_of": "region_to_find"}}
    assert counts(tables, rules) == "2 0 1 0"


# ---- numbers

LATER = data([A], [A, A], [0.5, 0.9])  # the better one is second in the input
EQUAL = data([A], [A, A], [0.5, 0.5])
FALSE_FIRST = data([A], [FAR, A], [0.5, 0.5])
HALF_FOUND = data([A, B], [A], [0.9])
CATS_AND_DOGS = data(
    [A, B], [A, FAR, B], [0.9, 0.8, 0.7], object_class=[1, 2], label=[1, 2, 2], **TWO
)
TRAPEZOID = {"ap.integrator": "trapezoid", "ap.grid": [0, 0.5, 1]}

NUMBERS: dict[str, tuple[Data, dict[str, Any], dict[Any, float]]] = {
    "matching.order": (LATER, {}, {"ranking": 1.0, "class": 1.0, "image": 1.0, "input": 0.5}),
    "matching.sort": (EQUAL, {"matching.order": "class"}, {"stable": 1.0, "reversed": 0.5}),
    "detections.score_decimals": (
        data([A], [FAR, A], [0.12341, 0.12342]),
        {},
        {-1: 1.0, 5: 1.0, 3: 0.5},
    ),
    "ranking.sort": (FALSE_FIRST, {}, {"stable": 0.5, "reversed": 1.0}),
    "ranking.equal": (FALSE_FIRST, {}, {"order": 0.5, "true_first": 1.0}),
    # Image 2 comes first in the input; its detection is false.
    "ranking.ties": (
        data([A], [FAR, A], [0.5, 0.5], image=[2, 1], images=[1, 2]),
        {},
        {"image": 1.0, "first_seen": 0.5},
    ),
    # Lines from (0, 1) to (1/2, 1) and on to (1, 0), or down at 1/2; read at 0, 1/2, 1.
    "ap.tail": (HALF_FOUND, TRAPEZOID, {"ramp": 0.75, "drop": 0.25}),
    "ap.arithmetic": (
        data([A], [FAR, FAR, A]),
        {},
        {"float64": 1 / 3, "float32": float(f32(1) / f32(3))},
    ),
    "ap.stored": (data([A], [FAR, FAR, A]), {}, {"float64": 1 / 3, "float32": float(f32(1 / 3))}),
    # Of each class: 1 and 1/2; of both together: true, false, true.
    "ap.pool": (CATS_AND_DOGS, {}, {"class": 0.75, "all": 0.5 + 0.5 * 2 / 3}),
    "mean.undetected": (data([A, B], [A], object_class=[1, 2], **TWO), {}, {0: 0.5, -1: 0.0}),
    "mean.undefined": (data([A], [A], **TWO), {}, {"zero": 0.5, "detected": 1.0}),
    "mean.weights": (
        data([A, B, FAR], [A, B], object_class=[1, 1, 2], **TWO),
        {},
        {"equal": 0.5, "objects": 2 / 3},
    ),
    "mean.precision": (
        data([A], [FAR, FAR, A]),
        {},
        {"float64": 1 / 3, "float32": float(f32(1 / 3)), "rounded": float(f32(1 / 3))},
    ),
}


@pytest.mark.parametrize("key", NUMBERS)
def test_a_key_moves_a_number(key: str) -> None:
    tables, settings, expected = NUMBERS[key]
    found = {value: ap(tables, settings | {key: value}) for value in expected}
    assert found == pytest.approx(expected, abs=1e-15)
    assert len(set(expected.values())) > 1


def test_each_step_as_high_as_the_envelope_before_it() -> None:
    """True, false, true: recall 1/2, 1/2, 1 under the envelope 1, 2/3, 2/3."""
    tables = data([A, B], [A, FAR, B])
    ways = [ap(tables, {"ap.integrator": rule}) for rule in ("all_points", "left_envelope")]
    assert ways == [0.5 + 0.5 * 2 / 3, 0.5 + 0.5 * 2 / 3]
    tables = data([A, B], [A, B, FAR])
    assert ap(tables, {"ap.integrator": "left_envelope"}) == 1.0
    tables = data([A, B, (40, 0, 10, 10)], [A, B, FAR, FAR, (40, 0, 10, 10)])
    left = ap(tables, {"ap.integrator": "left_envelope"})
    assert left == pytest.approx(2 / 3 * 1 + 1 / 3 * 0.6, abs=1e-15)
    tables = data([A, B], [A, B, *[FAR] * 2])
    assert ap(tables, {"ap.integrator": "left_envelope"}) == 1.0


def test_a_class_without_objects_has_no_ap_or_0() -> None:
    tables = data([A], [A], **TWO)
    told = [
        result(tables, {"ap.no_objects": way}).per_class[1]["AP"] for way in ("undefined", "zero")
    ]
    assert np.isnan(told[0])
    assert told[1] == 0.0


def test_nan_leaves_no_mean_where_such_a_class_has_detections() -> None:
    rules = {"mean.undefined": "no_mean", "ap.epsilon": 0.0}
    assert ap(data([A], [A], **TWO), rules) == 0.5
    assert np.isnan(ap(data([A], [A, FAR], label=[1, 2], **TWO), rules))


@pytest.mark.parametrize("rule", ["no_mean", "detected", "zero", "one"])
def test_the_mean_of_a_group_is_that_of_its_classes_alone(rule: str) -> None:
    """A dog is detected, and there is none; the cats' mean does not depend on it."""
    group = {"metrics": ["AP50", "AP50-cats"], "groups": {"cats": ["cat"]}, "mean.undefined": rule}
    for given in (data([A], [A, FAR], label=[1, 2], **TWO), data([A], [A], **TWO)):
        found = result(given, group).metrics
        assert found["AP50-cats"] == pytest.approx(1.0)
    nothing = data([B], [A, FAR], label=[1, 2], object_class=[2], **TWO)
    found = result(nothing, group).metrics
    expected = {"no_mean": np.nan, "one": 1.0}.get(rule, 0.0)
    assert found["AP50-cats"] == pytest.approx(expected, nan_ok=True)


def test_where_the_reference_stops_a_note_says_so() -> None:
    tables = data([A, B], [A], object_class=[1, 2], **TWO)
    neutral = data([A, B], [A], roles={"crowd": [True, False]})
    for given, stop in ((tables, "no_detections"), (neutral, "neutral_first")):
        plain = result(given, {})
        told = result(given, {"ranking.stops_at": [stop]})
        assert told.metrics == plain.metrics
        assert "reference-stops" in [note.code for note in told.notes]
        assert "reference-stops" not in [note.code for note in plain.notes]


def test_parts_of_an_area_are_added_as_numpy_does_or_one_by_one() -> None:
    boxes: Boxes = [(20 * i, 0, 10, 10) for i in range(30)]
    found = [box for i, box in enumerate(boxes) for box in ([box] if i % 3 else [FAR, box])]
    tables = data(boxes, found, np.linspace(0.9, 0.1, len(found)).tolist())
    curve = result(tables, {}).curve("cat")
    recall, precision = np.append(0.0, curve[0]), np.maximum.accumulate(curve[1][::-1])[::-1]
    steps = np.flatnonzero(np.diff(recall))
    parts = (recall[steps + 1] - recall[steps]) * precision[steps]
    settings = {"ap.epsilon": 0.0}
    assert ap(tables, settings | {"ap.sum": "pairwise"}) == np.sum(parts)
    assert ap(tables, settings | {"ap.sum": "running"}) == np.cumsum(parts)[-1]


# ---- what NumPy is asked to sort


@pytest.fixture
def sorted_by_numpy(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, str]]:
    """Length and type of every list whose order an unstable sort decides."""
    asked: list[tuple[int, str]] = []

    def spy(score: Any, how: str) -> Any:
        asked.append((len(score), score.dtype.name))
        return sort(score, how)

    sort = orders._sorted
    monkeypatch.setattr(orders, "_sorted", spy)
    return asked


UNSTABLE = {"ranking.sort": "unstable", "detections.score_precision": "float32"}
TIED = data([A, B], [A, A, FAR, B], [0.5] * 4, object_class=[1, 2], label=[1, 1, 1, 2], **TWO)


@pytest.mark.parametrize(
    "settings, asked",
    [
        ({}, [(3, "float32")]),
        ({"ranking.precision": "float64"}, [(3, "float64")]),
        ({"ranking.of": "all"}, [(4, "float32")]),
        ({"ranking.sort": "stable"}, []),
        ({"ranking.sort": "objects"}, [(3, "float32")]),
    ],
)
def test_lists_with_equal_scores_are_sorted_by_numpy(
    settings: dict[str, Any], asked: list[Any], sorted_by_numpy: list[tuple[int, str]]
) -> None:
    notes = [note.code for note in result(TIED, UNSTABLE | settings).notes]
    assert sorted_by_numpy == asked
    assert ("order-undecided" in notes) == bool(asked)


@pytest.mark.parametrize("ignored, asked", [("stay", [3]), ("leave", [3, 2])])
def test_ignored_detections_may_leave_the_list_before_it_is_sorted(
    ignored: str, asked: list[int], sorted_by_numpy: list[tuple[int, str]]
) -> None:
    tables = data([A, B], [A, FAR, B], [0.5] * 3, roles={"crowd": [True, False]})
    result(tables, UNSTABLE | {"ranking.ignored": ignored})
    assert [n for n, _ in sorted_by_numpy] == asked


def test_without_equal_scores_nothing_is_undecided() -> None:
    notes = result(data([A], [A, FAR]), UNSTABLE | {"ranking.of": "all"}).notes
    assert "order-undecided" not in [note.code for note in notes]


def test_the_choice_among_equal_overlaps_is_that_of_a_sort() -> None:
    tables = data([A, A], [A], roles={})
    for equal in ("sorted", "sorted_own"):
        notes = result(tables, {"matching.rule": "best_any", "matching.equal": equal}).notes
        assert "choice-undecided" in [note.code for note in notes]


# ---- precision, recall and F1 at one score

ONE_OF_TWO = data([A], [A, FAR], [0.9, 0.2])  # from 0.9 to 0.2, precision falls from 1 to 1/2
ELEVEN = {"operating.rule": "best_mean_f1", "operating.samples": 11, "operating.smooth": 0}
POINTS: dict[str, tuple[Data, str, dict[str, Any], dict[Any, float]]] = {
    "operating.score": (ONE_OF_TWO, "P", {}, {0.25: 1.0, 0.2: 1.0, 0.1: 0.5}),
    "operating.rule": (data([A], [A], [0.2]), "R", ELEVEN, {"above": 0.0, "best_mean_f1": 1.0}),
    "operating.samples": (ONE_OF_TWO, "P", ELEVEN, {11: 1.0, 3: 1 - 0.5 * 0.4 / 0.7}),  # at 0.5
    "operating.smooth": (ONE_OF_TWO, "P", ELEVEN, {0: 1.0, 0.2: 1 - 0.5 * 0.1 / 0.7}),  # at 0.8
}


@pytest.mark.parametrize("key", POINTS)
def test_a_key_moves_the_operating_point(key: str) -> None:
    tables, name, settings, expected = POINTS[key]
    for value, number in expected.items():
        found = result(tables, {"metrics": ["P", "R", "F1"]} | settings | {key: value})
        assert found.metrics[name] == pytest.approx(number, abs=1e-12)
        row = found.per_class[0]
        assert row[name] == found.metrics[name]  # of the only class


def test_the_operating_point_of_several_classes() -> None:
    """`above` counts all classes together, `best_mean_f1` averages those with objects."""
    tables = data(
        [A, B, FAR],
        [A, B, (0, 0, 100, 100)],
        [0.9, 0.8, 0.7],
        label=[1, 1, 2],
        object_class=[1, 1, 2],
        categories={1: "cat", 2: "dog"},
    )
    rows = {"metrics": ["P", "R", "F1", "P90"], "iou.thresholds": [0.5, 0.9]}
    found = result(tables, rows).metrics
    assert list(found.values()) == [2 / 3, 2 / 3, pytest.approx(2 / 3), 2 / 3]
    found = result(tables, rows | ELEVEN).metrics
    assert list(found.values()) == [pytest.approx(0.5)] * 4  # the first of equal means: at score 0


def test_no_operating_point_of_nothing() -> None:
    for settings in ({}, ELEVEN):
        found = result(data([], [A]), {"metrics": ["AP", "R"]} | settings).metrics
        assert np.isnan(found["R"])
    with pytest.raises(detmap.ProtocolError, match="'Ps' is read of all objects alone"):
        result(ONE_OF_TWO, {"metrics": ["Ps"]})


def test_operating_points_have_no_ties() -> None:
    equal = data([A], [A, FAR], [0.5, 0.5])
    found = result(equal, {"metrics": ["AP", "P"]})
    assert found.metrics["P"] == 0.5
    assert [note.code for note in found.notes].count("ties-show") == 0  # P has no bounds
    assert found.intervals().metrics["P"].value == 0.5
    with pytest.raises(detmap.ProtocolError, match="not available with the metric P"):
        found.ties()


def test_the_choice_of_an_index_that_nobody_sees_is_told_in_a_note() -> None:
    found = result(data([A, A, B], [A, B]), {"matching.equal": "index"})
    (note,) = (note for note in found.notes if note.code == "choice-undecided")
    assert (note.count, found.counts()["tp"]) == (1, 2)
    assert "the reference chooses by its own index" in note.text
    alone = result(data([A, B], [A, B]), {"matching.equal": "index"})
    assert "choice-undecided" not in [note.code for note in alone.notes]
    assert result(data([], [A]), {"matching.equal": "index"}).metrics.keys()


OTHERS: dict[str, tuple[dict[str, Any], list[Any]]] = {
    "iou.least_union": ({}, [0, 1]),
    "ranking.precision": (UNSTABLE, ["scores", "float64"]),
    "ranking.of": (UNSTABLE, ["class", "all"]),
    "ranking.ignored": (UNSTABLE, ["stay", "leave"]),
    "ranking.stops_at": ({}, [[], ["no_detections"]]),
    "ap.no_objects": ({}, ["undefined", "zero"]),
    "ap.sum": ({}, ["pairwise", "running"]),
}
"""Settings and values of keys whose examples are tests of their own."""


def test_rules_of_tools_have_intervals() -> None:
    for settings in ({"ap.sum": "pairwise"}, {"ap.integrator": "trapezoid"}):
        found = result(EQUAL, settings)
        assert found.intervals().metrics["AP"].value == found.metrics["AP"]


def test_parts_under_an_unstable_sort_are_not_merged() -> None:
    tables = data([A, A], [A, A], [0.5, 0.5], image=[1, 2], images=[1, 2], object_image=[1, 2])
    matches = result(tables, UNSTABLE).matches
    with pytest.raises(detmap.MergeError, match="match all images at once"):
        matches.select([1]).merge(matches.select([2]))
    stable = result(tables, {"detections.score_precision": "float32"})
    halves = [stable.matches.select([i]) for i in (1, 2)]
    assert detmap.summarize(halves[1].merge(halves[0])).metrics == stable.metrics


def test_every_tool_has_a_source_for_what_becomes_of_empty_boxes() -> None:
    for name in protocol.tools():
        text = (make.ROOT / "configs" / "tools" / f"{name}.toml").read_text()
        (value,) = re.findall(r'^empty = "(\w+)" +# .+$', text, re.MULTILINE)
        assert detmap.load_protocol(name).boxes.empty == value


@pytest.mark.parametrize("name", [name for name in protocol.tools() if "tfod" in name])
def test_tensorflows_evaluators_leave_out_boxes_without_area(name: str) -> None:
    """In the numbers that they compare: in float32 a width of 1e-9 at 1000 is none."""
    for flat in ((0, 0, 0, 10), (0, 0, 10, 0), (1000, 0, 1e-9, 10)):
        found = detmap.evaluate(*data([A], [flat, A], [0.9, 0.8]), name)
        assert next(iter(found.metrics.values())) == 1.0
        assert "box-flat" in [note.code for note in found.notes]
