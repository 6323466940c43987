"""Permutation test of two detectors: exchanges their detections image by image.

Each permutation divides the difference by its standard error. Without this, the null hypothesis
would be exchangeability, not equal AP: detectors with different score scales are not exchangeable.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from detmap.core.base.parallel import map_ordered
from detmap.core.statistics import replicates as drawing
from detmap.core.statistics.class_terms import Plan
from detmap.core.statistics.influence import influence, variance
from detmap.core.statistics.sampling_units import Units
from detmap.core.tables.grouping import labels, offsets
from detmap.kernels import curves as curve_kernels


class Exchange:
    """The rows of two detectors in one ranking, the source of the exchanged detectors."""

    def __init__(self, first: Plan, second: Plan) -> None:
        self.first, self.n_images = first, first.matches.n_images
        both = (first.matches, second.matches)
        score = np.concatenate([own.score for own in both])
        image = np.concatenate([own.image for own in both])
        label = np.concatenate([labels(own.off) for own in both])
        is_second = np.repeat([False, True], [len(own) for own in both])
        rank = np.concatenate([own.rank for own in both])
        order = np.lexsort((is_second, rank, image, -score, label))
        self.image, self.label, self.is_second = image[order], label[order], is_second[order]
        self.columns = (
            np.concatenate([own.tp for own in both])[order],
            np.concatenate([own.ignored for own in both])[order],
            rank[order],
        )
        # An image is two, one of each detector: an exchange gives one of them the weight 1.
        ranked = curve_kernels.Ranked(offsets(self.label, len(first.positives)), *self.columns)
        twice = np.where(self.is_second, self.image + self.n_images, self.image).astype(np.int32)
        merged = replace(first, ranked=ranked, image=twice)
        self.metrics = drawing.metrics_of_rows(merged, 2 * self.n_images)

    def exchanged(self, swapped: NDArray[np.bool_]) -> tuple[Plan, Plan]:
        """The two detectors with the images in `swapped` (I,) exchanged."""
        of_second = self.is_second ^ swapped[self.image]
        return self._take(~of_second), self._take(of_second)

    def _take(self, rows: NDArray[np.bool_]) -> Plan:
        off = offsets(self.label[rows], len(self.first.positives))
        columns = (np.ascontiguousarray(column[rows]) for column in self.columns)
        ranked = curve_kernels.Ranked(off, *columns)
        return replace(self.first, ranked=ranked, image=np.ascontiguousarray(self.image[rows]))

    def values(self, swapped: NDArray[np.bool_]) -> NDArray[np.float64]:
        """(2, n, Q) the metrics of both detectors after each of n exchanges (n, I)."""
        n = len(swapped)
        values = np.empty((2, n, len(self.first.metrics)))
        for begin in range(0, n, drawing.LANES):
            some = swapped[begin : begin + drawing.LANES]
            lanes = np.zeros((drawing.LANES, self.n_images), bool)
            lanes[: len(some)] = some
            for side in (0, 1):
                own = lanes if side else ~lanes
                weights = np.concatenate([own, ~own], axis=1).astype(np.float64)
                numbers = self.metrics(np.ascontiguousarray(weights.T))
                values[side, begin : begin + len(some)] = numbers[: len(some)]
        return values


def p_values(
    first: Plan,
    second: Plan,
    units: Units,
    difference: NDArray[np.float64],
    n: int,
    seed: int,
    *,
    studentised: bool = True,
    threads: int | None = None,
    progress: drawing.Progress = drawing.silent,
) -> list[float]:
    """The p-value of every metric from n random exchanges of the units.

    Source: Chung and Romano 2013.
    """
    exchange = Exchange(first, second)

    def ratio(own: Plan, other: Plan, apart: NDArray[np.float64]) -> NDArray[np.float64]:
        if not studentised:
            return np.abs(apart)
        a, b = (influence(each, units, 1).corrected for each in (own, other))
        se = np.sqrt([variance(row) for row in b - a])
        return np.divide(np.abs(apart), se, out=np.zeros_like(se), where=se > 0)

    observed = ratio(first, second, difference)

    def batch(begin: int) -> NDArray[np.int64]:
        several = range(begin, min(begin + drawing.LANES, n))
        swapped = np.array([drawing.swaps(seed, b, units.n)[units.of_image] for b in several])
        values = exchange.values(swapped)
        beyond = np.zeros(len(observed), np.int64)
        for i, bits in enumerate(swapped):
            apart = values[1, i] - values[0, i]
            plans = exchange.exchanged(bits) if studentised else (first, second)
            beyond += ratio(*plans, apart) >= observed * (1 - 1e-12)
        progress(several.stop, n)
        return beyond

    total = np.zeros(len(observed), np.int64)
    for beyond in map_ordered(batch, range(0, n, drawing.LANES), threads):
        total += beyond
    return [
        math.nan if math.isnan(d) else (1 + int(count)) / (n + 1)
        for d, count in zip(difference, total, strict=True)
    ]
