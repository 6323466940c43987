"""Splits plain CSV text into cells by the positions of its delimiters.

Text with quotes or line ends inside of quoted cells, blank lines, line ends other than LF
and CR LF, or rows of different lengths is left to Python's csv module, whose cells these are.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from detmap.core.adapters.coded_names import CodedNames
from detmap.core.base.locks import cached_property
from detmap.core.base.parallel import CHUNK
from detmap.kernels.scanning import cell_numbers

WIDE = 64  # bytes of a cell from which on cells are cut one by one
LEAST_CELLS = 1 << 10  # fewer are not worth the compiled scanner

_OF_NUMBERS = np.zeros(256, dtype=bool)
_OF_NUMBERS[np.frombuffer(b"0123456789eE+-. \t\0", dtype=np.uint8)] = True


class Cells(Sequence[str]):
    """The cells of a column.

    Parameters
    ----------
    data : the text, with a line end after each row and WIDE zeros after the last
    begin, end : (n,) where each cell begins and ends
    """

    def __init__(self, data: NDArray[np.uint8], begin: NDArray[Any], end: NDArray[Any]) -> None:
        self.data, self.begin, self.end = data, begin, end

    def __len__(self) -> int:
        return len(self.begin)

    @overload
    def __getitem__(self, row: int) -> str: ...
    @overload
    def __getitem__(self, row: slice) -> Sequence[str]: ...
    def __getitem__(self, row: int | slice) -> str | Sequence[str]:
        return self.strings[row]

    def __iter__(self) -> Iterator[str]:
        return iter(self.strings)

    @property
    def header(self) -> str:
        """Returns the first cell."""
        return self.data[self.begin[0] : self.end[0]].tobytes().decode()

    @property
    def below(self) -> Cells:
        """Returns all cells but the first."""
        return Cells(self.data, self.begin[1:], self.end[1:])

    def take(self, rows: NDArray[Any]) -> Cells:
        """Some of the cells."""
        return Cells(self.data, self.begin[rows], self.end[rows])

    def is_foreign(self, edges: NDArray[Any]) -> NDArray[np.bool_]:
        """Returns whether each part of the text has a byte that no decimal number has.

        Parameters
        ----------
        edges : (n,) ascending positions, where parts begin; the last part is the rest of the text
        """
        found: NDArray[np.bool_] = np.logical_or.reduceat(~_OF_NUMBERS[self.data], edges)
        return found

    @cached_property
    def strings(self) -> list[str]:
        """Returns the texts; equal ones share one object."""
        return list(self.coded)

    def numbers(self) -> NDArray[np.float64]:
        """Returns (n,) numbers. Raises `ValueError` for cells that are not finite decimals."""
        return np.concatenate([np.zeros(0), *map(_numbers, self._parts())])

    @cached_property
    def coded(self) -> CodedNames:
        """Returns the different texts in order of appearance, and the text of each cell."""
        known: dict[bytes, int] = {}
        found = [np.zeros(0, dtype=np.int32)]
        for cells in map(_letters, self._parts()):
            changes = cells[1:] != cells[:-1]  # rows of an image follow each other, often
            runs = np.cumsum(np.append(0, changes), dtype=np.int32)
            listed = cells[np.append(True, changes)].tolist()
            for each in dict.fromkeys(listed):
                known.setdefault(each, len(known))
            code = np.fromiter(map(known.__getitem__, listed), np.int32, len(listed))
            found.append(code[runs])
        return CodedNames([each.decode() for each in known], np.concatenate(found))

    def _parts(self) -> Iterator[Cells]:
        """Yields some of the cells at a time."""
        for at in range(0, len(self), CHUNK):
            yield Cells(self.data, self.begin[at : at + CHUNK], self.end[at : at + CHUNK])


def _letters(cells: Cells) -> NDArray[Any]:
    """(n,) texts as bytes of one width, or as objects."""
    begin, end = cells.begin, cells.end
    size = (end - begin)[:, None]
    width = max(int(size.max()), 1)
    if width > WIDE:
        spans = zip(begin.tolist(), end.tolist(), strict=True)
        return np.array([cells.data[b:e].tobytes() for b, e in spans] + [None])[:-1]
    offset = np.arange(width, dtype=begin.dtype)
    letters = np.where(offset < size, cells.data[begin[:, None] + offset], np.uint8(0))
    return np.ascontiguousarray(letters).view(f"S{width}")[:, 0]


def _numbers(cells: Cells) -> NDArray[np.float64]:
    """(n,) numbers. Raises `ValueError` for cells that are not finite decimals."""
    if len(cells) >= LEAST_CELLS:
        begin, end = (each.astype(np.int64) for each in (cells.begin, cells.end))
        values = np.empty(len(cells))
        if cell_numbers.read_cells(cells.data, begin, end, values) >= 0:
            return values
    letters = _letters(cells)
    if letters.dtype.kind != "S" or not _OF_NUMBERS[letters.view(np.uint8)].all():
        raise ValueError
    return letters.astype(np.float64)  # as by float()


def read_no_cells() -> None:
    """Calls the compiled scanner on nothing, which compiles it."""
    places = np.zeros(0, dtype=np.int64)
    cell_numbers.read_cells(np.frombuffer(b"", dtype=np.uint8), places, places, np.zeros(0))


def split(content: str, delimiter: str) -> list[Cells] | None:
    """The columns of a text, header included; None where the csv module has to read it."""
    if not content or "\0" in content or "\n\n" in content or content.startswith("\n"):
        return None
    if "\r" in content:
        content = content.replace("\r\n", "\n")
        if "\r" in content or "\n\n" in content or content.startswith("\n"):
            return None
    ends = "" if content.endswith("\n") else "\n"
    data = np.frombuffer(f"{content}{ends}{chr(0) * WIDE}".encode(), dtype=np.uint8)
    is_end = data == ord("\n")
    is_mark = is_end | (data == ord(delimiter))
    quotes = data == ord('"')
    n_quotes = np.count_nonzero(quotes)
    if n_quotes:
        inside = np.logical_xor.accumulate(quotes)
        if inside[-1] or (inside & is_end).any():
            return None
        is_mark &= ~inside
    marks = np.flatnonzero(is_mark)
    n_columns = int(np.argmax(is_end[marks])) + 1
    if len(marks) % n_columns:
        return None
    if len(data) < 1 << 31:
        marks = marks.astype(np.int32)
    begin = np.append(marks.dtype.type(0), marks[:-1] + 1).reshape(-1, n_columns)
    end = marks.reshape(-1, n_columns)
    last = is_end[end]
    if last[:, :-1].any() or not last[:, -1].all():
        return None
    if (end - begin).max() > csv.field_size_limit():
        return None
    if n_quotes:
        quoted = quotes[begin] & quotes[end - 1] & (end - begin > 1)
        if 2 * np.count_nonzero(quoted) != n_quotes:  # one is not at the edge of its cell
            return None
        begin, end = begin + quoted, end - quoted
    return [Cells(data, begin[:, c], end[:, c]) for c in range(n_columns)]
