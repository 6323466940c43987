"""Drawn `Matches`, and the same with images repeated."""

from collections.abc import Sequence
from typing import Any

import numpy as np

import detmap
from detmap.core.matching.matches import Matches
from tests.statistics.goldens import as_matches
from tools.coverage import sampled


def draw(seed: int, n_images: int = 20, integrator: str = "grid_envelope") -> Matches:
    """Three classes, two areas, three thresholds; scores tie, verdicts of all kinds."""
    rng = np.random.default_rng(seed)
    objects, rows = [], []
    for k in range(3):
        for image in range(n_images):
            mine = rng.integers(0, 3) if k < 2 else int(rng.random() < 0.3)
            counted = [[True, bool(rng.random() < 0.6)] for _ in range(mine)]
            objects += [{"cls": k, "image": image, "counted": each} for each in counted]
            left = [mine, sum(small for _, small in counted)]
            for _ in range(rng.integers(0, 5)):
                verdict = []
                for a in range(2):
                    hit = left[a] > 0 and rng.random() < 0.5
                    left[a] -= hit
                    good = "T" if hit else "I" if rng.random() < 0.2 else "F"
                    from_t = int(rng.integers(1, 4))
                    verdict.append([good if t < from_t else "F" for t in range(3)])
                score = round(float(rng.random()), 1 if rng.random() < 0.5 else 6)
                rows.append({"cls": k, "image": image, "score": score, "verdict": verdict})
    case: dict[str, Any] = {"I": n_images, "K": 3, "A": 2, "T": 3, "objects": objects}
    return as_matches({**case, "detectors": [rows]}, 0, integrator)


def repeated(matches: Matches, times: Sequence[int]) -> Matches:
    """Every image as often as told, copies of a row in its place: each copy an image of its own."""
    return sampled(matches, np.repeat(np.arange(matches.n_images), times))


def rows_of_cell(matches: Matches, k: int, a: int, t: int) -> list[tuple[int, str]]:
    """A curve as the slow twin takes it."""
    found = []
    for r in range(matches.off[k], matches.off[k + 1]):
        hit, excused = (int(word[r, a]) >> t & 1 for word in (matches.tp, matches.ignored))
        found.append((int(matches.image[r]), "T" if hit else "I" if excused else "F"))
    return found


def objects_of_cell(matches: Matches, k: int, a: int) -> list[int]:
    """The images of the objects to find."""
    mine = slice(matches.obj_off[k], matches.obj_off[k + 1])
    return [int(i) for i in matches.obj_image[mine][matches.counted[mine, a]]]


def tables(
    seed: int, copies: Sequence[int] | None = None, equal: str = ""
) -> tuple[detmap.Truth, Any]:
    """Boxes of 12 images and two classes; with images repeated, copies are adjacent. No two scores
    are equal, or only such of different images (``between``), or also of one image (``inside``).
    """
    rng = np.random.default_rng(seed)
    times = np.ones(12, int) if copies is None else np.asarray(copies)
    truth: list[Any] = []
    found: list[Any] = []
    for image in range(12):
        boxes = np.column_stack([rng.uniform(0, 300, (4, 2)), rng.uniform(10, 120, (4, 2))])
        moved = np.abs(boxes[[0, 1, 2, 3, 0, 1]] + rng.normal(0, 6, (6, 4)))
        classes, other = rng.integers(0, 2, 4), rng.integers(0, 2, 6)
        scores = rng.random(6)
        if equal:
            scores = (rng.permutation(8)[:6] if equal == "between" else rng.integers(0, 2, 6)) / 8
        for copy in range(times[image]):
            name = 100 * image + copy
            truth += [(name, int(k), box) for k, box in zip(classes, boxes, strict=True)]
            found += [
                (name, int(k), box, s) for k, box, s in zip(other, moved, scores, strict=True)
            ]
    ids = [100 * image + copy for image in range(12) for copy in range(times[image])]
    read = detmap.truth_from_arrays(
        *(list(column) for column in zip(*truth, strict=True)),
        images=ids,
        categories={0: "a", 1: "b"},
    )
    return read, detmap.detections_from_arrays(
        read, *(list(column) for column in zip(*found, strict=True))
    )
