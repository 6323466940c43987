"""Boxes in the text of a language model, in a unit that you state.

>>> from detmap.integrations.lmms import parse
>>> parse('[{"bbox_2d": [100, 200, 500, 800], "label": "cat"}]', (640, 480), unit="thousandths")
[Box(label='cat', xyxy=(64.0, 96.0, 320.0, 384.0))]

Evaluate the boxes with the protocol ``scoreless``: the text has no scores.
"""

import math
import numbers
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from detmap.integrations.host_errors import HostError
from detmap.integrations.inputs.json_boxes import BOX_KEYS, box_entries

UNITS = {"pixels": None, "fractions": 1.0, "thousandths": 1000.0}
"""Size of an image in each unit; None: its own."""
LABEL_KEYS = ("label", "category", "class", "name")


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
    """Returns the boxes of the JSON list in a text, in the order of the text.

    Parameters
    ----------
    text : answer of a model; JSON, possibly in a fence or between sentences: one list, or entries
        without a list. Each entry has a box (``bbox_2d``, ``bbox``, ``box_2d`` or ``box``) and a
        label
    size : width and height of the image in pixels
    unit : of the coordinates: ``pixels``, ``fractions`` (0 to 1) or ``thousandths`` (0 to 1000);
        it is never guessed
    order : ``xyxy`` or ``yxyx``
    labels : known classes; other labels are an error

    A text without a list and without an entry has no boxes.

    Raises
    ------
    ValueError : an unknown unit, a list that is not valid JSON or not finished, several lists, a
        list of numbers, an entry without a valid box, or a coordinate outside the unit or, in
        pixels, outside the image
    """
    if not isinstance(text, str):
        raise HostError("text", f"a {type(text).__name__}", "give the answer as a string")
    if not isinstance(unit, str) or unit not in UNITS:
        raise HostError("unit", repr(unit), f"state one of {', '.join(UNITS)}")
    if order not in ("xyxy", "yxyx"):
        raise HostError("order", repr(order), "state xyxy or yxyx")
    sides = [] if isinstance(size, str) or not isinstance(size, Iterable) else list(size)
    real = all(isinstance(side, numbers.Real) and 0 < side < math.inf for side in sides)
    if len(sides) != 2 or not real:
        raise HostError("size", f"{size!r:.80}", "give width and height in pixels")
    listed = isinstance(labels, Iterable) and not isinstance(labels, str)
    names = list(labels) if listed and labels is not None else [labels]
    if labels is not None and not all(listed and isinstance(each, str) for each in names):
        raise HostError("labels", f"{labels!r:.80}", "give a list of names")
    known = None if labels is None else {str(each) for each in names}
    entries = box_entries(text)
    return [_box(f"entry {i}", each, sides, unit, order, known) for i, each in enumerate(entries)]


def _box(
    where: str, entry: Any, size: Sequence[float], unit: str, order: str, labels: set[str] | None
) -> Box:
    box = _first(where, entry, BOX_KEYS)
    label = _first(where, entry, LABEL_KEYS)
    if not isinstance(label, str):
        raise HostError(f"{where}: label", f"{label!r:.80}", "a label is a string")
    if labels is not None and label not in labels:
        raise HostError(f"{where}: label", repr(label), f"classes: {', '.join(sorted(labels))}")
    real = isinstance(box, list) and all(type(each) in (int, float) for each in box)
    if not real or len(box) != 4 or not all(abs(each) <= sys.float_info.max for each in box):
        raise HostError(f"{where}: box", repr(box), "a box is four numbers")
    whole = UNITS[unit]
    if whole is not None and not all(0 <= each <= whole for each in box):
        fix = "state the unit in which the model answers"
        raise HostError(f"{where}: box", f"{box} is outside 0 to {whole:g} ({unit})", fix)
    left, top, right, bottom = box if order == "xyxy" else (box[1], box[0], box[3], box[2])
    if right < left or bottom < top:
        fix = "a box is two corners, the first at the left and top; width and height are not read"
        raise HostError(f"{where}: box", f"{box}: a side is negative in {order}", fix)
    width, height = size
    if whole is None:
        if left < 0 or top < 0 or right > width or bottom > height:
            what = f"{box} is outside the image of {width:g} x {height:g} pixels"
            raise HostError(f"{where}: box", what, "state the unit in which the model answers")
        return Box(label, (left, top, right, bottom))
    corners = (left * width, top * height, right * width, bottom * height)
    return Box(label, tuple(each / whole for each in corners))


def _first(where: str, entry: Any, keys: Sequence[str]) -> Any:
    if isinstance(entry, Mapping):
        for key in keys:
            if key in entry:
                return entry[key]
    raise HostError(where, f"{entry!r:.80} has none of {', '.join(keys)}", "check the prompt")
