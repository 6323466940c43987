"""Overlaps of rotated boxes against twins: rational numbers, and formulas one pair at a time."""

import math
from typing import Any

import numpy as np
import pytest

import detmap
from detmap.benchmarks.overlaps import polygon_iou, probiou
from detmap.benchmarks.overlaps.rotated_pairs import PolygonPairs, ProbiouPairs, rectangles_of
from detmap.core.matching.subsets import EVERY_SUBSET
from detmap.core.overlaps.rotated_boxes import RotatedBoxes, RotatedBoxReader, corners_of
from detmap.errors import DataError
from detmap.kernels import cells as layout
from tests.reference import polygons as twin
from tests.support.tier import drawn

SQUARE = [[0.0, 0.0], [2.0, 0.0], [2.0, 2.0], [0.0, 2.0]]
BOW = [[0.0, 0.0], [2.0, 2.0], [2.0, 0.0], [0.0, 1.0]]


def iou(one: Any, other: Any, *, absorbing: bool = False) -> float:
    """The overlap of two quadrilaterals."""
    a, b = (polygon_iou.Polygons(np.array([each], dtype=float)) for each in (one, other))
    rows = np.zeros(1, dtype=int)
    found = polygon_iou.overlaps(a, b, (rows, rows), np.array([absorbing]), np.zeros(1))
    return float(found[0])


def draw(kind: str, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Two quadrilaterals with trouble."""
    one = rng.uniform(0, 100, (4, 2))
    if kind == "any":  # crossed, hollow and convex ones
        return one, rng.uniform(0, 100, (4, 2))
    if kind == "grid":  # shared corners and edges, corners on edges, lines and points
        found = rng.integers(0, 4, (2, 4, 2)).astype(float)
        return found[0], found[1]
    if kind == "same":  # from another corner, the other way round
        return one, np.roll(one, rng.integers(4), axis=0)[:: rng.choice([-1, 1])]
    if kind == "size":
        size = 10.0 ** rng.integers(-6, 7)
        return one * size, (one + rng.normal(0, 10, (4, 2))) * size
    if kind == "far":
        one += rng.integers(0, 10**6)
        return one, one + rng.normal(0, 10, (4, 2))
    values = rng.uniform(1, 25, (2, 5))
    values[1] = values[0] + rng.normal(0, 2, 5) * [1, 1, 0.2, 0.2, 0.02]
    boxes = corners_of(values)
    return boxes[0], boxes[1]


@pytest.mark.parametrize("kind", ["any", "grid", "same", "size", "far", "turned"])
def test_polygons_are_those_of_the_rational_twin(kind: str) -> None:
    rng = np.random.default_rng(len(kind))
    for _ in range(drawn(60)):
        one, other = draw(kind, rng)
        assert iou(one, other) == pytest.approx(float(twin.iou(one, other)), abs=1e-11)


def test_polygons_that_meet_in_little() -> None:
    turned = [[1.0, 0.0], [2.0, 1.0], [1.0, 2.0], [0.0, 1.0]]  # corners on the square's edges
    beside = [[2.0, 0.0], [4.0, 0.0], [4.0, 2.0], [2.0, 2.0]]
    line = [[0.0, 0.0], [2.0, 2.0], [2.0, 2.0], [0.0, 0.0]]
    assert (iou(SQUARE, turned), iou(SQUARE, beside), iou(SQUARE, SQUARE[::-1])) == (0.5, 0, 1)
    assert (iou(line, line), iou(line, SQUARE), iou([[1.0, 1.0]] * 4, SQUARE)) == (0, 0, 0)
    assert iou(BOW, BOW) == 1
    assert 0 <= iou(BOW, SQUARE) <= 1
    assert iou(turned, SQUARE, absorbing=True) == 1
    tilted = (np.array(line) @ [[0.6, 0.8], [-0.8, 0.6]]) / 3  # its area is a rounding error
    assert iou(tilted, tilted) == 0


def test_rectangles_around_corners() -> None:
    rng = np.random.default_rng(0)
    values = rng.uniform(1, 50, (50, 5))
    turned = rectangles_of(RotatedBoxes(corners_of(values).reshape(-1, 8)))
    assert np.sort(turned[:, 2:4]) == pytest.approx(np.sort(values[:, 2:4]))
    assert turned[:, :2] == pytest.approx(values[:, :2])
    drawn_corners = rng.uniform(0, 9, (20, 8))
    found = rectangles_of(RotatedBoxes(drawn_corners))
    for corners, box in zip(drawn_corners.reshape(-1, 4, 2), found, strict=True):
        areas = [
            np.ptp(corners @ [math.cos(a), math.sin(a)])
            * np.ptp(corners @ [-math.sin(a), math.cos(a)])
            for a in np.linspace(0, math.pi, 200)
        ]
        assert box[2] * box[3] <= min(areas) + 1e-9
        for x, y in corners - box[:2]:  # all corners are inside
            along = x * math.cos(box[4]) + y * math.sin(box[4])
            across = y * math.cos(box[4]) - x * math.sin(box[4])
            assert abs(along) <= box[2] / 2 + 1e-9
            assert abs(across) <= box[3] / 2 + 1e-9


def naive_probiou(one: list[float], other: list[float]) -> float:
    """The formula for one pair, from matrices."""
    eps = 1e-7
    spreads = []
    for _, _, w, h, angle in (one, other):
        turn = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
        spreads.append(turn @ np.diag([w * w / 12, h * h / 12]) @ turn.T)
    total = spreads[0] + spreads[1]
    d = np.array(one[:2]) - np.array(other[:2])
    det = float(np.linalg.det(total))
    adjugate = np.array([[total[1, 1], -total[0, 1]], [-total[1, 0], total[0, 0]]])
    distance = float(d @ adjugate @ d) / (det + eps) / 4
    own = max(np.linalg.det(spreads[0]), 0) * max(np.linalg.det(spreads[1]), 0)
    distance += math.log(det / (4 * math.sqrt(own) + eps) + eps) / 2
    return 1 - math.sqrt(1 - math.exp(-min(max(distance, eps), 100.0)) + eps)


def test_probiou_is_that_of_the_twin() -> None:
    rng = np.random.default_rng(1)
    one, other = rng.uniform(1, 40, (2, 200, 5))
    other[:100] = one[:100] + rng.normal(0, 1, (100, 5)) * [2, 2, 1, 1, 0.1]
    other[:, 2:4] = np.abs(other[:, 2:4])
    wanted = [naive_probiou(a, b) for a, b in zip(one.tolist(), other.tolist(), strict=True)]
    assert probiou.overlaps(one, other) == pytest.approx(wanted, abs=1e-9)
    assert probiou.overlaps(one, one) == pytest.approx(1 - math.sqrt(2e-7), abs=1e-9)


@pytest.mark.parametrize("kind", [PolygonPairs, ProbiouPairs])
@pytest.mark.parametrize("scale", [1.0, 1e-3])
def test_no_pair_is_missed(kind: Any, scale: float) -> None:
    """The pairs are those of all overlaps, whatever is left out before."""
    rng = np.random.default_rng(2)
    values = rng.uniform(5, 90, (2, 25, 5)) * [scale, scale, scale / 2, scale / 2, 1]
    frame = ["a"] * 25
    columns = ("cx", "cy", "w", "h", "angle")
    tables = [
        {"image": frame, "class": frame, **dict(zip(columns, each.T, strict=True))}
        for each in values
    ]
    truth = detmap.truth_from_arrays(tables[0])
    found = detmap.detections_from_arrays(truth, {**tables[1], "score": np.linspace(0, 1, 25)})
    g = np.arange(25, dtype=np.int32)
    absorb = np.where(g < 9, EVERY_SUBSET, np.uint64(0))
    objects = layout.ObjectColumns(
        np.array([0, 25]), g, g, np.zeros(25, np.uint64), absorb, np.full(25, np.inf)
    )
    cells = layout.Cells(g, np.array([[0, 25, 0, 25]]))
    every = {}
    boxes = corners_of(truth.shapes.values), corners_of(found.shapes.values)
    for i in range(25):
        for j in range(25):
            if kind is PolygonPairs:
                overlap = iou(boxes[1][i], boxes[0][j], absorbing=j < 9)
            else:
                one, other = found.shapes.values[i : i + 1], truth.shapes.values[j : j + 1]
                overlap = float(probiou.overlaps(one, other)[0])
            every[i, j] = overlap
    for lowest in (0.5, 0.05, 0.0):
        pairs = {}
        for n, each in kind(truth, found, objects, lowest)(cells, 1, g):
            for i in range(n):
                for j in range(each.off[i], each.off[i + 1]):
                    pairs[int(each.detection[i]), int(each.object[j])] = float(each.overlap[j])
        wanted = {pair: overlap for pair, overlap in every.items() if overlap >= lowest}
        assert pairs == pytest.approx(wanted, abs=1e-12)


def test_records_of_coco() -> None:
    reader = RotatedBoxReader()

    def place(i: int) -> str:
        return f"record {i}"

    read = reader.read(
        [[[0, 0, 2, 0, 2, 2, 0, 2]], [0, 0, 2, 0, 2, 2, 0, 2]], np.zeros((2, 2)), place
    )
    assert read.area.tolist() == [4, 4]
    five = reader.read([[1, 1, 2, 4, 0.0]], np.zeros((1, 2)), place)
    assert reader.around(five).tolist() == [[0, -1, 2, 4]]
    assert len(reader.read([], np.zeros((0, 2)), place)) == 0
    for bad in (
        [1, 2, 3],
        [[1, 2, 3, 4]],
        None,
        "x",
        [1, 1, -2, 4, 0],
        [0, 0, 1e10, 0, 2, 2, 0, 2],
    ):
        with pytest.raises(DataError, match=r"record 0: .*\(a rotated box is x1 y1"):
            reader.read([bad], np.zeros((1, 2)), place)
    with pytest.raises(DataError, match=r"record 1: .*the same in the whole file"):
        reader.read([[1, 1, 2, 4, 0], [0, 0, 2, 0, 2, 2, 0, 2]], np.zeros((2, 2)), place)
