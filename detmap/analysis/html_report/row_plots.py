"""Rows of dots and bars over common axes, as a table: it stays readable at any width, for a screen
reader and without the script. Places are in percent, so that text keeps its size.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from markupsafe import Markup

from detmap.analysis.html_report.charts import LETTERS, filled, ticks
from detmap.analysis.html_report.numbers import Number

MOST_TICKS = 8  # intervals of an axis that the style has a grid for


@dataclass(frozen=True, slots=True)
class Mark:
    """A value and its interval, NaN for none; `rough`: plus or minus a standard error."""

    value: float
    low: float = math.nan
    high: float = math.nan
    rough: bool = False


@dataclass(frozen=True, slots=True)
class Panel:
    """A column of plots.

    Parameters
    ----------
    title : words of its axis, with the unit
    kind : ``dots`` (joined if there are two), ``bars`` from 0, or ``change`` around 0
    """

    title: str
    kind: Literal["dots", "bars", "change"]


@dataclass(frozen=True, slots=True)
class Row:
    """One line.

    Parameters
    ----------
    name, note : at its start
    marks : for each panel one value per detector
    value : at its end
    text : shown on hover and by keyboard
    objects : ground-truth objects behind the values
    href : what the name links to, "" for nothing
    """

    name: str
    note: str
    marks: tuple[tuple[Mark, ...], ...]
    value: Number
    text: str
    objects: int = 0
    href: str = ""


@dataclass(frozen=True, slots=True)
class Axis:
    """Round numbers at equal distances that cover what is plotted."""

    ticks: tuple[float, ...]

    def place(self, value: float) -> str:
        """Where a value is, in percent."""
        low, high = self.ticks[0], self.ticks[-1]
        return f"{100 * (min(max(value, low), high) - low) / (high - low):.4g}%"


def axis(panel: Panel, rows: Iterable[Row], place: int) -> Axis:
    """The axis of a panel over all rows; it includes 0."""
    marks = [mark for row in rows for mark in row.marks[place]]
    every = [0.0, *(x for mark in marks for x in (mark.value, mark.low, mark.high) if x == x)]
    low, high = min(every), max(every)
    if panel.kind == "dots":  # fractions, which a standard error may exceed
        low, high = 0.0, 100.0 if high > 50 else high
    if high - low < 1e-6:
        low, high = min(low, -1.0 if panel.kind == "change" else 0.0), max(high, 1.0)
    found = ticks(low, high)
    step = found[1] - found[0]
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    if last - first > MOST_TICKS:
        step, first, last = 2 * step, first // 2, -(-last // 2)
    return Axis(tuple(round(k * step, 9) + 0.0 for k in range(first, last + 1)))


def plot(
    caption: str,
    panels: Sequence[Panel],
    groups: Sequence[tuple[str, Sequence[Row]]],
    axes: Sequence[Axis],
    value: str,
    *,
    name: str,
) -> Markup:
    """A table of plots.

    Parameters
    ----------
    groups : heading ("" for none) and rows
    value : heading of the last column; name : of the first
    """
    head = [filled('<th scope="col" class="text">{}</th>', name)]
    for panel, each in zip(panels, axes, strict=True):
        head.append(filled('<th scope="col">{}{}</th>', panel.title, _ticks(panel, each)))
    head.append(filled('<th scope="col">{}</th>', value))
    parts = [
        filled('<table class="plots"><caption>{}</caption><thead><tr>', caption),
        *head,
        Markup("</tr></thead>"),
    ]
    for heading, rows in groups:
        parts.append(Markup("<tbody>"))
        if heading:
            row = '<tr class="group"><th scope="rowgroup" colspan="{}">{}</th></tr>'
            parts.append(filled(row, len(panels) + 2, heading))
        parts += [_row(row, panels, axes) for row in rows]
        parts.append(Markup("</tbody>"))
    return Markup("").join(parts) + Markup("</table>")


def _ticks(panel: Panel, axis: Axis) -> Markup:
    sign = "+g" if panel.kind == "change" else "g"
    text = '<text x="{}"{} y="12">{}</text>'
    odd = [Markup(' class="odd"') if k % 2 else "" for k in range(len(axis.ticks))]
    marks = [
        filled(text, axis.place(value), each, format(value, sign) if value else "0")
        for value, each in zip(axis.ticks, odd, strict=True)
    ]
    return filled('<svg class="ticks" height="16">{}</svg>', Markup("").join(marks))


def _row(row: Row, panels: Sequence[Panel], axes: Sequence[Axis]) -> Markup:
    note = filled(" <small>{}</small>", row.note) if row.note else ""
    name = filled('<a href="{}">{}</a>', row.href, row.name) if row.href else row.name
    cells = [filled('<tr><th scope="row">{}{}</th>', name, note)]
    makers = {"dots": _dots, "bars": _bars, "change": _change}
    title = filled("<title>{}</title>", row.text)
    height = 26 if panels[0].kind == "bars" else 22
    for panel, each, marks in zip(panels, axes, row.marks, strict=True):
        svg = '<td class="g{}"><svg height="{}">{}{}</svg></td>'
        shown = Markup("").join(makers[panel.kind](marks, each, height / 2))
        cells.append(filled(svg, len(each.ticks) - 1, height, title, shown))
        title = Markup()
    under = filled(" <small>{}</small>", row.value.under) if row.value.under else ""
    cells.append(filled("<td>{}{}</td></tr>\n", row.value.text, under))
    return Markup("").join(cells)


def _line(style: str, axis: Axis, low: float, high: float, y: float) -> Markup:
    line = '<line class="{}" x1="{}" x2="{}" y1="{:g}" y2="{:g}"/>'
    return filled(line, style, axis.place(low), axis.place(high), y, y)


def _dot(style: str, axis: Axis, value: float, y: float) -> Markup:
    dot = '<circle class="{}" cx="{}" cy="{:g}" r="4.5"/>'
    return filled(dot, style, axis.place(value), y)


def _interval(style: str, axis: Axis, mark: Mark, y: float) -> list[Markup]:
    style += " rough" * mark.rough
    return [_line(style, axis, mark.low, mark.high, y)] if mark.low == mark.low else []


def _dots(marks: Sequence[Mark], axis: Axis, y: float) -> list[Markup]:
    some = [
        (style, mark)
        for style, mark in zip(LETTERS, marks, strict=False)
        if mark.value == mark.value
    ]
    if len(some) == 2:
        joined = [_line("join", axis, some[0][1].value, some[1][1].value, y)]
    else:
        joined = [line for style, mark in some for line in _interval(f"ci {style}", axis, mark, y)]
    return joined + [_dot(style, axis, mark.value, y) for style, mark in some]


def _bars(marks: Sequence[Mark], axis: Axis, middle: float) -> list[Markup]:
    parts = []
    for k, (style, mark) in enumerate(zip(LETTERS, marks, strict=False)):
        y = middle + 9 * (k - (len(marks) - 1) / 2)
        if mark.value == mark.value:
            parts.append(_line(f"bar {style}", axis, 0.0, mark.value, y))
            parts += _interval("whisker", axis, mark, y)
    return parts


def _change(marks: Sequence[Mark], axis: Axis, y: float) -> list[Markup]:
    (mark,) = marks
    zero = '<line class="zero" x1="{0}" x2="{0}" y1="0" y2="{1:g}"/>'
    parts = [filled(zero, axis.place(0.0), 2 * y)]
    if mark.value != mark.value:
        return parts
    sure = not mark.rough and (mark.low > 0 or mark.high < 0)
    style = ("b" if mark.value > 0 else "a") if sure else "open"
    return [*parts, *_interval(f"ci {style}", axis, mark, y), _dot(style, axis, mark.value, y)]
