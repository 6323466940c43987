"""Short reprs for notebooks and debuggers: at most fifteen lines."""

import textwrap
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, TypeVar

import numpy as np

MOST_LINES = 15
MOST_VALUES = 6  # of an array that is spelled out
MOST_CHARACTERS = 60  # of one value
WIDTH = 80

AnyClass = TypeVar("AnyClass", bound=type)


def outlined(kind: AnyClass) -> AnyClass:
    """Class decorator: gives a dataclass or named tuple, and classes made of it, a short repr."""

    def describe(thing: Any) -> str:
        names = getattr(thing, "_fields", None) or [one.name for one in fields(thing) if one.repr]
        return outline(kind, *(f"{name}={short_repr(getattr(thing, name))}" for name in names))

    setattr(kind, "__repr__", describe)  # noqa: B010 - mypy knows no assignment to a method
    return kind


def outline(thing: object, *facts: str) -> str:
    """Returns ``Kind(fact, fact)`` of a thing or its kind, wrapped at 80 columns."""
    kind = thing if isinstance(thing, type) else type(thing)
    whole = f"{kind.__name__}({', '.join(facts)})"
    lines = textwrap.wrap(
        whole,
        WIDTH,
        subsequent_indent="    ",
        break_on_hyphens=False,
        max_lines=MOST_LINES,
        placeholder=" ...)",
    )
    return "\n".join(lines)


def short_repr(value: Any) -> str:
    """Returns a short repr: an array by dtype and shape, a long list by its length."""
    if isinstance(value, np.ndarray):
        if value.size <= MOST_VALUES and value.ndim == 1:
            return _cut(str(value.tolist()))
        return f"{value.dtype} {value.shape}"
    if isinstance(value, Mapping):
        return _cut(f"{{{', '.join(f'{key!r}: {short_repr(value[key])}' for key in value)}}}")
    if isinstance(value, tuple | list) and not hasattr(value, "_fields"):
        first = ", ".join(short_repr(each) for each in value[:MOST_VALUES])
        if len(value) > MOST_VALUES:
            first = f"{_cut(first)} and {len(value) - MOST_VALUES:,} more"
        return f"({first})"
    return _cut(repr(value))


def _cut(text: str) -> str:
    text = " ".join(text.split())
    half = MOST_CHARACTERS // 2
    return text if len(text) <= MOST_CHARACTERS else f"{text[:half]} ... {text[-half:]}"
