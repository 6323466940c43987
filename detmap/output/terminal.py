"""Tables on a terminal: ruled, in colour where it has colours and ``NO_COLOR`` is not set."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TextIO

from detmap.base.printable import shown
from detmap.output.cell_text import numeric, text_of
from detmap.output.folding import blocks, narrowed
from detmap.output.table import Style, Table

RULES = 3  # columns that a ruled table spends on a column beside its text


def draw(tables: Sequence[Table], style: Style, file: TextIO) -> None:
    """Ruled tables no wider than the terminal: too many columns go below each other."""
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

    plain = bool(os.environ.get("NO_COLOR"))
    console = Console(
        file=file, highlight=False, soft_wrap=True, color_system=None if plain else "auto"
    )
    for table in tables:
        texts = [[text_of(cell, style) for cell in row] for row in table.rows]
        header, right = [shown(name) for name in table.header], numeric(table)
        widths = [max(map(len, column)) for column in zip(header, *texts, strict=True)]
        spare = console.width - (len(widths) + 1)  # what the rules need beyond two spaces
        widths = narrowed(widths, [not number for number in right], max(spare, 1))
        for i, columns in enumerate(blocks([w + 1 for w in widths], console.width - 4)):
            title = Text(shown(table.title)) if table.title and i == 0 else None
            drawn = RichTable(title=title, title_justify="left", header_style="bold cyan")
            for place, c in enumerate(columns):
                drawn.add_column(
                    Text(header[c]),
                    justify="right" if right[c] else "left",
                    style="green" if place == 0 else "",
                    overflow="fold",
                    width=widths[c],
                )
            for row in texts:
                drawn.add_row(*(Text(row[c]) for c in columns))
            console.print(drawn)
        for line in table.lines:
            console.print(shown(line), markup=False)
