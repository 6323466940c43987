"""Tables of confidence intervals, ties and comparisons."""

import math
from collections.abc import Mapping
from typing import Any

from detmap.core.output.table import Cell, PValue, Table
from detmap.core.statistics.comparison import Comparison, Pair
from detmap.core.statistics.estimates import Interval
from detmap.core.statistics.intervals import Intervals
from detmap.core.statistics.ties import Tied
from detmap.core.statistics.verdict import SHOWN
from detmap.errors import counted

HEADER = ("value", "SE", "low", "high", "bias")
DIFFERENCE = ("difference", "SE", "low", "high", "p", "adjusted p", "MDD")
MARK, OUTSIDE = "*", "+"
MDD = "minimum detectable difference: the test detects it with a power of 80 %"


def metric_tables(made: Intervals, per_class: bool) -> list[Table]:
    """Tables of the intervals of the metrics and, on request, of the classes."""
    promise = f"{100 * made.level:g} % intervals, {made.units.counted()}"
    tables = [
        Table(
            f"{promise}: jackknife, corrected for the small-sample bias",
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
                f"{promise}, per class",
                ("class", "metric", *HEADER),
                tuple((name, _marked(row, one), *_cells(one)) for (name, row), one in rows.items()),
                _reasons(rows),
                name="class-intervals",
            )
        )
    return tables


def tie_table(tied: Mapping[str, Tied]) -> Table:
    """Table of the metrics over random orders of tied scores."""
    orders = max((one.orders for one in tied.values()), default=0)
    return Table(
        f"in {orders} random orders of tied scores, and as evaluated",
        ("metric", "value", "lowest", "highest", "mean", "SD"),
        tuple((name, one.value, one.low, one.high, one.mean, one.sd) for name, one in tied.items()),
        name="ties",
    )


def _cells(one: Interval) -> tuple[float, ...]:
    return one.value, one.se, one.low, one.high, one.bias


def _marked(name: str, one: Interval | Pair) -> str:
    return name + MARK * bool(one.why_not) + OUTSIDE * one.outside


def _reasons(intervals: Mapping[Any, Interval] | Mapping[Any, Pair]) -> tuple[str, ...]:
    """Footnotes: values outside of their intervals, the reason of the first row without an
    interval, and how many more rows have none, for this or another reason.
    """
    lines = []
    if any(one.outside for one in intervals.values()):
        lines.append(f"{OUTSIDE} outside of its interval, which is corrected for the bias")
    reasons = [one.why_not for one in intervals.values() if one.why_not]
    if not reasons:
        return tuple(lines)
    more = f" (and {counted(len(reasons) - 1, 'more row')})" if len(reasons) > 1 else ""
    return (*lines, f"{MARK} no interval: {reasons[0]}{more}")


BASIS = "low, high and p: per row, corrected for bias; adjusted p: for all rows together"


def comparison_tables(comparison: Comparison) -> list[Table]:
    """Tables of the leaderboard, the pairs, and the classes that changed most."""
    return [_leaderboard(comparison), _pair_table(comparison), _changed_classes(comparison)]


def _leaderboard(comparison: Comparison) -> Table:
    metric = comparison.pairs[0].metric
    letters = any(letters for *_, letters in comparison.leaderboard)
    return Table(
        f"leaderboard by {metric}, {comparison.units.counted()}",
        ("detector", metric, "group"),
        comparison.leaderboard,
        ("detectors with a common letter do not differ significantly",) if letters else (),
        name="leaderboard",
    )


def _pair_table(comparison: Comparison) -> Table:
    level = f"{100 * (1 - comparison.alpha):g} %"
    first, second, *others = comparison.names
    title = "all pairs, b minus a" if others else f"{second} minus {first}"
    return Table(
        f"{title}: {level} intervals, test {comparison.test}, adjusted by {comparison.adjust}",
        (*_names(comparison, "a", "b"), "metric", *DIFFERENCE),
        tuple(
            (*_names(comparison, one.a, one.b), _marked(one.metric, one), *_differences(one))
            for one in comparison.pairs
        ),
        (
            *(("MDD: " + MDD,) if any(one.mdd >= 0 for one in comparison.pairs) else ()),
            BASIS,
            *_needed(comparison),
            *_reasons({(one.a, one.b, one.metric): one for one in comparison.pairs}),
        ),
        name="pairs",
    )


def _changed_classes(comparison: Comparison) -> Table:
    moved = [one for one in comparison.classes if one.difference != 0][:SHOWN]
    return Table(
        f"classes that changed most, adjusted by {comparison.adjust}",
        (*_names(comparison, "a", "b"), "class", "metric", *DIFFERENCE),
        tuple(
            (
                *_names(comparison, one.a, one.b),
                one.name,
                _marked(one.metric, one),
                *_differences(one),
            )
            for one in moved
        ),
        (
            BASIS,
            *_reasons({(one.a, one.b, one.name, one.metric): one for one in moved}),
            comparison.signature,
        ),
        name="classes",
    )


def _names(comparison: Comparison, a: str, b: str) -> tuple[str, ...]:
    """The cells that name a pair; none if there is only one."""
    return (a, b) if len(comparison.names) > 2 else ()


def _differences(one: Pair) -> tuple[Cell, ...]:
    p, adjusted = (None if math.isnan(p) else PValue(p) for p in (one.p, one.p_adjusted))
    return one.difference, one.se, one.low, one.high, p, adjusted, one.mdd


def _needed(comparison: Comparison) -> tuple[str, ...]:
    """Number of images that would halve the minimum detectable difference."""
    first = comparison.pairs[0]
    if not first.mdd > 0:
        return ()
    points = [0.1, 0.2, 0.5, 1.0, 2.0]
    shown = max((x for x in points if x / 100 < first.mdd), default=min(points))
    n = comparison.images_needed(first, shown / 100)
    return (f"a difference of {shown:g} points in {first.metric} needs {n:,} images",)
