"""Intervals and ties as tables."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from detmap.output.table import Cell, Table
from detmap.statistics.comparison import SHOWN, Comparison, Pair
from detmap.statistics.intervals import Interval, Intervals
from detmap.statistics.ties import Tied

HEADER = ("value", "SE", "low", "high", "bias")
MARK, OUTSIDE = "*", "+"
MDD = "the least true difference that this test would see four times out of five"


def metric_tables(made: Intervals, per_class: bool) -> list[Table]:
    """The intervals of the metrics, and on demand those of the classes."""
    promise = f"{100 * made.level:g} % intervals, {made.units.n:,} {made.units.noun}"
    tables = [
        Table(
            f"{promise}: {_how(made)}",
            ("metric", *HEADER),
            tuple((_marked(name, one), *_cells(one)) for name, one in made.metrics.items()),
            _reasons(made.metrics),
            name="intervals",
        )
    ]
    if per_class:
        rows = {(name, row): one for name, of in made.per_class.items() for row, one in of.items()}
        tables.append(
            Table(
                f"{promise}, a class",
                ("class", "metric", *HEADER),
                tuple((name, _marked(row, one), *_cells(one)) for (name, row), one in rows.items()),
                _reasons(rows),
                name="class-intervals",
            )
        )
    return tables


def tie_table(tied: Mapping[str, Tied], orders: int) -> Table:
    """What the order of equal scores does to each metric."""
    outer = any(not one.attained for one in tied.values())
    lines = (f"{MARK} outer bounds: no order was found that gives them",) if outer else ()
    return Table(
        f"over all orders of equal scores; mean and spread over {orders} random ones",
        ("metric", "value", "low", "high", "expected", "mean", "SD"),
        tuple(
            (
                name if one.attained else name + MARK,
                one.value,
                one.low,
                one.high,
                one.expected,
                one.mean,
                one.sd,
            )
            for name, one in tied.items()
        ),
        lines,
        name="ties",
    )


def _how(made: Intervals) -> str:
    if made.method == "percentile":
        return (
            f"percentile bootstrap, {made.replicates} replicates; for comparison with papers: it "
            "held 36 to 94 % where 95 are promised"
        )
    return "influence functions, less the bias that halves of the sample show"


def _cells(one: Interval) -> tuple[float, ...]:
    return one.value, one.se, one.low, one.high, one.bias


def _marked(name: str, one: Interval | Pair) -> str:
    return name + MARK * bool(one.why_not) + OUTSIDE * one.outside


def _reasons(intervals: Mapping[Any, Interval] | Mapping[Any, Pair]) -> tuple[str, ...]:
    """Why some have none: the first reason, and how many more there are; and that values are
    outside of theirs.
    """
    lines = []
    if any(one.outside for one in intervals.values()):
        lines.append(f"{OUTSIDE} outside of its interval, which is corrected for the bias")
    reasons = [one.why_not for one in intervals.values() if one.why_not]
    if not reasons:
        return tuple(lines)
    more = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
    return (*lines, f"{MARK} no interval: {reasons[0]}{more}")


def comparison_tables(comparison: Comparison) -> list[Table]:
    """The leaderboard, the pairs, the classes and the images that moved most."""
    tables = []
    several = len(comparison.names) > 2
    metric = comparison.pairs[0].metric
    level = f"{100 * (1 - comparison.alpha):g} %"
    letters = any(letters for *_, letters in comparison.leaderboard)
    tables.append(
        Table(
            f"leaderboard by {metric}, {comparison.units.n:,} {comparison.units.noun}",
            ("detector", metric, "group"),
            comparison.leaderboard,
            ("who shares a letter cannot be told apart",) if letters else (),
            name="leaderboard",
        )
    )
    names = ("a", "b") if several else ()
    by_z = comparison.test == "z"
    p = "p" if by_z else f"p ({comparison.test})"
    header = ("difference", "SE", "low", "high", p, "adjusted p", "MDD")
    basis = (
        "low, high and p: of each row by itself, less its bias; adjusted p: of all together"
        if by_z
        else "low, high: by z, less the bias; p: by exchanging images, of the difference as it is"
    )
    rows = tuple(
        (*((one.a, one.b) if several else ()), _marked(one.metric, one), *_differences(one))
        for one in comparison.pairs
    )
    title = (
        f"{comparison.names[1]} less {comparison.names[0]}"
        if not several
        else "all pairs, b less a"
    )
    tables.append(
        Table(
            f"{title}: {level} intervals, test {comparison.test}, adjusted by {comparison.adjust}",
            (*names, "metric", *header),
            rows,
            (
                *(("MDD: " + MDD,) if any(one.mdd >= 0 for one in comparison.pairs) else ()),
                basis,
                *_needed(comparison),
                *_reasons({(one.a, one.b, one.metric): one for one in comparison.pairs}),
            ),
            name="pairs",
        )
    )
    moved = [one for one in comparison.classes if one.difference != 0][:SHOWN]
    tables.append(
        Table(
            f"classes that moved most, adjusted by {comparison.adjust}",
            (*names, "class", "metric", *header),
            tuple(
                (
                    *((one.a, one.b) if several else ()),
                    one.name,
                    _marked(one.metric, one),
                    *_differences(one),
                )
                for one in moved
            ),
            (basis, *_reasons({(one.a, one.b, one.name, one.metric): one for one in moved})),
            name="classes",
        )
    )
    noun = comparison.units.noun
    tables.append(
        Table(
            f"{noun} that moved {metric} most: what the difference owes to each",
            (*names, noun[:-1], "change"),
            tuple(
                (*((a, b) if several else ()), unit, change)
                for a, b, unit, change in comparison.images
            ),
            (comparison.signature,),
            name=noun,
        )
    )
    return tables


def _differences(one: Pair) -> tuple[Cell, ...]:
    p, adjusted = (None if math.isnan(p) else f"{p:.4f}" for p in (one.p, one.p_adjusted))
    return one.difference, one.se, one.low, one.high, p, adjusted, one.mdd


def _needed(comparison: Comparison) -> tuple[str, ...]:
    """For how many images half of what can be seen would show."""
    first = comparison.pairs[0]
    if not first.mdd > 0:
        return ()
    points = [0.1, 0.2, 0.5, 1.0, 2.0]
    shown = [x for x in points if x / 100 < first.mdd][-1:] or points[:1]
    n = comparison.images_needed(first, shown[0] / 100)
    return (f"a difference of {shown[0]:g} points in {first.metric} would show on {n:,} images",)
