"""Rows on disk, written piece by piece and read back by part: by block of images, or by class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.core.base.immutable import blank
from detmap.core.bounded.spill import Column, Spill


class Parts:
    """Columns whose pieces are sorted by part, so that a part is a slice of each piece.

    Parameters
    ----------
    spill : the file
    n_parts : number of parts, P
    """

    def __init__(self, spill: Spill, n_parts: int) -> None:
        self.spill = spill
        self.pieces: list[tuple[tuple[Column, ...], NDArray[np.int64]]] = []
        self.sizes = np.zeros(n_parts, dtype=np.int64)

    def append(self, columns: Sequence[NDArray[Any]], off: NDArray[np.int64]) -> None:
        """Writes the rows of a piece; (P + 1,) `off` has the begin of each part."""
        self.pieces.append((self.spill.append(columns), off))
        self.sizes += np.diff(off)

    def kinds(self) -> tuple[Column, ...]:
        """The columns of a piece: their dtypes and the shapes of their rows."""
        return self.pieces[0][0]

    def read(self, which: int, begin: int, end: int) -> NDArray[Any]:
        """Reads column number `which` of the parts from `begin` up to `end`, piece after piece."""
        if not self.pieces:
            raise ValueError("no pieces")  # the caller appends at least one
        first = self.pieces[0][0][which]
        n_rows = int(self.sizes[begin:end].sum())
        out, done = blank((n_rows, *first.row), first.dtype), 0
        for columns, off in self.pieces:
            n = int(off[end] - off[begin])
            self.spill.read_into(out[done : done + n], columns[which], int(off[begin]))
            done += n
        return out


def grouped(sizes: NDArray[np.int64], most: int) -> list[tuple[int, int]]:
    """Returns ranges of consecutive parts with at most `most` rows each, or of one part."""
    ranges, begin, total = [], 0, 0
    for i, size in enumerate(sizes.tolist()):
        if i > begin and total + size > most:
            ranges.append((begin, i))
            begin, total = i, 0
        total += size
    return [*ranges, (begin, len(sizes))]
