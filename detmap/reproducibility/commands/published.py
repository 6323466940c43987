"""List published results, or verify one from its files. Exit 0: every number is reproduced; 1: a
number differs; 2: the entry cannot be verified.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from detmap.cli import command_output, options, result_views, streams
from detmap.core.output.table import Table
from detmap.errors import DetmapError

if TYPE_CHECKING:
    from detmap.reproducibility.reproducing.published import Published

EXAMPLES = (
    "detmap published",
    "detmap published yolov2-voc --truth VOC2007/ --detections yolov2-voc/",
    "detmap published --format json -o published.json",
)


def add(command: argparse.ArgumentParser) -> None:
    """Declare the options."""
    command.add_argument("name", metavar="NAME", nargs="?", help="An entry of the list.")
    for name in ("truth", "detections"):
        command.add_argument(
            f"--{name}",
            type=options.place,
            metavar="PATH",
            help=f"Verify the entry with this {name} path.",
        )
    options.add_split(command)
    result_views.add_images(command)
    options.add_outputs(command)


def run(arguments: argparse.Namespace) -> int:
    """List, or check."""
    from detmap.reproducibility.reproducing import published

    inputs = (arguments.truth, arguments.detections, arguments.images)
    options.refuse_to_overwrite(arguments.output, inputs)
    known = published.entries()
    if arguments.name is None:
        if arguments.truth or arguments.detections:
            raise DetmapError("published", "no entry given", f"choose one of {', '.join(known)}")
        rows = tuple(
            (
                each.name,
                number.text,
                number.metric,
                number.protocol,
                each.split,
                each.verified.partition(" ")[0] or "never",
            )
            for each in known.values()
            for number in each.numbers
        )
        columns = ("name", "published", "metric", "rules", "split", "verified")
        command_output.write_tables(
            [Table("published results", columns, rows, name="list")], arguments
        )
        return 0
    if arguments.name not in known:
        fix = f"choose one of {', '.join(known)}"
        raise DetmapError("published", f"no entry {arguments.name!r:.60}", fix)
    entry = known[arguments.name]
    if bool(arguments.truth) != bool(arguments.detections):
        raise DetmapError("published", "needs two inputs", "give --truth and --detections")
    if not arguments.truth:
        about = tuple((key, value) for key, value in _told(entry) if value)
        about += tuple((f"{n.metric}, {n.protocol}", n.text) for n in entry.numbers)
        command_output.write_tables(
            [Table("", ("entry", entry.name), about, name="entry")], arguments
        )
        return 0
    return _check(entry, arguments)


def _check(entry: Published, arguments: argparse.Namespace) -> int:
    """Compare the numbers of an entry with those of two files."""
    from detmap.core.adapters import options_of, read_detections, read_images, read_truth_for
    from detmap.core.adapters.truth_by_protocol import truth_by_protocol
    from detmap.core.overlaps import kind_of
    from detmap.core.tables import selection
    from detmap.reproducibility.reproducing import published

    streams.progress(f"reading {arguments.truth}")
    form, split = entry.box_format or None, arguments.split
    compared = [number.rules() for number in entry.numbers]
    shaped = (rules for rules in compared if kind_of(rules.iou.of).reader is not None)
    rules = next(shaped, compared[0])  # boxes are read beside other shapes
    truth = read_truth_for(arguments.truth, rules, split=split, box_format=form)
    detections = read_detections(arguments.detections, truth, box_format=form, **options_of(rules))
    truths = truth_by_protocol(arguments.truth, truth, rules, split=split, box_format=form)
    if arguments.images is not None:
        ids = truth.images.ids[read_images(arguments.images, truth)]
        places = selection.image_places(truth, ids)
        truths, detections = truths.select_images(places), detections.select_images(places)
    found = published.check(entry, truths, detections)
    checked = tuple((*row[:4], "yes" if row[4] else "no") for row in found.rows)
    header = ("rules", "metric", "published", "value", "equal")
    command_output.write_tables([Table(entry.title, header, checked, name="check")], arguments)
    for line in found.other:
        streams.say(f"note: {line}\n")
    return 0 if found.same else 1


def _told(entry: Published) -> tuple[tuple[str, str], ...]:
    """List the fields of an entry."""
    return (
        ("title", entry.title),
        ("who", entry.who),
        ("where", entry.where),
        ("split", entry.split),
        ("files", entry.files),
        ("number source", entry.number_source),
        ("content of the ground truth", entry.truth),
        ("content of the detections", entry.detections),
        ("verified", entry.verified or "never: the detections are not available"),
        ("remarks", entry.remarks),
    )
