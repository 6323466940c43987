"""The AP integrators: tiny functions of (recall, precision), and a loop over a class's curves for each.

A curve is given at its true positives: recall (n,) float64 rising, precision (n,) float64. No curve points: AP 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from detmap.kernels import kernel


@kernel
def eleven_point(recall: Any, precision: Any, points: Any) -> float:
    """Sum over the points of a divided highest precision at that recall or more. Source: VOCevaldet.m, VOC 2007."""
    ap = 0.0
    for point in points:
        highest = 0.0
        for i in range(recall.size):
            if recall[i] >= point and precision[i] > highest:
                highest = precision[i]
        ap += highest / points.size
    return ap


@kernel
def all_points(recall: Any, precision: Any) -> float:
    """Area under the precision envelope, a rectangle wherever recall changes. Source: VOCap.m, VOC 2010 to 2012."""
    envelope = precision.copy()
    for i in range(envelope.size - 1, 0, -1):
        envelope[i - 1] = max(envelope[i - 1], envelope[i])
    ap, before = 0.0, 0.0
    for i in range(recall.size):
        ap += (recall[i] - before) * envelope[i]
        before = recall[i]
    return ap


@kernel
def grid_envelope(recall: Any, precision: Any, points: Any, samples: Any) -> None:
    """The precision envelope read at each recall point; their mean is AP. Source: COCOeval.accumulate.

    points (R,) ascending; out: samples (R,). A point that recall never reaches reads 0.
    """
    envelope = precision.copy()
    for i in range(envelope.size - 1, 0, -1):
        envelope[i - 1] = max(envelope[i - 1], envelope[i])
    for r in range(points.size):
        i = np.searchsorted(recall, points[r])
        samples[r] = envelope[i] if i < recall.size else 0.0


@kernel
def step(recall: Any, precision: Any) -> float:
    """Un-interpolated sum of precision times the step of recall. Source: the definition of average precision."""
    ap, before = 0.0, 0.0
    for i in range(recall.size):
        ap += (recall[i] - before) * precision[i]
        before = recall[i]
    return ap


@kernel
def curve_points(
    false_before: Any, n_tp: Any, n_objects: Any, epsilon: float, recall: Any, precision: Any, off: Any
) -> None:
    """Recall and precision at the true positives of all curves of a class, one after the other.

    false_before (A, T, P) int32 and n_tp (A, T) as from `true_positives`; n_objects (A,) int64 to find; epsilon is added
    to the denominator of precision; out: recall, precision (n_tp.sum(),); off (A * T + 1,) int64.
    """
    n_areas, n_thresholds = n_tp.shape
    at = 0
    for a in range(n_areas):
        for t in range(n_thresholds):
            off[a * n_thresholds + t] = at
            for i in range(n_tp[a, t]):
                found = float(i + 1)
                recall[at] = found / n_objects[a]
                precision[at] = found / (float(false_before[a, t, i]) + found + epsilon)
                at += 1
    off[n_areas * n_thresholds] = at


@kernel
def eleven_point_curves(recall: Any, precision: Any, off: Any, points: Any, terms: Any) -> None:
    """`eleven_point` of C curves; off (C + 1,) as from `curve_points`; out: terms (C, 1)."""
    for c in range(terms.shape[0]):
        terms[c, 0] = eleven_point(recall[off[c] : off[c + 1]], precision[off[c] : off[c + 1]], points)


@kernel
def all_points_curves(recall: Any, precision: Any, off: Any, points: Any, terms: Any) -> None:
    """`all_points` of C curves; as `eleven_point_curves`, `points` unused."""
    for c in range(terms.shape[0]):
        terms[c, 0] = all_points(recall[off[c] : off[c + 1]], precision[off[c] : off[c + 1]])


@kernel
def grid_envelope_curves(recall: Any, precision: Any, off: Any, points: Any, terms: Any) -> None:
    """`grid_envelope` of C curves; as `eleven_point_curves`, terms (C, R)."""
    for c in range(terms.shape[0]):
        grid_envelope(recall[off[c] : off[c + 1]], precision[off[c] : off[c + 1]], points, terms[c])


@kernel
def step_curves(recall: Any, precision: Any, off: Any, points: Any, terms: Any) -> None:
    """`step` of C curves; as `eleven_point_curves`, `points` unused."""
    for c in range(terms.shape[0]):
        terms[c, 0] = step(recall[off[c] : off[c + 1]], precision[off[c] : off[c + 1]])
