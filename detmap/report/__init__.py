"""How results look: tables of cells in, text out. Nothing here knows what a detection is."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from detmap.report import formats
from detmap.report.table import Table

RENDERERS: dict[str, Callable[[Sequence[Table], bool], str]] = {
    "table": formats.plain,
    "csv": formats.csv,
    "markdown": formats.markdown,
}
