"""Small tables with trouble in them: equal boxes and scores, crowds, empty images and classes."""

import random

import numpy as np

from detmap.core.adapters.in_memory.arrays import detections_from_arrays, truth_from_arrays
from detmap.core.tables import Detections, Truth


def tables(seed: int, n_images: int = 5, n_classes: int = 3) -> tuple[Truth, Detections]:
    """Boxes on a coarse grid, so that overlaps are often equal, 0, 0.5 or 1."""
    rng = random.Random(seed)

    def boxes(n: int) -> list[list[float]]:
        step = rng.choice([1, 5, 10])
        spans = ((0, 4), (0, 4), (1, 4), (1, 4))
        return [[step * rng.randint(*span) for span in spans] for _ in range(n)]

    n_objects, n_rows = rng.randint(0, 12), rng.randint(0, 40)

    def columns(n: int) -> tuple[list[int], list[int], np.ndarray]:
        images = [rng.randint(1, n_images) for _ in range(n)]
        labels = [rng.randint(1, n_classes) for _ in range(n)]
        return images, labels, np.array(boxes(n), dtype=float).reshape(-1, 4)

    truth = truth_from_arrays(
        *columns(n_objects),
        crowd=[rng.random() < 0.15 for _ in range(n_objects)],
        images=list(range(1, n_images + 1)),
        categories={k: f"class {k}" for k in range(1, n_classes + 1)},
    )
    score = [rng.choice([0.1, 0.5, 0.5, 0.9, rng.random()]) for _ in range(n_rows)]
    return truth, detections_from_arrays(truth, *columns(n_rows), score)
