"""KITTI's 2D evaluation: the goldens of both lineages, and a slow restatement."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import detmap
from detmap.benchmarks.kitti import rules as kitti
from detmap.benchmarks.kitti.rules import score_samples
from tests.benchmarks import goldens
from tests.reference import own_rules
from tests.reference.own_rules import Thing
from tests.support.tier import drawn

LINEAGES = {"<": "height<min (prclibo/kitti_eval)", "<=": "height<=min (asharakeh/"}
NAMES = {"R11": "R11", "R40": "R40", "AOS_R40": "AOS-R40"}


@pytest.mark.parametrize("case", goldens.CASES)
@pytest.mark.parametrize("height", LINEAGES)
def test_goldens(case: str, height: str) -> None:
    known = goldens.of_case("kitti", case)
    (table,) = (value for key, value in known.items() if key.startswith(LINEAGES[height]))
    place = goldens.folder("kitti") / case
    settings = {"kitti.height": height}
    found = detmap.evaluate(place / "label_2", place / "results", "kitti", settings=settings)
    n = 0
    for key, row in table.items():
        name, level = key.split()
        for golden, metric in NAMES.items():
            value = 100 * found.metrics[f"{metric}-{name.capitalize()}-{level}"]
            assert abs(value - row[golden]) <= goldens.WITHIN, (key, golden)
            n += 1
    assert n == 27


def tables(seed: int, **more: Any) -> tuple[detmap.Truth, detmap.Detections]:
    """Cars, vans, people and regions on a few images, many boxes close to one another."""
    rng = np.random.default_rng(seed)
    n_images, names = 4, {1: "Car", 2: "Van", 3: "Pedestrian"}
    n, m = 40, 60
    boxes = np.hstack([rng.integers(0, 12, (n, 2)) * 10.0, rng.integers(2, 6, (n, 2)) * 10.0])
    found = boxes[rng.integers(0, n, m)] + rng.integers(-2, 3, (m, 4)) * 2.0
    truth = detmap.truth_from_arrays(
        rng.integers(1, n_images + 1, n),
        rng.integers(1, 4, n),
        boxes,
        images=list(range(1, n_images + 1)),
        categories=names,
    )
    attributes = {
        "occluded": rng.integers(0, 4, n).astype(float),
        "truncated": rng.choice([0.0, 0.15, 0.3, 0.6], n),
        "alpha": rng.normal(size=n),
    }
    region = rng.random(n) < 0.1
    truth = replace(
        truth,
        roles={"crowd": region},
        attributes={"area": truth.area} | attributes | more.pop("attributes", {}),
    )
    detections = detmap.detections_from_arrays(
        truth,
        rng.integers(1, n_images + 1, m),
        rng.integers(1, 4, m),
        found,
        np.round(rng.random(m), 1),
    )
    return truth, replace(detections, attributes={"alpha": rng.normal(size=m)})


def restated(truth: detmap.Truth, detections: detmap.Detections, level: str) -> list[float]:
    """Precision of cars by the slow rule, from the tables."""
    least, occluded, truncated = {
        "easy": (40, 0, 0.15), "moderate": (25, 1, 0.3), "hard": (25, 2, 0.5)
    }[level]  # fmt: skip
    columns, images = truth.attributes, []

    def corners(box: Any) -> own_rules.Box:
        x, y, w, h = box.tolist()
        return x, y, x + w, y + h

    for i in range(len(truth.images)):
        objects, found, regions = [], [], []
        for g in np.flatnonzero(truth.image == i).tolist():
            name = truth.categories.names[truth.label[g]]
            if truth.crowd[g]:
                regions.append(corners(truth.boxes[g]))
                continue
            hard = columns["occluded"][g] > occluded or columns["truncated"][g] > truncated
            hard |= truth.boxes[g, 3] < least
            role = {"Car": int(hard), "Van": 1}.get(name, -1)
            objects.append(Thing(corners(truth.boxes[g]), role))
        for d in np.flatnonzero(detections.image == i).tolist():
            own = detections.categories.names[detections.label[d]] == "Car"
            role = 1 if int(detections.boxes[d, 3]) < least else 0 if own else -1
            found.append(Thing(corners(detections.boxes[d]), role, float(detections.score[d])))
        images.append((objects, found, regions))
    return own_rules.kitti_precision(images, 0.5)


@pytest.mark.parametrize("seed", range(drawn(40)))
def test_any_data_as_restated(seed: int) -> None:
    truth, detections = tables(seed)
    result = detmap.evaluate(truth, detections, "kitti", settings={"iou.classes": {"Car": 0.5}})
    for level in ("easy", "moderate", "hard"):
        curve = restated(truth, detections, level)
        for name, some in (("R11", curve[::4]), ("R40", curve[1:])):
            expected = sum(some) / len(some)
            assert result.metrics[f"{name}-Car-{level}"] == pytest.approx(
                expected, abs=1e-12, nan_ok=True
            )


def test_a_class_that_is_never_detected_is_not_evaluated() -> None:
    truth, detections = tables(1)
    some = detections.take(np.flatnonzero(detections.label != 2))
    metrics = detmap.evaluate(truth, some, "kitti").metrics
    assert np.isnan(metrics["R40-Pedestrian-hard"])
    assert np.isnan(metrics["R40-Cyclist-hard"])  # the ground truth has none
    assert not np.isnan(metrics["R40-Car-hard"])


def test_an_orientation_of_minus_ten_leaves_out_aos() -> None:
    truth, detections = tables(1)
    alpha = detections.attributes["alpha"].copy()
    alpha[3] = -10.0
    result = detmap.evaluate(truth, replace(detections, attributes={"alpha": alpha}), "kitti")
    assert np.isnan(result.metrics["AOS-R40-Car-hard"])
    assert not np.isnan(result.metrics["R40-Car-hard"])
    assert "orientation-missing" in {note.code for note in result.notes}


def test_each_key_moves_a_number() -> None:
    truth, detections = tables(4)
    before = detmap.evaluate(truth, detections, "kitti").metrics
    changes: tuple[dict[str, Any], ...] = (
        {"kitti.neighbors": {}},
        {"iou.classes": {"Car": 0.3, "Pedestrian": 0.5, "Cyclist": 0.5}},
        {"matching.neutral": {}},
        {"subsets.hard": {"height": [25, 1e10]}},
    )
    for settings in changes:
        after = detmap.evaluate(truth, detections, "kitti", settings=settings).metrics
        assert any(after[name] != value for name, value in before.items() if value == value)


def cars(*boxes: Any, crowd: Any = None) -> detmap.Truth:
    """Cars that nothing hides, on one image."""
    n, names = len(boxes), {1: "Car", 2: "Bus"}
    columns = {name: np.zeros(n) for name in ("occluded", "truncated")}
    return detmap.truth_from_arrays(
        [1] * n, [1] * n, boxes, categories=names, crowd=crowd, attributes=columns
    )


def test_a_height_at_the_limit_of_a_level() -> None:
    truth = cars((0, 0, 40, 40))
    detections = detmap.detections_from_arrays(truth, [1], [1], [(0, 0, 40, 40)], [0.5])
    found = {
        height: detmap.evaluate(
            truth, detections, "kitti", settings={"kitti.height": height}
        ).metrics["R11-Car-easy"]
        for height in ("<", "<=")
    }
    assert found == {"<": 1 / 11, "<=": 0.0}


def test_an_overlap_at_the_threshold_is_no_match() -> None:
    truth = cars((0, 0, 40, 50))
    found = {}
    for width in (20, 21):
        row = detmap.detections_from_arrays(truth, [1], [1], [(0, 0, width, 50)], [0.5])
        settings = {"iou.classes": {"Car": 0.5, "Pedestrian": 0.3}}
        found[width] = detmap.evaluate(truth, row, "kitti", settings=settings).metrics[
            "R11-Car-hard"
        ]
    assert found == {20: 0, 21: pytest.approx(1 / 11)}


@pytest.mark.parametrize(("covered", "value"), [(20, 0.5), (21, 1.0)])
def test_a_detection_in_a_region_is_not_false(covered: int, value: float) -> None:
    """The false positive has the higher score."""
    truth = cars((0, 0, 40, 50), (100, 0, covered, 50), crowd=[False, True])
    boxes = [(0, 0, 40, 50), (100, 0, 40, 50)]
    found = detmap.detections_from_arrays(truth, [1, 1], [1, 1], boxes, [0.5, 0.9])
    settings = {"iou.classes": {"Car": 0.5}}
    metrics = detmap.evaluate(truth, found, "kitti", settings=settings).metrics
    assert metrics["R11-Car-hard"] == pytest.approx(value / 11)


def test_heights_of_boxes_of_voc_are_differences_of_corners() -> None:
    """The program's height of a detection; 39 is not easy, though its lower edge is at 89."""
    rows = detmap.detections_from_arrays(cars((0, 0, 40, 50)), [1], [1], [(0, 50, 40, 89)], [0.5])
    assert kitti._height(replace(rows, box_format="voc")).tolist() == [39]
    assert kitti._height(rows).tolist() == [89]


def test_samples_stop_at_41() -> None:
    assert len(score_samples(np.linspace(1, 0, 200).tolist(), 200)) == 41
    assert score_samples([0.5], 4).tolist() == [0.5]
    assert len(score_samples([], 0)) == 0


def test_an_attribute_that_is_missing_is_named() -> None:
    truth, detections = tables(1)
    truth = replace(truth, attributes={"area": truth.area})
    with pytest.raises(detmap.DataError, match="occluded"):
        detmap.evaluate(truth, detections, "kitti")


def test_selected_classes_have_the_numbers_of_all_classes() -> None:
    data = tables(3)
    settings = {"iou.classes": {"Car": 0.5, "Pedestrian": 0.5}}
    every = detmap.evaluate(*data, "kitti", settings=settings).metrics
    car = detmap.evaluate(*data, "kitti", settings=settings, classes=["Car"]).metrics
    assert car
    np.testing.assert_equal(car, {name: v for name, v in every.items() if "-Car-" in name})


LINE = "{} 0 0 1.5 {} {} {} {} 1 1 1 1 1 1 1"


@pytest.mark.parametrize("other", ["Bus", "Van", "DontCare", "Pedestrian"])
def test_a_low_detection_of_a_class_without_objects_takes_part(tmp_path: Path, other: str) -> None:
    """The C++ program gives .475 and .4545: an object takes the higher score, which is ignored."""
    truth, found = tmp_path / "label_2", tmp_path / "results"
    for folder in (truth, found):
        folder.mkdir()
    cars = [(50 * i, 10, 50 * i + 45, 40) for i in range(40)]
    objects = [LINE.format("Car", *box) for box in cars]
    low = [(left, top, right, top + 24.9) for left, top, right, _ in cars[:20]]
    lines = [f"{text} 0.5" for text in objects]
    lines += [f"{LINE.format(other, *box)} 0.9" for box in low]
    (truth / "000000.txt").write_text("\n".join(objects))
    (found / "000000.txt").write_text("\n".join(lines))
    result = detmap.evaluate(truth, found, "kitti")
    assert result.metrics["R40-Car-moderate"] == pytest.approx(0.475)
    assert result.metrics["R11-Car-moderate"] == pytest.approx(5 / 11)
    assert "class-added" in {note.code for note in result.notes}
    assert result.metrics["R40-Pedestrian-moderate"] == (
        0 if other == "Pedestrian" else pytest.approx(np.nan, nan_ok=True)
    )


@pytest.mark.parametrize("score", [-1e7, -2e9])
def test_a_score_that_means_no_detection_is_refused(score: float) -> None:
    """The program's NO_DETECTION: it would leave such a detection unmatched."""
    truth, detections = tables(1)
    scores = detections.score.copy()
    scores[3] = np.nextafter(-1e7, 0)
    detmap.evaluate(truth, replace(detections, score=scores), "kitti")
    scores[3] = score
    with pytest.raises(detmap.DataError, match=r"image \d, score: -.*never matches") as error:
        detmap.evaluate(truth, replace(detections, score=scores), "kitti")
    assert "scale the scores" in error.value.fix
