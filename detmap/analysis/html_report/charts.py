"""Charts as inline SVG: small functions from numbers to markup; the page's style colors them.

Every chart has a text alternative: its title, and what it shows as one sentence.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup, escape
from numpy.typing import NDArray

from detmap.core.base.sums import add_integers

WIDTH, HEIGHT = 460, 260
LEFT, RIGHT, TOP, BOTTOM = 46, 12, 10, 36  # the style's slider is aligned with an axis of these
MOST_POINTS = 160  # of a line
LETTERS = ("a", "b")  # styles of the detectors


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a chart.

    Parameters
    ----------
    x, y : (n,) numbers
    name : in the legend, "" for none
    style : classes of the page's style (``a``, ``b``, ``good``, ``bad``, ``faint``, ``area``)
    band : (n, 2) low and high of its interval, NaN where there is none; None without
    """

    x: NDArray[np.float64]
    y: NDArray[np.float64]
    name: str = ""
    style: str = "a"
    band: NDArray[np.float64] | None = None


Reading = tuple[float, float, str]
"""From, to, and what a reader sees there on hover or by keyboard."""


def lines(
    title: str,
    summary: str,
    drawn: Sequence[Line],
    axes: tuple[str, str],
    *,
    x_range: tuple[float, float] = (0.0, 1.0),
    y_range: tuple[float, float] = (0.0, 1.0),
    y_ticks: Sequence[tuple[float, str]] | None = None,
    marker: float | None = None,
    readings: Sequence[Reading] = (),
) -> Markup:
    """Lines over common axes; `marker` is a vertical rule at that x."""
    frame = _Frame(x_range, y_range)
    parts = [frame.axes(*axes, y_ticks=y_ticks)]
    parts += [_band(frame, line) for line in drawn if line.band is not None]
    parts += [_drawn(line, frame.x, frame.y) for line in drawn]
    if marker is not None:
        at = f"{frame.x(marker):.1f}"
        rule = '<line class="marker" x1="{0}" x2="{0}" y1="{1}" y2="{2}"/>'
        parts.append(filled(rule, at, TOP, HEIGHT - BOTTOM))
    parts += [_hit(frame, *reading) for reading in readings]
    named = [line for line in drawn if line.name]
    return _svg(title, summary, parts, (WIDTH, HEIGHT)) + _legend(named)


def _hit(frame: _Frame, low: float, high: float, text: str) -> Markup:
    """A strip of the chart that shows a text."""
    x = frame.x(low)
    strip = '<g class="hit"><title>{}</title>{}</g>'
    return filled(strip, text, _rect("strip", x, TOP, frame.x(high) - x, HEIGHT - BOTTOM - TOP))


def _drawn(
    line: Line,
    x_of: Callable[[float], float],
    y_of: Callable[[float], float],
    most: int = MOST_POINTS,
) -> Markup:
    points = zip(*thinned(line.x, line.y, most), strict=True)
    places = " ".join(f"{x_of(x):.1f},{y_of(y):.1f}" for x, y in points)
    return filled('<polyline class="line {}" points="{}"/>', line.style, places)


def _band(frame: _Frame, line: Line) -> Markup:
    """The interval around a line."""
    assert line.band is not None
    low, high = (thinned(line.x, side) for side in line.band.T)
    edge = list(zip(*low, strict=True)) + list(zip(*high, strict=True))[::-1]
    places = " ".join(f"{frame.x(a):.1f},{frame.y(b):.1f}" for a, b in edge)
    return filled('<polygon class="band {}" points="{}"/>', line.style, places)


def stepped(
    edges: NDArray[np.float64], heights: NDArray[np.float64], name: str, style: str
) -> Line:
    """The outline of columns between edges."""
    y = np.concatenate([[0.0], np.repeat(heights, 2), [0.0]])
    return Line(np.repeat(edges, 2), y, name, style)


def matrix(
    title: str,
    summary: str,
    names: Sequence[str],
    counts: NDArray[np.int64],
    *,
    before: NDArray[np.int64] | None = None,
    links: Sequence[Sequence[str]] = (),
) -> Markup:
    """Counts, colored by their share of the row; the last row and column are background.

    before : counts to subtract: what grew is signed, and colored by whether that is better
    links : what each cell links to
    """
    n, label = len(counts), 100
    cell = max(13, min(40, (WIDTH + 60 - label) // max(n, 1)))
    shown = counts if before is None else counts - before
    total = counts if before is None else np.maximum(counts, before)
    share = np.abs(shown) / np.maximum(total.sum(axis=1, keepdims=True), 1)
    if before is not None:
        share = share / max(float(share.max(initial=0.0)), 1e-9) * 0.95
    parts: list[Markup] = []
    for i in range(n):
        gap = 4 if i == n - 1 else 0
        place = label + i * cell + gap
        text = '<text class="name" x="{}" y="{:.0f}">{}</text>'
        parts.append(filled(text, label - 6, place + cell * 0.7, cut(names[i], 14)))
        turned = '<text class="turned" transform="translate({:.0f} {}) rotate(-60)">{}</text>'
        parts.append(filled(turned, place + cell * 0.7, label - 6, cut(names[i], 14)))
        for j in np.flatnonzero(shown[i]).tolist():
            value, x = int(shown[i, j]), label + j * cell + (4 if j == n - 1 else 0)
            better = (i == j) == (value > 0)
            style = f"{'right' if better else 'wrong'} d{min(9, int(share[i, j] * 10))}"
            told = f"{value:,}" if before is None else f"{value:+,}"
            tip = f"{names[i]} predicted as {names[j]}: {told}"
            link = filled(' data-href="{}"', links[i][j]) if links else ""
            parts.append(filled('<g class="hit"{}><title>{}</title>', Markup(link), tip))
            parts.append(_rect(style, x, place, cell - 1, cell - 1))
            sign = "" if before is None else "+" if value > 0 else "\N{MINUS SIGN}"
            count, letter = sign + short(abs(value)), 6.2 if cell >= 26 else 5.2  # pixels
            if letter * len(count) < cell:
                style = "count" + " light" * bool(share[i, j] >= 0.5) + " fine" * (cell < 26)
                text = '<text class="{}" x="{:.1f}" y="{:.1f}">{}</text>'
                parts.append(filled(text, style, x + cell / 2, place + cell * 0.66, count))
            parts.append(Markup("</g>"))
    side = label + n * cell + 12
    return _svg(title, summary, parts, (side + 40, side))


def shares(title: str, parts: Sequence[tuple[str, str, int]], links: Sequence[str] = ()) -> Markup:
    """Parts (name, style, count) of a whole as one bar of the page's width, and its legend, whose
    names may link to something.
    """
    total = max(add_integers(count for _, _, count in parts), 1)
    bar, items, left = [], [], 0.0
    for place, (name, style, count) in enumerate(parts):
        width = 100 * count / total
        text = f"{name}: {count:,} ({width:.1f} %)"
        rect = '<rect class="{}" x="{:.3f}%" width="{:.3f}%" height="26"/>'
        part = filled(rect, style, left, width)
        bar.append(filled('<g class="hit"><title>{}</title>{}</g>', text, part))
        key = '<svg class="key" width="14" height="10" aria-hidden="true">{}</svg>'
        whole = filled(rect, style, 0, 100)
        words = filled('<a href="{}">{}</a>', links[place], text) if links else text
        items.append(filled("<span>{}{}</span>", filled(key, whole), words))
        left += width
    label = f"{title}: " + ", ".join(f"{name} {count:,}" for name, _, count in parts)
    svg = '<svg class="shares" height="26" role="img" aria-label="{}">{}</svg>'
    shown = filled(svg, label, Markup("").join(bar))
    return shown + filled('<p class="legend">{}</p>', Markup("").join(items))


def spark(title: str, drawn: Sequence[Line]) -> Markup:
    """A small precision-recall curve."""
    size = (150, 96)
    parts = [Markup('<rect class="frame" x="4" y="4" width="142" height="88"/>')]
    parts += [_drawn(line, lambda x: 4 + 142 * x, lambda y: 92 - 88 * y, 60) for line in drawn]
    return _svg(title, title, parts, size)


def sketch(
    title: str, size: tuple[float, float], boxes: Sequence[tuple[str, Sequence[float]]]
) -> Markup:
    """Boxes (style, x, y, width, height) of an image, to scale."""
    width, height = max(size[0], 1.0), max(size[1], 1.0)
    scale = min(220 / width, 170 / height)
    shown = (round(width * scale), round(height * scale))
    frame = '<rect class="frame" x="0.5" y="0.5" width="{}" height="{}"/>'
    parts = [filled(frame, shown[0] - 1, shown[1] - 1)]
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


def filled(template: str, *values: Any) -> Markup:
    """HTML with values in its places, text escaped: as `Markup.format`, which takes five times as
    long.
    """
    safe = (escape(value) if isinstance(value, str) else value for value in values)
    return Markup(template.format(*safe))


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

    def x(self, value: float) -> float:
        return LEFT + _share(value, *self.x_range) * (WIDTH - LEFT - RIGHT)

    def y(self, value: float) -> float:
        return HEIGHT - BOTTOM - _share(value, *self.y_range) * (HEIGHT - TOP - BOTTOM)

    def axes(
        self, x_name: str, y_name: str, y_ticks: Sequence[tuple[float, str]] | None = None
    ) -> Markup:
        """Grid, ticks and names."""
        parts = []
        if y_ticks is None:
            y_ticks = [(value, short(value)) for value in ticks(*self.y_range)]
        right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
        for value, text in y_ticks:
            y = self.y(value)
            line = '<line class="grid" x1="{}" x2="{}" y1="{:.1f}" y2="{:.1f}"/>'
            parts.append(filled(line, LEFT, right, y, y))
            mark = '<text class="tick end" x="{}" y="{:.1f}">{}</text>'
            parts.append(filled(mark, LEFT - 5, y + 4, text))
        for value in ticks(*self.x_range):
            mark = '<text class="tick" x="{:.1f}" y="{}">{:g}</text>'
            parts.append(filled(mark, self.x(value), bottom + 18, value))
        across = '<text class="axis" x="{:.0f}" y="{}">{}</text>'
        parts.append(filled(across, (LEFT + right) / 2, HEIGHT - 4, x_name))
        up = '<text class="axis" transform="translate(11 {:.0f}) rotate(-90)">{}</text>'
        parts.append(filled(up, (TOP + bottom) / 2, y_name))
        return Markup("").join(parts)


def ticks(low: float, high: float) -> list[float]:
    """Round numbers in a range, about five; the lowest alone if they would be equal."""
    half = high / 2 - low / 2  # the whole may be beyond all numbers
    if half <= max(abs(low), abs(high)) * 1e-9 or half < 1e-12:
        return [low]
    step = float(10.0 ** np.floor(np.log10(half / 2)))
    step *= next(factor for factor in (1, 2, 2.5, 5, 10) if half / (step * factor) <= 2.505)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-6)
    return [round(k * step, 10) + 0.0 for k in range(first, last + 1)]


def _share(value: float, low: float, high: float) -> float:
    """Returns the position of a number in a range, 0 to 1; halved, as the range may overflow."""
    return (value / 2 - low / 2) / max(high / 2 - low / 2, 1e-12)


def _rect(style: str, x: float, y: float, width: float, height: float) -> Markup:
    rect = '<rect class="{}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"/>'
    return filled(rect, style, x, y, width, max(height, 0.0))


def _svg(title: str, summary: str, parts: Sequence[Markup], size: tuple[int, int]) -> Markup:
    open_tag = (
        '<svg viewBox="0 0 {0} {1}" width="{0}" height="{1}" role="img" aria-label="{2}">'
        "<title>{3}</title>"
    )
    head = filled(open_tag, size[0], size[1], f"{title}: {summary}" if summary else title, title)
    return head + Markup("").join(parts) + Markup("</svg>")


def _legend(drawn: Sequence[Line]) -> Markup:
    """Names beside their lines."""
    if not drawn:
        return Markup("")
    item = '<span><svg class="key" width="22" height="10" aria-hidden="true">{}</svg>{}</span>'
    mark = '<line class="line {}" x1="1" x2="21" y1="5" y2="5"/>'
    items = [filled(item, filled(mark, each.style), each.name) for each in drawn]
    return Markup('<p class="legend">') + Markup("").join(items) + Markup("</p>")
