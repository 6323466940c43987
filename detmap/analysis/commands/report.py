"""Write an HTML report about one detector, or a comparison of two. The file is self-contained: it
needs no network and no server.
"""

from __future__ import annotations

import argparse
import functools
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from detmap.analysis.commands import browser
from detmap.cli import (
    command_output,
    doctor_notes,
    evaluation_inputs,
    options,
    receipt_files,
    streams,
)
from detmap.core.base.display_names import detector_names
from detmap.core.results.receipt import Receipt
from detmap.core.results.result import Result
from detmap.core.tables import Detections, Truth
from detmap.core.tables.extension import extended

EXAMPLES = (
    "detmap report instances_val2017.json results.json -o report.html",
    "detmap report VOCdevkit/VOC2007 before/ after/ --images JPEGImages/",
    "detmap report TRUTH DETECTIONS --format md -o comment.md",
)


def add(command: argparse.ArgumentParser) -> None:
    """Declare the options."""
    evaluation_inputs.add(command)
    doctor_notes.add(command)
    command.add_argument(
        "other", metavar="B", nargs="?", type=options.place, help="Compare with a second detector."
    )
    options.add_threads(command)
    command.add_argument(
        "--images",
        type=options.path,
        metavar="DIR",
        help="Show crops of the images in DIR (default: found beside TRUTH).",
    )
    command.add_argument("--title", help="Set the page title (default: names of the inputs).")
    command.add_argument(
        "--format",
        choices=("html", "md", "pdf", "png"),
        help="Set the report format (default: by the suffix of -o, else html).",
    )
    command.add_argument(
        "--figure",
        type=options.new_file,
        metavar="FILE",
        help="Also write a figure of the classes for a paper (.pdf, .svg, .png, .eps).",
    )
    command.add_argument(
        "--column",
        choices=("single", "double"),
        default="single",
        help="Set the width of the figure: 89 or 183 mm (default: single).",
    )
    command.add_argument(
        "-o",
        "--output",
        type=options.new_file,
        metavar="FILE",
        default=Path("report.html"),
        help="Write to FILE (default: report.html).",
    )


def run(arguments: argparse.Namespace) -> int:
    """Read, evaluate, diagnose, draw."""
    from detmap.analysis import report as making
    from detmap.analysis.diagnosis.analysis import require_protocol

    inputs = (arguments.truth, arguments.detections, arguments.other, arguments.protocol)
    options.refuse_to_overwrite(arguments.output, inputs)
    kind = making.kind_of_file(arguments.output, arguments.format)
    if kind in ("pdf", "png"):
        browser.find()
    if arguments.figure is not None:
        from detmap.analysis.html_report import paper_figure

        options.refuse_to_overwrite(arguments.figure, (*inputs, arguments.output))
        paper_figure.check(arguments.figure)
    truth, detections, rules = doctor_notes.read(arguments, extend=False)
    require_protocol(rules)
    given = [arguments.detections, *([] if arguments.other is None else [arguments.other])]
    places = [(detections, arguments.detections)]
    if arguments.other is not None:
        seen = extended(truth, detections)
        other = doctor_notes.read_detections(arguments, arguments.other, seen, rules)
        places.append((other, arguments.other))
    tables = dict(zip(detector_names(given), (table for table, _ in places), strict=True))
    folder, text = making.images_of(truth, arguments.truth, arguments.images, arguments.split)
    made = making.render(
        truth,
        tables,
        rules,
        kind=kind,
        title=arguments.title,
        images=folder,
        receipt_of=functools.partial(_receipt, arguments, truth, places),
        threads=arguments.threads,
        findings=getattr(arguments, "findings", ()),
        progress=streams.progress,
        figure=None if arguments.figure is None else (arguments.figure, arguments.column),
    )
    from detmap.core.base import atomic_files

    atomic_files.write_bytes(arguments.output, made)
    streams.inform(f"{arguments.output}: {len(made):,} bytes\n")
    command_output.write_notes([text] if text and kind != "md" else [])
    return 0


def _receipt(
    arguments: argparse.Namespace,
    truth: Truth,
    places: Sequence[tuple[Detections, str]],
    detections: Detections,
    result: Result,
) -> Receipt:
    """Return the receipt of a detector as `detmap eval` writes it, without -o."""
    place = next(path for table, path in places if table is detections)
    one_run = {**vars(arguments), "detections": place, "images": None}
    command = list(sys.argv[1:])
    for option in ("-o", "--output"):
        if option in command:
            del command[command.index(option) : command.index(option) + 2]
    own = extended(truth, detections)
    made = receipt_files.made(own, detections, result, argparse.Namespace(**one_run))
    inputs = {
        role: {key: value for key, value in one.items() if key != "members"}
        for role, one in made.content["inputs"].items()
    }
    return replace(
        made, content={**made.content, "command": ["detmap", *command], "inputs": inputs}
    )
