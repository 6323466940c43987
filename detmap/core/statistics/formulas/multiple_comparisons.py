"""Multiple comparisons: adjusted p-values, and groups without significant differences."""

from collections.abc import Sequence

import numpy as np

ADJUSTMENTS = ("holm", "bh", "none")


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
