"""The summary part of a report as markup: a tile a number, and sentences. The page has it, and a
notebook shows it of a result or a diagnosis.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import NamedTuple

STYLE = (
    ".detmap-summary .tiles{display:grid;grid-template-columns:repeat(auto-fill,minmax(120px,1fr));"
    "gap:8px;margin:6px 0}"
    ".detmap-summary .tile{border:1px solid #8884;border-radius:8px;padding:6px 10px}"
    ".detmap-summary .tile b{display:block;font-size:1.35em;font-variant-numeric:tabular-nums}"
    ".detmap-summary .tile span{display:block;font-size:.85em;opacity:.75}"
)
"""Of a notebook, whose page has no style for these; the report has its own."""


class Written(NamedTuple):
    """A number as it is written, and its interval below; "" for none."""

    text: str
    under: str = ""


def tile(name: str, each: Sequence[Written], difference: Written | None = None) -> str:
    """One number of one detector, or of two with their difference."""
    title = f"<span>{escape(name)}</span>"
    if len(each) == 1:
        under = each[0].under
        ci = "95 % CI " if " to " in under else ""
        below = f"<span>{ci}{escape(under)}</span>" if under else ""
        return f'<div class="tile">{title}<b>{escape(each[0].text)}</b>{below}</div>'
    both = "".join(
        f'<span class="{letter.lower()}-text">{letter} {escape(one.text)}'
        + (f"<small>{escape(one.under)}</small>" if one.under else "")
        + "</span>"
        for letter, one in zip("AB", each, strict=True)
    )
    change = ""
    if difference is not None:
        under = f"<br>{escape(difference.under)}" if difference.under else ""
        change = f"<span>B - A {escape(difference.text)}{under}</span>"
    return f'<div class="tile">{title}<b class="two">{both}</b>{change}</div>'


def tiles(each: Iterable[str], *, pair: bool = False) -> str:
    """Tiles beside each other."""
    return f'<div class="tiles{" pair" if pair else ""}">\n' + "\n".join(each) + "\n</div>"


def sentences(texts: Iterable[str]) -> str:
    """A list of them."""
    return "<ul>" + "".join(f"<li>{escape(text)}</li>" for text in texts) + "</ul>"


def metric_tiles(metrics: Mapping[str, float], *more: str) -> str:
    """A tile a metric, and what else a notebook shows, with their style."""
    numbers = tiles(tile(name, [Written(_points_text(value))]) for name, value in metrics.items())
    style = f"<style>{STYLE}</style>"
    return f'<div class="detmap-summary">{style}{numbers}{"".join(more)}</div>'


def _points_text(value: float) -> str:
    return "\N{EN DASH}" if math.isnan(value) else f"{100 * value:.2f}"
