"""Published results, with what is needed to check them: a registry in `datasets/published`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from detmap.base.resources import folder
from detmap.errors import DataError
from detmap.evaluate import evaluate
from detmap.reproducing.printed_numbers import parse
from detmap.tables import Detections, Truth
from detmap.tables.digests import content_digests

FIX = "see docs/reproduce.md"


@dataclass(frozen=True, slots=True)
class Number:
    """A published number: under which rules, which metric, its digits."""

    protocol: str
    metric: str
    text: str


@dataclass(frozen=True, slots=True)
class Published:
    """An entry of the registry.

    Parameters
    ----------
    name : by which it is asked for
    title : what was published; who, where : by whom and in which place
    split : of the data
    files : how to obtain truth and detections; "" where nobody has the detections
    numbers : as published
    number_source : where the numbers come from: a printed table, a mean of committed files
    truth, detections : digests of their content; "" where there are no files
    verified : when, and by which command; "" for never
    remarks : what a reader should know
    """

    name: str
    title: str
    who: str
    where: str
    split: str
    files: str
    numbers: tuple[Number, ...]
    number_source: str
    truth: str
    detections: str
    verified: str
    remarks: str


@dataclass(frozen=True, slots=True)
class Check:
    """What checking an entry found.

    Parameters
    ----------
    rows : protocol, metric, published text, value in the unit of the text, and whether it prints so
    other : what is not the data of the entry, in words
    """

    rows: tuple[tuple[str, str, str, float, bool], ...]
    other: tuple[str, ...]

    @property
    def same(self) -> bool:
        """Whether every number prints as it was published."""
        return all(row[-1] for row in self.rows)


def entries() -> dict[str, Published]:
    """Every entry by its name, in order of the names."""
    files = sorted((folder("datasets") / "published").glob("*.toml"))
    return {file.stem: read(file) for file in files}


def read(path: Path) -> Published:
    """An entry from its file.

    Raises
    ------
    DataError : it is none; the message names the key
    """
    tree = tomllib.loads(path.read_text("utf-8"))
    texts = [
        "title",
        "who",
        "where",
        "split",
        "files",
        "number_source",
        "truth",
        "detections",
        "verified",
    ]
    for key in texts:
        if not isinstance(tree.get(key), str):
            raise DataError(f"{path.name}: {key}", "is no text", FIX)
    numbers = tree.get("numbers")
    if not isinstance(numbers, list) or not numbers:
        raise DataError(f"{path.name}: numbers", "is no list of tables", FIX)
    found = tuple(_number(path, each) for each in numbers)
    values = {key: tree[key] for key in texts}
    return Published(name=path.stem, numbers=found, remarks=str(tree.get("remarks", "")), **values)


def check(entry: Published, truth: Truth, detections: Detections) -> Check:
    """Evaluate under the entry's protocols, and compare with the published digits.

    Raises
    ------
    DataError : a metric that a protocol does not have
    """
    digests = content_digests(truth, detections)
    named = (("truth", entry.truth), ("detections", entry.detections))
    other = tuple(
        f"{name}: the content is {now}, of the entry {wanted}"
        for (name, wanted), now in zip(named, digests, strict=True)
        if wanted and now != wanted
    )
    rows = []
    for number in entry.numbers:
        metrics = evaluate(truth, detections, number.protocol).metrics
        if number.metric not in metrics:
            what = f"{number.protocol} has no metric {number.metric}"
            raise DataError(entry.name, what, f"it has {', '.join(metrics)}")
        wanted, value = parse(number.text), metrics[number.metric]
        row = (number.protocol, number.metric, number.text, wanted.scale * value)
        rows.append((*row, wanted.prints(value)))
    return Check(tuple(rows), other)


def _number(path: Path, tree: Any) -> Number:
    keys = ("protocol", "metric", "number")
    if not isinstance(tree, Mapping) or not all(isinstance(tree.get(key), str) for key in keys):
        raise DataError(f"{path.name}: numbers", f"without {', '.join(keys)} as texts", FIX)
    parse(tree["number"])
    return Number(*(tree[key] for key in keys))
