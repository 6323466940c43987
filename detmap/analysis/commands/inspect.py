"""Describe a file or folder: its format, images, classes and boxes, and how detections would be
joined to it. Reads it as ground truth, or as detections with --truth.
"""

import argparse

from detmap.analysis.inspection import inspect
from detmap.cli import command_output, options
from detmap.files import DETECTION_OPTIONS, TRUTH_OPTIONS

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
    reading = {name: getattr(arguments, name) for name in (*TRUTH_OPTIONS, *DETECTION_OPTIONS)}
    found = inspect(arguments.source, arguments.truth, arguments.protocol, **reading)
    if arguments.format == "json":
        command_output.write_json(found.to_dict(), arguments)
    else:
        command_output.write_tables(found.tables(), arguments)
    command_output.write_notes(found.notes)
    return 0
