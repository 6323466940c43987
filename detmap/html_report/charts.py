"""Charts as inline SVG: small functions from numbers to markup; the page's style colors them.

Every chart has a text alternative: its title, and what it shows as one sentence.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup, escape
from numpy.typing import NDArray

WIDTH, HEIGHT = 460, 260
LEFT, RIGHT, TOP, BOTTOM = 46, 12, 10, 36  # the style's slider stands under an axis of these
MOST_POINTS = 160  # of a line


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a chart.

    Parameters
    ----------
    x, y : (n,) numbers
    name : in the legend, "" for none
    style : class of the page's style (``a``, ``b``, ``good``, ``bad``, ``faint``, ``dashed``)
    band : (n, 2) low and high of its interval, NaN where there is none; None without
    """

    x: NDArray[np.float64]
    y: NDArray[np.float64]
    name: str = ""
    style: str = "a"
    band: NDArray[np.float64] | None = None


def lines(
    title: str,
    summary: str,
    drawn: Sequence[Line],
    axes: tuple[str, str],
    *,
    x_range: tuple[float, float] = (0.0, 1.0),
    y_range: tuple[float, float] = (0.0, 1.0),
    marker: float | None = None,
    size: tuple[int, int] = (WIDTH, HEIGHT),
) -> Markup:
    """Lines over common axes; `marker` is a vertical rule at that x."""
    frame = _Frame(x_range, y_range, size)
    parts = [frame.axes(*axes), *(_band(frame, line) for line in drawn if line.band is not None)]
    for line in drawn:
        x, y = thinned(line.x, line.y)
        places = " ".join(f"{frame.x(a):.1f},{frame.y(b):.1f}" for a, b in zip(x, y, strict=True))
        parts.append(Markup('<polyline class="line {}" points="{}"/>').format(line.style, places))
    if marker is not None:
        at = f"{frame.x(marker):.1f}"
        rule = '<line class="marker" x1="{0}" x2="{0}" y1="{1}" y2="{2}"/>'
        parts.append(Markup(rule).format(at, TOP, size[1] - BOTTOM))
    named = [line for line in drawn if line.name]
    return _svg(title, summary, parts, size) + _legend(named)


def _band(frame: _Frame, line: Line) -> Markup:
    """The interval around a line."""
    assert line.band is not None
    low, high = (thinned(line.x, side) for side in line.band.T)
    edge = list(zip(*low, strict=True)) + list(zip(*high, strict=True))[::-1]
    places = " ".join(f"{frame.x(a):.1f},{frame.y(b):.1f}" for a, b in edge)
    return Markup('<polygon class="band {}" points="{}"/>').format(line.style, places)


def columns(
    title: str,
    summary: str,
    edges: NDArray[np.float64],
    series: Sequence[tuple[str, str, NDArray[np.float64]]],
    axes: tuple[str, str],
    *,
    diagonal: bool = False,
    log: bool = False,
) -> Markup:
    """Columns between edges, series (name, style, heights) beside each other in each bin."""
    heights = [np.log10(1 + each) if log else each for _, _, each in series]
    top = max((float(np.nanmax(each, initial=0.0)) for each in heights), default=0.0)
    high = 1.0 if diagonal else max(top, 1e-9)
    frame = _Frame((float(edges[0]), float(edges[-1])), (0.0, high), (WIDTH, HEIGHT))
    ticks = None
    if log:
        ticks = [(float(np.log10(1 + 10.0**k)), short(10**k)) for k in range(int(high) + 1)]
    parts = [frame.axes(*axes, y_ticks=ticks)]
    n = len(series)
    for k, (_, style, _) in enumerate(series):
        for i, value in enumerate(heights[k].tolist()):
            if not value > 0:
                continue
            span = (frame.x(float(edges[i + 1])) - frame.x(float(edges[i]))) * 0.92
            x, y = frame.x(float(edges[i])) + k * span / n, frame.y(value)
            parts.append(_rect(style, x, y, span / n, frame.y(0.0) - y))
    if diagonal:
        parts.append(
            Markup('<line class="marker" x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}"/>').format(
                frame.x(0.0), frame.y(0.0), frame.x(1.0), frame.y(1.0)
            )
        )
    legend = [Line(edges, edges, name, style) for name, style, _ in series if name]
    return _svg(title, summary, parts, (WIDTH, HEIGHT)) + _legend(legend, filled=True)


def bars(
    title: str,
    summary: str,
    names: Sequence[str],
    series: Sequence[tuple[str, str, Sequence[float]]],
    ranges: Sequence[Sequence[tuple[float, float]]] = (),
) -> Markup:
    """Horizontal bars from 0, a group a name, series (name, style, values); numbers beside them.

    ranges : of each series the interval of each value, a line over the bar; NaN for none
    """
    ranges = [np.where(np.isnan(each), 0.0, each).tolist() for each in ranges]
    values = [value for _, _, each in series for value in each if value == value]
    values += [end for each in ranges for both in each for end in both]
    high, low = max([*values, 1e-9]), min([*values, 0.0])
    tall, gap, label = 15, 10, 90
    group = tall * len(series) + gap
    size = (WIDTH, group * len(names) + gap)
    scale = (WIDTH - label - 60) / (high - low)
    zero = label - low * scale
    parts: list[Markup] = []
    for i, name in enumerate(names):
        y = gap + i * group
        middle = y + tall * len(series) / 2 + 4
        text = '<text class="name" x="{}" y="{:.1f}">{}</text>'
        parts.append(Markup(text).format(label - 8, middle, name))
        for k, (_, style, each) in enumerate(series):
            value = each[i]
            if value != value:
                continue
            top, length = y + k * tall, abs(value) * scale
            x = zero if value >= 0 else zero - length
            parts.append(_rect(style, x, top, max(length, 0.5), tall - 2))
            end = max(value, ranges[k][i][1] if ranges else value, 0.0)
            if ranges:
                left, right = (zero + side * scale for side in ranges[k][i])
                path = "M{0:.1f} {2:.1f}H{1:.1f}M{0:.1f} {3:.1f}v6M{1:.1f} {3:.1f}v6"
                path = path.format(left, right, top + (tall - 2) / 2, top + (tall - 2) / 2 - 3)
                parts.append(Markup('<path class="whisker" d="{}"/>').format(path))
            text = '<text class="value" x="{:.1f}" y="{:.1f}">{}</text>'
            at = zero + end * scale + 5
            parts.append(Markup(text).format(at, top + tall - 4, f"{value:.2f}"))
    legend = [Line(np.zeros(0), np.zeros(0), name, style) for name, style, _ in series if name]
    return _svg(title, summary, parts, size) + _legend(legend, filled=True)


def matrix(title: str, summary: str, names: Sequence[str], counts: NDArray[np.int64]) -> Markup:
    """Counts, colored by their share of the row; the last row and column stand apart."""
    n = len(counts)
    cell = max(12, min(28, 640 // max(n, 1)))
    label = 110
    side = label + n * cell + 8
    total = np.maximum(counts.sum(axis=1, keepdims=True), 1)
    share = counts / total
    parts: list[Markup] = []
    for i in range(n):
        y = label + i * cell + (4 if i == n - 1 else 0)
        text = '<text class="name" x="{}" y="{:.0f}">{}</text>'
        parts.append(Markup(text).format(label - 6, y + cell * 0.7, cut(names[i])))
        x = label + i * cell + (4 if i == n - 1 else 0)
        turned = '<text class="turned" transform="translate({:.0f} {}) rotate(-60)">{}</text>'
        parts.append(Markup(turned).format(x + cell * 0.7, label - 6, cut(names[i])))
        for j in range(n):
            x = label + j * cell + (4 if j == n - 1 else 0)
            if counts[i, j]:
                depth = min(9, int(share[i, j] * 10))
                kind = "right" if i == j else "wrong"
                label_text = f"{cut(names[i])}, as {cut(names[j])}: {counts[i, j]:,}"
                parts.append(Markup("<g><title>{}</title>").format(label_text))
                parts.append(_rect(f"{kind} d{depth}", x, y, cell - 1, cell - 1) + Markup("</g>"))
                if cell >= 20:
                    text = '<text class="count{}" x="{:.1f}" y="{:.1f}">{}</text>'
                    light = " light" if depth >= 5 else ""
                    shown = short(int(counts[i, j]))
                    parts.append(Markup(text).format(light, x + cell / 2, y + cell * 0.68, shown))
    return _svg(title, summary, parts, (side + 50, side))


def spark(title: str, drawn: Sequence[Line]) -> Markup:
    """A small precision-recall curve."""
    size = (150, 96)
    parts = [Markup('<rect class="frame" x="4" y="4" width="142" height="88"/>')]
    for line in drawn:
        x, y = thinned(line.x, line.y, 60)
        places = " ".join(f"{4 + 142 * a:.1f},{92 - 88 * b:.1f}" for a, b in zip(x, y, strict=True))
        parts.append(Markup('<polyline class="line {}" points="{}"/>').format(line.style, places))
    return _svg(title, title, parts, size)


def sketch(
    title: str, size: tuple[float, float], boxes: Sequence[tuple[str, Sequence[float]]]
) -> Markup:
    """Boxes (style, x, y, width, height) of an image, to scale."""
    width, height = max(size[0], 1.0), max(size[1], 1.0)
    scale = min(220 / width, 170 / height)
    shown = (round(width * scale), round(height * scale))
    parts = [
        Markup('<rect class="frame" x="0.5" y="0.5" width="{}" height="{}"/>').format(
            shown[0] - 1, shown[1] - 1
        )
    ]
    for style, box in boxes:
        x, y, w, h = (value * scale for value in box)
        parts.append(_rect(f"box {style}", x, y, max(w, 1.0), max(h, 1.0)))
    return _svg(title, title, parts, shown)


def thinned(
    x: NDArray[np.float64], y: NDArray[np.float64], most: int = MOST_POINTS
) -> tuple[list[float], list[float]]:
    """As many points as an eye can tell apart."""
    if len(x) > most:
        some = np.unique(np.linspace(0, len(x) - 1, most).astype(np.int64))
        x, y = x[some], y[some]
    keep = ~(np.isnan(x) | np.isnan(y))
    return x[keep].tolist(), y[keep].tolist()


def short(value: float) -> str:
    """A count in at most four signs."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size * 0.9995:
            part = value / size
            return f"{part:.0f}{unit}" if part >= 9.95 else f"{part:.1f}{unit}".replace(".0", "")
    return f"{value:g}"


def cut(text: str, most: int = 16) -> str:
    """A name that fits beside a chart."""
    return text if len(text) <= most else text[: most - 1] + "…"


@dataclass(frozen=True, slots=True)
class _Frame:
    """From numbers to pixels."""

    x_range: tuple[float, float]
    y_range: tuple[float, float]
    size: tuple[int, int]

    def x(self, value: float) -> float:
        return LEFT + _share(value, *self.x_range) * (self.size[0] - LEFT - RIGHT)

    def y(self, value: float) -> float:
        share = _share(value, *self.y_range)
        return self.size[1] - BOTTOM - share * (self.size[1] - TOP - BOTTOM)

    def axes(
        self, x_name: str, y_name: str, y_ticks: Sequence[tuple[float, str]] | None = None
    ) -> Markup:
        """Grid, ticks and names."""
        parts = []
        if y_ticks is None:
            y_ticks = [(value, short(value)) for value in _ticks(*self.y_range)]
        right, bottom = self.size[0] - RIGHT, self.size[1] - BOTTOM
        for value, text in y_ticks:
            y = self.y(value)
            line = '<line class="grid" x1="{}" x2="{}" y1="{:.1f}" y2="{:.1f}"/>'
            parts.append(Markup(line).format(LEFT, right, y, y))
            mark = '<text class="tick end" x="{}" y="{:.1f}">{}</text>'
            parts.append(Markup(mark).format(LEFT - 5, y + 4, text))
        for value in _ticks(*self.x_range):
            mark = '<text class="tick" x="{:.1f}" y="{}">{:g}</text>'
            parts.append(Markup(mark).format(self.x(value), bottom + 15, value))
        middle = (LEFT + right) / 2
        parts.append(
            Markup('<text class="axis" x="{:.0f}" y="{}">{}</text>').format(
                middle, self.size[1] - 4, x_name
            )
        )
        parts.append(
            Markup(
                '<text class="axis" transform="translate(11 {:.0f}) rotate(-90)">{}</text>'
            ).format((TOP + bottom) / 2, y_name)
        )
        return Markup("").join(parts)


def _ticks(low: float, high: float) -> list[float]:
    """Round numbers in a range, about five; the lowest alone if they would be equal."""
    half = high / 2 - low / 2  # the whole may be beyond all numbers
    if half <= max(abs(low), abs(high)) * 1e-9 or half < 1e-12:
        return [low]
    step = float(10.0 ** np.floor(np.log10(half / 2)))
    step *= next(factor for factor in (1, 2, 2.5, 5, 10) if half / (step * factor) <= 2.505)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-6)
    return [round(k * step, 10) + 0.0 for k in range(first, last + 1)]


def _share(value: float, low: float, high: float) -> float:
    """Where a number stands in a range, 0 to 1; halved, as the whole may be beyond all numbers."""
    return (value / 2 - low / 2) / max(high / 2 - low / 2, 1e-12)


def _rect(style: str, x: float, y: float, width: float, height: float) -> Markup:
    rect = '<rect class="{}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"/>'
    return Markup(rect).format(style, x, y, width, max(height, 0.0))


def _svg(title: str, summary: str, parts: Sequence[Markup], size: tuple[int, int]) -> Markup:
    open_tag = (
        '<svg viewBox="0 0 {0} {1}" width="{0}" height="{1}" role="img" aria-label="{2}">'
        "<title>{3}</title>"
    )
    head = Markup(open_tag).format(
        size[0], size[1], f"{title}: {summary}" if summary else title, title
    )
    return head + Markup("").join(parts) + Markup("</svg>")


def _legend(drawn: Sequence[Line], *, filled: bool = False) -> Markup:
    """Names beside what stands for them: a line, or a filled column."""
    if not drawn:
        return Markup("")
    item = '<span><svg class="key" width="22" height="10" aria-hidden="true">{}</svg>{}</span>'
    mark = '<line class="line {}" x1="1" x2="21" y1="5" y2="5"/>'
    if filled:
        mark = '<rect class="{}" x="1" y="0" width="20" height="10"/>'
    items = [Markup(item).format(Markup(mark).format(each.style), each.name) for each in drawn]
    return Markup('<p class="legend">') + Markup("").join(items) + Markup("</p>")


__all__ = ["Line", "bars", "columns", "escape", "lines", "matrix", "sketch", "spark"]
