"""Slow twins of ImageNet DET and VID, VisDrone and UAVDT, in plain Python.

Written from the rules in docs/benchmarks, not from the package. A box is x1, y1, x2, y2 (ILSVRC) or
x, y, width, height (VisDrone, UAVDT).
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from tests.reference.people import Box, share
from tests.reference.people import overlap as iou


class Thing(NamedTuple):
    """An object, or a detection with its score."""

    image: int
    label: int
    box: Box
    value: float  # motion of an object of VID, 0 for an object of VisDrone that is not evaluated


def area_below(points: Sequence[tuple[float, float]]) -> float:
    """The area below the envelope of (recall, precision)."""
    total, before = 0.0, 0.0
    for i, (recall, _) in enumerate(points):
        total += (recall - before) * max(precision for _, precision in points[i:])
        before = recall
    return total


def inclusive(a: Box, b: Box) -> float:
    width = min(a[2], b[2]) - max(a[0], b[0]) + 1
    height = min(a[3], b[3]) - max(a[1], b[1]) + 1
    if width <= 0 or height <= 0:
        return 0.0
    sizes = [(c[2] - c[0] + 1) * (c[3] - c[1] + 1) for c in (a, b)]
    return width * height / (sum(sizes) - width * height)


def motion_ap(
    objects: Sequence[Thing],
    found: Sequence[Thing],
    label: int,
    motion: tuple[float, float] = (-math.inf, math.inf),
    area: tuple[float, float] = (0, math.inf),
) -> float:
    """AP of a class of VID in ranges of motion and area; NaN without objects in them."""

    def moves(k: int) -> bool:
        return motion[0] <= objects[k].value <= motion[1]

    def sized(box: Box) -> bool:
        return area[0] <= (box[2] - box[0] + 1) * (box[3] - box[1] + 1) <= area[1]

    inside = [moves(k) and sized(each.box) for k, each in enumerate(objects)]
    taken: set[int] = set()
    verdicts = []
    for each in sorted((d for d in found if d.label == label), key=lambda d: (-d.value, d.image)):
        best, reached = -1, -1.0
        for k, other in enumerate(objects):
            if (other.image, other.label) != (each.image, label) or k in taken:
                continue
            w, h = other.box[2] - other.box[0] + 1, other.box[3] - other.box[1] + 1
            overlap = inclusive(each.box, other.box)
            if overlap >= min(0.5, w * h / ((w + 10) * (h + 10))) and overlap > reached:
                best, reached = k, overlap
        if best >= 0:
            taken.add(best)
            verdicts.append((float(inside[best]), 0.0))
            continue
        near = [k for k, other in enumerate(objects) if other.image == each.image]
        most = [
            max((inclusive(each.box, objects[k].box) for k in near if moves(k) == side), default=-1)
            for side in (True, False)
        ]
        if not sized(each.box):
            weight = 0.0
        elif not near:
            weight = sum(map(moves, range(len(objects)))) / max(len(objects), 1)
        elif most[0] == most[1]:
            weight = sum(not moves(k) for k in near) / len(near)
        else:
            weight = float(most[0] > most[1])
        verdicts.append((0.0, weight))
    n = sum(inside[k] for k, other in enumerate(objects) if other.label == label)
    if not n:
        return math.nan
    points, tp, fp = [], 0.0, 0.0
    for true, false in verdicts:
        tp, fp = tp + true, fp + false
        points.append((tp / n, tp / (tp + fp) if tp + fp else 0.0))
    return area_below(points)


def half_covered(box: Box, regions: Sequence[Box], width: int, height: int) -> bool:
    """Whether half of a box's pixels are in regions, as VisDrone counts them."""
    whole = [max(1, math.floor(value + 0.5)) for value in box]
    covered = 0
    left, top = min(width, whole[0]), min(height, whole[1])
    for y in range(top + 1, min(height, top + whole[3]) + 1):
        for x in range(left + 1, min(width, left + whole[2]) + 1):
            covered += any(
                max(1, r[0]) <= x <= max(1, r[0]) + max(1, r[2])
                and max(1, r[1]) <= y <= max(1, r[1]) + max(1, r[3])
                for r in regions
            )
    return covered / (whole[2] * whole[3]) >= 0.5


def toolbox(
    objects: Sequence[Thing], found: Sequence[Thing], label: int, threshold: float, limit: int
) -> tuple[float, float]:
    """AP and highest recall of a class by VisDrone's evalRes, of the first rows of each image."""
    rows: dict[int, list[Thing]] = {}
    for each in found:
        rows.setdefault(each.image, []).append(each)
    ranked, taken = [], set()
    for image in sorted(rows):
        own = [each for each in rows[image][:limit] if each.label == label]
        ranked += sorted(own, key=lambda each: -each.value)
    verdicts = []
    for each in sorted(ranked, key=lambda each: -each.value):
        best, reached = -1, threshold
        for neutral in (False, True):
            for k, other in enumerate(objects):
                if (other.image, other.label) != (each.image, label):
                    continue
                if (other.value == 0) != neutral or k in taken:
                    continue
                overlap = (share if neutral else iou)(each.box, other.box)
                if overlap >= reached:
                    best, reached = k, overlap
            if best >= 0:
                break
        if best >= 0 and objects[best].value:
            taken.add(best)
        verdicts.append(0 if best < 0 else 1 if objects[best].value else -1)
    n = max(1, sum(other.label == label for other in objects))
    points, tp, fp = [], 0, 0
    for verdict in verdicts:
        tp, fp = tp + (verdict == 1), fp + (verdict == 0)
        points.append((tp / n, tp / max(1, tp + fp)))
    return area_below(points), tp / n
