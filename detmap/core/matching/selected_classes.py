"""A part of the classes under rules in which a class depends on others, and groups of classes."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from numpy.typing import ArrayLike

from detmap.core.protocol import Protocol
from detmap.core.protocol.benchmark_rules import RULES
from detmap.core.protocol.key_checks import LABELLED
from detmap.core.tables import Detections, Note, Truth, selection

Tables = tuple[Truth, Detections, Protocol]


def select(
    tables: Tables,
    images: ArrayLike | None,
    classes: Sequence[str | int] | None,
    class_key: str | None = None,
) -> Tables:
    """Restricts tables to images (ids) and classes (names or ids); None selects all.

    `class_key`, "id" or "name", says what digits are that may be both.

    What happens to classes that are not selected is a column of
    `detmap.core.protocol.benchmark_rules.RULES`.
    """
    truth, detections, protocol = tables
    if classes is not None:
        places = selection.places_of(truth.categories, classes, class_key)
        names = tuple(truth.categories.names[k] for k in places.tolist())
        unselected = RULES[protocol.evaluation.rule].unselected
        if unselected == "kept":
            folded = {name.lower() for name in names}
            kept = {name: iou for name, iou in protocol.iou.classes if name.lower() in folded}
            protocol, classes = protocol.override({"iou.classes": kept}), None
        elif unselected == "compared" and len(names) < len(truth.categories):
            text = (
                "classes are left out: unmatched detections are compared with the objects of all "
                "classes, so the numbers of a class change"
            )
            truth = _noted(truth, "classes-compared", text, len(truth.categories) - len(names))
        else:
            truth, protocol = _groups(truth, protocol, names)
    if classes is not None:
        truth, detections = selection.select_classes(truth, detections, places)
    truth, detections = selection.part(truth, detections, images, None)
    return truth, detections, protocol


def _groups(truth: Truth, protocol: Protocol, names: Sequence[str]) -> tuple[Truth, Protocol]:
    """Removes classes that are not selected from the groups; a group without classes is removed."""
    absent = {*truth.categories.names} - {*names}
    lost = [name for group in protocol.groups for name in group.classes if name in absent]
    if not lost:
        return truth, protocol
    groups: dict[str, Any] = {}
    for group in protocol.groups:
        left = [name for name in group.classes if name in names]
        if left or not group.classes:
            groups[group.name] = left or LABELLED
    truth = _noted(truth, "groups-part", "classes of groups are left out", len(lost))
    return truth, protocol.override({"groups": groups})


def _noted(truth: Truth, code: str, text: str, count: int) -> Truth:
    return replace(truth, notes=(*truth.notes, Note(code, text, count, truth.source)))
