"""What a careful reader of a result would ask, beside what the readers of the files noticed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from detmap.errors import few
from detmap.matching.matches import Matches
from detmap.matching.matches_overview import Overview
from detmap.protocol import Protocol
from detmap.tables import Note
from detmap.tables.catalog import distinct


def match_notes(seen: Overview) -> list[Note]:
    """Remarks that the verdicts themselves give rise to."""
    order = {
        "image": "image id, then input order",
        "input": "input order",
        "matched": "image id, then the order in which they took objects",
        "first_seen": "the image that the class's detections name first, then input order",
    }[seen.protocol.ranking.ties]
    limits = seen.protocol.limits
    of = "image and class" if limits.scope == "class" else "image"
    which = "best" if limits.order == "score" else "first"
    remarks = (
        (
            "image-without-truth",
            "images have no object: "
            + (
                "every detection there is false"
                if seen.protocol.scope.unlisted == "judge"
                else "a detection there is false, or of a class that is not annotated there"
            ),
            seen.n_images_without_objects,
        ),
        (
            "beyond-limit",
            f"detections beyond the {limits.max_dets[-1]} {which} of their {of} were not looked at",
            seen.n_beyond,
        ),
        (
            "unjudged",
            "detections are of classes that are not annotated on their image, or without an area: "
            "the protocol leaves them out",
            seen.n_unjudged,
        ),
        (
            "score-tied",
            f"detections share their score with another of their class: ranked by {order}",
            seen.n_tied,
        ),
    )
    return [Note(code, text, count) for code, text, count in remarks if count]


def left_out(protocol: Protocol) -> list[Note]:
    """A note that names the metrics that the protocol asks for and cannot have."""
    names = protocol.rows()[1]
    text = f"metrics are not reported, their IoU or limit is not evaluated: {few(names)}"
    return [Note("metric-left-out", text, len(names))] if names else []


def stops(verdicts: Matches | Overview) -> list[Note]:
    """That the reference has no number for this input, where that is so."""
    if isinstance(verdicts, Overview):
        return []
    begins, sizes = verdicts.off[:-1], np.diff(verdicts.off)
    first = begins[sizes > 0]
    conditions = {
        "no_detections": (int((sizes == 0).sum()), "classes have no detections"),
        "neutral_first": (
            int((verdicts.ignored[first, 0] & verdicts.ignored.dtype.type(1)).sum()),
            "classes have a best detection that meets a neutral object",
        ),
    }
    return [
        Note("reference-stops", f"{text}: the reference stops there and has no number", count)
        for stop, (count, text) in conditions.items()
        if count and stop in verdicts.protocol.ranking.stops_at
    ]


def slice_notes(matches: Matches) -> Matches:
    """Matches on some images, with a note where the order of equal scores is that of all images."""
    n_tied = 0 if matches.protocol.image_by_image() else matches.n_tied()
    if not n_tied:
        return matches
    text = (
        "detections of a slice share their score with another, and stand there as the order of all "
        "images has them: an evaluation of these images alone may give another number"
    )
    return replace(matches, notes=distinct(matches.notes, [Note("order-of-whole", text, n_tied)]))
