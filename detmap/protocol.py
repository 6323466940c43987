"""Protocols: every rule by which benchmarks differ, as data.

A protocol is a tree of frozen dataclasses read from a TOML file in ``configs/``. Code never asks
for its name: a variant of a rule is another value of a key, and every key is checked here, once.
"""

from __future__ import annotations

import difflib
import json
import math
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import numpy as np
from numpy.typing import NDArray

from detmap.errors import ProtocolError
from detmap.resources import folder

MAX_THRESHOLDS = 64  # a verdict is one bit a threshold in one machine word
MAX_AREAS = 64
MAX_LIMIT = 2**31 - 1  # no image can have as many detections: no limit


@dataclass(frozen=True, slots=True)
class Grid:
    """A grid of numbers as a recipe, so that its last bits are those of the reference.

    Parameters
    ----------
    recipe : ``start:step:stop`` spaced as ``np.linspace`` does (pycocotools); ``matlab
        start:step:stop`` spaced from both ends as MATLAB's colon does (VOC devkit); ``arange
        start:step:stop`` spaced as ``np.arange(start, stop+step, step)`` (py-faster-rcnn); or a
        tuple of the numbers themselves
    """

    recipe: str | tuple[float, ...]

    def values(self) -> NDArray[np.float64]:
        """The (n,) float64 numbers of the grid."""
        if isinstance(self.recipe, tuple):
            return np.array(self.recipe, dtype=np.float64)
        kind, start, step, stop = _parse_grid(self.recipe)
        n = round((stop - start) / step) + 1
        if kind == "matlab":
            k = np.arange(n)
            return np.where(k <= (n - 1) / 2, start + k * step, stop - (n - 1 - k) * step)
        if kind == "arange":
            return np.asarray(start + np.arange(n) * step, dtype=np.float64)
        return np.linspace(start, stop, n, endpoint=True)

    def __str__(self) -> str:
        return (
            self.recipe
            if isinstance(self.recipe, str)
            else ", ".join(f"{x:g}" for x in self.recipe)
        )


def _parse_grid(recipe: str) -> tuple[str, float, float, float]:
    found = re.fullmatch(r"(?:(matlab|arange) )?([^: ]+):([^: ]+):([^: ]+)", recipe.strip())
    if not found:
        raise ValueError
    start, step, stop = (float(x) for x in found.groups()[1:])
    if not (step > 0 and stop >= start and (stop - start) / step < 1e6):
        raise ValueError
    return found.group(1) or "linspace", start, step, stop


# --- checks of single keys: each turns a raw TOML value into the field's value, or raises
# ValueError ---------------------


@dataclass(frozen=True, slots=True)
class Check:
    """How the value of one key is read, and what is legal there, in words."""

    read: Callable[[Any], Any]
    legal: str


def _choice(*legal: str) -> Check:
    def read(value: Any) -> str:
        if value not in legal:
            raise ValueError
        return str(value)

    return Check(read, "one of " + ", ".join(legal))


def _grid(low: float, high: float, most: int, *, above: bool) -> Check:
    def read(value: Any) -> Grid:
        if isinstance(value, bool) or not isinstance(value, str | list | int | float):
            raise ValueError
        grid = Grid(value) if isinstance(value, str) else Grid(_numbers(value))
        numbers = grid.values()
        inside = (numbers > low if above else numbers >= low) & (numbers <= high)
        if not (0 < numbers.size <= most and inside.all() and (np.diff(numbers) > 0).all()):
            raise ValueError
        return grid

    bracket = "(" if above else "["
    return Check(
        read,
        f"ascending numbers in {bracket}{low:g}, {high:g}], at most {most}, as a list or as start:step:stop",
    )


def _numbers(value: Any) -> tuple[float, ...]:
    values = value if isinstance(value, list) else [value]
    if not all(
        isinstance(x, int | float) and not isinstance(x, bool) and math.isfinite(x) for x in values
    ):
        raise ValueError
    return tuple(float(x) for x in values)


def _float(low: float, high: float) -> Check:
    def read(value: Any) -> float:
        (number,) = _numbers(value)
        if not low <= number <= high:
            raise ValueError
        return number

    return Check(read, f"a number in [{low:g}, {high:g}]")


def _limits(value: Any) -> tuple[int, ...]:
    values = value if isinstance(value, list) else [value]
    if not all(
        isinstance(x, int) and not isinstance(x, bool) and 0 < x < MAX_LIMIT for x in values
    ):
        raise ValueError
    return tuple(sorted(set(values)))


def _areas(value: Any) -> tuple[Area, ...]:
    if not isinstance(value, Mapping) or not 0 < len(value) <= MAX_AREAS:
        raise ValueError
    areas = []
    for name, bounds in value.items():
        low, high = _numbers(bounds)
        if not (0 <= low <= high and re.fullmatch(r"[A-Za-z0-9_-]+", name)):
            raise ValueError
        areas.append(Area(name, low, high))
    return tuple(areas)


def _strings(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not value or not all(isinstance(x, str) for x in value):
        raise ValueError
    return tuple(value)


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError
    return value.strip()


def _version(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError
    return value


# --- the tree -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Area:
    """A range of object areas in square pixels, both ends included."""

    name: str
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Boxes:
    """How far a box reaches: ``continuous`` edges (COCO) or ``inclusive`` pixels, width x2-x1+1
    (VOC).
    """

    extent: Annotated[str, _choice("continuous", "inclusive")]


@dataclass(frozen=True, slots=True)
class Iou:
    """Which overlaps count as a match.

    Parameters
    ----------
    thresholds : the IoU thresholds
    comparison : ``>=`` (VOC devkit, COCO) or ``>`` (py-faster-rcnn)
    cap : no threshold is higher than this; COCO's 1-1e-10 lets a threshold of 1 accept a perfect
        overlap
    """

    thresholds: Annotated[Grid, _grid(0, 1, MAX_THRESHOLDS, above=True)]
    comparison: Annotated[str, _choice(">=", ">")]
    cap: Annotated[float, _float(0, 1)]


@dataclass(frozen=True, slots=True)
class Matching:
    """Which object a detection may take, and what neutral objects do.

    Parameters
    ----------
    rule : ``best_free``: the best object that is still free (COCO); ``best_any``: the best object
        of all, and if that one is taken the detection is false (VOC)
    crowd, difficult : what an object with that flag is: ``count``: an ordinary object; ``ignore``:
        neither an object to find nor, where a detection meets it, an error; ``absorb``: the same,
        and the overlap with it is measured over the detection's own area, so that one region takes
        many detections (COCO crowds)
    """

    rule: Annotated[str, _choice("best_free", "best_any")]
    crowd: Annotated[str, _choice("count", "ignore", "absorb")]
    difficult: Annotated[str, _choice("count", "ignore", "absorb")]


@dataclass(frozen=True, slots=True)
class Limits:
    """How many detections of an image and class are looked at, best scores first; no number
    means all.
    """

    max_dets: Annotated[
        tuple[int, ...], Check(_limits, "a list of positive whole numbers; [] for no limit")
    ]


@dataclass(frozen=True, slots=True)
class Ranking:
    """Which of two equal scores ranks first: by ``image`` id, then input order (COCO); by
    ``input`` order (VOC).
    """

    ties: Annotated[str, _choice("image", "input")]


@dataclass(frozen=True, slots=True)
class AveragePrecision:
    """From a ranked list to one number.

    Parameters
    ----------
    integrator : the rule that turns recall and precision into AP
    grid : recall points of ``grid_envelope``
    eleven : recall points of ``eleven_point``
    epsilon : added to TP + FP before the division; COCO adds ``np.spacing(1)``
    """

    integrator: Annotated[str, _choice("eleven_point", "all_points", "grid_envelope", "step")]
    grid: Annotated[Grid, _grid(0, 1, 100_001, above=False)]
    eleven: Annotated[Grid, _grid(0, 1, 100_001, above=False)]
    epsilon: Annotated[float, _float(0, 1e-6)]


@dataclass(frozen=True, slots=True)
class Mean:
    """What a class without objects to find adds to the mean: nothing (``skip``), 0 (``zero``) or
    1 (``one``).
    """

    undefined: Annotated[str, _choice("skip", "zero", "one")]


@dataclass(frozen=True, slots=True)
class Protocol:
    """All that decides the number, beside the data.

    Parameters
    ----------
    name, version : identity of the stock protocol
    summary, source : prose for people; the only part that is not in the digest
    metrics : the rows of the result, in the small language of `detmap.aggregation.metric_rows`
    changes : what differs from the stock protocol, as (dotted key, value as JSON)
    stock : False for a protocol that detmap does not ship
    """

    name: Annotated[str, Check(_text, "text")]
    version: Annotated[int, Check(_version, "a whole number from 1")]
    summary: Annotated[str, Check(_text, "text")]
    source: Annotated[str, Check(_text, "text")]
    boxes: Boxes
    iou: Iou
    matching: Matching
    limits: Limits
    ranking: Ranking
    ap: AveragePrecision
    mean: Mean
    metrics: Annotated[
        tuple[str, ...],
        Check(_strings, "a list of metric names such as AP, AP50, AP@area, AR@max_dets, mAP"),
    ]
    areas: Annotated[
        tuple[Area, ...],
        Check(_areas, f"1 to {MAX_AREAS} named ranges, name = [low, high] with 0 <= low <= high"),
    ]
    changes: tuple[tuple[str, str], ...] = ()
    stock: bool = True

    def override(self, settings: Mapping[str, Any]) -> Protocol:
        """The same protocol with some dotted keys changed, ``{"limits.max_dets": [1, 10, 300]}``.

        Values are given as in TOML, or as text (``"[1,10,300]"``, ``"0.5:0.05:0.95"``).

        Raises
        ------
        ProtocolError : an unknown key, or a value out of range; the message lists what is legal
        """
        tree = self.as_dict()
        for key, value in settings.items():
            if key in ("name", "version", "summary", "source"):
                raise ProtocolError(
                    f"--set: {key}",
                    "names the protocol, it is no rule",
                    "write a TOML file of your own",
                )
            _put(tree, key, _from_text(value))
        changed = from_dict(tree, where="--set")
        stock = dict(_flat(self._unchanged().as_dict()))
        now = dict(_flat(changed.as_dict()))
        changes = tuple(
            (key, _canonical(now.get(key)))
            for key in (*now, *(stock.keys() - now.keys()))
            if now.get(key) != stock.get(key)
        )
        return replace(changed, changes=changes, stock=self.stock)

    def _unchanged(self) -> Protocol:
        return load(self.name) if self.stock and self.changes else replace(self, changes=())

    def as_dict(self) -> dict[str, Any]:
        """The tree as plain TOML values; `load` of the same values gives an equal protocol."""
        plain = _plain(self)
        del plain["changes"], plain["stock"]
        return dict(plain)

    def thresholds(self) -> NDArray[np.float64]:
        """(T,) IoU thresholds."""
        return self.iou.thresholds.values()

    def max_dets(self) -> tuple[int, ...]:
        """The M detection limits, ascending; one that is never reached where the protocol sets
        none.
        """
        return self.limits.max_dets or (MAX_LIMIT,)


# --- reading --------------------------------------------------------------------------------------


def names() -> list[str]:
    """The protocols that detmap ships."""
    return sorted(path.stem for path in folder("configs").glob("*.toml"))


def load(name_or_path: str | Path) -> Protocol:
    """A shipped protocol by its name, or one of your own by the path of its TOML file.

    Raises
    ------
    ProtocolError : no such protocol (did you mean ...), broken TOML, unknown keys, values out of
        range
    """
    shipped = folder("configs") / f"{name_or_path}.toml"
    own = Path(name_or_path)
    stock = "/" not in str(name_or_path) and own.suffix != ".toml"
    if stock and not shipped.is_file():
        close = difflib.get_close_matches(str(name_or_path), names(), n=1)
        hint = f"did you mean {close[0]}? " if close else ""
        raise ProtocolError(
            "protocol",
            f"no protocol {str(name_or_path)!r}",
            f"{hint}there are {', '.join(names())}",
        )
    path = shipped if stock else own
    try:
        tree = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ProtocolError(
            str(path), f"cannot be read: {error}", "name a shipped protocol or a TOML file"
        ) from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ProtocolError(
            str(path), f"not TOML: {error}", "see `detmap show coco-bbox` for an example"
        ) from None
    return replace(from_dict(tree, where=str(path)), stock=stock)


def from_dict(tree: Mapping[str, Any], where: str) -> Protocol:
    """A protocol from plain values, as `Protocol.as_dict` gives them; errors begin with `where`."""
    protocol: Protocol = _build_node(Protocol, tree, where, prefix="")
    return protocol


def _build_node(node: type, tree: Mapping[str, Any], where: str, prefix: str) -> Any:
    declared = _declared(node)
    for name in tree:
        if name not in declared:
            raise _unknown_key(
                f"{where}: {prefix}{name}", prefix + name, [prefix + known for known in declared]
            )
    values = {}
    for name, kind in declared.items():
        key = prefix + name
        if name not in tree:
            raise ProtocolError(
                f"{where}: {key}",
                "missing",
                "a protocol gives every key; see `detmap show coco-bbox`",
            )
        value = tree[name]
        if isinstance(kind, Check):
            try:
                values[name] = kind.read(value)
            except (ValueError, TypeError, OverflowError):
                raise ProtocolError(
                    f"{where}: {key}", f"{_canonical(value)} is not legal", kind.legal
                ) from None
        elif isinstance(value, Mapping):
            values[name] = _build_node(kind, value, where, prefix=f"{key}.")
        else:
            raise ProtocolError(
                f"{where}: {key}", f"{value!r} is not a table", f"set one of its keys, {key}.…"
            )
    return node(**values)


def _declared(node: type) -> dict[str, Check | type]:
    """The keys of one table: how each value is checked, or the class of an inner table."""
    declared: dict[str, Check | type] = {}
    for name, hint in get_type_hints(node, include_extras=True).items():
        if is_dataclass(hint) and isinstance(hint, type):
            declared[name] = hint
        elif checks := getattr(hint, "__metadata__", ()):
            declared[name] = checks[0]
    return declared


def keys() -> list[str]:
    """Every dotted key of a protocol, such as ``limits.max_dets``."""
    found = []
    for name, kind in _declared(Protocol).items():
        found += (
            [name] if isinstance(kind, Check) else [f"{name}.{inner}" for inner in _declared(kind)]
        )
    return found


def _unknown_key(where: str, key: str, legal: Iterable[str]) -> ProtocolError:
    close = difflib.get_close_matches(key, keys(), n=1)
    hint = f"did you mean {close[0]}? " if close else ""
    return ProtocolError(where, "unknown key", f"{hint}legal: {', '.join(legal)}")


def _put(tree: dict[str, Any], dotted: str, value: Any) -> None:
    """Set one dotted key in a tree of plain values."""
    *path, last = dotted.split(".")
    node: Any = tree
    for part in path:
        node = node.get(part) if isinstance(node, dict) else None
    if not isinstance(node, dict) or (node is tree and last not in tree):
        raise _unknown_key(f"--set: {dotted}", dotted, [*keys(), "areas.NAME"])
    node[last] = value


def _from_text(value: Any) -> Any:
    """A value typed on a command line: TOML where it parses as TOML, the text itself elsewhere."""
    if not isinstance(value, str):
        return value
    try:
        return tomllib.loads(f"value = {value}")["value"]
    except (tomllib.TOMLDecodeError, RecursionError):
        return value


def _plain(value: Any) -> Any:
    if isinstance(value, Grid):
        return list(value.recipe) if isinstance(value.recipe, tuple) else value.recipe
    if isinstance(value, tuple) and value and isinstance(value[0], Area):
        return {area.name: [area.low, area.high] for area in value}
    if is_dataclass(value):
        return {f.name: _plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, tuple):
        return [_plain(x) for x in value]
    return value


def _flat(tree: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, Any]]:
    for key, value in tree.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def _canonical(value: Any) -> str:
    """One spelling for one value: compact JSON, whole floats without the trailing zero."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        value = int(value)
    if isinstance(value, list):
        return "[" + ",".join(_canonical(x) for x in value) + "]"
    return json.dumps(value, ensure_ascii=False, default=str)
