"""Recall and precision of ranked lists: the only place that counts rows in score order and divides.

Lists are concatenated: off (L + 1,) int64 has the start of each. So one loop serves a class, a
whole matrix, or a thousand short queries.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from detmap.kernels import kernel
from detmap.kernels.grouping import rank_by_score


@kernel
def recall_precision(tp: float, fp: float, n_objects: float, epsilon: float) -> Any:
    """Recall and precision for `tp` true and `fp` false positives and `n_objects` objects.

    epsilon is added to the denominator of precision. Without objects recall is NaN; before the
    first row precision is 0. Source: COCOeval.accumulate, ``tp / (fp+tp+np.spacing(1))``;
    VOCevaldet.m has no epsilon.
    """
    ranked = fp + tp + epsilon
    recall = tp / n_objects if n_objects > 0 else np.nan
    precision = tp / ranked if ranked > 0 else 0.0
    return recall, precision


@kernel
def rank_lists(bits: Any, off: Any, order: Any, sorter: Any) -> None:
    """Sort the rows of each list by descending score; ties keep their order.

    bits (n,) uint64, bit patterns of the scores; in and out: order (n,) int32 rows; sorter: a
    `Sorter` of the longest list. Source: the sort of `rank_by_score`, list by list.
    """
    for i in range(off.size - 1):
        rank_by_score(bits, order[off[i] : off[i + 1]], sorter)


@kernel
def count_lists(
    score: Any,
    positive: Any,
    weight: Any,
    off: Any,
    together: bool,
    tp: Any,
    fp: Any,
    threshold: Any,
    point_off: Any,
) -> None:
    """True and false positives at or above each threshold of ranked lists.

    score (n,) float64, descending in each list; positive (n,) bool; weight (n,) float64, or (0,)
    for weights of 1; together: rows of equal score share a threshold, else every row is a
    threshold; out: tp, fp, threshold (n,) float64; point_off (L + 1,) int64, start of each list's
    thresholds. point_off[L] of n places are filled. Source: sklearn.metrics, _binary_clf_curve
    (together); VOCevalcls.m (row by row).
    """
    at = 0
    for i in range(off.size - 1):
        point_off[i] = at
        n_tp, n_fp = 0.0, 0.0
        for row in range(off[i], off[i + 1]):
            gain = weight[row] if weight.size > 0 else 1.0
            if positive[row]:
                n_tp += gain
            else:
                n_fp += gain
            if together and row + 1 < off[i + 1] and score[row + 1] == score[row]:
                continue
            tp[at], fp[at], threshold[at] = n_tp, n_fp, score[row]
            at += 1
    point_off[off.size - 1] = at


@kernel
def curves_of_lists(
    tp: Any, fp: Any, off: Any, n_objects: Any, epsilon: float, recall: Any, precision: Any
) -> None:
    """`recall_precision` at every threshold.

    tp, fp (P,) and off (L + 1,) as from `count_lists`; n_objects (L,) float64; out: recall,
    precision (P,) float64. Source: none; a loop over lists.
    """
    for i in range(off.size - 1):
        for at in range(off[i], off[i + 1]):
            recall[at], precision[at] = recall_precision(tp[at], fp[at], n_objects[i], epsilon)
