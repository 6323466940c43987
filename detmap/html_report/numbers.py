"""Numbers as the page writes them: in points, each with what is known of its uncertainty."""

from __future__ import annotations

import math
from dataclasses import dataclass

from detmap.statistics.comparison import Pair
from detmap.statistics.intervals import Interval
from detmap.statistics.resampled_numbers import Difference, Sampled

NOTHING = "\N{EN DASH}"


@dataclass(frozen=True, slots=True)
class Number:
    """A number of a table.

    Parameters
    ----------
    text : as it is written
    under : its interval, or its standard error; "" for none
    """

    text: str
    under: str = ""

    def __str__(self) -> str:
        return f"{self.text} ({self.under})" if self.under else self.text


def points(value: float, digits: int = 2, *, sign: bool = False) -> str:
    """A fraction in points."""
    if math.isnan(value):
        return NOTHING
    rounded = round(100 * value, digits) + 0.0  # no -0.0
    return f"{rounded:+.{digits}f}" if sign else f"{rounded:.{digits}f}"


def known(value: float, interval: Interval | None) -> Number:
    """A fraction with its interval; where there is none, with its standard error."""
    if interval is None:
        return Number(points(value))
    return Number(points(value), under(interval))


def under(interval: Interval) -> str:
    """The interval in points, with the bias where that takes it off the value; the standard error
    where there is none.
    """
    if not math.isnan(interval.low):
        bias = f", bias {points(interval.bias, 1, sign=True)}" if interval.outside else ""
        return f"{points(interval.low, 1)} to {points(interval.high, 1)}{bias}"
    if interval.se > 0:
        return f"± {points(interval.se, 1)}"
    return ""


def interval_at(sampled: Sampled | None, q: int) -> Interval | None:
    """The interval of one number; None where nothing was drawn."""
    return None if sampled is None else sampled.intervals[q]


def moved(value: float, difference: Difference | Pair | None, *, adjusted: bool = False) -> Number:
    """B less A in points, with its interval and p-value where they are known; with its standard
    error where there is no interval. An `adjusted` p-value says so, as no interval is adjusted.
    """
    if difference is None or math.isnan(value):
        return Number(points(value, sign=True))
    parts = []
    if not math.isnan(difference.low):
        parts.append(
            f"{points(difference.low, 1, sign=True)} to {points(difference.high, 1, sign=True)}"
        )
    elif difference.se > 0:
        parts.append(f"± {points(difference.se, 1)}")
    if not math.isnan(difference.p):
        parts.append("adjusted " * adjusted + p_value(difference.p))
    return Number(points(value, sign=True), ", ".join(parts))


def p_value(p: float) -> str:
    """As papers print it."""
    return f"p {p:.2g}" if p >= 1e-4 else "p < 0.0001"
