"""True positives at one score, of few images: `match` without digests, notes and `Matches`."""

from functools import lru_cache

import numpy as np

from detmap.core.base.parallel import Workers
from detmap.core.matching.engine import match, match_cells, prepare
from detmap.core.matching.matches_checks import effective_thresholds
from detmap.core.matching.roles import read_roles
from detmap.core.matching.subsets import detection_words, object_words
from detmap.core.protocol import Protocol
from detmap.core.tables import BoxFormat, Detections, Truth, boxes_as


@lru_cache(64)
def lower_scores_change_nothing(protocol: Protocol) -> bool:
    """Whether the match results of the highest scores are those without the other detections."""
    detections = protocol.detections
    return (
        protocol.uses_default_order()
        and protocol.limits.order == detections.score_order == "score"
        and detections.score_scale == "no"
        and not (protocol.boxes.aspect or detections.margins)
    )


def count_at(
    truth: Truth,
    detections: Detections,
    protocol: Protocol,
    point: tuple[float, int, int],
    *,
    highest: bool,
) -> tuple[int, int, int]:
    """Returns true positives, detections and objects; ignored ones are not counted.

    Parameters
    ----------
    point : the lowest score, the positions of subset and IoU threshold
    highest : whether the detections are those that reach the score, which suffice where
        `lower_scores_change_nothing`; else all

    Raises `DataError` as `match`.
    """
    score, a, t = point
    if highest:
        truth, detections = prepare(truth, detections, protocol)
        roles = read_roles(truth, detections, protocol, threads=1)
        with Workers(len(detections), threads=1) as workers:
            objects, rows, *_ = match_cells(truth, detections, protocol, roles, workers)
        scores, tp, ignored = rows.score_bits.view(np.float64), rows.tp, rows.ignored
        n_objects = int(np.count_nonzero(objects.find & np.uint64(1 << a)))
    else:
        matches = match(truth, detections, protocol, threads=1)
        scores, tp, ignored = matches.score, matches.tp, matches.ignored
        n_objects = int(matches.n_objects()[:, a].sum())
    bit = tp.dtype.type(1 << t)
    counts = (scores >= score) & (ignored[:, a] & bit == 0)
    hit = counts & (tp[:, a] & bit != 0)
    return int(np.count_nonzero(hit)), int(np.count_nonzero(counts)), n_objects


@lru_cache(64)
def counts_boxes(protocol: Protocol) -> bool:
    """Whether `count_boxes` knows the rules of a protocol."""
    boxes, classes, scope = protocol.boxes, protocol.classes, protocol.scope
    return (
        lower_scores_change_nothing(protocol)
        and protocol.iou.of == "boxes"
        and not (protocol.iou.classes or classes.renamed or classes.ignored_as or boxes.area)
        and (boxes.clip, boxes.empty) == ("no", "keep")
        and boxes.reversed != "refuse"
        and (scope.unlisted, scope.not_exhaustive) == ("judge", "judge")
        and protocol.limits.scope == "class"
        and protocol.detections.outside != "drop"
        and "absent" not in dict(protocol.matching.neutral).values()
    )


def count_boxes(
    truth: Truth, detections: Detections, protocol: Protocol, point: tuple[float, int, int]
) -> tuple[int, int, int] | None:
    """Returns what `count_at` returns, for rows by ascending image; None where only the matching
    rules can tell.

    The protocol is one of `counts_boxes`.
    """
    from detmap.kernels import one_threshold as kernels
    from detmap.kernels.grouping import sorter

    score, a, t = point
    threshold = float(effective_thresholds(protocol)[t])
    if threshold <= 0:
        return None
    inclusive = protocol.boxes.extent == "inclusive"
    native: BoxFormat = "voc" if inclusive else "xywh"
    words = object_words(truth, protocol)
    outside = detection_words(detections, protocol, truth.box_format).outside
    counts = np.empty(3, dtype=np.int64)
    n, n_objects = len(detections), len(truth)
    rows = (
        detections.image,
        detections.label,
        detections.score,
        detections.score.view(np.uint64),
        boxes_as(detections.boxes, detections.box_format, native),
        outside,
    )
    objects = truth.image, truth.label, boxes_as(truth.boxes, truth.box_format, native), *words
    rule = int(protocol.matching.rule == "best_any"), int(protocol.matching.equal == "first")
    limit = protocol.max_dets()[-1]
    places = np.empty(n, np.int32), sorter(n), np.empty((n_objects, 5)), np.zeros(n_objects, bool)
    decided = kernels.count_boxes(
        kernels.FoundBoxes(*rows),
        kernels.ObjectBoxes(*objects),
        kernels.Point(a, score, threshold, float(inclusive), protocol.iou.epsilon, limit, *rule),
        counts,
        kernels.Places(*places),
    )
    if decided == kernels.UNDECIDED:
        return None
    tp, found, in_all = counts.tolist()
    return tp, found, in_all
