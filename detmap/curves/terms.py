"""The terms of AP where a class, area range, threshold and recall point each are too many numbers
to keep: they are made by blocks when a mean asks for them, and summed as NumPy sums the whole.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.base import memory

Floats = NDArray[np.float64]
Make = Callable[[int, slice, slice], Floats]

MOST_KEPT = 1 << 23  # terms that are kept as one array: all of LVIS, 64 MiB
BLOCK = 1 << 20  # terms of classes that are made at a time; numbers that are summed at once
WAY_OUT = (
    "evaluate with fewer iou.thresholds, areas or recall points (--set), or only AP by a rule "
    "without recall points (--set ap.integrator=all_points)"
)


class Blocks:
    """Terms (A, T, R, J) of which a part is made when it is asked for.

    Parameters
    ----------
    shape : (A, T, R, J)
    make : takes a place of A, a slice of T and a slice of J; gives (T', R, J')
    """

    def __init__(self, shape: tuple[int, int, int, int], make: Make) -> None:
        self.shape, self.make = shape, make

    def by_threshold(self, a: int, t: int | None) -> list[Callable[[], Floats]]:
        """Makers of (1, R, J), for one or for each threshold."""
        every, places = slice(0, self.shape[3]), range(self.shape[1]) if t is None else [t]
        return [lambda t=t: self.make(a, slice(t, t + 1), every) for t in places]  # type: ignore[misc]

    def by_class(self, a: int, t: int | None) -> Iterator[Floats]:
        """(T', R, J') of some classes after the other, at one or at all thresholds."""
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

    def __reduce__(self) -> tuple[Any, ...]:  # what makes them stays on its machine
        return np.asarray, (np.asarray(self),)

    def _what(self) -> str:
        return f"the array of all terms of AP of {self.shape[3]} classes with objects"


def restricted(ranked: Any, a: int, thresholds: slice) -> Any:
    """`kernels.curves.Ranked` of one area range and some thresholds."""
    number = ranked.tp.dtype.type
    mask = number((1 << (thresholds.stop - thresholds.start)) - 1)
    tp, ignored = (
        np.ascontiguousarray((words[:, a : a + 1] >> number(thresholds.start)) & mask)
        for words in (ranked.tp, ranked.ignored)
    )
    return ranked._replace(tp=tp, ignored=ignored)


def total(parts: Iterator[NDArray[Any]], n: int) -> Any:
    """The sum of n numbers that come in parts, in every bit the `np.sum` of them in one array.

    NumPy halves the numbers, to a multiple of eight, until 128 are left; a block of them is summed
    by itself as it is summed inside of the whole.
    """
    return _halved(_Queue(parts), n)


def _halved(queue: _Queue, n: int) -> Any:
    if n <= max(BLOCK, 128):
        return np.sum(queue.take(n))
    half = n // 2
    half -= half % 8
    left = _halved(queue, half)
    return left + _halved(queue, n - half)


class _Queue:
    """Numbers that come in parts, taken by other counts."""

    def __init__(self, parts: Iterator[NDArray[Any]]) -> None:
        self.parts, self.rest = parts, np.empty(0)

    def take(self, n: int) -> NDArray[Any]:
        """The next n of them."""
        taken = [self.rest[:n]]
        n, self.rest = n - len(taken[0]), self.rest[n:]
        while n:
            self.rest = np.empty(0)  # before the next is made
            part = next(self.parts)
            taken.append(part[:n])
            n, self.rest = n - len(taken[-1]), part[n:]
        return taken[0] if len(taken) == 1 else np.concatenate(taken[not len(taken[0]) :])
