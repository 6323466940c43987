"""A summary as markup, which a notebook shows: a tile per number of a result or a diagnosis, and
sentences.
"""

import math
from collections.abc import Iterable, Mapping
from html import escape

STYLE = (
    ".detmap-summary .tiles{display:grid;grid-template-columns:repeat(auto-fill,minmax(120px,1fr));"
    "gap:8px;margin:6px 0}"
    ".detmap-summary .tile{border:1px solid #8884;border-radius:8px;padding:6px 10px}"
    ".detmap-summary .tile b{display:block;font-size:1.35em;font-variant-numeric:tabular-nums}"
    ".detmap-summary .tile span{display:block;font-size:.85em;opacity:.75}"
)


def sentences(texts: Iterable[str]) -> str:
    """A list of them."""
    return "<ul>" + "".join(f"<li>{escape(text)}</li>" for text in texts) + "</ul>"


def metric_tiles(metrics: Mapping[str, float], *more: str) -> str:
    """A tile per metric, and what else a notebook shows, with their style."""
    numbers = "\n".join(
        f'<div class="tile"><span>{escape(name)}</span><b>{_points_text(value)}</b></div>'
        for name, value in metrics.items()
    )
    tiles = f'<div class="tiles">\n{numbers}\n</div>'
    return f'<div class="detmap-summary"><style>{STYLE}</style>{tiles}{"".join(more)}</div>'


def _points_text(value: float) -> str:
    return "\N{EN DASH}" if math.isnan(value) else f"{100 * value:.2f}"
