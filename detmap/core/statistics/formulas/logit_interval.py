"""Intervals of one fraction from its standard error: on the logit scale, and near 0 and 1."""

import math

from detmap.core.statistics.formulas.quantiles import exact_bounds

CLIP = 1e-3  # from 0 and 1, on the logit scale
FEW_MISSES = 10  # with fewer objects missed, or found, the logit interval is too narrow


def logit_interval(value: float, se: float, bias: float, q: float) -> tuple[float, float]:
    """The estimate minus its bias, plus and minus q standard errors on the logit scale. Where the
    estimate is clipped, the interval reaches to 0 or 1: else it could exclude a value near there.

    Source: Boyd, Eng and Page 2013.
    """
    center = min(max(value - bias, CLIP), 1 - CLIP)
    g = math.log(center / (1 - center))
    h = q * se / (center * (1 - center))
    low = 0.0 if value - bias < CLIP else expit(g - h)
    high = 1.0 if value - bias > 1 - CLIP else expit(g + h)
    return low, high


def edge_interval(value: float, se: float, level: float) -> tuple[float, float]:
    """Clopper and Pearson's interval of the effective number of objects, near 0 and 1; elsewhere
    the value alone. The standard error of a sample that happens to miss few objects is too low.

    Source: Korn and Graubard 1998, Survey Methodology 24(2), without their Student factor.
    """
    n = value * (1 - value) / se**2
    if not 0 < value < 1 or min(value, 1 - value) * n >= FEW_MISSES:
        return value, value
    return exact_bounds(value * n, n, level)


def expit(x: float) -> float:
    """From the logit scale to a fraction."""
    if x < 0:
        small = math.exp(max(x, -700.0))
        return small / (1 + small)
    return 1 / (1 + math.exp(-min(x, 700.0)))
