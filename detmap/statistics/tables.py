"""Intervals and ties as tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from detmap.report.table import Table
from detmap.statistics.intervals import Interval, Intervals
from detmap.statistics.ties import Tied

HEADER = ("value", "SE", "low", "high", "bias")
MARK = "*"


def of_intervals(made: Intervals, per_class: bool) -> list[Table]:
    """The intervals of the metrics, and on demand those of the classes."""
    promise = f"{100 * made.level:g} % intervals, {made.units.n:,} {made.units.noun}"
    found = [
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
        found.append(
            Table(
                f"{promise}, a class",
                ("class", "metric", *HEADER),
                tuple((name, _marked(row, one), *_cells(one)) for (name, row), one in rows.items()),
                _reasons(rows),
                name="class-intervals",
            )
        )
    return found


def of_ties(found: Mapping[str, Tied], orders: int) -> Table:
    """What the order of equal scores does to each metric."""
    outer = any(not one.attained for one in found.values())
    lines = (f"{MARK} outer bounds: no single order gives them",) if outer else ()
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
            for name, one in found.items()
        ),
        lines,
        name="ties",
    )


def _how(made: Intervals) -> str:
    if made.method == "percentile":
        return (
            f"percentile bootstrap, {made.replicates} replicates; for comparison with papers: it "
            "held 44 to 91 % where 95 are promised"
        )
    return f"influence functions, bias by {made.replicates} replicates"


def _cells(one: Interval) -> tuple[float, ...]:
    return one.value, one.se, one.low, one.high, one.bias


def _marked(name: str, one: Interval) -> str:
    return name + MARK if one.why_not else name


def _reasons(intervals: Mapping[Any, Interval]) -> tuple[str, ...]:
    """Why some have none: the first reason, and how many more there are."""
    reasons = [one.why_not for one in intervals.values() if one.why_not]
    if not reasons:
        return ()
    more = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
    return (f"{MARK} no interval: {reasons[0]}{more}",)
