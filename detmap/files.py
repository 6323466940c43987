"""Reads the inputs of functions whose options are named as on the command line; `detmap.show`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from detmap.core import protocol as protocols
from detmap.core.adapters import options_of, read_detections
from detmap.core.adapters.truth_by_protocol import TruthByProtocol, truth_by_protocol
from detmap.core.base import open_files
from detmap.core.base.suggestions import Function, proposes_arguments
from detmap.core.protocol import Protocol
from detmap.core.tables import Detections, Truth
from detmap.core.tables.extension import extended
from detmap.evaluate import held, read_truth_and_protocol

TRUTH_OPTIONS = {
    "split": "split",
    "truth_format": "format",
    "truth_box_format": "box_format",
    "image_sizes": "image_sizes",
}
"""Options of the command line, and those of `detmap.read_truth`."""
DETECTION_OPTIONS = {
    "detections_format": "format",
    "detections_box_format": "box_format",
    "unknown": "unknown",
    "class_names": "class_names",
    "image_key": "image_key",
    "class_key": "class_key",
}
"""Options of the command line, and those of `detmap.read_detections`."""


def takes_reading(function: Function) -> Function:
    """Decorates a public function that takes the options of reading; see `proposes_arguments`."""
    return proposes_arguments(function, (*TRUTH_OPTIONS, *DETECTION_OPTIONS))


class Inputs(NamedTuple):
    """What was read; `truths` is the ground truth as each protocol reads it."""

    truth: Truth
    detections: Detections
    protocol: Protocol
    truths: TruthByProtocol


def read(
    truth: Any,
    detections: Any,
    protocol: Protocol | str | None,
    settings: Mapping[str, Any] | None,
    reading: Mapping[str, Any],
) -> Inputs:
    """Reads all inputs.

    Parameters
    ----------
    truth, detections, protocol, settings : as in `detmap.evaluate`
    reading : `TRUTH_OPTIONS` and `DETECTION_OPTIONS`

    Raises
    ------
    DataError : invalid input
    """
    given = truth_options(reading)
    truth, detections = held(truth), held(detections)
    table, rules = read_truth_and_protocol(truth, protocol, settings, **given)
    found = detections_of(detections, table, rules, reading)
    table = extended(table, found)
    return Inputs(table, found, rules, truth_by_protocol(truth, table, rules, **given))


def truth_options(reading: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the given options of `detmap.read_truth`, by its names."""
    return {own: reading[name] for name, own in TRUTH_OPTIONS.items() if name in reading}


def detections_of(
    given: Any, truth: Truth, rules: Protocol | None, reading: Mapping[str, Any]
) -> Detections:
    """Reads detections with the options of the command line."""
    if isinstance(given, Detections):
        return given
    how = {own: reading[name] for name, own in DETECTION_OPTIONS.items() if name in reading}
    return read_detections(given, truth, **how, **({} if rules is None else options_of(rules)))


def show(protocol: str | None = None) -> str:
    """Returns the TOML text of a protocol with its sources, or the list of the protocols.

    >>> import detmap
    >>> "voc2012" in detmap.show()
    True
    """
    if protocol is None:
        rows = [protocols.load(name) for name in (*protocols.names(), *protocols.tools())]
        return "".join(f"{each.name}: {each.summary}\n" for each in rows)
    loaded = protocols.load(protocol)  # reports errors in a protocol file
    path = protocols.shipped(loaded.name) if loaded.stock else Path(protocol)
    return open_files.read_bytes(path or Path(protocol)).decode()
