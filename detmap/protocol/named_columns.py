"""The roles and attributes that a protocol names: the columns that readers have to keep."""

from __future__ import annotations

from detmap.protocol import Protocol
from detmap.tables import FLAGS

MEASURES = ("area", "width", "height", "box_area")
"""Attributes of every box. `area` is the truth's own where it has one, `box_area` never."""


def named_columns(protocol: Protocol) -> tuple[list[str], list[str]]:
    """The roles and the attributes that a protocol asks for by name, beside the flags that formats
    have of their own and the measures that every box has.
    """
    roles = [role for role, what in protocol.matching.neutral if what != "count"]
    return (
        [role for role in roles if role not in FLAGS],
        [attribute for attribute in named_attributes(protocol) if attribute not in MEASURES],
    )


def named_flags(protocol: Protocol) -> list[str]:
    """The flags of other formats that a protocol asks for by name, where a record may have one as
    a key of its own: ``difficult``, under VOC's rule or where somebody gave it a meaning.

    COCO's own evaluators read no such key, so its stock protocols do not: their ``difficult`` is
    VOC's files' alone.
    """
    told = not protocol.stock or "matching.neutral.difficult" in dict(protocol.changes)
    what = dict(protocol.matching.neutral).get("difficult", "count")
    asked = told or protocol.matching.rule == "best_any"
    return ["difficult"] if asked and what != "count" else []


def named_attributes(protocol: Protocol) -> list[str]:
    """The attributes whose ranges define subsets, sorted."""
    return sorted({r.attribute for subset in protocol.subsets for r in subset.ranges})
