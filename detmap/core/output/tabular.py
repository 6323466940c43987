"""Objects with tables: their HTML in a notebook, their text, and their data frames."""

from __future__ import annotations

from typing import Any

from detmap.core.output import formats
from detmap.core.output.table import Table


class Tabular:
    """Base class: a subclass defines `tables`, and may have a `signature` and `notes`."""

    __slots__ = ()

    def tables(self) -> list[Table]:
        """Returns the tables."""
        raise NotImplementedError

    def to_frame(self, table: str | None = None) -> Any:
        """Returns the named table (default: the first) as a `pandas.DataFrame`; its ``attrs`` hold
        the signature.

        Raises
        ------
        DetmapError : unknown table, or pandas is not installed
        """
        from detmap.core.output import data_frames

        tables = self.tables()
        signature = getattr(self, "signature", "")
        return data_frames.frame(tables, table or tables[0].name, signature)

    def _repr_html_(self) -> str:
        return formats.html(self.tables())

    def __str__(self) -> str:
        notes = "".join(f"note: {note}\n" for note in getattr(self, "notes", ()))
        return formats.text(self.tables()) + notes
