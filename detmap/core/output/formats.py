"""Tables as plain text, CSV, Markdown, LaTeX, HTML and JSON."""

import io
import json as json_module
from collections.abc import Callable, Iterable, Sequence

from detmap.core.base.printable import shown
from detmap.core.output import folding
from detmap.core.output.cell_text import cells_of, numeric, scaled, text_of, undefined
from detmap.core.output.table import PLAIN, Bold, Cell, Style, Table

WIDEST_ROW = 12  # metrics that a paper prints side by side


def text(tables: Sequence[Table], style: Style = PLAIN) -> str:
    """Aligned columns within a width, for a pipe or a file."""
    parts = []
    for table in tables:
        lines = folding.line(shown(table.title), style.width) if table.title else []
        for i, columns in enumerate(folded(table, style)):
            lines += [""] * (i > 0) + columns
        for line in table.lines:
            lines += folding.line(shown(line), style.width)
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def folded(table: Table, style: Style) -> list[list[str]]:
    """The lines of the table's blocks of columns."""
    texts = [
        [shown(name) for name in table.header],
        *([text_of(cell, style) for cell in row] for row in table.rows),
    ]
    right = numeric(table)
    widths = [max(map(cells_of, column)) for column in zip(*texts, strict=True)]
    widths = folding.narrowed(widths, [not number for number in right], style.width)
    folded_lines = []
    for columns in folding.blocks(widths, style.width):
        lines = []
        for row in texts:
            cells = [folding.wrapped(row[c], widths[c]) for c in columns]
            for part in range(max(map(len, cells), default=0)):
                pieces = [cell[part] if part < len(cell) else "" for cell in cells]
                placed = zip(pieces, columns, strict=True)
                lines.append("  ".join(_aligned(p, widths[c], right[c]) for p, c in placed))
        folded_lines.append([line.rstrip() for line in lines])
    return folded_lines


def markdown(tables: Sequence[Table], style: Style = PLAIN) -> str:
    """Pipe tables, for a README or an issue."""
    parts = []
    for table in tables:
        lines = [f"**{escaped(table.title)}**", ""] if table.title else []
        lines.append("| " + " | ".join(map(_cell, table.header)) + " |")
        lines.append("|" + "|".join("---:" if n else "---" for n in numeric(table)) + "|")
        for row in table.rows:
            cells = [_marked(_cell(text_of(cell, style)), cell, "**", "**") for cell in row]
            lines.append("| " + " | ".join(cells) + " |")
        if table.lines:
            lines += ["", *(f"- {escaped(line)}" for line in table.lines)]
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


_MARKDOWN = {"&": "&amp;", "<": "&lt;", ">": "&gt;"} | {sign: f"\\{sign}" for sign in "\\`[]"}


def escaped(text: str) -> str:
    """A text that is no markup in Markdown: no tag, link, picture or code."""
    return "".join(_MARKDOWN.get(sign, sign) for sign in shown(text))


def _cell(text: str) -> str:
    return escaped(text).replace("|", "\\|")


def _marked(text: str, cell: Cell, begin: str, end: str) -> str:
    return f"{begin}{text}{end}" if isinstance(cell, Bold) else text


def latex(tables: Sequence[Table], style: Style = PLAIN) -> str:
    r"""``tabular`` environments with the rules of booktabs; text around them as comments.

    Metrics are repeated as one row, as papers print them.
    """
    parts = []
    rows = [row for row in map(_metrics_row, tables) if row is not None]
    for table in (*tables, *rows):
        columns = "".join("r" if number else "l" for number in numeric(table))
        lines = [f"% {shown(table.title)}"] if table.title else []
        lines += ["% \\usepackage{booktabs}", f"\\begin{{tabular}}{{{columns}}}", "\\toprule"]
        lines += [_joined(_latex(shown(name)) for name in table.header), "\\midrule"]
        for row in table.rows:
            cells = ((_latex(text_of(cell, style)), cell) for cell in row)
            lines.append(_joined(_marked(text, cell, "\\textbf{", "}") for text, cell in cells))
        lines += ["\\bottomrule", "\\end{tabular}", *(f"% {shown(text)}" for text in table.lines)]
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def _metrics_row(table: Table) -> Table | None:
    """A table of metrics as one row, with a column per metric; None for other and wide ones."""
    if table.name != "metrics" or not 0 < len(table.rows) <= WIDEST_ROW:
        return None
    return Table("", tuple(str(row[0]) for row in table.rows), (tuple(r[-1] for r in table.rows),))


def html(tables: Sequence[Table], style: Style = PLAIN) -> str:
    """Tables for a page or a notebook, without a style of their own."""
    parts = []
    for table in tables:
        right = [" style='text-align:right'" if number else "" for number in numeric(table)]
        title = f"<caption>{_escaped(table.title)}</caption>" if table.title else ""
        head = "".join(f"<th>{_escaped(name)}</th>" for name in table.header)
        lines = [f"<table>{title}<thead><tr>{head}</tr></thead><tbody>"]
        for row in table.rows:
            cells = zip(row, right, strict=True)
            texts = (f"<td{side}>{_escaped(text_of(cell, style))}</td>" for cell, side in cells)
            lines.append(f"<tr>{''.join(texts)}</tr>")
        lines += ["</tbody></table>", *(f"<p>{_escaped(line)}</p>" for line in table.lines)]
        parts.append("\n".join(lines))
    return "\n".join(parts) + "\n"


def csv(tables: Sequence[Table], style: Style = PLAIN) -> str:
    """One table as comma-separated values, numbers in full precision; without the lines below.
    Texts that begin like a formula follow an apostrophe.

    A file holds one table, which is the last of those that are given: what was asked for beside
    the rest.
    """
    import csv as csv_module  # most results are printed as plain text

    text = io.StringIO()
    writer = csv_module.writer(text, lineterminator="\n")
    writer.writerow(plain_text(shown(name)) for name in tables[-1].header)
    for row in tables[-1].rows:
        writer.writerow(_csv_cell(cell, style) for cell in row)
    return text.getvalue()


def json(tables: Sequence[Table], style: Style = PLAIN) -> str:
    """Each table under its name: a list of objects, a row each, undefined values as null."""
    content: dict[str, object] = {
        table.name or shown(table.title) or "table": [
            {
                name: None if undefined(cell) else cell
                for name, cell in zip(table.header, row, strict=True)
            }
            for row in table.rows
        ]
        for table in tables
    }
    content["lines"] = [line for table in tables for line in table.lines]
    return json_module.dumps(content, indent=2, allow_nan=False) + "\n"


def _csv_cell(cell: Cell, style: Style) -> Cell:
    if undefined(cell):
        return ""
    if isinstance(cell, float) and style.digits is not None:
        return text_of(cell, style)
    return plain_text(shown(cell)) if isinstance(cell, str) else scaled(cell, style)


def plain_text(cell: str) -> str:
    """A text that no spreadsheet takes for a formula: an apostrophe before one that begins like
    one and is no number.

    Source: OWASP, CSV Injection.
    """
    if not cell.startswith(("=", "+", "-", "@", "\t", "\r")):
        return cell
    try:
        float(cell)
    except ValueError:
        return f"'{cell}"
    return cell


_LATEX = {"\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}"} | {
    sign: f"\\{sign}" for sign in "&%$#_{}"
}
_LATEX |= {"<": "\\textless{}", ">": "\\textgreater{}", "|": "\\textbar{}"}
"""Signs that LaTeX reads as commands, or prints as other signs in its default encoding."""


def _latex(text: str) -> str:
    return "".join(_LATEX.get(sign, sign) for sign in text)


def _joined(cells: Iterable[str]) -> str:
    return " & ".join(cells) + " \\\\"


def _escaped(text: str) -> str:
    import html as html_module

    return html_module.escape(shown(text))


def _aligned(text: str, width: int, right: bool) -> str:
    blank = " " * (width - cells_of(text))
    return blank + text if right else text + blank


RENDERERS: dict[str, Callable[[Sequence[Table], Style], str]] = {
    "table": text,
    "json": json,
    "csv": csv,
    "markdown": markdown,
    "latex": latex,
}
"""The functions that write tables, by the name of the format."""
