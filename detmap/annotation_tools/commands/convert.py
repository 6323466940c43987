"""Convert ground truth, or detections with --truth, to COCO JSON, VOC, YOLO or CSV. Notes count
what the target cannot hold.
"""

import argparse

from detmap.annotation_tools.conversion import convert, writers
from detmap.cli import command_output, options, streams
from detmap.core.tables import Detections
from detmap.errors import counted
from detmap.files import DETECTION_OPTIONS, TRUTH_OPTIONS

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
        "--to",
        choices=tuple(writers.TARGETS),
        help="Choose the format of DST (default: by its suffix, .json or .csv).",
    )
    command.add_argument("--force", action="store_true", help="Replace the file DST if it exists.")
    options.add_reading(command, "SRC")


def run(arguments: argparse.Namespace) -> int:
    """Read, write, say what was written and what was lost."""
    inputs = (arguments.source, arguments.truth, arguments.class_names, arguments.image_sizes)
    options.refuse_to_overwrite(arguments.output, inputs)
    table = convert(
        arguments.source,
        arguments.output,
        to=arguments.to,
        truth=arguments.truth,
        force=arguments.force,
        **{name: getattr(arguments, name) for name in (*TRUTH_OPTIONS, *DETECTION_OPTIONS)},
    )
    command_output.write_notes(table.notes)
    kind = "detection" if isinstance(table, Detections) else "object"
    classes = counted(len(table.categories), "class", sep="")
    totals = f"{counted(len(table.images), 'image', sep='')}, {counted(len(table), kind, sep='')}"
    streams.inform(f"{arguments.output}: {totals} in {classes}\n")
    return 0
