"""Evaluate the scores of an image-level classifier: AP, AUC, best F1 per class, and averages.
TRUTH and SCORES are CSV files with a header (sample id, then one column per class), or a VOC folder
and a folder of comp1_cls/comp2_cls text.
"""

import argparse

from detmap import ranking
from detmap.cli import command_output, options, result_views, streams, uncertainty_tables
from detmap.core.output import plots

EXAMPLES = (
    "detmap rank truth.csv scores.csv",
    "detmap rank truth.csv scores.csv --average weighted --threshold 0.5",
    "detmap rank truth.csv scores.csv --k 1,2 -o ranking.json",
    "detmap rank truth.csv scores.csv --ci",
)


def add(command: argparse.ArgumentParser) -> None:
    """Declare the options."""
    command.add_argument(
        "truth",
        metavar="TRUTH",
        type=options.place,
        help="Labels: CSV of 0 and 1, or a VOC folder.",
    )
    command.add_argument(
        "scores", metavar="SCORES", type=options.place, help="Scores: CSV, or a folder of VOC text."
    )
    command.add_argument(
        "-p",
        "--protocol",
        choices=ranking.PROTOCOLS,
        help="Choose a protocol (default: plain for CSV, by year for VOC).",
    )
    options.add_split(command)
    command.add_argument(
        "--average",
        choices=("none", *ranking.AVERAGES),
        help="Average over classes (default: macro).",
    )
    command.add_argument(
        "--integrator",
        choices=ranking.INTEGRATORS,
        help="Choose the AP interpolation (default: by the protocol).",
    )
    command.add_argument(
        "--ties",
        choices=ranking.TIES,
        help="Order tied scores: together, or in input order (default: by the protocol).",
    )
    command.add_argument(
        "--undefined",
        choices=ranking.UNDEFINED,
        help="Count a class without positives or predictions as nothing, 0 or 1 (default: skip).",
    )
    command.add_argument(
        "--k",
        type=options.counts,
        default=(),
        metavar="K[,K]",
        help="Report precision, recall and mAP at these ranks of each sample's classes.",
    )
    command.add_argument(
        "--threshold",
        type=options.fraction,
        metavar="T",
        help="Report TP, FP, TN, FN and rates at score threshold T.",
    )
    uncertainty_tables.add_intervals(command, names="id")
    result_views.add_plot(command, "the PR and ROC curves")
    options.add_threads(command)
    shown = ("metrics", "classes", "counts", "intervals", "class-intervals")
    options.add_outputs(command, *shown)


def run(arguments: argparse.Namespace) -> int:
    """Read, rank, resample, draw, print."""
    inputs = (arguments.truth, arguments.scores, arguments.groups)
    options.refuse_bad_outputs((arguments.output, arguments.plot), inputs)
    if arguments.plot is not None:
        plots.check(arguments.plot)
    streams.progress(f"reading {arguments.truth} and {arguments.scores}")
    table = ranking.read(arguments.truth, arguments.scores, split=arguments.split)
    given = {key: getattr(arguments, key) for key in ("average", "integrator", "ties", "undefined")}
    settings = {
        key: None if value == "none" else value for key, value in given.items() if value is not None
    }
    streams.progress(f"ranking {len(table)} samples in {len(table.classes)} classes")
    result = ranking.evaluate(
        table,
        arguments.protocol,
        settings=settings,
        k=arguments.k,
        threshold=arguments.threshold,
        threads=arguments.threads,
    )
    classes = arguments.table != "intervals"
    known = uncertainty_tables.known_intervals(result, arguments, per_class=classes)
    if arguments.plot is not None:
        from detmap.core.base import atomic_files
        from detmap.ranking import curve_plots

        picture = curve_plots.draw(arguments.plot, result.lines(), result.signature)
        atomic_files.write_bytes(arguments.plot, picture)
    if arguments.format == "json":
        content = result.to_dict()
        known.write_into(content)
        command_output.write_json(content, arguments)
    else:
        command_output.write_tables(known.added_to(result.tables()), arguments)
    command_output.write_notes(result.notes)
    return 0
