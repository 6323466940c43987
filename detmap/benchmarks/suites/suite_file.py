"""Reads a suite: a TOML file that lists data sets and summary figures over them."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from detmap.core.base.open_files import read_bytes, shown
from detmap.core.protocol import bounded_toml
from detmap.errors import DataError, few

TAKES = ("mean", "mean of groups", "ratio of means", "mean of ratios")
KEYS = {
    "": ("name", "protocol", "metrics", "data", "figures"),
    "data": (
        *("name", "truth", "detections", "group", "protocol"),
        *("truth_format", "detections_format"),
    ),
    "figures": ("name", "take", "groups", "to"),
}


@dataclass(frozen=True, slots=True)
class Row:
    """A data set.

    Parameters
    ----------
    name : unique; group : "" for none
    truth, detections : paths; their formats are detected unless given
    protocol : its rules; "" for those of the ground truth's kind
    """

    name: str
    truth: Path
    detections: Path
    group: str = ""
    protocol: str = ""
    truth_format: str = ""
    detections_format: str = ""

    def missing(self) -> list[str]:
        """Returns the paths that do not exist."""
        return [str(path) for path in (self.truth, self.detections) if not os.path.exists(path)]


@dataclass(frozen=True, slots=True)
class Figure:
    """A number over data sets.

    Parameters
    ----------
    name : unique
    take : one of `TAKES`
    groups : of data sets that take part; () for all
    to : the data set whose metric a ratio is divided by
    """

    name: str
    take: str = "mean"
    groups: tuple[str, ...] = ()
    to: str = ""


@dataclass(frozen=True, slots=True)
class Suite:
    """The content of a suite's file; `metrics` are () for all, the first one is the headline."""

    name: str
    rows: tuple[Row, ...]
    figures: tuple[Figure, ...]
    metrics: tuple[str, ...] = ()
    source: str = "suite"


def read_suite(path: str | Path) -> Suite:
    """Reads a suite's file; paths in it are relative to its folder.

    Raises
    ------
    DataError : not TOML, an unknown or missing key, a repeated name, a group or data set that does
        not exist
    """
    path = Path(path)
    where = shown(path)
    try:
        text = read_bytes(path, most=bounded_toml.MOST_BYTES).decode("utf-8-sig")
        tree = bounded_toml.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(where, f"not TOML: {error}", "see docs/suites.md for an example") from None
    _refuse_unknown(tree, "", where)
    default = _text(tree, "protocol", where, "")
    rows = tuple(
        _row(each, f"{where}: data[{i}]", path.parent, default)
        for i, each in enumerate(_tables(tree, "data", where))
    )
    if not rows:
        raise DataError(f"{where}: data", "no data set", "add a table [[data]] for each")
    figures = [
        _figure(each, f"{where}: figures[{i}]", rows)
        for i, each in enumerate(_tables(tree, "figures", where))
    ] or [Figure("mean")]
    for kind, names in (("data", rows), ("figures", figures)):
        listed = [each.name for each in names]
        twice = sorted({name for name in listed if listed.count(name) > 1})
        if twice:
            raise DataError(f"{where}: {kind}", f"{twice[0]!r} occurs twice", "rename one")
    name = _text(tree, "name", where, path.stem)
    return Suite(name, rows, tuple(figures), _texts(tree, "metrics", where), where)


def _row(tree: Mapping[str, Any], where: str, folder: Path, protocol: str) -> Row:
    _refuse_unknown(tree, "data", where)
    optional = {key: _text(tree, key, where, "") for key in KEYS["data"][3:]}
    rules = optional["protocol"] or protocol
    own = folder / rules
    optional["protocol"] = str(own) if rules.endswith(".toml") else rules
    truth, detections = (folder / _text(tree, key, where) for key in ("truth", "detections"))
    return Row(_text(tree, "name", where), truth, detections, **optional)


def _figure(tree: Mapping[str, Any], where: str, rows: Sequence[Row]) -> Figure:
    _refuse_unknown(tree, "figures", where)
    take = _text(tree, "take", where, "mean")
    if take not in TAKES:
        raise DataError(f"{where}.take", f"{take!r}", f"choose one of {', '.join(TAKES)}")
    groups, to = _texts(tree, "groups", where), _text(tree, "to", where, "")
    for key, named, known in (
        ("groups", groups, [row.group for row in rows]),
        ("to", (to,) if to else (), [row.name for row in rows]),
    ):
        strange = [name for name in named if name not in known]
        if strange:
            fix = f"there are {few(dict.fromkeys(known))}"
            raise DataError(f"{where}.{key}", f"no {strange[0]!r}", fix)
    if ("ratio" in take) != bool(to):
        what = "a ratio without a data set" if "ratio" in take else f"{take} has no ratio"
        raise DataError(f"{where}.to", what, "name the data set that a ratio refers to")
    return Figure(_text(tree, "name", where), take, groups, to)


def _refuse_unknown(tree: Mapping[str, Any], table: str, where: str) -> None:
    for key in tree:
        if key not in KEYS[table]:
            raise DataError(f"{where}: {key}", "unknown key", f"legal: {', '.join(KEYS[table])}")


def _tables(tree: Mapping[str, Any], key: str, where: str) -> list[Mapping[str, Any]]:
    value = tree.get(key, [])
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise DataError(f"{where}: {key}", "not a list of tables", f"write [[{key}]]")
    return value


def _text(tree: Mapping[str, Any], key: str, where: str, default: str | None = None) -> str:
    value = tree.get(key, default)
    if not isinstance(value, str) or (key in tree and not value.strip()) or "\0" in value:
        what = "missing" if key not in tree else f"{value!r:.60}"
        raise DataError(f"{where}: {key}", what, "write text in quotes")
    return value


def _texts(tree: Mapping[str, Any], key: str, where: str) -> tuple[str, ...]:
    value = tree.get(key, [])
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise DataError(f"{where}: {key}", f"{value!r:.60}", "write a list of texts")
    return tuple(value)
