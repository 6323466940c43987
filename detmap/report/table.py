"""A table of cells, not yet text."""

from __future__ import annotations

from dataclasses import dataclass

Cell = str | int | float | None


@dataclass(frozen=True, slots=True)
class Table:
    """Cells under headings.

    Parameters
    ----------
    title : one line, "" for none
    header : column names
    rows : one tuple a row; floats are fractions, None and NaN are undefined
    lines : text below the table
    """

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    lines: tuple[str, ...] = ()
