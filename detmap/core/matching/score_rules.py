"""Scores as a benchmark reads them: scaled over all detections, or as if files were sorted."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from detmap.core.protocol import Protocol
from detmap.core.tables import Detections, Note
from detmap.errors import DataError


def rescored(detections: Detections, protocol: Protocol) -> Detections:
    """Applies ``detections.score_scale`` and ``detections.score_order``; a note counts images out
    of order.

    Raises
    ------
    DataError : the scale is 0/0
    """
    by_input = protocol.detections.score_order == "input"
    scaled = protocol.detections.score_scale == "min_max"
    if not len(detections) or not (by_input or scaled):
        return detections
    score, notes = detections.score, detections.notes
    if by_input:
        score, n_unsorted = _highest_from_here(detections)
        if n_unsorted:
            text = (
                f"images have detections that are not sorted by score; {protocol.name} takes them "
                "in file order, as the reference does, which changes the AP: sort each file by "
                "score, or set detections.score_order=score"
            )
            notes = (*notes, Note("score-unsorted", text, n_unsorted, detections.source))
    if scaled:
        low, high = min(1.0, detections.score.min()), max(0.0, detections.score.max())
        with np.errstate(over="ignore"):
            extent = high - low
        if not 0 < extent < np.inf:
            raise DataError(
                detections.source,
                f"scores from {low:g} to {high:g} cannot be scaled to 0 to 1 (min_max)",
                "give scores that differ, or set detections.score_scale=no",
            )
        score = (score - low) / extent
    return replace(detections, score=score, notes=notes)


def limit_notes(detections: Detections, protocol: Protocol) -> list[Note]:
    """A note on images whose first detections are not those with the highest scores, where
    ``limits.order`` is that of the file.
    """
    if protocol.limits.order != "input":
        return []
    group = detections.image.astype(np.int64)
    if protocol.limits.scope == "class":
        group = group * len(detections.categories) + detections.label
    order = np.argsort(group, kind="stable")
    group, score = group[order], detections.score[order]
    rises = (group[1:] == group[:-1]) & (score[1:] > score[:-1])
    count = len(np.unique(detections.image[order[1:][rises]]))
    text = (
        f"images have detections that are not sorted by score; the limits of {protocol.name} keep "
        "the first ones in file order, as the reference does: sort each file by score, or set "
        "limits.order=score"
    )
    return [Note("limit-unsorted", text, count, detections.source)] if count else []


def _highest_from_here(detections: Detections) -> tuple[NDArray[np.float64], int]:
    """(D,) the highest score of the image and class from a row on; the images that it changes."""
    n_classes = len(detections.categories)
    group = detections.image.astype(np.int64) * n_classes + detections.label
    order = np.lexsort((-np.arange(len(group)), group))
    known, place = np.unique(detections.score, return_inverse=True)
    dense = np.unique(group, return_inverse=True)[1]
    highest = np.maximum.accumulate(dense[order] * len(known) + place[order]) % len(known)
    score = np.empty_like(detections.score)
    score[order] = known[highest]
    return score, len(np.unique(detections.image[score != detections.score]))
