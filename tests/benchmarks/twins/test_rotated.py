"""DOTA, HRSC2016, DIOR-R and Ultralytics OBB against their slow twins, on any small data."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

import detmap
from detmap.core.overlaps.rotated_boxes import RotatedBoxes
from tests.reference import rotated as twin
from tests.reference import voc
from tests.reference.rotated import Thing
from tests.support.tier import drawn

IMAGES, GRID = (1, 2, 3), np.arange(0.0, 1.1, 0.1).tolist()
SEEDS = range(drawn(9))


def draw(seed: int) -> tuple[list[Thing], list[Thing]]:
    """Objects, some of them difficult, and detections near them or on another image; of each three
    detections the scores are tied.
    """
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(1, 10)), int(rng.integers(1, 24))
    boxes = np.hstack([rng.integers(0, 4, (n, 2)) * 12.0, rng.choice([10.0, 20, 40], (n, 2))])
    boxes = np.hstack([boxes, rng.uniform(-1.5, 1.5, (n, 1))])
    images, difficult = rng.choice(IMAGES, n).tolist(), (rng.random(n) < 0.25).tolist()
    objects = [
        Thing(*row) for row in zip(images, map(tuple, boxes.tolist()), difficult, strict=True)
    ]
    found = []
    for place, source in enumerate(rng.integers(0, n, m).tolist()):
        moved = boxes[source] + rng.normal(0, 1, 5) * [1, 1, 1, 1, 0.1]
        image = images[source] if rng.random() < 0.85 else int(rng.choice(IMAGES))
        found.append(Thing(image, tuple(moved.tolist()), False, 1 - place // 3 / m))
    return objects, found


def evaluated(name: str, objects: list[Thing], found: list[Thing]) -> Any:
    """The result of detmap; DOTA has corners, the others five numbers."""

    def shapes(rows: list[Thing]) -> RotatedBoxes:
        values = [np.ravel(twin.corners(r.box) if "dota" in name else r.box) for r in rows]
        return RotatedBoxes(np.array(values))

    def columns(rows: list[Thing]) -> tuple[list[int], list[int], Any]:
        corners = np.array([twin.corners(each.box) for each in rows])
        low = corners.min(axis=1)
        return [r.image for r in rows], [1] * len(rows), np.hstack([low, corners.max(axis=1) - low])

    truth = detmap.truth_from_arrays(
        *columns(objects), images=IMAGES, categories={1: "ship"},
        roles={"difficult": [each.difficult for each in objects]},
    )  # fmt: skip
    scores = [each.score for each in found]
    detections = detmap.detections_from_arrays(truth, *columns(found), scores)
    truth = replace(truth, shapes=shapes(objects))
    return detmap.evaluate(truth, replace(detections, shapes=shapes(found)), name)


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", ["dota", "dota-1.5", "dior-r", "hrsc2016", "hrsc2016-12"])
def test_the_best_object_matched_or_not(name: str, seed: int) -> None:
    objects, found = draw(seed)
    if name not in ("dota", "dior-r"):
        objects = [each._replace(difficult=False) for each in objects]
    n_objects = sum(not each.difficult for each in objects)
    result = evaluated(name, objects, found)
    if not n_objects:
        return

    def judge(rows: Sequence[Thing]) -> twin.Judged:
        return twin.judge_any(rows, objects, strict="dota" in name)

    mmrotate = "dota" not in name
    judged = twin.judge_by_image(found, judge, stable=False) if mmrotate else judge(found)
    curve = twin.curve(judged, n_objects)
    want = voc.all_points(*curve) if name == "hrsc2016-12" else voc.eleven_point(*curve, GRID)
    within = 1e-12 if "dota" in name else 1e-6  # mmrotate computes in float32
    assert result.metrics["mAP"] == pytest.approx(want, abs=within)


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_the_best_unmatched_object_by_probiou(seed: int) -> None:
    objects, found = draw(seed)
    metrics = evaluated("ultralytics-obb", objects, found).metrics
    aps = []
    for iou in np.linspace(0.5, 0.95, 10).tolist():
        judge = partial(twin.judge_free, objects=objects, threshold=iou)
        judged = twin.judge_by_image(found, judge, stable=True)
        aps.append(twin.ultralytics_ap(*twin.curve(judged, len(objects))))
    assert metrics["mAP50"] == pytest.approx(aps[0], abs=1e-9)
    assert metrics["mAP50-95"] == pytest.approx(sum(aps) / 10, abs=1e-9)
