"""Evaluate the data sets that SUITE.toml lists; print a table of them and summary figures (mean,
mean of groups, ratio). Exit 1: a figure is below --fail-under.
"""

import argparse
import math
from collections.abc import Sequence

from detmap.benchmarks.suites import SuiteResult, evaluate_suite, read_suite
from detmap.cli import command_output, options, streams
from detmap.core.tables import Note
from detmap.errors import DetmapError

TABLES = ("data", "figures")

EXAMPLES = (
    "detmap suite coco-c.toml --percent",
    "detmap suite rf100-vl.toml --allow-missing --format json -o rf100-vl.json",
    "detmap suite coco-c.toml --ci --fail-under mPC=.16",
)


def add(command: argparse.ArgumentParser) -> None:
    """Declare the options."""
    command.add_argument(
        "suite", metavar="SUITE", type=options.place, help="TOML file of the suite."
    )
    command.add_argument(
        "--allow-missing",
        action="store_true",
        help="Leave out data sets whose files are missing, with a note (default: an error).",
    )
    command.add_argument(
        "--ci",
        nargs="?",
        const="automatic",
        choices=("automatic", "jackknife"),
        help="Report 95 %% confidence intervals of the figures.",
    )
    command.add_argument(
        "--fail-under",
        action="append",
        default=[],
        metavar="V",
        help="Exit with 1 if the first figure of the first metric is below V, a fraction (.16), or "
        "another figure (mPC=.16); repeatable.",
    )
    options.add_threads(command)
    options.add_outputs(command, *TABLES)


def run(arguments: argparse.Namespace) -> int:
    """Evaluate, print, check the gates."""
    wanted = [_gate(text) for text in arguments.fail_under]
    options.refuse_to_overwrite(arguments.output, (arguments.suite,))
    suite = read_suite(arguments.suite)
    figures = [each.name for each in suite.figures]
    for name in (name for name, _ in wanted if name and name not in figures):
        raise DetmapError("--fail-under", f"no figure {name!r}", f"choose one of {figures}")
    result = evaluate_suite(
        suite,
        allow_missing=arguments.allow_missing,
        intervals=arguments.ci is not None,
        threads=arguments.threads,
        progress=lambda name: streams.progress(f"evaluating {name}"),
    )
    verdicts = [_verdict(result, name, limit) for name, limit in wanted]
    failed = [line for line, passed in verdicts if not passed]
    if arguments.format == "json":
        command_output.write_json(result.to_dict() | {"failed": failed}, arguments)
    else:
        command_output.write_tables(result.tables(), arguments)
    command_output.write_notes(_summed(result.notes))
    for line, passed in verdicts:
        streams.say(f"detmap: {'PASS' if passed else 'FAIL'}: {line}\n")
    return int(bool(failed))


def _summed(notes: Sequence[Note]) -> list[str]:
    """One line per kind of note; the JSON output has those of each data set."""
    kinds: dict[str, list[Note]] = {}
    for note in notes:
        kinds.setdefault(note.code, []).append(note)
    more = "; and in {} more data sets".format
    return [
        f"{of_kind[0]}{more(len(of_kind) - 1) if len(of_kind) > 1 else ''}"
        for of_kind in kinds.values()
    ]


def _gate(text: str) -> tuple[str, float]:
    """The figure and the fraction of --fail-under."""
    name, _, number = text.rpartition("=")
    try:
        limit = float(number)
    except ValueError:
        limit = math.nan
    if not math.isfinite(limit):
        raise DetmapError("--fail-under", f"{text!r} has no number", "write .16, or mPC=.16")
    if not 0 <= limit <= 1:
        named = f"{name}=" if name else ""
        fix = f"write {named}{limit / 100:g}" if 1 < limit <= 100 else "write .16, or mPC=.16"
        raise DetmapError("--fail-under", f"{number} is no fraction from 0 to 1", fix)
    return name, limit


def _verdict(result: SuiteResult, name: str, limit: float) -> tuple[str, bool]:
    """The value of a figure beside its limit, and whether it passes; an undefined one fails."""
    figures, metric = result.figures(), result.metrics[0]
    name = name or next(iter(figures))
    value = figures[name][metric]
    passed = value >= limit
    shown = "undefined" if math.isnan(value) else f"{value:.4f}"
    return f"{name} of {metric} {shown} is {'at least' if passed else 'below'} {limit:g}", passed
