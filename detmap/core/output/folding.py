"""Tables that are too wide: a column of words is wrapped, else columns go below each other."""

import textwrap
from collections.abc import Sequence

from detmap.core.base.sums import add_integers
from detmap.core.output.cell_text import cells_of

BETWEEN = 2  # spaces between two columns
LEAST_WORDS = 24  # a column of words is not made narrower than this


def blocks(widths: Sequence[int], limit: int) -> list[list[int]]:
    """The columns of each block, the first column in each; as many as fit the limit."""
    parts, block, used = [], [0], widths[0] if widths else 0
    for c, width in list(enumerate(widths))[1:]:
        if used + BETWEEN + width > limit and len(block) > 1:
            parts.append(block)
            block, used = [0], widths[0]
        block.append(c)
        used += BETWEEN + width
    return [*parts, block]


def narrowed(widths: Sequence[int], words: Sequence[bool], limit: int) -> list[int]:
    """The widths with the widest column of words made so narrow that all fit, if that is enough."""
    result = list(widths)
    excess = add_integers(widths) + BETWEEN * (len(widths) - 1) - limit
    columns = [c for c, wraps in enumerate(words) if wraps]
    if excess <= 0 or not columns:
        return result
    widest = max(columns, key=lambda c: widths[c])
    if widths[widest] - excess >= LEAST_WORDS:
        result[widest] -= excess
    else:
        result = [
            min(width, max(LEAST_WORDS, limit // 2 - BETWEEN)) if wraps else width
            for width, wraps in zip(widths, words, strict=True)
        ]
    return result


def wrapped(text: str, width: int) -> list[str]:
    """The lines of a cell."""
    if cells_of(text) <= width:
        return [text]
    if not text.isascii():
        return _wrapped_by_cells(text, max(width, 2))
    return textwrap.wrap(text, max(width, 1), break_on_hyphens=False) or [""]


def _wrapped_by_cells(text: str, width: int) -> list[str]:
    """The lines of a text with wide characters, which has few spaces: cut between characters."""
    lines, used = [""], 0
    for sign in text:
        own = cells_of(sign)
        if used + own > width:
            lines.append("")
            used = 0
        lines[-1] += sign
        used += own
    return lines


def line(text: str, width: int) -> list[str]:
    """A line below a table, folded between words; a signature has none, and stays whole."""
    return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False) or [""]
