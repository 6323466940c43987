"""The AP interpolations: small functions of (recall, precision).

A curve consists of points in ranked order: recall (n,) float64, non-decreasing, and precision (n,)
float64, which some rules overwrite with the envelope. Without points AP is 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from detmap.kernels import kernel

RULES = ("eleven_point", "all_points", "grid_envelope", "step")
ELEVEN_POINT, ALL_POINTS, GRID_ENVELOPE, STEP = range(len(RULES))


@kernel
def envelop(precision: Any) -> None:
    """Raise every precision to the highest at that rank or later, in place.

    Source: COCOeval.accumulate (``if pr[i] > pr[i-1]``) and VOCap.m, alike.
    """
    for i in range(precision.size - 1, 0, -1):
        precision[i - 1] = max(precision[i - 1], precision[i])


@kernel
def eleven_point(recall: Any, precision: Any, points: Any) -> float:
    """Sum over the points of the highest precision at this or higher recall, divided by the number
    of points. Source: VOCevaldet.m, VOC 2007.
    """
    ap = 0.0
    for p in range(points.size):
        highest = 0.0
        for i in range(recall.size):
            if recall[i] >= points[p] and precision[i] > highest:
                highest = precision[i]
        ap += highest / points.size
    return ap


@kernel
def all_points(recall: Any, precision: Any) -> float:
    """Area under the precision envelope: one rectangle per change of recall. Source: VOCap.m, VOC
    2010 to 2012.
    """
    envelop(precision)
    return step(recall, precision)


@kernel
def grid_envelope(recall: Any, precision: Any, points: Any, samples: Any) -> None:
    """The precision envelope at each recall point; AP is the mean. Source: COCOeval.accumulate.

    points (R,) ascending; out: samples (R,), 0 where recall does not reach the point.
    """
    envelop(precision)
    i = 0
    for r in range(points.size):
        while i < recall.size and recall[i] < points[r]:
            i += 1
        samples[r] = precision[i] if i < recall.size else 0.0


@kernel
def step(recall: Any, precision: Any) -> float:
    """Un-interpolated sum of precision times the step of recall. Source: the definition of
    average precision.
    """
    ap, before = 0.0, 0.0
    for i in range(recall.size):
        ap += (recall[i] - before) * precision[i]
        before = recall[i]
    return ap


@kernel
def integrate(code: Any, recall: Any, precision: Any, points: Any, terms: Any) -> None:
    """The terms whose mean is the AP: the samples of `grid_envelope`; for other rules the AP in
    terms[0].

    Source: none; selects a rule by its index.
    """
    if code == ELEVEN_POINT:
        terms[0] = eleven_point(recall, precision, points)
    elif code == ALL_POINTS:
        terms[0] = all_points(recall, precision)
    elif code == GRID_ENVELOPE:
        grid_envelope(recall, precision, points, terms)
    elif code == STEP:
        terms[0] = step(recall, precision)
    else:
        terms[:] = np.nan


@kernel
def integrate_lists(
    code: Any, recall: Any, precision: Any, off: Any, points: Any, terms: Any
) -> None:
    """`integrate` for C concatenated curves; off (C + 1,) int64; out: terms (C, R).

    Source: none; a loop over curves.
    """
    for c in range(terms.shape[0]):
        integrate(
            code, recall[off[c] : off[c + 1]], precision[off[c] : off[c + 1]], points, terms[c]
        )
