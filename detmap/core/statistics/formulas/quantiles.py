"""Quantiles of the beta and of Student's distribution, at any level and real degrees of freedom."""

import math
from functools import lru_cache


def two_sided_student(t: float, df: float) -> float:
    """Probability that a number of Student's distribution is at least as far from 0 as t."""
    return 2 * _upper_tail(abs(t), df)


@lru_cache(maxsize=4096)
def student(p: float, df: float) -> float:
    """The p-quantile of Student's t with `df` degrees of freedom, 1 or more; p in (0, 1).

    Source: Abramowitz and Stegun 26.7.1 and 26.7.5; solved by Newton's method from 0, which comes
    nearer from below in each step, because the density falls.
    """
    if p < 0.5:
        return -student(1 - p, df)
    t, step = 0.0, math.inf
    log_density = math.lgamma((df + 1) / 2) - math.lgamma(df / 2) - math.log(df * math.pi) / 2
    while step > 1e-15 * t:
        density = math.exp(log_density - (df + 1) / 2 * math.log1p(t * t / df))
        step = (_upper_tail(t, df) - (1 - p)) / density
        t += step
    return t


def _upper_tail(t: float, df: float) -> float:
    """Probability of a value above t, for t of at least 0."""
    return incomplete_beta(df / 2, 0.5, df / (df + t * t)) / 2


def exact_bounds(x: float, n: float, level: float) -> tuple[float, float]:
    """Clopper and Pearson's interval of a share, for x of n; both may be fractional.

    Source: Clopper and Pearson 1934, by the beta distribution.
    """
    tail = (1 - level) / 2
    return beta_quantile(tail, x, n - x + 1), beta_quantile(1 - tail, x + 1, n - x)


def beta_quantile(p: float, a: float, b: float) -> float:
    """The p-quantile of the beta distribution, by bisection to 2^-60; a and b are above 0."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        below = incomplete_beta(a, b, middle) < p
        low, high = (middle, high) if below else (low, middle)
    return (low + high) / 2


def incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularized incomplete beta function. Source: DLMF 8.17.22, by Lentz's method."""
    if x <= 0.0:
        return 0.0
    if x > (a + 1) / (a + b + 2):
        return 1.0 - incomplete_beta(b, a, 1.0 - x)
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    )
    c, d = 1.0, 1.0 / (1.0 - (a + b) * x / (a + 1))
    fraction = d
    for m in range(1, 100_000):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1.0 / (1.0 + term * d)
            c = 1.0 + term / c
            change = c * d
            fraction *= change
        if change == 1.0:
            break
    return front * fraction / a
