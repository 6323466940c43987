"""AP from the curve at every rank, with NumPy, for rules that the compiled kernels do not support.

These rules use false positives between true ones, float32, true positives first among ties, or
one curve for all classes. `detmap.core.curves.scores` handles all others.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.core.matching.matches import Matches
from detmap.core.matching.unstable_sorts import ranked_number, sort_lists
from detmap.core.protocol import AveragePrecision, Protocol
from detmap.core.protocol.integrators import Curve
from detmap.core.tables.grouping import labels, runs

Floats = NDArray[np.float64]
NO_SCORES = np.empty(0)
SHORT = 32  # detections: thousands of rare classes share a few lists of verdicts


def needed(protocol: Protocol, ap: AveragePrecision) -> bool:
    """Whether the compiled kernels do not support the rules."""
    return (
        ap.rule.kernel < 0
        or ap.arithmetic != "float64"
        or ap.pool == "all"
        or ap.sum == "pairwise"
        or protocol.ranking.equal == "true_first"
    )


def terms(
    matches: Matches,
    ap: AveragePrecision,
    positives: NDArray[Any],
    judged: NDArray[np.int64],
    weight: Floats | None = None,
    area: int | None = None,
    thresholds: slice = slice(None),
) -> Floats:
    """(A, T, R, J) `Scores.terms`, for all or some area ranges and thresholds.

    Parameters
    ----------
    matches : of one protocol
    ap : the AP interpolation
    positives : (K, A) the denominator of recall
    judged : (J,) classes with objects
    weight : (I,) image weights; None for 1
    """
    n_areas, n_thresholds = matches.tp.shape[1], len(matches.protocol.thresholds())
    n_terms = len(ap.points()) if ap.rule.samples else 1
    areas = range(n_areas) if area is None else [area]
    chosen = range(n_thresholds)[thresholds]
    values = np.full((len(areas), len(chosen), n_terms, len(judged)), np.nan)
    true_first = matches.protocol.ranking.equal == "true_first"
    known: dict[tuple[bytes | float, ...], tuple[int, int]] = {}  # where short lists have theirs
    for j, k in enumerate(judged.tolist()):
        mine = slice(int(matches.off[k]), int(matches.off[k + 1]))
        score = matches.score[mine]
        gain = None if weight is None else weight[matches.image[mine]]
        short = gain is None and len(score) <= SHORT
        ties = (score if ap.rule.scores else score[1:] == score[:-1]).tobytes() if short else b""
        for i, a in enumerate(areas):
            if positives[k, a] == 0:
                continue
            tp, ignored = matches.tp[mine, a], matches.ignored[mine, a]
            if short:
                key = tp.tobytes(), ignored.tobytes(), ties, float(positives[k, a])
                like, as_class = known.setdefault(key, (i, j))
                if (like, as_class) != (i, j):
                    values[i, :, :, j] = values[like, :, :, as_class]
                    continue
            for place, t in enumerate(chosen):
                hit, gains, read = _ranked(tp, ignored, t, score, gain, true_first)
                values[i, place, :, j] = integrate(hit, float(positives[k, a]), ap, gains, read)
    return values


def pooled(
    matches: Matches, ap: AveragePrecision, positives: NDArray[Any], weight: Floats | None = None
) -> Floats:
    """(A, T, R) the terms of one curve for all classes.

    Classes with objects are concatenated, each by image and matching order, then sorted by
    `ranking.sort`. Source: TF OD API, object_detection_evaluation.py (use_weighted_mean_ap).
    """
    n_areas, n_thresholds = matches.tp.shape[1], len(matches.protocol.thresholds())
    label = labels(matches.off)
    by_input = matches.protocol.matching.order == "input"
    turn = matches.position if by_input else matches.rank
    as_listed = np.lexsort((turn, matches.image, label)).astype(np.int32)
    number = ranked_number(matches.protocol)
    score, sort = matches.score.astype(number), matches.protocol.ranking.sort
    n_terms = len(ap.points()) if ap.rule.samples else 1
    values = np.full((n_areas, n_thresholds, n_terms), np.nan)
    for a in range(n_areas):
        n_objects = float(positives[:, a].sum())
        for t in range(n_thresholds if n_objects else 0):
            listed = as_listed[positives[label[as_listed], a] > 0]
            if matches.protocol.ranking.ignored == "leave":
                listed = listed[matches.ignored[listed, a] & matches.tp.dtype.type(1 << t) == 0]
            whole = np.array([0, len(listed)], dtype=np.int64)
            rows, _ = sort_lists(score, listed, whole, sort)
            tp, ignored = matches.tp[rows, a], matches.ignored[rows, a]
            gain = None if weight is None else weight[matches.image[rows]]
            hit, gains, read = _ranked(tp, ignored, t, matches.score[rows], gain)
            values[a, t] = integrate(hit, n_objects, ap, gains, read)
    return values


def _ranked(
    tp: NDArray[Any],
    ignored: NDArray[Any],
    t: int,
    score: Floats,
    gain: Floats | None,
    true_first: bool = False,
) -> tuple[NDArray[np.bool_], Floats | None, Floats]:
    """Hits, weights and scores of the detections that are not ignored at this threshold, ranked."""
    bit = tp.dtype.type(1 << t)
    hit, left_out = (tp & bit) != 0, (ignored & bit) != 0
    if left_out.any():
        stay = ~left_out
        hit, score = hit[stay], score[stay]
        gain = None if gain is None else gain[stay]
    if true_first:  # only hits and weights move: within runs of equal scores
        order = _true_first(hit, score)
        hit, gain = hit[order], None if gain is None else gain[order]
    return hit, gain, score


def _true_first(hit: NDArray[np.bool_], score: Floats) -> NDArray[np.int64]:
    """(n,) the rows by descending score, hits before others among equal scores; stable."""
    off = runs(score)
    sizes = np.diff(off)
    before = np.concatenate([[0], np.cumsum(hit)])  # hits above each row
    in_run = before[:-1] - np.repeat(before[off[:-1]], sizes)
    n_hits = np.repeat(before[off[1:]] - before[off[:-1]], sizes)
    begin, row = np.repeat(off[:-1], sizes), np.arange(len(hit))
    order = np.empty(len(hit), dtype=np.int64)
    order[np.where(hit, begin + in_run, row + n_hits - in_run)] = row
    return order


def integrate(
    hit: NDArray[np.bool_],
    n_objects: float,
    ap: AveragePrecision,
    gain: Floats | None = None,
    score: Floats = NO_SCORES,
) -> Floats | float:
    """Returns the terms of one curve: samples for `grid_envelope`, else the AP.

    Parameters
    ----------
    hit : (n,) whether each detection is true, by descending score
    n_objects : number of objects
    ap : the AP interpolation
    gain : (n,) weight of each detection; None for 1
    score : (n,) of each detection, for rules that read it
    """
    points = ap.points()
    samples = ap.rule.samples
    if gain is not None:  # an image of weight 0 is not there: its ranks are no points of the curve
        there = gain > 0
        hit, gain, score = hit[there], gain[there], score[there] if len(score) else score
    if not len(hit):
        return np.zeros(len(points)) if samples else 0.0
    number: Any = np.float32 if ap.arithmetic == "float32" else np.float64
    at = _turning_points(hit) if ap.rule.turning_points else np.arange(len(hit))
    true, false = _running_sums(hit, gain, at, number)
    recall = true.astype(np.float64) / n_objects
    precision = true / (true + false + number(ap.epsilon))
    score = score[at] if ap.rule.scores and len(score) else NO_SCORES
    return ap.rule.at_ranks(Curve(recall, precision, points, ap.sum, ap.tail, score, ap.samples))


def _turning_points(hit: NDArray[np.bool_]) -> NDArray[np.intp]:
    """The ranks of hits, those before a hit, and the last: see `Integrator.turning_points`."""
    some = hit.copy()
    some[:-1] |= hit[1:]
    some[-1] = True
    return np.flatnonzero(some)


def _running_sums(
    hit: NDArray[np.bool_], gain: Floats | None, at: NDArray[np.intp], number: Any
) -> tuple[NDArray[Any], NDArray[Any]]:
    """The weight of hits and of others up to some ranks, all hits among them, as running sums."""
    if gain is not None:
        sums = (np.cumsum(some * gain, dtype=number)[at] for some in (hit, ~hit))
        return next(sums), next(sums)
    n_true = np.cumsum(hit[at])
    most = 2 ** (np.finfo(number).nmant + 1)  # where adding 1 has no effect any more
    true, false = (np.minimum(each, most).astype(number) for each in (n_true, at + 1 - n_true))
    return true, false


def kept(
    terms: NDArray[np.float64], matches: Matches, judged: NDArray[np.int64], ap: AveragePrecision
) -> NDArray[np.float64]:
    """Applies the stored precision and the value of classes without detections."""
    if ap.stored == "float32":
        terms = terms.astype(np.float32).astype(np.float64)
    undetected = matches.protocol.mean.undetected
    if undetected:
        none = np.diff(matches.off)[judged] == 0
        terms[..., none] = np.where(np.isnan(terms[..., none]), np.nan, undetected)
    return terms
