"""What is known of matches without their rows."""

from __future__ import annotations

from dataclasses import dataclass

from detmap.base.reprs import outlined
from detmap.protocol import Protocol
from detmap.tables import Categories, Note


@outlined
@dataclass(frozen=True, slots=True, eq=False)
class Overview:
    """What a result tells of matches beside their scores; where the rows lie elsewhere, it stands
    for them.

    Parameters
    ----------
    protocol, categories, notes : as in `Matches`
    n_images, n_images_without_objects : the images that are covered, and those of them where every
        detection is false
    n_beyond : detections that the protocol's limit kept from being looked at
    n_tied : detections that share their score with another of their class
    n_unjudged : detections that the protocol leaves out though within the limit
    digest : `Matches.data_digest`
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
