"""Tables as plain text, CSV and Markdown, and on a terminal."""

from __future__ import annotations

import csv as csv_module
import io
import math
from collections.abc import Sequence
from typing import TextIO

from detmap.report.table import Cell, Table
from detmap.report.text import shown

UNDEFINED = "-"


def plain(tables: Sequence[Table], percent: bool = False) -> str:
    """Aligned columns, for a pipe or a file."""
    blocks = []
    for table in tables:
        rows = [
            tuple(map(shown, table.header)),
            *(tuple(_text(cell, percent) for cell in row) for row in table.rows),
        ]
        widths = [max(len(row[c]) for row in rows) for c in range(len(table.header))]
        right = _numeric(table)
        lines = [shown(table.title)] if table.title else []
        lines += [
            "  ".join(_aligned(cell, widths[c], right[c]) for c, cell in enumerate(row)).rstrip()
            for row in rows
        ]
        blocks.append("\n".join([*lines, *map(shown, table.lines)]))
    return "\n\n".join(blocks) + "\n"


def markdown(tables: Sequence[Table], percent: bool = False) -> str:
    """Pipe tables, for a README or an issue."""
    blocks = []
    for table in tables:
        right = _numeric(table)
        lines = [f"**{shown(table.title)}**", ""] if table.title else []
        lines.append("| " + " | ".join(map(shown, table.header)) + " |")
        lines.append("|" + "|".join("---:" if number else "---" for number in right) + "|")
        texts = [[_text(cell, percent).replace("|", "\\|") for cell in row] for row in table.rows]
        lines += ["| " + " | ".join(row) + " |" for row in texts]
        if table.lines:
            lines += ["", *(f"- {shown(line)}" for line in table.lines)]
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks) + "\n"


def csv(tables: Sequence[Table], percent: bool = False) -> str:
    """Comma-separated, numbers in full precision, an empty line between tables; without the
    lines below a table.
    """
    blocks = []
    for table in tables:
        text = io.StringIO()
        writer = csv_module.writer(text, lineterminator="\n")
        writer.writerow(table.header)
        for row in table.rows:
            writer.writerow(["" if _undefined(cell) else _scaled(cell, percent) for cell in row])
        blocks.append(text.getvalue())
    return "\n".join(blocks)


def terminal(tables: Sequence[Table], percent: bool, file: TextIO) -> None:
    """Ruled tables on a terminal."""
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

    console = Console(file=file, highlight=False, soft_wrap=True)
    for table in tables:
        drawn = RichTable(
            title=Text(shown(table.title)) if table.title else None, title_justify="left"
        )
        for name, right in zip(table.header, _numeric(table), strict=True):
            drawn.add_column(shown(name), justify="right" if right else "left", no_wrap=True)
        for row in table.rows:
            drawn.add_row(*(Text(_text(cell, percent)) for cell in row))
        wide = console.options.update(max_width=1_000_000)
        if console.measure(drawn, options=wide).maximum > console.width:
            file.write(plain([table], percent))  # a table that is squeezed would hide digits
            continue
        console.print(drawn)
        for line in table.lines:
            console.print(shown(line), markup=False)


def _text(cell: Cell, percent: bool) -> str:
    if _undefined(cell):
        return UNDEFINED
    if isinstance(cell, float):
        return f"{100 * cell:.2f}" if percent else f"{cell:.4f}"
    return shown(str(cell))


def _scaled(cell: Cell, percent: bool) -> Cell:
    return 100 * cell if percent and isinstance(cell, float) else cell


def _undefined(cell: Cell) -> bool:
    return cell is None or (isinstance(cell, float) and math.isnan(cell))


def _numeric(table: Table) -> list[bool]:
    """Which columns hold numbers only, and so are set flush right."""
    columns = zip(*table.rows, strict=True) if table.rows else [()] * len(table.header)
    return [all(not isinstance(cell, str) for cell in column) for column in columns]


def _aligned(text: str, width: int, right: bool) -> str:
    return text.rjust(width) if right else text.ljust(width)
