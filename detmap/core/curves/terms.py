"""Blocks of AP terms, for protocols with too many terms to keep in memory.

They are computed on demand, and summed with the same bits as one array.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.core.base import memory

Floats = NDArray[np.float64]
Make = Callable[[int, slice, slice], Floats]

MOST_KEPT = 1 << 23  # terms in one array: all of LVIS, 64 MiB
BLOCK = 1 << 20  # terms per block
WAY_OUT = (
    "use fewer iou.thresholds, areas or recall points (--set), or an AP interpolation without "
    "recall points (--set ap.integrator=all_points)"
)


class Blocks:
    """Terms (A, T, R, J), computed on demand.

    Parameters
    ----------
    shape : (A, T, R, J)
    make : from a position in A, a slice of T and a slice of J to (T', R, J')
    """

    def __init__(self, shape: tuple[int, int, int, int], make: Make) -> None:
        self.shape, self.make = shape, make

    def threshold_blocks(self, a: int, t: int | None) -> list[Callable[[], Floats]]:
        """Returns functions that give (1, R, J), for one or for each threshold."""
        every, places = slice(0, self.shape[3]), range(self.shape[1]) if t is None else [t]
        return [lambda t=t: self.make(a, slice(t, t + 1), every) for t in places]  # type: ignore[misc]

    def class_blocks(self, a: int, t: int | None) -> Iterator[Floats]:
        """(T', R, J') by blocks of classes, at one or at all thresholds."""
        thresholds = slice(0, self.shape[1]) if t is None else slice(t, t + 1)
        step = max(1, BLOCK // (self.shape[1] * self.shape[2]))
        for begin in range(0, self.shape[3], step):
            yield self.make(a, thresholds, slice(begin, min(begin + step, self.shape[3])))

    def __getitem__(self, a: int) -> Floats:
        memory.require(8 * math.prod(self.shape[1:]), "protocol", self._what(), WAY_OUT)
        return self.make(a, slice(0, self.shape[1]), slice(0, self.shape[3]))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        del copy
        memory.require(2 * 8 * math.prod(self.shape), "protocol", self._what(), WAY_OUT)
        return np.stack([self[a] for a in range(self.shape[0])]).astype(dtype or float, copy=False)

    def __reduce__(self) -> tuple[Any, ...]:  # `make` cannot be pickled
        return np.asarray, (np.asarray(self),)

    def _what(self) -> str:
        return f"the array of all terms of AP of {self.shape[3]} classes with objects"


def restricted(ranked: Any, a: int, thresholds: slice) -> Any:
    """Returns `kernels.curves.Ranked` of one area range and some thresholds."""
    number = ranked.tp.dtype.type
    mask = number((1 << (thresholds.stop - thresholds.start)) - 1)
    tp, ignored = (
        np.ascontiguousarray((words[:, a : a + 1] >> number(thresholds.start)) & mask)
        for words in (ranked.tp, ranked.ignored)
    )
    return ranked._replace(tp=tp, ignored=ignored)


def total(parts: Iterator[NDArray[Any]], n: int) -> Any:
    """Returns the sum of n numbers in parts, bit-identical to `np.sum` of one array.

    NumPy halves the numbers, to a multiple of eight, until 128 are left, so a block has the same
    sum inside the whole. Versions before 2.3 do so in pieces only: there the last bit may differ.
    """
    return _halved(_Queue(parts), n)


def _halved(queue: _Queue, n: int) -> Any:
    if n <= max(BLOCK, 128):
        return np.add.reduce(queue.take(n))
    half = n // 2
    half -= half % 8
    left = _halved(queue, half)
    return left + _halved(queue, n - half)


class _Queue:
    """Numbers in parts, read in other counts."""

    def __init__(self, parts: Iterator[NDArray[Any]]) -> None:
        self.parts, self.rest = parts, NOTHING

    def take(self, n: int) -> NDArray[Any]:
        """The next n numbers."""
        taken: list[NDArray[Any]] = []
        while n:
            if not len(self.rest):
                self.rest = NOTHING  # frees memory before the next part
                self.rest = next(self.parts)
            taken.append(self.rest[:n])
            n, self.rest = n - len(taken[-1]), self.rest[n:]
        return taken[0] if len(taken) == 1 else np.concatenate(taken or [NOTHING])


NOTHING = np.empty(0)
