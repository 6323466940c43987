"""Reasons why a number has no interval: one table, and the rules that choose from it."""

import math
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.core.statistics.sampling_units import Units
from detmap.errors import counted

LEAST_UNITS = 50  # of any interval: with fewer, the bias is as large as the number
LEAST_OF_TEST = 100  # of a p-value
LEAST_OF_CLASS = 21  # with an object of a single class
MOST_LACKING = 0.03  # largest share of a mean in classes that another sample would lack
MOST_VARYING = 0.04  # largest standard deviation of that share
LEAST_STEPS = 4  # of AP by evenly spaced points of recall, up to 1
LEAST_MISSED = 5  # of units, by the best F1 of a single class
LEAST_GAIN = 0.002  # of AP by fixing a kind of error
LEAST_EVEN = 0.5  # of the objects on the units, under a detection limit; 1 / sqrt(n) is added
WIDEST = 0.5  # of an interval: its scale is no longer straight
MARK = "*"  # of a row without an interval
ROUNDING = 1e-12  # of a fraction; a standard error below it is 0: a lost object changes more

REASONS = {
    "undefined": "no objects or no detections",
    "one unit": "fewer than two {noun}",
    "few units": f"fewer than {LEAST_UNITS} {{noun}}; more {{noun}} would help",
    "class": "a single class on {on}: coverage is too low below {least}; more {noun} of it would "
    "help",
    "cases": "cases on {on}: coverage is too low below {least}; more {noun} would help",
    "lacking": "{rare} of {k} classes are on 1 to 3 {noun}: a sample like this lacks {lacking:.1%} "
    "of the mean, plus or minus {varying:.1%}; more {noun} would help, or the mean of a group of "
    "classes that are on more",
    "points": "a single class by a rule of few recall points: coverage is too low; the all-point "
    "rule has intervals: {option}=all_points",
    "own points": "a single class by a rule of few recall points: coverage is too low",
    "steps": "nearly perfect: AP moves in steps of {step:.3f}, as the points of recall, and the "
    "true value may be on either side of one; the all-point rule has intervals: "
    "{option}=all_points",
    "missed": "the best F1 of a nearly perfect class: few {noun} decide, and intervals are too "
    "wide; more {noun} would help",
    "gain": "a gain below {least_gain:g} points: intervals are too wide",
    "search": "the score of the best F1 differs between samples, and precision and recall with it: "
    "coverage is too low; F1 has an interval, and precision and recall at a given score",
    "deviations": "absolute deviations of bins with few detections: coverage is too low; ECE has "
    "an interval",
    "uneven": "few {noun} have many of the objects, and the limit of {limit} detections is near: "
    "coverage is too low; recall at a higher limit has an interval",
    "subsets": "undefined on {n} of {of} subsets of the {noun}; more {noun} would help",
    "no spread": "all {noun} agree: the standard error is 0",
    "wide": "the interval would be {low:.2f} to {high:.2f}; more {noun} would help",
}
"""A sentence for each reason, in the order in which they are checked."""


def reason(key: str, units: Units, **numbers: Any) -> str:
    """The sentence of a reason; ``m`` is a number of units, ``option`` changes the AP
    interpolation.
    """
    on = units.counted(int(numbers.get("m", 0)))
    numbers |= {"least": LEAST_OF_CLASS, "least_gain": 100 * LEAST_GAIN}
    return REASONS[key].format(noun=units.noun, on=on, **numbers)


def refuse_class(m: int, units: Units, key: str = "class") -> str:
    """Why a number with cases on m units, of a single class, has no interval; "" if it has one."""
    if units.n < LEAST_UNITS:
        return reason("few units", units)
    return reason(key, units, m=m) if m < LEAST_OF_CLASS else ""


def refuse_uneven(even: float, limit: int, units: Units) -> str:
    """Why recall at a detection limit has no interval; "" if it has one.

    Parameters
    ----------
    even : evenness of the objects on the units, from 0 to 1, mean of the classes
    """
    enough = even >= LEAST_EVEN + 1 / math.sqrt(units.n)
    return "" if enough else reason("uneven", units, limit=limit)


def refuse_mean(shares: NDArray[np.float64], m: NDArray[np.int64], units: Units) -> str:
    """Why a mean over classes has no interval; "" if it has one.

    Parameters
    ----------
    shares : (K,) weight of each class in the mean
    m : (K,) units with an object of each class; classes without any are not in the mean
    """
    if units.n < LEAST_UNITS:
        return reason("few units", units)
    there = (m > 0) & (shares > 0)
    if not there.any():
        return ""
    share = shares[there] / shares[there].sum()
    lost = (1 - m[there] / units.n) ** units.n  # probability that a sample lacks the class
    lacking, varying = float((share * lost).sum()), float(np.sqrt((share**2 * lost).sum()))
    if lacking <= MOST_LACKING and varying <= MOST_VARYING:
        return ""
    rare, k = int((m[there] <= 3).sum()), int(there.sum())
    return reason("lacking", units, rare=rare, k=k, lacking=lacking, varying=varying)


def footnotes(numbers: Iterable[Any]) -> Iterator[str]:
    """A footnote of a table: the reason of the first row without an interval, and how many more
    rows have none, for this or another reason.
    """
    reasons = [one.why_not for one in numbers if one.why_not]
    if reasons:
        more = f" (and {counted(len(reasons) - 1, 'more row')})" if len(reasons) > 1 else ""
        yield f"{MARK} no interval: {reasons[0]}{more}"
