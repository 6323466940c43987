"""Evaluate the bundled sample under three protocols."""

import argparse
from pathlib import Path

from detmap.cli import command_output, options, streams
from detmap.core.adapters import read_detections, read_truth
from detmap.core.base.atomic_files import write_folder
from detmap.core.base.resources import folder
from detmap.core.output.table import Table
from detmap.evaluate import evaluate

PROTOCOLS = ("voc2007", "voc2012", "coco-bbox")
METRICS = ("mAP", "AP", "AP50", "AP75", "APs", "APm", "APl", "AR100")
EXAMPLES = ("detmap demo", "detmap demo --copy shapes", "detmap demo --format markdown")


def add(command: argparse.ArgumentParser) -> None:
    """Declare the options."""
    text = "Copy the sample to a new folder, to try other commands on it."
    command.add_argument("--copy", type=options.new_file, metavar="FOLDER", help=text)
    options.add_outputs(command)


def run(arguments: argparse.Namespace) -> int:
    """Evaluate two detectors, print one table."""
    sample = folder("datasets") / "shapes"
    if arguments.copy is not None:
        sample = copied(sample, arguments.copy)
    truth = read_truth(sample)
    rows, lines = [], [f"truth and detections: {sample}"]
    for detector in ("contours", "template"):
        streams.progress(f"evaluating {detector}")
        detections = read_detections(sample / "detections" / detector, truth)
        for name in PROTOCOLS:
            result = evaluate(truth, detections, name)
            values = result.metrics
            rows.append((detector, name, *(values.get(metric) for metric in METRICS)))
            lines.append(f"{detector}: {result.signature}")
    header = ("detector", "protocol", *METRICS)
    totals = f"{len(truth.images)} images, {len(truth)} objects, {len(truth.categories)} classes"
    title = f"the bundled sample: {totals}"
    command_output.write_tables([Table(title, header, tuple(rows), tuple(lines))], arguments)
    return 0


def copied(sample: Path, place: Path) -> Path:
    """Copies the files of the sample to a new folder and returns it."""
    files = [path for path in sample.rglob("*") if path.is_file()]
    write_folder(place, {str(path.relative_to(sample)): path.read_bytes() for path in files})
    return place
