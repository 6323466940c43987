"""Scores of ranked lists: areas under ROC curves, precisions among the first k rows.

Lists are concatenated, as in `detmap.kernels.ranked`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from detmap.kernels import kernel


@kernel
def roc_areas(tp: Any, fp: Any, off: Any, area: Any) -> None:
    """Area under the ROC curve of each list: trapezoids between thresholds, so ties count half.

    tp, fp (P,) and off (L + 1,) as from `count_lists`; out: area (L,) float64, NaN without
    positives or negatives. Doubled areas are summed before a single division: integer weights give
    the exact number of concordant pairs. Source: sklearn.metrics.roc_auc_score; reference
    implementation in tests/reference/ranking.py.
    """
    for i in range(off.size - 1):
        doubled, n_tp, n_fp = 0.0, 0.0, 0.0
        for at in range(off[i], off[i + 1]):
            doubled += (fp[at] - n_fp) * (tp[at] + n_tp)
            n_tp, n_fp = tp[at], fp[at]
        area[i] = doubled / 2 / (n_tp * n_fp) if n_tp * n_fp > 0 else np.nan


@kernel
def top_of_lists(positive: Any, order: Any, off: Any, k: int, n_hits: Any, precisions: Any) -> None:
    """Number of positives among the first k rows of each ranked list, and the sum of the precision
    at each.

    positive (n,) bool; order (n,) int32 and off (L + 1,) as from `rank_lists`; out: n_hits,
    precisions (L,) float64. Source: average precision at k of retrieval; reference implementation
    in tests/reference/ranking.py.
    """
    for i in range(off.size - 1):
        hits, total = 0.0, 0.0
        for place in range(off[i], min(off[i] + k, off[i + 1])):
            if positive[order[place]]:
                hits += 1.0
                total += hits / (place - off[i] + 1)
        n_hits[i], precisions[i] = hits, total
