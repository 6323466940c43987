"""CityPersons, Caltech, TinyPerson, AI-TOD, SODA-D, LVIS fixed AP, OV-COCO and ImageNet DET under
all of their subsets, against slow twins, on any small data.
"""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import detmap
from tests.benchmarks.twins.test_video import tables, things
from tests.reference import coco_family as twin
from tests.reference import ilsvrc_visdrone, people
from tests.reference.coco_family import Thing
from tests.support import builders as make
from tests.support.tier import drawn

relaxed = settings(max_examples=drawn(30))
seeds = st.integers(0, 10**6)
SETUPS = {
    "citypersons": {
        "Reasonable": (50, 1e10, 0.65, 1e10),
        "Reasonable_small": (50, 75, 0.65, 1e10),
        "Reasonable_occ-heavy": (50, 1e10, 0.2, 0.65),
        "All": (20, 1e10, 0.2, 1e10),
    },
    "caltech": {
        "Reasonable": (50, 1e10, 0.65, 1e10),
        "All": (20, 1e10, 0.2, 1e10),
        "Occ-partial": (50, 1e10, 0.65, 1),
        "Occ-heavy": (50, 1e10, 0.2, 0.65),
        "Expand-100": (50, 1e10, 0.65, 1e10),
        "Expand-150": (50, 1e10, 0.65, 1e10),
    },
}
MARGINS = {"Expand-100": 1.0, "Expand-150": 1.5}


@relaxed
@given(seeds, st.sampled_from(["citypersons", "caltech", "caltech 3.2.1"]))
def test_people_in_every_setup(seed: int, rules: str) -> None:
    name, _, version = rules.partition(" ")
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(1, 12)), int(rng.integers(0, 30))
    boxes = rng.choice([4.0, 6, 40, 80, 120], (n, 4))
    boxes[:, 3] = rng.choice([10, 20, 40, 50, 75, 100, 130], n)
    found = boxes[rng.integers(0, n, m)] + rng.choice([-10.0, -2, 0, 2, 10], (m, 4))
    found[:, 2:] = np.maximum(found[:, 2:], 1)
    image, of = rng.integers(1, 4, n), rng.integers(1, 4, m)
    ignored, seen = rng.random(n) < 0.2, rng.choice([0, 0.1, 0.2, 0.65, 0.9, 1], n)
    scores = rng.integers(0, max(m // 2, 1), m) / 16  # many are tied
    left, top, right, bottom = *boxes[:, :2].T, *(boxes[:, :2] + boxes[:, 2:]).T
    columns = {"vis_ratio": seen, "visible": seen, "left": left, "right": right}
    columns |= {"top": top, "bottom": bottom}
    truth = detmap.truth_from_arrays(
        image, [1] * n, boxes, images=[1, 2, 3], categories={1: "pedestrian"},
        roles={"ignore": ignored}, attributes=columns,
    )  # fmt: skip
    result = detmap.evaluate(
        truth,
        detmap.detections_from_arrays(truth, of, [1] * m, found, scores),
        name,
        settings={"boxes.aspect_of": "both"} if version else None,
    )
    if version:  # dbEval.m, loadDt
        center, width = found[:, 0] + found[:, 2] / 2, 0.41 * found[:, 3]
        found[:, 0], found[:, 2] = center - width / 2, width
    caltech = name == "caltech"
    for setup, (low, high, least, most) in SETUPS[name].items():
        absorbing = ignored | (boxes[:, 3] < low) | (boxes[:, 3] > high)
        absorbing |= (seen < least) | (seen > most)
        own = boxes.copy()
        if caltech:
            absorbing |= (left < 5) | (right < 5) | (left > 635) | (right > 635)
            absorbing |= (top < 5) | (bottom < 5) | (top > 475) | (bottom > 475)
            width = 0.41 * own[:, 3]
            own[:, 0] = np.where(absorbing, own[:, 0], own[:, 0] + (own[:, 2] - width) / 2)
            own[:, 2] = np.where(absorbing, own[:, 2], width)
        margin = MARGINS.get(setup, 1.25)
        stay = (found[:, 3] >= low / margin) & (found[:, 3] < high * margin)
        verdicts = []
        for i in (1, 2, 3):
            rows = np.flatnonzero(stay & (of == i)).tolist()
            objects = [
                (tuple(own[g].tolist()), bool(absorbing[g])) for g in np.flatnonzero(image == i)
            ]
            pairs = [(tuple(found[d].tolist()), float(scores[d])) for d in rows]
            verdicts.append(people.greedy(pairs, objects, 0.5, strict=False))
        metric = ("MR50" if caltech else "MR") + ("" if setup == "Reasonable" else f"-{setup}")
        n_objects = int((~absorbing).sum())
        if not n_objects:
            assert math.isnan(result.metrics[metric]), setup
            continue
        curve = people.curve(verdicts, n_objects)
        references = list(result.protocol.miss_rate.references)
        before = "zero" if caltech else "last"
        want = people.miss_rate(curve, references, "last_within", before)
        assert result.metrics[metric] == pytest.approx(want, abs=1e-9), setup


def write(folder: Path, images: Any, objects: Any, found: Any, categories: Any) -> Any:
    """Writes COCO files."""
    rows = [{"id": k, **each} for k, each in enumerate(objects, 1)]
    tree = {"images": images, "annotations": rows, "categories": categories}
    return make.write(folder / "truth.json", tree), make.write(folder / "dets.json", found)


def draw(seed: int, n_classes: int, side: float = 12.0) -> tuple[list[Any], list[Any]]:
    """Objects and detections in COCO's form, many near one another, on three images."""
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(1, 14)), int(rng.integers(1, 30))
    boxes = np.hstack([rng.integers(0, 20, (n, 2)) * 4.0, rng.integers(1, 9, (n, 2)) * side / 2])
    near = boxes[rng.integers(0, n, m)] + rng.normal(0, side / 12, (m, 4))
    near[:, 2:] = np.maximum(near[:, 2:], 1)
    scores = rng.integers(0, m // 2 + 1, m) / 16  # many are tied
    objects = [
        {
            "image_id": int(rng.integers(1, 4)),
            "category_id": int(rng.integers(1, n_classes + 1)),
            "bbox": box,
            "area": box[2] * box[3],
            "iscrowd": int(rng.random() < 0.1),
            "ignore": int(rng.random() < 0.1),
            "uncertain": int(rng.random() < 0.15),
        }
        for box in boxes.tolist()
    ]
    found = [
        {
            "image_id": int(rng.integers(1, 4)),
            "category_id": int(rng.integers(1, n_classes + 1)),
            "bbox": box,
            "score": score,
        }
        for box, score in zip(near.tolist(), scores.tolist(), strict=True)
    ]
    return objects, found


def as_things(rows: list[Any], label: int) -> list[Thing]:
    return [
        Thing(row["image_id"], tuple(row["bbox"]), row.get("area", row["bbox"][2] * row["bbox"][3]),
              row.get("score", 0.0))
        for row in rows if row["category_id"] == label
    ]  # fmt: skip


IMAGES = [{"id": i, "width": 200, "height": 200} for i in (1, 2, 3)]


@relaxed
@given(seeds)
def test_tinyperson(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    objects, found = draw(seed, 1)
    folder = tmp_path_factory.mktemp("files")
    files = write(folder, IMAGES, objects, found, [{"id": 1, "name": "person"}])
    result = detmap.evaluate(*files, "tinyperson")
    neutral = [bool(o["iscrowd"] or o["ignore"] or o["uncertain"]) for o in objects]
    sizes = {"": (1, 1e10), "-tiny": (1, 400), "-tiny1": (1, 64), "-tiny2": (64, 144)}
    sizes |= {"-tiny3": (144, 400), "s": (400, 1024), "-reasonable": (1024, 1e10)}
    for name, (low, high) in sizes.items():
        mode = [
            "absorb" if off or not low <= o["area"] <= high else "find"
            for o, off in zip(objects, neutral, strict=True)
        ]
        for t in (0.25, 0.5, 0.75):
            judged = twin.judge(
                as_things(found, 1), as_things(objects, 1), mode, t,
                share=twin.share_by_iou, size=(low, high),
            )  # fmt: skip
            ap, recall = twin.grid_ap(judged, mode.count("find"))
            for kind, want in (("AP", ap), ("AR", recall)):
                got = result.metrics[f"{kind}{round(100 * t)}{name}"]
                assert got == pytest.approx(want, abs=1e-12, nan_ok=True), (kind, t, name)


TINY = {
    "aitod": {"": (0, 1e10), "-verytiny": (0, 64), "-tiny": (64, 256), "s": (256, 1024)},
    "sodad": {"": (0, 1024), "-eS": (0, 144), "-rS": (144, 400), "-gS": (400, 1024)},
}


@relaxed
@given(seeds, st.sampled_from(["aitod", "sodad"]))
def test_sizes_of_tiny_objects(
    tmp_path_factory: pytest.TempPathFactory, seed: int, name: str
) -> None:
    """AP by size; the limits are those of the goldens, since no image here has so many boxes."""
    objects, found = draw(seed, 1)
    folder = tmp_path_factory.mktemp("files")
    files = write(folder, IMAGES, objects, found, [{"id": 1, "name": "ship"}])
    metrics = detmap.evaluate(*files, name).metrics
    for suffix, (low, high) in TINY[name].items():
        mode = []
        for each in objects:
            off = {"aitod": each["iscrowd"], "sodad": each["ignore"]}[name]
            out = not low <= each["area"] <= high
            absorbs = name == "aitod" and off
            mode.append("absorb" if absorbs else "ignore" if off or out else "find")
        aps = []
        for t in range(10):
            judged = twin.judge(
                as_things(found, 1), as_things(objects, 1), mode, 0.5 + 0.05 * t, size=(low, high)
            )
            aps.append(twin.grid_ap(judged, mode.count("find"))[0])
        limit = "" if name == "aitod" else "@100"
        got = metrics[f"AP{suffix}{limit}"]
        assert got == pytest.approx(sum(aps) / 10, abs=1e-12, nan_ok=True), suffix


@relaxed
@given(seeds, st.integers(1, 6))
def test_lvis_fixed(tmp_path_factory: pytest.TempPathFactory, seed: int, limit: int) -> None:
    objects, found = draw(seed, 2, 30)
    rng = np.random.default_rng(seed)
    images = []
    for image in IMAGES:
        own = {o["category_id"] for o in objects if o["image_id"] == image["id"]}
        negative = [k for k in (1, 2) if k not in own and rng.random() < 0.5]
        partial = [k for k in sorted(own) if rng.random() < 0.3]
        lists = {"neg_category_ids": negative, "not_exhaustive_category_ids": partial}
        images.append({**image, **lists})
    classes = [{"id": k, "name": f"c{k}", "frequency": "rf"[k - 1]} for k in (1, 2)]
    for each in objects:
        each["iscrowd"] = 0
    files = write(tmp_path_factory.mktemp("files"), images, objects, found, classes)
    result = detmap.evaluate(*files, "lvis-fixed", settings={"limits.max_dets": [limit]})
    listed = {i["id"]: i for i in images}
    aps: dict[int, list[float]] = {}
    for label in (1, 2):
        own = [o for o in objects if o["category_id"] == label]
        there = {o["image_id"] for o in own}
        ranked = sorted((d for d in found if d["category_id"] == label), key=lambda d: -d["score"])[
            :limit
        ]
        kept = [
            d for d in ranked
            if d["image_id"] in there or label in listed[d["image_id"]]["neg_category_ids"]
        ]  # fmt: skip
        partial = {i for i in listed if label in listed[i]["not_exhaustive_category_ids"]}
        mode = ["ignore" if o["ignore"] else "find" for o in own]
        for k in range(10):
            judged = twin.judge(
                as_things(kept, label), as_things(own, label), mode, 0.5 + 0.05 * k,
                size=(0, 1e10), lenient=partial,
            )  # fmt: skip
            if mode.count("find"):
                aps.setdefault(label, []).append(twin.grid_ap(judged, mode.count("find"))[0])
    means = {label: sum(some) / len(some) for label, some in aps.items()}
    want = {"APr": means.get(1, math.nan), "APf": means.get(2, math.nan)}
    want["AP"] = sum(means.values()) / len(means) if means else math.nan
    for name, value in want.items():
        assert result.metrics[name] == pytest.approx(value, abs=1e-12, nan_ok=True), name


@relaxed
@given(seeds)
def test_ov_coco(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    objects, found = draw(seed, 3, 30)
    names = ("person", "dog", "cat")
    classes = [{"id": k, "name": name} for k, name in enumerate(names, 1)]
    files = write(tmp_path_factory.mktemp("files"), IMAGES, objects, found, classes)
    metrics = detmap.evaluate(*files, "ov-coco").metrics
    known: dict[int, float] = {}
    for label in (1, 2, 3):
        own = [o for o in objects if o["category_id"] == label]
        mode = ["absorb" if o["iscrowd"] else "find" for o in own]
        if "find" in mode:
            judged = twin.judge(as_things(found, label), as_things(own, label), mode, 0.5)
            known[label] = twin.grid_ap(judged, mode.count("find"))[0]
    for group, labels in (("base", (1,)), ("novel", (2, 3))):
        some = [known[k] for k in labels if k in known]
        want = sum(some) / len(some) if some else math.nan
        assert metrics[f"AP50-{group}"] == pytest.approx(want, abs=1e-12, nan_ok=True)


@pytest.mark.parametrize("seed", range(drawn(12)))
def test_imagenet_det(seed: int) -> None:
    rng = np.random.default_rng(seed)
    objects, found = things(rng, 14, corners=True), things(rng, 40, corners=True)
    truth, detections = tables(objects, found, corners=True)
    black = [(i, k) for i in (1, 2, 3, 4) for k in (1, 2) if rng.random() < 0.2]
    pairs = detmap.core.tables.Scope(
        np.cumsum([0, *(sum(i == image for i, _ in black) for image in (1, 2, 3, 4))]),
        np.array([k - 1 for _, k in black], dtype=np.int32),
        np.full(len(black), detmap.core.tables.NOT_EXHAUSTIVE, dtype=np.uint8),
    )
    left = [o for o in objects if (o.image, o.label) not in black]
    rows = [k for k, o in enumerate(objects) if o in left]
    result = detmap.evaluate(replace(truth.take(np.array(rows)), scope=pairs), detections,
                             "imagenet-det")  # fmt: skip
    judged = [d for d in found if (d.image, d.label) not in black]
    for row in result.per_class:
        want = ilsvrc_visdrone.motion_ap(left, judged, row["id"])
        if not math.isnan(want):
            assert row["mAP" if "mAP" in row else "AP"] == pytest.approx(want, abs=1e-12)
