"""Intervals of single classes, of numbers above 1 by rounding, of images that are matched anew."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import detmap
from detmap.core.protocol import load
from detmap.core.statistics import evaluations
from detmap.core.statistics.estimates import Estimates, Rule, rule_of_ap
from detmap.core.statistics.sampling_units import units
from detmap.core.statistics.subsets import subsets
from tests.support.running import run

N = 120


def drawn(folder: Path, names: tuple[str, ...], found: float = 0.8, moved: float = 0.1) -> Any:
    """COCO files of 120 images, and the paths."""
    rng = np.random.default_rng(4)
    objects, detections = [], []
    for image in range(1, N + 1):
        for _ in range(rng.poisson(4)):
            k, box = int(rng.integers(len(names))) + 1, rng.uniform(20, 120, 4)
            objects.append({"image_id": image, "category_id": k, "bbox": box.tolist()})
            if rng.random() < found:
                near = (box * (1 + moved * rng.normal(size=4))).clip(1).tolist()
                row = {"image_id": image, "category_id": k, "bbox": near, "score": rng.random()}
                detections.append(row)
    for place, one in enumerate(objects):
        one |= {"id": place + 1, "iscrowd": 0, "area": one["bbox"][2] * one["bbox"][3]}
    images = [
        {"id": i, "file_name": f"{i}.jpg", "width": 640, "height": 640} for i in range(1, N + 1)
    ]
    categories = [{"id": k, "name": name} for k, name in enumerate(names, 1)]
    paths = folder / "truth.json", folder / "found.json"
    truth = {"images": images, "annotations": objects, "categories": categories}
    for path, content in zip(paths, (truth, detections), strict=True):
        path.write_text(json.dumps(content))
    return paths


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return drawn(tmp_path_factory.mktemp("same"), ("cat", "cat", "dog"))


def of(value: float, parts: list[float], rule: Rule) -> Any:
    dealt = subsets(units(np.arange(N)), 0)
    column = np.resize(parts, (len(dealt), 1))
    whole = np.array([value])
    return Estimates(whole, whole, column, dealt, (rule,)).intervals(0.95)[0]


def test_a_fraction_above_1_by_rounding_is_a_fraction() -> None:
    over = 1 + 2**-52
    one = of(0.9, [over, 0.8], rule_of_ap(5))
    assert one.why_not.startswith("the interval would be") or one.high <= 1
    narrow = of(0.97, [over, *[0.97] * 56], rule_of_ap(5))
    assert narrow.low < 0.97 < narrow.high <= 1
    perfect = of(over, [over, 1.0], Rule(alone=60))
    assert (perfect.high, perfect.why_not) == (1.0, "")
    assert of(-1.0, [-1.0], Rule(alone=60)).why_not == "all images agree: the standard error is 0"


def test_classes_of_one_name_have_their_own_intervals(files: Any) -> None:
    done = run("eval", *files, "-p", "coco-bbox", "--ci", "--per-class", "--format", "json")
    rows = json.loads(done.out)["per_class"]
    assert [row["name"] for row in rows] == ["cat", "cat", "dog"]
    for row in rows:
        assert row["intervals"]["AP"]["value"] == row["AP"]
    table = run("eval", *files, "-p", "coco-bbox", "--ci", "--per-class").out
    assert table.count("cat    AP ") == 2
    gate = run("compare", *files, files[1], "--names", "a,b", "--fail-if-drop", "AP/cat=.01")
    assert (gate.code, "2 classes are named 'cat'" in gate.err) == (2, True)


@pytest.mark.parametrize(
    "name", ["py-faster-rcnn-07", "chainercv-07", "mmdet-voc07", "detectron2-voc07", "voc2007"]
)
def test_a_single_class_by_11_points_has_no_interval_under_any_protocol(
    files: Any, name: str
) -> None:
    made = detmap.evaluate(*files, name).intervals()
    assert all("few recall points" in of["AP"].why_not for of in made.classes)
    assert next(iter(made.metrics.values())).why_not == ""


@pytest.mark.parametrize("name", ["lvis-fixed", "darknet-101", "coco-bbox"])
def test_nearly_perfect_ap_by_101_points_has_no_interval(tmp_path: Path, name: str) -> None:
    result = detmap.evaluate(*drawn(tmp_path, ("a", "b"), 0.99, 0.0), name)
    metric = next(iter(result.metrics))
    assert 0.96 < result[metric] < 1
    made = result.intervals().metrics[metric]
    assert "moves in steps of 0.010" in made.why_not
    assert made.se > 0
    smooth = detmap.evaluate(
        *drawn(tmp_path, ("a", "b"), 0.99, 0.0), name, settings={"ap.integrator": "all_points"}
    )
    assert smooth.intervals().metrics[metric].why_not == ""


def test_the_mean_of_one_class_is_that_class_whatever_undefined_ones_count(tmp_path: Path) -> None:
    files = drawn(tmp_path, ("a",))
    made = detmap.evaluate(*files, "voc2007", settings={"mean.undefined": "zero"}).intervals()
    assert made.metrics["mAP"] == made.classes[0]["AP"]


def test_extreme_levels_are_refused(files: Any) -> None:
    result = detmap.evaluate(*files)
    for level in (0.9999999999999999, 1.0, 0.4):
        with pytest.raises(detmap.DataError, match=r"0\.999999"):
            result.intervals(level)
    assert result.intervals(0.999999).metrics["AP"].why_not == ""
    with pytest.raises(detmap.DataError, match="alpha"):
        detmap.compare(*files, files[1], alpha=1e-17)


def test_ap_at_101_points_without_grid_is_read_by_area() -> None:
    for name in ("coco-bbox", "darknet-101"):
        assert evaluations.smooth_rule(load(name).ap).integrator == "all_points"
    for name in ("voc2007", "voc2012", "ultralytics-8.4"):
        ap = load(name).ap
        assert evaluations.smooth_rule(ap) is ap


@pytest.mark.parametrize("name", ["coco-bbox", "voc2012", "ultralytics-8.4", "darknet-0"])
def test_the_metric_of_a_single_class_is_the_number_of_the_class(tmp_path: Path, name: str) -> None:
    files = drawn(tmp_path, ("a",))
    result = detmap.evaluate(*files, name)
    made = result.intervals()
    for metric, one in made.metrics.items():
        of_class = made.classes[0].get(metric.removeprefix("m"))
        assert of_class is None or of_class == one
    other = tmp_path / "other.json"
    other.write_text(json.dumps(json.loads(files[1].read_text())[::2]))
    compared = detmap.compare(*files, other, protocol=name)
    pairs = {each.metric.removeprefix("m"): each for each in compared.pairs}
    shared = [one for one in compared.classes if one.metric in pairs]
    for one in shared:
        pair = pairs[one.metric]
        assert (one.low, one.high, one.p, one.df) == (pair.low, pair.high, pair.p, pair.df)
    assert shared


def test_a_minimum_of_a_class_that_shares_its_name_is_refused(files: Any) -> None:
    done = run("eval", *files, "-p", "coco-bbox", "--fail-under", "AP/cat=.1")
    assert (done.code, "2 classes are named 'cat'" in done.err) == (2, True)
