"""Multiple comparisons: adjusted p-values, and groups without significant differences."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def holm(p: Sequence[float]) -> list[float]:
    """p-values adjusted for the family-wise error rate; NaN stays NaN and is not counted.

    Source: Holm 1979.
    """
    return _adjusted(p, lambda m: m - np.arange(m), np.maximum.accumulate)


def bh(p: Sequence[float]) -> list[float]:
    """p-values adjusted for the false discovery rate.

    Source: Benjamini and Hochberg 1995.
    """

    def least(scaled: Floats) -> Floats:  # of each and those after it
        return np.minimum.accumulate(scaled[::-1])[::-1]

    return _adjusted(p, lambda m: m / np.arange(1, m + 1), least)


def _adjusted(
    p: Sequence[float], factors: Callable[[int], NDArray[Any]], monotone: Callable[[Floats], Floats]
) -> list[float]:
    values = np.array(p, dtype=np.float64)
    order = np.argsort(values, kind="stable")[: int((~np.isnan(values)).sum())]
    values[order] = monotone(np.minimum(1.0, factors(len(order)) * values[order]))
    listed: list[float] = values.tolist()
    return listed


Adjustment = Callable[[Sequence[float]], list[float]]
ADJUSTMENTS: dict[str, Adjustment] = {"holm": holm, "bh": bh, "none": list}


def groups(n: int, apart: Iterable[tuple[int, int]]) -> list[list[int]]:
    """The maximal sets of detectors without a significant difference, by their first members; sets
    may overlap.

    Source: Piepho 2004, the insert-and-absorb algorithm.
    """
    found = {frozenset(range(n))}
    for pair in map(frozenset, apart):
        parts = {of - {i} for of in found for i in pair if pair <= of}
        found = {of for of in found if not pair <= of} | parts
        found = {of for of in found if not any(of < other for other in found)}
    return sorted(map(sorted, found))
