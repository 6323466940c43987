"""The order of match rows of several parts."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.protocol import Protocol
from detmap.tables.grouping import ranked


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
