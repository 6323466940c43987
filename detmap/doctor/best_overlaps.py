"""Which objects rows lie on, whatever their class: for questions that matching does not answer."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.doctor.raw_rows import Raw, readable
from detmap.overlaps.row_overlaps import edges, ious
from detmap.tables import Truth
from detmap.tables.grouping import labels

MOST_PAIRS = 4_000_000


class Met(NamedTuple):
    """Rows with the object that they overlap most.

    Parameters
    ----------
    row, place : (n,) rows of the raw rows and of the truth
    iou : (n,) float64
    """

    row: NDArray[np.int64]
    place: NDArray[np.int64]
    iou: NDArray[np.float64]


def best_objects(raw: Raw, truth: Truth, least: float = 0.5) -> Met:
    """Rows with the object of their image that they overlap most, from an overlap of `least` on."""
    image, _ = raw.places(truth)
    rows = np.flatnonzero((image >= 0) & readable(raw))
    objects = np.argsort(truth.image, kind="stable")
    off = np.searchsorted(truth.image[objects], np.arange(len(truth.images) + 1))
    count = np.diff(off)[image[rows]]
    within = np.cumsum(count) <= MOST_PAIRS
    rows, count = rows[within], count[within]
    ends = np.concatenate([[0], np.cumsum(count)])
    nth = labels(ends)
    place = objects[off[image[rows]][nth] + np.arange(ends[-1]) - ends[nth]]
    iou = ious(edges(raw)[rows[nth]], edges(truth)[place])
    order = np.lexsort((-iou, nth))
    first = order[np.unique(nth[order], return_index=True)[1]]
    first = first[iou[first] >= least]
    return Met(rows[nth[first]], place[first], iou[first])
