"""Reads folders with one text file per image and one line per box."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.core.adapters import folder_files, text_fields
from detmap.core.adapters.coded_names import CodedNames
from detmap.core.adapters.joining.join import MAX_PIXEL
from detmap.core.adapters.tabular.csv_cells import WIDE, Cells
from detmap.core.base import open_files
from detmap.core.base.flat_rows import first_true
from detmap.core.base.open_files import shown
from detmap.core.tables import Note
from detmap.errors import DataError

FILES_LOOKED_AT, BYTES_LOOKED_AT = 40, 1 << 12
BYTES_AT_ONCE = 1 << 20  # of a text; larger arrays take longer to get than to fill
TEXT = ".txt"
NO_DETECTIONS = "for a detector without detections, give a JSON file that holds []"
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
    separated_by : what separates the words, for messages
    """

    files: Sequence[Path]
    file: NDArray[np.int32]
    number: NDArray[Any]
    words: Cells
    first: NDArray[Any]
    count: NDArray[Any]
    separated_by: str = "spaces"

    def __len__(self) -> int:
        return len(self.file)

    def place(self, row: int) -> str:
        """Returns file and line, for messages."""
        return f"{shown(self.files[self.file[row]])}: line {self.number[row]}"

    def text(self, row: int) -> str:
        """The words of a line, for messages."""
        return " ".join(self.words.take(self.first[row] + np.arange(self.count[row])))

    def refuse(self, bad: NDArray[np.bool_], fix: str, noun: str = "words") -> None:
        """Raises `DataError` for the first of the lines that have a wrong number of words."""
        if (row := first_true(bad)) is not None:
            what = f"{self.count[row]} {noun}: {text_fields.short(self.text(row))}"
            raise DataError(self.place(row), what, fix)

    def stems(self) -> CodedNames:
        """Returns the file stem of each line."""
        used = np.bincount(self.file, minlength=len(self.files)) > 0
        stems = [self.files[i].stem for i in np.flatnonzero(used).tolist()]
        return CodedNames(stems, (np.cumsum(used) - 1)[self.file])

    def column(self, place: int) -> CodedNames:
        """The word of each line at this place."""
        return self.words.take(self.first + place).coded

    def numbers(self, names: Sequence[str], begin: int = 0) -> NDArray[np.float64]:
        """(n, k) the words from `begin` on as numbers; `names` are their meanings, for messages.

        Raises
        ------
        DataError : a word that is no number, or none that is finite
        """
        cells, table = self._values(begin, len(names))
        most = [sys.float_info.max if name == "score" else MAX_PIXEL for name in names]
        bad = ~(np.abs(table) <= most)
        if bad.any():
            row, column = np.argwhere(bad)[0].tolist()
            raise DataError(
                f"{self.place(row)}, {names[column]}",
                text_fields.not_finite(cells[row * len(names) + column]),
                f"write plain numbers, separated by {self.separated_by}",
            )
        return table

    def n_unreadable(self, begin: int, n: int) -> int:
        """Counts the lines with a letter or sign that no number has among n words from `begin` on.

        For words that nothing reads: their numbers are not made, which would take twice the time.
        """
        if not len(self):
            return 0
        first, last = self.first + begin, self.first + begin + n - 1
        edges = np.stack([self.words.begin[first], self.words.end[last]], axis=1).ravel()
        return int(self.words.is_foreign(edges)[::2].sum())

    def _values(self, begin: int, n: int) -> tuple[Cells, NDArray[np.float64]]:
        """The n words of each line from `begin` on, and as (lines, n) numbers, NaN for others."""
        cells = self.words.take((self.first[:, None] + begin + np.arange(n)).ravel())
        try:
            values = cells.numbers()
        except ValueError:
            found = map(text_fields.number, cells)
            values = np.array([np.nan if each is None else each for each in found])
        return cells, values.reshape(-1, n)

    def take(self, rows: NDArray[Any]) -> Lines:
        """Some of the lines."""
        some = [column[rows] for column in (self.file, self.number, self.first, self.count)]
        return Lines(self.files, some[0], some[1], self.words, some[2], some[3], self.separated_by)


def read(files: Sequence[Path], separator: bytes = b" ") -> Lines:
    """The lines of text files, whose words are found in all files at once; see `text_fields`.

    `separator` parts words as spaces and tabs do; one may end a line.

    Raises
    ------
    DataError : a file that cannot be read, or is not UTF-8; two separators without a word between
    """
    parts = [text_fields.decoded(path).encode() for path in files]
    if separator != b" ":
        _refuse_empty_cells(files, parts, separator)
        parts = [part.replace(separator, b" ") for part in parts]
    data = np.frombuffer(b"\n".join([b"", *parts, bytes(WIDE)]), dtype=np.uint8)
    begins = np.cumsum([1, *(len(part) + 1 for part in parts)])  # of the files
    _refuse_nul(files, parts)
    used = data[: begins[-1]]
    edges, ends = _word_edges(used), _line_ends(used)
    words = Cells(data, edges[::2], edges[1::2])
    upto = np.searchsorted(edges, ends, side="right") // 2  # words before each line end
    count = np.diff(upto)
    rows = np.flatnonzero(count)
    last = np.searchsorted(ends, begins[:-1])  # the line that begins with each file
    file = np.searchsorted(last, rows + 1, side="right") - 1
    number = rows + 2 - last[file]
    by = "spaces" if separator == b" " else "commas"
    return Lines(files, file.astype(np.int32), number, words, upto[rows], count[rows], by)


def _word_edges(data: NDArray[np.uint8]) -> NDArray[Any]:
    """Returns where words begin and end, in turn, of a text that begins and ends with a gap."""
    found = [np.zeros(0, dtype=_position(data))]
    for at in range(0, len(data) - 1, BYTES_AT_ONCE):
        is_gap = _GAPS[data[at : at + BYTES_AT_ONCE + 1]]
        edges = np.flatnonzero(is_gap[1:] != is_gap[:-1]).astype(found[0].dtype)
        edges += at + 1
        found.append(edges)
    return np.concatenate(found)


def _line_ends(data: NDArray[np.uint8]) -> NDArray[Any]:
    """Returns where lines end, of a text that ends with LF: at LF, CR LF or CR."""
    found = [np.zeros(0, dtype=_position(data))]
    for at in range(0, len(data), BYTES_AT_ONCE):
        some = data[at : at + BYTES_AT_ONCE]
        is_end = some == LF
        if (is_return := some == CR).any():
            after = data[at + 1 : at + len(some) + 1]
            is_return[: len(after)] &= after != LF
            is_end |= is_return
        ends = np.flatnonzero(is_end).astype(found[0].dtype)
        ends += at
        found.append(ends)
    return np.concatenate(found)


def _position(data: NDArray[np.uint8]) -> type[np.signedinteger[Any]]:
    return np.int32 if len(data) < 1 << 31 else np.int64


def _refuse_empty_cells(files: Sequence[Path], parts: Sequence[bytes], separator: bytes) -> None:
    """An error on the first cell without a word, which would move those after it."""
    empty = re.compile(rb"(?:^|[\r\n]|%s)[ \t]*(?=%s)" % (separator, separator))
    for path, part in zip(files, parts, strict=True):
        if found := empty.search(part):
            before = text_fields.split(part[: found.end()].decode())
            where = f"{shown(path)}: line {len(before)}, column {before[-1].count(',') + 1}"
            raise DataError(where, "'' is not a number", "fill the cell")


def _refuse_nul(files: Sequence[Path], parts: Sequence[bytes]) -> None:
    """An error on the first NUL, which no array of words can end with."""
    for path, part in zip(files, parts, strict=True):
        if (at := part.find(0)) >= 0:
            line = len(text_fields.LINE_END.findall(part[:at].decode())) + 1
            where = f"{shown(path)}: line {line}"
            raise DataError(where, "holds a NUL byte", "write the file as plain text in UTF-8")


def listed(folder: Path) -> list[Path]:
    """Returns the text files of a folder, by stem; see `folder_files.listed`."""
    return folder_files.listed(folder, TEXT)


def required(folder: Path, fix: str = "give a folder with one text file per image") -> list[Path]:
    """Returns the text files of a folder. Raises `DataError` if there are none."""
    return folder_files.required(folder, TEXT, fix)


def unread(folder: Path) -> tuple[Note, ...]:
    """Returns a note on text files in sub-folders, which are not read."""
    return folder_files.unread(folder, TEXT)


def look(folder: Path, without: Sequence[str] = ()) -> list[list[str]]:
    """Returns words of the first lines of a folder's first text files, to detect the format."""
    rows: list[list[str]] = []
    names = sorted(folder_files.names(folder, TEXT))
    for name in [name for name in names if name not in without][:FILES_LOOKED_AT]:
        data = open_files.head(folder / name, BYTES_LOOKED_AT + 1)
        if len(data) > BYTES_LOOKED_AT:
            data = data[: data.rfind(b"\n") + 1]
        lines = data.decode("utf-8", "replace").splitlines()
        rows += [words for words in map(str.split, lines) if words]
    return rows


def are_blank(folder: Path) -> bool:
    """Checks that a folder has text files, and that none has a line with words."""
    files = [folder / name for name in folder_files.names(folder, TEXT)]
    return bool(files) and not any(map(_has_words, files))


def _has_words(file: Path) -> bool:
    with open_files.opened(file) as opened:
        return bool(opened.read(0, BYTES_LOOKED_AT).strip()) or opened.size > BYTES_LOOKED_AT


def are_numbers(words: Iterable[str]) -> bool:
    """Checks that every word is a number."""
    return all(text_fields.number(word) is not None for word in words)
