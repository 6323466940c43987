"""Evaluate the same files under the rules of 54 tools (pycocotools, Ultralytics, torchmetrics,
mmdetection, detectron2, Cartucho ...) and report the difference to the default protocol.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence

from detmap.cli import command_output, doctor_notes, evaluation_inputs, options, streams
from detmap.core.output.table import Table

Row = tuple[str, str, str, float, float, str]
"""Tool, metric, IoU, value, difference, remark."""

EXAMPLES = (
    "detmap tools VOCdevkit/VOC2007 results/",
    "detmap tools TRUTH DETECTIONS --percent --digits 3",
    "detmap tools TRUTH DETECTIONS --near 73.4 --percent",
    "detmap tools TRUTH DETECTIONS --only yolov5,tide --format json",
)


def add(command: argparse.ArgumentParser) -> None:
    """Declare the options."""
    evaluation_inputs.add(command)
    doctor_notes.add(command)
    command.add_argument(
        "--only",
        type=names,
        metavar="NAMES",
        help="Report only these tools (names separated by commas).",
    )
    command.add_argument(
        "--near",
        metavar="NUMBER",
        help="List the tools by distance from this number (72.1, 0.721), nearest first; "
        "differences are to it.",
    )
    options.add_threads(command)
    options.add_outputs(command)


def names(text: str) -> tuple[str, ...]:
    """Names with commas between them."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def nearest(rows: Sequence[Row], wanted: float) -> list[Row]:
    """Return the rows by distance from a number, with the difference to it; undefined ones last."""
    rows = [(*row[:4], row[3] - wanted, row[5]) for row in rows]
    return sorted(rows, key=lambda row: (math.isnan(row[4]), abs(row[4])))


def run(arguments: argparse.Namespace) -> int:
    """Read, evaluate under every tool's rules, print."""
    from detmap.core.results.result_tables import overlaps
    from detmap.reproducibility.parity import restated_tools
    from detmap.reproducibility.reproducing.printed_numbers import parse

    inputs = (arguments.truth, arguments.detections, arguments.protocol)
    options.refuse_to_overwrite(arguments.output, inputs)
    truth, detections, rules = doctor_notes.read(arguments)
    wanted = None if arguments.near is None else parse(arguments.near, "--near")
    streams.progress("evaluating under the rules of each tool")
    truths = evaluation_inputs.truth_of_protocols(arguments, truth, rules)
    known = restated_tools.MatchedLast(truths, detections, arguments.threads)
    stock = known.result(rules)
    metric, value = restated_tools.headline(stock)
    found = restated_tools.compare_tools(known, rules, arguments.only)
    iou = overlaps(rules, stock.rows[0])
    rows = [(rules.name, metric, iou, value, 0.0, "compared with")]
    rows += [
        (row.tool, row.metric, row.iou, row.value, row.difference, row.remark) for row in found
    ]
    header = ("tool", "metric", "IoU", "value", "difference", "remark")
    title = f"tools, compared with {rules.name}"
    below = f"difference: to the metric of {rules.name} over the same IoU, where it has one"
    if wanted is not None:
        rows = nearest(rows, wanted.value)
        title, below = f"tools, nearest to {wanted.text} first", f"difference: to {wanted.text}"
    table = Table(title, header, tuple(rows), (below, stock.signature), name="tools")
    command_output.write_tables([table], arguments)
    seen = {word for row in found for word in row.remark.split(", ")}
    undefined: dict[str, list[str]] = {}
    for row in found:
        for note in row.notes:
            if row.remark == "undefined":
                undefined.setdefault(str(note), []).append(row.tool)
    told = [f"undefined ({', '.join(names)}): {text}" for text, names in undefined.items()]
    command_output.write_notes(
        [*(text for word, text in restated_tools.WORDS.items() if word in seen), *told]
    )
    return 0
