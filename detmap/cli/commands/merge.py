"""Merge partial results of `detmap match` and print the metrics. All parts need the same protocol
and classes, and an image may be in only one of them.
"""

import argparse

from detmap.cli import (
    command_output,
    evaluation_inputs,
    options,
    result_views,
    streams,
    uncertainty_tables,
)
from detmap.core.streaming.merging import merge_files
from detmap.errors import DataError
from detmap.evaluate import summarize

EXAMPLES = (
    "detmap merge part1.npz part2.npz",
    "detmap merge part1.npz part2.npz --per-class",
    "detmap merge part1.npz part2.npz -o result.json",
)


def add(command: argparse.ArgumentParser) -> None:
    """Declare the options."""
    command.add_argument(
        "parts",
        nargs="+",
        type=options.path,
        metavar="PART",
        help="A file written by `match` or Evaluator.save.",
    )
    result_views.add_details(command)
    uncertainty_tables.add(command)
    result_views.add_operating(command)
    result_views.add_per_image(command)
    result_views.add_plot(command, "precision over recall by class, area and IoU, F1 over score")
    options.add_outputs(command, *command_output.TABLES)


def run(arguments: argparse.Namespace) -> int:
    """Load, merge, print."""
    outputs = (arguments.output, arguments.per_image, arguments.plot)
    options.refuse_bad_picture(arguments.plot)
    options.refuse_bad_outputs(outputs, arguments.parts)
    streams.progress(f"merging {len(arguments.parts)} parts")
    whole = merge_files(arguments.parts)
    if not len(whole.obj_image):
        raise DataError(
            "merge", "the ground truth of all parts has no objects", evaluation_inputs.NO_OBJECT
        )
    return command_output.write_result(summarize(whole), arguments)
