"""The order of match rows of several parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from detmap.core.protocol import Protocol
from detmap.core.tables.grouping import ranked

if TYPE_CHECKING:
    from detmap.core.matching.matches import Matches

TOGETHER = "orders all detections together (ranking.sort, ranking.ties, limits.scope)"
"""Why parts of the images do not merge under some protocols."""


def depends_on_other_images(matches: Matches) -> bool:
    """Returns whether the order, limit or score of a row may depend on other images."""
    protocol = matches.protocol
    if protocol.limits.scope == "dataset" and matches.beyond.any():
        return True
    if protocol.detections.score_scale != "no":
        return True
    return not protocol.supports("image order") and _scores_tie(matches)


def _scores_tie(matches: Matches) -> bool:
    """Whether detections that one curve ranks have equal scores: of a class, or of all classes."""
    if matches.protocol.ap.pool == "all":
        return len(np.unique(matches.score)) < len(matches)
    return matches.n_tied() > 0


def rank_rows(
    protocol: Protocol,
    image: NDArray[np.int32],
    label: NDArray[np.int32],
    score: NDArray[np.float64],
    ignored: NDArray[Any],
    position: NDArray[np.int32],
    sizes: tuple[int, int],
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Returns the rows of parts by class and rank, and each class's begin; ordered in an image.

    sizes: I images and K classes.
    """
    first = []  # keys for tied scores
    if protocol.ranking.ignored == "leave":  # ignored detections follow the ranked list
        first.append(ignored[:, 0] & ignored.dtype.type(1))
    if protocol.ranking.ties == "input":
        first.append(position)
    return ranked(image, label, score, first, sizes)
