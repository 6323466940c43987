"""Lists of numbers in COCO JSON: polygons and keypoints."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.core.base.immutable import blank


class NumberLists(NamedTuple):
    """The numbers of n values.

    Parameters
    ----------
    numbers : (m,) float64
    list_off : (p + 1,) int64, where each innermost list begins
    value_off : (n + 1,) int64, where the innermost lists of each value begin
    """

    numbers: NDArray[np.float64]
    list_off: NDArray[np.int64]
    value_off: NDArray[np.int64]


def read(text: NDArray[np.uint8], spans: NDArray[np.int64], depth: int) -> NumberLists | None:
    """Returns the numbers of JSON lists (depth 1) or of lists of lists (depth 2), or None if a
    value is something else, has an empty list, or a number that the fast reader leaves to the
    reference reader.

    Parameters
    ----------
    spans : (n, 2) where the values begin and end in the text
    """
    from detmap.kernels.scanning import ascii as signs
    from detmap.kernels.scanning.number_lists import read_lists

    n_lists = int(np.count_nonzero(text == signs.OPEN_LIST))
    n_numbers = n_lists + int(np.count_nonzero(text == signs.COMMA))
    numbers, list_off = blank(n_numbers, np.float64), blank(n_lists + 1, np.int64)
    value_off = blank(len(spans) + 1, np.int64)
    if read_lists(text, np.ascontiguousarray(spans), depth, numbers, list_off, value_off) >= 0:
        return None
    list_off = list_off[: value_off[-1] + 1].copy()
    return NumberLists(numbers[: list_off[-1]].copy(), list_off, value_off)


def join(parts: Sequence[NumberLists]) -> NumberLists:
    """Returns the values of several parts as one."""
    numbers = blank(sum(len(part.numbers) for part in parts), np.float64)
    np.concatenate([np.zeros(0), *(part.numbers for part in parts)], out=numbers)
    list_off, value_off = (
        np.cumsum(np.concatenate([[0], *(np.diff(part[i]) for part in parts)])).astype(np.int64)
        for i in (1, 2)
    )
    return NumberLists(numbers, list_off, value_off)
