"""Tables of confidence intervals and comparisons."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from detmap.core.output.table import PValue, Table
from detmap.core.statistics.verdict import SHOWN
from detmap.errors import counted

if TYPE_CHECKING:
    from detmap.core.statistics.comparison import Comparison, Pair
    from detmap.core.statistics.estimates import Interval
    from detmap.core.statistics.intervals import Intervals

HEADER = ("value", "SE", "low", "high", "bias")
DIFFERENCE = ("difference", "SE", "low", "high", "p", "adjusted p", "MDD")
MARK, OUTSIDE = "*", "+"
MDD = "MDD: minimum detectable difference: the test detects it with a power of 80 %"
BASIS = "low, high and p: per row; adjusted p: for all rows together"


def metric_tables(made: Intervals, per_class: bool) -> list[Table]:
    """Tables of the intervals of the metrics and, on request, of the classes."""
    promise = f"{100 * made.level:g} % intervals, {made.units.counted()}"

    def table(title: str, name: str, of: Mapping[Any, Interval]) -> Table:
        keys = ("metric",) if name == "intervals" else ("class", "metric")
        rows = []
        for (*key, row), one in of.items():
            marked = _marked(row, one) + OUTSIDE * one.outside
            rows.append((*key, marked, one.value, one.se, one.low, one.high, one.bias))
        lines = [*_reasons(of.values())]
        if any(one.outside for one in of.values()):
            lines.insert(0, f"{OUTSIDE} outside of its interval, which is corrected for the bias")
        return Table(promise + title, (*keys, *HEADER), tuple(rows), tuple(lines), name=name)

    title = ": jackknife, corrected for the small-sample bias"
    tables = [table(title, "intervals", {(name,): one for name, one in made.metrics.items()})]
    if per_class:
        cells = {(k, row): one for k, of in made.per_class.items() for row, one in of.items()}
        tables.append(table(", per class", "class-intervals", cells))
    return tables


def _marked(name: str, one: Interval | Pair) -> str:
    return name + MARK * bool(one.why_not)


def _reasons(numbers: Iterable[Interval | Pair]) -> Iterator[str]:
    """A footnote: the reason of the first row without an interval, and how many more rows have
    none, for this or another reason.
    """
    reasons = [one.why_not for one in numbers if one.why_not]
    if reasons:
        more = f" (and {counted(len(reasons) - 1, 'more row')})" if len(reasons) > 1 else ""
        yield f"{MARK} no interval: {reasons[0]}{more}"


def comparison_tables(comparison: Comparison) -> list[Table]:
    """Tables of the leaderboard, the pairs, and the classes that changed most."""
    first, second, *others = comparison.names
    which = "all pairs, b minus a" if others else f"{second} minus {first}"
    level = f"{100 * (1 - comparison.alpha):g} % intervals, test {comparison.test}"
    adjusted = f"adjusted by {comparison.adjust}"
    mdd = [MDD] if any(one.mdd >= 0 for one in comparison.pairs) else []
    pairs = _differences(comparison, "pairs", comparison.pairs, [*mdd, BASIS, *_needed(comparison)])
    moved = [one for one in comparison.classes if one.difference != 0][:SHOWN]
    classes = _differences(comparison, "classes", moved, [BASIS], [comparison.signature])
    return [
        _leaderboard(comparison),
        replace(pairs, title=f"{which}: {level}, {adjusted}"),
        replace(classes, title=f"classes that changed most, {adjusted}"),
    ]


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


def _differences(
    comparison: Comparison,
    name: str,
    pairs: Sequence[Pair],
    above: Sequence[str],
    below: Sequence[str] = (),
) -> Table:
    """One row per pair; lines above and below those of missing intervals."""
    keys = [*(("a", "b") if len(comparison.names) > 2 else ())]
    keys += ["class"] if name == "classes" else []
    rows = []
    for one in pairs:
        named = (getattr(one, "name" if key == "class" else key) for key in keys)
        p, adjusted = (None if math.isnan(p) else PValue(p) for p in (one.p, one.p_adjusted))
        numbers = (one.difference, one.se, one.low, one.high, p, adjusted, one.mdd)
        rows.append((*named, _marked(one.metric, one), *numbers))
    lines = (*above, *_reasons(pairs), *below)
    return Table("", (*keys, "metric", *DIFFERENCE), tuple(rows), lines, name=name)


def _needed(comparison: Comparison) -> tuple[str, ...]:
    """Number of images that would halve the minimum detectable difference."""
    first = comparison.pairs[0]
    if not first.mdd > 0:
        return ()
    points = [0.1, 0.2, 0.5, 1.0, 2.0]
    shown = max((x for x in points if x / 100 < first.mdd), default=min(points))
    n = comparison.images_needed(first, shown / 100)
    return (f"a difference of {shown:g} points in {first.metric} needs {n:,} images",)
