"""How results look: tables of cells in, text out. Nothing here knows what a detection is."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from detmap.core.output import formats
from detmap.core.output.table import Style, Table

RENDERERS: dict[str, Callable[[Sequence[Table], Style], str]] = {
    "table": formats.text,
    "json": formats.json,
    "csv": formats.csv,
    "markdown": formats.markdown,
    "latex": formats.latex,
}
SUFFIXES = {
    ".json": "json",
    ".csv": "csv",
    ".md": "markdown",
    ".markdown": "markdown",
    ".tex": "latex",
}
"""The format of a file by its name; of any other, plain text."""
