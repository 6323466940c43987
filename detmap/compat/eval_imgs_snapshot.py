"""Notices whether ``evalImgs`` was changed after it was made."""

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from itertools import chain, repeat
from operator import is_, itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

Cell = dict[str, Any]
COLUMNS = ("dtScores", "dtMatches", "dtIgnore", "gtIgnore")
"""What ``accumulate`` reads of a cell."""


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """``evalImgs`` as it was made.

    Parameters
    ----------
    listed : the cells by category, area range and image; None for cells without rows
    cells : those with rows, by area range, category and image
    values : what they have under each of `COLUMNS`, cell by cell
    scores : the scores of all cells of an area range
    sizes : (C,) number of scores of each cell of an area range
    arrays : the large arrays of which the cells' arrays are parts
    digest : of the content of these arrays
    """

    listed: list[Cell | None]
    cells: list[Cell]
    values: list[Any]
    scores: list[float]
    sizes: NDArray[np.int64]
    arrays: list[NDArray[Any]]
    digest: bytes

    def shows(self, results: Any) -> bool:
        """Whether ``accumulate`` would read from `results` what was made.

        The list may be another one, with the same cells. An array whose shape was changed in place
        is not noticed.
        """
        try:
            if len(results) != len(self.listed) or not all(map(is_, results, self.listed)):
                return False
            if not all(map(is_, read(self.cells), self.values)):
                return False
        except (TypeError, KeyError):
            return False
        lists = self.values[:: len(COLUMNS)]
        n_areas = len(lists) // max(len(self.sizes), 1)
        sizes = np.fromiter(map(len, lists), np.int64, len(lists))
        if not np.array_equal(sizes, np.tile(self.sizes, n_areas)):
            return False
        expected = chain.from_iterable(repeat(self.scores, n_areas))
        same_scores = all(map(is_, chain.from_iterable(lists), expected))
        return same_scores and digest(self.arrays) == self.digest


def read(cells: Iterable[Cell]) -> Iterable[Any]:
    """The values of each cell under `COLUMNS`, cell by cell."""
    return chain.from_iterable(map(itemgetter(*COLUMNS), cells))


def digest(arrays: Iterable[NDArray[Any]]) -> bytes:
    """A hash of the content of contiguous arrays."""
    hashed = sha256()
    for array in arrays:
        hashed.update(array.data.cast("B") if array.size else b"")
    return hashed.digest()
