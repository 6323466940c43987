"""``iou.classes``: each class as in a run at its own threshold, in both engines."""

from typing import Any

import numpy as np
import pytest

import detmap
from tests.benchmarks import goldens
from tests.support.tier import drawn

OWN = {"Car": 0.7, "Van": 0.3}


def tables(seed: int) -> tuple[detmap.Truth, detmap.Detections]:
    """Three classes with many overlapping boxes."""
    rng = np.random.default_rng(seed)
    n, m = 60, 90
    boxes = np.hstack([rng.integers(0, 6, (n, 2)) * 10.0, rng.integers(2, 5, (n, 2)) * 10.0])
    found = boxes[rng.integers(0, n, m)] + rng.integers(-4, 5, (m, 4)) * 1.0
    truth = detmap.truth_from_arrays(
        rng.integers(1, 4, n), rng.integers(1, 4, n), boxes,
        images=[1, 2, 3], categories={1: "Car", 2: "Van", 3: "Cyclist"},
    )  # fmt: skip
    return truth, detmap.detections_from_arrays(
        truth, rng.integers(1, 4, m), rng.integers(1, 4, m), found, rng.random(m)
    )


PROTOCOLS = ("coco-bbox", "voc2012", "cartucho", "ultralytics-8.4", "mmdet-voc12", "lvis")


def by_class(data: Any, name: str, settings: dict[str, Any]) -> dict[str, dict[str, Any]]:
    rows = detmap.evaluate(*data, name, settings=settings | {"metrics": ["AP"]}).per_class
    kept = ("AP", "tp", "fp", "missed", "ignored")
    return {row["name"]: {key: str(row[key]) for key in kept} for row in rows}


@pytest.mark.parametrize("name", PROTOCOLS)
@pytest.mark.parametrize("seed", range(drawn(20)))
def test_each_class_as_at_its_own_threshold(name: str, seed: int) -> None:
    data = tables(seed)
    ours = by_class(data, name, {"iou.thresholds": [0.5], "iou.classes": OWN})
    for label, value in {**OWN, "Cyclist": 0.5}.items():
        alone = by_class(data, name, {"iou.thresholds": [value]})[label]
        assert list(ours[label].values()) == list(alone.values())


def test_one_threshold_takes_the_place_of_all() -> None:
    data = tables(1)
    ten = detmap.evaluate(*data, "coco-bbox", settings={"iou.classes": OWN})
    one = {"iou.thresholds": [0.7]}
    alone = detmap.evaluate(*data, "coco-bbox", settings=one).per_class[0]
    assert ten.per_class[0]["AP"] == pytest.approx(alone["AP"], abs=1e-15)
    assert ten.intervals().metrics["AP"].value == ten.metrics["AP"]


@pytest.mark.parametrize("case", goldens.CASES)
def test_goldens_of_cartucho(case: str) -> None:
    place = goldens.folder("class-iou") / case
    truth = detmap.read_truth(place / "ground-truth", format="cartucho")
    found = detmap.read_detections(place / "detection-results", truth, format="cartucho")
    for key, golden in goldens.of_case("class-iou", case).items():
        parts = [part.split() for part in key.split(", ")]
        own = {part[0].capitalize(): float(part[1]) for part in parts if part[0] not in
               ("all", "others")}  # fmt: skip
        settings = {"iou.thresholds": [0.5], "iou.classes": own}
        result = detmap.evaluate(truth, found, "voc2012", settings=settings)
        values = {row["name"]: row["AP"] for row in result.per_class}
        values["mAP"] = next(iter(result.metrics.values()))
        for name, value in golden.items():
            assert abs(values[name] - value) <= goldens.WITHIN, (key, name)


def test_what_cannot_be() -> None:
    with pytest.raises(detmap.ProtocolError, match="unknown class 'Bus'"):
        detmap.evaluate(*tables(1), "coco-bbox", settings={"iou.classes": {"Bus": 0.7}})
    with pytest.raises(detmap.ProtocolError, match=r"iou\.tolerance"):
        detmap.load_protocol("coco-bbox").override({"iou.classes": OWN, "iou.tolerance": 10})
    for bad in ({"Car": 0}, {"Car": 1.1}, {"Car": "x"}, {"": 0.5}, ["Car"]):
        with pytest.raises(detmap.ProtocolError, match=r"iou\.classes"):
            detmap.load_protocol("coco-bbox").override({"iou.classes": bad})
