"""Errors that detmap raises on purpose. Each says where, what is wrong, and how to fix it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

DISTRIBUTION = "detmap-eval"
"""The name under which package indexes know detmap."""

MOST_NAMED = 5
"""Things that a message names; of more it says how many."""


MOST_CHARACTERS = 600
"""Of each of the three parts of a message, about."""

LONGEST_VALUE = 200
"""Of one value in a message, about: what is in quotes, or has no space (nor / of a path) in it."""


_LONG_VALUE = re.compile(
    rf"\'[^\']{{{LONGEST_VALUE},}}\'|\"[^\"]{{{LONGEST_VALUE},}}\"|[^\s,;/]{{{LONGEST_VALUE},}}"
)


class DetmapError(Exception):
    """Base class of all errors that a user can fix.

    Parameters
    ----------
    where : the file, record and field (``results.json[1042].bbox``)
    what : what is wrong there, with the invalid value
    fix : how to fix it
    """

    def __init__(self, where: str, what: str, fix: str = "") -> None:
        where, what, fix = map(clipped, (where, what, fix))
        super().__init__(where, what, fix)
        self.where, self.what, self.fix = where, what, fix

    def __str__(self) -> str:
        text = f"{self.where}: {self.what}"
        return f"{text} ({self.fix})" if self.fix else text


def clipped(text: str) -> str:
    """A part of a message; the middles of its values and its own are left out where they are too
    long to be read.
    """
    return _without_middle(_LONG_VALUE.sub(_cut_value, str(text)), MOST_CHARACTERS)


def _cut_value(value: re.Match[str]) -> str:
    return _without_middle(value[0], LONGEST_VALUE)


def _without_middle(text: str, most: int) -> str:
    half = most // 2
    return text if len(text) <= most else f"{text[:half]} ... {text[-half:]}"


class DataError(DetmapError):
    """The input is invalid."""


class ProtocolError(DetmapError):
    """A protocol or one of its keys does not exist or is out of range."""


class MergeError(DetmapError):
    """Two partial results cannot be merged."""


def require(module: str, extra: str) -> Any:
    """Imports a module of an optional dependency.

    Raises `DetmapError` if it is not installed; the fix names the `extra` that installs it.
    """
    from importlib import import_module

    try:
        return import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        raise DetmapError(package, "is required but not installed", hint(extra)) from None


def hint(extra: str) -> str:
    """Returns the command that installs an extra."""
    return f"pip install '{DISTRIBUTION}[{extra}]'"


def few(names: Iterable[Any]) -> str:
    """Joins the first names of a list and the number of the others."""
    names = list(names)
    more = f" and {len(names) - MOST_NAMED:,} more" if len(names) > MOST_NAMED else ""
    return ", ".join(map(str, names[:MOST_NAMED])) + more


def counted(n: float, noun: str, *, sep: str = ",") -> str:
    """Formats a count: 1 class, 2 classes. `sep` separates thousands."""
    many = f"{noun}es" if noun.endswith(("s", "x", "ch")) else f"{noun}s"
    return f"{n:{sep}} {noun if n == 1 else many}"


SINGULAR = {"have": "has", "are": "is", "were": "was", "do": "does", "they": "it", "their": "its"}
VERBS = ("share", "lie", "name", "lack", "meet", "give", "say", "show", "touch")


def singular(text: str) -> str:
    """Converts a plural clause to singular: "classes have no object" to "class has no object". The
    first word is the subject.
    """
    words = re.split(r"( )", text)
    noun = words[0]
    words[0] = noun[:-2] if noun in ("classes", "boxes") else noun.removesuffix("s")
    if len(words) > 2 and words[2] in VERBS:
        words[2] += "s"
    subject, colon, rest = "".join(words).partition(":")
    subject = re.sub(r"\b\w+\b", lambda word: SINGULAR.get(word[0], word[0]), subject)
    return subject + colon + re.sub(r"\btheir\b", "its", rest)
