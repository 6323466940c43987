"""Multiple comparisons: adjusted p-values, and groups without significant differences."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from detmap.core.statistics.support import ROUNDING, same

ADJUSTMENTS = ("holm", "bh", "maxt", "none")


def holm(p: Sequence[float]) -> list[float]:
    """p-values adjusted for the family-wise error rate; NaN stays NaN and is not counted.

    Source: Holm 1979.
    """
    return _adjust_sorted(p, lambda place, m: m - place, rising=True)


def bh(p: Sequence[float]) -> list[float]:
    """p-values adjusted for the false discovery rate.

    Source: Benjamini and Hochberg 1995.
    """
    return _adjust_sorted(p, lambda place, m: m / (place + 1), rising=False)


def _adjust_sorted(p: Sequence[float], factor: object, rising: bool) -> list[float]:
    values = np.asarray(p, dtype=np.float64)
    adjusted = np.full(len(values), np.nan)
    order = np.argsort(values, kind="stable")[: int((~np.isnan(values)).sum())]
    m = len(order)
    scaled = [min(1.0, factor(place, m) * values[i]) for place, i in enumerate(order)]  # type: ignore[operator]
    if rising:
        adjusted[order] = np.maximum.accumulate(scaled) if m else []
    else:
        adjusted[order] = np.minimum.accumulate(scaled[::-1])[::-1] if m else []
    listed: list[float] = adjusted.tolist()
    return listed


def maxt(
    difference: NDArray[np.float64], se: NDArray[np.float64], draws: NDArray[np.float64]
) -> list[float]:
    """Step-down p-values from the maximum of all studentized differences in joint replicates.

    Parameters
    ----------
    difference, se : (m,); the p-value is 1 if both are 0 but for rounding
    draws : (B, m) the differences in the replicates; NaN is left out

    Source: Westfall and Young 1993, algorithm 2.8.
    """
    adjusted = np.full(len(difference), np.nan)
    adjusted[same(difference, se)] = 1.0
    usable = np.flatnonzero(se > ROUNDING)
    z = np.abs(difference[usable]) / se[usable]
    moved = np.abs(draws[:, usable] - difference[usable]) / se[usable]
    moved = np.where(np.isnan(moved), -np.inf, moved)
    order = np.argsort(-z, kind="stable")
    least = 0.0
    for place, i in enumerate(order):
        largest = moved[:, order[place:]].max(axis=1)
        p = (1 + int((largest >= z[i]).sum())) / (len(draws) + 1)
        least = max(least, p)
        adjusted[usable[i]] = least
    listed: list[float] = adjusted.tolist()
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
