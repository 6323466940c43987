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


_LATER = {
    "ap": "arithmetic no_objects pool samples stored sum tail",
    "boxes": "area aspect aspect_of first_pixel form object_shift precision reversed",
    "cgf1": "score",
    "classes": "ignored_as renamed",
    "detections": "above box_decimals margins "
    "score_decimals score_order score_precision score_scale",
    "evaluation": "extra rule",
    "froc": "lookup mean_up_to most_marks rates",
    "iou": "absorb absorb_from arithmetic classes dilation least_union",
    "kitti": "height neighbors",
    "matching": "flags neutral_when order prefer sort",
    "mean": "precision undetected",
    "miss_rate": "before lookup references",
    "operating": "rule samples score smooth",
    "ranking": "equal ignored of precision sort stops_at",
    "scope": "unknown",
}
"""Keys added after the first signed results, by table; never remove one."""
_LATER_NAMES = {f"{name}.{key}" for name, keys in _LATER.items() for key in keys.split()}
LATER: dict[str, Any] = {row.name: row.default for row in table() if row.name in _LATER_NAMES}
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
