"""Numbers on subsets of the images: against evaluations of the selected images."""

import math
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import detmap
from detmap.core.curves import aggregation
from detmap.core.statistics.evaluations import (
    effective_units,
    evaluate_matches,
    evenness,
    units_of_classes,
)
from detmap.core.statistics.sampling_units import units
from detmap.core.statistics.subsets import subsets
from tests.reference import jackknife as reference
from tests.statistics.drawn_matches import draw
from tests.statistics.goldens import INTEGRATORS
from tests.support import builders as make

SHAPES, CONTOURS = make.SHAPES, make.SHAPES / "detections" / "contours"
STEP = 1 / (101 * math.sqrt(12))


def crowded(matches: detmap.Matches) -> detmap.Matches:
    """With 50 more objects of each class on the first image; no detection finds them."""
    label = np.repeat(np.arange(3), np.diff(matches.obj_off))
    label = np.append(label, np.repeat(np.arange(3), 50))
    image = np.append(matches.obj_image, np.zeros(150, np.int32))
    order = np.lexsort((image, label))
    n_areas = matches.counted.shape[1]
    return replace(
        matches,
        obj_off=np.searchsorted(label[order], np.arange(4)),
        obj_image=image[order],
        counted=np.append(matches.counted, np.ones((150, n_areas), bool), axis=0)[order],
    )


def smooth(matches: detmap.Matches) -> detmap.Matches:
    rules = matches.protocol.override({"ap.integrator": "all_points"})
    return replace(matches, protocol=rules)


@pytest.mark.parametrize("integrator", INTEGRATORS.values())
def test_subsets_are_evaluations_of_selected_images(integrator: str) -> None:
    """AP at 101 points of recall is read by the area under its envelope."""
    matches = draw(5, 60, integrator)
    made = subsets(units(matches.image_ids), 3)
    found = detmap.summarize(matches).evaluate_subsets(made)
    by_area = smooth(matches) if integrator == "grid_envelope" else matches
    for e, keep in ((0, None), (1, made.keep[0]), (30, made.keep[29]), (57, made.keep[56])):
        ids = matches.image_ids if keep is None else matches.image_ids[keep]
        part = detmap.summarize(by_area.select(ids))
        numbers = found.estimates.whole if keep is None else found.estimates.parts[e - 1]
        expected = [*part.metrics.values()]
        expected += [part.per_class[k][name] for k, name in found.cells]
        np.testing.assert_array_equal(numbers, expected)
    result = detmap.summarize(matches)
    expected = [*result.metrics.values()]
    expected += [result.per_class[k][name] for k, name in found.cells]
    np.testing.assert_array_equal(found.estimates.value, expected)
    assert found.metrics == tuple(result.metrics)


def test_units_with_an_object_of_each_class() -> None:
    matches = draw(7, 30)
    for groups in (None, {i: i // 4 for i in range(30)}):
        of = units(matches.image_ids, groups)
        found = units_of_classes(matches, of)
        assert found.shape == (2, 3)
        for a in range(2):
            for k in range(3):
                mine = slice(matches.obj_off[k], matches.obj_off[k + 1])
                some = matches.obj_image[mine][matches.counted[mine, a]]
                assert found[a, k] == len({int(of.of_image[i]) for i in some})


def test_effective_units_are_few_where_few_images_have_many_of_the_objects() -> None:
    matches = draw(7, 30)
    for groups in (None, {i: i // 4 for i in range(30)}):
        of = units(matches.image_ids, groups)
        counts = np.zeros((of.n, 3), int)
        label = np.repeat(np.arange(3), np.diff(matches.obj_off))
        some = matches.counted[:, 0]
        np.add.at(counts, (of.of_image[matches.obj_image[some]], label[some]), 1)
        found = effective_units(matches, 0, np.ones(3), of)
        assert found == pytest.approx(reference.effective_units(counts.tolist()))
        of_one = effective_units(matches, 0, np.array([0.0, 2.0, 0.0]), of)
        assert of_one == pytest.approx(reference.effective_units(counts[:, 1:2].tolist()))
    assert effective_units(matches, 0, np.zeros(3), of) == math.inf


@pytest.mark.parametrize(
    "protocol", ["coco-bbox", pytest.param("ultralytics-8.4", marks=pytest.mark.slow)]
)
def test_crowded_images_lower_the_degrees_of_freedom_of_a_comparison(protocol: str) -> None:
    """Protocols that order all detections together are evaluated by another way."""
    truth, found = crowd(120)
    first = detmap.compare(truth, found, found, protocol=protocol).pairs[0]
    assert first.df == 24
    crowded_image = np.repeat(np.arange(120), np.where(np.arange(120) < 3, 40, 1))
    n = len(crowded_image)
    boxes = np.array([[30.0 * k, 0, 20, 20] for k in range(n)])
    ones, score = np.ones(n, int), np.linspace(1, 0.5, n)
    truth = detmap.truth_from_arrays(crowded_image, ones, boxes)
    found = detmap.detections_from_arrays(truth, crowded_image, ones, boxes, score)
    comparison = detmap.compare(truth, found, found, protocol=protocol)
    effective = reference.effective_units([[40]] * 3 + [[1]] * 117)
    assert comparison.pairs[0].df == pytest.approx(max(1, effective / 3))
    assert {one.df for one in comparison.classes} == {comparison.pairs[0].df}


def test_evenness_is_the_share_of_equally_many_objects() -> None:
    matches = draw(7, 30)
    for groups, limit in ((None, 1), (None, 6), ({i: i // 4 for i in range(30)}, 1)):
        of = units(matches.image_ids, groups)
        found = evenness(matches, 0, limit, of)
        for k in range(3):
            mine = slice(matches.obj_off[k], matches.obj_off[k + 1])
            some = matches.obj_image[mine][matches.counted[mine, 0]].tolist()
            c = list(Counter(int(of.of_image[i]) for i in some).values())
            near = 2 * max(Counter(some).values(), default=0) >= limit
            even = sum(c) ** 2 / (len(c) * sum(x * x for x in c)) if near else 1.0
            assert found[k] == pytest.approx(even)


def test_recall_at_a_limit_that_few_crowded_images_reach_has_no_interval() -> None:
    found = detmap.summarize(crowded(draw(5, 120))).intervals()
    assert "few images have many of the objects" in found.metrics["AR@1"].why_not
    assert "few images" not in found.metrics["AR@1000"].why_not


def crowd(n: int = 60) -> tuple[detmap.Truth, Any]:
    """Two classes on every image; the second detector's scores vary."""
    rng = np.random.default_rng(1)
    image, label = np.repeat(np.arange(n), 2), np.tile([1, 2], n)
    boxes = np.tile([[0.0, 0, 20, 20], [50, 0, 20, 20]], (n, 1))
    truth = detmap.truth_from_arrays(image, label, boxes)
    moved = boxes + rng.choice([0, 30], (2 * n, 1), p=[0.8, 0.2]) * [0, 1, 0, 0]
    return truth, detmap.detections_from_arrays(truth, image, label, moved, rng.random(2 * n))


@pytest.mark.parametrize(
    ("protocol", "settings"),
    [
        ("ultralytics-8.4", {}),
        ("coco-bbox", {"operating.rule": "best_mean_f1", "metrics": ["P", "R", "F1", "AP50"]}),
    ],
)
def test_rates_at_the_best_f1_have_no_interval(protocol: str, settings: dict[str, Any]) -> None:
    made = detmap.evaluate(*crowd(), protocol, settings=settings).intervals()
    for rows in (made.metrics, made.per_class["1"]):
        for name, one in rows.items():
            searched = name in ("P", "R")
            assert one.why_not.startswith("the score of the best F1 differs") is searched, name
            assert math.isnan(one.low) is (searched or bool(one.why_not))
    assert made.metrics["mAP50" if settings == {} else "F1"].why_not == ""
    at_a_score = {"operating.rule": "above", "metrics": ["P", "R", "F1"]}
    made = detmap.evaluate(*crowd(), "coco-bbox", settings=at_a_score).intervals()
    assert [one.why_not for one in made.metrics.values()] == [""] * 3


def test_rules_by_metric_and_class() -> None:
    matches = draw(5, 120)
    found = detmap.summarize(matches).evaluate_subsets(subsets(units(matches.image_ids), 0))
    rules = dict(zip(found.metrics, found.estimates.rules, strict=False))
    share = math.sqrt(0.01 + 1 / 3)
    assert rules["AP"][:4] == pytest.approx(
        (2 / 3, 1.12, share, STEP / 3)
    )  # 3 thresholds, 3 classes
    assert rules["AP50"][:4] == pytest.approx((2 / 3, 1.12, share, STEP / math.sqrt(3)))
    assert rules["AR@1"][:4] == (1.0, 1.08, 0.15, 0.0)
    of_class = dict(zip(found.cells, found.estimates.rules[len(rules) :], strict=True))
    assert of_class[0, "AP50"][:4] == pytest.approx((2 / 3, 1.12, 0.3, STEP))
    assert of_class[0, "AP"][:4] == pytest.approx((2 / 3, 1.12, 0.3, STEP / math.sqrt(3)))
    m = units_of_classes(matches, units(matches.image_ids))[0]
    assert [of_class[k, "AP"].alone for k in range(3)] == m.tolist()


@pytest.mark.parametrize("integrator", INTEGRATORS.values())
def test_single_classes_at_few_points_of_recall_have_no_interval(integrator: str) -> None:
    found = detmap.summarize(draw(5, 200, integrator)).intervals()
    eleven = integrator == "eleven_point"
    one = found.per_class["class 0"]["AP"]
    assert ("few recall points" in one.why_not) is eleven
    assert found.metrics["AP"].why_not == ""
    assert found.per_class["class 0"]["AR@1000"].why_not == ""


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [
        {"metrics": ["MR50", "AP"]},
        {"operating.rule": "best_f1", "metrics": ["P", "R", "F1"]},
        {"mean.weights": "images"},
        {"mean.undefined": "zero"},
        {"ap.pool": "all"},
        {"ap.integrator": "step"},
        {"ap.grid": "0:0.1:1"},
    ],
)
def test_every_rule_has_intervals(settings: dict[str, Any]) -> None:
    try:
        result = detmap.evaluate(SHAPES, CONTOURS, "coco-bbox", settings=settings)
    except detmap.ProtocolError:
        pytest.skip("no such combination")
    made = result.intervals()
    for name, one in made.metrics.items():
        assert one.value == result.metrics[name]
        assert one.se > 0
        assert bool(one.why_not) or one.low < one.high


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [
        {"ranking.sort": "unstable", "metrics": ["AP"]},
        {"limits.scope": "dataset", "limits.max_dets": [50], "metrics": ["AP"]},
    ],
)
def test_rules_that_order_all_images_together_match_again(settings: dict[str, Any]) -> None:
    smooth = settings | {"ap.integrator": "all_points"}
    result = detmap.evaluate(SHAPES, CONTOURS, "coco-bbox", settings=smooth)
    made = subsets(units(result.matches.image_ids), 0)
    found = result.evaluate_subsets(made)
    part = result.select(result.matches.image_ids[made.keep[3]])
    assert found.estimates.parts[3, 0] == part.metrics["AP"]
    result = detmap.evaluate(SHAPES, CONTOURS, "coco-bbox", settings=settings)
    assert result.intervals().metrics["AP"].low > 0
    with pytest.raises(detmap.DetmapError):
        detmap.summarize(result.matches).intervals()


def test_progress_threads_and_rows() -> None:
    matches = draw(3, 60)
    scores = detmap.summarize(matches).scores
    told: list[Any] = []
    made = subsets(units(matches.image_ids), 0)
    row = matches.protocol.rows()[0][1]
    how: Any = {"rows": (row,), "classes": False, "progress": lambda *now: told.append(now)}
    every = [evaluate_matches(matches, scores, made, threads=n, **how) for n in (1, 3)]
    assert told == 2 * [(e, 57) for e in range(1, 58)]
    np.testing.assert_array_equal(every[0].estimates.parts, every[1].estimates.parts)
    assert every[0].metrics == ("AP50",)
    assert every[0].cells == ()
    of = aggregation.mean(scores, row, matches.protocol, matches.categories)
    assert every[0].estimates.value.tolist() == [of]
