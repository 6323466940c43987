"""Keypoints: the terms of their similarity (OKS), the sums of these, and the boxes around them.

NumPy computes `exp` between the first two kernels, and its order of additions is kept, because
those of pycocotools have the same bits.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from detmap.kernels import inline_kernel, kernel

Floats = NDArray[np.float64]
Rows = NDArray[np.int32]

BLOCK, LANES = 128, 8
MOST_TERMS = 2 * (BLOCK - 4)
"""More would be halved twice."""
TINY = float(np.spacing(1))
FAR = 750.0
"""From here on `exp` of the opposite is 0, and NumPy takes ten times as long to compute it."""
VANISHED = 1.0
"""The exponent that is written instead; others are not above 0 where the area is above 0."""


@kernel
def list_terms(
    found: Floats,
    points: Floats,
    boxes: Floats,
    area: Floats,
    variances: Floats,
    detection: Rows,
    row: Rows,
    off: NDArray[np.int64],
    terms: Floats,
) -> None:
    """Exponents of the similarities of pairs: one per labeled point of the object; if it has none,
    one per point, by the distance to the doubled box. `VANISHED` replaces those below -`FAR`.

    found, points (n, k, 3), boxes (g, 4), area (g,): of the detections and of the truth;
    variances (k,); detection, row (p,): the pairs. Out: terms, which begin at off (p + 1,).

    Source: COCOeval.computeOks in pycocotools' cocoeval.py, with its order of operations.
    """
    k, at = points.shape[1], 0
    off[0] = 0
    for i in range(detection.size):
        d, g = detection[i], row[i]
        scale = area[g] + TINY
        for j in range(k):
            if points[g, j, 2] > 0.0:
                dx, dy = found[d, j, 0] - points[g, j, 0], found[d, j, 1] - points[g, j, 1]
                terms[at] = exponent(dx, dy, variances[j], scale)
                at += 1
        if at == off[i]:
            for j in range(k):
                dx = outside(found[d, j, 0], boxes[g, 0], boxes[g, 2])
                dy = outside(found[d, j, 1], boxes[g, 1], boxes[g, 3])
                terms[at] = exponent(dx, dy, variances[j], scale)
                at += 1
        off[i + 1] = at


@inline_kernel
def exponent(dx: float, dy: float, variance: float, scale: float) -> float:
    """The exponent of a point's similarity.

    Source: as `list_terms`.
    """
    e = (dx * dx + dy * dy) / variance / scale / 2.0
    return VANISHED if e > FAR and scale > 0.0 else -e


@inline_kernel
def outside(at: float, low: float, side: float) -> float:
    """How far a coordinate is from a doubled side; 0 inside.

    Source: as `list_terms`.
    """
    return float(max(0.0, low - side - at) + max(0.0, at - (low + side * 2.0)))


@kernel
def average_terms(
    terms: Floats, off: NDArray[np.int64], area: Floats, row: Rows, average: Floats
) -> None:
    """The mean of each pair's terms, of which it has 1 to `MOST_TERMS`; more are left out.

    In and out: terms, the values of `exp`, of which those of `VANISHED` become 0.

    Source: NumPy's `DOUBLE_pairwise_sum`, loops_utils.h.src: more than 128 numbers are halved.
    """
    for i in range(average.size):
        begin, n = off[i], off[i + 1] - off[i]
        if area[row[i]] + TINY > 0.0:
            for at in range(begin, begin + n):
                terms[at] = 0.0 if terms[at] > 1.0 else terms[at]
        if n <= BLOCK:
            average[i] = add_block(terms, begin, n) / n
        elif n <= MOST_TERMS:
            half = n // 2 - n // 2 % LANES
            lower = add_block(terms, begin, half)
            average[i] = (lower + add_block(terms, begin + half, n - half)) / n


@kernel
def add_block(terms: Floats, begin: int, n: int) -> float:
    """The sum of up to 128 numbers from `begin` on: one after the other, from eight on in eight
    sums.

    Source: as `average_terms`.
    """
    total, rest = 0.0, begin
    if n >= LANES:
        rest = begin + n - n % LANES
        a, b, c, d = terms[begin], terms[begin + 1], terms[begin + 2], terms[begin + 3]
        e, f, g, h = terms[begin + 4], terms[begin + 5], terms[begin + 6], terms[begin + 7]
        for i in range(begin + LANES, rest, LANES):
            a, b, c, d = a + terms[i], b + terms[i + 1], c + terms[i + 2], d + terms[i + 3]
            e, f, g, h = e + terms[i + 4], f + terms[i + 5], g + terms[i + 6], h + terms[i + 7]
        total = ((a + b) + (c + d)) + ((e + f) + (g + h))
    for i in range(rest, begin + n):
        total += terms[i]
    return float(total)


@kernel
def put_around(points: Floats, most: float, boxes: Floats) -> int:
    """Boxes (n, 4) around points (n, k, 3). Returns the first row whose absolute numbers together
    are more than `most`, or NaN; n if there is none.

    Source: COCO.loadRes in pycocotools' coco.py.
    """
    for i in range(points.shape[0]):
        left, top = points[i, 0, 0], points[i, 0, 1]
        right, bottom = left, top
        total = 0.0
        for j in range(points.shape[1]):
            x, y = points[i, j, 0], points[i, j, 1]
            total += abs(x) + abs(y) + abs(points[i, j, 2])
            left, right = x if x < left else left, x if x > right else right
            top, bottom = y if y < top else top, y if y > bottom else bottom
        if not total <= most:
            return i
        boxes[i, 0], boxes[i, 1] = left, top
        boxes[i, 2], boxes[i, 3] = right - left, bottom - top
    return int(points.shape[0])
