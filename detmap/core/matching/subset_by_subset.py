"""Matching of one subset after the other, where objects or margins differ between subsets."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from detmap.core.base.pair_limits import limit_compared
from detmap.core.matching import engine
from detmap.core.matching.matches import Matches, distinct
from detmap.core.matching.subsets import attribute_values, object_words
from detmap.core.protocol import Protocol
from detmap.core.protocol.named_columns import named_attributes
from detmap.core.tables import Detections, Truth
from detmap.core.tables.digests import image_digests
from detmap.core.tables.grouping import cell_bounds
from detmap.core.tables.transforms import with_aspect

SLOWER = 4
"""Times as long as a pair takes in `limit_compared`: objects out of a subset are ignored regions,
and so a detection lists all of its pairs.
"""


def match_subsets(
    truth: Truth, detections: Detections, protocol: Protocol, *, threads: int | None, taken: bool
) -> Matches:
    """Does `engine.match` for protocols with ``boxes.aspect`` or ``detections.margins``.

    Raises
    ------
    ProtocolError : assignments are wanted, or a margin names no subset
    CrowdedError : too many pairs to match them once per subset
    """
    if taken:
        protocol.require("assignments")
    for name, _ in protocol.detections.margins:
        protocol.subset(name)
    _limit_pairs(truth, detections, SLOWER * len(protocol.subsets))
    values = {
        name: np.ascontiguousarray(attribute_values(truth, name, protocol))
        for name in named_attributes(protocol)
    }
    truth = replace(truth, attributes={**truth.attributes, **values})
    parts, found = [], detections
    if protocol.boxes.aspect and protocol.boxes.aspect_of == "both":
        found = with_aspect(detections, protocol.boxes.aspect)
    alone = _alone(protocol)
    for a in range(len(protocol.subsets)):
        shaped = truth
        if protocol.boxes.aspect:
            find = object_words(truth, protocol).find & np.uint64(1 << a) != 0
            shaped = with_aspect(truth, protocol.boxes.aspect, find)
        parts.append(engine.match(shaped, found, alone(a), threads=threads))
    whole = parts[0]
    return replace(
        whole,
        protocol=protocol,
        digest=image_digests(truth, detections),
        tp=np.hstack([part.tp for part in parts]),
        ignored=np.hstack([part.ignored for part in parts]),
        counted=np.hstack([part.counted for part in parts]),
        notes=distinct(*(part.notes for part in parts)),
    )


def _limit_pairs(truth: Truth, detections: Detections, cost: int) -> None:
    """Raises `CrowdedError`, with the most crowded image, if comparing all detections with the
    objects of their image and class takes too long; see `limit_compared` for the cost of a pair.
    """
    n_images = len(truth.images)
    objects, own = (
        table.label.astype(np.int64) * n_images + table.image for table in (truth, detections)
    )
    first, last = cell_bounds(np.sort(objects), own, n_images * len(truth.categories))
    n_pairs = np.bincount(detections.image, weights=last - first, minlength=n_images)
    if n_images:
        where = f"image {truth.images.ids[int(np.argmax(n_pairs))].item()!r}"
        n_rows = len(truth) + len(detections)
        limit_compared(where, int(n_pairs.sum()), n_rows, cost)


def _alone(protocol: Protocol) -> Callable[[int], Protocol]:
    """A function that returns the protocol of a single subset, by position."""
    margins = dict(protocol.detections.margins)

    def alone(a: int) -> Protocol:
        subset = protocol.subsets[a]
        margin = margins.get(subset.name, protocol.detections.margin)
        return replace(
            protocol,
            subsets=(subset,),
            metrics=("AR",),
            boxes=replace(protocol.boxes, aspect=0.0),
            detections=replace(protocol.detections, margin=margin, margins=()),
        )

    return alone
