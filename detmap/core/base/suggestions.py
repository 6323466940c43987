"""Proposes the right name for a wrong one: by meaning first, by spelling second."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from detmap.errors import DataError, few

IOU_TYPES = ("ioutype", "iou_type")
KINDS_OF_IOU = ("bbox", "segm", "keypoints")
"""The argument of other tools for what is compared, and its values."""

FUNCTIONS = ("compare", "convert", "diagnose", "doctor", "explain", "report", "reproduce", "tools")
"""Functions of `detmap` that people look for at a result."""

RETURNED = {
    **{"evaluate": "evaluate(...)", "Evaluator": "compute()"},
    "confusion_matrix": "confusion_matrix(...)",
}
"""Functions whose results take what people write as arguments."""

ANYWHERE = ("COMMAND", "--version", "detmap")
"""Words of a command line that are proposed although they are no commands."""

CLOSE = 0.65  # similarity of names, of difflib
SHORTEST = 3  # characters of a name that others begin with

_METRIC_WORDS = (
    (r"^m(?=a[pr])", ""),
    (r"small$", "s"),
    (r"medium$", "m"),
    (r"large$", "l"),
    (r"^(a[pr])0?50?95$", r"\1"),
    (r"^(a[pr])0?5$", r"\g<1>50"),
    (r"^(a[pr])075$", r"\g<1>75"),
    (r"^ar$", "ar100"),
)
"""mAP50, map_50 and AP@.5 are one metric; AP, mAP and mAP@0.5:0.95 another one."""


@cache
def words(kind: str) -> Mapping[str, Any]:
    """Returns a table of suggestions.toml: the right name, and the words that people write for it.
    Empty if there is no such table.
    """
    import tomllib  # for messages alone

    text = Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
    return dict(tomllib.loads(text).get(kind, {}))


def metric_key(name: str) -> str:
    """Returns the same text for all spellings of a metric."""
    key = re.sub(r"[^a-z0-9]", "", name.casefold())
    for pattern, text in _METRIC_WORDS:
        key = re.sub(pattern, text, key)
    return key


def meanings(kind: str, name: str) -> list[str]:
    """Returns the names that a word of another tool means, whether they exist or not."""
    key = name.casefold().strip("-_ ")
    if kind in ("command", "option", "protocol"):
        key = re.sub(r"(-8\.\d)\.\d+$", r"\1", key.replace("_", "-"))  # Ultralytics 8.2.103
    return [right for right, meant in words(kind).items() if key in meant.split()]


def suggestions(kind: str, name: str, known: Iterable[Any]) -> list[str]:
    """Returns the names that a wrong name may mean, best first; empty if none is near.

    Parameters
    ----------
    kind : a table of `words`; ``metric``; or another word, for names that have a spelling only
    name : what was written
    known : the names that exist
    """
    texts = [str(each) for each in known]
    if kind == "metric":
        meant = [each for each in texts if metric_key(each) == metric_key(name)]
    else:
        known = (*texts, *ANYWHERE)
        meant = [each for each in meanings(kind, name) if each.partition(" ")[0] in known]
    if meant:
        return meant
    import difflib  # for messages alone

    key = name.casefold().strip("-_ ")
    folded = {each.casefold().strip("-"): each for each in reversed(texts)}
    begun = [each for each in reversed(folded) if len(key) >= SHORTEST and each.startswith(key)]
    if begun:
        return [folded[each] for each in begun[:3]]
    return [
        folded[each] for each in difflib.get_close_matches(key[:200], folded, n=1, cutoff=CLOSE)
    ]


def did_you_mean(kind: str, name: str, known: Iterable[Any]) -> str:
    """Returns "did you mean ...?" and a space; "" if no name is near."""
    found = suggestions(kind, name, known)
    named = list(map(repr, found))
    listed = " or ".join((", ".join(named[:-1]), named[-1])) if named[1:] else "".join(named)
    return f"did you mean {listed}? " if found else ""


def did_you_mean_value(name: str, metrics: Iterable[Any], classes: Iterable[Any]) -> str:
    """Returns the proposal for a wrong ``METRIC/CLASS``, and a list of what there is."""
    metric, _, of = name.partition("/")
    known, named = list(map(str, metrics)), list(map(str, classes))
    hint = ""
    if metric and metric not in known and f"m{metric}" not in known:
        hint = did_you_mean("metric", metric, known)
    if of and of not in named:
        hint += did_you_mean("class", of, named)
    return f"{hint}metrics: {', '.join(known)}; classes: {few(named)}"


def same_name(where: str, name: str, n: int) -> DataError:
    """Returns the error for a name that n classes have."""
    return DataError(where, f"{n} classes are named {name!r}", "give each a name of its own")


def missing(name: object, known: Iterable[Any]) -> KeyError:
    """Returns the error for the name of a metric that is not there."""
    names = list(map(str, known))
    hint = did_you_mean("metric", str(name), names)
    return KeyError(f"there is no {name!s:.80}; {hint}the names are {', '.join(names)}")


def missing_attribute(thing: Any, name: str, metrics: Iterable[str] = ()) -> AttributeError:
    """Returns the error for an attribute that an object lacks, with the one that may be meant.

    metrics : names of the metrics that the object has as items
    """
    own = type(thing).__name__
    text = f"{own!r} object has no attribute {name!r}"
    if name.startswith("_"):
        return AttributeError(text)
    known = [each for each in dir(thing) if not each.startswith("_")]
    found = (
        [f"detmap.{name}(...)"] * (name in FUNCTIONS)
        or _meaning(words("attributes").get(own, {}), name)
        or suggestions("result", name, known)
        or [f'{own.lower()}["{each}"]' for each in suggestions("metric", name, metrics)]
    )
    return AttributeError(f"{text}; did you mean {' or '.join(found)}?" if found else text)


class ProposesNames:
    """Base class: the error for a wrong attribute proposes the right one."""

    __slots__ = ()

    if not TYPE_CHECKING:  # a type checker would accept any attribute

        def __getattr__(self, name: str) -> Any:
            raise missing_attribute(self, name)


Function = TypeVar("Function", bound=Callable[..., Any])


def proposes_arguments(function: Function, more: Sequence[str] = ()) -> Function:
    """Decorates a public function: a wrong keyword ends in a `TypeError` with the right one.

    `more` are the keywords that it takes besides its own.
    """
    code = function.__code__
    known = (*code.co_varnames[: code.co_argcount + code.co_kwonlyargcount], *more)

    @wraps(function)
    def checked(*args: Any, **options: Any) -> Any:
        for name in options:
            if name not in known:
                raise TypeError(_wrong_argument(function, name, known, options[name]))
        return function(*args, **options)

    return checked  # type: ignore[return-value]


def _wrong_argument(
    function: Callable[..., Any], name: str, known: tuple[str, ...], value: Any
) -> str:
    """The message about a keyword that a function does not have."""
    called = function.__qualname__.removesuffix(".__init__")
    own = [each for each in known if each != "self"]
    found = [f"{each}=..." for each in _meaning(words("arguments"), name) if each in own]
    found += [each for each in _meaning(words("settings"), name) if each.partition("=")[0] in own]
    if called == "convert" and name in ("detections", *words("arguments")["detections"].split()):
        found = ["convert(detections, output, truth=...)"]
    if "truth" in own and not found:
        found += [f"detmap.{each}" for each in _meaning(words("read"), name)]
    if name.casefold() in IOU_TYPES and value in KINDS_OF_IOU:
        found = [f'protocol="coco-{value}"']
    result = RETURNED.get(called.removeprefix("Diagnosis."))
    if result:
        found += [f"{result}.{each}" for each in _meaning(words("returned"), name)]
    found = found or [f"{each}=..." for each in suggestions("argument", name, own)]
    hint = f"write {found[0]}" if found else f"the arguments are {', '.join(own)}"
    return f"{called}() has no argument {name!r}: {hint}"


def _meaning(table: Mapping[str, str], name: str) -> list[str]:
    return [right for right, meant in table.items() if name.casefold() in meant.split()]
