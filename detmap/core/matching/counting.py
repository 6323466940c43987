"""True positives at one score, of few images: `match` without digests, notes and `Matches`."""

import numpy as np

from detmap.core.base.parallel import Workers
from detmap.core.matching.engine import match, match_cells, prepare
from detmap.core.matching.roles import read_roles
from detmap.core.protocol import Protocol
from detmap.core.tables import Detections, Truth


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
            objects, rows, _ = match_cells(truth, detections, protocol, roles, workers)
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
