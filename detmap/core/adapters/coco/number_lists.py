"""Lists of numbers in COCO JSON: polygons and keypoints."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


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


def buffer(size: int, n: int) -> NumberLists:
    """Returns memory for the numbers of n values in a text of `size` bytes."""
    most = size // 2 + 1  # each number has a digit and a separator
    return NumberLists(
        np.empty(most), np.empty(most + 1, dtype=np.int64), np.empty(n + 1, dtype=np.int64)
    )


def read(
    text: NDArray[np.uint8], spans: NDArray[np.int64], depth: int, into: NumberLists
) -> NumberLists | None:
    """Returns the numbers of JSON lists (depth 1) or of lists of lists (depth 2) as views of a
    `buffer`, or None if a value is something else, has an empty list, or a number that the fast
    reader leaves to the reference reader.

    Parameters
    ----------
    spans : (n, 2) where the values begin and end in the text
    """
    from detmap.kernels.scanning.number_lists import read_lists

    if read_lists(text, np.ascontiguousarray(spans), depth, *into) >= 0:
        return None
    list_off = into.list_off[: into.value_off[len(spans)] + 1]
    return NumberLists(into.numbers[: list_off[-1]], list_off, into.value_off[: len(spans) + 1])
