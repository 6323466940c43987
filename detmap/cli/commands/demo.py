"""Evaluate the bundled sample under three protocols."""

from __future__ import annotations

import argparse

from detmap.cli import command_output, options, streams
from detmap.core.adapters import read_detections, read_truth
from detmap.core.base.resources import folder
from detmap.core.output.table import Table
from detmap.evaluate import evaluate

PROTOCOLS = ("voc2007", "voc2012", "coco-bbox")
METRICS = ("mAP", "AP", "AP50", "AP75", "APs", "APm", "APl", "AR100")
EXAMPLES = ("detmap demo", "detmap demo --percent --digits 1", "detmap demo --format markdown")


def add(command: argparse.ArgumentParser) -> None:
    """Declare the options."""
    options.add_outputs(command)


def run(arguments: argparse.Namespace) -> int:
    """Evaluate two detectors, print one table."""
    sample = folder("datasets") / "shapes"
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
