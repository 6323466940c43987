"""Numbers as the page writes them: in points, each with what is known of its uncertainty."""

import math
from dataclasses import dataclass

from detmap.core.statistics.comparison import Pair
from detmap.core.statistics.estimates import Difference, Interval

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
    return f"{rounded:+.{digits}f}" if sign and rounded else f"{rounded:.{digits}f}"


def known(value: float, interval: Interval | None) -> Number:
    """A fraction with its interval; where there is none, with its standard error."""
    if interval is None:
        return Number(points(value))
    return Number(points(value, digits(interval)), under(interval))


def digits(known: Interval | Difference | Pair) -> int:
    """The decimals that a number deserves: two significant digits of half its interval, at most
    two decimals; those of its standard error where there is no interval.
    """
    half = known.se if math.isnan(known.low) else (known.high - known.low) / 2
    if not half > 0:
        return 2 if math.isnan(half) else 1
    return min(2, max(0, 1 - math.floor(math.log10(100 * half))))


def under(interval: Interval) -> str:
    """The interval in points; the standard error where there is none."""
    return between(interval, digits(interval))


def moved(value: float, difference: Difference | Pair | None) -> Number:
    """B - A in points, with its interval and p-value where they are known; with its standard error
    where there is no interval. Interval and p-value are of the same test, not adjusted.
    """
    if difference is None or math.isnan(value):
        return Number(points(value, sign=True))
    n = digits(difference)
    parts = [between(difference, n, sign=True)]
    if not math.isnan(difference.p):
        parts.append(p_value(difference.p))
    return Number(points(value, n, sign=True), ", ".join(part for part in parts if part))


def between(known: Interval | Difference | Pair, n: int, *, sign: bool = False) -> str:
    """An interval in points with n digits; the standard error where there is none; "" for none."""
    if math.isnan(known.low):
        return f"± {points(known.se, n)}" if known.se > 0 else ""
    return f"{points(known.low, n, sign=sign)} to {points(known.high, n, sign=sign)}"


def p_value(p: float) -> str:
    """As papers print it."""
    return f"p {p:.2g}" if p >= 1e-4 else "p < 0.0001"
