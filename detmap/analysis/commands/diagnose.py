"""Analyze errors: the AP gain if each kind of error is fixed, the best score threshold, confused
classes, missed objects, and suspected label errors.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from detmap.cli import command_output, doctor_notes, evaluation_inputs, options, streams
from detmap.core.base.grids import Grid
from detmap.core.output.table import Table
from detmap.core.protocol import Protocol
from detmap.core.results.result import Result
from detmap.core.tables import Detections, Truth
from detmap.errors import DetmapError

if TYPE_CHECKING:
    from detmap.analysis.diagnosis.sections import Choices

EXAMPLES = (
    "detmap diagnose instances_val2017.json results.json",
    "detmap diagnose VOCdevkit/VOC2007 results/ --format json -o diagnosis.json",
    "detmap diagnose TRUTH DETECTIONS --errors errors.csv --suspects relabel.csv",
    "detmap diagnose TRUTH DETECTIONS --confusion-rule mmdet --lrp-grid 0:0.01:1",
)
MOST_CLASSES = 20  # rows of a screen


def add(command: argparse.ArgumentParser) -> None:
    """Declare the options."""
    from detmap.analysis.diagnosis.sections import TABLES

    evaluation_inputs.add(command)
    doctor_notes.add(command)
    options.add_threads(command)
    _add_error_choices(command)
    _add_score_choices(command)
    for name, what in (
        ("errors", "one CSV row per false positive and missed object"),
        ("suspects", "one CSV row per suspected label error"),
    ):
        command.add_argument(
            f"--{name}", type=options.new_file, metavar="FILE", help=f"Write {what}."
        )
    options.add_outputs(command, *TABLES, "errors", "confusion")


def _add_error_choices(command: argparse.ArgumentParser) -> None:
    """Declare thresholds, TIDE's rules, and those of the confusion matrix, under the names that the
    original tools use.
    """
    from detmap.analysis.diagnosis import confusion, tide

    add = command.add_argument
    add(
        *("--iou", "--pos-threshold"),
        type=options.fraction,
        metavar="T",
        help="Set the IoU threshold of a match (default: 0.5).",
    )
    add(
        *("--background", "--background-threshold"),
        type=options.fraction,
        default=0.1,
        metavar="T",
        help="Set the IoU up to which a detection is background (default: 0.1).",
    )
    add(
        "--tide-rule",
        choices=tide.RULES[::-1],
        default="tidecv",
        help="Choose the rules of the JSON's tide numbers (default: tidecv; tide_protocol always "
        "follows the protocol).",
    )
    add(
        "--tide-mean",
        choices=tide.MEANS,
        default=tide.MEANS[0],
        help="Average tidecv's AP over classes with an object or detection (default), or with an "
        "object.",
    )
    add(
        "--tide-max-dets",
        type=options.count,
        default=tide.MAX_DETS,
        metavar="N",
        help="Limit the detections per image of tidecv's numbers (default: 100).",
    )
    add(
        "--confusion-rule",
        choices=confusion.RULES,
        default="detmap",
        help="Choose the rule of the confusion matrix (default: detmap).",
    )
    add(
        "--confusion-score",
        type=options.fraction,
        metavar="S",
        help="Set the score threshold of the matrix (default: by the rule; detmap: best F1).",
    )
    add(
        "--confusion-iou",
        type=options.fraction,
        metavar="T",
        help="Set the IoU threshold of the matrix (default: by the rule; detmap uses --iou).",
    )


def _add_score_choices(command: argparse.ArgumentParser) -> None:
    """Declare the rules of oLRP and calibration."""
    add = command.add_argument
    add(
        "--lrp-grid",
        type=grid,
        metavar="A:STEP:B",
        help="Set the score thresholds of oLRP; LRP-Error uses 0:0.01:1 (default: all scores).",
    )
    add(
        "--calibration-bins", type=bins, metavar="N", help="Use N score bins for ECE (default: 20)."
    )
    add(
        "--calibration-box-bins",
        type=box_bins,
        metavar="N,M",
        help="Set the bins per dimension of D-ECE with two and four box features (default: 8,5).",
    )
    add(
        "--calibration-least",
        type=options.whole,
        metavar="N",
        help="Ignore bins of D-ECE with fewer detections (netcal's sample_threshold; default: 8).",
    )
    add(
        "--calibration-score",
        type=options.fraction,
        metavar="S",
        help="Ignore detections below this score in calibration (default: none).",
    )


def bins(text: str) -> int:
    """A number of bins of the score."""
    from detmap.analysis.diagnosis.calibration import MOST_BINS

    return _limited((options.count(text),), MOST_BINS)[0]


def box_bins(text: str) -> tuple[int, ...]:
    """Numbers of bins a dimension of score and box."""
    from detmap.analysis.diagnosis.calibration import MOST_BOX_BINS

    return _limited(options.counts(text), MOST_BOX_BINS)


def _limited(numbers: tuple[int, ...], most: int) -> tuple[int, ...]:
    if max(numbers) > most:
        raise argparse.ArgumentTypeError(f"at most {most}")
    return numbers


def grid(text: str) -> Grid:
    """A grid of scores, ``0:0.01:1`` or numbers with commas."""
    try:
        found = Grid(text if ":" in text else tuple(float(each) for each in text.split(",")))
        if np.isfinite(found.values()).all():
            return found
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"{text[:20]!r} is not a grid such as 0:0.01:1 or 0.25,0.5")


def choices(arguments: argparse.Namespace) -> Choices:
    """Return the options of `summary`."""
    from detmap.analysis.diagnosis.sections import Choices

    if arguments.calibration_box_bins is not None and len(arguments.calibration_box_bins) != 2:
        n = len(arguments.calibration_box_bins)
        raise DetmapError("--calibration-box-bins", f"{n} values, needs 2", "write them as 8,5")
    calibration = {
        "n_bins": arguments.calibration_bins,
        "box_bins": arguments.calibration_box_bins,
        "least": arguments.calibration_least,
        "min_score": arguments.calibration_score,
    }
    return Choices(
        tide_rule=arguments.tide_rule,
        tidecv={"mean": arguments.tide_mean, "max_dets": arguments.tide_max_dets},
        confusion={
            "rule": arguments.confusion_rule,
            "confidence": arguments.confusion_score,
            "iou": arguments.confusion_iou,
        },
        calibration={name: value for name, value in calibration.items() if value is not None},
        olrp={"grid": arguments.lrp_grid},
    )


def run(arguments: argparse.Namespace) -> int:
    """Read, look, print."""
    from detmap.analysis.diagnosis import diagnose
    from detmap.analysis.diagnosis.confusion import confusion
    from detmap.analysis.diagnosis.diagnosis_tables import error_table, suspect_table
    from detmap.analysis.diagnosis.sections import summary_tables
    from detmap.analysis.diagnosis.summary import summary

    inputs = (arguments.truth, arguments.detections, arguments.protocol)
    outputs = (arguments.output, arguments.errors, arguments.suspects)
    options.refuse_one_place(*outputs)
    for each in outputs:
        options.refuse_to_overwrite(each, inputs)
    chosen = choices(arguments)
    truth, detections, rules = doctor_notes.read(arguments)
    iou = overlap(arguments.iou, rules)
    streams.progress(f"analyzing {len(detections)} detections")
    found = diagnose(
        evaluation_inputs.truth_of_protocols(arguments, truth, rules),
        detections,
        rules,
        iou=iou,
        background=arguments.background,
        threads=arguments.threads,
    )
    if arguments.errors is not None:
        write_mistakes(error_table(found), arguments.errors)
    content = summary(found, chosen)
    if arguments.suspects is not None:
        write_mistakes(suspect_table(content["suspects"]), arguments.suspects)
    if arguments.format == "json":
        command_output.write_json(content, arguments)
    elif arguments.format == "csv" and arguments.table in (None, "errors"):
        arguments.table = None
        command_output.write_tables([error_table(found)], arguments)
    else:
        tables = summary_tables(content, percent=arguments.percent)
        if arguments.table == "errors":
            tables.append(error_table(found))
        if arguments.table == "confusion":
            tables += confusion(found, **chosen.confusion).tables()
        if arguments.table is None and arguments.output is None:
            tables = [shortened(table) for table in tables]
        command_output.write_tables(tables, arguments)
    command_output.write_notes((*truth.notes, *detections.notes))
    return 0


def overlap(given: float | None, rules: Protocol) -> float:
    """Return the IoU threshold.

    Raises
    ------
    DetmapError : iou.thresholds was changed
    """
    if given is None and "iou.thresholds" in dict(rules.changes):
        what = "has no effect: error analysis uses one IoU threshold"
        raise DetmapError("iou.thresholds", what, "use --iou")
    return 0.5 if given is None else given


def write_errors(
    truth: Truth, detections: Detections, result: Result, arguments: argparse.Namespace
) -> None:
    """The rows of ``--errors`` of an evaluation, at its IoU of counts."""
    from detmap.analysis.diagnosis import diagnose
    from detmap.analysis.diagnosis.diagnosis_tables import error_table

    iou = 0.5 if arguments.iou is None else arguments.iou
    options_of_pass = {"iou": iou, "background": min(0.1, iou / 2), "threads": arguments.threads}
    found = diagnose(truth, detections, result.protocol, **options_of_pass)
    write_mistakes(error_table(found), arguments.errors)


def write_mistakes(table: Table, path: Any) -> None:
    """Write a table as CSV."""
    from detmap.core.output import formats

    streams.write(formats.csv([table]), path)


def shortened(table: Table) -> Table:
    """Return the overall operating points and those of the classes with the lowest F1, if a screen
    cannot show all classes; other tables as they are.
    """
    from detmap.analysis.diagnosis.operating_sweep import OVERALL

    n = len(OVERALL)
    if table.name != "points" or len(table.rows) - n <= MOST_CLASSES:
        return table
    column = table.header.index("F1")
    f1 = [np.inf if row[column] is None else float(str(row[column])) for row in table.rows[n:]]
    lowest = np.argsort(f1, kind="stable")[:MOST_CLASSES].tolist()
    more = f"{len(f1) - MOST_CLASSES:,} more classes: --table points -o FILE.csv"
    return replace(
        table,
        title=f"{table.title}: the {MOST_CLASSES} classes with the lowest F1",
        rows=(*table.rows[:n], *(table.rows[n + k] for k in lowest)),
        lines=(*table.lines, more),
    )
