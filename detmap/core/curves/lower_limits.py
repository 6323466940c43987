"""Match results within a detection limit below the highest one."""

from dataclasses import replace

import numpy as np

from detmap.core.matching.matches import Matches
from detmap.core.tables.grouping import labels, offsets


def within(matches: Matches, limit: int) -> Matches:
    """Returns the match results of the detections within one of the protocol's limits.

    A detection takes its object before those of lower rank, so they change nothing for it.
    """
    limits = matches.protocol.limits
    below = tuple(m for m in limits.max_dets if m <= limit)
    rows = np.flatnonzero(matches.rank < limit)
    return replace(
        matches,
        protocol=replace(matches.protocol, limits=replace(limits, max_dets=below)),
        off=offsets(labels(matches.off)[rows], len(matches.categories)),
        image=matches.image[rows],
        rank=matches.rank[rows],
        position=matches.position[rows],
        score=matches.score[rows],
        tp=matches.tp[rows],
        ignored=matches.ignored[rows],
        taken=None if matches.taken is None else matches.taken.take(rows),
    )
