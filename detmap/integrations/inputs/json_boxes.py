"""The JSON entries with boxes in the answer of a language model, between other text."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from detmap.integrations.host_errors import HostError

BOX_KEYS = ("bbox_2d", "bbox", "box_2d", "box")
_START = re.compile(r"[\[{]")
_MEANT = re.compile(r"""\[\s*(?:[\[{]|```|$)|\[[\s\d.,-]*$|\{\s*["'](?:bbox|box)""")
"""The start of boxes, also of an unfinished list; other brackets are part of a sentence."""
_FENCE = re.compile(r"\s*```\w*\s*|\s*```\s*$")
_POINT = r"\(\s*\d[\d.]*\s*,\s*\d[\d.]*\s*\)"
_TAGS = re.compile(
    rf"<\|?box|<loc_?\d|{_POINT}\s*,?\s*{_POINT}|\bb?box\w*\W{{1,3}}\d[\d.]*\s*,\s*\d"
)
"""Boxes of other notations: <box>, <loc0100>, (1, 2), (3, 4), and bbox: 1, 2, 3, 4."""


def box_entries(text: str) -> list[Any]:
    """Returns the entries of the only list of boxes in a text, or the entries outside of lists.

    Raises
    ------
    HostError : several lists, a list of numbers, or a list that is not valid JSON or not finished
    """
    lists: list[list[Any]] = []
    single: list[Any] = []
    start = _START.search(text)
    while start is not None:
        value, end = _decoded(text, start.start())
        if isinstance(value, Mapping) and any(key in value for key in BOX_KEYS):
            single.append(value)
        elif isinstance(value, list) and any(isinstance(each, Mapping) for each in value):
            lists.append(value)
        elif isinstance(value, list) and _are_numbers(value):
            fix = 'ask for entries such as {"bbox_2d": [0, 0, 9, 9], "label": "cat"}'
            raise HostError("text", f"{value!r:.80} is a list of numbers without labels", fix)
        else:
            end = start.end()  # a list of boxes may be inside
        start = _START.search(text, end)
    lists += [single] if single else []
    if len(lists) > 1:
        raise HostError("text", f"{len(lists)} lists of boxes", "ask for one list")
    if not lists:
        _require_no_boxes(text)
    return lists[0] if lists else []


def _require_no_boxes(text: str) -> None:
    """Raises `HostError` for boxes in another notation, and a list that has something else."""
    fix = 'ask for JSON such as [{"bbox_2d": [0, 0, 9, 9], "label": "cat"}]'
    tag = _TAGS.search(text)
    if tag is not None:
        raise HostError(f"character {tag.start()} of the text", f"boxes as {tag[0]!r:.40}", fix)
    try:
        value = json.loads(_FENCE.sub("", text))
    except (ValueError, RecursionError):
        return
    if isinstance(value, list) and value:
        raise HostError("text", f"a list of {value[0]!r:.40}, not of boxes", fix)


def _decoded(text: str, start: int) -> tuple[Any, int]:
    """The JSON value at a position of a text, and its end; None if it is part of a sentence."""
    try:
        return json.JSONDecoder().raw_decode(text, start)
    except json.JSONDecodeError as error:
        if not _MEANT.match(text, start):
            return None, start + 1
        fix = "the answer may be cut: raise the token limit of the model"
        if text[error.pos : error.pos + 1] == "'":
            fix = "the answer is not JSON, which has double quotes: ask for JSON"
        raise HostError(f"character {error.pos} of the text", error.msg, fix) from None
    except (ValueError, RecursionError) as error:  # a number with thousands of digits; deep lists
        fix = "the answer is not a list of boxes: check the prompt"
        raise HostError("text", str(error).partition(";")[0], fix) from None


def _are_numbers(value: list[Any]) -> bool:
    """Checks for [[1, 2, 3, 4], ...] and [1, 2, 3, 4]; [1] is a reference in a sentence."""
    rows = value if value and all(isinstance(each, list) for each in value) else [value]
    return all(len(row) >= 4 and all(type(each) in (int, float) for each in row) for row in rows)
