"""Evaluate detections against ground truth. TRUTH is a COCO instances file or a VOC folder
(VOCdevkit/VOC2007); DETECTIONS is a COCO results file or a folder of comp3/comp4 text files; the
two may be of different families.
"""

from __future__ import annotations

import argparse

from detmap.cli import diagnose, options, output, reading, streams
from detmap.evaluate import evaluate

EXAMPLES = (
    "detmap eval instances_val2017.json results.json",
    "detmap eval VOCdevkit/VOC2007 results/ --per-class --percent",
    "detmap eval TRUTH DETECTIONS -p voc2012 --set iou.thresholds=0.5:0.05:0.95",
    "detmap eval TRUTH DETECTIONS --table classes -o classes.csv",
)


def add(command: argparse.ArgumentParser) -> None:
    """Declare the options."""
    reading.add(command)
    options.add_threads(command)
    options.add_details(command)
    command.add_argument(
        "--errors",
        type=options.new_file,
        metavar="FILE",
        help="also write CSV: a row a false positive and a missed object, with its kind",
    )
    options.add_outputs(command, *output.TABLES)


def run(arguments: argparse.Namespace) -> int:
    """Read, match, print."""
    inputs = (arguments.truth, arguments.detections, arguments.protocol, arguments.class_names)
    options.refuse_one_place(arguments.output, arguments.errors)
    for each in (arguments.output, arguments.errors):
        options.refuse_to_overwrite(each, inputs)
    truth, detections, rules = reading.read(arguments)
    sizes = f"{len(detections)} detections to {len(truth)} objects"
    streams.progress(f"matching {sizes} in {len(truth.categories)} classes")
    result = evaluate(truth, detections, rules, threads=arguments.threads)
    if arguments.errors is not None:
        diagnose.write_errors(truth, detections, rules, arguments)
    return output.write_result(result, arguments)
