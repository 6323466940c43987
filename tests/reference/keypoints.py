"""Slow twins of CrowdPose and COCO-WholeBody: one threshold at a time, point by point.

Written from the rules in docs/benchmarks/keypoints.md, not from the package.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from tests.reference.coco_family import Judged, grid_ap
from tests.reference.people import Box

Point = tuple[float, float, float]  # x, y and visibility
THRESHOLDS = [0.5 + 0.05 * k for k in range(10)]
LIMIT = 20  # detections per image
EVERYTHING = (0.0, 1e10)
EPSILON = 2.0**-52


class Person(NamedTuple):
    """An object or a detection: its image, points, area, and the box or the score."""

    image: int
    points: Sequence[Point]
    area: float
    box: Box = (0.0, 0.0, 0.0, 0.0)
    role: str = "find"  # or ignore (used up), absorb (any number of detections)
    score: float = 0.0


def similarity(found: Person, person: Person, sigmas: Sequence[float]) -> float:
    """The mean of the points' similarities; by the distance to the doubled box without a label."""
    x0, y0 = person.box[0] - person.box[2], person.box[1] - person.box[3]
    x1, y1 = person.box[0] + 2 * person.box[2], person.box[1] + 2 * person.box[3]
    labelled = any(v > 0 for *_, v in person.points)
    values = []
    for (x, y, _), (px, py, v), sigma in zip(found.points, person.points, sigmas, strict=True):
        if labelled and not v > 0:
            continue
        dx, dy = x - px, y - py
        if not labelled:
            dx, dy = max(0, x0 - x, x - x1), max(0, y0 - y, y - y1)
        values.append(math.exp(-(dx**2 + dy**2) / (2 * sigma) ** 2 / (person.area + EPSILON) / 2))
    return sum(values) / len(values)


def judge_image(
    found: Sequence[Person],
    people: Sequence[Person],
    table: Sequence[Sequence[float]],
    threshold: float,
    size: tuple[float, float],
) -> Judged:
    """TP and FP of the detections of an image, which are in the order of their scores."""
    role = [
        person.role if size[0] <= person.area <= size[1] or person.role != "find" else "ignore"
        for person in people
    ]
    taken: set[int] = set()
    judged = []
    for d, each in enumerate(found):
        reached = [g for g in range(len(people)) if g not in taken and table[d][g] >= threshold]
        wanted = [g for g in reached if role[g] == "find"] or reached
        best = max(wanted, key=lambda g: (table[d][g], g), default=None)
        if best is None:
            if size[0] <= each.area <= size[1]:
                judged.append((each.score, 0))
            continue
        if role[best] != "absorb":
            taken.add(best)
        if role[best] == "find":
            judged.append((each.score, 1))
    return judged


def evaluate(
    found: Sequence[Person],
    people: Sequence[Person],
    sigmas: Sequence[float],
    size: tuple[float, float] = EVERYTHING,
) -> dict[str, float]:
    """AP and AR of a size: means over the thresholds, and those at .5 and .75."""
    images = sorted({each.image for each in (*found, *people)})
    cells = []
    for image in images:
        own = [person for person in people if person.image == image]
        ranked = sorted((d for d in found if d.image == image), key=lambda d: -d.score)[:LIMIT]
        cells.append((ranked, own, [[similarity(d, g, sigmas) for g in own] for d in ranked]))
    n_objects = sum(p.role == "find" and size[0] <= p.area <= size[1] for p in people)
    curves = []
    for threshold in THRESHOLDS:
        judged = [v for cell in cells for v in judge_image(*cell, round(threshold, 2), size)]
        judged.sort(key=lambda verdict: -verdict[0])  # equal scores stay in the order of images
        curves.append(grid_ap(judged, n_objects))
    metrics = {}
    for name, place in (("AP", 0), ("AR", 1)):
        values = [curve[place] for curve in curves]
        metrics |= {name: sum(values) / 10, f"{name}50": values[0], f"{name}75": values[5]}
    return metrics
