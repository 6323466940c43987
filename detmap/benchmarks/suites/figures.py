"""Figures over the metrics of data sets: means, means of groups, ratios, and their intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.benchmarks.suites.suite_file import Figure
from detmap.core.base.sums import add_floats
from detmap.core.statistics.formulas.logit_interval import logit_interval
from detmap.core.statistics.formulas.quantiles import student
from detmap.core.statistics.influence import variance

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """The numbers of one data set.

    Parameters
    ----------
    name, group : as the suite has them
    metrics : by name, fractions; classes : the same by class, then by name
    counts : images, objects, detections
    signature : of its result
    images : a key that data sets with the same images share
    influence : of each image, by metric; empty if not asked for or not known
    """

    name: str
    group: str
    metrics: Mapping[str, float]
    classes: Mapping[str, Mapping[str, float]]
    counts: Mapping[str, Any]
    signature: str
    images: str
    influence: Mapping[str, Floats] = field(default_factory=dict)


def chosen(figure: Figure, rows: Sequence[Measured]) -> list[Measured]:
    """Returns the data sets that take part."""
    return [row for row in rows if not figure.groups or row.group in figure.groups]


def value(figure: Figure, metric: str, rows: Sequence[Measured]) -> float:
    """Returns a figure; NaN if a metric of it is undefined or the divisor is 0."""
    some = chosen(figure, rows)
    to = next((row for row in rows if row.name == figure.to), None)
    if not some or (figure.to and to is None):
        return math.nan
    if figure.take == "mean of ratios" and to is not None:
        return _mean_of_ratios(metric, some, to)
    weights = _weights(figure, some)
    mean = math.fsum(w * row.metrics[metric] for w, row in zip(weights, some, strict=True))
    return mean if to is None else _ratio(mean, to.metrics[metric])


def _weights(figure: Figure, rows: Sequence[Measured]) -> list[float]:
    """The share of each data set in the mean."""
    if figure.take != "mean of groups":
        return [1 / len(rows)] * len(rows)
    groups = [row.group for row in rows]
    return [1 / (len(set(groups)) * groups.count(row.group)) for row in rows]


def _mean_of_ratios(metric: str, rows: Sequence[Measured], to: Measured) -> float:
    """The mean over classes of mean over divisor; classes whose divisor is 0 or undefined do not
    count.
    """
    ratios = []
    for name, own in to.classes.items():
        parts = [row.classes.get(name, {}).get(metric, math.nan) for row in rows]
        ratios.append(_ratio(math.fsum(parts) / len(parts), own.get(metric, math.nan)))
    defined = [ratio for ratio in ratios if not math.isnan(ratio)]
    return math.fsum(defined) / len(defined) if defined else math.nan


def _ratio(above: float, below: float) -> float:
    return above / below if below else math.nan


def interval(
    figure: Figure, metric: str, rows: Sequence[Measured], level: float
) -> tuple[float, float, float]:
    """Returns standard error, low and high; NaN if unknown.

    Images are drawn anew within each data set; data sets with the same images share the draw. The
    influence of an image on the figure is the sum of those on the metrics, each times the slope of
    the figure in that metric.
    """
    nothing = (math.nan,) * 3
    some, figure_value = chosen(figure, rows), value(figure, metric, rows)
    to = next((row for row in rows if row.name == figure.to), None)
    needed = [*some, *([] if to is None else [to])]
    if (
        math.isnan(figure_value)
        or figure.take == "mean of ratios"
        or not all(metric in row.influence for row in needed)
    ):
        return nothing
    divisor = 1.0 if to is None else to.metrics[metric]
    slopes = [(row, w / divisor) for row, w in zip(some, _weights(figure, some), strict=True)]
    if to is not None:
        slopes.append((to, -figure_value / divisor))
    moved: dict[str, Floats] = {}
    for row, slope in slopes:
        moved[row.images] = moved.get(row.images, 0.0) + slope * row.influence[metric]
    se = math.sqrt(add_floats(map(variance, moved.values())))
    q = student((1 + level) / 2, math.inf)
    if to is None and 0 < figure_value < 1:
        return (se, *logit_interval(figure_value, se, 0.0, q))
    return se, figure_value - q * se, figure_value + q * se
