"""Standard error, bias and confidence interval of every metric of a result.

The method was chosen by simulation (docs/statistics.md): standard errors from influence functions
with a leverage correction, bias from halves of the images, an interval on the logit scale with
Student's quantile. Too few images give no interval, but a reason.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.core.base.immutable import Value
from detmap.core.base.sums import add_integers
from detmap.core.curves import aggregation
from detmap.core.curves.scores import Scores
from detmap.core.matching.matches import Matches
from detmap.core.protocol.metric_rows import MetricRow
from detmap.core.statistics import replicates as drawing
from detmap.core.statistics import support
from detmap.core.statistics.bias import Bias, total_error
from detmap.core.statistics.bias import bias as bias_of
from detmap.core.statistics.class_terms import Plan, occurring, plan
from detmap.core.statistics.formulas.logit_interval import edge_interval, logit_interval
from detmap.core.statistics.formulas.quantiles import student
from detmap.core.statistics.influence import Influence, influence
from detmap.core.statistics.sampling_units import Units, units
from detmap.core.tables import Note
from detmap.errors import DataError

METHODS = ("influence", "percentile", "jackknife")
"""The last is that of `detmap.core.statistics.jackknife`."""
VERSIONS = {"influence": 4, "percentile": 2, "jackknife": 2}
"""Of the numbers of a method; those of tests of differences have 3."""
FEW_UNITS = 3
LEAST_DRAWN = 200  # replicates for percentiles


@dataclass(slots=True, eq=False, repr=False)
class Interval(Value):  # dataclasses compare NaN differently from Python 3.13 on
    """A metric with its uncertainty, as fractions; NaN if undefined.

    Parameters
    ----------
    value : the metric of the exact engine
    se : standard error
    low, high : the confidence interval
    bias : small-sample bias, positive if the value is too high
    level : confidence level
    why_not : why there is no interval; "" if there is one
    """

    value: float
    se: float
    low: float
    high: float
    bias: float
    level: float
    why_not: str = ""

    @property
    def outside(self) -> bool:
        """Whether the value is outside its interval, which is corrected for the bias."""
        return self.value < self.low or self.value > self.high

    def to_dict(self) -> dict[str, Any]:
        """Plain values; None for undefined values and an empty reason."""
        return {
            key: None if value == "" or (isinstance(value, float) and math.isnan(value)) else value
            for key, value in asdict(self).items()
        }


@dataclass(frozen=True, slots=True, eq=False)
class Intervals:
    """The intervals of a result.

    Parameters
    ----------
    metrics : metric to interval; per_class : class to row to interval
    classes : the same per class index, because two classes may have the same name
    method, replicates, seed, level : the method
    units : the sampling units: images or groups
    notes : caveats
    """

    metrics: dict[str, Interval]
    per_class: dict[str, dict[str, Interval]]
    method: str
    replicates: int
    seed: int
    level: float
    units: Units
    notes: tuple[Note, ...] = ()
    classes: tuple[dict[str, Interval], ...] = ()

    @property
    def signature(self) -> str:
        """The part of the signature for method, replicates, seed and groups."""
        return signature(self.method, self.replicates, self.seed, self.units)

    def sentence(self, metric: str | None = None) -> str:
        """A metric with its interval, as printed in a paper; default: the first metric."""
        name = next(iter(self.metrics)) if metric is None else metric
        one = self.metrics[name]
        sample = f"{self.units.n:,} {self.units.noun}"
        scope = f"the interval covers sampling of {self.units.noun}, not training variance"
        if math.isnan(one.value):
            return f"{name} is undefined ({one.why_not})"
        value = f"{name} {100 * one.value:.1f}"
        if one.why_not and math.isnan(one.se):
            return f"{value} (no standard error: {one.why_not}; {sample})"
        if one.why_not:
            return f"{value} +- {100 * one.se:.1f} (standard error, {sample}; {scope})"
        bounds = f"{100 * one.low:.1f}-{100 * one.high:.1f}"
        if one.outside:
            bounds += f" after a bias of {100 * one.bias:+.1f}"
        return f"{value} ({100 * self.level:g} % CI {bounds}, {sample}; {scope})"


def signature(method: str, n: int, seed: int, of: Units) -> str:
    """The part of a signature for random numbers and method."""
    unit = f"|unit={of.digest}" if of.digest else ""
    return f"ci:{method}.{VERSIONS.get(method, 3)}|B={n}|seed={seed}{unit}"


def intervals(
    matches: Matches,
    scores: Scores,
    *,
    level: float = 0.95,
    replicates: int = 1000,
    seed: int = 0,
    groups: Mapping[Any, Any] | str | Path | None = None,
    method: str = "influence",
    more: Sequence[MetricRow] = (),
    threads: int | None = None,
    progress: drawing.Progress | None = None,
) -> Intervals:
    """Compute the interval of every metric and every row of the per-class table.

    Parameters
    ----------
    matches, scores : of a result
    level : confidence level
    replicates : number of replicates; 0 gives standard errors only
    seed : of the random numbers, at least 0
    groups : a mapping from image to group, or a CSV file ``image,group``, for dependent images
        (frames of one video)
    method : ``influence``; or ``percentile``, for comparison with papers: its coverage is 36 to
        94 % at a level of 95 %
    more : rows to add to those of the protocol
    threads : number of threads; results do not depend on it
    progress : called with the numbers of finished and of all replicates

    Raises
    ------
    DataError : invalid level, number or method; images without a group
    """
    check(level, method, progress)
    if replicates != 0:
        drawing.check(replicates, seed)
    rows = (*matches.protocol.rows()[0], *more)
    of_class = aggregation.class_rows(matches.protocol)
    (planned,) = occurring([plan(matches, rows, of_class)])
    least = LEAST_DRAWN if method == "percentile" else replicates
    asked, replicates = replicates, drawing.affordable(replicates, len(planned.places), least)
    drawn = units(matches.image_ids, groups)
    moved = influence(planned, drawn, threads)
    categories = matches.categories
    metric_values = [aggregation.mean(scores, row, matches.protocol, categories) for row in rows]
    class_values = [aggregation.per_class(scores, row, matches.protocol) for row in of_class]
    made = Maker(planned, moved, None, None, drawn, level, method)
    absent = {row.name: no_object(level) for row in of_class}
    classes = [dict(absent) for _ in range(len(categories))]

    def take(some: NDArray[np.int64], sampled: NDArray[np.float64] | None = None) -> None:
        """Compute the intervals of some classes: only their replicates are in memory."""
        for k, found in zip(some, made.class_intervals(some, class_values, sampled), strict=True):
            classes[planned.places[k]] = found

    told, read = progress or drawing.silent, None
    if replicates and drawn.n > 1:  # a single unit has no interval
        read = drawing.reader(planned)
        made.off = bias_of(planned, drawn, moved.n_units, replicates, seed, threads, read)
    if read is not None and needs_replicates(planned, drawn, method):
        made.sample = drawing.replicates(
            planned, drawn, replicates, seed, threads=threads, progress=told, read=read, take=take
        )
    else:
        take(np.arange(len(planned.places)))
        if read is not None:
            told(replicates, replicates)
    metrics = {row.name: made.metric_interval(q, metric_values[q]) for q, row in enumerate(rows)}
    return Intervals(
        metrics,
        dict(zip(categories.names, classes, strict=True)),
        method,
        replicates,
        seed,
        level,
        drawn,
        _notes(planned, moved, drawn, metrics, asked - replicates),
        tuple(classes),
    )


def check(level: float, method: str = METHODS[0], progress: Any = None) -> None:
    """Raise `DataError` for an invalid level, an unknown method or progress that is no function."""
    number = isinstance(level, float | np.floating) and math.isfinite(level)
    if not number or not 0.5 <= level < 1:
        raise DataError("level", f"{level!r}", "give a fraction from 0.5 to below 1, such as 0.95")
    if method not in METHODS:
        raise DataError("method", f"{method!r}", f"choose one of {', '.join(METHODS)}")
    if progress is not None and not callable(progress):
        what = f"a {type(progress).__name__}"
        raise DataError("progress", what, "give a function of two numbers, or leave it out")


def needs_replicates(planned: Plan, drawn: Units, method: str = METHODS[0]) -> bool:
    """Whether a number depends on replicates: percentiles, and standard errors of AP without an
    influence function. The bias has halves of the images of its own.
    """
    by_draws = not support.has_influence(planned.protocol) and (planned.readings.limit < 0).any()
    return drawn.n > 1 and (method == "percentile" or bool(by_draws))


class Maker:
    """Computes intervals one by one."""

    def __init__(
        self,
        planned: Plan,
        moved: Influence,
        sample: drawing.Replicates | None,
        off: Bias | None,
        drawn: Units,
        level: float,
        method: str,
    ) -> None:
        self.plan, self.moved, self.sample, self.off = planned, moved, sample, off
        self.units, self.level, self.method = drawn, level, method
        self.se, self.uncorrected_se = moved.se(), moved.uncorrected_se()
        self.shares, self.has_objects = planned.shares(), planned.has_objects()
        self.known = support.has_influence(planned.protocol)

    def metric_interval(self, q: int, value: float) -> Interval:
        """The interval of a mean over classes, or of the only class."""
        s = self.plan.of_metric[q]
        alone = np.flatnonzero(self.has_objects[q])
        sampled = None if self.sample is None else self.sample.metrics[:, q]
        if len(alone) == 1 and self.plan.protocol.mean.undefined == "skip":
            n_units = int(self.moved.n_units[s, alone[0]])
            df, single = float(max(1, n_units - 1)), n_units
        else:
            df, single = self.degrees(q), None
        why = self.unsupported(q, single)
        ratio = self.se[q] / self.uncorrected_se[q] if self.uncorrected_se[q] > 0 else 1.0
        se = self.error_of_mean(q)
        if self.off is None:
            return self.interval(s, value, se, math.nan, ratio, sampled, math.nan, df, single, why)
        error = math.hypot(float(self.off.wider[q]) * se, float(self.off.errors[q]))
        off = float(self.off.metrics[q])
        return self.interval(s, value, se, error, ratio, sampled, off, df, single, why)

    def error_of_mean(self, q: int) -> float:
        """The standard error of a metric."""
        s = self.plan.of_metric[q]
        n_units, values, variances = (
            each[s] for each in (self.moved.n_units, self.moved.values, self.moved.class_unbiased)
        )
        rule = self.plan.protocol.mean.undefined
        undefined = None if rule == "skip" else float(rule == "one")
        rare = support.variance_of_rare_classes(
            self.shares[q], n_units, values, variances, self.units, undefined
        )
        return math.sqrt(float(self.se[q]) ** 2 + rare)

    def unsupported(self, q: int, single: int | None) -> str:
        """Why a metric has no interval: its rule, or too few images of its classes."""
        if why := self.refused_rule(self.plan.of_metric[q]):
            return why
        if single is not None:
            return support.refuse_class(single, self.units)
        return support.refuse_mean(
            self.shares[q], self.moved.n_units[self.plan.of_metric[q]], self.units
        )

    def refused_rule(self, s: int) -> str:
        """Why a reading has no interval for any number of images."""
        kind = "AP" if self.plan.readings.limit[s] < 0 else "AR"
        return support.refuse_rule(self.plan.protocol, kind)

    def class_interval(
        self, c: int, k: int, value: float, sampled: NDArray[np.float64] | None = None
    ) -> Interval:
        """The interval of a row of the per-class table; `sampled` is the row in the replicates."""
        s = self.plan.of_class[c]
        se = math.sqrt(self.moved.class_unbiased[s, k])
        uncorrected = math.sqrt(self.moved.class_uncorrected[s, k])
        n_units = int(self.moved.n_units[s, k])
        ratio = se / uncorrected if uncorrected > 0 else 1.0
        off = math.nan if self.off is None else float(self.off.classes[c, k])
        df = float(max(1, n_units - 1))
        why = self.refused_rule(s) or support.refuse_class(n_units, self.units)
        error = total_error(se, abs(off), self.plan.readings.limit[s] < 0)
        return self.interval(s, value, se, error, ratio, sampled, off, df, n_units, why)

    def class_intervals(
        self,
        some: NDArray[np.int64],
        values: Sequence[NDArray[np.float64]],
        sampled: NDArray[np.float64] | None,
    ) -> Iterator[dict[str, Interval]]:
        """The rows of some classes, by name.

        Parameters
        ----------
        some : (k,) positions among the classes of the plan
        values : the numbers of all classes of the result, per row
        sampled : (B, C, k) replicates, if there are any
        """
        for i, k in enumerate(some.tolist()):
            yield {
                row.name: self.class_interval(
                    c,
                    k,
                    float(values[c][self.plan.places[k]]),
                    None if sampled is None else sampled[:, c, i],
                )
                for c, row in enumerate(self.plan.classes)
            }

    def degrees(self, q: int) -> float:
        """Degrees of freedom of a mean over classes. Source: Satterthwaite 1946."""
        s = self.plan.of_metric[q]
        mine = self.has_objects[q]
        v = self.moved.class_unbiased[s][mine] * self.shares[q][mine] ** 2
        n = np.maximum(self.moved.n_units[s][mine], 2)
        below = float((v**2 / (n - 1)).sum())
        return max(1.0, float(v.sum()) ** 2 / below) if below > 0 else math.inf

    def interval(
        self,
        s: int,
        value: float,
        se: float,
        error: float,
        ratio: float,
        sampled: NDArray[np.float64] | None,
        bias: float,
        df: float,
        single: int | None,
        unsupported: str,
    ) -> Interval:
        """One of them; `error` is that of the value minus its bias, `single` the units of a single
        class.
        """
        if math.isnan(value):
            return no_object(self.level)
        if self.units.n < 2:
            why = f"fewer than two {self.units.noun}"
            return Interval(value, *(math.nan,) * 4, self.level, why)
        by_draws = not self.known and self.plan.readings.limit[s] < 0
        why = ""
        if self.off is None:
            why = "the bias needs replicates"
            se = math.nan if by_draws else se
        elif sampled is not None:
            defined = sampled[~np.isnan(sampled)]
            lost = len(sampled) - len(defined)
            if by_draws:
                se = spread(defined) * ratio
            if self.method == "percentile":
                se, bias = spread(defined), mean_of(defined) - value
            if lost > support.MOST_LOST * len(sampled):
                why = f"undefined in {lost} of {len(sampled)} replicates"
                why += f"; more {self.units.noun} would help"
        if not why and self.method == "percentile":
            tail = (1 - self.level) / 2
            low, high = np.quantile(defined, [tail, 1 - tail]).tolist()
            return Interval(value, se, low, high, bias, self.level)
        why = why or unsupported
        if why:
            return Interval(value, se, math.nan, math.nan, bias, self.level, why)
        if single is not None and min(value, 1 - value) <= support.ROUNDING:
            edge = ((1 - self.level) / 2) ** (1 / single)
            low, high = (edge, 1.0) if value > 0.5 else (0.0, 1 - edge)
            return Interval(value, se, low, high, bias, self.level)
        if not se > support.ROUNDING:
            why = support.no_spread(self.units)
            return Interval(value, se, math.nan, math.nan, bias, self.level, why)
        low, high = logit_interval(value, error, bias, student((1 + self.level) / 2, df))
        lowest, highest = edge_interval(value, error, self.level)
        low, high = min(low, lowest), max(high, highest)
        if why := support.too_wide(low, high, self.units):
            return Interval(value, se, math.nan, math.nan, bias, self.level, why)
        return Interval(value, se, low, high, bias, self.level)


def no_object(level: float) -> Interval:
    """The interval of a number that is not defined."""
    return Interval(*(math.nan,) * 5, level, "no ground-truth object")


def mean_of(values: NDArray[np.float64]) -> float:
    """Mean of replicates, by a sequential sum; NaN without replicates."""
    return float(np.cumsum(values)[-1] / len(values)) if len(values) else math.nan


def spread(values: NDArray[np.float64]) -> float:
    """Standard deviation of replicates, by a sequential sum; NaN for fewer than two."""
    if len(values) < 2:
        return math.nan
    mean = mean_of(values)
    return math.sqrt(float(np.cumsum((values - mean) ** 2)[-1]) / (len(values) - 1))


def _notes(
    planned: Plan, moved: Influence, drawn: Units, metrics: Mapping[str, Interval], n_fewer: int = 0
) -> tuple[Note, ...]:
    s = planned.of_metric[0]
    mine = planned.has_objects()[0]
    rare = int((moved.n_units[s][mine] < FEW_UNITS).sum())
    notes = []
    if rare:
        text = f"classes are on fewer than {FEW_UNITS} {drawn.noun}: their metrics are unreliable"
        notes.append(Note("few-images", text, rare))
    if n_fewer:
        text = f"classes are too many for as many replicates: there are {n_fewer:,} fewer"
        notes.append(Note("fewer-replicates", text, len(planned.places)))
    outside = add_integers(one.outside for one in metrics.values())
    if outside:
        text = "values are outside of their intervals, which are corrected for bias"
        notes.append(Note("outside-interval", text, outside))
    return tuple(notes)
