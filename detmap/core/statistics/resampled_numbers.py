"""Intervals of any statistics from their replicates, and differences of two detectors from the same
replicates.

The standard error comes from the influence function if it is known, else from the replicates. The
bias always comes from the replicates. The interval has the form of
`detmap.core.statistics.intervals`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from detmap.core.base.immutable import Value
from detmap.core.base.parallel import map_ordered
from detmap.core.curves import aggregation
from detmap.core.curves import scores as curves
from detmap.core.matching.matches import Matches
from detmap.core.protocol.metric_rows import NO_LIMIT, MetricRow
from detmap.core.statistics import replicates as drawing
from detmap.core.statistics import support
from detmap.core.statistics.bias import bias
from detmap.core.statistics.class_terms import plan
from detmap.core.statistics.comparison import LEAST_UNITS
from detmap.core.statistics.formulas.logit_interval import logit_interval
from detmap.core.statistics.formulas.multiple_comparisons import holm
from detmap.core.statistics.formulas.quantiles import normal, student, two_sided
from detmap.core.statistics.influence import influence, variance
from detmap.core.statistics.intervals import Interval, Maker, mean_of, spread
from detmap.core.statistics.sampling_units import Units

Floats = NDArray[np.float64]
LEVEL = 0.95
FEW = 20  # units of a share; fewer have a standard error, but no interval


@dataclass(frozen=True, slots=True, eq=False)
class Sampled:
    """Q statistics and their values in B replicates.

    Parameters
    ----------
    values : (Q,)
    draws : (B, Q), NaN if undefined in a replicate
    units : the sampling units
    intervals : one per statistic
    moved : (Q, U) influence of each unit, with the leverage correction; None if unknown
    rare : (Q,) why a difference of the statistic has no interval, though the statistic has one; ""
        for no reason; empty if there is no reason for any
    """

    values: Floats
    draws: Floats
    units: Units
    intervals: tuple[Interval, ...]
    moved: Floats | None = None
    rare: tuple[str, ...] = ()

    def some(self, places: Sequence[int]) -> Sampled:
        """Some of the numbers."""
        at = np.array(places, dtype=np.int64)
        moved = None if self.moved is None else self.moved[at]
        intervals = tuple(self.intervals[q] for q in places)
        rare = tuple(self.rare[q] for q in places) if self.rare else ()
        return Sampled(self.values[at], self.draws[:, at], self.units, intervals, moved, rare)


@dataclass(slots=True, eq=False, repr=False)
class Difference(Value):  # as `Interval`
    """A statistic of B minus that of A, on the same units; NaN if undefined.

    Parameters
    ----------
    value, se, low, high : as in `Interval`
    p : two-sided p-value of no difference; adjusted if several were requested together
    """

    value: float
    se: float
    low: float
    high: float
    p: float


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Statistics that are functions of sums over images.

    Parameters
    ----------
    values : (Q,)
    of : function from (I, L) image weights to the (Q, L) statistics
    n_units : (Q,) number of units of each statistic
    """

    values: Floats
    of: Callable[[Floats], Floats]
    n_units: NDArray[np.int64]


def resample_ap(
    matches: Matches, units: Units, n: int, seed: int, *, threads: int | None = None
) -> Sampled:
    """AP of matches: the mean over classes and thresholds of the main subset."""
    protocol = matches.protocol
    row = MetricRow("AP", "AP", None, protocol.axes().main, "", NO_LIMIT)
    planned = plan(matches, (row,), ())
    moved = influence(planned, units, threads)
    read = drawing.reader(planned)
    sample = drawing.replicates(planned, units, n, seed, threads=threads, read=read)
    off = bias(planned, units, moved.n_units, n, seed, threads, read)
    scores = curves.scores(matches, threads=threads)
    value = aggregation.mean(scores, row, protocol, matches.categories)
    interval = Maker(planned, moved, sample, off, units, LEVEL, "influence").metric_interval(
        0, value
    )
    known = moved.corrected if support.has_influence(protocol) else None
    rare = support.refuse_mean(planned.shares()[0], moved.n_units[planned.of_metric[0]], units)
    return Sampled(np.array([value]), sample.metrics, units, (interval,), known, (rare,))


def resample_fractions(
    parts: Sequence[Part], units: Units, n: int, seed: int, *, threads: int | None = None
) -> list[Sampled]:
    """Replicates of several fractions together."""
    draws = [np.empty((n, len(part.values))) for part in parts]

    def evaluate_batch(first: int) -> None:
        weights = drawing.lanes_of(units, seed, first)
        kept = min(drawing.LANES, n - first)
        for part, into in zip(parts, draws, strict=True):
            into[first : first + kept] = part.of(weights)[:, :kept].T

    for _ in map_ordered(evaluate_batch, range(0, n, drawing.LANES), threads):
        pass
    return [
        Sampled(
            part.values,
            sampled,
            units,
            tuple(
                fraction(float(value), column, int(m), units)
                for value, column, m in zip(part.values, sampled.T, part.n_units, strict=True)
            ),
        )
        for part, sampled in zip(parts, draws, strict=True)
    ]


def fraction(value: float, draws: Floats, n_units: int, units: Units) -> Interval:
    """The interval of a fraction on some of the units; on the logit scale, like AP."""
    nan = math.nan
    if math.isnan(value):
        return Interval(value, nan, nan, nan, nan, LEVEL, "no cases")
    known = draws[~np.isnan(draws)]
    lost = len(draws) - len(known)
    se, off = spread(known), mean_of(known) - value
    why = ""
    if lost > support.MOST_LOST * len(draws):
        why = f"undefined in {lost} of {len(draws)} replicates"
    elif n_units < FEW:
        why = f"on {n_units} {units.noun}, fewer than {FEW}"
    if why:
        return Interval(value, se, nan, nan, off, LEVEL, why)
    if min(value, 1 - value) <= support.ROUNDING:
        edge = ((1 - LEVEL) / 2) ** (1 / n_units)
        low, high = (edge, 1.0) if value > 0.5 else (0.0, 1 - edge)
        return Interval(value, se, low, high, off, LEVEL)
    if not se > support.ROUNDING:
        why = support.no_spread(units)
        return Interval(value, se, nan, nan, off, LEVEL, why)
    low, high = logit_interval(value, se, off, student((1 + LEVEL) / 2, float(n_units - 1)))
    return Interval(value, se, low, high, off, LEVEL)


def less(after: Sampled, before: Sampled) -> Sampled:
    """Each statistic of `after` minus that of `before` in the same replicates, with the interval of
    the difference.
    """
    values, draws = after.values - before.values, after.draws - before.draws
    moved = None
    if after.moved is not None and before.moved is not None:
        moved = after.moved - before.moved
    rare = after.rare or before.rare
    intervals = []
    for q, value in enumerate(values.tolist()):
        known = draws[:, q][~np.isnan(draws[:, q])]
        se = spread(known) if moved is None else math.sqrt(variance(moved[q]))
        off = after.intervals[q].bias - before.intervals[q].bias
        lost = rare[q] if rare else ""
        why = lost or after.intervals[q].why_not or before.intervals[q].why_not
        if lost:  # the replicates include the variation of which classes a sample has
            se = spread(known)
        if not why and abs(value) > support.ROUNDING >= se:
            why = support.no_spread(after.units)
        if why and (value != 0 or se != 0):
            intervals.append(Interval(value, se, math.nan, math.nan, off, LEVEL, why))
            continue
        half = normal((1 + LEVEL) / 2) * se
        intervals.append(Interval(value, se, value - off - half, value - off + half, off, LEVEL))
    return Sampled(values, draws, after.units, tuple(intervals), moved, rare)


def differences(after: Sampled, before: Sampled, *, adjust: bool = False) -> list[Difference]:
    """B minus A of each statistic, with its p-value.

    Parameters
    ----------
    adjust : adjust the p-values for all statistics together, by Holm's rule
    """
    apart = less(after, before)
    p = [_p(each, apart.units) for each in apart.intervals]
    if adjust:
        p = holm(p)
    return [
        Difference(each.value, each.se, each.low, each.high, value)
        for each, value in zip(apart.intervals, p, strict=True)
    ]


def _p(apart: Interval, units: Units) -> float:
    """The p-value from z, as in a comparison of detectors; NaN for too few units."""
    if units.n >= LEAST_UNITS and support.same(apart.value, apart.se):
        return 1.0
    if units.n < LEAST_UNITS or apart.why_not or math.isnan(apart.value) or math.isnan(apart.se):
        return math.nan
    return two_sided((apart.value - apart.bias) / apart.se)


def joined(each: Sequence[Sampled]) -> Sampled:
    """Concatenate statistics with common replicates."""
    known = [one.moved for one in each if one.moved is not None]
    return Sampled(
        np.concatenate([one.values for one in each]),
        np.concatenate([one.draws for one in each], axis=1),
        each[0].units,
        tuple(interval for one in each for interval in one.intervals),
        np.concatenate(known) if len(known) == len(each) else None,
        tuple(why for one in each for why in one.rare or ("",) * len(one.values)),
    )
