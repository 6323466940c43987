"""Multiple comparisons: adjusted p-values, and groups without significant differences."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

ADJUSTMENTS = ("holm", "bh", "none")
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


def groups(n: int, apart: set[tuple[int, int]]) -> list[list[int]]:
    """The maximal sets of detectors without a significant difference, by their first members; sets
    may overlap.

    Source: Bron and Kerbosch 1973, algorithm 457.
    """
    near = {
        i: {j for j in range(n) if j != i and (min(i, j), max(i, j)) not in apart} for i in range(n)
    }
    clusters: list[list[int]] = []

    def extend(chosen: list[int], open_: set[int], done: set[int]) -> None:
        if not open_ and not done:
            clusters.append(sorted(chosen))
        for i in sorted(open_):
            extend([*chosen, i], open_ & near[i], done & near[i])
            open_ = open_ - {i}
            done = done | {i}

    extend([], set(range(n)), set())
    return sorted(clusters)
