"""Detections without scores against every order of them, on small data."""

import math
from statistics import fmean, pstdev
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import detmap
from detmap.benchmarks.scoreless.rules import ORDERS
from tests.reference import scoreless as twin
from tests.reference.coco_family import Thing
from tests.support.tier import drawn

relaxed = settings(max_examples=drawn(30))
MOST = (4, 3)  # detections of the two classes: 24 times 6 orders
IMAGES = (1, 2, 3)


def draw(seed: int, n_objects: int) -> list[twin.Table]:
    """Two classes: equal boxes, boxes that contend for an object, and crowds."""
    rng = np.random.default_rng(seed)
    tables = []
    for most in MOST:
        corners = rng.integers(0, 3, (n_objects, 2)) * 4.0
        boxes = np.hstack([corners, rng.choice([8.0, 10, 20], (n_objects, 2))])
        images = rng.choice(IMAGES, n_objects)
        m = int(rng.integers(0, most + 1)) if n_objects else 1
        source = rng.integers(0, n_objects, m) if n_objects else np.zeros(0, dtype=int)
        moved = boxes[source] + rng.choice([0.0, 0, 1, 2], (len(source), 4))
        objects = [Thing(int(i), tuple(b.tolist()), 0) for i, b in zip(images, boxes, strict=True)]
        found = [
            Thing(int(images[s]), tuple(b.tolist()), 0) for s, b in zip(source, moved, strict=True)
        ]
        crowd = (rng.random(n_objects) < 0.15).tolist()
        tables.append(twin.Table(objects, crowd, found))
    return tables


def evaluate(tables: list[twin.Table], rng: Any) -> Any:
    """The result of detmap, with the detections in a random order."""
    objects = [(each, k) for k, table in enumerate(tables, 1) for each in table.objects]
    found = [(each, k) for k, table in enumerate(tables, 1) for each in table.found]
    found = [found[d] for d in rng.permutation(len(found))]

    def columns(rows: Any) -> tuple[list[int], list[int], Any]:
        boxes = np.array([each.box for each, _ in rows], dtype=float).reshape(-1, 4)
        return [each.image for each, _ in rows], [k for _, k in rows], boxes

    truth = detmap.truth_from_arrays(
        *columns(objects), images=IMAGES, categories={1: "a", 2: "b"},
        crowd=[flag for table in tables for flag in table.crowd],
    )  # fmt: skip
    return detmap.evaluate(
        truth, detmap.detections_from_arrays(truth, *columns(found)), "scoreless"
    )


@pytest.mark.slow
@relaxed
@given(st.integers(0, 10**6), st.integers(0, 4))
def test_counts_and_every_order(seed: int, n_objects: int) -> None:
    tables = draw(seed, n_objects)
    result = evaluate(tables, np.random.default_rng(seed))
    for name, value in twin.rates(tables).items():
        assert result.metrics[name] == pytest.approx(value, abs=1e-12, nan_ok=True), name
    rows = {row["id"]: row for row in result.per_class}
    for k, table in enumerate(tables, 1):
        for name, value in twin.rates([table]).items():
            assert rows[k][name] == pytest.approx(value, abs=1e-12, nan_ok=True), (k, name)
    for name, values in zip(("AP", "AP50"), zip(*twin.aps(tables), strict=True), strict=True):
        low, mean, sd, high = (
            result.metrics[f"{name}-{what}"] for what in ("low", "mean", "sd", "high")
        )
        if math.isnan(values[0]):
            assert np.isnan([low, mean, high]).all()
            continue
        assert min(values) - 1e-12 <= low <= mean + 1e-12
        assert mean - 1e-12 <= high <= max(values) + 1e-12
        assert min(values) - 1e-12 <= mean <= max(values) + 1e-12
        spread = pstdev(values)
        assert abs(mean - fmean(values)) <= 6 * spread / ORDERS**0.5 + 1e-12
        assert sd <= (max(values) - min(values)) * 0.51 + 1e-12
