"""Retrieval metrics: each row is a query, its scores rank the documents (columns), its labels mark
the relevant ones.

A list is cut after k ranks, so ties need an order: the earlier column ranks first. NaN: all metrics
of a query without predictions (all scores -inf), recall and AP of a query without relevant
documents.
"""

import operator
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from detmap.core.curves import scores as curves
from detmap.core.curves.scores import Lists
from detmap.errors import DataError
from detmap.ranking.label_inputs import Samples, choice, samples
from detmap.ranking.metrics import UNDEFINED, Value, each_largest_first, mean

Denominator = Literal["possible", "relevant", "found"]
DENOMINATORS = ("possible", "relevant", "found")


def precision_at_k(
    y_true: ArrayLike, y_score: ArrayLike, k: int, *, pos_label: Any = None
) -> Value:
    """Share of relevant documents among the first k ranks; shorter lists are divided by k too.

    Parameters
    ----------
    y_true, y_score, pos_label : (Q, D), one query per row; (D,) for one query; or (Q,) the index
        of the one relevant document, with (Q, D) scores. See `detmap.ranking.label_inputs.samples`
    k : number of ranks, at least 1

    Returns
    -------
    (Q,) float64, or a float for a single query.

    Raises
    ------
    DataError : k below 1, labels that are not 0/1, scores that are NaN, different shapes
    """
    return _one_or_all(y_true, y_score, pos_label, k, 0)


def recall_at_k(y_true: ArrayLike, y_score: ArrayLike, k: int, *, pos_label: Any = None) -> Value:
    """Share of a query's relevant documents among the first k ranks.

    Parameters, Returns, Raises : as in `precision_at_k`
    """
    return _one_or_all(y_true, y_score, pos_label, k, 1)


def average_precision_at_k(
    y_true: ArrayLike,
    y_score: ArrayLike,
    k: int,
    *,
    denominator: Denominator = "possible",
    pos_label: Any = None,
) -> Value:
    """Sum of the precision at each relevant document among the first k ranks, divided.

    Parameters
    ----------
    y_true, y_score, k, pos_label : as of `precision_at_k`
    denominator : ``possible``: min(k, relevant documents), so that a perfect list has AP 1;
        ``relevant``: all relevant documents (trec_eval's map_cut); ``found``: those among the first
        k (torchmetrics), 0 where there is none

    Returns, Raises : as of `precision_at_k`
    """
    return _one_or_all(y_true, y_score, pos_label, k, 2, denominator)


def mean_average_precision_at_k(
    y_true: ArrayLike,
    y_score: ArrayLike,
    k: int,
    *,
    denominator: Denominator = "possible",
    undefined: str = "skip",
    pos_label: Any = None,
) -> float:
    """Mean over queries of `average_precision_at_k`.

    Parameters
    ----------
    y_true, y_score, k, denominator, pos_label : as of `average_precision_at_k`
    undefined : what a query without a relevant document or without a prediction adds: nothing
        (``skip``), 0 (``zero``) or 1 (``one``)

    Raises
    ------
    DataError : as of `precision_at_k`
    """
    choice("undefined", undefined, UNDEFINED)
    return mean(
        np.atleast_1d(
            average_precision_at_k(y_true, y_score, k, denominator=denominator, pos_label=pos_label)
        ),
        undefined,
    )


def top_of_queries(
    checked: Samples, k: int, denominator: str = "possible", threads: int | None = None
) -> NDArray[np.float64]:
    """(3, Q) precision, recall and AP at k of each row, NaN where undefined."""
    blocks = list(checked.blocks())
    parts = [np.empty((3, 0))] * len(blocks)

    def rows(i: int) -> None:
        parts[i] = _top(checked.rows(blocks[i]), k, denominator)

    each_largest_first(rows, [block.stop - block.start for block in blocks], threads)
    return np.hstack([np.empty((3, 0)), *parts])


def ranks(k: Any) -> int:
    """A checked number of ranks."""
    try:
        number = operator.index(k)
    except Exception:  # any error of an object that is converted to a number
        number = 0
    if number < 1 or isinstance(k, bool):
        raise DataError("k", f"{k!r:.60}", "k counts ranks: a whole number from 1")
    return min(number, 2**31 - 1)


def _one_or_all(
    y_true: ArrayLike,
    y_score: ArrayLike,
    pos_label: Any,
    k: int,
    which: int,
    denominator: str = "possible",
) -> Value:
    k = ranks(k)
    choice("denominator", denominator, DENOMINATORS)
    checked = samples(y_true, y_score, pos_label=pos_label)
    if checked.single:  # (D,): one query, its documents laid out as classes
        return float(
            top_of_queries(Samples(checked.positive.T, checked.score.T), k, denominator)[which, 0]
        )
    values: NDArray[np.float64] = top_of_queries(checked, k, denominator)[which]
    return values


def _top(lists: Lists, k: int, denominator: str) -> NDArray[np.float64]:
    from detmap.ranking.kernels import list_scores

    n_lists = len(lists.off) - 1
    n_found, precisions = np.empty(n_lists), np.empty(n_lists)
    list_scores.top_of_lists(
        lists.positive, curves.order_of(lists), lists.off, k, n_found, precisions
    )
    query = np.repeat(np.arange(n_lists), np.diff(lists.off))
    n_relevant = np.bincount(query, lists.positive, n_lists)
    divisor = {"possible": np.minimum(k, n_relevant), "relevant": n_relevant, "found": n_found}[
        denominator
    ]
    top = np.stack(
        [n_found / k, n_found / np.maximum(n_relevant, 1), precisions / np.maximum(divisor, 1)]
    )
    top[1:, n_relevant == 0] = np.nan
    top[:, np.bincount(query, lists.score > -np.inf, n_lists) == 0] = np.nan
    return top
