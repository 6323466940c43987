"""Lists of numbers that the fast reader left as text: polygons and keypoints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.base.immutable import blank
from detmap.base.parallel import map_ordered
from detmap.overlaps.ragged_runs import offsets

AT_ONCE = 4096
"""Texts that a thread reads at a time."""


class NumberLists(NamedTuple):
    """The numbers of n texts.

    Parameters
    ----------
    numbers : (m,) float64
    list_off : (p + 1,) int64, where each innermost list begins
    text_off : (n + 1,) int64, where the innermost lists of each text begin
    """

    numbers: NDArray[np.float64]
    list_off: NDArray[np.int64]
    text_off: NDArray[np.int64]


def read(texts: Sequence[bytes], depth: int) -> NumberLists | None:
    """Returns the numbers of JSON lists (depth 1) or of lists of lists (depth 2), or None if a
    text is another value, has an empty list, or a number that the fast reader leaves to the
    reference reader.
    """
    slices = [texts[at : at + AT_ONCE] for at in range(0, len(texts), AT_ONCE)] or [texts]
    threads = 1 if len(slices) < 2 else None
    parts = list(map_ordered(lambda some: _read(some, depth), slices, threads))
    if len(parts) == 1 or None in parts:
        return None if None in parts else parts[0]
    numbers, *ends = zip(*(each for each in parts if each), strict=True)
    joined = (np.append(0, np.cumsum(np.concatenate([np.diff(o) for o in each]))) for each in ends)
    return NumberLists(np.concatenate(numbers), *joined)


def _read(texts: Sequence[bytes], depth: int) -> NumberLists | None:
    """Returns what `read` does, in one thread."""
    from detmap.kernels.scanning import ascii as signs
    from detmap.kernels.scanning.number_lists import read_lists

    text = np.frombuffer(b"".join(texts), dtype=np.uint8)
    n_lists = int(np.count_nonzero(text == signs.OPEN_LIST))
    n_numbers = n_lists + int(np.count_nonzero(text == signs.COMMA))
    numbers, list_off = blank(n_numbers, np.float64), blank(n_lists + 1, np.int64)
    text_off = blank(len(texts) + 1, np.int64)
    if read_lists(text, offsets(texts), depth, numbers, list_off, text_off) >= 0:
        return None
    list_off = list_off[: text_off[-1] + 1]
    return NumberLists(numbers[: list_off[-1]], list_off, text_off)
