"""Figures over the metrics of data sets: means, means of groups, ratios, and their intervals."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from detmap.benchmarks.suites.suite_file import Figure
from detmap.core.base.sums import add_floats
from detmap.core.statistics.estimates import Estimates, Interval, Rule, bounds
from detmap.core.statistics.refusals import ROUNDING, WIDEST
from detmap.core.statistics.subsets import Subsets


class OnSubset(NamedTuple):
    """The numbers of a data set on a subset of its images; see `Measured`."""

    metrics: Mapping[str, float]
    classes: Mapping[str, Mapping[str, float]]


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
    subsets : the subsets of its images; None if no intervals are asked for
    on_subsets : the numbers on each of them, and on all images by the rule of the subsets
    rules, own : how the error of a metric follows, and its interval, by name
    """

    name: str
    group: str
    metrics: Mapping[str, float]
    classes: Mapping[str, Mapping[str, float]]
    counts: Mapping[str, Any]
    signature: str
    images: str
    subsets: Subsets | None = None
    on_subsets: tuple[OnSubset, ...] = ()
    rules: Mapping[str, Rule] = field(default_factory=dict)
    own: Mapping[str, Interval] = field(default_factory=dict)


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
    """Returns standard error, low and high of a figure; NaN if unknown.

    The figure is evaluated on the subsets of the images of each data set. Data sets with the same
    images share the subsets; the variances and biases of different images add up. There are no
    bounds if a metric of a data set has no interval, or has no standard error.
    """
    whole, some = value(figure, metric, rows), chosen(figure, rows)
    needed = [row for row in rows if row in some or row.name == figure.to]
    if math.isnan(whole) or any(row.subsets is None for row in needed):
        return (math.nan,) * 3
    own = [row.own[metric] for row in needed]
    if len(own) == 1 and not figure.to:
        return own[0].se, own[0].low, own[0].high
    keys = dict.fromkeys(row.images for row in needed)
    parts = [_estimates(figure, metric, needed, key) for key in keys]
    se, bias, error = np.array([np.ravel(each.errors()) for each in parts]).T.tolist()
    if any(one.why_not or not one.se > ROUNDING for one in own):
        return _root(se), math.nan, math.nan
    q = min(parts, key=lambda each: each.subsets.n_parts).quantile((1 + level) / 2)
    fraction = not figure.to and 0 < whole < 1
    low, high = bounds(whole, _root(error), add_floats(bias), q, level if fraction else None)
    if fraction and high - low > WIDEST:
        return _root(se), math.nan, math.nan
    return _root(se), low, high


def _root(errors: Sequence[float]) -> float:
    """The error of a sum of independent numbers."""
    return math.sqrt(add_floats([each**2 for each in errors]))


def _estimates(figure: Figure, metric: str, rows: Sequence[Measured], images: str) -> Estimates:
    """A figure on the subsets of the images that some data sets share; the others are whole."""
    dealt = next(row.subsets for row in rows if row.images == images)
    assert dealt is not None
    found = []
    for e in range(len(dealt) + 1):
        some = [
            replace(row, metrics=row.on_subsets[e].metrics, classes=row.on_subsets[e].classes)
            if row.images == images
            else row
            for row in rows
        ]
        found.append(value(figure, metric, some))
    *parts, whole = np.array(found).reshape(-1, 1)
    own = next(row.rules[metric] for row in rows if row.images == images)
    return Estimates(whole, whole, np.array(parts), dealt, (own,))
