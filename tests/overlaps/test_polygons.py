"""Polygons become the run lengths that pycocotools makes of them."""

from typing import Any

import numpy as np
import pytest

from detmap.core.overlaps import masks, polygons
from detmap.errors import DataError
from detmap.kernels.runs import Runs

pycocotools = pytest.importorskip("pycocotools.mask")


def runs(given: list[Any], height: int, width: int) -> Runs:
    sizes = np.full((len(given), 2), (height, width), dtype=float)
    return masks.read(given, sizes, str).runs


def theirs(rings: list[list[float]], height: int, width: int) -> list[int]:
    drawn = pycocotools.frPyObjects(rings, height, width)
    one = drawn[0] if len(drawn) == 1 else pycocotools.merge(drawn)
    return runs([{"size": [height, width], "counts": one["counts"].decode()}], height, width).counts


def draw_rings(rng: np.random.Generator) -> list[list[float]]:
    """Polygons around, in and beyond an image of 60 by 60, with trouble: whole and half pixels,
    the fine grid of the rule, corners that repeat, and sides without width.
    """
    rings = []
    for _ in range(rng.integers(1, 4)):
        points = rng.uniform(-10, 70, (rng.integers(3, 9), 2))
        grid = rng.choice([0, 1, 2, 5, 10])
        points = np.round(points * grid) / grid if grid else points
        if rng.random() < 0.2:
            points = np.repeat(points, rng.integers(1, 3), axis=0)
        if rng.random() < 0.1:
            points[:, rng.integers(2)] = points[0, 0]
        if rng.random() < 0.1:
            points *= 1000
        rings.append(points.ravel().tolist())
    return rings


@pytest.mark.parametrize("seed", range(300))
def test_runs_are_those_of_pycocotools(seed: int) -> None:
    rng = np.random.default_rng(seed)
    height, width = rng.integers(1, 60, 2).tolist()
    rings = draw_rings(rng)
    assert runs([rings], height, width).counts.tolist() == list(theirs(rings, height, width))


@pytest.mark.parametrize("height", [480, 65534, 65535, 65536, 200_000])
def test_single_polygons_on_large_images(height: int) -> None:
    """Their runs of 65,535 and more pixels took more space than their outline has columns."""
    for width, x, y in ((640, 300, 10), (3, 1, 0), (2, 0, height - 3), (5, 4, height // 2)):
        ring = [x, y, x + 1, y, x + 1, height - y // 2]
        assert runs([[ring]], height, width).counts.tolist() == list(theirs([ring], height, width))


def test_masks_are_drawn_apart_and_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slices of any size, in threads, give the runs of one mask after the other."""
    given = [draw_rings(np.random.default_rng(seed)) for seed in range(40)]
    whole = runs(given, 50, 40)
    for size in (1, 7):
        monkeypatch.setattr(polygons, "AT_ONCE", size)
        some = runs(given, 50, 40)
        assert some.counts.tolist() == whole.counts.tolist()
        assert some.off.tolist() == whole.off.tolist()
    for i, rings in enumerate(given):
        own = whole.counts[whole.off[i] : whole.off[i + 1]]
        assert own.tolist() == list(theirs(rings, 50, 40))


def test_a_polygon_beside_the_image_is_an_empty_mask() -> None:
    assert runs([[[-9, -9, -5, -9, -5, -5]]], 4, 5).counts.tolist() == [20]


def test_outlines_that_pass_too_many_columns_are_refused() -> None:
    """A small file could ask for hours and gigabytes: images as wide as there are pixels."""
    wide = [[[0, 0, 4e6, 0, 4e6, 1]]] * 400
    with pytest.raises(DataError, match=r"400 masks pass 3,\d+,\d+,\d+ columns of pixels"):
        runs(wide, 1, 2**31 - 1)
