"""Boxes drawn at random, and detections near them."""

from typing import Any

import numpy as np

Row = dict[str, Any]
Random = np.random.Generator


def near(rng: Random, boxes: Any, n: int, noise: float, sides: Any) -> tuple[Any, Any]:
    """Detections, half of them near an object, and the object of each."""
    source = rng.integers(0, len(boxes), n)
    found = boxes[source] + rng.normal(0, noise, (n, 4))
    far = rng.random(n) < 0.5
    found[far] = anywhere(rng, int(far.sum()), *sides)
    found[:, 2:] = np.maximum(found[:, 2:], 1)
    return source, found.round(1)


def anywhere(rng: Random, n: int, side: float, low: float, high: float) -> Any:
    """(n, 4) boxes in a square image, with sides from low to high."""
    return np.hstack([rng.uniform(0, side - high, (n, 2)), rng.uniform(low, high, (n, 2))]).round(1)


def classes_near(rng: Random, labels: Any, source: Any, n_classes: int) -> Any:
    """Classes from 1 of detections, mostly those of the objects that they are near."""
    other = rng.integers(1, n_classes + 1, len(source))
    return np.where(rng.random(len(source)) < 0.6, labels[source], other)
