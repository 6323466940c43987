"""Ranked verdicts to curves, and Matches -> Scores: the curves of each class, integrated.

`rank` and `recall_precision` turn any ranked list, of detections or of an image classifier's
samples, into the points of its curve. Where only AP is asked for, a detection curve is kept at
its true positives (see `detmap.kernels.curves`); `Scores` holds the terms of AP and the recall
of every class, area range and threshold, undefined ones as NaN.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from detmap.base import arguments as given
from detmap.base import memory
from detmap.base.parallel import each_batch
from detmap.base.reprs import outlined
from detmap.curves import class_curves, terms
from detmap.curves import counts as counting
from detmap.curves import every_rank as whole_curves
from detmap.curves import score_threshold as at_score
from detmap.errors import ProtocolError
from detmap.matching.matches import Matches
from detmap.protocol import AveragePrecision
from detmap.protocol.integrators import integrator


@outlined
@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """What aggregation averages.

    Parameters
    ----------
    judged : (J,) int64, the classes with an object to find, ascending: often few of many
    terms : (A, T, R, J) float64, the numbers whose mean over R is the AP of a class at the highest
        detection limit; NaN where the class has no object to find in the area range
    recall : (M, A, T, J) float64, recall at the end of the list within each detection limit; NaN as
        above
    n_objects : (K, A) int64, objects to find
    n_tp, n_fp, n_ignored : (A, T, K) int64, detections by verdict within the highest limit
    n_images : (K,) int64, images with an object of the class
    pooled : (A, T, R) float64, the terms of one curve for all classes; None where each has its own
    points : place of an IoU threshold -> (3, 1 + J) float64, precision, recall and F1 of all
        classes and of each judged one, at the score that the protocol chooses; of those thresholds
        that its rows ask for
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


@outlined
@dataclass(frozen=True, slots=True, eq=False)
class Lists:
    """L lists to rank, stored one after the other.

    Parameters
    ----------
    score : (n,) float64 without NaN
    positive : (n,) bool, the verdicts
    weight : (n,) float64, or `NO_WEIGHT` where every row weighs 1
    off : (L + 1,) int64, where each list begins
    """

    score: NDArray[np.float64]
    positive: NDArray[np.bool_]
    weight: NDArray[np.float64]
    off: NDArray[np.int64]


NO_WEIGHT = np.empty(0)


@outlined
@dataclass(frozen=True, slots=True, eq=False)
class Points:
    """The thresholds of L ranked lists, one list after the other, best score first.

    Parameters
    ----------
    tp, fp : (P,) float64, weight of the positive and of the other rows at or above each threshold
    score : (P,) float64, the threshold: the score of the rows that enter there
    off : (L + 1,) int64, where the thresholds of each list begin
    """

    tp: NDArray[np.float64]
    fp: NDArray[np.float64]
    score: NDArray[np.float64]
    off: NDArray[np.int64]


def rank(lists: Lists, ties: str) -> Points:
    """Sort each list by score and count its verdicts.

    Parameters
    ----------
    lists : to rank
    ties : ``together``: rows of equal score enter at one threshold, and the input order never
        shows; ``input``: every row is a threshold of its own, and of equal scores the earlier row
        enters first
    """
    order = order_of(lists)
    weight = lists.weight[order] if len(lists.weight) else lists.weight
    return enter(Lists(lists.score[order], lists.positive[order], weight, lists.off), ties)


def order_of(lists: Lists) -> NDArray[np.int32]:
    """(n,) the rows of each list, best score first; rows of equal score keep their order."""
    from detmap.kernels import ranked
    from detmap.kernels.grouping import sorter

    order = np.arange(len(lists.score), dtype=np.int32)
    scratch = sorter(int(np.diff(lists.off).max(initial=0)))
    ranked.rank_lists(lists.score.view(np.uint64), lists.off, order, scratch)
    return order


def enter(lists: Lists, ties: str) -> Points:
    """As `rank`, for lists that are sorted."""
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
    n_objects : (L,) what there is to find; of a list without objects recall is NaN
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
    """Integrate every class's curves.

    Parameters
    ----------
    matches : of one protocol
    ap : another integrator than the protocol's own
    weights : (I,) how often each image counts, whole numbers or not, from 0 on; once when left
        out. Whole weights give what a file gives in which images are repeated, up to the order of
        equal scores inside an image (docs/statistics.md); counts are float64 then
    rows : `kernels.curves.Ranked`, the verdicts with rows of equal score in another order
    threads : how many to use; all processors when left out

    Raises
    ------
    DataError : weights that cannot be
    """
    from detmap.kernels import curves as kernels

    ap = ap or matches.protocol.ap
    weight = None if weights is None else given.weights("weights", weights, matches.n_images)
    limits = np.array(matches.protocol.max_dets(), dtype=np.int64)
    n_objects = counting.n_objects(matches, weight, counted=True)
    positives = counting.n_objects(matches, weight, counted=ap.recall_over == "counted")
    points = ap.points()
    n_terms = len(points) if ap.rule.samples else 1
    n_classes, n_areas = n_objects.shape
    n_thresholds = len(matches.protocol.thresholds())
    judged = np.flatnonzero((positives > 0).any(axis=1))
    cells = n_areas * n_thresholds
    shape = (n_areas, n_thresholds, n_terms, len(judged))
    in_blocks = math.prod(shape) > terms.MOST_KEPT
    whole = whole_curves.needed(matches.protocol, ap)
    counted_only = whole or in_blocks  # the terms are made elsewhere, or later
    n_kept = 1 if counted_only else n_terms
    memory.require(  # an array and its transpose; counts of every class
        8 * cells * (2 * len(judged) * (n_kept + len(limits)) + 4 * n_classes),
        "protocol",
        f"the curves of {len(judged)} classes with objects in {cells} area ranges and thresholds",
        terms.WAY_OUT,
    )
    ranked = rows or kernels.Ranked(matches.off, matches.tp, matches.ignored, matches.rank)
    if rows is not None:
        matches.protocol.require_stock("another order of equal scores")
    code = integrator("step").code() if counted_only else ap.rule.code()
    rule = kernels.Integrator(code, points, ap.epsilon)
    summary = class_curves.empty_summary(n_objects, judged, (len(limits), n_thresholds, n_kept))
    every = np.arange(n_classes, dtype=np.int32)
    class_curves.integrate(
        matches, ranked, positives, limits, rule, weight, summary, every, threads
    )

    def block(a: int, some_thresholds: slice, some: slice) -> NDArray[np.float64]:
        classes = judged[some]
        at = a, some_thresholds
        if whole:
            made = whole_curves.terms(matches, ap, positives, classes, weight, *at)[0]
        else:
            made = class_curves.block(
                matches, ranked, positives, limits, ap, weight, classes, *at, threads
            )
        return whole_curves.kept(made, matches, classes, ap)

    with np.errstate(invalid="ignore"):
        to_find = np.where(positives > 0, positives, np.nan)[judged]
        recall = summary.n_within / to_find[:, None, :, None]
    by_class_last = (1, 2, 0)
    n_tp, n_fp = summary.n_tp.transpose(by_class_last), summary.n_fp.transpose(by_class_last)
    if in_blocks:
        made: Any = terms.Blocks(shape, block)
    elif whole:
        made = whole_curves.terms(matches, ap, positives, judged, weight)
    else:
        made = np.ascontiguousarray(summary.terms.transpose(1, 2, 3, 0))
    return Scores(
        judged,
        made if in_blocks else whole_curves.kept(made, matches, judged, ap),
        np.ascontiguousarray(recall.transpose(1, 2, 3, 0)),
        n_objects,
        n_tp,
        n_fp,
        counting.count_per_class(matches.image, matches.off, weight) - n_tp - n_fp,
        counting.n_images(matches, weight),
        whole_curves.pooled(matches, ap, positives, weight) if ap.pool == "all" else None,
        at_score.points(matches, positives, judged, weight),
    )


def join(parts: Sequence[Scores], classes: Sequence[NDArray[np.int64]]) -> Scores:
    """Scores of disjoint sets of classes as one; `classes` holds the positions of each part's
    classes in the whole.
    """
    if any(part.pooled is not None or part.points for part in parts):
        raise ProtocolError(
            "ap.pool, operating",
            "one curve or score of all classes cannot be joined from parts",
            "score all at once",
        )
    order = np.argsort(np.concatenate(classes))
    judged = np.concatenate([c[part.judged] for part, c in zip(parts, classes, strict=True)])
    order_of_judged = np.argsort(judged)

    def whole(column: str) -> NDArray[Any]:
        axis = 0 if column == "n_objects" else -1
        columns = np.concatenate([getattr(part, column) for part in parts], axis=axis)
        rows = order_of_judged if column in ("terms", "recall") else order
        return np.ascontiguousarray(columns.take(rows, axis=axis))

    names = [f.name for f in fields(Scores) if f.name not in ("judged", "pooled", "points")]
    columns: dict[str, Any] = {name: whole(name) for name in names}
    return Scores(judged[order_of_judged], **columns)


def whole_curve(
    matches: Matches, k: int, a: int, t: int, limit: int, weight: NDArray[np.float64] | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Recall, precision and score at every rank of one
    curve, ignored detections left out; not interpolated.
    """
    mine = slice(matches.off[k], matches.off[k + 1])
    bit = matches.tp.dtype.type(1 << t)
    hit, excused = (matches.tp[mine, a] & bit) != 0, (matches.ignored[mine, a] & bit) != 0
    listed = (matches.rank[mine] < limit) & ~excused
    hit, score = hit[listed], matches.score[mine][listed]
    each = NO_WEIGHT if weight is None else weight[matches.image[mine][listed]]
    points = enter(Lists(score, hit, each, np.array([0, len(hit)], dtype=np.int64)), "input")
    n_objects = counting.n_objects(matches, weight, counted=True)[k, a : a + 1].astype(np.float64)
    return *recall_precision(points, n_objects, matches.protocol.ap.epsilon), points.score


def coco_arrays(matches: Matches, *, threads: int | None = None) -> dict[str, NDArray[np.float64]]:
    """The arrays that pycocotools calls ``eval``: precision and scores (T, R, K, A, M), recall (T,
    K, A, M).

    Undefined cells are -1, as there. For comparison and for code written against those arrays;
    the protocol's integrator must be ``grid_envelope``.
    """
    protocol = matches.protocol
    return sample(
        matches,
        protocol.ap.grid.values(),
        np.array(protocol.max_dets(), dtype=np.int64),
        threads=threads,
    )


def sample(
    matches: Matches,
    points: NDArray[np.float64],
    limits: NDArray[np.int64],
    *,
    threads: int | None = None,
) -> dict[str, NDArray[np.float64]]:
    """`coco_arrays` at other recall points, (R,), and within other detection limits, (M,), both
    in any order.
    """
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
    samples = kernels.Samples(
        np.full(shape, -1.0), np.full(shape, -1.0), np.full((shape[0], *shape[2:]), -1.0)
    )
    ranked = kernels.Ranked(matches.off, matches.tp, matches.ignored, matches.rank)
    ap = matches.protocol.ap
    rule = kernels.Integrator(ap.rule.code(), points, ap.epsilon)
    sizes = np.diff(matches.off)
    most = np.minimum(sizes, np.diff(matches.obj_off))  # no object is found twice

    def sample_some(classes: NDArray[np.int32]) -> None:
        scratch = kernels.empty_true_positives(n_areas, shape[0], int(most[classes].max()))
        recall, precision = np.empty((2, scratch.row.shape[2]))
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
