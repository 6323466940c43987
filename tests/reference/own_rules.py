"""Slow restatements of KITTI's, FROC's and cgF1's rules, object by object."""

from itertools import permutations
from typing import NamedTuple

import numpy as np

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


Flagged = tuple[Box, bool]
"""A box of an object, and whether it is ignored."""
Scored = tuple[Box, float]


def froc_curve(images: list[tuple[list[Flagged], list[Scored]]]) -> list[tuple[float, int]]:
    """False boxes per image and found objects, after each detection by descending score; tied ones
    in the order of the reference's np.argsort(scores)[::-1].

    A detection finds all objects that it overlaps by half, and is false if there is none, not even
    an ignored one in which half of it lies. Sides are those of the pixels, x2 - x1 + 1.
    """

    def reaches(a: Box, b: Box, ignored: bool) -> bool:
        return (shared(a, b) / size(a) if ignored else iou(a, b)) >= 0.5

    rows = [(s, i, box) for i, (_, each) in enumerate(images) for box, s in each]
    ranked = [rows[k] for k in np.argsort([s for s, *_ in rows])[::-1]]
    found: set[tuple[int, int]] = set()
    false, points = 0, []
    for _, i, box in ranked:
        hits = [(g, off) for g, (b, off) in enumerate(images[i][0]) if reaches(box, b, off)]
        found |= {(i, g) for g, ignored in hits if not ignored}
        false += not hits
        points.append((false / len(images), len(found)))
    return points


def froc_read(points: list[tuple[float, float]], rate: float, lookup: str) -> float:
    """The curve at a rate; NaN where its line has no finite slope."""
    if lookup == "last":
        k = max((k for k, (x, _) in enumerate(points) if x <= rate), default=-1)
        if k < 0 or k == len(points) - 1:
            return points[max(k, 0) if k < 0 else k][1]
    else:
        first = next((k for k, (x, _) in enumerate(points) if x >= rate), len(points) - 1)
        k = max(first, 1) - 1
    if len(points) < 2:
        return float("nan")
    (x, y), (x2, y2) = points[k], points[k + 1]
    return y + (y2 - y) / (x2 - x) * (rate - x) if x2 != x else float("nan")


def best_values(found: list[Box], objects: list[Box]) -> list[float]:
    """The IoUs of the one-to-one pairs with the largest sum, by trying all."""
    few, many = sorted((found, objects), key=len)
    choices = (
        [iou(a, many[j]) for a, j in zip(few, p, strict=True)]
        for p in permutations(range(len(many)), len(few))
    )
    return max(choices, key=sum)


Concept = tuple[list[list[Box] | None], list[Box]]
"""A pair of image and phrase: boxes by annotator, None where not exhaustive; and those found."""


def concept_scores(pairs: list[Concept]) -> dict[str, float]:
    """SA-Co's metrics, each pair with the annotator for whom its mean F1 is best."""
    thresholds = [0.5 + 0.05 * k for k in range(10)]
    thresholds = [round(t, 2) for t in thresholds]

    def f1(precision: float, recall: float) -> float:
        return 2 * precision * recall / (precision + recall + 1e-4)

    def counts(found: list[Box], objects: list[Box]) -> list[int]:
        values = best_values(found, objects) if found and objects else []
        return [sum(v >= t for v in values) for t in thresholds]

    def own(found: list[Box], objects: list[Box]) -> list[float]:
        tp, n, m = counts(found, objects), len(found) + 1e-4, len(objects) + 1e-4
        return [f1(k / n, k / m) if found else 0.0 for k in tp]

    def rank(found: list[Box], objects: list[Box]) -> float:
        return sum(own(found, objects)) if found or objects else float("inf")

    chosen = []
    for whose, found in pairs:
        if None not in whose:
            boxes = [each for each in whose if each is not None]
            chosen.append((found, max(boxes, key=lambda each: rank(found, each))))
    tp = [counts(*pair) for pair in chosen]
    sums: dict[str, float] = {}
    names = ("cgF1", "precision", "recall", "F1", "positive_macro_F1", "positive_micro_F1")
    names = (*names, "positive_micro_precision")
    yes = [(bool(found), bool(objects)) for found, objects in chosen]
    a, b, c, d = (yes.count(each) for each in ((1, 1), (1, 0), (0, 1), (0, 0)))
    product = float((a + b) * (a + c) * (d + b) * (d + c))
    p, r = a / (a + b + 1e-6), a / (a + c + 1e-6)
    mcc = (a * d - b * c) / (product**0.5 + 1e-6)
    for t, threshold in enumerate(thresholds):
        true = sum(each[t] for each in tp)
        n_found = sum(len(found) for found, _ in chosen)
        beside = sum(len(found) for found, objects in chosen if objects)
        n_objects = sum(len(objects) for _, objects in chosen)
        precision, recall = true / (n_found + 1e-4), true / (n_objects + 1e-4)
        positive = true / (beside + 1e-4)
        both = [own(*pair)[t] for pair in chosen if pair[0] and pair[1]]
        macro = sum(both) / len(both) if both else float("nan")
        micro = f1(positive, recall)
        here = (micro * mcc, precision, recall, f1(precision, recall), macro, micro, positive)
        for name, value in zip(names, here, strict=True):
            sums[name] = sums.get(name, 0.0) + value / len(thresholds)
            if threshold in (0.5, 0.75):
                sums[f"{name}@{threshold}"] = value
    image_level = {"precision": p, "recall": r, "F1": 2 * p * r / (p + r + 1e-6)}
    image_level |= {"FPR": b / (b + d + 1e-6), "MCC": mcc}
    return sums | {f"IL_{name}": value for name, value in image_level.items()}
