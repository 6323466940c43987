"""Run detmap and pycocotools on the same files and compare the precision, recall and scores
arrays, the twelve stats, and the time. Exit 1 if a single bit differs.
"""

from __future__ import annotations

import argparse

from detmap.cli import options, output, streams

EXAMPLES = (
    "detmap parity instances.json results.json",
    "detmap parity instances.json results.json --set 'limits.max_dets=[1,10,300]'",
    "detmap parity instances.json results.json -p coco-segm",
    "detmap parity VOCdevkit/VOC2012 results.json --split val",
)


def add(command: argparse.ArgumentParser) -> None:
    """Declare the options."""
    options.add_inputs(command)
    options.add_unknown(command)
    command.add_argument(
        "-p",
        "--protocol",
        type=options.protocol,
        metavar="P",
        default="coco-bbox",
        help="coco-bbox (default), coco-segm or coco-keypoints",
    )
    options.add_outputs(command)


def run(arguments: argparse.Namespace) -> int:
    """Run both, compare, print."""
    from detmap.parity import compare

    inputs = (arguments.truth, arguments.detections, arguments.protocol, arguments.class_names)
    options.refuse_to_overwrite(arguments.output, inputs)
    streams.progress("running detmap and pycocotools")
    parity = compare(
        arguments.truth,
        arguments.detections,
        protocol=arguments.protocol,
        split=arguments.split,
        settings=options.settings(arguments.set),
        unknown=arguments.unknown,
        class_names=arguments.class_names,
    )
    output.write_tables(parity.tables, arguments)
    output.write_notes(parity.remarks)
    verdict = "identical in every bit" if parity.equal else "the numbers differ"
    streams.say(f"detmap: {verdict}\n")
    return 0 if parity.equal else 1
