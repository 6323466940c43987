"""ImageNet VID, VisDrone and UAVDT against their slow twins, on drawn files."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import detmap
from detmap.core.protocol import load
from detmap.core.tables.regions import Regions
from tests.reference import ilsvrc_visdrone as twin
from tests.reference.ilsvrc_visdrone import Thing
from tests.support.tier import drawn

SEEDS = range(drawn(12))


def things(rng: np.random.Generator, n: int, corners: bool) -> list[Thing]:
    """Boxes on a coarse grid, so that equal overlaps occur; many scores are tied."""
    values = iter(rng.integers(0, n // 2 + 1, n) / max(n, 1))
    drawn_ones = []
    for _ in range(n):
        x, y, w, h = (int(v) for v in (*rng.integers(0, 12, 2) * 4, *rng.integers(1, 8, 2) * 4))
        box = (x + 1, y + 1, x + w, y + h) if corners else (x, y, w, h)
        drawn_ones.append(
            Thing(int(rng.integers(1, 5)), int(rng.integers(1, 3)), box, next(values))
        )
    return drawn_ones


def tables(
    objects: list[Thing], found: list[Thing], corners: bool, regions: Regions | None = None
) -> tuple[detmap.Truth, detmap.Detections]:
    def xywh(each: Thing) -> tuple[float, ...]:
        a, b, c, d = each.box
        return (a - 1, b - 1, c - a + 1, d - b + 1) if corners else each.box

    truth = detmap.truth_from_arrays(
        [each.image for each in objects],
        [each.label for each in objects],
        [xywh(each) for each in objects],
        images=[1, 2, 3, 4],
        categories={1: "a", 2: "b"},
        attributes={"motion_iou": [each.value for each in objects]},
        roles={"unscored": [each.value == 0 for each in objects]},
    )
    size = np.full(4, 60.0)
    truth = replace(truth, images=replace(truth.images, width=size, height=size), regions=regions)
    columns = [[each.image for each in found], [each.label for each in found]]
    boxes, scores = [xywh(each) for each in found], [each.value for each in found]
    return truth, detmap.detections_from_arrays(truth, *columns, boxes, scores)


@pytest.mark.parametrize("seed", SEEDS)
def test_vid_by_motion_and_area(seed: int) -> None:
    rng = np.random.default_rng(seed)
    objects, found = things(rng, 14, corners=True), things(rng, 40, corners=True)
    result = detmap.evaluate(*tables(objects, found, corners=True), "imagenet-vid")
    for subset in load("imagenet-vid").subsets:
        ranges = {each.attribute: (each.low, each.high) for each in subset.ranges}
        motion = ranges.get("motion_iou", (-math.inf, math.inf))
        area = ranges.get("area", (0, math.inf))
        name = "AP" if subset.name == "all" else f"AP-{subset.name}"
        for row in result.per_class:
            want = twin.motion_ap(objects, found, row["id"], motion, area)
            assert row[name] == pytest.approx(want, abs=1e-12, nan_ok=True), subset.name


@pytest.mark.parametrize("seed", SEEDS)
def test_visdrone_with_regions(seed: int) -> None:
    rng = np.random.default_rng(seed)
    objects = [
        each._replace(value=float(each.value > 0.2)) for each in things(rng, 14, corners=False)
    ]
    found = [
        each._replace(box=tuple(float(v) for v in np.add(each.box, rng.integers(0, 3, 4) / 2)))
        for each in things(rng, 50, corners=False)
    ]
    ignored = [(each.image, each.box) for each in things(rng, 3, corners=False)]
    regions = Regions(
        "half",
        np.array(sorted(image - 1 for image, _ in ignored), dtype=np.int32),
        np.array([box for _, box in sorted(ignored, key=lambda r: r[0])], dtype=float),
    )
    result = detmap.evaluate(*tables(objects, found, False, regions), "visdrone")
    free = [
        each
        for each in found
        if not twin.half_covered(each.box, [b for i, b in ignored if i == each.image], 60, 60)
    ]
    weight = {k: len({each.image for each in objects if each.label == k}) for k in (1, 2)}
    for limit in (1, 10, 500):
        cells = {
            k: [twin.toolbox(objects, free, k, 0.5 + 0.05 * t, limit) for t in range(10)]
            for k in (1, 2)
        }
        for place, name in enumerate(("AP", f"AR{limit}")):
            if name == "AP" and limit < 500:
                continue
            means = {k: sum(cell[place] for cell in cells[k]) / 10 for k in cells}
            want = sum(weight[k] * means[k] for k in means) / sum(weight.values())
            assert result.metrics[name] == pytest.approx(want, abs=1e-12), name


@pytest.mark.parametrize("seed", SEEDS)
def test_uavdt_by_the_same_twin(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    one = [each._replace(label=1) for each in things(rng, 70, corners=False)]
    objects, found = [each._replace(value=1.0) for each in one[:20]], one[20:]
    lines = [(each, f"{each.image},-1,{','.join(map(str, each.box))}") for each in one]
    (tmp_path / "M1_gt_whole.txt").write_text("\n".join(f"{line},1,1,1" for _, line in lines[:20]))
    (tmp_path / "M1.txt").write_text("\n".join(f"{line},{e.value}" for e, line in lines[20:]))
    want, _ = twin.toolbox(objects, found, 1, 0.7, 10**6)
    metrics = detmap.evaluate(tmp_path, tmp_path, "uavdt", unknown="drop").metrics
    if max(each.image for each in objects) == 4:
        assert metrics["mAP"] == pytest.approx(want, abs=1e-12)
