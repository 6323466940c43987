"""Compare detectors on the same images: differences with intervals and p-values, the classes with
the largest changes, a leaderboard. Accepts saved match results (`detmap match ... -o
A.npz`) as detections; if all are saved, omit TRUTH. Exit 1: a gate failed.
"""

import argparse
from collections.abc import Sequence
from typing import Any

from detmap import wings
from detmap.cli import (
    command_output,
    doctor_notes,
    evaluation_inputs,
    options,
    result_views,
    streams,
    uncertainty_tables,
)
from detmap.compare import check_file, compare, is_saved, match_all, names_of
from detmap.core.protocol import Protocol
from detmap.core.results.result import Result
from detmap.core.statistics import gate as gates
from detmap.core.statistics.formulas.multiple_comparisons import ADJUSTMENTS
from detmap.core.tables import Truth
from detmap.core.tables.extension import extended
from detmap.errors import DetmapError
from detmap.evaluate import summarize

TABLES = ("metrics", "changed", "leaderboard", "pairs", "classes")

EXAMPLES = (
    "detmap compare TRUTH base.json new.json --percent",
    "detmap compare TRUTH a.json b.json c.json --adjust bh",
    "detmap compare base.npz new.npz --fail-if-drop .005 --alpha .05",
    "detmap compare base.npz new.npz --require-within AP50=.01",
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
        "--adjust", choices=ADJUSTMENTS, default="holm", help="Adjust p-values (default: holm)."
    )
    for kind, what in (
        ("fail-if-drop", "drops significantly by more than V"),
        ("require-within", "is not shown to drop by less than V (above 0)"),
    ):
        command.add_argument(
            f"--{kind}",
            action="append",
            default=[],
            metavar="V",
            help=f"Exit with 1 if the second detector {what}: a fraction of the first metric "
            "(.005 is half a point), of another (AP50=.005) or of a class (AP50/person=.01); "
            "repeatable.",
        )
    command.add_argument(
        "--alpha",
        type=options.fraction,
        default=0.05,
        metavar="P",
        help="Set the significance level of intervals and gates (default: 0.05; at most 0.5).",
    )
    uncertainty_tables.add_sampling(command)
    result_views.add_plot(command, "mean precision over recall and F1 over score of each detector")
    options.add_threads(command)
    options.add_outputs(command, *TABLES)


def _plotted(
    arguments: argparse.Namespace, truth: Any, given: list[Any], names: Sequence[str], rules: Any
) -> list[Result]:
    """Evaluate each detector, plot all, and return the results."""
    if is_saved(truth):
        truth, given = None, [truth, *given]
    matches, _, notes = match_all(truth, given, names, rules, None, arguments.threads, None)
    results = dict(zip(names, map(summarize, matches), strict=True))
    command_output.write_notes(notes)
    wings.required_hook("plot_curves")(results, arguments.plot)
    return list(results.values())


def _require_known(wanted: list[gates.Gate], rules: Protocol, table: Truth) -> None:
    """Refuse gates of metrics and classes that the result will not have, before the matching."""
    if rules.evaluation.rule == "matching":
        metrics = [row.name for row in rules.rows()[0]]
        classes = rules.classes.rename_table(table).categories.names
        for each in wanted:
            gates.require_known(each, metrics, classes)


def run(arguments: argparse.Namespace) -> int:
    """Read, match, compare, print, check the gates."""
    wanted = [
        gates.read(kind, text)
        for kind in gates.KINDS
        for text in getattr(arguments, kind.replace("-", "_"))
    ]
    inputs = (arguments.truth, *arguments.detections, arguments.protocol, arguments.groups)
    options.refuse_bad_picture(arguments.plot)
    options.refuse_bad_outputs((arguments.output, arguments.plot), inputs)
    paths = [*([arguments.truth] if is_saved(arguments.truth) else []), *arguments.detections]
    if len(paths) == 1:
        what, fix = "one detector", "write `detmap compare TRUTH A B`, with the ground truth first"
        raise DetmapError("compare", what, fix)
    names = names_of(paths, arguments.names and arguments.names.split(","))
    truth: Any = arguments.truth
    rules, given = arguments.protocol, list(arguments.detections)
    if all(map(is_saved, paths)):
        given_too = {"TRUTH": not is_saved(truth), "--protocol": rules, "--set": arguments.set}
        for option in filter(given_too.get, given_too):
            what = "has no effect: saved match results have their ground truth and protocol"
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
    if isinstance(truth, Truth):
        _require_known(wanted, rules, seen)
    drawing = uncertainty_tables.drawing(arguments, truth if isinstance(truth, Truth) else None)
    if arguments.plot is not None:
        truth, given = None, _plotted(arguments, truth, given, names, rules)
    comparison = compare(
        truth,
        *given,
        protocol=None if arguments.plot is not None else rules,
        names=names,
        alpha=arguments.alpha,
        adjust=arguments.adjust,
        threads=arguments.threads,
        progress=streams.counter("steps"),
        **drawing,
    )
    verdicts = [gates.judge(comparison, each, arguments.alpha) for each in wanted]
    if arguments.format == "json":
        gate_rows = [{"passed": each.passed, "line": each.line} for each in verdicts]
        command_output.write_json(
            {"verdict": comparison.verdict, **comparison.to_dict(), "gates": gate_rows}, arguments
        )
    else:
        form = "csv" if arguments.table is not None else arguments.format  # all tables
        tables = comparison.tables_of(form, arguments.style)
        command_output.write_tables(tables, arguments)
    command_output.write_notes(comparison.notes)
    for each in verdicts:
        streams.say(f"detmap: {each.line}\n")
    return 0 if all(each.passed for each in verdicts) else 1
