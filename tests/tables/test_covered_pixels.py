"""Boxes in ignored regions, against an image of pixels."""

from typing import Any

import numpy as np
import pytest

from detmap.core.tables import covered_pixels, regions
from detmap.core.tables.regions import Regions
from detmap.errors import CrowdedError
from tests.support.tier import drawn


def half_of_pixels(ignored: Any, boxes: Any, width: int, height: int) -> list[bool]:
    """The rule of dropObjectsInIgr.m, pixel by pixel."""
    covered = np.zeros((height, width), dtype=bool)
    for x, y, w, h in np.maximum(ignored, 1).astype(int).tolist():
        covered[y - 1 : min(height, y + h), x - 1 : min(width, x + w)] = True
    flags = []
    for x, y, w, h in np.maximum(np.floor(boxes + 0.5), 1).astype(int).tolist():
        left, top = min(width, x), min(height, y)
        inside = covered[top : min(height, top + h), left : min(width, left + w)].sum()
        flags.append(bool(inside / (w * h) >= 0.5))
    return flags


def draw(rng: Any) -> tuple[Any, Any]:
    """Regions and boxes, also beyond an image of up to 30 pixels, also between pixels."""
    n, m = rng.integers(1, 9, 2)
    ignored = np.hstack([rng.integers(-5, 35, (n, 2)), rng.integers(-2, 35, (n, 2))]) * 1.0
    boxes = np.hstack([rng.integers(-5, 35, (m, 2)), rng.integers(-2, 20, (m, 2))]) * 1.0
    if rng.random() < 0.5:
        ignored, boxes = (
            each + rng.choice([0, 0.25, 0.5], each.shape) for each in (ignored, boxes)
        )
    return ignored, boxes


@pytest.mark.parametrize("seed", range(drawn(200)))
def test_half_of_the_pixels_of_a_box(seed: int) -> None:
    rng = np.random.default_rng(seed)
    ignored, boxes = draw(rng)
    width, height = rng.integers(1, 30, 2).tolist()
    found = covered_pixels.half_covered(ignored, boxes, width, height, "here")
    assert found.tolist() == half_of_pixels(ignored, boxes, width, height)


@pytest.mark.parametrize("seed", range(drawn(60)))
def test_a_box_inside_of_a_region_in_blocks(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regions, "AT_ONCE", 5)
    rng = np.random.default_rng(seed)
    ignored, boxes = draw(rng)
    image = np.sort(rng.integers(0, 3, len(ignored))).astype(np.int32)
    of_boxes = rng.integers(-1, 4, len(boxes)).astype(np.int32)
    found = Regions("inside", image, ignored).cover(of_boxes, boxes, (np.zeros(4), np.zeros(4)))
    assert found.tolist() == [
        any(
            (box[:2] > region[:2]).all() and (box[:2] + box[2:] < region[:2] + region[2:]).all()
            for at, region in zip(image, ignored, strict=True)
            if at == i
        )
        for i, box in zip(of_boxes, boxes, strict=True)
    ]


def test_the_size_of_an_image_costs_nothing() -> None:
    """Half of a million million pixels, in two parts."""
    ignored = np.array([[1.0, 1.0, 500_000.0, 999_999.0]])
    boxes = np.array([[1.0, 1.0, 999_999.0, 9.0], [500_001.0, 1.0, 9.0, 9.0]])
    found = covered_pixels.half_covered(ignored, boxes, 1_000_000, 1_000_000, "here")
    assert found.tolist() == [True, False]


def test_too_many_parts_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(covered_pixels, "MOST_PARTS", 15)
    ignored = np.array([[1.0, 1.0, 4.0, 4.0], [3.0, 3.0, 9.0, 9.0]])
    own = Regions("half", np.array([2, 2], dtype=np.int32), ignored)
    with pytest.raises(CrowdedError, match="image 3: 2 ignored regions divide it into 16 parts"):
        own.cover(np.array([2], dtype=np.int32), ignored[:1], (np.full(3, 99.0),) * 2)
