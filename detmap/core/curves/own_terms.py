"""Metrics with terms of their own: the module that a row of `METRICS` names computes them.

Such a module has two functions:

- ``terms(matches, positives, judged, weight, asked)`` returns (A, T, R, J) float64: for each
  subset, threshold and class the R terms whose mean over thresholds, terms and classes is the
  metric. NaN where a class has none. ``positives`` (K, A) are the denominators of recall,
  ``judged`` (J,) the classes with objects, ``weight`` (I,) the image weights or None for 1, and
  ``asked`` the pairs of subset and threshold that a row reads, by position.
- ``final(mean)`` turns the mean into the metric, and means of classes, an array, into theirs.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap import wings
from detmap.core.matching.matches import Matches
from detmap.core.protocol import Protocol
from detmap.core.protocol.metric_rows import OWN, Metric

Floats = NDArray[np.float64]


def own_terms(
    matches: Matches, positives: NDArray[Any], judged: NDArray[np.int64], weight: Floats | None
) -> dict[str, Floats]:
    """Computes the terms of every metric of `OWN` that the protocol asks for, by its name."""
    found = {}
    for metric in OWN:
        asked = _asked(matches.protocol, metric)
        if asked:
            terms = _member(metric, "terms")
            found[metric.name] = terms(matches, positives, judged, weight, asked)
    return found


def final(metric: Metric, mean: Any) -> Any:
    """Returns the metric of a mean of its terms."""
    return _member(metric, "final")(mean)


def _member(metric: Metric, name: str) -> Any:
    """A function of the metric's module, which is of this package or of a wing."""
    module = metric.module if "." in metric.module else f"detmap.core.curves.{metric.module}"
    return wings.load(f"{module}:{name}")


def _asked(protocol: Protocol, metric: Metric) -> list[tuple[int, int]]:
    """The subsets and thresholds of the rows of a metric, by position."""
    every = range(len(protocol.thresholds()))
    return sorted(
        {
            (protocol.subset(row.subset), t)
            for row in protocol.rows()[0]
            if row.kind == metric.name
            for t in (every if row.iou is None else [protocol.threshold(row.iou)])
        }
    )
