"""Standard error, bias, interval and paired difference of any numbers, from their values on subsets
of the images.

A paired delete-a-group jackknife. The values x_g without each of G parts give the standard error,

    se^2 = (G - 1) / G * sum (x_g - mean)^2.

The mean h of the values of halves gives the bias of a small sample, b = (h - x) / (2^r - 1): AP of
few images is too high. The error of x - b is hypot(w se, c b, step), and Student's quantile for
G - 1 degrees of freedom gives the bounds, on the logit scale for fractions. The constants were
chosen by simulation (docs/statistics.md).

The bias of a difference of two detectors is mostly far below its standard error s, and its estimate
is noise; subtracting it costs power. So half of it is subtracted, and the error is hypot(s, b).

Source: Kott 2001, The delete-a-group jackknife, J. Official Statistics 17(4).
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.core.base.immutable import Value
from detmap.core.output.cell_text import or_none
from detmap.core.statistics.formulas.logit_interval import edge_interval, logit_interval
from detmap.core.statistics.formulas.quantiles import student, two_sided_student
from detmap.core.statistics.refusals import LEAST_OF_TEST, REASONS, ROUNDING, WIDEST, reason
from detmap.core.statistics.subsets import Subsets

Floats = NDArray[np.float64]
RATE_OF_AP, RATE_OF_RATIO = 2 / 3, 1.0  # the bias falls by 2^rate if the images double
WIDER, WIDER_RATIO = 1.12, 1.08  # a number minus its bias varies more than the number
OF_STEP = math.sqrt(12)  # a step in standard deviations of a place on it
FEW_CLASSES = 20  # with more, AP varies less beyond its standard error
OF_BIAS = 0.15  # share of the bias of a ratio that is not known
OF_AP, OF_ONE = 0.1, 0.3  # of AP: hypot(.1, 1 / sqrt(K)) over K classes; of one of many
OF_HALVES = 0.4  # weight of the variance of halves: 16 degrees of freedom beside 24 of the parts
SUBTRACTED = 0.5  # share of the bias of a difference
UNITS_PER_DEGREE = 3  # effective units for each degree of freedom of a test
POWER = NormalDist().inv_cdf(0.8)  # of the test for the minimum detectable difference


class Rule(NamedTuple):
    """How the error of a number follows from its standard error and its bias.

    Parameters
    ----------
    rate : r; wider : w; of_bias : c
    step : standard error that the subsets do not show, since they are read by a smooth rule
    why_not : why the number has no interval whatever its values are; "" for no reason
    alone : units of a single class, for exact intervals at 0 and 1; 0 for other numbers
    effective : effective number of units with objects
    nearly : a number this near to 1 has no interval, and why
    undefined : why the number is undefined, if it is
    """

    rate: float = RATE_OF_RATIO
    wider: float = WIDER_RATIO
    of_bias: float = OF_BIAS
    step: float = 0.0
    why_not: str = ""
    alone: int = 0
    effective: float = math.inf
    nearly: tuple[float, str] = (0.0, "")
    undefined: str = REASONS["undefined"]

    def minus(self, other: Rule) -> Rule:
        """The rule of a difference from the same number of another detector."""
        step, why_not = math.hypot(self.step, other.step), self.why_not or other.why_not
        return self._replace(step=step, why_not=why_not, alone=0, nearly=(0.0, ""))

    def refused(self, *reasons: str) -> Rule:
        """The rule with the first reason that is not empty; its own comes first."""
        return self._replace(why_not=next(filter(None, (self.why_not, *reasons)), ""))


def rule_of_ap(n_classes: int, step: float = 0.0) -> Rule:
    """The rule of a mean of AP over so many classes."""
    wider = 1 + (WIDER - 1) * min(1.0, FEW_CLASSES / max(1, n_classes))
    return Rule(RATE_OF_AP, wider, math.hypot(OF_AP, 1 / math.sqrt(max(1, n_classes))), step)


def rule_of_one(step: float = 0.0) -> Rule:
    """The rule of AP of one of many classes."""
    return rule_of_ap(1, step)._replace(of_bias=OF_ONE)


RULE_OF_BEST = Rule(RATE_OF_AP, WIDER)
"""Of F1 or oLRP at the best score: an extreme over noise, as the envelope of AP is."""

RULE_OF_DEVIATIONS = Rule(RATE_OF_RATIO, WIDER, OF_ONE)
"""Of a sum of absolute deviations, whose bias depends on how many are noise."""


class Numbers(Value):
    """A `Value` of which NaN equals NaN: tuples compare objects first, so each is `math.nan`."""

    __slots__ = ()

    def _values(self) -> tuple[Any, ...]:
        values = Value._values(self)
        return tuple([math.nan if each != each else each for each in values])


def plain(numbers: Any) -> dict[str, Any]:
    """The fields of an interval or a difference; None for undefined values and no reason."""
    fields = {key: or_none(value) for key, value in asdict(numbers).items()}
    return fields | {"why_not": numbers.why_not or None}


@dataclass(slots=True, eq=False, repr=False)
class Interval(Numbers):  # dataclasses compare NaN differently from Python 3.13 on
    """A number with its uncertainty, as fractions; NaN if undefined.

    Parameters
    ----------
    value : the number as it is reported
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

    def to_dict(self) -> dict[str, Any]:
        """Plain values; None for undefined values and an empty reason."""
        return plain(self)


@dataclass(slots=True, eq=False, repr=False)
class Difference(Numbers):  # as `Interval`
    """A number of B minus that of A on the same images; NaN if undefined.

    Parameters
    ----------
    value, low, high, why_not : as in `Interval`
    se : error of the difference minus half of its bias
    bias : as in `Interval`
    p : two-sided p-value of no difference, from Student's t
    df : its degrees of freedom
    mdd : minimum detectable difference: the test detects it with a power of 0.8
    """

    value: float
    se: float
    low: float
    high: float
    bias: float
    p: float
    df: float
    mdd: float
    why_not: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Estimates:
    """Q numbers and their values on E subsets.

    Parameters
    ----------
    value : (Q,) as reported
    whole, parts : (Q,) and (E, Q), of all images and of the subsets, by one rule
    subsets : the subsets
    rules : (Q,) how the errors follow
    is_difference : whether the numbers are differences, not fractions
    """

    value: Floats
    whole: Floats
    parts: Floats
    subsets: Subsets
    rules: tuple[Rule, ...]
    is_difference: bool = False

    def minus(self, before: Estimates) -> Estimates:
        """The differences from other estimates on the same subsets."""
        rules = (own.minus(its) for own, its in zip(self.rules, before.rules, strict=True))
        value, whole = self.value - before.value, self.whole - before.whole
        parts = self.parts - before.parts
        return Estimates(value, whole, parts, self.subsets, tuple(rules), is_difference=True)

    def errors(self) -> tuple[Floats, Floats, Floats]:
        """(Q,) standard errors, biases, and errors of the numbers minus their biases."""
        g = self.subsets.n_parts
        rate, wider, of_bias, step = np.array([rule[:4] for rule in self.rules]).reshape(-1, 4).T
        se, halves = np.sqrt(self._part_variances()), self.parts[g:]
        bias = (_total(halves) / max(1, len(halves)) - self.whole) / (2**rate - 1)
        error = np.hypot(np.hypot(wider * se, of_bias * bias), np.where(se > ROUNDING, step, 0.0))
        return se, bias, error

    def spread(self) -> Floats:
        """(Q,) standard errors of differences: the variance of the parts and that of the halves,
        minus that of the means of both halves between splits. A number that is not linear in the
        images has a part of second order. The first two count it twice; it alone moves the means,
        and it is at most half of the first.
        """
        of_parts, halves = self._part_variances(), self.parts[self.subsets.n_parts :]
        one, other, n = halves[::2], halves[1::2], max(1, len(halves) // 2)
        means = (one + other) / 2
        of_halves = _total(((one - other) / 2) ** 2) / n
        twice = _total((means - _total(means) / n) ** 2) / max(1, n - 1)
        every = (1 - OF_HALVES) * of_parts + OF_HALVES * of_halves - twice
        se = np.sqrt(np.maximum(every, of_parts / 2))
        return np.hypot(se, np.where(se > ROUNDING, [rule.step for rule in self.rules], 0.0))

    def _part_variances(self) -> Floats:
        """(Q,) variances by the values without each part."""
        g = self.subsets.n_parts
        without = self.parts[:g]
        apart = without - _total(without) / max(1, g)
        return (g - 1) / max(1, g) * _total(apart**2)

    def quantile(self, p: float, alone: int = 0) -> float:
        """Student's quantile for the errors; `alone` is the number of units of a single class."""
        n = min(self.subsets.n_parts, alone or self.subsets.n_parts)
        return student(p, max(1, n - 1))

    def degrees(self, k: int) -> float:
        """Degrees of freedom of a test: few if few units have many of the objects."""
        least = min(self.subsets.n_parts - 1, self.rules[k].effective / UNITS_PER_DEGREE)
        return max(1.0, least)

    def intervals(self, level: float) -> list[Interval]:
        """One interval per number."""
        se, bias, error = self.errors()
        undefined = np.isnan(self.parts).sum(axis=0)
        found = []
        for k, value in enumerate(self.value.tolist()):
            one = Interval(value, float(se[k]), math.nan, math.nan, float(bias[k]), level)
            low, high, why = self._bounds(k, one, float(error[k]), int(undefined[k]))
            found.append(replace(one, low=low, high=high, why_not=why))
        return found

    def _bounds(
        self, k: int, one: Interval, error: float, undefined: int
    ) -> tuple[float, float, str]:
        """Low, high, and why there are none."""
        units, nothing = self.subsets.units, (math.nan, math.nan)
        if why := self.refused(k, undefined):
            return *nothing, why
        m, (near, why) = self.rules[k].alone, self.rules[k].nearly
        if m and not self.is_difference and min(abs(one.value), abs(1 - one.value)) <= ROUNDING:
            edge = ((1 - one.level) / 2) ** (1 / m)
            return (edge, 1.0, "") if one.value > 0.5 else (0.0, 1 - edge, "")
        if ROUNDING < 1 - one.value < near + ROUNDING:
            return *nothing, why
        if not one.se > ROUNDING * max(1.0, abs(one.value)):
            return *nothing, reason("no spread", units)
        q = self.quantile((1 + one.level) / 2, m)
        values = np.append(self.parts[:, k], one.value)
        bounded = values.min() >= -ROUNDING and values.max() <= 1 + ROUNDING
        fraction = bounded and not self.is_difference
        level = one.level if fraction else None
        low, high = bounds(one.value, error, one.bias, q, level)
        if fraction and high - low > WIDEST:
            return *nothing, reason("wide", units, low=low, high=high)
        return low, high, ""

    def refused(self, k: int, undefined: int) -> str:
        """Why a number has no interval before its errors are known."""
        units = self.subsets.units
        if math.isnan(self.value[k]):
            return self.rules[k].undefined
        if units.n < 2:
            return reason("one unit", units)
        if self.rules[k].why_not or not undefined:
            return self.rules[k].why_not
        return reason("subsets", units, n=undefined, of=len(self.subsets))

    def differences(self, before: Estimates, alpha: float = 0.05) -> list[Difference]:
        """The numbers minus those of `before`, each with its test."""
        apart = self.minus(before)
        units, bias = apart.subsets.units, apart.errors()[1]
        error = np.hypot(apart.spread(), bias)
        undefined = np.isnan(apart.parts).sum(axis=0)
        found = []
        for k, (value, off, se) in enumerate(
            zip(apart.value.tolist(), bias.tolist(), error.tolist(), strict=True)
        ):
            why = apart.refused(k, int(undefined[k]))
            df, low, high, p, mdd = apart.degrees(k), *(math.nan,) * 4
            if not why and abs(value) <= ROUNDING and se <= ROUNDING:  # nothing differs
                low, high, p, mdd = value, value, 1.0, 0.0
            elif not why and se <= ROUNDING:
                why = reason("no spread", units)
            elif not why:
                center, q = value - SUBTRACTED * off, student(1 - alpha / 2, df)
                low, high = center - q * se, center + q * se
                p, mdd = two_sided_student(center / se, df), (q + POWER) * se
            p = p if units.n >= LEAST_OF_TEST else math.nan
            found.append(Difference(value, se, low, high, off, p, df, mdd, why))
        return found


def _total(rows: Floats) -> Floats:
    """Sums of rows, one after the other: the bits do not depend on the number of columns. NaN of
    no rows.
    """
    sums: Floats = np.cumsum(rows, axis=0)[-1] if len(rows) else np.full(rows.shape[1], np.nan)
    return sums


def bounds(
    value: float, error: float, bias: float, q: float, level: float | None
) -> tuple[float, float]:
    """The bounds of a number: q errors around the value minus its bias, and at least to the value.

    Parameters
    ----------
    level : of a fraction, for bounds on the logit scale and near 0 and 1; None for other numbers
    """
    if level is None:
        return min(value, value - bias - q * error), max(value, value - bias + q * error)
    low, high = logit_interval(value, error, bias, q)
    lowest, highest = edge_interval(min(max(value, 0.0), 1.0), error, level)
    return min(low, lowest), max(high, highest)
