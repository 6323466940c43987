"""Objects with tables: their text, files, HTML in a notebook, and data frames."""

import inspect
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from detmap.core.base.suggestions import ProposesNames
from detmap.core.output.table import Style, Table

STYLE = ("percent", "digits")


class Tabular(ProposesNames):
    """Base class: a subclass defines `tables`, and may have a `to_dict`, `signature` and `notes`.

    Methods that make text take the options of `tables` too: ``to_latex(per_class=True)``.
    """

    __slots__ = ()

    _MAIN = ""
    """Name of the table that `to_frame` returns without a name (default: the first)."""

    def tables(self) -> list[Table]:
        """Returns the tables."""
        raise NotImplementedError

    def tables_of(self, form: str, style: Style, **options: Any) -> list[Table]:
        """Returns the tables that a format shows; `options` are those of `tables`."""
        return self.tables(**options)

    def summary(self) -> str:
        """Returns the tables and notes as text, as ``print`` shows them."""
        return str(self)

    def to_json(self, path: str | Path | None = None, **options: Any) -> str:
        """Returns the content of `to_dict` as JSON; writes it to the path too."""
        content: Any = self.to_dict
        return _written(path, json.dumps(content(**options), indent=2, allow_nan=False) + "\n")

    def to_dict(self) -> dict[str, Any]:
        """Returns the content of the JSON output: the tables."""
        from detmap.core.output import formats

        content: dict[str, Any] = json.loads(formats.json(self.tables()))
        return content

    def to_markdown(
        self,
        path: str | Path | None = None,
        *,
        percent: bool = False,
        digits: int | None = None,
        **options: Any,
    ) -> str:
        """Returns the tables as Markdown.

        Parameters
        ----------
        path : of a file to write too
        percent : whether to write fractions in percent
        digits : decimals (default: 4, in percent 2)
        options : of `tables`
        """
        self._check("to_markdown", options)
        return _written(path, self._text("markdown", Style(percent, digits), options))

    def to_latex(
        self,
        path: str | Path | None = None,
        *,
        percent: bool = False,
        digits: int | None = None,
        **options: Any,
    ) -> str:
        """Returns the tables as LaTeX (booktabs); parameters as in `to_markdown`."""
        self._check("to_latex", options)
        return _written(path, self._text("latex", Style(percent, digits), options))

    def save(self, path: str | Path, **options: Any) -> None:
        """Writes a file in the format of its suffix: .json, .csv, .md, .tex or .txt.

        A CSV file holds the last table, JSON everything. `options` are those of `to_latex`.

        Raises
        ------
        DetmapError : another suffix, or the write fails
        TypeError : an unknown option
        """
        from detmap.core.output import format_of

        form = format_of(path)
        self._check("save", options)
        if form == "json":
            text = self.to_json(**{key: options[key] for key in ("iou",) if key in options})
        else:
            style = Style(options.pop("percent", False), options.pop("digits", None))
            text = self._text(form, style, options)
        _written(path, text)

    def _text(self, form: str, style: Style, options: Mapping[str, Any]) -> str:
        """Returns the tables that a format shows as its text."""
        from detmap.core.output import formats

        return formats.RENDERERS[form](self.tables_of(form, style, **options), style)

    def _check(self, method: str, options: Mapping[str, Any]) -> None:
        """Raises `TypeError` for an option that `tables` does not have."""
        known = (*STYLE, *inspect.signature(self.tables).parameters)
        for name in options:
            if name not in known:
                raise TypeError(
                    f"{method}() has no argument {name!r}: there are {', '.join(known)}"
                )

    def to_frame(self, table: str | None = None) -> Any:
        """Returns the named table (default: the main one) as a `pandas.DataFrame`; its ``attrs``
        hold the signature.

        Raises
        ------
        DetmapError : unknown table, or pandas is not installed
        """
        from detmap.core.output import data_frames

        tables = self.tables()
        signature = getattr(self, "signature", "")
        return data_frames.frame(tables, table or self._MAIN or tables[0].name, signature)

    def _repr_html_(self) -> str:
        from detmap.core.output import formats

        return formats.html(self.tables_of("html", Style()))

    def __str__(self) -> str:
        from detmap.core.output import formats

        notes = "".join(f"note: {note}\n" for note in getattr(self, "notes", ()))
        return formats.text(self.tables_of("table", Style())) + notes


def _written(path: str | Path | None, text: str) -> str:
    """Writes a text to a path, if there is one, and returns it.

    Raises
    ------
    DetmapError : a name without a suffix, which may be meant as that of a table
    """
    if path is not None:
        from detmap.core.base import atomic_files
        from detmap.errors import DetmapError

        if not Path(path).suffix:
            fix = "name a file such as table.tex; per_class=True adds the table of classes"
            raise DetmapError(str(path), "is no file with a suffix", fix)
        atomic_files.write_bytes(path, text.encode("utf-8", "backslashreplace"))
    return text
