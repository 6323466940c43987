"""Pairs of boxes of the same cell that are not apart, some at a time: memory does not depend on
their number.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

EVERY_PAIR = float("nan")
"""In place of what boxes share: none are apart."""

Rows = NDArray[np.int64]
Floats = NDArray[np.float64]


def near(
    mine: NDArray[np.int32],
    cells: tuple[Rows, Rows],
    sides: tuple[Floats, Floats],
    apart: float,
    at_once: int,
) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
    """Yields places in `mine` and rows of the second boxes: by place, then by row.

    Parameters
    ----------
    mine : (n,) rows of the first boxes
    cells : (n,) where the second boxes of each one's cell begin and end
    sides : (., 4) left, top, right and bottom of first and second boxes
    apart : boxes are apart if they share no more than this in x or in y, or `EVERY_PAIR`
    at_once : pairs of a cell that are looked at in a step; a first box's pairs are not divided
    """
    from detmap.kernels.pairs import list_near

    (first, last), (own, others) = cells, sides
    total = np.cumsum(last - first)
    begin = 0
    while begin < len(mine):
        done = int(total[begin - 1]) if begin else 0
        end = max(begin + 1, int(np.searchsorted(total, done + at_once, "right")))
        some = slice(begin, end)
        i, g = (np.empty(int(total[end - 1]) - done, dtype=np.int64) for _ in range(2))
        n = list_near(mine[some], first[some], last[some], own, others, apart, i, g)
        yield i[:n] + begin, g[:n]
        begin = end
