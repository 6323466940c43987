"""Effect of tied scores on a result. Benchmarks define no order for tied scores, and each order can
give another value.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.core.base.parallel import each_batch
from detmap.core.curves import aggregation
from detmap.core.curves import scores as curves
from detmap.core.curves.equal_scores import Tables
from detmap.core.curves.extremes import Setting
from detmap.core.curves.scores import Scores
from detmap.core.curves.tie_bounds import DIGITS, extremes, open_cells
from detmap.core.matching.matches import Matches
from detmap.core.output.cell_text import or_none
from detmap.core.statistics.replicates import TIES, random_words
from detmap.core.statistics.tie_search import Once, digest, n_bits, searched
from detmap.core.tables.grouping import labels
from detmap.kernels import curves as curve_kernels
from detmap.kernels.resampling import tied as kernels

ORDERS = 100
MOST_TERMS, ORDERS_OF_MANY = 1_000_000_000, 10
"""Terms of AP (areas x thresholds x recall points x classes) in all random orders, about 10 s of
processor time, and the orders that are evaluated even so. Over thousands of classes the mean of an
order varies little.
"""
SAME = 1e-12


@dataclass(frozen=True, slots=True)
class Tied:
    """A metric over all orders of tied scores, as fractions.

    Parameters
    ----------
    value : in the protocol's own order
    low, high : bounds that hold for every order
    attained : whether orders were found that give low and high; if not, they are outer bounds
    expected : the mean over all orders in closed form: only for the rule `step`, if the order
        inside an image has no effect; else NaN
    mean, sd : mean and standard deviation over random orders
    orders : number of random orders
    """

    value: float
    low: float
    high: float
    attained: bool
    expected: float
    mean: float
    sd: float
    orders: int = ORDERS

    @property
    def shows(self) -> bool:
        """Whether the order changes a printed digit."""
        return f"{self.low:.{DIGITS}f}" != f"{self.high:.{DIGITS}f}"

    def to_dict(self) -> dict[str, Any]:
        """Plain values; None if undefined."""
        return {key: or_none(value) for key, value in asdict(self).items()}


def _n_orders(scores: Scores, wanted: int) -> int:
    """The number of random orders of so many classes."""
    size: int = max(1, math.prod(scores.terms.shape))
    return min(wanted, max(ORDERS_OF_MANY, MOST_TERMS // size))


def ties(
    matches: Matches,
    scores: Scores,
    tables: Tables | None = None,
    *,
    orders: int = ORDERS,
    seed: int = 0,
    threads: int | None = None,
) -> dict[str, Tied]:
    """Compute bounds, expectation and spread of every metric over the orders of tied scores.

    Parameters
    ----------
    matches, scores : of a result
    tables : the input of the matching. Without it, bounds are wide where tied scores of one image
        overlap objects, and there are no random orders
    orders : number of random orders; at most `ORDERS_OF_MANY` of thousands of classes, and fewer
        (at least 16) if more than 500,000 pairs of tied detections and objects overlap
    seed : of the random numbers
    threads : number of threads; results do not depend on it
    """
    protocol, categories = matches.protocol, matches.categories
    rows, orders = protocol.rows()[0], _n_orders(scores, orders)

    def metrics(of: Scores) -> list[float]:
        return [aggregation.mean(of, row, protocol, categories) for row in rows]

    def ordered(listed: curve_kernels.Ranked) -> list[float]:
        return metrics(curves.scores(matches, rows=listed, threads=threads))

    cells = open_cells(matches, tables, threads)
    value, low, high = map(metrics, (scores, *extremes(matches, scores, cells, threads)))
    drawn: list[list[float]] = []
    if cells is None:
        groups = _Groups(matches)
        several = [row for row in rows if row.kind == "AP" and row.iou is None]
        once = Once(ordered, {digest(groups.own_order()): value})
        drawn = [once(groups.random_order(seed, b)) for b in range(orders)]
        found = [value, *drawn]
        found += [
            once(groups.match_order(protocol.subset(row.subset), worst))
            for row in several
            for worst in (True, False)
        ]
    elif cells.orders is None:
        found = [value]
    else:
        drawn, directed = searched(cells.orders, rows, metrics, orders, seed, threads)
        found = [value, *drawn, *directed]
    ends = np.array([low, high])
    near = np.isclose(np.array(found)[:, None], ends, rtol=0, atol=SAME, equal_nan=True)
    attained = near.any(axis=0).all(axis=0).tolist()
    if cells is None:  # an order reaches the bounds of a single curve, and recall does not change
        attained = [one or row.iou is not None for one, row in zip(attained, rows, strict=True)]
    expected = [math.nan] * len(rows)
    if protocol.ap.integrator == "step" and cells is None:
        by_step = metrics(_expected(matches, scores, threads))
        expected = [by_step[q] if row.kind == "AP" else value[q] for q, row in enumerate(rows)]
    mean, sd = _spread(np.array(drawn).reshape(len(drawn), len(rows)), ends)
    spread = mean.tolist(), sd.tolist(), [len(drawn)] * len(rows)
    columns = zip(value, low, high, attained, expected, *spread, strict=True)
    return {row.name: Tied(*one) for row, one in zip(rows, columns, strict=True)}


def _spread(
    drawn: NDArray[np.float64], ends: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The mean and standard deviation of the rows of (n, Q) metrics, whose bounds are (2, Q)."""
    nothing = np.full(drawn.shape[1], math.nan)
    mean = drawn.mean(axis=0) if len(drawn) else nothing
    mean = np.clip(mean, *ends)  # the sum may round beyond equal values
    sd = drawn.std(axis=0, ddof=1) if len(drawn) > 1 else nothing
    return mean, np.where(ends[0] == ends[1], 0.0 * sd, sd)


def _expected(matches: Matches, scores: Scores, threads: int | None) -> Scores:
    """The scores with the mean over all orders in every cell, for the rule `step`."""
    setting = Setting(matches, scores)
    terms = np.full(setting.shape, np.nan)

    def some(classes: NDArray[np.int32]) -> None:
        kernels.expect_step(
            classes,
            setting.ranked,
            matches.score,
            setting.positives,
            setting.rule,
            setting.place,
            terms,
        )

    each_batch(some, np.diff(matches.off), threads)
    return replace(scores, terms=np.ascontiguousarray(terms.transpose(1, 2, 3, 0)))


class _Groups:
    """The groups of tied scores of a class with unlike rows, and orders of their rows."""

    def __init__(self, matches: Matches) -> None:
        self.matches = matches
        label, score = labels(matches.off), matches.score
        begins = np.ones(len(score), dtype=bool)
        begins[1:] = (score[1:] != score[:-1]) | (label[1:] != label[:-1])
        self.number = np.cumsum(begins)
        ends = np.ones(len(score), dtype=bool)
        ends[:-1] = begins[1:]
        first = np.flatnonzero(begins)
        other = np.zeros(len(score), dtype=bool)  # than the first row of its group
        for column in (matches.tp, matches.ignored, matches.rank[:, None]):
            other |= (column != column[first[self.number - 1]]).any(axis=1)
        matters = np.bincount(self.number, weights=other) > 0
        self.tied = np.flatnonzero(~(begins & ends) & matters[self.number])

    def own_order(self) -> curve_kernels.Ranked:
        """The rows in the protocol's order."""
        return self._ordered_rows(np.zeros(len(self.tied)))

    def match_order(self, a: int, worst: bool) -> curve_kernels.Ranked:
        """The rows of each group by their number of thresholds with a true positive in an area,
        then by fewest with a false positive; most first, or last.
        """
        own, rows = self.matches, self.tied
        n_thresholds = len(own.protocol.thresholds())
        true = n_bits(own.tp[rows, a])
        false = n_thresholds - true - n_bits(own.ignored[rows, a])
        better = true * (n_thresholds + 1) - false
        return self._ordered_rows(better if worst else -better)

    def random_order(self, seed: int, b: int) -> curve_kernels.Ranked:
        """Random order b of the rows of each group."""
        keys = random_words(seed, TIES, b, (1, len(self.matches)))[0]
        return self._ordered_rows(keys[self.tied])

    def _ordered_rows(self, key: NDArray[Any]) -> curve_kernels.Ranked:
        own, rows = self.matches, self.tied
        order = np.arange(len(own))
        order[rows] = rows[np.lexsort((key, self.number[rows]))]
        return curve_kernels.Ranked(
            own.off,
            np.ascontiguousarray(own.tp[order]),
            np.ascontiguousarray(own.ignored[order]),
            np.ascontiguousarray(own.rank[order]),
        )
