"""Registry of published results in `datasets/published`, with the data to check them."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from detmap.core.adapters.truth_by_protocol import TruthByProtocol
from detmap.core.base.resources import folder
from detmap.core.protocol import Protocol, load
from detmap.core.tables import Detections, Truth
from detmap.errors import DataError
from detmap.evaluate import evaluate
from detmap.reproducibility.receipt_files import content_digests
from detmap.reproducibility.reproducing.printed_numbers import parse

FIX = "see docs/reproduce.md"


@dataclass(frozen=True, slots=True)
class Number:
    """A published number: protocol with its changed keys, metric and digits."""

    protocol: str
    metric: str
    text: str
    settings: Mapping[str, Any] = field(default_factory=dict)

    def rules(self) -> Protocol:
        """The protocol with the changed keys."""
        return load(self.protocol).override(self.settings)


@dataclass(frozen=True, slots=True)
class Published:
    """An entry of the registry.

    Parameters
    ----------
    name : of the entry
    title : what was published; who, where : the authors and the publication
    split : of the dataset
    files : how to get the files; "" if the detections are not available
    numbers : as published
    number_source : source of the numbers: a printed table, a mean of committed files
    truth, detections : content digests; "" without files
    verified : date and command of the last check; "" for never
    remarks : notes for readers
    box_format : of files that do not say it; "" for others
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
    box_format: str


@dataclass(frozen=True, slots=True)
class Check:
    """The check of an entry.

    Parameters
    ----------
    rows : protocol, metric, published text, value in the unit of the text, and whether both agree
    other : differences from the entry's data, as text
    """

    rows: tuple[tuple[str, str, str, float, bool], ...]
    other: tuple[str, ...]

    @property
    def same(self) -> bool:
        """Whether every number rounds to its published digits."""
        return all(row[-1] for row in self.rows)


def entries() -> dict[str, Published]:
    """All entries, sorted by name."""
    files = sorted((folder("datasets") / "published").glob("*.toml"))
    return {file.stem: read(file) for file in files}


def read(path: Path) -> Published:
    """Reads an entry from its file.

    Raises
    ------
    DataError : an invalid entry; the message gives the key
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
            raise DataError(f"{path.name}: {key}", "is not text", FIX)
    numbers = tree.get("numbers")
    if not isinstance(numbers, list) or not numbers:
        raise DataError(f"{path.name}: numbers", "is not a list of tables", FIX)
    found = tuple(_number(path, each) for each in numbers)
    values = {key: tree[key] for key in texts}
    values |= {key: str(tree.get(key, "")) for key in ("remarks", "box_format")}
    return Published(name=path.stem, numbers=found, **values)


def check(entry: Published, truth: Truth | TruthByProtocol, detections: Detections) -> Check:
    """Evaluates under the entry's protocols and compares with the published digits.

    Parameters
    ----------
    truth : a table is the same for all protocols; a `TruthByProtocol` gives each the flags that it
        reads. The digest is that of the first protocol's table

    Raises
    ------
    DataError : a protocol without the metric
    """
    truths = TruthByProtocol(truth) if isinstance(truth, Truth) else truth
    digests = content_digests(truths.first, detections)
    named = (("truth", entry.truth), ("detections", entry.detections))
    other = tuple(
        f"{name}: the digest is {now}, expected {wanted}"
        for (name, wanted), now in zip(named, digests, strict=True)
        if wanted and now != wanted
    )
    rows = []
    for number in entry.numbers:
        rules = number.rules()
        metrics = evaluate(truths.table(rules), detections, rules).metrics
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
        raise DataError(f"{path.name}: numbers", f"{', '.join(keys)} must be texts", FIX)
    parse(tree["number"])
    protocol, metric, text = (tree[key] for key in keys)
    return Number(protocol, metric, text, tree.get("settings", {}))
