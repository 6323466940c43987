"""The jackknife of docs/statistics.md with plain loops: errors, intervals and differences of one
number from its values on subsets.
"""

import math
from statistics import NormalDist

T24 = {0.95: 1.7108820799094284, 0.975: 2.0638985616280205}
"""Quantiles of Student's distribution with 24 degrees of freedom, from tables."""


def errors(
    whole: float, without: list[float], halves: list[float], rate: float
) -> tuple[float, float]:
    """Standard error and bias."""
    n = len(without)
    mean = math.fsum(without) / n
    se = math.sqrt((n - 1) / n * math.fsum((each - mean) ** 2 for each in without))
    return se, (math.fsum(halves) / len(halves) - whole) / (2**rate - 1)


def error_of_ap(se: float, bias: float, n_classes: int, step: float = 0.0) -> float:
    """The error of AP minus its bias."""
    of_bias = math.sqrt(0.01 + 1 / n_classes) * bias
    return math.sqrt((1.12 * se) ** 2 + of_bias**2 + step**2)


def error_of_difference(
    without: list[float], halves: list[float], bias: float, step: float = 0.0
) -> float:
    """The error of a difference minus half of its bias; halves of one split follow each other."""
    of_parts = errors(0.0, without, halves, 1.0)[0] ** 2
    pairs = [(halves[i], halves[i + 1]) for i in range(0, len(halves), 2)]
    of_halves = math.fsum((one - other) ** 2 for one, other in pairs) / (4 * len(pairs))
    means = [(one + other) / 2 for one, other in pairs]
    center = math.fsum(means) / len(means)
    twice = math.fsum((each - center) ** 2 for each in means) / (len(means) - 1)
    square = max(0.6 * of_parts + 0.4 * of_halves - twice, of_parts / 2)
    return math.sqrt(square + step**2 + bias**2)


def effective_units(counts: list[list[int]]) -> float:
    """1 / sum w^2 of the mean shares w of the units in the objects of each class; `counts` has a
    row per unit and a column per class.
    """
    totals = [sum(column) for column in zip(*counts, strict=True)]
    there = [k for k, n in enumerate(totals) if n]
    shares = [sum(row[k] / totals[k] for k in there) / len(there) for row in counts]
    return 1 / math.fsum(w * w for w in shares)


def logit_bounds(value: float, bias: float, error: float, q: float) -> tuple[float, float]:
    """Bounds on the logit scale, far from 0 and 1."""
    center = value - bias
    g, h = math.log(center / (1 - center)), q * error / (center * (1 - center))
    return 1 / (1 + math.exp(h - g)), 1 / (1 + math.exp(-h - g))


def detectable(error: float) -> float:
    """The minimum detectable difference at a level of 0.05."""
    return (T24[0.975] + NormalDist().inv_cdf(0.8)) * error
