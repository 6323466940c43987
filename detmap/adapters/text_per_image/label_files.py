"""Reads folders with one text file per image and one line per box."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.adapters import text_fields
from detmap.adapters.joining.join import MAX_PIXEL
from detmap.base import open_files
from detmap.base.open_files import shown
from detmap.errors import DataError

FILES_LOOKED_AT, BYTES_LOOKED_AT = 40, 1 << 12


@dataclass(frozen=True, slots=True, eq=False)
class Lines:
    """The n non-empty lines of text files.

    Parameters
    ----------
    files : in order; a line points into them
    file : (n,) int32
    number : n line numbers, from 1
    words : n lists of words
    """

    files: Sequence[Path]
    file: NDArray[np.int32]
    number: Sequence[int]
    words: Sequence[list[str]]

    def place(self, row: int) -> str:
        """Returns file and line, for messages."""
        return f"{shown(self.files[self.file[row]])}: line {self.number[row]}"

    def stems(self) -> list[str]:
        """Returns the file stem of each line."""
        stems = [file.stem for file in self.files]
        return [stems[i] for i in self.file.tolist()]

    def numbers(self, names: Sequence[str], begin: int = 0) -> NDArray[np.float64]:
        """Returns (n, k) the words from `begin` on as finite numbers; `names` describes each."""
        end = begin + len(names)
        wanted = (words[begin:end] for words in self.words) if begin else self.words
        flat = list(chain.from_iterable(wanted))
        try:
            table = np.array(text_fields.numbers(flat), dtype=np.float64).reshape(-1, len(names))
        except ValueError:
            table = np.full((1, 1), np.nan)
        if not (np.abs(table) <= MAX_PIXEL).all():
            self._refuse(begin, names)
        return table

    def take(self, rows: NDArray[Any]) -> Lines:
        """Selects lines."""
        chosen = rows.tolist()
        number, words = [self.number[i] for i in chosen], [self.words[i] for i in chosen]
        return Lines(self.files, self.file[rows], number, words)

    def _refuse(self, begin: int, names: Sequence[str]) -> None:
        for row, words in enumerate(self.words):
            for name, word in zip(names, words[begin:], strict=False):
                number = text_fields.number(word)
                most = sys.float_info.max if name == "score" else MAX_PIXEL
                if number is None or not abs(number) <= most:
                    raise DataError(
                        f"{self.place(row)}, {name}",
                        f"{text_fields.short(word)} is not a finite number",
                        "write plain numbers, separated by spaces",
                    )


def read(files: Sequence[Path]) -> Lines:
    """Reads the lines of text files."""
    file, number, words = [], [], []
    for i, path in enumerate(files):
        for line, numbers in text_fields.lines(path):
            file.append(i)
            number.append(line)
            words.append(numbers)
    return Lines(files, np.array(file, dtype=np.int32), number, words)


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
