"""The JSON entries with boxes in the answer of a language model, between other text."""

import json
import re
from collections.abc import Mapping
from typing import Any

from detmap.integrations.host_errors import HostError

BOX_KEYS = ("bbox_2d", "bbox", "box_2d", "box")
_START = re.compile(r"[\[{]")
_VALUE = re.compile(r"""\[\s*["\d\-\[\]{tfnNI]|\{\s*["}]""")
"""The start of JSON; other brackets fail at their next character."""
_MEANT = re.compile(r"""\[\s*(?:[\[{]|```|$)|\[[\s\d.,-]*$|\{\s*["'](?:bbox|box)""")
"""The start of boxes, also of an unfinished list; other brackets are part of a sentence."""
_FENCE = re.compile(r"```\w*")
_POINT = r"\(\s*\d[\d.]*\s*,\s*\d[\d.]*\s*\)"
_TAGS = re.compile(
    rf"<\|?box|<loc_?\d|{_POINT}\s*(?:,\s*)?{_POINT}|\bb?box\w*\W{{1,3}}\d[\d.]*\s*,\s*\d"
)
"""Boxes of other notations: <box>, <loc0100>, (1, 2), (3, 4), and bbox: 1, 2, 3, 4."""
STEP = 4096
"""Characters after which the text before is cut off: the error of a decoder counts its lines."""


class _Doubled(dict[str, Any]):
    """An object that has a key twice."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    return made if len(made) == len(pairs) else _Doubled(made)


_DECODER = json.JSONDecoder(object_pairs_hook=_object)


def box_entries(text: str) -> list[Any]:
    """Returns the entries of the only list of boxes in a text, or the entries outside of lists.

    Raises
    ------
    HostError : several lists, a list of numbers, a list that is not valid JSON or not finished, or
        an entry that has a key twice
    """
    lists: list[list[Any]] = []
    single: list[Any] = []
    start, rest, cut = _START.search(text), text, 0
    while start is not None:
        if start.start() - cut > STEP:
            cut = start.start()
            rest = text[cut:]
        value, end = _decoded(rest, start.start() - cut, cut)
        if isinstance(value, Mapping) and any(key in value for key in BOX_KEYS):
            single.append(value)
        elif isinstance(value, list) and any(isinstance(each, Mapping) for each in value):
            lists.append(value)
        elif isinstance(value, list) and _are_numbers(value):
            fix = 'ask for entries such as {"bbox_2d": [0, 0, 9, 9], "label": "cat"}'
            raise HostError("text", f"{value!r:.80} is a list of numbers without labels", fix)
        else:
            end = start.end() - cut  # a list of boxes may be inside
        start = _START.search(text, cut + end)
    lists += [single] if single else []
    if len(lists) > 1:
        raise HostError("text", f"{len(lists)} lists of boxes", "ask for one list")
    if not lists:
        _require_no_boxes(text)
    entries = lists[0] if lists else []
    for i, entry in enumerate(entries):
        if isinstance(entry, _Doubled):
            fix = "ask for one box and one label per entry"
            raise HostError(f"entry {i}", f"{dict(entry)!r:.80} has a key twice in the text", fix)
    return entries


def _require_no_boxes(text: str) -> None:
    """Raises `HostError` for boxes in another notation, and a list that has something else."""
    fix = 'ask for JSON such as [{"bbox_2d": [0, 0, 9, 9], "label": "cat"}]'
    tag = _TAGS.search(text)
    if tag is not None:
        raise HostError(f"character {tag.start()} of the text", f"boxes as {tag[0]!r:.40}", fix)
    try:
        value = json.loads(_FENCE.sub(" ", text))
    except (ValueError, RecursionError):
        return
    if isinstance(value, list) and value:
        raise HostError("text", f"a list of {value[0]!r:.40}, not of boxes", fix)


def _decoded(text: str, start: int, cut: int) -> tuple[Any, int]:
    """The JSON value at a position of a text, and its end; None if it is part of a sentence.

    Characters before the text are `cut` off.
    """
    if not _VALUE.match(text, start) and not _MEANT.match(text, start):
        return None, start + 1
    try:
        return _DECODER.raw_decode(text, start)
    except json.JSONDecodeError as error:
        if not _MEANT.match(text, start):
            return None, start + 1
        fix = "the answer may be cut: raise the token limit of the model"
        if text[error.pos : error.pos + 1] == "'":
            fix = "the answer is not JSON, which has double quotes: ask for JSON"
        where = f"character {cut + error.pos} of the text"
        raise HostError(where, error.msg, fix) from None
    except (ValueError, RecursionError) as error:  # a number with thousands of digits; deep lists
        fix = "the answer is not a list of boxes: check the prompt"
        raise HostError("text", str(error).partition(";")[0], fix) from None


def _are_numbers(value: list[Any]) -> bool:
    """Checks for [[1, 2, 3, 4], ...] and [1, 2, 3, 4]; [1] is a reference in a sentence."""
    rows = value if value and all(isinstance(each, list) for each in value) else [value]
    return all(len(row) >= 4 and all(type(each) in (int, float) for each in row) for row in rows)
