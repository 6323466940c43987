"""Two integrators of a precision-recall curve, as their definitions read.

`recall` never falls; `precision` may be NaN before the first detection that counts.
"""

import math
from collections.abc import Sequence


def step(recall: Sequence[float], precision: Sequence[float]) -> float:
    """Un-interpolated average precision: every precision times the recall that its detection added.

    Source: the definition of average precision as scikit-learn's ``average_precision_score``
    documents it."""
    area, previous = 0.0, 0.0
    for r, p in zip(recall, precision, strict=True):
        # an undefined precision adds no recall, and must not turn the sum into NaN
        if r != previous:
            area += (r - previous) * p
        previous = r
    return area


def grid_envelope(
    recall: Sequence[float], precision: Sequence[float], grid: Sequence[float]
) -> list[float]:
    """Best precision at each grid point's recall or more, 0 where the curve does not get that far.

    Source: ``accumulate`` in pycocotools' cocoeval.py: its envelope followed by
    ``searchsorted(side='left')`` is this maximum, since recall never falls.
    """
    curve = [(r, p) for r, p in zip(recall, precision, strict=True) if not math.isnan(p)]
    return [max((p for r, p in curve if r >= point), default=0.0) for point in grid]
