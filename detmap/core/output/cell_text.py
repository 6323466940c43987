"""Cells of tables as text."""

import math
from typing import Any

from detmap.core.base.printable import shown
from detmap.core.base.sums import add_integers
from detmap.core.output.table import Cell, PValue, Quantity, Style, Table

UNDEFINED = "-"
P_DIGITS = 4  # of a p-value after the point, in percent too
LONGEST = 1000  # characters of a cell for people: a name of thousands would push all else away


def text_of(cell: Cell, style: Style) -> str:
    """A cell for people: fractions in a few digits, ``-`` where nothing is defined."""
    if undefined(cell):
        return UNDEFINED
    if isinstance(cell, PValue):
        return _p_value(cell, style)
    if isinstance(cell, float):
        digits = style.digits if style.digits is not None else 2 if style.percent else 4
        return f"{scaled(cell, style):.{digits}f}"
    text = shown(str(cell))
    half = LONGEST // 2
    return text if len(text) <= LONGEST else f"{text[:half]} ... {text[-half:]}"


def _p_value(p: float, style: Style) -> str:
    digits = style.digits or P_DIGITS
    smallest = 10.0**-digits
    return f"{p:.{digits}f}" if p >= smallest / 2 else f"<{smallest:.{digits}f}"


def scaled(cell: Cell, style: Style) -> Cell:
    """A number as it is, a fraction in percent where that is wanted."""
    return (
        100 * cell
        if style.percent and isinstance(cell, float) and not isinstance(cell, Quantity)
        else cell
    )


def undefined(cell: Cell) -> bool:
    """Whether there is nothing to show."""
    return cell is None or (isinstance(cell, float) and math.isnan(cell))


def or_none(value: Any) -> Any:
    """The value; None where nothing is defined, as JSON has no NaN."""
    return None if undefined(value) else value


def cells_of(text: str) -> int:
    """The columns that a text takes in a terminal: two for a wide character, such as Chinese or an
    emoji, none for a combining one.

    Source: Unicode Standard Annex 11, East Asian Width.
    """
    if text.isascii():
        return len(text)
    import unicodedata  # most texts are ASCII

    wide = unicodedata.east_asian_width
    joins = ("Mn", "Me", "Cf")
    return len(text) + add_integers(
        -1 if unicodedata.category(sign) in joins else wide(sign) in "WF" for sign in text
    )


def numeric(table: Table) -> list[bool]:
    """Which columns hold numbers only, and so are set flush right."""
    columns = zip(*table.rows, strict=True) if table.rows else [()] * len(table.header)
    return [all(not isinstance(cell, str) for cell in column) for column in columns]
