"""Checks of single keys: each converts a TOML value to the value of the field, or raises
`ValueError`.
"""

import itertools
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from detmap.core.base.arguments import is_number
from detmap.core.base.grids import Grid
from detmap.core.base.immutable import Value
from detmap.core.protocol.metric_rows import NO_LIMIT

MAX_THRESHOLDS = 64  # a match result has one bit per threshold in a machine word
MAX_SUBSETS = 64  # and so is a subset
NAME = re.compile(r"[A-Za-z0-9_-]+")
LABELLED = "labelled"


class Check(NamedTuple):
    """The parser of one key, and its valid values in words."""

    read: Callable[[Any], Any]
    legal: str


class Key(NamedTuple):
    """One row of the table of keys; its name is the annotated field.

    Parameters
    ----------
    meaning : the rule, in words
    check : the valid values
    source : the reference code with this behavior
    default : the TOML value if a protocol does not give the key; None: the key is required
    """

    meaning: str
    check: Check
    source: str
    default: Any = None


class IllegalPartError(ValueError):
    """A part of a table is not legal.

    Parameters
    ----------
    name : its key; value : what it has
    """

    def __init__(self, name: str, value: Any) -> None:
        super().__init__(name)
        self.name, self.value = name, value


@dataclass(slots=True, eq=False, repr=False)
class Range(Value):
    """Values of an attribute, both ends included; the upper end may be inf."""

    attribute: str
    low: float
    high: float


@dataclass(slots=True, eq=False, repr=False)
class Subset(Value):
    """The objects with all attributes in their ranges: ``small``, ``Reasonable``."""

    name: str
    ranges: tuple[Range, ...]


@dataclass(slots=True, eq=False, repr=False)
class Group(Value):
    """Classes that are averaged together: those with these names; () for those that the ground
    truth labels with the name of the group.
    """

    name: str
    classes: tuple[str, ...]


def choice(*legal: str) -> Check:
    """One of several words."""

    def read(value: Any) -> str:
        if value not in legal:
            raise ValueError
        return str(value)

    return Check(read, "one of " + ", ".join(legal))


def grid(low: float, high: float, most: int, *, above: bool) -> Check:
    """Ascending numbers between two bounds; `above` excludes the lower one."""

    def read(value: Any) -> Grid:
        if isinstance(value, bool) or not isinstance(value, str | list | int | float):
            raise ValueError
        points = Grid(value) if isinstance(value, str) else Grid(_numbers(value))
        numbers = points.values()
        inside = (numbers > low if above else numbers >= low) & (numbers <= high)
        if not (0 < numbers.size <= most and inside.all() and (np.diff(numbers) > 0).all()):
            raise ValueError
        return points

    bracket = "(" if above else "["
    return Check(
        read,
        f"ascending numbers in {bracket}{low:g}, {high:g}], at most {most}, "
        "as a list or as start:step:stop",
    )


def number(low: float, high: float) -> Check:
    """A number between two bounds."""

    def read(value: Any) -> float:
        (single,) = _numbers(value)
        if not low <= single <= high:
            raise ValueError
        return single

    return Check(read, f"a number in [{low:g}, {high:g}]")


def _numbers(value: Any) -> tuple[float, ...]:
    values = value if isinstance(value, list) else [value]
    if not all(is_number(x) and math.isfinite(x) for x in values):
        raise ValueError
    return tuple(float(x) for x in values)


def _sigmas(value: Any) -> tuple[float, ...]:
    sigmas = _numbers(value)
    if not all(0 < sigma <= 1 for sigma in sigmas):
        raise ValueError
    return sigmas


SIGMAS = Check(_sigmas, "a list of numbers in (0, 1], one per keypoint; [] without keypoints")


def _floor(value: Any) -> tuple[float, ...]:
    floor = _numbers(value)
    if len(floor) > 1:
        raise ValueError
    return floor


FLOOR = Check(_floor, "a list of one number; [] for no floor")


def _stops(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(
        x in ("no_detections", "neutral_first") for x in value
    ):
        raise ValueError
    return tuple(value)


STOPS = Check(_stops, "a list of no_detections, neutral_first")


def _decimals(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not -1 <= value <= 9:
        raise ValueError
    return value


DECIMALS = Check(_decimals, "a whole number from -1 to 9")


def _whole(value: Any, most: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value < most:
        raise ValueError
    return value


def _limits(value: Any) -> tuple[int, ...]:
    values = value if isinstance(value, list) else [value]
    return tuple(sorted({_whole(x, NO_LIMIT) for x in values})) or (NO_LIMIT,)


def _table(value: Any, most: int) -> Mapping[str, Any]:
    if not isinstance(value, Mapping) or len(value) > most:
        raise ValueError
    if not all(isinstance(name, str) and NAME.fullmatch(name) for name in value):
        raise ValueError
    return value


def _subsets(value: Any) -> tuple[Subset, ...]:
    subsets = []
    for name, inner in _table(value, MAX_SUBSETS).items():
        try:
            subsets.append(Subset(name, _ranges(inner)))
        except (ValueError, TypeError, OverflowError):
            raise IllegalPartError(name, inner) from None
    if not subsets:
        raise ValueError
    return tuple(subsets)


def _ranges(value: Any) -> tuple[Range, ...]:
    ranges = []
    for attribute, bounds in _table(value, MAX_SUBSETS).items():
        if not isinstance(bounds, list):
            raise ValueError
        bounds = [math.inf if each == "inf" else each for each in bounds]  # JSON has no infinity
        if not all(map(is_number, bounds)):
            raise ValueError
        low, high = map(float, bounds)
        if not low <= high or low == math.inf:
            raise ValueError
        ranges.append(Range(attribute, low, high))
    return tuple(ranges)


REGIONS = ("region", "region_to_find")
ROLES = ("count", "ignore", "absorb", "absent", *REGIONS)


def _neutral(value: Any) -> tuple[tuple[str, str], ...]:
    roles = _table(value, MAX_SUBSETS)
    if not all(what in ROLES for what in roles.values()):
        raise ValueError
    return tuple(sorted(roles.items()))


def _classes(value: Any) -> tuple[tuple[str, str], ...]:
    if not all(isinstance(x, str) and x for x in _named(value).values()):
        raise ValueError
    return tuple(sorted(value.items()))


def _class_thresholds(value: Any) -> tuple[tuple[str, float], ...]:
    numbers = {name: _numbers(x) for name, x in _named(value).items()}
    if not all(len(x) == 1 and 0 < x[0] <= 1 for x in numbers.values()):
        raise ValueError
    return tuple(sorted((name, x[0]) for name, x in numbers.items()))


def _named(value: Any) -> Mapping[str, Any]:
    """A table by class name; names can have any characters."""
    if not isinstance(value, Mapping) or not all(isinstance(x, str) and x for x in value):
        raise ValueError
    return value


def _groups(value: Any) -> tuple[Group, ...]:
    groups = []
    for name, classes in _table(value, 1000).items():
        groups.append(Group(name, () if classes == LABELLED else _strings(classes)))
    return tuple(groups)


def _strings(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not value or not all(isinstance(x, str) for x in value):
        raise ValueError
    return tuple(value)


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip() or not value.strip().isprintable():
        raise ValueError  # a line break or an escape sequence would break the output
    return value.strip()


def _title(value: Any) -> str:
    if "|" in _text(value):
        raise ValueError  # it separates the fields of a signature
    return _text(value)


TEXT = Check(_text, "text")
TITLE = Check(_title, "text without |")
VERSION = Check(lambda value: _whole(value, 2**31), "a whole number from 1")
WHOLE = Check(lambda value: _whole(value, 1_000_000), "a whole number from 1 to 1,000,000")
LIMITS = Check(_limits, "a list of positive whole numbers; [] for no limit")
SUBSETS = Check(
    _subsets,
    f"1 to {MAX_SUBSETS} named tables of ranges, NAME.ATTRIBUTE = [low, high] with low <= high",
)
NEUTRAL = Check(_neutral, f"a table of roles, each one of {', '.join(ROLES)}")
CLASSES = Check(_classes, "a table of class names, each the name of a class")
CLASS_THRESHOLDS = Check(_class_thresholds, "a table of class names, each a number in (0, 1]")
GROUPS = Check(_groups, f'a table of groups, each "{LABELLED}" or a list of class names')
METRICS = Check(_strings, "a list of metric names such as AP, AP50, AP@subset, AR@max_dets, mAP")


def _references(value: Any) -> tuple[float, ...]:
    numbers = _numbers(value)
    ascending = all(a < b for a, b in itertools.pairwise(numbers))
    if not isinstance(value, list) or not numbers or not ascending or numbers[0] < 0:
        raise ValueError
    return numbers


def _margins(value: Any) -> tuple[tuple[str, float], ...]:
    margin = number(1, 1e6).read
    return tuple(sorted((name, margin(each)) for name, each in _table(value, MAX_SUBSETS).items()))


REFERENCES = Check(_references, "a list of ascending numbers from 0")
MARGINS = Check(_margins, "a table of subsets, each with a number in [1, 1e+06]")
