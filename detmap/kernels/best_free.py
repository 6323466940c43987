"""The COCO matching rule: a detection takes the best object that is still free."""

from __future__ import annotations

from typing import Any

import numpy as np

from detmap.kernels import kernel
from detmap.kernels.overlap import overlap


@kernel
def best_free(
    image: Any, edges: Any, members: Any, off: Any, obj_image: Any, obj_edges: Any, absorb: Any, neutral: Any,
    thresholds: Any, pixel: float, areas: Any, tp: Any, ignored: Any,
) -> None:  # fmt: skip
    """Verdicts of one class's detections at every area range and threshold.

    Source: COCOeval.evaluateImg. In order of score a detection takes, at each threshold, the free object with the largest
    overlap that reaches the threshold, of equal overlaps the later object; a neutral object only where no other will do.
    An absorbing object is never used up. A detection that took nothing is IGNORED where its own area is out of range.
    All thresholds are walked at once, one bit each: visiting candidates best first, a candidate gives the detection
    those of its bits that are still open.

    image (n,) int32 and edges (n, 5) of the detections, best score first; members (n,) int32 and off (C + 1,) int64 from
    `group_ranked`; obj_image (m,) int32, ascending; obj_edges (m, 5); absorb (m,) bool; neutral (m, A) bool;
    thresholds (T,) float64; areas (A, 2) float64, both ends included;
    out: tp, ignored (n, A) unsigned words, bit t for threshold t, zero on entry.
    """
    n_areas, n_obj = areas.shape[0], obj_image.size
    zero = np.uint64(0)
    full = ~zero >> np.uint64(64 - thresholds.size)
    lowest = thresholds.min()
    taken = np.zeros((n_obj, n_areas), np.uint64)
    best = np.empty(n_obj, np.float64)  # overlaps of the candidates, largest first
    who = np.empty(n_obj, np.int64)
    reach = np.empty(n_obj, np.uint64)  # thresholds that each candidate's overlap reaches
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
            n_best = 0
            for g in range(first, last):
                iou = overlap(edges[d], obj_edges[g], pixel, absorb[g])
                if iou < lowest:
                    continue
                place = n_best
                while place > 0 and best[place - 1] <= iou:
                    best[place], who[place], reach[place] = best[place - 1], who[place - 1], reach[place - 1]
                    place -= 1
                bits = zero
                for t in range(thresholds.size):
                    if iou >= thresholds[t]:
                        bits |= np.uint64(1) << np.uint64(t)
                best[place], who[place], reach[place] = iou, g, bits
                n_best += 1
            for a in range(n_areas):
                found, excused, still_open = zero, zero, full
                for c in range(n_best):
                    g = who[c]
                    if not neutral[g, a]:
                        take = reach[c] & still_open & ~taken[g, a]
                        taken[g, a] |= take
                        found |= take
                        still_open &= ~take
                for c in range(n_best):
                    g = who[c]
                    if neutral[g, a]:
                        take = reach[c] & still_open
                        if not absorb[g]:
                            take &= ~taken[g, a]
                            taken[g, a] |= take
                        excused |= take
                        still_open &= ~take
                area = edges[d, 4]
                if area < areas[a, 0] or area > areas[a, 1]:
                    excused |= still_open
                tp[d, a] = found
                ignored[d, a] = excused
