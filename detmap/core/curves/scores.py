"""Ranked lists to curves, and Matches to Scores: the integrated curves of each class.

The compiled kernels only store a curve at its true positives (see `detmap.kernels.curves`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from detmap.core.base import arguments, memory
from detmap.core.base.immutable import Frozen
from detmap.core.base.parallel import each_batch
from detmap.core.base.reprs import outlined
from detmap.core.curves import (
    class_curves,
    counts,
    every_rank,
    image_weights,
    lower_limits,
    own_terms,
    score_threshold,
    terms,
)
from detmap.core.matching.matches import Matches
from detmap.core.protocol import AveragePrecision
from detmap.core.protocol.integrators import integrator
from detmap.core.tables import grouping
from detmap.errors import ProtocolError


@outlined
@dataclass(slots=True, eq=False, repr=False)
class Scores(Frozen):
    """The inputs of aggregation.

    Parameters
    ----------
    judged : (J,) int64, classes with objects, ascending
    terms : (A, T, R, J) float64; their mean over R is the AP of a class at the highest limit; NaN
        without objects in the area range
    recall : (M, A, T, J) float64, maximum recall within each detection limit; NaN as above
    n_objects : (K, A) int64, counted objects
    n_tp, n_fp, n_ignored : (A, T, K) int64, detections within the highest limit
    n_images : (K,) int64, images with an object of the class
    pooled : (A, T, R) float64, terms of one curve for all classes; None if not used
    points : (3, 1 + J) float64 precision, recall and F1 of all classes and of each, by position
        of the IoU, at the protocol's score threshold
    lower : the scores within each lower limit at which a metric asks for AP
    own : (A, T, R, J) float64 terms by the name of each metric that has terms of its own
    """

    judged: NDArray[np.int64]
    terms: Any
    recall: NDArray[np.float64]
    n_objects: NDArray[np.int64]
    n_tp: NDArray[np.int64]
    n_fp: NDArray[np.int64]
    n_ignored: NDArray[np.int64]
    n_images: NDArray[np.int64]
    pooled: NDArray[np.float64] | None = None
    points: Mapping[int, NDArray[np.float64]] = field(default_factory=dict)
    lower: Mapping[int, Scores] = field(default_factory=dict)
    own: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)


@outlined
class Lists(NamedTuple):
    """L lists to rank, concatenated.

    Parameters
    ----------
    score : (n,) float64 without NaN
    positive : (n,) bool, whether a row is true
    weight : (n,) float64, or `NO_WEIGHT` for 1
    off : (L + 1,) int64, where each list begins
    """

    score: NDArray[np.float64]
    positive: NDArray[np.bool_]
    weight: NDArray[np.float64]
    off: NDArray[np.int64]


NO_WEIGHT = np.empty(0)
ONE_BLOCK = 1 << 17  # numbers of an array of samples, a megabyte


@outlined
class Points(NamedTuple):
    """The thresholds of L ranked lists, concatenated, by descending score.

    Parameters
    ----------
    tp, fp : (P,) float64, weight of positive and other rows at or above each threshold
    score : (P,) float64, the threshold
    off : (L + 1,) int64, where the thresholds of each list begin
    """

    tp: NDArray[np.float64]
    fp: NDArray[np.float64]
    score: NDArray[np.float64]
    off: NDArray[np.int64]


def rank(lists: Lists, ties: str) -> Points:
    """Sorts each list by score and counts TP and FP.

    Parameters
    ----------
    lists : to rank
    ties : ``together``: one threshold per score; ``input``: one per row, ties in input order
    """
    order = order_of(lists)
    weight = lists.weight[order] if len(lists.weight) else lists.weight
    return enter(Lists(lists.score[order], lists.positive[order], weight, lists.off), ties)


def order_of(lists: Lists) -> NDArray[np.int32]:
    """(n,) the rows of each list by descending score; stable."""
    from detmap.kernels import ranked
    from detmap.kernels.grouping import sorter

    order = np.arange(len(lists.score), dtype=np.int32)
    scratch = sorter(int(np.diff(lists.off).max(initial=0)))
    ranked.rank_lists(lists.score.view(np.uint64), lists.off, order, scratch)
    return order


def enter(lists: Lists, ties: str) -> Points:
    """Does `rank` for sorted lists."""
    from detmap.kernels import ranked

    tp, fp, threshold = (np.empty(len(lists.score)) for _ in range(3))
    off = np.empty_like(lists.off)
    together = ties == "together"
    ranked.count_lists(
        lists.score, lists.positive, lists.weight, lists.off, together, tp, fp, threshold, off
    )
    filled = slice(off[-1])
    return Points(tp[filled], fp[filled], threshold[filled], off)


def recall_precision(
    points: Points, n_objects: NDArray[np.float64], epsilon: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(P,) recall and (P,) precision at every threshold.

    Parameters
    ----------
    points : of L lists
    n_objects : (L,) number of objects; recall is NaN without
    epsilon : added to TP + FP before the division
    """
    from detmap.kernels import ranked

    recall, precision = np.empty_like(points.tp), np.empty_like(points.tp)
    ranked.curves_of_lists(points.tp, points.fp, points.off, n_objects, epsilon, recall, precision)
    return recall, precision


def scores(
    matches: Matches,
    ap: AveragePrecision | None = None,
    *,
    weights: ArrayLike | None = None,
    rows: Any = None,
    threads: int | None = None,
) -> Scores:
    """Integrates every class's curves.

    Parameters
    ----------
    matches : of one protocol
    ap : another AP interpolation than the protocol's
    weights : (I,) image weights from 0 on (default: 1); counts are then float64. Whole weights
        equal repeated images, except for the order of tied scores (docs/statistics.md).
    rows : `kernels.curves.Ranked`, the match results with tied scores in another order
    threads : number of threads (default: all processors)

    Raises
    ------
    DataError : invalid weights
    """
    from detmap.kernels import curves as kernels

    protocol, ap = matches.protocol, ap or matches.protocol.ap
    weight = None if weights is None else arguments.weights("weights", weights, matches.n_images)
    if weight is not None:
        matches, weight = image_weights.weighted(matches, weight, ap)
    limits = np.array(protocol.max_dets(), dtype=np.int64)
    n_objects = counts.n_objects(matches, weight, counted=True)
    positives = n_objects
    if ap.recall_over != "counted":
        positives = counts.n_objects(matches, weight, counted=False)
    judged = np.flatnonzero(positives.any(axis=1))
    shape = _terms_shape(matches, ap, len(judged))
    in_blocks, whole = math.prod(shape) > terms.MOST_KEPT, every_rank.needed(protocol, ap)
    counted_only = whole or in_blocks  # the terms are computed elsewhere, or later
    sizes = len(limits), shape[1], 1 if counted_only else shape[2]
    _require_memory(shape, sizes, len(n_objects))
    if rows is not None:
        protocol.require("order of ties")
    ranked = rows or kernels.Ranked(matches.off, matches.tp, matches.ignored, matches.rank)
    code = integrator("step").code() if counted_only else ap.rule.code()
    rule = kernels.Integrator(code, ap.points(), ap.epsilon)
    summary = class_curves.empty_summary(n_objects, judged, sizes)
    classes = np.arange(len(n_objects), dtype=np.int32)
    class_curves.integrate(
        matches, ranked, positives, limits, rule, weight, summary, classes, threads
    )

    def block(a: int, thresholds: slice, some: slice) -> NDArray[np.float64]:
        chosen = judged[some]
        if whole:
            made = every_rank.terms(matches, ap, positives, chosen, weight, a, thresholds)[0]
        else:
            made = class_curves.block(
                matches, ranked, positives, limits, ap, weight, chosen, a, thresholds, threads
            )
        return every_rank.kept(made, matches, chosen, ap)

    if in_blocks:
        made: Any = terms.Blocks(shape, block)
    else:
        made = summary.terms.transpose(1, 2, 3, 0)
        if whole:
            made = every_rank.terms(matches, ap, positives, judged, weight)
        made = every_rank.kept(np.ascontiguousarray(made), matches, judged, ap)
    whole_scores = _make_scores(matches, ap, made, summary, judged, n_objects, positives, weight)
    lower = {
        m: scores(lower_limits.within(matches, m), ap, weights=weight, threads=threads)
        for m in protocol.lower_limits()
    }
    return replace(whole_scores, lower=lower) if lower else whole_scores


def _terms_shape(
    matches: Matches, ap: AveragePrecision, n_judged: int
) -> tuple[int, int, int, int]:
    """(A, T, R, J)."""
    n_terms = len(ap.points()) if ap.rule.samples else 1
    return matches.tp.shape[1], len(matches.protocol.thresholds()), n_terms, n_judged


def _require_memory(
    shape: tuple[int, int, int, int], sizes: tuple[int, int, int], n_classes: int
) -> None:
    """Checks the memory of terms and recall with their transposes, and of all counts."""
    cells, n_judged = shape[0] * shape[1], shape[3]
    memory.require(
        8 * cells * (2 * n_judged * (sizes[2] + sizes[0]) + 4 * n_classes),
        "protocol",
        f"the curves of {n_judged} classes with objects in {cells} area ranges and thresholds",
        terms.WAY_OUT,
    )


def _make_scores(
    matches: Matches,
    ap: AveragePrecision,
    made: Any,
    summary: Any,
    judged: NDArray[np.int64],
    n_objects: NDArray[Any],
    positives: NDArray[Any],
    weight: NDArray[np.float64] | None,
) -> Scores:
    """The scores of a filled summary."""
    with np.errstate(invalid="ignore"):
        to_find = np.where(positives > 0, positives, np.nan)[judged]
        recall = summary.n_within / to_find[:, None, :, None]
    n_tp, n_fp = (each.transpose(1, 2, 0) for each in (summary.n_tp, summary.n_fp))
    return Scores(
        judged,
        made,
        np.ascontiguousarray(recall.transpose(1, 2, 3, 0)),
        n_objects,
        n_tp,
        n_fp,
        counts.n_rows(matches, weight) - n_tp - n_fp,
        counts.n_images(matches, weight),
        every_rank.pooled(matches, ap, positives, weight) if ap.pool == "all" else None,
        score_threshold.points(matches, positives, judged, weight),
        own=own_terms.own_terms(matches, positives, judged, weight),
    )


def join(parts: Sequence[Scores], classes: Sequence[NDArray[np.int64]]) -> Scores:
    """Joins the scores of disjoint sets of classes; `classes` has their positions in the whole."""
    if any(part.pooled is not None or part.points for part in parts):
        raise ProtocolError(
            "ap.pool, operating",
            "one curve or score of all classes cannot be joined from parts",
            "evaluate all classes at once",
        )
    order = np.argsort(np.concatenate(classes))
    judged = np.concatenate([c[part.judged] for part, c in zip(parts, classes, strict=True)])
    order_of_judged = np.argsort(judged)

    def whole(column: str) -> NDArray[Any]:
        axis = 0 if column == "n_objects" else -1
        columns = np.concatenate([getattr(part, column) for part in parts], axis=axis)
        rows = order_of_judged if column in ("terms", "recall") else order
        return np.ascontiguousarray(columns.take(rows, axis=axis))

    left_out = {"judged", "pooled", "points", "lower", "own"}
    names = [f.name for f in fields(Scores) if f.name not in left_out]
    columns: dict[str, Any] = {name: whole(name) for name in names}
    lower = {m: join([part.lower[m] for part in parts], classes) for m in parts[0].lower}
    own = {
        name: np.ascontiguousarray(
            np.concatenate([part.own[name] for part in parts], axis=-1)[..., order_of_judged]
        )
        for name in parts[0].own
    }
    return Scores(judged[order_of_judged], **columns, lower=lower, own=own)


class Curve(NamedTuple):
    """A precision-recall curve: (n,) float64 each, by descending score."""

    recall: NDArray[np.float64]
    precision: NDArray[np.float64]
    score: NDArray[np.float64]


def whole_curve(
    matches: Matches, k: int, a: int, t: int, limit: int, weight: NDArray[np.float64] | None = None
) -> Curve:
    """Returns the curve at every rank, without ignored detections."""
    mine = slice(matches.off[k], matches.off[k + 1])
    bit = matches.tp.dtype.type(1 << t)
    hit, ignored = (matches.tp[mine, a] & bit) != 0, (matches.ignored[mine, a] & bit) != 0
    listed = (matches.rank[mine] < limit) & ~ignored
    hit, score = hit[listed], matches.score[mine][listed]
    each = NO_WEIGHT if weight is None else weight[matches.image[mine][listed]]
    points = enter(Lists(score, hit, each, np.array([0, len(hit)], dtype=np.int64)), "input")
    n_objects = counts.n_objects(matches, weight, counted=True)[k, a : a + 1].astype(np.float64)
    return Curve(*recall_precision(points, n_objects, matches.protocol.ap.epsilon), points.score)


def coco_arrays(matches: Matches) -> dict[str, NDArray[np.float64]]:
    """Returns pycocotools' ``eval`` arrays: precision, scores (T, R, K, A, M), recall (T, K, A, M).

    Undefined cells are -1. The protocol's AP interpolation must be ``grid_envelope``.
    """
    protocol = matches.protocol
    limits = np.array(protocol.max_dets(), dtype=np.int64)
    return sample(matches, protocol.ap.grid.values(), limits)


def sample(
    matches: Matches,
    points: NDArray[np.float64],
    limits: NDArray[np.int64],
    *,
    threads: int | None = None,
) -> dict[str, NDArray[np.float64]]:
    """Does `coco_arrays` at other recall points, (R,), and detection limits, (M,), in any order."""
    from detmap.kernels import curves as kernels

    n_objects = matches.n_objects()
    n_classes, n_areas = n_objects.shape
    shape = (len(matches.protocol.thresholds()), len(points), n_classes, n_areas, len(limits))
    memory.require(
        8 * (2 * len(points) + 1) * math.prod(shape) // max(len(points), 1),
        "protocol",
        f"precision, recall and scores of {n_classes} classes at {len(points)} recall points",
        "choose fewer classes, areas, limits or thresholds",
    )
    if math.prod(shape) < ONE_BLOCK:
        # glibc keeps freed memory up to twice the largest block that it had to map, and new pages
        # would take as long as the samples themselves.
        precision, score = np.full((2, *shape), -1.0)
    else:  # so that each can be let go
        precision, score = np.full(shape, -1.0), np.full(shape, -1.0)
    samples = kernels.Samples(precision, score, np.full((shape[0], *shape[2:]), -1.0))
    ranked = kernels.Ranked(matches.off, matches.tp, matches.ignored, matches.rank)
    ap = matches.protocol.ap
    rule = kernels.Integrator(ap.rule.code(), points, ap.epsilon)
    sizes = grouping.sizes(matches.off)
    most = np.minimum(sizes, grouping.sizes(matches.obj_off))  # an upper bound of TP

    def sample_some(classes: NDArray[np.int32]) -> None:
        n_most = int(most[classes].max())
        scratch = kernels.empty_true_positives(n_areas, shape[0], n_most, rows=True)
        recall, precision = np.empty((2, n_most))
        kernels.sample_classes(
            classes,
            ranked,
            matches.score,
            n_objects,
            limits,
            rule,
            scratch,
            recall,
            precision,
            samples,
        )

    each_batch(sample_some, sizes, threads)
    return {"precision": samples.precision, "recall": samples.recall, "scores": samples.score}
