"""Boxes in the text of a language model, in a unit that you state.

>>> from detmap.integrations.lmms import parse
>>> parse('[{"bbox_2d": [100, 200, 500, 800], "label": "cat"}]', (640, 480), unit="thousandths")
[Box(label='cat', xyxy=(64.0, 96.0, 320.0, 384.0))]

Evaluate the boxes with the protocol ``scoreless``: the text has no scores.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from detmap.integrations.host_errors import HostError

UNITS = {"pixels": None, "fractions": 1.0, "thousandths": 1000.0}
"""Size of an image in each unit; None: its own."""
BOX_KEYS = ("bbox_2d", "bbox", "box_2d", "box")
LABEL_KEYS = ("label", "category", "class", "name")
_FENCE = re.compile(r"```(?:json)?\s*(.*?)```", re.DOTALL)


class Box(NamedTuple):
    """A box with its label, in pixels: left, top, right, bottom."""

    label: str
    xyxy: tuple[float, float, float, float]


def parse(
    text: str,
    size: Sequence[float],
    *,
    unit: str,
    order: str = "xyxy",
    labels: Iterable[str] | None = None,
) -> list[Box]:
    """Returns the boxes of the first JSON list in a text, in the order of the text.

    Parameters
    ----------
    text : answer of a model; JSON, possibly in a fence or between sentences. Each entry has a box
        (``bbox_2d``, ``bbox``, ``box_2d`` or ``box``) and a label
    size : width and height of the image in pixels
    unit : of the coordinates: ``pixels``, ``fractions`` (0 to 1) or ``thousandths`` (0 to 1000);
        it is never guessed
    order : ``xyxy`` or ``yxyx``
    labels : known classes; other labels are an error

    A text without a list has no boxes.

    Raises
    ------
    ValueError : an unknown unit, a list that is not valid JSON, an entry without a valid box, or a
        coordinate that does not fit the unit
    """
    if not isinstance(text, str):
        raise HostError("text", f"a {type(text).__name__}", "give the answer as a string")
    if not isinstance(unit, str) or unit not in UNITS:
        raise HostError("unit", repr(unit), f"state one of {', '.join(UNITS)}")
    if order not in ("xyxy", "yxyx"):
        raise HostError("order", repr(order), "state xyxy or yxyx")
    sides = list(size) if isinstance(size, Iterable) else []
    if len(sides) != 2 or not all(0 < side < math.inf for side in sides):
        raise HostError("size", f"{size!r:.80}", "give width and height in pixels")
    if isinstance(labels, str):
        raise HostError("labels", repr(labels), "give a list of names")
    known = None if labels is None else set(labels)
    entries = _entries(text)
    return [_box(f"entry {i}", each, size, unit, order, known) for i, each in enumerate(entries)]


def _entries(text: str) -> list[Any]:
    fenced = _FENCE.search(text)
    body = fenced[1] if fenced else text
    start = re.search(r"\[\s*(?:\{|\])", body)
    if start is None:
        return []
    try:
        return list(json.JSONDecoder().raw_decode(body, start.start())[0])
    except json.JSONDecodeError as error:
        fix = "the answer may be cut: raise the token limit of the model"
        raise HostError(f"character {error.pos} of the text", error.msg, fix) from None
    except (ValueError, RecursionError) as error:  # a number with thousands of digits; deep lists
        fix = "the answer is not a list of boxes: check the prompt"
        raise HostError("text", str(error).partition(";")[0], fix) from None


def _box(
    where: str, entry: Any, size: Sequence[float], unit: str, order: str, labels: set[str] | None
) -> Box:
    box = _first(where, entry, BOX_KEYS)
    label = _first(where, entry, LABEL_KEYS)
    if not isinstance(label, str):
        raise HostError(f"{where}: label", f"{label!r:.80}", "a label is a string")
    if labels is not None and label not in labels:
        raise HostError(f"{where}: label", repr(label), f"classes: {', '.join(sorted(labels))}")
    numbers = isinstance(box, list) and all(type(each) in (int, float) for each in box)
    if not numbers or len(box) != 4 or not all(map(math.isfinite, box)):
        raise HostError(f"{where}: box", repr(box), "a box is four numbers")
    whole = UNITS[unit]
    if whole is not None and not all(0 <= each <= whole for each in box):
        fix = "state the unit in which the model answers"
        raise HostError(f"{where}: box", f"{box} is outside 0 to {whole:g} ({unit})", fix)
    left, top, right, bottom = box if order == "xyxy" else (box[1], box[0], box[3], box[2])
    if right < left or bottom < top:
        fix = 'check order="yxyx"'
        raise HostError(f"{where}: box", f"{box}: a side is negative in {order}", fix)
    if whole is None:
        return Box(label, (left, top, right, bottom))
    width, height = size
    corners = (left * width, top * height, right * width, bottom * height)
    return Box(label, tuple(each / whole for each in corners))


def _first(where: str, entry: Any, keys: Sequence[str]) -> Any:
    if isinstance(entry, Mapping):
        for key in keys:
            if key in entry:
                return entry[key]
    raise HostError(where, f"{entry!r:.80} has none of {', '.join(keys)}", "check the prompt")
