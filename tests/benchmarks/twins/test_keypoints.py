"""CrowdPose and COCO-WholeBody against their slow twins, on any small data."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import detmap
from tests.benchmarks.twins.test_coco_family import write
from tests.reference import keypoints as twin
from tests.reference.keypoints import Person
from tests.support.tier import drawn

relaxed = settings(max_examples=drawn(25))
seeds = st.integers(0, 10**6)
PARTS = {
    "body": ("keypoints", 17, "score"),
    "foot": ("foot_kpts", 6, "foot_score"),
    "face": ("face_kpts", 68, "face_score"),
    "lefthand": ("lefthand_kpts", 21, "lefthand_score"),
    "righthand": ("righthand_kpts", 21, "righthand_score"),
}
SIZES = {"": (0, 1e10), "m": (1024, 9216), "l": (9216, 1e10)}
IMAGES = (1, 2, 3, 4)
PERSON = [{"id": 1, "name": "person"}]


def draw(seed: int, fields: dict[str, int]) -> tuple[list[Any], list[Any]]:
    """Objects and detections: near one another, equal ones, without points, equal scores, and more
    than 20 on one image.
    """
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(1, 10)), int(rng.choice([0, 3, 12, 60]))
    objects: list[Any] = []
    for _ in range(n):
        w, h = rng.choice([8.0, 32, 96, 120], 2).tolist()
        x, y = rng.integers(0, 40, 2).tolist()
        one: dict[str, Any] = {
            "image_id": int(rng.choice(IMAGES)),
            "category_id": 1,
            "bbox": [x, y, w, h],
            "area": w * h,
            "iscrowd": int(rng.random() < 0.15),
        }
        for field, k in fields.items():
            seen = rng.integers(0, 3, k) * (rng.random() > 0.15)
            spots = rng.integers(0, 9, (k, 2)) / 8 * [w, h] + [x, y]
            one[field] = np.column_stack([spots * (seen > 0)[:, None], seen]).ravel().tolist()
        objects.append(one)
    found: list[Any] = []
    for source in rng.integers(0, n, m).tolist():
        near, noise = objects[source], rng.choice([0.0, 1, 4])
        here = near["image_id"] if rng.random() < 0.8 else int(rng.choice(IMAGES))
        one = {"image_id": here, "category_id": 1, "score": float(rng.integers(1, 9)) / 10}
        for field, k in fields.items():
            points = np.array(near[field]).reshape(k, 3)
            points[:, :2] += rng.normal(0, 1, (k, 2)) * noise
            points[:, 2] = rng.random() > 0.15
            one[field] = points.ravel().tolist()
        found.append(one)
    return objects, found


def points(record: Any, fields: list[str]) -> list[twin.Point]:
    flat = [value for field in fields for value in record[field]]
    return list(zip(flat[::3], flat[1::3], flat[2::3], strict=True))


def extent(record: Any) -> float:
    """The area of the box around all points of ``keypoints``."""
    x, y, _ = zip(*points(record, ["keypoints"]), strict=True)
    return (max(x) - min(x)) * (max(y) - min(y))


def person(record: Any, fields: list[str], area: float, labelled: bool) -> Person:
    role = "absorb" if record["iscrowd"] else "find" if labelled else "ignore"
    box = tuple(record["bbox"])
    return Person(record["image_id"], points(record, fields), area, box, role)


@relaxed
@given(seeds)
def test_crowdpose(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    objects, found = draw(seed, {"keypoints": 14})
    rng = np.random.default_rng(seed)
    for one in objects:
        del one["area"]
        visible = sum(v == 2 for *_, v in points(one, ["keypoints"]))
        one["num_keypoints"] = visible
    crowding = dict(
        zip(IMAGES, rng.choice([0.0, 0.1, 0.2, 0.5, 0.8, 1.0], 4).tolist(), strict=True)
    )
    images = [{"id": i, "crowdIndex": crowding[i]} for i in IMAGES]
    files = write(tmp_path_factory.mktemp("files"), images, objects, found, PERSON)
    metrics = detmap.evaluate(*files, "crowdpose").metrics
    people = [
        person(one, ["keypoints"], 0.53 * one["bbox"][2] * one["bbox"][3], one["num_keypoints"] > 0)
        for one in objects
    ]
    dets = [
        Person(one["image_id"], points(one, ["keypoints"]), extent(one), score=one["score"])
        for one in found
    ]
    want = twin.evaluate(dets, people, SIGMAS)
    for name, low, high in (("easy", -1, 0.2), ("medium", 0.2, 0.8), ("hard", 0.8, 2)):
        here = {i for i, index in crowding.items() if low <= index < high}
        some = [[each for each in table if each.image in here] for table in (dets, people)]
        want[f"AP-{name}"] = round(twin.evaluate(*some, SIGMAS)["AP"], 4)
    assert metrics.keys() == want.keys()
    for name, value in want.items():
        within = 1.01e-4 if "-" in name else 1e-12  # rounded to four digits
        assert metrics[name] == pytest.approx(value, abs=within, nan_ok=True), name


SIGMAS = [0.079, 0.079, 0.072, 0.072, 0.062, 0.062, 0.107, 0.107, 0.087, 0.087, 0.089, 0.089]
SIGMAS += [0.079, 0.079]


@pytest.mark.slow
@relaxed
@given(seeds)
def test_wholebody(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    objects, found = draw(seed, {field: n for field, n, _ in PARTS.values()})
    rng = np.random.default_rng(seed)
    for one in found:
        names = [score for *_, score in PARTS.values()][1:]
        for name in (*names, "wholebody_score"):
            if rng.random() < 0.7:
                one[name] = float(rng.integers(1, 9)) / 10
    images = [{"id": i, "width": 300, "height": 300} for i in IMAGES]
    files = write(tmp_path_factory.mktemp("files"), images, objects, found, PERSON)
    result = detmap.evaluate(*files, "wholebody")
    sigmas = iter(result.protocol.iou.sigmas)
    every: list[float] = []
    kinds = []
    for name, (field, n, score) in PARTS.items():
        own = [next(sigmas) for _ in range(n)]
        kinds.append((name, [field], own, score))
        every += own
    kinds.append(("all", [field for field, *_ in PARTS.values()], every, "wholebody_score"))
    for kind, fields, own, score in kinds:
        people = [
            person(one, fields, one["area"], any(v > 0 for *_, v in points(one, fields)))
            for one in objects
        ]
        dets = [
            Person(one["image_id"], points(one, fields), extent(one),
                   score=one.get(score, one["score"]))
            for one in found
            if any(v > 0 for *_, v in points(one, fields))
        ]  # fmt: skip
        for letter, size in SIZES.items():
            want = twin.evaluate(dets, people, own, size)
            names = {"": ("AP", "AP50", "AP75", "AR", "AR50", "AR75")}.get(letter, ("AP", "AR"))
            for name in names:
                got = result.metrics[f"{name}{letter}-{kind}"]
                assert got == pytest.approx(want[name], abs=1e-12, nan_ok=True), (name, kind)
    assert len(result.metrics) == 10 * len(kinds)


def test_the_twin_of_similarity_by_hand() -> None:
    """A point 2 sigma sqrt(area) away has a similarity of exp(-1/2)."""
    one = Person(1, [(0, 0, 2), (5, 5, 0)], 100.0)
    found = one._replace(points=[(2.0, 0, 1), (90, 90, 1)])
    assert twin.similarity(found, one, [0.1, 0.1]) == pytest.approx(math.exp(-0.5))
