"""Confidence intervals of every metric of a result and of its classes."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from detmap.core.base.suggestions import missing
from detmap.core.output.table import Table
from detmap.core.output.tabular import Tabular
from detmap.core.statistics.estimates import Interval
from detmap.core.statistics.evaluations import Evaluated
from detmap.core.statistics.random_words import check_seed
from detmap.core.statistics.refusals import MARK, REASONS, footnotes
from detmap.core.statistics.sampling_units import Units, groups_of, units
from detmap.core.statistics.subsets import EVALUATIONS, Subsets, subsets
from detmap.core.tables import Truth
from detmap.errors import DataError

METHOD, VERSION = "jackknife", 8
HIGHEST_LEVEL = 0.999999
HEADER = ("value", "SE", "low", "high", "bias")


@dataclass(frozen=True, slots=True, eq=False)
class Intervals(Tabular):
    """The intervals of a result; ``intervals["AP"].low`` is a bound.

    Parameters
    ----------
    metrics : metric to interval
    names, classes : of each class the name, and row to interval; two may have the same name
    seed, level : the method
    units : the sampling units: images or groups
    """

    metrics: dict[str, Interval]
    names: tuple[str, ...]
    classes: tuple[dict[str, Interval], ...]
    seed: int
    level: float
    units: Units
    method: str = METHOD

    @property
    def per_class(self) -> dict[str, dict[str, Interval]]:
        """Class to row to interval."""
        return dict(zip(self.names, self.classes, strict=True))

    @property
    def signature(self) -> str:
        """The part of the signature for method, evaluations, seed and groups."""
        return signature(self.seed, self.units)

    def __getitem__(self, metric: str) -> Interval:
        """Returns the interval of a metric; a `KeyError` proposes the right name."""
        if metric in self.metrics:
            return self.metrics[metric]
        raise missing(metric, self.metrics)

    def tables(self, *, per_class: bool = False) -> list[Table]:
        """Returns the tables of the metrics and, on request, of the classes."""
        title = ": jackknife, corrected for the small-sample bias"
        metrics = [((name,), one) for name, one in self.metrics.items()]
        made = [self._table(title, "intervals", ("metric",), metrics)] if metrics else []
        if per_class or not self.metrics:
            classes = zip(self.names, self.classes, strict=True)
            cells = [((name, row), one) for name, of in classes for row, one in of.items()]
            made.append(self._table(", per class", "class-intervals", ("class", "metric"), cells))
        return made

    def _table(self, title: str, name: str, keys: tuple[str, ...], of: Sequence[Any]) -> Table:
        rows = []
        for (*key, row), one in of:
            marked = row + MARK * bool(one.why_not)
            rows.append((*key, marked, one.value, one.se, one.low, one.high, one.bias))
        promise = f"{100 * self.level:g} % intervals, {self.units.counted()}"
        return Table(
            promise + title,
            (*keys, *HEADER),
            tuple(rows),
            (*footnotes(one for _, one in of),),
            name=name,
        )

    def sentence(self, metric: str | None = None) -> str:
        """A metric with its interval, as printed in a paper; default: the first metric, "" if there
        is none.
        """
        if metric is None and not self.metrics:
            return ""
        name = next(iter(self.metrics)) if metric is None else metric
        one, sample = self.metrics[name], self.units.counted()
        scope = f"the interval covers sampling of {self.units.noun}, not training variance"
        if math.isnan(one.value):
            return f"{name} is undefined ({one.why_not})"
        value = f"{name} {100 * one.value:.1f}"
        if one.why_not and math.isnan(one.se):
            return f"{value} (no standard error: {one.why_not}; {sample})"
        if one.why_not:
            return f"{value} +- {100 * one.se:.1f} (standard error, {sample}; {scope})"
        bounds = f"{100 * one.low:.1f}-{100 * one.high:.1f}"
        return f"{value} ({100 * self.level:g} % CI {bounds}, {sample}; {scope})"


def signature(seed: int, of: Units) -> str:
    """The part of a signature for method, evaluations, seed and groups."""
    unit = f"|unit={of.digest}" if of.digest else ""
    return f"ci:{METHOD}.{VERSION}|B={EVALUATIONS}|seed={seed}{unit}"


def sample(
    image_ids: Any,
    truth: Truth | None = None,
    *,
    level: float = 0.95,
    seed: int = 0,
    groups: Mapping[Any, Any] | str | Path | None = None,
    method: str = METHOD,
    progress: Any = None,
) -> Subsets:
    """Check the options of intervals and deal the images into subsets.

    Parameters
    ----------
    truth : the ground truth, by which a file of groups names images; None: the file has ids
    level : confidence level; seed : of the random numbers, at least 0
    groups : a mapping from image to group, or a CSV file ``image,group``, for dependent images
        (frames of one video)

    Raises
    ------
    DataError : invalid level, seed, method or progress; images without a group
    """
    number = isinstance(level, float | np.floating) and math.isfinite(level)
    if not number or not 0.5 <= level <= HIGHEST_LEVEL:
        fix = f"give a fraction from 0.5 to {HIGHEST_LEVEL}, such as 0.95"
        raise DataError("level", f"{level!r}", fix)
    if method != METHOD:
        raise DataError("method", f"{method!r}", f"leave it out: there is {METHOD} alone")
    check_seed(seed)
    if progress is not None and not callable(progress):
        what = f"a {type(progress).__name__}"
        raise DataError("progress", what, "give a function of two numbers, or leave it out")
    if isinstance(groups, str | Path) and truth is not None:
        groups = groups_of(groups, truth)
    return subsets(units(image_ids, groups), seed)


def intervals(found: Evaluated, names: Sequence[str], level: float, seed: int) -> Intervals:
    """The intervals of evaluated numbers; `names` are those of the classes."""
    every = found.estimates.intervals(level)
    metrics = dict(zip(found.metrics, every, strict=False))
    undefined = Interval(*(math.nan,) * 5, level, REASONS["undefined"])
    rows = list(dict.fromkeys(name for _, name in found.cells))
    classes = [dict.fromkeys(rows, undefined) for _ in names]
    for (k, name), one in zip(found.cells, every[len(metrics) :], strict=True):
        classes[k][name] = one
    units = found.estimates.subsets.units
    return Intervals(metrics, tuple(names), tuple(classes), seed, level, units)
