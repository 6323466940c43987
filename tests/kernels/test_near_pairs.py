"""The pairs of boxes that are not apart, against a plain loop."""

import math

import numpy as np
import pytest

from detmap.kernels.pairs import list_near


def drawn_pairs(seed: int, apart: float) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Pairs found by the kernel and by a plain loop, on boxes that often touch."""
    rng = np.random.default_rng(seed)
    corners = [rng.integers(0, 8, (n, 2)).astype(float) for n in (12, 9)]
    detections, objects = (
        np.hstack([least, least + rng.integers(0, 4, least.shape)]) for least in corners
    )
    rows = rng.permutation(12).astype(np.int32)[:10]
    first = rng.integers(0, 10, 10)
    last = np.minimum(first + rng.integers(0, 5, 10), 9).clip(first)
    space = np.empty((2, int((last - first).sum())), np.int64)
    n = list_near(rows, first, last, detections, objects, apart, *space)
    found = list(zip(*space[:, :n].tolist(), strict=True))
    expected = []
    for i, row in enumerate(rows):
        for g in range(first[i], last[i]):
            shared = np.minimum(detections[row, 2:], objects[g, 2:]) - np.maximum(
                detections[row, :2], objects[g, :2]
            )
            if not (shared <= apart).any():
                expected.append((i, g))
    return found, expected


@pytest.mark.parametrize("apart", [0.0, -1.0, 1.0, math.nan])
@pytest.mark.parametrize("seed", range(10))
def test_near_pairs_are_those_of_a_plain_loop(seed: int, apart: float) -> None:
    found, expected = drawn_pairs(seed, apart)
    assert found == expected
