"""Truth, detections and rules, as the options that every evaluating command has name them."""

from __future__ import annotations

import argparse

from detmap.adapters import read_detections, read_truth
from detmap.cli import options, streams
from detmap.evaluate import choose_protocol, shapes_of
from detmap.protocol import Protocol
from detmap.tables import Detections, Truth


def add(command: argparse.ArgumentParser) -> None:
    """Declare TRUTH, DETECTIONS and what says how they are read and by which rules."""
    options.add_inputs(command)
    options.add_protocol(command)
    options.add_formats(command)


def read(arguments: argparse.Namespace) -> tuple[Truth, Detections, Protocol]:
    """Read what was named, and say so meanwhile."""
    truth = read_truth_of(arguments)
    detections = read_detections_of(arguments, arguments.detections, truth)
    rules = choose_protocol(arguments.protocol, truth, options.settings(arguments.set))
    return truth, detections, rules


def read_truth_of(arguments: argparse.Namespace) -> Truth:
    """The truth alone."""
    streams.progress(f"reading {arguments.truth}")
    return read_truth(
        arguments.truth,
        split=arguments.split,
        format=arguments.truth_format,
        shapes=shapes_of(arguments.protocol, options.settings(arguments.set)),
        box_format=arguments.truth_box_format,
        image_sizes=arguments.image_sizes,
    )


def read_detections_of(arguments: argparse.Namespace, path: str, truth: Truth) -> Detections:
    """Detections from a path, against the truth."""
    streams.progress(f"reading {path}")
    return read_detections(
        path, truth, format=arguments.detections_format, box_format=arguments.detections_box_format
    )
