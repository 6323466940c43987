"""A summary of matches without their rows."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.core.base.reprs import outlined
from detmap.core.base.sums import add_integers
from detmap.core.protocol import Protocol
from detmap.core.tables import Categories, Note
from detmap.core.tables.digests import data_digest
from detmap.core.tables.notes import n_dropped

if TYPE_CHECKING:
    from detmap.core.matching.matches import Matches


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


class RowSummary(NamedTuple):
    """What an overview needs of the rows of some classes.

    Parameters
    ----------
    order : `Matches.order_digest`
    n_tied : `Matches.n_tied`
    ranking : `Matches.ranking`
    """

    order: NDArray[np.uint64]
    n_tied: int
    ranking: Ranking


def row_summary(rows: Matches) -> RowSummary:
    """Returns the summary of the rows of some classes."""
    return RowSummary(rows.order_digest(), rows.n_tied(), rows.ranking())


def overview(
    images: Matches,
    classes: Iterable[RowSummary],
    n_images_without_objects: int,
    order: Any = slice(None),
) -> Overview:
    """Returns the overview of matches whose rows were summarized by sets of classes.

    Parameters
    ----------
    images : the images, digests and notes; its rows are not read
    classes : summaries of disjoint sets of classes
    order : of the summarized classes in `images`
    """
    summaries = list(classes)
    digests = np.concatenate([each.order for each in summaries])
    digests = digests[order] if len(digests) else digests
    dropped = n_dropped(images.notes)
    return Overview(
        images.protocol,
        images.categories,
        images.n_images,
        n_images_without_objects,
        int(images.beyond.sum()),
        add_integers(each.n_tied for each in summaries),
        int(images.unjudged.sum()),
        data_digest(images.categories, images.image_ids, images.digest, digests, dropped),
        images.notes,
        reduce(Ranking.add, (each.ranking for each in summaries)),
    )
