"""Search for the best and worst orders of tied scores, if their order inside an image matters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.core.curves import scores as curves
from detmap.core.curves.equal_scores import Orders
from detmap.core.curves.scores import Scores
from detmap.core.protocol.metric_rows import MetricRow
from detmap.core.statistics.replicates import TIES, random_words
from detmap.core.tables.grouping import sort_groups
from detmap.kernels.curves import Ranked

TRIED = 16  # random orders; the best and worst per component are combined
MOST_PAIRS = 50_000_000  # matched in random orders: crowds of tied boxes get fewer of them
Metrics = Callable[[Scores], list[float]]


def searched(
    orders: Orders,
    rows: Sequence[MetricRow],
    metrics: Metrics,
    n_random: int,
    seed: int,
    threads: int | None,
) -> tuple[list[list[float]], list[list[float]]]:
    """The metrics of random orders, fewer if many pairs are to be matched, and of two orders built
    per row: the best and the worst of some orders in each component, with the true positives of
    the images first, or last.
    """

    def ordered(listed: Ranked) -> list[float]:
        return metrics(curves.scores(orders.whole, rows=listed, threads=threads))

    ordered_once = Once(ordered)
    n_random = min(n_random, max(TRIED, MOST_PAIRS // max(1, len(orders.row))))
    drawn, kept = [], []
    for b in range(max(n_random, TRIED)):
        key = random_words(seed, TIES, b, (1, len(orders.groups.number)))[0]
        ranked, verdicts = orders.judged(key)
        if b < n_random:
            drawn.append(ordered_once(ranked))
        if b < TRIED:
            kept.append((key, _take(verdicts, orders.components.row)))
    directed, seen = [], set()
    for row in rows:
        if (row.subset, row.iou) in seen:
            continue
        seen.add((row.subset, row.iou))
        for best in (True, False):
            key = _combined(orders, row, kept, best)
            for _ in range(2):
                ranked, verdicts = orders.judged(key)
                directed.append(ordered_once(ranked))
                key = _verdict_key(orders, row, key, verdicts, best)
            ranked, verdicts = orders.judged(key)
            directed.append(ordered_once(ranked))
    return drawn, directed


def _combined(
    orders: Orders, row: MetricRow, kept: list[tuple[NDArray[Any], Ranked]], best: bool
) -> NDArray[Any]:
    """Keys of the table: per component those of the order with the most, or fewest, true positives,
    early ones first.
    """
    parts, key = orders.components, kept[0][0].astype(np.float64)
    if not len(parts.row):
        return key
    sizes = np.diff(parts.off)
    left = (
        np.repeat(parts.off[1:], sizes)
        - parts.level[np.searchsorted(parts.level, np.arange(len(parts.row)), "right") - 1]
    )
    values = []
    for _, verdicts in kept:
        better = _value(orders, row, verdicts)
        values.append(np.add.reduceat(better * left, parts.off[:-1]))
    chosen = np.argmax(values, axis=0) if best else np.argmin(values, axis=0)
    position = orders.whole.position[parts.row]
    keys = np.stack([each[position].astype(np.float64) for each, _ in kept])
    key[position] = keys[np.repeat(chosen, sizes), np.arange(len(position))]
    return key


def _verdict_key(
    orders: Orders, row: MetricRow, key: NDArray[Any], verdicts: Ranked, best: bool
) -> NDArray[Any]:
    """Keys of the table by match result, then as before. For the worst order, the rows of a
    component keep their order: a false positive after a true positive could match its object if it
    came first.
    """
    whole, rows = orders.whole, orders.ordered
    better = _value(orders, row, _take(verdicts, rows))
    turn = np.zeros(len(whole))
    turn[rows] = -better if best else better
    if not best and len(orders.components.row):
        mine, level = orders.components.row, orders.components.level
        number = np.repeat(np.arange(len(level) - 1), np.diff(level))
        listed = mine[sort_groups(key[whole.position[mine]], level)]
        span = turn.max() - turn.min() + 1  # so that a running highest begins anew at each level
        turn[listed] = np.maximum.accumulate(turn[listed] + number * span) - number * span
    all_rows = np.array([0, len(rows)])
    rows = rows[sort_groups(key[whole.position[rows]], all_rows)]
    rows = rows[sort_groups(turn[rows] - turn.min(initial=0), all_rows)]
    new = np.zeros(len(key))
    new[whole.position[rows]] = np.arange(len(rows))
    return new


class Once:
    """Computes the metrics of an order, once for equal orders: many rows' best orders are equal."""

    def __init__(
        self,
        metrics: Callable[[Ranked], list[float]],
        known: dict[bytes, list[float]] | None = None,
    ) -> None:
        self.metrics, self.known = metrics, known or {}

    def __call__(self, listed: Ranked) -> list[float]:
        """The metrics of an order."""
        key = digest(listed)
        if key not in self.known:
            self.known[key] = self.metrics(listed)
        return self.known[key]


def digest(listed: Ranked) -> bytes:
    """Identifies an order by its match results and ranks."""
    made = blake2b()
    for column in listed[1:4]:
        made.update(column.ravel().data)
    return made.digest()


def _take(verdicts: Ranked, rows: NDArray[np.int64]) -> Ranked:
    """A copy of the match results of some rows."""
    return verdicts._replace(
        tp=verdicts.tp[rows], ignored=verdicts.ignored[rows], rank=verdicts.rank[rows]
    )


def _value(orders: Orders, row: MetricRow, verdicts: Ranked) -> NDArray[np.int64]:
    """(n,) rank of match results for a row: most true positives, fewest false positives."""
    protocol = orders.protocol
    a, n_thresholds = protocol.subset(row.subset), len(protocol.thresholds())
    word = verdicts.tp.dtype.type((1 << n_thresholds) - 1)
    if row.iou is not None:
        word = verdicts.tp.dtype.type(1 << protocol.threshold(row.iou, where=row.name))
    true, ignored = verdicts.tp[:, a] & word, verdicts.ignored[:, a] & word
    n = n_bits(np.full(1, word))[0]
    false = n - n_bits(true) - n_bits(ignored)
    value: NDArray[np.int64] = n_bits(true) * (n + 1) - false
    return value


def n_bits(words: NDArray[np.unsignedinteger[Any]]) -> NDArray[np.int64]:
    """(n,) number of set bits."""
    counts: NDArray[np.int64] = np.bitwise_count(words).astype(np.int64)
    return counts
