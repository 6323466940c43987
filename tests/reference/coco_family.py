"""Slow twins of benchmarks that follow COCO with changes: one class, one threshold, box by box.

Written from the rules in docs/benchmarks, not from the package. Boxes are x, y, width, height.
"""

import math
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

import numpy as np

from tests.reference.people import Box, overlap, share


class Thing(NamedTuple):
    """An object or a detection: its image, box, area, and the score of a detection."""

    image: int
    box: Box
    area: float
    score: float = 0.0


Judged = list[tuple[float, int]]  # score, and 1 for TP, 0 for FP
Share = Callable[[Thing, Thing], float]


def share_by_boxes(found: Thing, region: Thing) -> float:
    """The part of a detection in a region."""
    return share(found.box, region.box)


def share_by_iou(found: Thing, region: Thing) -> float:
    """The same, computed from the IoU and the annotated area, as TinyPerson's code does."""
    iou = overlap(found.box, region.box)
    return iou / (1 + iou) * (1 + region.area / (found.box[2] * found.box[3]))


def judge(
    found: Sequence[Thing],
    objects: Sequence[Thing],
    mode: Sequence[str],
    threshold: float,
    *,
    share: Share = share_by_boxes,
    size: tuple[float, float] = (0, math.inf),
    lenient: Collection[int] = (),
) -> Judged:
    """TP and FP of a class, by descending score; ignored detections are left out.

    `mode` of an object: to find, to ignore (used up) or to absorb any number of detections. An
    unmatched detection is no FP if its area is out of the size, or its image is lenient.
    """
    taken: set[int] = set()
    judged = []
    for each in sorted(found, key=lambda d: (-d.score, d.image)):
        for kinds in (("find",), ("ignore", "absorb")):
            best, most = None, threshold
            for g, other in enumerate(objects):
                if other.image != each.image or mode[g] not in kinds or g in taken:
                    continue
                absorbs = mode[g] == "absorb"
                value = share(each, other) if absorbs else overlap(each.box, other.box)
                if value >= most:
                    best, most = g, value
            if best is not None:
                break
        area = each.box[2] * each.box[3]
        if best is None:
            if size[0] <= area <= size[1] and each.image not in lenient:
                judged.append((each.score, 0))
        else:
            if mode[best] != "absorb":
                taken.add(best)
            if mode[best] == "find":
                judged.append((each.score, 1))
    return judged


def grid_ap(judged: Judged, n_objects: int) -> tuple[float, float]:
    """AP at 101 points of recall, and the highest recall; NaN without objects."""
    if not n_objects:
        return math.nan, math.nan
    points, tp = [], 0
    for rank, (_, hit) in enumerate(judged, 1):
        tp += hit
        points.append((tp / n_objects, tp / rank))
    grid = np.linspace(0, 1, 101).tolist()
    best = [max((p for recall, p in points if recall >= r), default=0.0) for r in grid]
    return sum(best) / 101, tp / n_objects
