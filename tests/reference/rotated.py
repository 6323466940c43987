"""Slow twins of benchmarks of rotated boxes: one class at a time, one box at a time.

Written from the rules in docs/benchmarks/rotated.md, not from the package. A box is center, width,
height and angle in radians.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from tests.reference import polygons

Turned = tuple[float, float, float, float, float]
Judged = list[int | None]  # 1 for TP, 0 for FP, None for a difficult object; by descending score


class Thing(NamedTuple):
    """An object or a detection."""

    image: int
    box: Turned
    difficult: bool = False
    score: float = 0.0


def corners(box: Turned) -> list[tuple[float, float]]:
    x, y, w, h, angle = box
    c, s = math.cos(angle), math.sin(angle)
    signs = ((-1, -1), (1, -1), (1, 1), (-1, 1))
    sides = [(i * w / 2, j * h / 2) for i, j in signs]
    return [(x + c * dx - s * dy, y + s * dx + c * dy) for dx, dy in sides]


def polygon_iou(a: Turned, b: Turned) -> float:
    return float(polygons.iou(corners(a), corners(b)))


def probiou(a: Turned, b: Turned) -> float:
    """1 minus the Hellinger distance of two Gaussians; 1e-7 wherever the original adds it."""

    def covariance(box: Turned) -> tuple[float, float, float]:
        w, h, c, s = box[2] ** 2 / 12, box[3] ** 2 / 12, math.cos(box[4]), math.sin(box[4])
        return w * c * c + h * s * s, w * s * s + h * c * c, (w - h) * c * s

    (a1, b1, c1), (a2, b2, c2), eps = covariance(a), covariance(b), 1e-7
    dx, dy = a[0] - b[0], a[1] - b[1]
    own = (a1 + a2) * (b1 + b2) - (c1 + c2) ** 2
    apart = ((a1 + a2) * dy**2 + (b1 + b2) * dx**2) / (own + eps) * 0.25
    apart += (c1 + c2) * -dx * dy / (own + eps) * 0.5
    dets = max(a1 * b1 - c1**2, 0) * max(a2 * b2 - c2**2, 0)
    apart += math.log(own / (4 * math.sqrt(dets) + eps) + eps) * 0.5
    apart = min(max(apart, eps), 100.0)
    return 1 - math.sqrt(1 - math.exp(-apart) + eps)


def judge_any(found: Sequence[Thing], objects: Sequence[Thing], *, strict: bool) -> Judged:
    """Each detection has the object with the largest IoU, matched or not."""
    taken: set[int] = set()
    judged = []
    for each in sorted(found, key=lambda d: -d.score):
        here = [g for g, other in enumerate(objects) if other.image == each.image]
        values = {g: polygon_iou(each.box, objects[g].box) for g in here}
        best = max(here, key=lambda g: (values[g], not objects[g].difficult, -g), default=None)
        if best is None or values[best] < 0.5 or (strict and values[best] == 0.5):
            judged.append(0)
        elif objects[best].difficult:
            judged.append(None)
        else:
            judged.append(int(best not in taken))
            taken.add(best)
    return judged


def judge_free(found: Sequence[Thing], objects: Sequence[Thing], threshold: float) -> Judged:
    """Each detection takes the best unmatched object by probiou."""
    taken: set[int] = set()
    judged = []
    for each in sorted(found, key=lambda d: -d.score):
        values = {
            g: probiou(each.box, other.box)
            for g, other in enumerate(objects)
            if other.image == each.image and g not in taken
        }
        best = max(values, key=lambda g: values[g], default=None)
        hit = best is not None and values[best] >= threshold
        taken |= {best} if hit and best is not None else set()
        judged.append(int(hit))
    return judged


def judge_by_image(
    found: Sequence[Thing], judge: Callable[[Sequence[Thing]], Judged], *, stable: bool
) -> Judged:
    """Image by image, as mmrotate and Ultralytics do, then ranked by NumPy's unstable argsort.

    stable: detections of an image are listed by a stable sort; else they stay as given, and are
    judged in the order of another unstable argsort.
    """
    rows: list[Thing] = []
    verdicts: Judged = []
    for image in sorted({each.image for each in found}):
        mine = [each for each in found if each.image == image]
        if stable:
            mine.sort(key=lambda each: -each.score)
        order = range(len(mine)) if stable else np.argsort([-each.score for each in mine]).tolist()
        ranked = [mine[i]._replace(score=-float(rank)) for rank, i in enumerate(order)]
        judged = dict(zip(order, judge(ranked), strict=True))
        rows += mine
        verdicts += [judged[i] for i in range(len(mine))]
    return [verdicts[i] for i in np.argsort([-each.score for each in rows])]


def curve(judged: Judged, n_objects: int) -> tuple[list[float], list[float]]:
    """Recall and precision at each rank."""
    ranked = [each for each in judged if each is not None]
    tp = np.cumsum(ranked)
    return (tp / n_objects).tolist(), (tp / np.arange(1, len(ranked) + 1)).tolist()


def ultralytics_ap(recall: Sequence[float], precision: Sequence[float]) -> float:
    """The area under 101 samples of the envelope, which falls to 0 after the last recall."""
    if not recall:
        return 0.0
    x, y = [0.0, *recall, recall[-1], 1.0], [1.0, *precision, 0.0, 0.0]
    highest = [max(y[k:]) for k in range(len(y))]
    points = np.linspace(0, 1, 101)
    read = np.interp(points, x, highest)
    return float(sum((b - a) * (p + q) / 2 for a, b, p, q in
                     zip(points, points[1:], read, read[1:], strict=False)))  # fmt: skip
