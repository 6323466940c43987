"""A summary of matches without their rows."""

from __future__ import annotations

import math
from typing import NamedTuple

from detmap.core.base.reprs import outlined
from detmap.core.protocol import Protocol
from detmap.core.tables import Categories, Note


class Ranking(NamedTuple):
    """What notes need to know of the ranked detections of some classes.

    Parameters
    ----------
    n_detections : their number
    lowest_score, highest_score : infinite without a detection
    n_without : classes without a detection
    n_ignored_first : classes whose best detection matches an ignored object in the first subset
    """

    n_detections: int = 0
    lowest_score: float = math.inf
    highest_score: float = -math.inf
    n_without: int = 0
    n_ignored_first: int = 0

    def add(self, other: Ranking) -> Ranking:
        """Returns the ranking of both, which have different classes."""
        return Ranking(
            self.n_detections + other.n_detections,
            min(self.lowest_score, other.lowest_score),
            max(self.highest_score, other.highest_score),
            self.n_without + other.n_without,
            self.n_ignored_first + other.n_ignored_first,
        )


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
    ranking : of all classes
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
    ranking: Ranking = Ranking()
