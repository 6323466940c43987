"""Convert ground truth, or detections with --truth, to COCO JSON, VOC, YOLO or CSV. Notes count
what the target cannot hold.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path

from detmap.adapters import conversion, read_truth
from detmap.cli import command_output, evaluation_inputs, options, streams
from detmap.errors import DetmapError, counted
from detmap.tables import Detections

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
    command.add_argument(
        "--truth",
        type=options.place,
        metavar="TRUTH",
        help="Read SRC as detections of this ground truth.",
    )
    options.add_split(command)
    options.add_formats(command)
    options.add_unknown(command)


def _refuse_inside(output: Path | None, folders: Iterable[str | Path | None]) -> None:
    """Raises `DetmapError` for an existing file of a folder that is read."""
    if output is None or not Path(output).exists():
        return
    place = Path(output).resolve()
    for folder in (Path(each).resolve() for each in folders if each is not None):
        if folder.is_dir() and place != folder and place.is_relative_to(folder):
            what = f"is part of {folder}, which is read"
            raise DetmapError(str(output), what, "choose a path outside of it")


def run(arguments: argparse.Namespace) -> int:
    """Read, write, say what was written and what was lost."""
    inputs = (arguments.source, arguments.truth, arguments.class_names, arguments.image_sizes)
    options.refuse_to_overwrite(arguments.output, inputs)
    _refuse_inside(arguments.output, (arguments.source, arguments.truth))
    truth = read_truth(
        arguments.truth or arguments.source,
        split=arguments.split,
        format=arguments.truth_format,
        box_format=arguments.truth_box_format,
        image_sizes=arguments.image_sizes,
    )
    table: conversion.Table = truth
    if arguments.truth is not None:
        table = evaluation_inputs.read_detections_of(arguments, arguments.source, truth)
    lost = conversion.write(table, Path(arguments.output), arguments.to)
    command_output.write_notes((*table.notes, *lost))
    kind = "detection" if isinstance(table, Detections) else "object"
    classes = counted(len(table.categories), "class", sep="")
    totals = f"{counted(len(table.images), 'image', sep='')}, {counted(len(table), kind, sep='')}"
    streams.inform(f"{arguments.output}: {totals} in {classes}\n")
    return 0
