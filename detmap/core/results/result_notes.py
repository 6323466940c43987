"""Notes on a result, in addition to the notes of the file readers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from detmap.core.matching.matches import Matches
from detmap.core.matching.row_order import TOGETHER, depends_on_other_images
from detmap.core.protocol import Protocol
from detmap.core.protocol.benchmark_rules import EXTRA
from detmap.core.tables import Categories, Note
from detmap.errors import DetmapError, few

if TYPE_CHECKING:
    from detmap.core.curves.scores import Scores
    from detmap.core.matching.matches_overview import Overview

TIE_ORDER = {
    "image": "image id, then file order",
    "input": "file order",
    "matched": "image id, then matching order",
    "first_seen": "first image of the class in the file, then file order",
}
"""``ranking.ties`` in words."""


def match_notes(seen: Overview) -> list[Note]:
    """Returns notes on images without objects, limits and tied scores."""
    order = TIE_ORDER[seen.protocol.ranking.ties]
    limits = seen.protocol.limits
    scope = {"class": "image and class", "image": "image", "dataset": "class"}[limits.scope]
    which = "highest-scoring" if limits.order == "score" else "first"
    effect = "all their detections count as false positives"
    if seen.protocol.scope.unlisted != "judge":
        effect += ", except of classes that are not annotated there"
    remarks = (
        (
            "image-without-truth",
            f"images have no ground-truth objects; {effect}",
            seen.n_images_without_objects,
        ),
        (
            "beyond-limit",
            f"detections exceed the limit of the {limits.max_dets[-1]} {which} per {scope}; "
            "they are not evaluated",
            seen.n_beyond,
        ),
        (
            "unjudged",
            "detections are not evaluated: their class is not annotated on the image, or their "
            "box has no area",
            seen.n_unjudged,
        ),
        (
            "score-tied",
            f"detections have tied scores within their class; ties are ordered by {order}",
            seen.n_tied,
        ),
    )
    return [Note(code, text, count) for code, text, count in remarks if count]


def all_ignored(seen: Overview, scores: Scores) -> list[Note]:
    """Returns a note if there are objects, but none counts as ground truth."""
    n = seen.n_images - seen.n_images_without_objects
    if not n or scores.n_objects.any():
        return []
    text = "images have only ignored objects (by iscrowd, difficult or ignore): no object counts"
    return [Note("all-ignored", f"{text} as ground truth; check these flags in the file", n)]


def left_out(protocol: Protocol) -> list[Note]:
    """Returns a note on the metrics that the protocol lists but cannot compute."""
    names = protocol.rows()[1]
    text = f"metrics are not reported: their IoU or limit is not evaluated ({few(names)})"
    return [Note("metric-left-out", text, len(names))] if names else []


WHOLE_ONLY = "metrics are not reported, because they need the whole evaluation"
"""The note of `extra_left_out` on results of matches alone."""


def extra_left_out(protocol: Protocol, text: str = WHOLE_ONLY) -> list[Note]:
    """Returns a note that names the metrics of ``evaluation.extra``."""
    names = [name for each in protocol.evaluation.extra for name in EXTRA[each].names]
    return [Note("extra-left-out", f"{text}: {few(names)}", len(names))] if names else []


def partial_groups(protocol: Protocol, categories: Categories) -> list[Note]:
    """Returns a note on classes of a default protocol's groups that the ground truth lacks."""
    names = [name for group in protocol.groups for name in group.classes]
    lacking = [name for name in dict.fromkeys(names) if name not in categories.names]
    text = f"classes of the groups are not in the ground truth: {few(lacking)}"
    return [Note("group-partial", text, len(lacking))] if lacking else []


def ungrouped(protocol: Protocol, categories: Categories) -> list[Note]:
    """Returns a note on classes that the ground truth puts into none of the labelled groups."""
    groups = [group.name for group in protocol.groups if not group.classes]
    labels = categories.groups or ("",) * len(categories)
    outside = [
        f"{name} ({label or 'no label'})"
        for name, label in zip(categories.names, labels, strict=True)
        if label not in groups
    ]
    text = f"classes are in none of the groups {', '.join(groups)}: {few(outside)}"
    return [Note("group-none", text, len(outside))] if groups and outside else []


def equal_scores(seen: Overview) -> list[Note]:
    """Returns a note if no score orders the detections."""
    ranking = seen.ranking
    if ranking.n_detections < 2 or ranking.lowest_score != ranking.highest_score:
        return []
    text = "detections have equal scores, AP depends on order: -p scoreless"
    return [Note("score-equal", text, ranking.n_detections)]


def stops(seen: Overview) -> list[Note]:
    """Returns a note if the reference implementation fails on this input."""
    conditions = {
        "no_detections": (seen.ranking.n_without, "classes have no detections"),
        "neutral_first": (
            seen.ranking.n_ignored_first,
            "classes have a best detection that matches an ignored object",
        ),
    }
    return [
        Note("reference-stops", f"{text}; the reference fails there and has no number", count)
        for stop, (count, text) in conditions.items()
        if count and stop in seen.protocol.ranking.stops_at
    ]


def require_own_order(matches: Matches) -> None:
    """Refuses a slice of match rows whose order or limit is that of the whole data set.

    Raises
    ------
    DetmapError : an evaluation of these images alone may give another number
    """
    if depends_on_other_images(matches):
        raise DetmapError(
            "slice",
            f"{matches.protocol.name} {TOGETHER}, and these match rows are of more images",
            "slice the result of `detmap.evaluate`, or evaluate these images alone",
        )
