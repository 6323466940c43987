"""Slow restatements of KITTI's, FROC's and cgF1's rules, object by object."""

from __future__ import annotations

from itertools import permutations
from typing import NamedTuple

Box = tuple[float, float, float, float]


class Thing(NamedTuple):
    """An object or a detection: corners, role (0 valid, 1 ignored, -1 absent), score, angle."""

    box: Box
    role: int
    score: float = 0.0
    alpha: float = 0.0


def shared(a: Box, b: Box) -> float:
    width, height = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    return width * height if width > 0 and height > 0 else 0.0


def size(a: Box) -> float:
    return (a[2] - a[0]) * (a[3] - a[1])


def iou(a: Box, b: Box) -> float:
    both = shared(a, b)
    return both / (size(a) + size(b) - both) if both else 0.0


Image = tuple[list[Thing], list[Thing], list[Box]]


def kitti_image(image: Image, least: float, threshold: float | None) -> tuple[list[float], int]:
    """The scores of true positives of an image, and the number of false positives.

    Without a threshold each object takes its highest-scoring detection.
    """
    objects, found, regions = image
    used: set[int] = set()
    low = {j for j, d in enumerate(found) if threshold is not None and d.score < threshold}
    hits = []
    for g in objects:
        if g.role == -1:
            continue
        best, best_overlap, is_ignored = -1, 0.0, False
        for j, d in enumerate(found):
            if d.role == -1 or j in used or j in low:
                continue
            overlap = iou(g.box, d.box)
            if overlap <= least:
                continue
            if threshold is None:
                if best < 0 or d.score > found[best].score:
                    best = j
            elif d.role == 0 and (overlap > best_overlap or is_ignored):
                best, best_overlap, is_ignored = j, overlap, False
            elif best < 0 and d.role == 1:
                best, is_ignored = j, True
        if best < 0:
            continue
        used.add(best)
        if g.role == 0 and found[best].role == 0:
            hits.append(found[best].score)
    false = 0
    for j, d in enumerate(found):
        if d.role == 0 and j not in used and j not in low:
            false += not any(shared(d.box, r) / size(d.box) > least for r in regions)
    return hits, false


def kitti_precision(images: list[Image], least: float) -> list[float]:
    """Precision at the 41 samples, with the envelope."""
    n_objects = sum(g.role == 0 for image in images for g in image[0])
    scores = sorted((s for image in images for s in kitti_image(image, least, None)[0]), key=float)
    scores.reverse()
    samples, current = [], 0.0
    for i, score in enumerate(scores):
        here = (i + 1) / n_objects
        after = (i + 2) / n_objects if i + 1 < len(scores) else here
        if after - current < current - here and i + 1 < len(scores):
            continue
        samples.append(score)
        current += 1 / 40
    curve = [0.0] * 41
    for t, sample in enumerate(samples):
        parts = [kitti_image(image, least, sample) for image in images]
        hits, false = sum(len(hit) for hit, _ in parts), sum(wrong for _, wrong in parts)
        curve[t] = hits / (hits + false) if hits + false else float("nan")
    for t in range(len(samples)):
        curve[t] = max(curve[t:])
    return curve


def best_assignment(values: list[list[float]]) -> float:
    """The largest sum of an assignment, by trying all."""
    n, m = len(values), len(values[0])
    if n > m:
        values, n, m = [list(row) for row in zip(*values, strict=True)], m, n
    return max(sum(values[i][j] for i, j in enumerate(p)) for p in permutations(range(m), n))


Mark = tuple[int, tuple[float, float, float], float]
Sphere = tuple[int, tuple[float, float, float], float, bool]


def froc_points(marks: list[Mark], spheres: list[Sphere], n_scans: int) -> list[tuple[float, int]]:
    """False marks per scan and found nodules, with all marks from each score on."""

    def hits(mark: Mark, sphere: Sphere) -> bool:
        apart = sum((a - b) ** 2 for a, b in zip(mark[1], sphere[1], strict=True))
        diameter = 10.0 if sphere[2] < 0 else sphere[2]
        return mark[0] == sphere[0] and apart < (diameter / 2) ** 2

    points = []
    for level in sorted({mark[2] for mark in marks}, reverse=True):
        some = [mark for mark in marks if mark[2] >= level]
        found = sum(any(hits(m, s) for m in some) for s in spheres if not s[3])
        false = sum(not any(hits(m, s) for s in spheres) for m in some)
        points.append((false / n_scans, found))
    return points
