"""Say why two numbers differ: change the rules of one protocol into those of another, switch by
switch, or one input into another under one protocol. With --signature, say which parts of a
signature are others than those of this result; exit 1 where one is.
"""

from __future__ import annotations

import argparse

from detmap.cli import options, output, reading, streams
from detmap.errors import DetmapError
from detmap.protocol import Protocol
from detmap.report.table import Table
from detmap.tables import Detections, Truth

EXAMPLES = (
    "detmap explain TRUTH DETECTIONS --from voc-devkit-12 --to ultralytics-8.4",
    "detmap explain TRUTH DETECTIONS --from voc2007 --to voc2012 --shapley",
    "detmap explain TRUTH DETECTIONS --other-detections results/ -p voc2012",
)


def add(command: argparse.ArgumentParser) -> None:
    """Declare the options."""
    reading.add(command)
    for name, dest in (("--from", "start"), ("--to", "end")):
        command.add_argument(name, dest=dest, type=options.protocol, metavar="P", help="a protocol")
    command.add_argument(
        "--other-truth", type=options.place, metavar="T", help="another truth of the same images"
    )
    command.add_argument(
        "--other-detections", type=options.place, metavar="D", help="other detections"
    )
    command.add_argument("--signature", metavar="S", help="the line under another result")
    command.add_argument(
        "--shapley", action="store_true", help="also average each change over the orders of all"
    )
    command.add_argument(
        "--seed", type=int, default=0, metavar="N", help="of the orders that are drawn (default: 0)"
    )
    options.add_threads(command)
    options.add_outputs(command, "steps", "classes", "decided")


def run(arguments: argparse.Namespace) -> int:
    """Read, explain, print."""
    rules = (arguments.protocol, arguments.start, arguments.end)
    files = (arguments.truth, arguments.detections, arguments.other_truth)
    options.refuse_to_overwrite(arguments.output, (*files, arguments.other_detections, *rules))
    if arguments.start is not None:
        if arguments.protocol is not None:
            raise DetmapError("-p", "is what --from says", "give one of the two")
        arguments.protocol = arguments.start
    truth, detections, start = reading.read(arguments)
    if arguments.signature is not None:
        return _compare(arguments, truth, detections, start)
    from detmap.explaining import explain

    streams.progress("evaluating under the rules on the way")
    found = explain(
        truth,
        detections,
        start,
        _end(arguments),
        other_truth=arguments.other_truth,
        other_detections=arguments.other_detections,
        settings=None,
        shapley=arguments.shapley,
        seed=arguments.seed,
        threads=arguments.threads,
    )
    if arguments.format == "json":
        output.write_json(found.as_dict(), arguments)
    else:
        output.write_tables(found.tables(), arguments)
    return 0


def _end(arguments: argparse.Namespace) -> Protocol | None:
    """The second protocol, with the settings that both have."""
    if arguments.end is None:
        return None
    from detmap.evaluate import prepare

    return prepare(arguments.end, options.settings(arguments.set))


def _compare(
    arguments: argparse.Namespace, truth: Truth, detections: Detections, rules: Protocol
) -> int:
    """A signature beside that of the result."""
    from detmap.evaluate import evaluate
    from detmap.explaining.signatures import compared

    result = evaluate(truth, detections, rules, threads=arguments.threads)
    parts = compared(arguments.signature, result)
    rows = tuple(
        (part.name, part.theirs, part.ours, "" if part.same else "differs", part.remark)
        for part in parts
    )
    header = ("part", "signature", "result", "", "remark")
    output.write_tables([Table("", header, rows, name="steps")], arguments)
    return int(not all(part.same for part in parts))
