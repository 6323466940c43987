"""Tied scores of one image, in which a detection limit may end."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.core.protocol import Protocol
from detmap.core.tables import Detections
from detmap.core.tables.grouping import runs

Rows = NDArray[np.int64]


class Groups(NamedTuple):
    """Tied scores in the unit of the detection limit, per detection of the table.

    Parameters
    ----------
    number : (D,) group
    before, size : (N,) detections of the image (and class) with higher scores; in the group
    """

    number: Rows
    before: Rows
    size: Rows

    def crossing(self, limits: tuple[int, ...]) -> NDArray[np.bool_]:
        """(N,) whether a limit ends within the group."""
        ends = np.zeros(len(self.size), dtype=bool)
        for m in limits:
            ends |= (self.before < m) & (m < self.before + self.size)
        return ends


def limit_groups(detections: Detections, n_images: int, protocol: Protocol) -> Groups:
    """Returns the groups of tied scores in each image, or image and class."""
    unit = detections.image.astype(np.int64)
    if protocol.limits.scope == "class":
        unit = unit + detections.label.astype(np.int64) * n_images
    order = np.lexsort((-detections.score, unit))
    off = runs(unit[order], detections.score[order])
    number = np.empty(len(order), dtype=np.int64)
    number[order] = np.repeat(np.arange(len(off) - 1), np.diff(off))
    begins = runs(unit[order])
    first = np.repeat(begins[:-1], np.diff(begins))
    return Groups(number, off[:-1] - first[off[:-1]], np.diff(off))
