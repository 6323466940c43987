"""Ranked verdicts of one class to precision-recall curves, kept at their true positives only.

Recall rises only at a true positive, and between two of them precision only falls; so the curve's envelope, and every
integral over recall, is decided at the true positives.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from detmap.kernels import kernel


@kernel
def true_positives(tp: Any, ignored: Any, rank: Any, limit: int, false_before: Any, row: Any, n_tp: Any, n_fp: Any) -> None:
    """Where the true positives of each curve stand in the ranked list.

    tp, ignored (n, A) words, best score first; rank (n,) int32; limit: rows of this rank or more do not count;
    out: false_before (A, T, P) int32, false positives ranked before each true positive; row (A, T, P) int32, its row;
    n_tp, n_fp (A, T) int64, zero on entry. P is at least the number of objects to find.
    """
    n_areas, n_thresholds = n_tp.shape
    zero = np.uint64(0)
    full = ~zero >> np.uint64(64 - n_thresholds)
    plain = np.zeros(n_areas, np.int64)  # rows that are false at every threshold
    for r in range(tp.shape[0]):
        if rank[r] >= limit:
            continue
        for a in range(n_areas):
            found, excused = np.uint64(tp[r, a]), np.uint64(ignored[r, a])
            if found == zero:
                if excused == zero:
                    plain[a] += 1
                    continue
                if excused == full:
                    continue
            for t in range(n_thresholds):
                bit = np.uint64(1) << np.uint64(t)
                if found & bit:
                    k = n_tp[a, t]
                    false_before[a, t, k] = plain[a] + n_fp[a, t]
                    row[a, t, k] = r
                    n_tp[a, t] = k + 1
                elif not excused & bit:
                    n_fp[a, t] += 1
    for a in range(n_areas):
        for t in range(n_thresholds):
            n_fp[a, t] += plain[a]


@kernel
def count_true_positives(tp: Any, rank: Any, limits: Any, n_tp: Any) -> None:
    """True positives within each detection limit.

    tp (n, A) words; rank (n,) int32; limits (M,) int64, ascending; out: n_tp (M, A, T) int64, zero on entry.
    """
    n_limits, n_areas, n_thresholds = n_tp.shape
    for r in range(tp.shape[0]):
        m = 0
        while m < n_limits and rank[r] >= limits[m]:
            m += 1
        if m == n_limits:
            continue
        for a in range(n_areas):
            found = np.uint64(tp[r, a])
            if found == np.uint64(0):
                continue
            for t in range(n_thresholds):
                if found & (np.uint64(1) << np.uint64(t)):
                    n_tp[m, a, t] += 1
    for m in range(1, n_limits):
        n_tp[m] += n_tp[m - 1]
