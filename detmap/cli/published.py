"""List published results, or check one of them on its files. Exit 0: every number prints as it was
published; 1: one does not; 2: it cannot be checked.
"""

from __future__ import annotations

import argparse

from detmap.cli import options, output, streams
from detmap.errors import DetmapError
from detmap.report.table import Table

EXAMPLES = (
    "detmap published",
    "detmap published yolov2-voc --truth VOC2007/ --detections yolov2-voc/",
    "detmap published --format json -o published.json",
)


def add(command: argparse.ArgumentParser) -> None:
    """Declare the options."""
    command.add_argument("name", metavar="NAME", nargs="?", help="an entry of the list")
    for name in ("truth", "detections"):
        command.add_argument(
            f"--{name}", type=options.place, metavar="PATH", help=f"the {name}, to check the entry"
        )
    options.add_outputs(command)


def run(arguments: argparse.Namespace) -> int:
    """List, or check."""
    from detmap import published

    options.refuse_to_overwrite(arguments.output, (arguments.truth, arguments.detections))
    known = published.entries()
    if arguments.name is None:
        if arguments.truth or arguments.detections:
            raise DetmapError("published", "which entry?", f"name one of {', '.join(known)}")
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
        columns = ("name", "printed", "metric", "rules", "split", "verified")
        output.write_tables([Table("published results", columns, rows, name="list")], arguments)
        return 0
    if arguments.name not in known:
        fix = f"there are {', '.join(known)}"
        raise DetmapError("published", f"no entry {arguments.name!r:.60}", fix)
    entry = known[arguments.name]
    if not (arguments.truth and arguments.detections):
        told = ("title", "who", "where", "split", "files", "verified", "remarks")
        about = tuple((key, getattr(entry, key)) for key in told if getattr(entry, key))
        about += tuple((f"{n.metric}, {n.protocol}", n.text) for n in entry.numbers)
        output.write_tables([Table("", ("entry", entry.name), about, name="entry")], arguments)
        return 0
    from detmap.adapters import read_detections, read_truth

    streams.progress(f"reading {arguments.truth}")
    truth = read_truth(arguments.truth)
    found = published.check(entry, truth, read_detections(arguments.detections, truth))
    checked = tuple((*row[:4], "yes" if row[4] else "no") for row in found.rows)
    header = ("rules", "metric", "printed", "value", "the same")
    output.write_tables([Table(entry.title, header, checked, name="check")], arguments)
    for line in found.other:
        streams.say(f"note: {line}\n")
    return 0 if found.same else 1
