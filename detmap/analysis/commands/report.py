"""Write an HTML report about one detector, or a comparison of two: one file, or a folder that also
shows every image. Both open from disk and need no network and no server.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from detmap import wings
from detmap.analysis import chromium
from detmap.analysis.browse.pictures import LARGEST, SIDE, SMALLEST, Wanted
from detmap.analysis.browse.writer import INDEX
from detmap.cli import command_output, doctor_notes, evaluation_inputs, options, streams
from detmap.core.base.display_names import detector_names
from detmap.core.results.result import Result
from detmap.core.tables import Detections, Truth
from detmap.core.tables.extension import extended

EXAMPLES = (
    "detmap report instances_val2017.json results.json -o report/",
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
        help="Show the images in DIR (default: found beside TRUTH).",
    )
    command.add_argument(
        "--link",
        action="store_true",
        help="Link a report folder to the images instead of copying them.",
    )
    command.add_argument(
        "--image-size",
        type=_pixels,
        metavar="N",
        help="Copy images at most N pixels long into a report folder (default: 480).",
    )
    command.add_argument("--title", help="Set the page title (default: names of the inputs).")
    command.add_argument(
        "--format",
        choices=("html", "md", "pdf", "png", "folder"),
        help="Set the report format (default: by the suffix of -o; folder without one).",
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
        metavar="PLACE",
        default=Path("report.html"),
        help="Write one file, or a folder with a page of all images if PLACE has no suffix "
        "(default: report.html).",
    )


def run(arguments: argparse.Namespace) -> int:
    """Read, evaluate, diagnose, draw."""
    from detmap.analysis import report as making
    from detmap.analysis.diagnosis.analysis import require_protocol

    inputs = (arguments.truth, arguments.detections, arguments.other, arguments.protocol)
    options.refuse_to_overwrite(arguments.output, inputs)
    kind = making.kind_of_file(arguments.output, arguments.format)
    making.check_folder(arguments.output, kind, arguments.link, arguments.image_size)
    if kind in ("pdf", "png"):
        chromium.find()
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
    counter = cache(streams.counter)  # the time left is counted from the first image on
    size, notes = making.write(
        arguments.output,
        truth,
        tables,
        rules,
        kind=kind,
        title=arguments.title,
        wanted=Wanted(folder, arguments.link, arguments.image_size or SIDE),
        receipt_of=_receipts(arguments, truth, places),
        threads=arguments.threads,
        findings=getattr(arguments, "findings", ()),
        progress=streams.progress,
        count=lambda done, of: counter("images copied")(done, of),
        figure=None if arguments.figure is None else (arguments.figure, arguments.column),
    )
    hint = f"; open {arguments.output / INDEX}" if kind == "folder" else ""
    streams.inform(f"{arguments.output}: {size:,} bytes{hint}\n")
    command_output.write_notes([*([text] if text and kind != "md" else []), *notes])
    return 0


def _pixels(text: str) -> int:
    """The longest side of a copy."""
    number = options.count(text)
    if not SMALLEST <= number <= LARGEST:
        raise argparse.ArgumentTypeError(f"a whole number from {SMALLEST} to {LARGEST}")
    return number


def _receipts(
    arguments: argparse.Namespace, truth: Truth, places: Sequence[tuple[Detections, str]]
) -> Callable[[Detections, Result], Any] | None:
    """Returns a function that makes the receipt of a detector as `detmap eval` writes it, without
    -o; None if receipts are not installed.
    """
    make = wings.hook("make_receipt")
    command = list(sys.argv[1:])
    for option in ("-o", "--output"):
        if option in command:
            del command[command.index(option) : command.index(option) + 2]

    def receipt_of(detections: Detections, result: Result) -> Any:
        place = next(path for table, path in places if table is detections)
        one_run = {**vars(arguments), "detections": place, "images": None}
        own = extended(truth, detections)
        made = make(own, detections, result, argparse.Namespace(**one_run))
        inputs = {
            role: {key: value for key, value in one.items() if key != "members"}
            for role, one in made.content["inputs"].items()
        }
        content = {**made.content, "command": ["detmap", *command], "inputs": inputs}
        return replace(made, content=content)

    return receipt_of if make else None
