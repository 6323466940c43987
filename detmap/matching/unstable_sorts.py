"""Sorts by descending score that need not be stable: what a reference's own sort makes of ties.

NumPy's default sort is not stable, and what it makes of equal keys depends on its version and on
the processor. Where no keys are equal every sort gives one order; so the reference's own call is
made for lists with equal keys, and for no others.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.protocol import Protocol
from detmap.tables.grouping import labels


def sort_lists(
    score: NDArray[np.floating[Any]], order: NDArray[np.int32], off: NDArray[np.int64], how: str
) -> tuple[NDArray[np.int32], int]:
    """Rows of each list by descending score; and how many rows a sort that is not stable placed
    among equals.

    Parameters
    ----------
    score : (D,) float64 or float32, without NaN: the type that the reference sorts
    order : (n,) rows, one list after the other, as they are before the sort
    off : (L + 1,) where each list begins
    how : ``stable``, ``unstable``, ``reversed`` or ``objects``, see `ranking.sort`
    """
    from detmap.kernels.grouping import sorter
    from detmap.kernels.ranked import rank_lists

    placed = order.copy()
    bits = np.ascontiguousarray(score, dtype=np.float64).view(np.uint64)
    rank_lists(bits, off, placed, sorter(int(np.diff(off).max(initial=0))))
    if how == "stable" or not len(order):
        return placed, 0
    values, label = score[placed], labels(off)
    equal = (values[1:] == values[:-1]) & (label[1:] == label[:-1])
    tied = np.zeros(len(order), dtype=bool)
    tied[1:] |= equal
    tied[:-1] |= equal
    for i in np.unique(label[tied]).tolist():
        mine = slice(off[i], off[i + 1])
        placed[mine] = order[mine][_sorted(score[order[mine]], how)]
    return placed, int(tied.sum())


def _sorted(score: NDArray[np.floating[Any]], how: str) -> NDArray[np.intp]:
    """The order that NumPy's default sort gives."""
    if how == "unstable":
        return np.argsort(-score)
    if how == "reversed":
        return np.argsort(score)[::-1]
    backwards = score[::-1].astype(object)  # as pandas sorts a column of objects, descending
    return (len(score) - 1 - np.argsort(backwards))[::-1]


def number_of(protocol: Protocol) -> type[np.floating[Any]]:
    """The floating-point numbers that scores are held in."""
    return np.float32 if protocol.detections.score_precision == "float32" else np.float64


def ranked_number(protocol: Protocol) -> type[np.floating[Any]]:
    """The floating-point numbers that the ranking's sort sees."""
    return np.float64 if protocol.ranking.precision == "float64" else number_of(protocol)
