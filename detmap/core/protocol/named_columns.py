"""The roles and attributes in a protocol: the columns that readers must keep."""

from detmap.core.protocol import Protocol
from detmap.core.tables import FLAGS

MEASURES = ("area", "width", "height", "box_area")
"""Attributes of every box. `area` is the ground truth's own where it has one, `box_area` never."""


def named_columns(protocol: Protocol) -> tuple[list[str], list[str]]:
    """The roles and attributes in a protocol, without the flags of formats and the measures of
    every box.
    """
    roles = [role for role, what in protocol.matching.neutral if what != "count"]
    return (
        [role for role in roles if role not in FLAGS],
        [attribute for attribute in named_attributes(protocol) if attribute not in MEASURES],
    )


def named_flags(protocol: Protocol) -> list[str]:
    """The flags of other formats that a protocol reads from keys of a record: ``difficult``, under
    VOC's rules, or if the protocol changes its meaning.

    COCO's evaluators read no such key, and neither do its protocols; their ``difficult`` refers to
    VOC files only.
    """
    told = not protocol.stock or "matching.neutral.difficult" in dict(protocol.changes)
    what = dict(protocol.matching.neutral).get("difficult", "count")
    asked = told or protocol.matching.rule == "best_any"
    return ["difficult"] if asked and what != "count" else []


def named_attributes(protocol: Protocol) -> list[str]:
    """The attributes in the ranges of subsets, sorted."""
    return sorted({r.attribute for subset in protocol.subsets for r in subset.ranges})
