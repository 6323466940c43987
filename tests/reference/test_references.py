"""The twins against the official tool and examples worked by hand; the drawing against what it
promises."""

import copy
import math
from collections import Counter, defaultdict
from fractions import Fraction
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from sklearn.metrics import average_precision_score

from tests.reference import coco, curves, official, voc
from tests.support.drawing import (
    UNLISTED_CATEGORY,
    coco_data,
    draw_coco,
    draw_many_detections,
    draw_round_recall,
    draw_voc,
    many_detections,
)
from tests.support.tier import drawn

N_DRAWS = 300
BORDERS = (1024, 9216)
relaxed = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def assert_identical(found: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> None:
    """The same arrays to the last bit; == also fails on NaN, which has no place here."""
    for name in ("precision", "recall", "scores"):
        assert found[name].shape == expected[name].shape, name
        assert (found[name] == expected[name]).all(), name


# ---- COCO


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(drawn(N_DRAWS)))
def test_coco_twin_is_pycocotools_to_the_bit(seed: int) -> None:
    instances, results = draw_coco(np.random.default_rng(seed))
    expected = official.run(instances, results)
    found = coco.evaluate(instances, results)
    assert_identical(found, expected.eval)
    assert (coco.stats(found) == expected.stats).all()


@pytest.mark.parametrize(
    "draw", [draw_many_detections, pytest.param(draw_round_recall, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("seed", range(drawn(40)))
def test_coco_twin_is_pycocotools_past_the_limit_and_on_the_grid(seed: int, draw: Any) -> None:
    data = draw(np.random.default_rng(seed))
    assert_identical(coco.evaluate(*data), official.evaluate(*data))


@relaxed
@given(coco_data())
def test_coco_twin_is_pycocotools_with_other_parameters(data: tuple[dict, list]) -> None:
    parameters = {
        "iou_thresholds": [0.25, 0.5, 1.0],
        "recall_points": [0.0, 0.1, 0.5, 1.0],
        "area_ranges": [(0.0, 1e10), (100.0, 200.0), (1024.0, 1024.0)],
        "max_dets": [5, 0, 2],
    }
    expected = official.evaluate(
        *data,
        iouThrs=np.array(parameters["iou_thresholds"]),
        recThrs=np.array(parameters["recall_points"]),
        areaRng=parameters["area_ranges"],
        maxDets=parameters["max_dets"],
    )
    assert_identical(coco.evaluate(*data, **parameters), expected)


@relaxed
@given(coco_data(zero_id=True))
def test_coco_twin_takes_id_0_for_an_ordinary_object(data: tuple[dict, list]) -> None:
    instances, results = data
    renumbered = copy.deepcopy(instances)
    for number, annotation in enumerate(renumbered["annotations"], start=1):
        annotation["id"] = number
    without = copy.deepcopy(instances)
    for annotation in without["annotations"]:
        del annotation["id"]

    found = coco.evaluate(instances, results)
    assert_identical(found, official.evaluate(renumbered, results))
    assert_identical(found, coco.evaluate(without, results))


def test_pycocotools_loses_the_match_with_id_0() -> None:
    instances = {
        "images": [{"id": 1}],
        "categories": [{"id": 1}],
        "annotations": [{"id": 0, "image_id": 1, "category_id": 1, "bbox": [0, 0, 10, 10]}],
    }
    results = [{"image_id": 1, "category_id": 1, "bbox": [0, 0, 10, 10], "score": 1.0}]
    assert coco.stats(coco.evaluate(instances, results))[0] == pytest.approx(1.0)
    assert official.run(instances, results).stats[0] == 0.0


def test_official_leaves_its_arguments_alone() -> None:
    data = draw_coco(np.random.default_rng(1))
    before = copy.deepcopy(data)
    official.run(*data)
    assert data == before


# ---- VOC, by hand. Boxes are inclusive: (1, 1, 10, 10) is 10 pixels wide and high.

OBJECT = (1, 1, 10, 10, False)
DIFFICULT = (1, 1, 10, 10, True)
HALF = (1, 1, 5, 10)  # overlaps OBJECT by exactly 0.5
TP, FP, IGNORED = "TP", "FP", "IGNORED"


def test_voc_overlap_counts_both_ends() -> None:
    assert voc.overlap((1, 1, 10, 10), HALF) == 0.5
    assert voc.overlap((1, 1, 10, 10), (10, 10, 19, 19)) == 1 / 199  # one pixel in common
    assert voc.overlap((1, 1, 10, 10), (11, 1, 20, 10)) == -math.inf


def test_voc_match_exactly_at_the_threshold() -> None:
    detections = [("a", 0.9, *HALF)]
    assert voc.judge(detections, {"a": [OBJECT]}) == [TP]
    assert voc.judge(detections, {"a": [OBJECT]}, strict=True) == [FP]


def test_voc_looks_at_the_best_object_only() -> None:
    # The second detection prefers the taken object and gets nothing, though the free one overlaps
    # it by 8/12.
    objects = {"a": [(1, 1, 10, 10, False), (3, 1, 12, 10, False)]}
    detections = [("a", 0.9, 1, 1, 10, 10), ("a", 0.8, 1, 1, 10, 10)]
    assert voc.overlap(detections[1][2:], objects["a"][1][:4]) == 80 / 120
    assert voc.judge(detections, objects) == [TP, FP]


def test_voc_first_of_equal_objects_wins_difficult_or_not() -> None:
    twice = [("a", 0.9, *HALF), ("a", 0.8, *HALF)]
    assert voc.judge(twice, {"a": [DIFFICULT, OBJECT]}) == [IGNORED, IGNORED]
    assert voc.judge(twice, {"a": [OBJECT, DIFFICULT]}) == [TP, FP]


def test_voc_ties_stay_in_file_order() -> None:
    objects = {"a": [OBJECT], "b": [OBJECT]}
    away, half = ("b", 0.5, 90, 90, 99, 99), ("a", 0.5, *HALF)
    detections = [away, half, ("b", 0.7, *HALF), half]
    assert voc.rank(detections) == [2, 0, 1, 3]
    assert voc.judge(detections, objects) == [TP, FP, TP, FP]


def test_voc_refuses_an_unknown_image() -> None:
    with pytest.raises(KeyError):
        voc.judge([("c", 0.9, *HALF)], {"a": [OBJECT]})


def test_voc_average_precision_by_hand() -> None:
    # Ranked: neutral, hit, miss, hit, with 4 objects to find.
    recall, precision = voc.recall_precision([IGNORED, TP, FP, TP], 4)
    assert recall == [0, 0.25, 0.25, 0.5]
    assert math.isnan(precision[0])
    assert precision[1:] == [1, 1 / 2, 2 / 3]
    # 0, 0.1, 0.2 reach precision 1; 0.3, 0.4, 0.5 reach 2/3; the rest nothing
    assert voc.eleven_point(recall, precision) == pytest.approx((3 * 1 + 3 * (2 / 3)) / 11)
    assert voc.all_points(recall, precision) == pytest.approx(0.25 * 1 + 0.25 * (2 / 3))
    assert curves.step(recall, precision) == pytest.approx(0.25 * 1 + 0.25 * (2 / 3))
    sampled = curves.grid_envelope(recall, precision, [0, 0.25, 0.26, 0.5, 0.51])
    assert sampled == [1, 1, 2 / 3, 2 / 3, 0]


def test_voc_only_neutral_detections_are_undefined_at_eleven_points_as_in_the_devkit() -> None:
    recall, precision = voc.recall_precision([IGNORED, IGNORED], 3)
    assert math.isnan(voc.eleven_point(recall, precision))
    assert voc.all_points(recall, precision) == 0
    assert curves.step(recall, precision) == 0
    assert curves.grid_envelope(recall, precision, [0, 0.5]) == [0, 0]
    assert voc.eleven_point([], []) == voc.all_points([], []) == curves.step([], []) == 0


def test_the_colon_of_matlab_is_restated_to_the_bit() -> None:
    grid = voc.matlab_colon(0.0, 0.1, 1.0)
    assert grid == [0, 0.1, 0.2, 0.30000000000000004, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]
    # A difference that MATLAB itself printed: 0:0.1:0.3 less the first four of 0:0.1:0.4
    differences = np.subtract(voc.matlab_colon(0.0, 0.1, 0.3), voc.matlab_colon(0.0, 0.1, 0.4)[:4])
    shown = " ".join(f"{value / 1e-16:.4f}" for value in differences)
    assert shown == "0.0000 0.0000 -0.2776 -0.5551"
    assert voc.matlab_colon(0.0, 2.0, 5.0) == [0, 2, 4]
    assert voc.matlab_colon(1.0, 1.0, 1.0) == [1]
    assert voc.matlab_colon(1.0, 1.0, 0.0) == []


def test_the_grid_decides_where_recall_is_exactly_six_tenths() -> None:
    recall, precision = voc.recall_precision([TP, TP, TP], 5)
    assert voc.eleven_point(recall, precision) == pytest.approx(7 / 11)
    assert voc.eleven_point(recall, precision, np.arange(0.0, 1.1, 0.1)) == pytest.approx(6 / 11)


def test_mean_leaves_out_classes_without_objects_to_find() -> None:
    objects = {
        "found": {"a": [OBJECT]},
        "missed": {"a": [OBJECT]},
        "absent": {"a": []},
        "difficult": {"a": [DIFFICULT]},
    }
    detections = {name: [("a", 0.9, *HALF)] for name in objects if name != "missed"}
    assert voc.mean_ap(detections, objects) == pytest.approx(0.5)
    assert voc.mean_ap(detections, objects, strict=True) == 0
    assert voc.mean_ap(detections, objects, integrate=voc.all_points) == 0.5
    assert math.isnan(voc.class_ap(detections["absent"], objects["absent"]))
    assert math.isnan(voc.mean_ap(detections, {"absent": {"a": []}}))


# ---- integrators


def draw_verdicts(seed: int) -> tuple[list[str], int]:
    rng = np.random.default_rng(seed)
    verdicts = rng.choice([TP, FP, IGNORED], size=rng.integers(0, 30), p=[0.5, 0.3, 0.2]).tolist()
    return verdicts, verdicts.count(TP) + int(rng.integers(1, 4))


@pytest.mark.parametrize("seed", range(drawn(100)))
def test_all_points_is_the_integral_of_the_best_precision_still_ahead(seed: int) -> None:
    verdicts, n_objects = draw_verdicts(seed)
    area = Fraction(0)
    # the strip of recall between found - 1 and found objects
    for found in range(1, verdicts.count(TP) + 1):
        ahead = [
            Fraction(head.count(TP), head.count(TP) + head.count(FP))
            for head in (verdicts[:n] for n in range(1, len(verdicts) + 1))
            if head.count(TP) >= found
        ]
        area += Fraction(1, n_objects) * max(ahead)
    found_area = voc.all_points(*voc.recall_precision(verdicts, n_objects))
    assert found_area == pytest.approx(float(area), abs=1e-12)


@pytest.mark.parametrize("seed", range(drawn(50)))
def test_step_is_the_average_precision_of_scikit_learn(seed: int) -> None:
    verdicts = [verdict for verdict in draw_verdicts(seed)[0] if verdict != IGNORED] + [TP]
    truth = [verdict == TP for verdict in verdicts]
    expected = average_precision_score(truth, -np.arange(len(truth)))
    found = curves.step(*voc.recall_precision(verdicts, sum(truth)))
    assert found == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("seed", range(drawn(100)))
def test_grid_envelope_is_what_coco_samples(seed: int) -> None:
    verdicts, n_objects = draw_verdicts(seed)
    recall, precision = coco.recall_precision(verdicts, n_objects)
    sampled, _ = coco.sample(recall, precision, [0.0] * len(recall), coco.RECALL_POINTS)
    assert curves.grid_envelope(recall, precision, coco.RECALL_POINTS) == sampled


# ---- the drawing keeps its promise


def coco_troubles(instances: dict, results: list) -> set[str]:
    """The kinds of trouble that a COCO data set holds."""
    objects, detections = defaultdict(list), defaultdict(list)
    for annotation in instances["annotations"]:
        objects[annotation["image_id"], annotation["category_id"]].append(
            coco.read_object(annotation)
        )
    for result in results:
        detections[result["image_id"], result["category_id"]].append(coco.read_detection(result))
    listed = {category["id"] for category in instances["categories"]}
    in_truth, in_results = ({k for _, k in table} for table in (objects, detections))
    images = [image["id"] for image in instances["images"]]
    busy = {image for image, _ in (*objects, *detections)}
    box_areas = [d.area for found in detections.values() for d in found]
    areas = [g.area for truth in objects.values() for g in truth]

    def beside(area: float) -> bool:
        return any(0 < abs(area - border) <= 1 for border in BORDERS)

    def blocks(rows: list) -> int:
        images_of_rows = [row["image_id"] for row in rows]
        return sum(a != b for a, b in pairwise(images_of_rows)) + 1

    found = {
        "empty image": not busy.issuperset(images),
        "image id 0": 0 in images,
        "images out of order": images != sorted(images),
        "categories out of order": [k["id"] for k in instances["categories"]] != sorted(listed),
        "annotations interleaved": blocks(instances["annotations"]) > len(images),
        "results interleaved": blocks(results) > len(images),
        "class only in truth": bool(in_truth - in_results),
        "class only in results": bool(listed & in_results - in_truth),
        "class nowhere": bool(listed - in_results - in_truth),
        "unlisted category": UNLISTED_CATEGORY in in_results,
        "no results": not results,
        "no annotations": not instances["annotations"],
        "iscrowd missing": any("iscrowd" not in row for row in instances["annotations"]),
        "area missing": any("area" not in row for row in instances["annotations"]),
        "object area on a border": any(area in BORDERS for area in areas),
        "object area beside a border": any(map(beside, areas)),
        "detection area on a border": any(area in BORDERS for area in box_areas),
        "detection area beside a border": any(map(beside, box_areas)),
        "object beyond every area": any(area > 1e10 for area in areas),
        "flat object": any(0 in g.box[2:] for truth in objects.values() for g in truth),
        "flat detection": any(0 in d.box[2:] for ranked in detections.values() for d in ranked),
        "more than 100 detections": any(len(ranked) > 100 for ranked in detections.values()),
        "float boxes": any(isinstance(value, float) for row in results for value in row["bbox"]),
        "whole boxes": any(all(isinstance(value, int) for value in row["bbox"]) for row in results),
    }
    kinds = {kind for kind, present in found.items() if present}

    scores = defaultdict(Counter)
    for (image, category), ranked in detections.items():
        scores[category].update({detection.score for detection in ranked})
        truth = objects[image, category]
        if len({detection.score for detection in ranked}) < len(ranked):
            kinds.add("tie in an image")
        if len({detection.box for detection in ranked}) < len(ranked):
            kinds.add("equal detections")
        if len({g.box for g in truth}) < len(truth):
            kinds.add("equal objects")
        hits = [0] * len(truth)
        for detection in ranked:
            overlaps = [coco.overlap(detection, g) for g in truth]
            for g, value in enumerate(overlaps):
                hits[g] += value >= 0.5
                if value in coco.IOU_THRESHOLDS:
                    kinds.add("overlap exactly at a threshold")
                elif min(abs(value - threshold) for threshold in coco.IOU_THRESHOLDS) < 1e-12:
                    kinds.add("overlap a rounding beside a threshold")
                if math.isinf(value):
                    kinds.add("infinite overlap")
                (x, y, w, h), (gx, gy, gw, gh) = detection.box, truth[g].box
                if (x == gx + gw or gx == x + w) and min(y + h, gy + gh) > max(y, gy):
                    kinds.add("touching boxes")
            for first, second in combinations(range(len(truth)), 2):
                if overlaps[first] == overlaps[second] >= 0.5:
                    alike = truth[first].box == truth[second].box
                    kinds.add("equal overlaps" if alike else "equal overlaps of unequal objects")
        for g, n_hits in zip(truth, hits, strict=True):
            if g.crowd and n_hits:
                kinds.add("crowd hit more than once" if n_hits > 1 else "crowd hit once")
            elif n_hits > 1:
                kinds.add("object hit more than once")
    if any(n_images > 1 for counter in scores.values() for n_images in counter.values()):
        kinds.add("tie between images")
    return kinds


COMMON_COCO = {
    *("tie in an image", "tie between images", "equal objects", "equal detections"),
    *("equal overlaps", "equal overlaps of unequal objects", "crowd hit once"),
    *("overlap exactly at a threshold", "overlap a rounding beside a threshold", "touching boxes"),
    *("crowd hit more than once", "object hit more than once", "object area on a border"),
    *("object area beside a border", "detection area on a border"),
    *("detection area beside a border", "flat object", "flat detection", "iscrowd missing"),
    *("area missing", "images out of order", "categories out of order", "annotations interleaved"),
    *("results interleaved", "image id 0", "empty image", "class only in truth"),
    *("class only in results", "unlisted category", "float boxes", "whole boxes"),
}
RARE_COCO = {
    *("object beyond every area", "infinite overlap", "class nowhere", "no results"),
    "no annotations",
}


def assert_shares(counts: Counter, common: set[str], rare: set[str]) -> None:
    """Common kinds occur in at least a tenth of the draws, rare ones in at least a hundredth."""
    shares = {kind: counts[kind] / N_DRAWS for kind in common | rare}
    too_few = {k: share for k, share in shares.items() if share < (0.1 if k in common else 0.01)}
    assert not too_few


def test_coco_drawing_holds_every_trouble_often() -> None:
    counts: Counter = Counter()
    for seed in range(N_DRAWS):
        counts.update(coco_troubles(*draw_coco(np.random.default_rng(seed))))
    assert_shares(counts, COMMON_COCO, RARE_COCO)


@relaxed
@given(many_detections())
def test_many_detections_are_more_than_a_hundred(data: tuple[dict, list]) -> None:
    assert "more than 100 detections" in coco_troubles(*data)


@pytest.mark.slow
def test_round_recall_tells_the_grids_apart() -> None:
    hundredths = [i / 100 for i in range(101)]
    n_apart = 0
    for seed in range(20):
        data = draw_round_recall(np.random.default_rng(seed))
        found, other = coco.evaluate(*data), coco.evaluate(*data, recall_points=hundredths)
        n_apart += bool((found["precision"] != other["precision"]).any())
    assert n_apart >= 10  # not all: the rank after the grid point may have the same precision


def voc_troubles(objects: dict, detections: dict) -> set[str]:
    """The kinds of trouble that a VOC data set holds."""
    kinds = set()
    for name, in_class in objects.items():
        found = detections[name]
        all_objects = [obj for in_image in in_class.values() for obj in in_image]
        images = list(in_class)
        kinds |= {
            kind
            for kind, present in {
                "image without objects": any(not in_image for in_image in in_class.values()),
                "class without objects": not all_objects,
                "only difficult objects": bool(all_objects) and all(obj[4] for obj in all_objects),
                "no detections": not found,
                "images out of order": images != sorted(images),
            }.items()
            if present
        }
        hits: Counter = Counter()
        for image, _, *box in found:
            overlaps = [voc.overlap(box, obj[:4]) for obj in in_class[image]]
            if 0.5 in overlaps:
                kinds.add("overlap exactly 0.5")
            if overlaps and max(overlaps) >= 0.5:
                equal = [g for g, value in enumerate(overlaps) if value == max(overlaps)]
                hits[image, equal[0]] += 1
                if len({in_class[image][g][4] for g in equal}) > 1:
                    kinds.add("equal overlaps, difficult and not")
                if len(equal) > 1:
                    kinds.add("equal overlaps")
        for (image, g), n_hits in hits.items():
            if n_hits > 1:
                kind = "difficult" if in_class[image][g][4] else "ordinary"
                kinds.add(f"{kind} object hit more than once")
        for first, second in combinations(found, 2):
            if first[1] == second[1]:
                if first[0] == second[0]:
                    kinds.add("tie in an image")
                elif images.index(first[0]) > images.index(second[0]):
                    kinds.add("tie between images against their order")
        if voc.count_objects(in_class) and "IGNORED" in voc.judge(found, in_class)[:1]:
            kinds.add("undefined precision")
    return kinds


COMMON_VOC = {
    *("tie in an image", "tie between images against their order", "equal overlaps"),
    *("equal overlaps, difficult and not", "overlap exactly 0.5", "no detections"),
    *("difficult object hit more than once", "ordinary object hit more than once"),
    *("image without objects", "class without objects", "only difficult objects"),
    "images out of order",
}
RARE_VOC = {"undefined precision"}


def test_voc_drawing_holds_every_trouble_often() -> None:
    counts: Counter = Counter()
    for seed in range(N_DRAWS):
        counts.update(voc_troubles(*draw_voc(np.random.default_rng(seed))))
    assert_shares(counts, COMMON_VOC, RARE_VOC)
