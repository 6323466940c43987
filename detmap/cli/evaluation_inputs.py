"""Read the ground truth, detections and protocol that the options of a command name."""

import argparse
from typing import Any

from detmap.cli import options, streams
from detmap.core.adapters import options_of, read_detections
from detmap.core.adapters.truth_by_protocol import TruthByProtocol, truth_by_protocol
from detmap.core.protocol import Protocol
from detmap.core.tables import Detections, Truth
from detmap.core.tables.extension import extended
from detmap.errors import DataError, counted
from detmap.evaluate import read_truth_and_protocol

NO_OBJECT = "check that this is the annotated split, and the path of its annotations"


def add(command: argparse.ArgumentParser, *, needed: bool = True) -> None:
    """Declare TRUTH, DETECTIONS, and the options of formats and rules."""
    options.add_inputs(command, needed=needed)
    _add_rules(command)


def add_how(command: argparse.ArgumentParser) -> None:
    """Declare the options of formats and rules."""
    options.add_settings(command)
    _add_rules(command)


def _add_rules(command: argparse.ArgumentParser) -> None:
    options.add_protocol(command)
    options.add_formats(command)
    options.add_unknown(command)


def read(
    arguments: argparse.Namespace, *, empty: bool = False
) -> tuple[Truth, Detections, Protocol]:
    """Read all inputs; see `read_truth_of`."""
    truth, rules = read_truth_of(arguments, empty=empty)
    detections = read_detections_of(arguments, arguments.detections, truth)
    return extended(truth, detections), detections, rules


def read_truth_of(arguments: argparse.Namespace, *, empty: bool = False) -> tuple[Truth, Protocol]:
    """Read the ground truth and the protocol.

    Raises
    ------
    DataError : it has no object and `empty` is False
    """
    streams.progress(f"reading {arguments.truth}")
    truth, rules = read_truth_and_protocol(
        arguments.truth,
        arguments.protocol,
        options.settings(arguments.set),
        **_truth_options(arguments),
    )
    if not (empty or len(truth)):
        where = arguments.truth if isinstance(arguments.truth, str) else truth.source
        read = f"{counted(len(truth.images), 'image')}, {counted(len(truth.categories), 'class')}"
        seen = "; ".join([f"read {read}, 0 objects", *map(str, truth.notes)])
        raise DataError(where, f"the ground truth has no objects: {seen}", NO_OBJECT)
    arguments.rules = rules
    return truth, rules


def truth_of_protocols(
    arguments: argparse.Namespace, truth: Truth, rules: Protocol
) -> TruthByProtocol:
    """Return the ground truth, read for `rules`, as other protocols read it."""
    return truth_by_protocol(arguments.truth, truth, rules, **_truth_options(arguments))


def _truth_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the options of the reader of ground truth."""
    return {
        "split": arguments.split,
        "format": arguments.truth_format,
        "box_format": arguments.truth_box_format,
        "image_sizes": arguments.image_sizes,
    }


def read_detections_of(arguments: argparse.Namespace, path: str, truth: Truth) -> Detections:
    """Read detections from a path; `read_truth_of` has read the ground truth."""
    streams.progress(f"reading {path}")
    return read_detections(path, truth, **detection_options(arguments))


def detection_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the options of the reader of detections."""
    rules = getattr(arguments, "rules", None)
    return {
        "format": arguments.detections_format,
        "box_format": arguments.detections_box_format,
        "unknown": arguments.unknown,
        "class_names": arguments.class_names,
        "image_key": arguments.image_key,
        "class_key": arguments.class_key,
        **({} if rules is None else options_of(rules)),
    }
