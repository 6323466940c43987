"""Matches -> Scores: the ranked verdicts of each class, integrated.

A curve is kept at its true positives only (see `detmap.kernels.curves`); `Scores` holds the terms of AP and the recall of
every class, area range and threshold, undefined ones as NaN.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.integrators import n_terms, terms_of_curves
from detmap.matching import Matches
from detmap.parallel import each_largest_first
from detmap.protocol import AveragePrecision


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """What aggregation averages.

    Parameters
    ----------
    terms : (A, T, R, K) float64, the numbers whose mean over R is the AP of a class at the highest detection limit;
        NaN where the class has no object to find in the area range
    recall : (M, A, T, K) float64, recall at the end of the list within each detection limit; NaN as above
    n_objects : (K, A) int64, objects to find
    n_tp, n_fp, n_ignored : (A, T, K) int64, detections by verdict within the highest limit
    """

    terms: NDArray[np.float64]
    recall: NDArray[np.float64]
    n_objects: NDArray[np.int64]
    n_tp: NDArray[np.int64]
    n_fp: NDArray[np.int64]
    n_ignored: NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class TruePositives:
    """The curves of one class at their true positives.

    Parameters
    ----------
    false_before : (A, T, P) int32, false positives ranked before each true positive
    row : (A, T, P) int32, the true positive's row among the class's matches
    n_tp, n_fp : (A, T) int64; of P places the first n_tp are filled
    """

    false_before: NDArray[np.int32]
    row: NDArray[np.int32]
    n_tp: NDArray[np.int64]
    n_fp: NDArray[np.int64]


def scores(matches: Matches, ap: AveragePrecision | None = None, *, threads: int | None = None) -> Scores:
    """Integrate every class's curves.

    Parameters
    ----------
    matches : of one protocol
    ap : another integrator than the protocol's own
    threads : how many to use; all processors when left out
    """
    from detmap.kernels import curves as kernels

    ap = ap or matches.protocol.ap
    limits = np.array(matches.protocol.max_dets(), dtype=np.int64)
    n_objects = matches.n_objects()
    n_classes, n_areas = n_objects.shape
    n_thresholds = len(matches.protocol.thresholds())
    terms = np.full((n_areas, n_thresholds, n_terms(ap), n_classes), np.nan)
    found = np.zeros((len(limits), n_areas, n_thresholds, n_classes), dtype=np.int64)
    n_tp, n_fp = (np.zeros((n_areas, n_thresholds, n_classes), dtype=np.int64) for _ in range(2))

    def integrate_class(k: int) -> None:
        mine = slice(matches.off[k], matches.off[k + 1])
        curve = true_positives(matches, k, int(limits[-1]))
        n_tp[:, :, k], n_fp[:, :, k] = curve.n_tp, curve.n_fp
        within = np.zeros((len(limits), n_areas, n_thresholds), dtype=np.int64)
        kernels.count_true_positives(matches.tp[mine], matches.rank[mine], limits, within)
        found[:, :, :, k] = within
        if n_objects[k].any():
            recall, precision, off = curve_points(curve, n_objects[k], ap.epsilon)
            class_terms = terms_of_curves(recall, precision, off, ap).reshape(n_areas, n_thresholds, -1)
            defined = n_objects[k] > 0
            terms[defined, :, :, k] = class_terms[defined]

    each_largest_first(integrate_class, np.diff(matches.off), threads)
    with np.errstate(invalid="ignore"):
        recall = found / np.where(n_objects > 0, n_objects, np.nan).T[:, None, :]
    n_rows = np.diff(matches.off)
    return Scores(terms, recall, n_objects, n_tp, n_fp, n_rows - n_tp - n_fp)


def true_positives(matches: Matches, k: int, limit: int) -> TruePositives:
    """The curves of class `k` among the best `limit` detections of each image."""
    from detmap.kernels import curves as kernels

    mine = slice(matches.off[k], matches.off[k + 1])
    objects = slice(matches.obj_off[k], matches.obj_off[k + 1])
    n_areas, n_thresholds = matches.counted.shape[1], len(matches.protocol.thresholds())
    most = min(mine.stop - mine.start, objects.stop - objects.start)
    false_before, row = (np.empty((n_areas, n_thresholds, most), dtype=np.int32) for _ in range(2))
    n_tp, n_fp = (np.zeros((n_areas, n_thresholds), dtype=np.int64) for _ in range(2))
    kernels.true_positives(matches.tp[mine], matches.ignored[mine], matches.rank[mine], limit, false_before, row, n_tp, n_fp)
    return TruePositives(false_before, row, n_tp, n_fp)


def curve_points(
    curve: TruePositives, n_objects: NDArray[np.int64], epsilon: float
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """Recall and precision of a class's A x T curves one after the other, and (A * T + 1,) where each begins."""
    from detmap.kernels import integrate

    n_points = int(curve.n_tp.sum())
    recall, precision = np.empty(n_points), np.empty(n_points)
    off = np.empty(curve.n_tp.size + 1, dtype=np.int64)
    integrate.curve_points(curve.false_before, curve.n_tp, n_objects, epsilon, recall, precision, off)
    return recall, precision, off


def whole_curve(
    matches: Matches, k: int, a: int, t: int, limit: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Recall, precision and score at every rank of one curve, ignored detections left out; not interpolated."""
    mine = slice(matches.off[k], matches.off[k + 1])
    bit = matches.tp.dtype.type(1 << t)
    hit, excused = (matches.tp[mine, a] & bit) != 0, (matches.ignored[mine, a] & bit) != 0
    listed = (matches.rank[mine] < limit) & ~excused
    hit, score = hit[listed], matches.score[mine][listed]
    found = np.cumsum(hit)
    with np.errstate(invalid="ignore", divide="ignore"):
        recall = found / float(matches.n_objects()[k, a])
        precision = found / (np.arange(1, len(hit) + 1) + matches.protocol.ap.epsilon)
    return recall, precision, score


def coco_arrays(matches: Matches) -> dict[str, NDArray[np.float64]]:
    """The arrays that pycocotools calls ``eval``: precision and scores (T, R, K, A, M), recall (T, K, A, M).

    Undefined cells are -1, as there. For comparison and for code written against those arrays; the protocol's integrator
    must be ``grid_envelope``.
    """
    limits = matches.protocol.max_dets()
    points = matches.protocol.ap.grid.values()
    n_objects = matches.n_objects()
    n_classes, n_areas = n_objects.shape
    n_thresholds = len(matches.protocol.thresholds())
    shape = (n_thresholds, len(points), n_classes, n_areas, len(limits))
    precision, score, recall = np.full(shape, -1.0), np.full(shape, -1.0), np.full((shape[0], *shape[2:]), -1.0)
    for m, limit in enumerate(limits):
        for k in range(n_classes):
            curve = true_positives(matches, k, limit)
            recalls, precisions, off = curve_points(curve, n_objects[k], matches.protocol.ap.epsilon)
            samples = terms_of_curves(recalls, precisions, off, matches.protocol.ap)
            for a in np.flatnonzero(n_objects[k]):
                for t in range(n_thresholds):
                    c = a * n_thresholds + t
                    precision[t, :, k, a, m] = samples[c]
                    recall[t, k, a, m] = curve.n_tp[a, t] / n_objects[k, a]
                    score[t, :, k, a, m] = _scores_at(matches, k, limit, points, recalls[off[c] : off[c + 1]],
                                                      curve.row[a, t])  # fmt: skip
    return {"precision": precision, "recall": recall, "scores": score}


def _scores_at(
    matches: Matches, k: int, limit: int, points: NDArray[np.float64], recall: NDArray[np.float64], row: NDArray[Any]
) -> NDArray[np.float64]:
    """Score of the detection at which recall reaches each point; 0 where it never does, as pycocotools has it."""
    mine = slice(matches.off[k], matches.off[k + 1])
    score = matches.score[mine]
    listed = np.flatnonzero(matches.rank[mine] < limit)
    place = np.searchsorted(recall, points, side="left")
    reached = place < len(recall)
    out = np.zeros(len(points))
    out[reached] = score[row[place[reached]]]
    if len(listed):
        out[points <= 0] = score[listed[0]]  # recall 0 is reached by the first detection, whatever its verdict
    return out
