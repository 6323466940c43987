"""Effect of tied scores on a result. Benchmarks define no order for tied scores, and each order can
give another value: random orders are evaluated, and the lowest and highest value is printed.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.core.curves import aggregation
from detmap.core.curves import scores as curves
from detmap.core.curves.scores import Scores
from detmap.core.matching import engine
from detmap.core.matching.matches import Matches
from detmap.core.output.cell_text import or_none
from detmap.core.output.table import Table
from detmap.core.statistics.random_words import TIES, random_words
from detmap.core.tables import Detections, Note, Truth, selection
from detmap.core.tables.grouping import labels, runs
from detmap.errors import DetmapError
from detmap.kernels.curves import Ranked

Tables = tuple[Truth, Detections]

ORDERS = 100
MOST_TERMS, ORDERS_OF_MANY = 1_000_000_000, 10
"""Terms of AP (areas x thresholds x recall points x classes) in all random orders, about 10 s of
processor time, and the orders that are evaluated even so. Over thousands of classes the mean of an
order varies little.
"""
MOST_ROWS = 10_000_000  # match rows in all random orders, and `ORDERS_OF_MANY` even so
NOTE_ROWS = 200_000  # match rows up to which another order is evaluated for a note
DIGITS = 4  # in tables


@dataclass(frozen=True, slots=True)
class Tied:
    """A metric over random orders of tied scores, as fractions.

    Parameters
    ----------
    value : in the protocol's own order
    low, high : the lowest and highest value of these orders and of the protocol's own
    mean, sd : mean and standard deviation over the random orders
    orders : number of random orders
    """

    value: float
    low: float
    high: float
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


def ties(
    matches: Matches,
    scores: Scores,
    tables: Tables | None = None,
    *,
    orders: int = ORDERS,
    seed: int = 0,
    threads: int | None = None,
) -> dict[str, Tied]:
    """Computes the range, mean and deviation of every metric over random orders of tied scores.

    Parameters
    ----------
    matches, scores : of a result
    tables : the input of the matching. Without it, only the order of different images varies
    orders : number of random orders; fewer, at least `ORDERS_OF_MANY`, of many rows or classes
    seed : of the random numbers
    threads : number of threads; results do not depend on it

    Raises
    ------
    ProtocolError : tied scores have no order under the protocol
    """
    matches.protocol.require("order of ties")
    size = max(1, math.prod(scores.terms.shape))
    most = min(MOST_TERMS // size, MOST_ROWS // max(1, len(matches)))
    n = min(orders, max(ORDERS_OF_MANY, most))
    names, value, drawn = evaluated(matches, scores, tables, n, seed, threads)
    every = np.vstack([value, drawn])
    nothing = np.full(len(names), math.nan)
    low, high = every.min(axis=0), every.max(axis=0)  # NaN where any is undefined
    mean = np.clip(drawn.mean(axis=0), low, high) if n else nothing  # the sum may round beyond
    sd = drawn.std(axis=0, ddof=1) if n > 1 else nothing
    sd = np.where(low == high, 0.0 * sd, sd)
    columns = zip(value, low, high, mean, sd, strict=True)
    rows = zip(names, np.array(list(columns)).tolist(), strict=True)
    return {name: Tied(own, a, b, m, s, n) for name, (own, a, b, m, s) in rows}


def tie_table(tied: Mapping[str, Tied]) -> Table:
    """Table of the metrics over random orders of tied scores."""
    orders = max((one.orders for one in tied.values()), default=0)
    return Table(
        f"in {orders} random orders of tied scores, and as evaluated",
        ("metric", "value", "lowest", "highest", "mean", "SD"),
        tuple((name, one.value, one.low, one.high, one.mean, one.sd) for name, one in tied.items()),
        name="ties",
    )


def note(matches: Matches, scores: Scores, threads: int | None = None) -> list[Note]:
    """Returns a note if the opposite order of images changes a printed digit where scores tie.

    It needs no tables: the note is the same for an evaluation, a merge and a stream. `Result.ties`
    looks at random orders, also inside images. There is no note for more than `NOTE_ROWS` rows,
    where it would take as long as a part of the evaluation.
    """
    if len(matches) > NOTE_ROWS or not matches.protocol.supports("note on ties"):
        return []
    groups = _Groups(matches)
    if not len(groups.tied):
        return []
    try:
        other = curves.scores(matches, rows=groups.opposite_order(), threads=threads)
    except DetmapError:  # not enough memory
        return []
    changes = []
    values = zip(_metrics(matches, scores), _metrics(matches, other), strict=True)
    for row, both in zip(matches.protocol.rows()[0], values, strict=True):
        old, new = (f"{value:.{DIGITS}f}" for value in both)
        if old != new:
            changes.append(f"{row.name} {new} instead of {old}")
    if not changes:
        return []
    shown = ", ".join(changes[:3]) + (" ..." if len(changes) > 3 else "")
    verb = "metric differs" if len(changes) == 1 else "metrics differ"
    text = f"{verb} with tied scores in the opposite order of images: {shown} (see --ties)"
    return [Note("ties-show", text, len(changes))]


def evaluated(
    matches: Matches,
    scores: Scores,
    tables: Tables | None,
    n: int,
    seed: int,
    threads: int | None = None,
) -> tuple[list[str], NDArray[np.float64], NDArray[np.float64]]:
    """Returns names (Q,) and values (Q,) of the metrics, and those of random orders (n, Q)."""
    value = _metrics(matches, scores)
    images = None if tables is None else _Images(matches, tables, threads)
    drawn = []
    again = images if images is not None and len(images.ids) else None
    groups = _Groups(matches)
    for b in range(n):
        if again is not None:
            groups = _Groups(again.matched(seed, b))
        elif not len(groups.tied):
            drawn = [value] * n
            break
        listed = groups.random_order(seed, b)
        other = curves.scores(groups.matches, rows=listed, threads=threads)
        drawn.append(_metrics(matches, other))
    names = [row.name for row in matches.protocol.rows()[0]]
    return names, np.array(value), np.array(drawn).reshape(n, len(names))


def _metrics(matches: Matches, scores: Scores) -> list[float]:
    """The values of all metrics."""
    protocol, categories = matches.protocol, matches.categories
    return [aggregation.mean(scores, row, protocol, categories) for row in protocol.rows()[0]]


class _Images:
    """Images in which the order of tied scores may matter; they are matched in other orders.

    Parameters
    ----------
    matches : as evaluated
    tables : truth and detections
    threads : number of threads
    """

    def __init__(self, matches: Matches, tables: Tables, threads: int | None) -> None:
        truth, detections = tables
        self.protocol, self.threads = matches.protocol, threads
        unit = self._units(detections)
        tied = _tied(unit, detections.score)
        if self._by_class() and not matches.beyond.any():  # without an object all are false
            tied &= np.isin(unit, self._units(truth))
        self.ids = truth.images.ids[np.unique(detections.image[tied])]
        if not len(self.ids):
            return
        self.truth, self.detections = selection.part(truth, detections, self.ids, None)
        others = truth.images.ids[~np.isin(truth.images.ids, self.ids)]
        self.rest = matches.select(others) if len(others) else None
        self.unit = self._units(self.detections)
        self.places = np.lexsort((self.detections.score, self.unit))

    def _by_class(self) -> bool:
        """Whether the order matters within a class; else tied scores of other classes count too."""
        return self.protocol.limits.scope == "class"

    def _units(self, table: Truth | Detections) -> NDArray[np.int64]:
        """(n,) number of each row's image, or image and class."""
        unit = table.image.astype(np.int64)
        return unit + self._by_class() * table.label.astype(np.int64) * len(table.images)

    def matched(self, seed: int, b: int) -> Matches:
        """Returns the matches with the detections of these images in random order b."""
        key = random_words(seed, TIES, 2 * b + 1, (1, len(self.unit)))[0]
        order = np.empty(len(key), dtype=np.int64)
        order[self.places] = np.lexsort((key, self.detections.score, self.unit))
        shuffled = self.detections.take(order)
        part = engine.match(self.truth, shuffled, self.protocol, threads=self.threads)
        return part if self.rest is None else self.rest.merge(part)


def _tied(unit: NDArray[np.int64], score: NDArray[np.float64]) -> NDArray[np.bool_]:
    """(n,) whether another row of the unit has the same score."""
    order = np.lexsort((score, unit))
    sizes = np.diff(runs(unit[order], score[order]))
    tied = np.empty(len(order), dtype=bool)
    tied[order] = np.repeat(sizes > 1, sizes)
    return tied


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

        cell = self.number[self.tied] * matches.n_images + matches.image[self.tied]
        listed = np.argsort(cell, kind="stable")
        same = np.zeros(len(listed) + 1, dtype=bool)  # as the row before
        same[1:-1] = cell[listed][1:] == cell[listed][:-1]
        self.several = listed[same[1:] | same[:-1]]  # places of rows that share image and group
        self.block = cell[self.several]

    def random_order(self, seed: int, b: int) -> Ranked:
        """Returns random order b of the rows of each group; those of an image stay in order."""
        key = random_words(seed, TIES, 2 * b, (1, len(self.tied)))[0] >> np.uint64(32)
        key[self.several] = key[self.several[np.lexsort((key[self.several], self.block))]]
        return self._ordered(self.number[self.tied].astype(np.uint64) << np.uint64(32) | key)

    def opposite_order(self) -> Ranked:
        """Returns the rows of each group by descending image; those of an image stay in order."""
        n = self.matches.n_images
        return self._ordered(self.number[self.tied] * n - self.matches.image[self.tied])

    def _ordered(self, key: NDArray[Any]) -> Ranked:
        """The rows with the tied ones by ascending key."""
        own, rows = self.matches, self.tied
        order = np.arange(len(own))
        order[rows] = rows[np.argsort(key, kind="stable")]
        return Ranked(
            own.off,
            np.ascontiguousarray(own.tp[order]),
            np.ascontiguousarray(own.ignored[order]),
            np.ascontiguousarray(own.rank[order]),
        )
