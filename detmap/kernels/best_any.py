"""The VOC matching rule: a detection is judged by the best object of all, taken or not."""

from __future__ import annotations

from typing import Any

import numpy as np

from detmap.kernels import kernel
from detmap.kernels.overlap import overlap


@kernel
def best_any(
    image: Any, edges: Any, members: Any, off: Any, obj_image: Any, obj_edges: Any, absorb: Any, neutral: Any,
    thresholds: Any, pixel: float, areas: Any, tp: Any, ignored: Any,
) -> None:  # fmt: skip
    """Verdicts of one class's detections at every area range and threshold.

    Source: VOCevaldet.m of the VOC devkit. A detection looks only at the object with the largest overlap, of equal overlaps
    the first. Where that overlap reaches the threshold: IGNORED if the object is neutral (it is never used up), TP if it is
    free, FP if it is taken. A detection that took nothing is IGNORED where its own area is out of range.

    Arguments and output as in `best_free`.
    """
    n_areas, n_obj = areas.shape[0], obj_image.size
    zero = np.uint64(0)
    full = ~zero >> np.uint64(64 - thresholds.size)
    taken = np.zeros((n_obj, n_areas), np.uint64)
    first = 0
    for cell in range(off.size - 1):
        here = image[members[off[cell]]]
        while first < n_obj and obj_image[first] < here:
            first += 1
        last = first
        while last < n_obj and obj_image[last] == here:
            last += 1
        for j in range(off[cell], off[cell + 1]):
            d = members[j]
            best, who = 0.0, -1
            for g in range(first, last):
                iou = overlap(edges[d], obj_edges[g], pixel, absorb[g])
                if iou > best:
                    best, who = iou, g
            reach = zero
            if who >= 0:
                for t in range(thresholds.size):
                    if best >= thresholds[t]:
                        reach |= np.uint64(1) << np.uint64(t)
            for a in range(n_areas):
                found, excused = zero, zero
                if reach != zero:
                    if neutral[who, a]:
                        excused = reach
                    else:
                        found = reach & ~taken[who, a]
                        taken[who, a] |= found
                area = edges[d, 4]
                if area < areas[a, 0] or area > areas[a, 1]:
                    excused |= full & ~found
                tp[d, a] = found
                ignored[d, a] = excused
