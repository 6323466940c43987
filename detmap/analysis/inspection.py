"""Describes a file, a folder or a Python object: `detmap.inspect`."""

import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from detmap.core.adapters import (
    options_of,
    read_detections,
    read_truth,
    read_truth_for,
    recognition,
    registry,
)
from detmap.core.adapters.text_per_image import data_yaml, plain_yaml
from detmap.core.output.table import Table
from detmap.core.output.tabular import Tabular
from detmap.core.protocol import Protocol, load, names
from detmap.core.protocol.default_protocol import prepare
from detmap.core.tables import Detections, Note, Truth, boxes_as
from detmap.errors import DataError, few
from detmap.files import DETECTION_OPTIONS, takes_reading, truth_options


@dataclass(frozen=True, slots=True)
class Inspection(Tabular):
    """What was found, by name, and the notes of the reader."""

    found: Mapping[str, Any]
    notes: tuple[Note, ...] = ()

    def __getitem__(self, name: str) -> Any:
        return self.found[name]

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {**self.found, "notes": list(map(str, self.notes))}

    def tables(self) -> list[Table]:
        """Returns the table ``inspect``."""
        rows = tuple((name.replace("_", " "), _text(each)) for name, each in self.found.items())
        return [Table("", ("what", "value"), rows, (), "inspect")]


@takes_reading
def inspect(
    source: Any, truth: Any = None, protocol: Protocol | str | None = None, **reading: Any
) -> Inspection:
    """Describes a file, folder or object: format, images, classes, boxes.

    >>> import detmap
    >>> from detmap.core.base.resources import folder
    >>> detmap.inspect(folder("datasets") / "shapes" / "instances_test.json")["images"]
    60

    Parameters
    ----------
    source : a path, or an object that `detmap.evaluate` takes
    truth : the ground truth, to read the source as its detections
    protocol : whose format and class names apply
    reading : options of ``detmap inspect``: ``split``, ``truth_format``, ``unknown`` ...

    Raises
    ------
    DataError : nothing can be read, or the options do not fit
    """
    rules = None if protocol is None else prepare(protocol)
    how = {own: reading[name] for name, own in DETECTION_OPTIONS.items() if name in reading}
    how |= {} if rules is None else options_of(rules)
    given = truth_options(reading)
    found, read = _look(source)
    known = source if truth is None else truth
    try:
        known_table = read_truth_for(known, rules, **given) if rules else read_truth(known, **given)
    except DataError as error:
        formats = _detections_alone(source, read, error, truth is None, rules is None)
        found["read_as"] = f"detections in the format {few(formats)}"
        found["joined_by"] = "the ground truth that they belong to: give it with --truth"
        return Inspection(found)
    if rules is not None and truth is None:
        known_table = rules.classes.rename_table(known_table)
    table: Truth | Detections = known_table
    if truth is not None:
        rows = read_detections(source, known_table, **how)
        table = rows if rules is None else rules.classes.rename_table(rows)
    _describe(table, found)
    return Inspection(found, table.notes)


def _look(source: Any) -> tuple[dict[str, Any], dict[str, list[str]]]:
    """What is seen before reading, and the formats that the source looks like."""
    if not isinstance(source, str | os.PathLike):
        from detmap.core.adapters.in_memory import python_objects

        kind = python_objects.kind_of(source) or type(source).__name__
        return {"object": kind}, {"truth": [], "detections": []}
    path = registry.checked_path(source)
    read = recognition.readings(path)
    found: dict[str, Any] = {"path": str(path), "place": "folder" if path.is_dir() else "file"}
    found["looks_like"] = {kind: rows for kind, rows in read.items() if rows}
    if splits := _splits(path):
        found["splits"] = splits
    return found, read


def _splits(path: Path) -> list[str]:
    """Returns the splits of a data set: lists of VOC, keys of a data.yaml, or folders."""
    lists = [file.stem for file in path.glob("ImageSets/Main/*.txt")]
    if path.suffix.lower() in data_yaml.SUFFIXES:
        lists = list(plain_yaml.load(path))
    names = ("train", *data_yaml.SPLITS)
    folders = [
        name for name in names if (path / name).is_dir() or (path / "labels" / name).is_dir()
    ]
    voc = [name for name in lists if "_" not in name and path.is_dir()]
    return sorted({*voc, *folders, *(name for name in lists if name in names)})


# --- what something is ----------------------------------------------------------------------------


def _detections_alone(
    source: Any, read: dict[str, list[str]], error: DataError, alone: bool, plain: bool
) -> list[str]:
    """The formats of a source of detections without its ground truth; raises other errors."""
    own = {kind: set(rows) - {*recognition.GENERAL} for kind, rows in read.items()}
    formats = sorted(own["detections"]) or ([] if read["truth"] else read["detections"])
    if alone and not own["truth"] and formats:
        return formats
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        unknown = recognition.recognized(path) is None and "link" not in error.what
        if plain and unknown and "-p " not in error.fix and (asked := _protocols(path)):
            options = few(f"-p {name}" for name in asked)
            fix = f"{error.fix}; for files of a benchmark add {options} (results: --truth)"
            raise DataError(error.where, error.what, fix) from None
    raise error


def _protocols(path: Path) -> list[str]:
    """Returns names of protocols with own formats that a path may have."""
    common = {*recognition.GENERAL, *recognition.PLAIN, ""}
    found = {row.name for row in registry.FORMATS if row.truth_looks(path) > 0}
    found |= {row.name for row in registry.FORMATS if row.detections_look(path) > 0}
    files = {name: load(name).files for name in names()}
    return [name for name, own in files.items() if {own.truth, own.detections} & (found - common)]


def _describe(table: Truth | Detections, found: dict[str, Any]) -> None:
    images, boxes = table.images, boxes_as(table.boxes, table.box_format, "xywh")
    used = np.unique(table.image)
    is_truth = isinstance(table, Truth)
    found["read_as"] = "ground truth" if is_truth else "detections"
    found["images"] = len(images)
    found["images_without_boxes"] = len(images) - len(used)
    found["images_of_known_size"] = int((~np.isnan(images.width + images.height)).sum())
    found["boxes"] = len(table)
    counts = np.bincount(table.label, minlength=len(table.categories)).tolist()
    names, ids = table.categories.names, table.categories.ids.tolist()
    several = {name for name, n in Counter(names).items() if n > 1}
    called = [f"{n} (id {i})" if n in several else n for n, i in zip(names, ids, strict=True)]
    found["classes"] = dict(zip(called, counts, strict=True))
    found["class_ids"] = ids
    if len(boxes):
        low, high = boxes[:, :2].min(axis=0), (boxes[:, :2] + boxes[:, 2:]).max(axis=0)
        found["box_range"] = [*low.tolist(), *high.tolist()]
        found["boxes_with_fractions"] = int((boxes != np.floor(boxes)).any(axis=1).sum())
    if isinstance(table, Truth):
        found["box_format"] = table.box_format
        found["flags"] = {name: int(flag.sum()) for name, flag in table.roles.items()}
        if table.split:
            found["split"] = table.split
    elif len(table):
        found["scores"] = [table.score.min().item(), table.score.max().item()]
    if len(images):
        stem = f", file stem such as {images.stems[0]}" if images.stems[0] else ""
        found["joined_by"] = f"image id such as {images.ids[0]}{stem}"


def _text(value: Any) -> str:
    """Returns a value as text of a cell."""
    if isinstance(value, dict):
        return few([f"{name} {_text(each)}" for name, each in value.items()]) or "none"
    if isinstance(value, list):
        return few([f"{each:g}" if isinstance(each, float) else str(each) for each in value])
    return str(value)
