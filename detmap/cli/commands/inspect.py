"""Describe a file or folder: its format, images, classes and boxes, and how detections would be
joined to it. Reads it as ground truth, or as detections with --truth.
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from detmap.cli import command_output, evaluation_inputs, options
from detmap.core import protocol
from detmap.core.adapters import read_truth, read_truth_for, recognition, registry
from detmap.core.output.table import Table
from detmap.core.protocol import load
from detmap.core.protocol.default_protocol import prepare
from detmap.core.tables import Detections, Truth, boxes_as
from detmap.errors import DataError, few

EXAMPLES = (
    "detmap inspect annotations.xml",
    "detmap inspect VOCdevkit/VOC2007 --format json",
    "detmap inspect results.json --truth instances.json",
    "detmap inspect annotations/ -p visdrone",
)


def add(command: argparse.ArgumentParser) -> None:
    """Declare the options."""
    command.add_argument(
        "source", type=options.place, metavar="PATH", help="Set the file or folder to look at."
    )
    options.add_reading(command, "PATH")
    options.add_protocol(command)
    options.add_outputs(command)


def run(arguments: argparse.Namespace) -> int:
    """Look, read, print."""
    options.refuse_to_overwrite(arguments.output, (arguments.source, arguments.truth))
    path = registry.checked_path(arguments.source)
    read = recognition.readings(path)
    found: dict[str, Any] = {"path": str(path), "place": "folder" if path.is_dir() else "file"}
    found["looks_like"] = {kind: rows for kind, rows in read.items() if rows}
    if names := recognition.splits(path):
        found["splits"] = names
    notes = [*_read(arguments, path, found, read)]
    if arguments.format == "json":
        command_output.write_json(found | {"notes": list(map(str, notes))}, arguments)
    else:
        rows = tuple((name.replace("_", " "), _text(value)) for name, value in found.items())
        command_output.write_tables([Table("", ("what", "value"), rows, (), "inspect")], arguments)
    command_output.write_notes(notes)
    return 0


def _read(
    arguments: argparse.Namespace, path: Path, found: dict[str, Any], read: dict[str, list[str]]
) -> tuple[object, ...]:
    """Reads a path, which looks like the formats in `read`, into the findings; returns notes.

    Raises
    ------
    DataError : nothing can be read, or the options do not fit
    """
    given = {"split": arguments.split, "format": arguments.truth_format}
    given |= {"box_format": arguments.truth_box_format, "image_sizes": arguments.image_sizes}
    table: Truth | Detections
    rules = None if arguments.protocol is None else prepare(arguments.protocol, None)
    arguments.rules = rules
    try:
        source = arguments.truth or path
        table = read_truth_for(source, rules, **given) if rules else read_truth(source, **given)
    except DataError as error:
        own = {kind: set(rows) - {*recognition.GENERAL} for kind, rows in read.items()}
        names = sorted(own["detections"]) or (() if read["truth"] else read["detections"])
        if arguments.truth is not None or own["truth"] or not names:
            unknown = recognition.recognized(path) is None and "link" not in error.what
            plain = rules is None and unknown and "-p " not in error.fix
            if plain and (asked := _protocols(path)):
                options = few(f"-p {name}" for name in asked)
                fix = f"{error.fix}; for files of a benchmark add {options} (results: --truth)"
                raise DataError(error.where, error.what, fix) from None
            raise
        found["read_as"] = f"detections in the format {few(names)}"
        found["joined_by"] = "the ground truth that they belong to: give it with --truth"
        return ()
    if arguments.truth is not None:
        found_rows = evaluation_inputs.read_detections_of(arguments, str(path), table)
        table = found_rows if rules is None else rules.classes.rename_table(found_rows)
    elif rules is not None:
        table = rules.classes.rename_table(table)
    _describe(table, found)
    return table.notes


def _protocols(path: Path) -> list[str]:
    """Returns names of protocols with own formats that a path may have."""
    common = {*recognition.GENERAL, *recognition.PLAIN, ""}
    found = {row.name for row in registry.FORMATS if row.truth_looks(path) > 0}
    found |= {row.name for row in registry.FORMATS if row.detections_look(path) > 0}
    files = {name: load(name).files for name in protocol.names()}
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
