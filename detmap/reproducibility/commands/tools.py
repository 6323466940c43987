"""Evaluate the same files under the rules of 54 tools (pycocotools, Ultralytics, torchmetrics,
mmdetection, detectron2, Cartucho ...) and report the difference to the default protocol.
"""

import argparse

from detmap.cli import command_output, doctor_notes, evaluation_inputs, options, streams

EXAMPLES = (
    "detmap tools VOCdevkit/VOC2007 results/",
    "detmap tools TRUTH DETECTIONS --percent --digits 3",
    "detmap tools TRUTH DETECTIONS --near 73.4 --percent",
    "detmap tools TRUTH DETECTIONS --only yolov5,tide --format json",
)


def add(command: argparse.ArgumentParser) -> None:
    """Declare the options."""
    evaluation_inputs.add(command)
    doctor_notes.add(command)
    command.add_argument(
        "--only",
        type=names,
        metavar="NAMES",
        help="Report only these tools (names separated by commas).",
    )
    command.add_argument(
        "--near",
        metavar="NUMBER",
        help="List the tools by distance from this number (72.1, 0.721), nearest first; "
        "differences are to it.",
    )
    options.add_threads(command)
    options.add_outputs(command)


def names(text: str) -> tuple[str, ...]:
    """Names with commas between them."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def run(arguments: argparse.Namespace) -> int:
    """Read, evaluate under every tool's rules, print."""
    from detmap.reproducibility.reproducing.printed_numbers import parse
    from detmap.reproducibility.tool_numbers import tool_numbers

    inputs = (arguments.truth, arguments.detections, arguments.protocol)
    options.refuse_to_overwrite(arguments.output, inputs)
    truth, detections, rules = doctor_notes.read(arguments)
    wanted = None if arguments.near is None else parse(arguments.near, "--near")
    streams.progress("evaluating under the rules of each tool")
    truths = evaluation_inputs.truth_of_protocols(arguments, truth, rules)
    found = tool_numbers(truths, detections, rules, arguments.only, wanted, arguments.threads)
    command_output.write_tables(found.tables(), arguments)
    command_output.write_notes(found.notes)
    return 0
