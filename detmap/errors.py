"""Errors that detmap raises on purpose. Each reports where, what is wrong, and how to fix it."""

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

DISTRIBUTION = "detmap-eval"
"""The name under which package indexes know detmap."""

MOST_NAMED = 5
"""Things that a message names; of more it says how many."""


MOST_CHARACTERS = 600
"""Of each of the three parts of a message, about."""

LONGEST_VALUE = 200
"""Of one value in a message, about: what is in quotes, or has no space (nor / of a path) in it."""


_VALUE = rf"(?<!\w)'[^']*'|(?<!\w)\"[^\"]*\"|[^\s,;/'\"]{{{LONGEST_VALUE},}}"
"""Values in quotes, so that text between two of them is none; and long words."""


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

    def without_paths(self, *paths: str | os.PathLike[str]) -> str:
        """Returns the message for readers who must not learn where these files are.

        Each path, its folder and its name become ``the ground truth``; with several, ``the input``.
        """
        text, name = str(self), "the ground truth" if len(paths) == 1 else "the input"
        spellings = {
            each
            for path in (os.fspath(given) for given in paths)
            for each in (path, str(Path(path)), os.path.abspath(path), os.path.realpath(path))
        }
        spellings |= {os.path.basename(each) for each in spellings}
        for spelling in sorted(filter(None, spellings), key=len, reverse=True):
            text = text.replace(spelling, name)
        folders = {os.path.dirname(each) + os.sep for each in spellings if os.path.isabs(each)}
        for folder in sorted(folders - {os.sep}, key=len, reverse=True):
            text = text.replace(folder, "")
        return text


def clipped(text: str) -> str:
    """A part of a message; the middles of its values and its own are left out where they are too
    long to be read.
    """
    cut = re.sub(_VALUE, lambda value: _without_middle(value[0], LONGEST_VALUE), str(text))
    return _without_middle(cut, MOST_CHARACTERS)


def _without_middle(text: str, most: int) -> str:
    half = most // 2
    return text if len(text) <= most else f"{text[:half]} ... {text[-half:]}"


class DataError(DetmapError):
    """The input is invalid."""


class OverlapError(DataError):
    """An IoU is 0/0 or inf/inf in the number type of the protocol; others may have a number."""


class CrowdedError(DataError):
    """More boxes of an image overlap than can be compared; other rules may have a number."""


class ProtocolError(DetmapError):
    """A protocol or one of its keys does not exist or is out of range."""


class MergeError(DetmapError):
    """Two partial results cannot be merged."""


class MissingError(DetmapError, ImportError):
    """A package is not installed, or cannot be imported."""


def require(module: str, extra: str) -> Any:
    """Imports a module of an optional dependency.

    Raises `DetmapError` if it is not installed or cannot be imported; the fix names the `extra`
    that installs it.
    """
    from importlib import import_module

    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        missing = isinstance(error, ModuleNotFoundError) and error.name == package
        what = "is required but not installed" if missing else f"cannot be imported: {error}"
        raise MissingError(package, what, hint(extra)) from None


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
VERBS = (
    *("share", "lie", "name", "lack", "meet", "give", "say", "show", "touch", "identify", "match"),
    *("overlap", "exceed", "take", "seem", "use", "count", "state", "fit", "begin", "lose", "need"),
)


def singular(text: str) -> str:
    """Converts a plural clause to singular: "classes have no object" to "class has no object". The
    first word is the subject; verbs of other nouns ("images that are", "all lines are") are kept.
    """
    words = text.split(" ")
    bare = [word.rstrip(",;:") for word in words]
    head = int(
        words[0] in ("ground-truth", "result", "data", "excluded") or words[0].endswith("ss")
    )
    colon = next((i for i, word in enumerate(words) if word.endswith(":")), len(words))
    found, verb_seen = list(bare), False
    for i, word in enumerate(bare):
        before = bare[i - 1] if i else ""
        if i == head:
            found[i] = word[:-2] if word in ("classes", "boxes") else word.removesuffix("s")
        elif before == "they" or (i == head + 1 and word in VERBS):
            found[i], verb_seen = _third_person(word), True
        elif word in ("they", "their"):
            found[i] = SINGULAR[word]
        elif word == "them" and before in ("around", "on", "cover"):
            found[i] = "it"
        elif word in SINGULAR and i <= colon and not _belongs_to_clause(bare, i, head, verb_seen):
            found[i], verb_seen = SINGULAR[word], True
    return " ".join(
        new + word[len(old) :] for new, old, word in zip(found, bare, words, strict=True)
    )


def _third_person(verb: str) -> str:
    if verb in SINGULAR:
        return SINGULAR[verb]
    if verb.endswith("fy"):
        return f"{verb[:-1]}ies"
    return f"{verb}es" if verb.endswith("ch") else f"{verb}s"


def _belongs_to_clause(words: list[str], i: int, head: int, verb_seen: bool) -> bool:
    """Whether the verb at i belongs to another plural noun than the subject, or to "do not"."""
    clause = words[i - 1] in ("that", "which")
    noun = i - 2 if clause else i - 1
    plural = words[noun].endswith("s") and not words[noun].endswith(("ss", "is"))
    own = noun == head or not (clause or verb_seen)
    return words[noun] in ("them", "not") or (plural and not own)
