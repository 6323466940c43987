"""Search for the rules that reproduce a published number: rules of tools, orders of tied scores,
one or two changed rules, and changed inputs (a confidence threshold, no difficult objects, boxes
without the +1 pixel, another split). Exit 0: found; 1: not found.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from detmap.cli import command_output, doctor_notes, evaluation_inputs, options, streams
from detmap.core import protocol
from detmap.core.protocol import Protocol
from detmap.core.tables import Detections, Truth

if TYPE_CHECKING:
    from detmap.core.adapters.truth_by_protocol import TruthByProtocol
    from detmap.reproducibility.reproducing.changed_inputs import Supposition
    from detmap.reproducibility.reproducing.search import Search

EXAMPLES = (
    "detmap reproduce 72.19 VOCdevkit/VOC2007 results/",
    "detmap reproduce 0.606 instances.json results.json --metric AP50",
    "detmap reproduce 42.3 TRUTH DETECTIONS --depth 0 --format json",
)


def add(command: argparse.ArgumentParser) -> None:
    """Declare the options."""
    command.add_argument(
        "number", metavar="NUMBER", help="The number as printed: 72.1, 72.1%%, 0.721."
    )
    evaluation_inputs.add(command)
    doctor_notes.add(command)
    command.add_argument(
        "--metric", metavar="NAME", help="Choose the metric (default: the first, AP50, AP75)."
    )
    command.add_argument(
        "--depth",
        type=int,
        choices=(0, 1, 2),
        default=2,
        help="Change up to this many rules at once (default: 2).",
    )
    options.add_threads(command)
    options.add_outputs(command)


def run(arguments: argparse.Namespace) -> int:
    """Read, search, print."""
    from detmap.reproducibility.reproducing.printed_numbers import parse
    from detmap.reproducibility.reproducing.search import reproduce

    inputs = (arguments.truth, arguments.detections, arguments.protocol)
    options.refuse_to_overwrite(arguments.output, inputs)
    parse(arguments.number)
    truth, detections, rules = doctor_notes.read(arguments)
    truths = evaluation_inputs.truth_of_protocols(arguments, truth, rules)

    counters: dict[str, Callable[[int, int], None]] = {}

    def told(kind: str, done: int, of: int) -> None:
        counters.setdefault(kind, streams.counter(f"rules, {kind}"))(done, of)

    found = reproduce(
        arguments.number,
        truths,
        detections,
        metric=arguments.metric,
        depth=arguments.depth,
        others=_splits(arguments, truth) if arguments.depth else (),
        threads=arguments.threads,
        progress=told,
    )
    if arguments.format == "json":
        command_output.write_json(found.to_dict(), arguments)
    else:
        command_output.write_tables(found.tables(), arguments)
        command_output.write_notes(_remarks(found, truths, detections, rules))
        if not found.found:
            streams.say("note: `detmap doctor` checks the files for mistakes\n")
    return 0 if found.found else 1


def _remarks(
    found: Search, truths: TruthByProtocol, detections: Detections, rules: Protocol
) -> list[str]:
    """Return remarks on how exactly detmap restates the tools that match."""
    from detmap.reproducibility.parity import restated_tools

    names = dict.fromkeys(each.rules for each in found.found if each.kind == "named")
    mine = [name for name in names if name in protocol.tools()]
    remarks: dict[str, list[str]] = {}
    for row in restated_tools.numbers(truths, detections, rules, mine):
        for word in filter(None, row.remark.split(", ")):
            remarks.setdefault(word, []).append(row.tool)
    return [f"{', '.join(who)}: {restated_tools.WORDS[word]}" for word, who in remarks.items()]


def _splits(arguments: argparse.Namespace, truth: Truth) -> list[Supposition]:
    """Return the other splits of the ground truth, with their detections."""
    from detmap.reproducibility.reproducing.changed_inputs import splits

    def read(split: str) -> tuple[TruthByProtocol, Detections]:
        again = argparse.Namespace(**{**vars(arguments), "split": split, "unknown": "drop"})
        table, detections, rules = evaluation_inputs.read(again)
        return evaluation_inputs.truth_of_protocols(again, table, rules), detections

    return splits(Path(arguments.truth), truth, read)
