"""A summary of matches without their rows."""

from __future__ import annotations

import math
from typing import NamedTuple

from detmap.base.reprs import outlined
from detmap.protocol import Protocol
from detmap.tables import Categories, Note


@outlined
class Overview(NamedTuple):
    """A summary of matches without their rows.

    Parameters
    ----------
    protocol, categories, notes : as in `Matches`
    n_images, n_images_without_objects : all images, and those without ground-truth objects
    n_beyond : detections beyond the detection limit
    n_tied : detections with tied scores within their class
    n_unjudged : detections that the protocol excludes though within the limit
    digest : `Matches.data_digest`
    lowest_score : of all detections; infinite without one
    """

    protocol: Protocol
    categories: Categories
    n_images: int
    n_images_without_objects: int
    n_beyond: int
    n_tied: int
    n_unjudged: int
    digest: str
    notes: tuple[Note, ...] = ()
    lowest_score: float = math.inf
