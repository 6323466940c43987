"""What a careful reader of a result would ask, beside what the readers of the files noticed."""

from __future__ import annotations

from detmap.errors import few
from detmap.overview import Overview
from detmap.protocol import Protocol
from detmap.tables import Note


def of_verdicts(seen: Overview) -> list[Note]:
    """Remarks that the verdicts themselves give rise to."""
    order = {"image": "image id, then input order", "input": "input order"}[
        seen.protocol.ranking.ties
    ]
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
