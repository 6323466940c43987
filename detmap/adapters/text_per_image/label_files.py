"""Reads folders with one text file per image and one line per box."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.adapters import text_fields
from detmap.adapters.joining.join import MAX_PIXEL
from detmap.adapters.tabular.csv_cells import WIDE, Cells
from detmap.base import open_files
from detmap.base.open_files import shown
from detmap.errors import DataError

FILES_LOOKED_AT, BYTES_LOOKED_AT = 40, 1 << 12
LF, CR = b"\n\r"
_GAPS = np.isin(np.arange(256), list(b" \t\n\r"))


@dataclass(frozen=True, slots=True, eq=False)
class Lines:
    """The n non-empty lines of text files.

    Parameters
    ----------
    files : in order; a line points into them
    file : (n,) int32
    number : (n,) line numbers, from 1
    words : all words, one line after the other
    first, count : (n,) the first word of each line, and how many it has
    """

    files: Sequence[Path]
    file: NDArray[np.int32]
    number: NDArray[Any]
    words: Cells
    first: NDArray[Any]
    count: NDArray[Any]

    def __len__(self) -> int:
        return len(self.file)

    def place(self, row: int) -> str:
        """Returns file and line, for messages."""
        return f"{shown(self.files[self.file[row]])}: line {self.number[row]}"

    def text(self, row: int) -> str:
        """The words of a line, for messages."""
        return " ".join(self.words.take(self.first[row] + np.arange(self.count[row])))

    def stems(self) -> list[str]:
        """Returns the file stem of each line."""
        stems = [file.stem for file in self.files]
        return [stems[i] for i in self.file.tolist()]

    def column(self, place: int) -> list[str]:
        """The word of each line at this place."""
        return self.words.take(self.first + place).strings

    def numbers(self, names: Sequence[str], begin: int = 0) -> NDArray[np.float64]:
        """(n, k) the words from `begin` on as numbers; `names` says what each is.

        Raises
        ------
        DataError : a word that is no number, or none that is finite
        """
        cells = self.words.take((self.first[:, None] + begin + np.arange(len(names))).ravel())
        try:
            values = cells.numbers()
        except ValueError:
            found = map(text_fields.number, cells)
            values = np.array([np.nan if each is None else each for each in found])
        table = values.reshape(-1, len(names))
        most = [sys.float_info.max if name == "score" else MAX_PIXEL for name in names]
        bad = ~(np.abs(table) <= most)
        if bad.any():
            row, column = np.argwhere(bad)[0].tolist()
            raise DataError(
                f"{self.place(row)}, {names[column]}",
                f"{text_fields.short(cells[row * len(names) + column])} is not a finite number",
                "write plain numbers, parted by spaces",
            )
        return table

    def take(self, rows: NDArray[Any]) -> Lines:
        """Some of the lines."""
        some = [column[rows] for column in (self.file, self.number, self.first, self.count)]
        return Lines(self.files, some[0], some[1], self.words, some[2], some[3])


def read(files: Sequence[Path], separator: bytes = b" ") -> Lines:
    """The lines of text files, whose words are found in all files at once; see `text_fields`.

    `separator` parts words as spaces and tabs do.

    Raises
    ------
    DataError : a file that cannot be read, or is not UTF-8
    """
    parts = [text_fields.decoded(path).encode().replace(separator, b" ") for path in files]
    data = np.frombuffer(b"\n".join([b"", *parts, bytes(WIDE)]), dtype=np.uint8)
    begins = np.cumsum([1, *(len(part) + 1 for part in parts)])  # of the files
    _refuse_nul(files, parts)
    used = data[: begins[-1]]
    position = np.int32 if len(data) < 1 << 31 else np.int64
    gaps = _GAPS[used]
    edges: NDArray[Any] = np.flatnonzero(gaps[1:] != gaps[:-1]).astype(position)
    edges += 1
    words = Cells(data, edges[::2], edges[1::2])
    ends = np.flatnonzero((used == LF) | ((used == CR) & (data[1 : len(used) + 1] != LF)))
    upto = np.searchsorted(words.begin, ends.astype(position))  # words before each line end
    count = np.diff(upto)
    rows = np.flatnonzero(count)
    last = np.searchsorted(ends, begins[:-1])  # the line that begins with each file
    file = np.searchsorted(last, rows + 1, side="right") - 1
    number = rows + 2 - last[file]
    return Lines(files, file.astype(np.int32), number, words, upto[rows], count[rows])


def _refuse_nul(files: Sequence[Path], parts: Sequence[bytes]) -> None:
    """An error on the first NUL, which no array of words can end with."""
    for path, part in zip(files, parts, strict=True):
        if (at := part.find(0)) >= 0:
            line = len(text_fields.LINE_END.findall(part[:at].decode())) + 1
            where = f"{shown(path)}: line {line}"
            raise DataError(where, "holds a NUL byte", "write the file as plain text in UTF-8")


def listed(folder: Path) -> list[Path]:
    """Returns the text files of a folder, by stem, without hidden ones."""
    files = [path for path in folder.glob("*.txt") if not path.name.startswith(".")]
    for path in files:
        if shown(path.name) != path.name:
            raise DataError(shown(path), "a name that is not UTF-8", "rename the file")
    return sorted(files, key=lambda path: path.stem)


def look(folder: Path, without: Sequence[str] = ()) -> list[list[str]]:
    """Returns words of the first lines of a folder's first text files, to detect the format."""
    rows: list[list[str]] = []
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(".txt"))
        for name in [name for name in names if name not in without][:FILES_LOOKED_AT]:
            with open_files.opened(folder / name) as file:
                data = file.read(0, BYTES_LOOKED_AT)
            whole = data if file.size <= BYTES_LOOKED_AT else data[: data.rfind(b"\n") + 1]
            lines = whole.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace").splitlines()
            rows += [words for words in map(str.split, lines) if words]
    except (OSError, DataError):
        return []
    return rows


def are_numbers(words: Iterable[str]) -> bool:
    """Checks that every word is a number."""
    return all(text_fields.number(word) is not None for word in words)
