"""Convert ground truth, or detections with --truth, to COCO JSON, VOC, YOLO or CSV. Notes count
what the target cannot hold.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable
from pathlib import Path

from detmap.cli import command_output, evaluation_inputs, options, streams
from detmap.core.adapters import conversion, read_truth, registry
from detmap.core.adapters.coco import records
from detmap.core.tables import Detections, Note
from detmap.errors import DetmapError, counted

EXAMPLES = (
    "detmap convert VOCdevkit/VOC2007 instances.json --to coco",
    "detmap convert instances.json labels --to yolo",
    "detmap convert results.json found.csv --to csv --truth instances.json",
)


def add(command: argparse.ArgumentParser) -> None:
    """Declare the options."""
    command.add_argument(
        "source", type=options.place, metavar="SRC", help="Set the file or folder to read."
    )
    command.add_argument(
        "output",
        type=options.new_file,
        metavar="DST",
        help="Set the file (coco, csv) or the new folder (voc, yolo) to write.",
    )
    command.add_argument(
        "--to", required=True, choices=tuple(conversion.TARGETS), help="Choose the format of DST."
    )
    command.add_argument("--force", action="store_true", help="Replace the file DST if it exists.")
    options.add_reading(command, "SRC")


def _refuse_inside(output: Path, folders: Iterable[str | Path | None]) -> None:
    """Raises `DetmapError` for a place in a folder that is read, which it would change."""
    place = Path(output).resolve()
    for folder in (Path(each).resolve() for each in folders if each is not None):
        if folder.is_dir() and place.is_relative_to(folder):
            what = f"is in the folder {folder}, which is read"
            raise DetmapError(str(output), what, "choose a path outside of it")


def _is_coco(path: Path, wanted: str | None) -> bool:
    """Checks if ground truth is COCO JSON, whose shapes can be copied."""
    row = registry.choose(registry.FORMATS, path, lambda row: row.truth_looks, wanted)
    return row.name == "coco" and path.is_file()


def run(arguments: argparse.Namespace) -> int:
    """Read, write, say what was written and what was lost."""
    inputs = (arguments.source, arguments.truth, arguments.class_names, arguments.image_sizes)
    options.refuse_to_overwrite(arguments.output, inputs)
    _refuse_inside(arguments.output, (arguments.source, arguments.truth))
    output = Path(arguments.output)
    if os.path.lexists(output) and not (arguments.force or output.is_dir()):
        what = "is a link to another place" if output.is_symlink() else "exists"
        raise DetmapError(str(output), what, "choose another path, or replace it with --force")
    truth = read_truth(
        arguments.truth or arguments.source,
        split=arguments.split,
        format=arguments.truth_format,
        box_format=arguments.truth_box_format,
        image_sizes=arguments.image_sizes,
    )
    table: conversion.Table = truth
    shapes: conversion.ShapeKeys = {}
    if arguments.truth is not None:
        table = evaluation_inputs.read_detections_of(arguments, arguments.source, truth)
    elif _is_coco(Path(arguments.source), arguments.truth_format):
        shapes = records.shape_keys(Path(arguments.source), truth)
    lost = conversion.write(table, Path(arguments.output), arguments.to, shapes)
    if table is not truth and truth.family == "voc" and arguments.to == "coco":
        text = (
            "classes are written as ids, and the ground truth has names alone: give both to eval, "
            '--class-names FILE with JSON such as {"1": "cat"}, numbered as the sorted names from 1'
        )
        count = len(table.categories)
        lost = (*lost, Note("lost-class-names", text, count, table.source))
    command_output.write_notes((*table.notes, *lost))
    kind = "detection" if isinstance(table, Detections) else "object"
    classes = counted(len(table.categories), "class", sep="")
    totals = f"{counted(len(table.images), 'image', sep='')}, {counted(len(table), kind, sep='')}"
    streams.inform(f"{arguments.output}: {totals} in {classes}\n")
    return 0
