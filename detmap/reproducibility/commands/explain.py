"""Explain why two evaluators, or two runs, give different numbers. Changes one protocol into
another key by key, or one input into another. With --receipt or --signature, reports which keys
and files differ from another result, and their effect; exits with 1 on a difference. Two receipts
in place of the files are compared with each other.
"""

import argparse

from detmap.cli import command_output, doctor_notes, evaluation_inputs, options, streams
from detmap.core.protocol import Protocol
from detmap.errors import DetmapError
from detmap.reproducibility.commands import explained_records
from detmap.reproducibility.explaining.steps import Explanation

LEAST_SHARED = 0.5
"""Share of common detections below which the files come from two detectors."""

EXAMPLES = (
    "detmap explain TRUTH DETECTIONS --from voc-devkit-12 --to ultralytics-8.4",
    "detmap explain TRUTH DETECTIONS --from voc2007 --to voc2012 --shapley",
    "detmap explain TRUTH DETECTIONS --other-detections results/ -p voc2012",
    "detmap explain TRUTH DETECTIONS --receipt run.json",
    "detmap explain run.json other.json",
)


def add(command: argparse.ArgumentParser) -> None:
    """Declare the options."""
    evaluation_inputs.add(command, needed=False)
    doctor_notes.add(command)
    for name, dest in (("--from", "start"), ("--to", "end")):
        command.add_argument(
            name, dest=dest, type=options.protocol, metavar="P", help=f"Set the {dest} protocol."
        )
    command.add_argument(
        "--other-truth", type=options.place, metavar="T", help="Compare with this ground truth."
    )
    command.add_argument(
        "--other-detections", type=options.place, metavar="D", help="Compare with these detections."
    )
    explained_records.add(command)
    command.add_argument(
        "--metric",
        metavar="NAME",
        help="Compare AP, or AP at one IoU (AP50), under the rules of both; or `first`, the first "
        "metric of each (default: the same, or AP at an IoU threshold that both have).",
    )
    command.add_argument(
        "--shapley",
        action="store_true",
        help="Report Shapley values: effects averaged over the orders of changes.",
    )
    command.add_argument(
        "--seed",
        type=int,
        default=0,
        metavar="N",
        help="Set the seed of the sampled orders (default: 0).",
    )
    options.add_threads(command)
    options.add_outputs(command, "parts", "steps", "sentences", "classes", "decided")


def run(arguments: argparse.Namespace) -> int:
    """Read, explain, print."""
    rules = (arguments.protocol, arguments.start, arguments.end)
    files = (arguments.truth, arguments.detections, arguments.other_truth)
    files = (*files, arguments.other_detections, *arguments.receipt)
    options.refuse_to_overwrite(arguments.output, (*files, *rules))
    if arguments.start is not None:
        if arguments.protocol is not None:
            raise DetmapError("-p", "conflicts with --from", "give one of the two")
        arguments.protocol = arguments.start
    others = (arguments.end, arguments.other_truth, arguments.other_detections)
    words = explained_records.named(arguments) if not any(others) else []
    if arguments.receipt or arguments.signature or words:
        if any(others):
            raise DetmapError(
                "explain", "got a receipt and other rules or files", "give one of them"
            )
        return explained_records.run(arguments, words)
    if arguments.truth is None or arguments.detections is None:
        raise DetmapError("explain", "has no input", "give TRUTH and DETECTIONS, or two receipts")
    if not any(others):
        fix = "give --to P, --other-truth T, --other-detections D, or a receipt"
        raise DetmapError("explain", "needs two rules or two inputs", fix)
    truth, detections, start = doctor_notes.read(arguments)
    from detmap.reproducibility.explaining import explain

    streams.progress("evaluating each step")
    found = explain(
        evaluation_inputs.truth_of_protocols(arguments, truth, start),
        detections,
        start,
        _end(arguments),
        other_truth=arguments.other_truth,
        other_detections=arguments.other_detections,
        settings=None,
        metric=arguments.metric,
        shapley=arguments.shapley,
        seed=arguments.seed,
        threads=arguments.threads,
    )
    if arguments.format == "json":
        command_output.write_json(found.to_dict(), arguments)
    else:
        command_output.write_tables(found.tables(), arguments)
    if arguments.other_detections is not None and _is_another_detector(found):
        streams.say(
            "note: the files share few detections; use `detmap compare` to compare two detectors\n"
        )
    return 0


def _is_another_detector(found: Explanation) -> bool:
    """Whether most detections are in one of the two files alone."""
    return found.shared < LEAST_SHARED


def _end(arguments: argparse.Namespace) -> Protocol | None:
    """Return the second protocol, with the shared settings."""
    if arguments.end is None:
        return None
    from detmap.core.protocol.default_protocol import prepare

    return prepare(arguments.end, options.settings(arguments.set))
