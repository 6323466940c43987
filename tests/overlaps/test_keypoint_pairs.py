"""Similarities of many cells at once are those of one cell after the other, in every bit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from detmap.core.overlaps import keypoint_pairs
from detmap.core.overlaps.keypoint_pairs import KeypointPairs
from detmap.core.overlaps.keypoints import boxes_around
from detmap.kernels.cells import Cells, ObjectColumns

COORDINATES = st.one_of(
    st.floats(-700, 700), st.sampled_from([0.0, -0.0, 1e99, 1e100, 1e101, np.inf, np.nan])
)


def similarity(
    found: np.ndarray, points: np.ndarray, box: np.ndarray, area: float, variances: np.ndarray
) -> np.ndarray:
    """(d,) similarities of detections and one object, as COCOeval.computeOks has them."""
    xd, yd = found[:, :, 0], found[:, :, 1]
    xg, yg, visible = points.T
    labelled = visible > 0
    dx, dy = xd - xg, yd - yg
    if not labelled.any():
        left, top, width, height = box
        x0, x1, y0, y1 = left - width, left + width * 2, top - height, top + height * 2
        dx = np.maximum(0, x0 - xd) + np.maximum(0, xd - x1)
        dy = np.maximum(0, y0 - yd) + np.maximum(0, yd - y1)
    e = (dx**2 + dy**2) / variances / (area + np.spacing(1)) / 2
    if labelled.any():
        e = np.ascontiguousarray(e[:, labelled])
    return np.exp(-e).sum(axis=1) / e.shape[1]


Listed = list[tuple[int, int, bool, float]]


def pairs(k: int, seed: int) -> tuple[Listed, Listed]:
    """The pairs of drawn cells, and those of one cell after the other."""
    rng = np.random.default_rng(seed)
    n_cells, sigmas = 5, rng.uniform(0.05, 0.2, k)
    n_found, n_objects = rng.integers(1, 6, n_cells), rng.integers(1, 5, n_cells)
    d, g = int(n_found.sum()), int(n_objects.sum())
    found, points = rng.uniform(0, 30, (d, k, 3)), rng.uniform(0, 30, (g, k, 3))
    points[..., 2] = (rng.random((g, k)) < rng.random((g, 1))) * rng.integers(1, 3, (g, k))
    points[0, :, 2] = 0
    boxes, area = rng.uniform(1, 20, (g, 4)), rng.uniform(0, 300, g) * (rng.random(g) < 0.9)
    area *= rng.choice([1, 1, 1, 1, 0.01, -9], g)  # so that similarities vanish, or are above 1
    absorb = rng.choice(np.array([0, 1, 2**64 - 1], dtype=np.uint64), g)
    lowest = float(rng.choice([0.0, 0.1, 0.3]))
    rows, position = rng.permutation(g).astype(np.int32), rng.permutation(d).astype(np.int32)
    blank = np.zeros(g, dtype=np.int32)
    objects = ObjectColumns(*(blank for _ in ObjectColumns._fields))._replace(
        row=rows, absorb=absorb, enough=np.full(g, np.inf)
    )
    ends = np.cumsum(n_found), np.cumsum(n_objects)
    bounds = np.stack([ends[0] - n_found, ends[0], ends[1] - n_objects, ends[1]], axis=1).astype(
        np.int64
    )
    cells = Cells(*(blank for _ in Cells._fields))._replace(
        members=np.arange(d, dtype=np.int32), bounds=bounds
    )
    made = KeypointPairs(found, points, boxes, area, objects, lowest=lowest, sigmas=sigmas.tolist())
    got = []
    for n, buffer in made(cells, n_cells, position):
        for i in range(n):
            for at in range(buffer.off[i], buffer.off[i + 1]):
                pair = int(buffer.detection[i]), int(buffer.object[at]), bool(buffer.absorbing[at])
                got.append((*pair, float(buffer.overlap[at])))
    wanted = []
    variances = (sigmas * 2) ** 2
    for begin, end, first, last in bounds.tolist():
        for member in range(begin, end):
            own = found[position[member]][None]
            for absorbing in (False, True):
                for place in range(first, last):
                    row = rows[place]
                    value = float(similarity(own, points[row], boxes[row], area[row], variances)[0])
                    some = absorb[place] != 0 if absorbing else ~absorb[place] != 0
                    if some and value >= lowest:
                        wanted.append((member, place, absorbing, value))
    return got, wanted


@pytest.mark.parametrize("k", [1, 7, 8, 17, 133, 300])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("at_once", [1, 40, 1 << 19])
def test_pairs_are_those_of_one_cell_after_the_other(
    k: int, seed: int, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keypoint_pairs, "AT_ONCE", at_once)
    got, wanted = pairs(k, seed)
    assert got == wanted


@given(
    arrays(
        np.float64,
        st.tuples(st.integers(1, 40), st.integers(1, 9), st.just(3)),
        elements=COORDINATES,
    )
)
def test_boxes_around_are_the_extremes_of_each_row(points: np.ndarray) -> None:
    boxes, n_good = boxes_around(points)
    total = np.abs(points).sum(axis=(1, 2))
    assert n_good == next((i for i, each in enumerate(total) if not each <= 1e100), len(points))
    low, high = points[:n_good, :, :2].min(axis=1), points[:n_good, :, :2].max(axis=1)
    assert (boxes[:n_good] == np.concatenate([low, high - low], axis=1)).all()
