"""A table of cells, not yet text, and how its text is wanted."""

from dataclasses import dataclass

from detmap.core.base.immutable import Value


class Quantity(float):
    """A number that is no fraction: tables in percent show it as it is."""


class PValue(Quantity):
    """A p-value: never shown as 0, but as less than the smallest number of its digits."""


class Bold(str):
    """A text in bold where the format has bold text."""

    __slots__ = ()


Cell = str | int | float | None

WIDTH = 80  # columns that everybody has


@dataclass(slots=True, eq=False, repr=False)
class Table(Value):
    """Cells under headings.

    Parameters
    ----------
    title : one line, "" for none
    header : column names
    rows : one tuple a row; floats are fractions, None and NaN are undefined
    lines : text below the table
    name : by which a user selects it (``metrics``)
    """

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    lines: tuple[str, ...] = ()
    name: str = ""


@dataclass(slots=True, eq=False, repr=False)
class Style(Value):
    """How tables become text.

    Parameters
    ----------
    percent : whether fractions are shown in percent
    digits : after the point; as the format has them when left out: four, in percent two, in CSV all
    width : columns to keep to, where a format has such
    """

    percent: bool = False
    digits: int | None = None
    width: int = WIDTH


PLAIN = Style()
