"""The text and tables of a comparison: the verdict, the metrics, the classes that changed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from detmap.core.output.cell_text import UNDEFINED, scaled, undefined
from detmap.core.output.table import Bold, Cell, PValue, Style, Table
from detmap.core.protocol.metric_rows import METRICS
from detmap.core.statistics.refusals import LEAST_UNITS, MARK, REASONS, footnotes
from detmap.errors import counted

if TYPE_CHECKING:
    from detmap.core.statistics.comparison import Comparison, Pair
    from detmap.core.statistics.estimates import Interval

DIFFERENCE = ("difference", "SE", "low", "high", "p", "adjusted p", "MDD")
MDD = "MDD: minimum detectable difference: the test detects it with a power of 80 %"
BASIS = "low, high and p: per row; adjusted p: for all rows together"
SHOWN = 10  # classes that changed most
NAMED = 12
"""Metrics in the table of a paper."""


def verdict(comparison: Comparison) -> str:
    """Returns one sentence about the first metric: which detector is better, and by how much."""
    pair, lower = _decisive(comparison), lower_is_better(comparison.values)
    level = f"{100 * (1 - comparison.alpha):g} % CI"
    images = f"{comparison.units.n:,} {comparison.units.noun}"
    change = _points(pair.difference)
    if math.isnan(pair.difference):
        return f"{pair.metric} is undefined: {REASONS['undefined']}."
    if math.isnan(pair.low):
        told = pair.why_not and comparison.units.n >= LEAST_UNITS  # else a note has the reason
        why = f": {pair.why_not}" if told else ""
        return f"{pair.b} - {pair.a} is {change} {pair.metric}, without an interval{why}."
    interval = f"{level} {_points(pair.low)} to {_points(pair.high)}"
    if pair.difference == 0 and not pair.se > 0:
        value = comparison.values[pair.metric][comparison.names.index(pair.a)]
        return f"No difference: {pair.metric} is {100 * value:.1f} for both, on {images}."
    winner = better(comparison)
    if winner is None:
        seen = f" (a difference of {100 * pair.mdd:.1f} would be detected)" if pair.mdd > 0 else ""
        return (
            f"No difference is shown: {pair.b} - {pair.a} is {change} {pair.metric} "
            f"({interval}) on {images}{seen}."
        )
    loser = pair.a if winner == pair.b else pair.b
    if winner == pair.a:
        change = _points(-pair.difference)
        interval = f"{level} {_points(-pair.high)} to {_points(-pair.low)}"
    rate = ", lower is better" * (pair.metric in lower)
    than = f" than {loser}" if len(comparison.names) > 2 else ""
    return f"{winner} is better{than}: {change} {pair.metric} ({interval}{rate}) on {images}."


def _points(fraction: float) -> str:
    return f"{100 * fraction:+.1f}"


def _decisive(comparison: Comparison) -> Pair:
    """The pair of the verdict: baseline and new; of several the best and the second best."""
    first, best = comparison.pairs[0], {name for name, *_ in comparison.leaderboard[:2]}
    mine = (each for each in comparison.pairs if each.metric == first.metric)
    return next((each for each in mine if {each.a, each.b} == best), first)


def verdict_tables(comparison: Comparison) -> list[Table]:
    """Returns the tables ``metrics`` (A, B, change, interval, p) and ``changed`` classes; of
    several detectors their metrics, then all pairs. Columns without a value are left out.
    """
    if len(comparison.names) > 2:
        rows: list[tuple[Cell, ...]] = [(name, *of) for name, of in comparison.values.items()]
        metrics = Table("", ("metric", *comparison.names), tuple(rows), name="metrics")
        leaderboard, pairs, _ = comparison_tables(comparison)
        return [metrics, leaderboard, _full(pairs)]
    level = f"{100 * (1 - comparison.alpha):g} %"
    header = ("metric", *comparison.names, "change", f"{level} low", "high", "p")
    rows = [
        (each.metric, *comparison.values[each.metric], *_change(each, each.p))
        for each in comparison.pairs
    ]
    reasons = [each.why_not for each in comparison.pairs if _is_refused(each)]
    told = reasons[: comparison.units.n >= LEAST_UNITS]  # else a note has it
    lines = [f"no interval or p-value of some metrics: {reason}" for reason in told]
    metrics = _full(Table("", header, tuple(rows), tuple(lines), name="metrics"))
    moved = [each for each in comparison.classes if each.difference != 0][:SHOWN]
    if not moved:
        return [replace(metrics, lines=(*metrics.lines, comparison.signature))]
    tested = any(not math.isnan(each.p_adjusted) for each in moved)
    first = comparison.pairs[0].metric.removeprefix("m")  # mAP is the mean of each class's AP
    lacking = [each for each in comparison.classes if each.metric == first and _is_refused(each)]
    lines = [comparison.signature]
    if lacking:
        of, why = counted(len(lacking), "class"), lacking[0].why_not
        lines.insert(0, f"{first} of {of} has no interval ({why}): see --table classes")
    title = "classes that changed most" + f", p adjusted by {comparison.adjust}" * tested
    header = ("class", "metric", "change", f"{level} low", "high", "adjusted p")
    rows = [(each.name, each.metric, *_change(each, each.p_adjusted)) for each in moved]
    return [metrics, _full(Table(title, header, tuple(rows), tuple(lines), name="changed"))]


def better(comparison: Comparison) -> str | None:
    """Returns the better detector of the verdict; None if no difference is shown."""
    pair = _decisive(comparison)
    if not (pair.low > 0 or pair.high < 0) or (pair.difference == 0 and not pair.se > 0):
        return None
    rises = pair.low > 0
    return pair.b if rises == (pair.metric not in lower_is_better(comparison.values)) else pair.a


def _change(pair: Pair, p: float) -> tuple[Cell, ...]:
    return pair.difference, pair.low, pair.high, PValue(p)


def _full(table: Table) -> Table:
    """A table without the columns and rows that have no value."""
    rows = [row for row in table.rows if not all(map(undefined, row[1:]))]
    there = [c for c in range(1, len(table.header)) if not all(undefined(row[c]) for row in rows)]
    cells = [tuple(row[c] for c in (0, *there)) for row in rows]
    header = tuple(table.header[c] for c in (0, *there))
    return replace(table, header=header, rows=tuple(cells))


def paper_table(comparison: Comparison, style: Style) -> Table:
    """Returns detectors x metrics with intervals, the best value of each metric in bold; then the
    differences to the first detector with theirs.
    """
    first, *others = comparison.names
    lower = lower_is_better(comparison.values)
    metrics = list(comparison.values)[:NAMED]
    pairs = {(each.b, each.metric): each for each in comparison.pairs if each.a == first}
    rows: list[tuple[Cell, ...]] = []
    for i, name in enumerate(comparison.names):
        cells: list[Cell] = [name]
        for metric in metrics:
            values = [each for each in comparison.values[metric] if not math.isnan(each)]
            best = (min if metric in lower else max)(values, default=math.nan)
            value, own = comparison.values[metric][i], comparison.intervals[metric][i]
            text = _with_interval(value, own, style)
            cells.append(Bold(text) if value == best else text)
        rows.append(tuple(cells))
    for name in others:
        mine = [pairs[name, metric] for metric in metrics]
        changes = [_with_interval(each.difference, each, style, "+") for each in mine]
        rows.append((f"{name} - {first}", *changes))
    below = f"in parentheses: {100 * (1 - comparison.alpha):g} % intervals"
    lines = (below, comparison.signature)
    return Table("", ("detector", *metrics), tuple(rows), lines, name="detectors")


def _with_interval(value: float, of: Interval | Pair, style: Style, sign: str = "") -> str:
    digits = style.digits if style.digits is not None else 1 if style.percent else 3
    numbers = (scaled(each, style) for each in (value, of.low, of.high))
    text, low, high = (f"{each:{sign}.{digits}f}" for each in numbers)
    if math.isnan(of.low):
        return UNDEFINED if math.isnan(value) else text
    return f"{text} ({low} to {high})"


def comparison_tables(comparison: Comparison) -> list[Table]:
    """Tables of the leaderboard, the pairs, and the classes that changed most."""
    first, second, *others = comparison.names
    board, metric = comparison.leaderboard, comparison.pairs[0].metric
    title = f"leaderboard by {metric}, {comparison.units.counted()}"
    told = ("detectors with a common letter do not differ significantly",) * bool(board[0][2])
    leaderboard = Table(title, ("detector", metric, "group"), board, told, name="leaderboard")
    keys = ("a", "b") if others else ()
    which = "all pairs, b minus a" if others else f"{second} minus {first}"
    level = f"{100 * (1 - comparison.alpha):g} % intervals, test {comparison.test}"
    adjusted = f"adjusted by {comparison.adjust}"
    mdd = (MDD,) * any(one.mdd >= 0 for one in comparison.pairs)
    lines = [*mdd, BASIS, *_needed(comparison), *footnotes(filter(_is_refused, comparison.pairs))]
    title = f"{which}: {level}, {adjusted}"
    pairs = _differences("pairs", title, keys, comparison.pairs, lines)
    moved = [one for one in comparison.classes if one.difference != 0][:SHOWN]
    lines = [BASIS, *footnotes(filter(_is_refused, moved)), comparison.signature]
    title = f"classes that changed most, {adjusted}"
    return [leaderboard, pairs, _differences("classes", title, (*keys, "class"), moved, lines)]


def _is_refused(pair: Pair) -> bool:
    """Whether a reason leaves a pair without an interval, not only without a p-value."""
    return bool(pair.why_not) and math.isnan(pair.low)


def _differences(
    name: str, title: str, keys: Sequence[str], pairs: Sequence[Pair], lines: Sequence[str]
) -> Table:
    """One row per pair."""
    rows = []
    for one in pairs:
        named = (getattr(one, "name" if key == "class" else key) for key in keys)
        name_of, p = one.metric + MARK * _is_refused(one), (PValue(one.p), PValue(one.p_adjusted))
        rows.append((*named, name_of, one.difference, one.se, one.low, one.high, *p, one.mdd))
    return Table(title, (*keys, "metric", *DIFFERENCE), tuple(rows), tuple(lines), name=name)


def _needed(comparison: Comparison) -> tuple[str, ...]:
    """Number of images that would halve the minimum detectable difference."""
    first = comparison.pairs[0]
    if not first.mdd > 0:
        return ()
    shown = max((x for x in (0.2, 0.5, 1.0, 2.0) if x / 100 < first.mdd), default=0.1)
    n = comparison.images_needed(first, shown / 100)
    return (f"a difference of {shown:g} points in {first.metric} needs {n:,} images",)


def lower_is_better(metrics: Iterable[str]) -> set[str]:
    """Returns the names of metrics of which a lower value is better."""
    rates = tuple(each.name for each in METRICS if not each.higher_is_better)
    return {name for name in metrics if name.startswith(rates)}
