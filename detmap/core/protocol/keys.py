"""The table of all keys, for validation, `detmap show` and the documentation."""

from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, NamedTuple

from detmap.core.protocol.key_checks import Key
from detmap.core.protocol.tree import Protocol


class KeyRow(NamedTuple):
    """One key of a protocol, under its dotted name."""

    name: str
    meaning: str
    legal: str
    source: str
    default: Any


@cache
def declared(node: type) -> dict[str, Key | type]:
    """The keys of one table: their declarations, or the class of an inner table.

    The modules of the tables do not postpone annotations, because evaluating them later is slower.
    """
    positions_by_name: dict[str, Key | type] = {}
    for each in fields(node):
        metadata = getattr(each.type, "__metadata__", ())
        if metadata:
            positions_by_name[each.name] = metadata[0]
        elif is_dataclass(each.type) and isinstance(each.type, type):
            positions_by_name[each.name] = each.type
    return positions_by_name


def table() -> list[KeyRow]:
    """Every key of a protocol."""
    rows = []
    for name, key in declared(Protocol).items():
        inner = {name: key} if isinstance(key, Key) else declared(key)
        prefix = "" if isinstance(key, Key) else f"{name}."
        for last, row in inner.items():
            assert isinstance(row, Key)
            rows.append(
                KeyRow(prefix + last, row.meaning, row.check.legal, row.source, row.default)
            )
    return rows


_LATER = (
    "ap.arithmetic",
    "ap.no_objects",
    "ap.pool",
    "ap.stored",
    "ap.sum",
    "ap.tail",
    "boxes.area",
    "boxes.first_pixel",
    "boxes.form",
    "boxes.object_shift",
    "boxes.precision",
    "boxes.reversed",
    "cgf1.score",
    "detections.above",
    "detections.box_decimals",
    "detections.score_decimals",
    "detections.score_precision",
    "evaluation.extra",
    "evaluation.rule",
    "froc.lookup",
    "froc.mean_up_to",
    "froc.most_marks",
    "froc.rates",
    "iou.absorb",
    "iou.absorb_from",
    "iou.arithmetic",
    "iou.classes",
    "iou.least_union",
    "kitti.height",
    "kitti.neighbors",
    "matching.flags",
    "matching.neutral_when",
    "matching.order",
    "matching.prefer",
    "matching.sort",
    "mean.precision",
    "mean.undetected",
    "operating.rule",
    "operating.samples",
    "operating.score",
    "operating.smooth",
    "ranking.equal",
    "ranking.ignored",
    "ranking.of",
    "ranking.precision",
    "ranking.sort",
    "ranking.stops_at",
    "scope.unknown",
    "ap.samples",
    "boxes.aspect",
    "boxes.aspect_of",
    "detections.margins",
    "detections.score_order",
    "detections.score_scale",
    "miss_rate.before",
    "miss_rate.lookup",
    "miss_rate.references",
    "classes.renamed",
    "classes.ignored_as",
    "iou.dilation",
)
"""Keys added after the first signed results; never remove one."""
LATER: dict[str, Any] = {row.name: row.default for row in table() if row.name in _LATER}
"""The defaults of those keys, which the digest leaves out."""


def keys() -> list[str]:
    """Every dotted key of a protocol, such as ``limits.max_dets``."""
    return [row.name for row in table()]


def describe() -> str:
    """The table of keys in Markdown."""
    lines = ["| key | meaning | legal | default | source |", "|---|---|---|---|---|"]
    for row in table():
        default = "required" if row.default is None else f"`{shown(row.default)}`"
        cells = (f"`{row.name}`", row.meaning, row.legal, default, row.source)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines)


def shown(value: Any) -> str:
    """A TOML value in few characters."""
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, dict | list) else f"{value:g}"
