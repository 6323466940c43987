"""The README's table of evaluators."""

from pathlib import Path

README = Path(__file__).resolve().parents[2] / "README.md"


def cells(line: str) -> list[str]:
    """The cells of a row of a Markdown table."""
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def table() -> tuple[list[str], dict[str, list[str]]]:
    """Names of the evaluators, and the first cell of each row to the others."""
    text = README.read_text().split("## detmap beside other evaluators")[1].split("\n## ")[0]
    header, _, *rows = [cells(line) for line in text.splitlines() if line.startswith("|")]
    names = [name.partition(" ")[0] for name in header[1:-1]]
    return names, {row[0]: row[1:] for row in rows}
