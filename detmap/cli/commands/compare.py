"""Compare detectors on the same images: differences with intervals and p-values, the classes and
images with the largest changes, a leaderboard. Accepts saved match results (`detmap match ... -o
A.npz`) as detections; if all are saved, omit TRUTH. Exit 1: a gate failed.
"""

from __future__ import annotations

import argparse
from typing import Any

from detmap.cli import (
    command_output,
    doctor_notes,
    evaluation_inputs,
    options,
    streams,
    uncertainty_tables,
)
from detmap.compare import check_file, compare, is_saved
from detmap.core.base.display_names import detector_names
from detmap.core.statistics import gate as gates
from detmap.core.statistics.comparison import TESTS
from detmap.core.statistics.formulas.multiple_comparisons import ADJUSTMENTS
from detmap.core.statistics.interval_tables import comparison_tables
from detmap.core.tables import Truth
from detmap.core.tables.extension import extended
from detmap.errors import DetmapError

TABLES = ("leaderboard", "pairs", "classes", "images", "groups")

EXAMPLES = (
    "detmap compare TRUTH base.json new.json --percent",
    "detmap compare TRUTH a.json b.json c.json --adjust maxt",
    "detmap compare base.npz new.npz --fail-if-drop 0.5 --alpha .05",
    "detmap compare base.npz new.npz --require-within AP50=1",
)


def add(command: argparse.ArgumentParser) -> None:
    """Declare the options."""
    command.add_argument(
        "truth",
        metavar="TRUTH",
        type=options.place,
        help="Ground truth as in `eval`, or a saved match result.",
    )
    command.add_argument(
        "detections",
        metavar="DETECTIONS",
        nargs="+",
        type=options.place,
        help="Detections as in `eval`, or saved match results (.npz); the first is the baseline.",
    )
    evaluation_inputs.add_how(command)
    doctor_notes.add(command)
    command.add_argument("--names", metavar="A,B", help="Name the detectors (default: by path).")
    command.add_argument(
        "--test", choices=TESTS, default="z", help="Choose the significance test (default: z)."
    )
    command.add_argument(
        "--adjust", choices=ADJUSTMENTS, default="holm", help="Adjust p-values (default: holm)."
    )
    for kind, what in (
        ("fail-if-drop", "drops significantly by more than POINTS"),
        ("require-within", "is not shown to drop by less than POINTS (above 0)"),
    ):
        command.add_argument(
            f"--{kind}",
            action="append",
            default=[],
            metavar="POINTS",
            help=f"Exit with 1 if the second detector {what}: points of the first metric (0.5), of "
            "another (AP50=0.5) or of a class (AP50/person=1); repeatable.",
        )
    command.add_argument(
        "--alpha",
        type=options.fraction,
        default=0.05,
        metavar="P",
        help="Set the significance level of intervals, groups and gates (default: 0.05).",
    )
    uncertainty_tables.add_replicates(command)
    options.add_threads(command)
    options.add_outputs(command, *TABLES)


def run(arguments: argparse.Namespace) -> int:
    """Read, match, compare, print, check the gates."""
    wanted = [
        gates.read(kind, text)
        for kind in gates.KINDS
        for text in getattr(arguments, kind.replace("-", "_"))
    ]
    inputs = (arguments.truth, *arguments.detections, arguments.protocol, arguments.groups)
    options.refuse_to_overwrite(arguments.output, inputs)
    paths = [*([arguments.truth] if is_saved(arguments.truth) else []), *arguments.detections]
    names = detector_names(paths) if arguments.names is None else arguments.names.split(",")
    truth: Any = arguments.truth
    rules, given = arguments.protocol, list(arguments.detections)
    if all(map(is_saved, paths)):
        for option, value in (("--protocol", rules), ("--set", arguments.set)):
            if value:
                what = "has no effect: saved match results have their protocol"
                raise DetmapError(option, what, "remove it, or match again")
    elif not is_saved(truth):
        for path in given:
            check_file(path)
        truth, rules = evaluation_inputs.read_truth_of(arguments)
        seen = truth
        for i, each in enumerate(given):
            if not is_saved(each):
                given[i] = doctor_notes.read_detections(arguments, each, seen, rules)
                seen = extended(seen, given[i])
    comparison = compare(
        truth,
        *given,
        protocol=rules,
        names=names,
        alpha=arguments.alpha,
        adjust=arguments.adjust,
        test=arguments.test,
        threads=arguments.threads,
        progress=streams.counter("steps"),
        **uncertainty_tables.drawing(arguments, truth if isinstance(truth, Truth) else None),
    )
    verdicts = [gates.judge(comparison, each, arguments.alpha) for each in wanted]
    if arguments.format == "json":
        gate_rows = [{"passed": each.passed, "line": each.line} for each in verdicts]
        command_output.write_json({**comparison.to_dict(), "gates": gate_rows}, arguments)
    else:
        command_output.write_tables(comparison_tables(comparison), arguments)
    command_output.write_notes(comparison.notes)
    for each in verdicts:
        streams.say(f"detmap: {each.line}\n")
    return 0 if all(each.passed for each in verdicts) else 1
