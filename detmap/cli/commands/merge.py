"""Put the parts of `detmap match` together and print the result. All have to be of one protocol
and one list of classes, and no image may be in two of them.
"""

from __future__ import annotations

import argparse

from detmap.cli import command_output as output
from detmap.cli import evaluation_inputs as reading
from detmap.cli import options, streams
from detmap.cli import result_views as views
from detmap.cli import uncertainty_tables as uncertainty
from detmap.errors import DataError
from detmap.evaluate import summarize
from detmap.streaming.merging import merge_files

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
        help="written by `match`, or by Evaluator.save",
    )
    views.add_details(command)
    uncertainty.add(command)
    views.add_operating(command)
    views.add_per_image(command)
    views.add_plot(command, "precision over recall by class, area and IoU, F1 over score")
    options.add_outputs(command, *output.TABLES)


def run(arguments: argparse.Namespace) -> int:
    """Load, merge, print."""
    outputs = (arguments.output, arguments.per_image, arguments.plot)
    options.refuse_bad_picture(arguments.plot)
    options.refuse_bad_outputs(outputs, arguments.parts)
    streams.progress(f"merging {len(arguments.parts)} parts")
    whole = merge_files(arguments.parts)
    if not len(whole.obj_image):
        raise DataError("merge", "the ground truth of all parts has no object", reading.NO_OBJECT)
    return output.write_result(summarize(whole), arguments)
