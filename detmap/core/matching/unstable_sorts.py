"""Sorts by descending score as reference implementations do, stable or not.

NumPy's default sort is unstable: the order of equal keys depends on version and processor. All
sorts agree on lists without ties, so only lists with ties use the reference's own call.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.core.protocol import Protocol
from detmap.core.tables.grouping import labels


def sort_lists(
    score: NDArray[np.floating[Any]], order: NDArray[np.int32], off: NDArray[np.int64], how: str
) -> tuple[NDArray[np.int32], int]:
    """Sorts each list by descending score; also counts the tied rows ordered by an unstable sort.

    Parameters
    ----------
    score : (D,) float64 or float32, without NaN, in the reference's type
    order : (n,) rows, list by list, before the sort
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
    """The order of NumPy's default sort."""
    if how == "unstable":
        return np.argsort(-score)
    if how == "reversed":
        return np.argsort(score)[::-1]
    backwards = score[::-1].astype(object)  # as pandas sorts object columns, descending
    return (len(score) - 1 - np.argsort(backwards))[::-1]


def number_of(protocol: Protocol) -> type[np.floating[Any]]:
    """Returns the number type of scores."""
    return np.float32 if protocol.detections.score_precision == "float32" else np.float64


def ranked_number(protocol: Protocol) -> type[np.floating[Any]]:
    """Returns the number type of scores in the ranking's sort."""
    return np.float64 if protocol.ranking.precision == "float64" else number_of(protocol)
