"""Reads ground truth, detections and protocol with options named as on the command line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from detmap.core.adapters import options_of, read_detections
from detmap.core.adapters.truth_by_protocol import TruthByProtocol, truth_by_protocol
from detmap.core.base.suggestions import did_you_mean
from detmap.core.protocol import Protocol
from detmap.core.tables import Detections, Truth
from detmap.core.tables.extension import extended
from detmap.evaluate import read_truth_and_protocol

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


class Inputs(NamedTuple):
    """What was read; `truths` is the ground truth as each protocol reads it."""

    truth: Truth
    detections: Detections
    protocol: Protocol
    truths: TruthByProtocol


def read(
    where: str,
    truth: Any,
    detections: Any,
    protocol: Protocol | str | None,
    settings: Mapping[str, Any] | None,
    reading: Mapping[str, Any],
) -> Inputs:
    """Reads all inputs.

    Parameters
    ----------
    where : name of the function, for messages
    truth, detections, protocol, settings : as in `detmap.evaluate`
    reading : `TRUTH_OPTIONS` and `DETECTION_OPTIONS`

    Raises
    ------
    TypeError : another option
    DataError : invalid input
    """
    require_options(where, reading)
    given = truth_options(reading)
    table, rules = read_truth_and_protocol(truth, protocol, settings, **given)
    found = detections_of(detections, table, rules, reading)
    table = extended(table, found)
    return Inputs(table, found, rules, truth_by_protocol(truth, table, rules, **given))


def require_options(where: str, reading: Mapping[str, Any]) -> None:
    """Raises `TypeError` for an option that is not one of reading."""
    known = (*TRUTH_OPTIONS, *DETECTION_OPTIONS)
    for name in reading:
        if name not in known:
            hint = did_you_mean("parameter", name, known)
            what = f"{where}() got an unexpected keyword argument {name!r}"
            raise TypeError(f"{what}; {hint}the options of reading are {', '.join(known)}")


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
