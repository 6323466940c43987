"""Say what limits the number: what each kind of error costs in AP, at which score to run, which
classes are confused, where objects are missed, which labels look wrong.
"""

from __future__ import annotations

import argparse
from typing import Any

from detmap.cli import options, output, reading, streams
from detmap.protocol import Protocol
from detmap.report.table import Cell, Table
from detmap.tables import Detections, Truth

EXAMPLES = (
    "detmap diagnose instances_val2017.json results.json",
    "detmap diagnose VOCdevkit/VOC2007 results/ --format json -o diagnosis.json",
    "detmap diagnose TRUTH DETECTIONS --errors errors.csv --suspects relabel.csv",
)
TABLES = ("sentences", "costs", "points", "slices", "confused", "images", "errors")
MOST_IMAGES = 10


def add(command: argparse.ArgumentParser) -> None:
    """Declare the options."""
    reading.add(command)
    options.add_threads(command)
    command.add_argument(
        "--iou", type=float, default=0.5, metavar="T", help="overlap of a match (default: 0.5)"
    )
    command.add_argument(
        "--background",
        type=float,
        default=0.1,
        metavar="T",
        help="overlap up to which a detection is on nothing (default: 0.1)",
    )
    for name, what in (
        ("errors", "a row a false positive and a missed object"),
        ("suspects", "a row a label that a human should look at again"),
    ):
        command.add_argument(
            f"--{name}", type=options.new_file, metavar="FILE", help=f"also write CSV: {what}"
        )
    options.add_outputs(command, *TABLES)


def run(arguments: argparse.Namespace) -> int:
    """Read, look, print."""
    from detmap.diagnosis import diagnose
    from detmap.diagnosis.summary import summary

    inputs = (arguments.truth, arguments.detections, arguments.protocol)
    outputs = (arguments.output, arguments.errors, arguments.suspects)
    options.refuse_one_place(*outputs)
    for each in outputs:
        options.refuse_to_overwrite(each, inputs)
    truth, detections, rules = reading.read(arguments)
    streams.progress(f"looking at {len(detections)} detections")
    found = diagnose(
        truth,
        detections,
        rules,
        iou=arguments.iou,
        background=arguments.background,
        threads=arguments.threads,
    )
    if arguments.errors is not None:
        write_mistakes(errors_of(found), arguments.errors)
    content = summary(found)
    if arguments.suspects is not None:
        write_mistakes(_table("suspects", content["suspects"]), arguments.suspects)
    if arguments.format == "json":
        output.write_json(content, arguments)
    elif arguments.format == "csv" and arguments.table in (None, "errors"):
        arguments.table = None
        output.write_tables([errors_of(found)], arguments)
    else:
        tables = tables_of(content)
        if arguments.table == "errors":
            tables.append(errors_of(found))
        output.write_tables(tables, arguments)
    output.write_notes((*truth.notes, *detections.notes))
    return 0


def write_errors(
    truth: Truth, detections: Detections, rules: Protocol, arguments: argparse.Namespace
) -> None:
    """The rows of ``--errors`` of an evaluation, at its IoU of counts."""
    from detmap.diagnosis import diagnose

    iou = 0.5 if arguments.iou is None else arguments.iou
    options_of_pass = {"iou": iou, "background": min(0.1, iou / 2), "threads": arguments.threads}
    found = diagnose(truth, detections, rules, **options_of_pass)
    write_mistakes(errors_of(found), arguments.errors)


def errors_of(found: Any) -> Table:
    """Every false positive and missed object, a row each."""
    from detmap.diagnosis.mistakes import errors

    return _table("errors", [each.as_dict() for each in errors(found)])


def write_mistakes(table: Table, path: Any) -> None:
    """Write a table as CSV."""
    from detmap.report import formats

    streams.write(formats.csv([table]), path)


def tables_of(content: dict[str, Any]) -> list[Table]:
    """The summary as tables."""
    from detmap.diagnosis.summary import MEANING

    own, theirs = content["tide_protocol"], content["tide"]
    costs = [
        (name, MEANING[name], own["counts"][name], _share(own["raw"][name]), _share(theirs[name]))
        for name in MEANING
    ]
    points = [
        tuple(row[name] for name in ("name", "score", "precision", "recall", "f1", "fp", "missed"))
        for row in content["operating_points"]
    ]
    slices = [
        (row["by"], row["name"], row["objects"], row["recall"], row["ap"])
        for row in content["slices"]
    ]
    rows = content["images"][:MOST_IMAGES]
    return [
        Table(
            "",
            ("what stands out",),
            tuple((sentence,) for sentence in content["sentences"]),
            name="sentences",
        ),
        Table(
            "What errors cost: AP that mending each kind would add (they do not add up)",
            ("error", "meaning", "cases", "AP", "AP (tidecv)"),
            tuple(costs),
            name="costs",
        ),
        Table(
            "Operating points of the best F1",
            ("class", "score", "precision", "recall", "F1", "FP", "missed"),
            tuple(points),
            name="points",
        ),
        Table(
            "Where it works",
            ("by", "range", "objects", "recall", "AP"),
            tuple(slices),
            name="slices",
        ),
        Table(
            "Most confused classes",
            ("true", "predicted", "count"),
            tuple(_confused(content["confusion"])),
            name="confused",
        ),
        Table(
            "Images with most errors",
            ("image", "objects", "TP", "FP", "missed"),
            tuple(tuple(row.values()) for row in rows),
            name="images",
        ),
    ]


def _share(points: float | None) -> float | None:
    """Points as a fraction."""
    return None if points is None else points / 100


def _confused(confusion: dict[str, Any], most: int = 10) -> list[tuple[Cell, ...]]:
    names, matrix = confusion["classes"][:-1], confusion["matrix"]
    rows = [
        (names[i], names[j], matrix[i][j])
        for i in range(len(names))
        for j in range(len(names))
        if i != j and matrix[i][j]
    ]
    return list(sorted(rows, key=lambda row: -row[2])[:most])


def _table(name: str, rows: list[dict[str, Any]]) -> Table:
    header = ("kind", "image", "class", "x", "y", "w", "h", "score", "overlap", "other", "row")
    return Table("", header, tuple(tuple(row.values()) for row in rows), name=name)
