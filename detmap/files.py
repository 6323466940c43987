"""Reads, describes and converts files with options named as on the command line: `detmap.inspect`,
`detmap.convert`, `detmap.show`, and the inputs of the other functions.
"""

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from detmap.core import protocol as protocols
from detmap.core.adapters import (
    conversion,
    inspection,
    options_of,
    read_detections,
    read_truth,
    registry,
)
from detmap.core.adapters.coco import records
from detmap.core.adapters.inspection import Inspection
from detmap.core.adapters.truth_by_protocol import TruthByProtocol, truth_by_protocol
from detmap.core.base import open_files
from detmap.core.base.suggestions import Function, proposes_arguments
from detmap.core.protocol import Protocol
from detmap.core.protocol.default_protocol import prepare
from detmap.core.tables import Detections, Note, Truth
from detmap.core.tables.extension import extended
from detmap.errors import DataError, DetmapError
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


@takes_reading
def inspect(
    source: Any, truth: Any = None, protocol: Protocol | str | None = None, **reading: Any
) -> Inspection:
    """Describes a file, folder or object: format, images, classes, boxes.

    >>> import detmap
    >>> from detmap.core.base.resources import folder
    >>> detmap.inspect(folder("datasets") / "shapes" / "instances_test.json")["images"]
    60

    Parameters
    ----------
    source : a path, or an object that `detmap.evaluate` takes
    truth : the ground truth, to read the source as its detections
    protocol : whose format and class names apply
    reading : options of ``detmap inspect``: ``split``, ``truth_format``, ``unknown`` ...

    Raises
    ------
    DataError : nothing can be read, or the options do not fit
    """
    rules = None if protocol is None else prepare(protocol)
    how = {own: reading[name] for name, own in DETECTION_OPTIONS.items() if name in reading}
    how |= {} if rules is None else options_of(rules)
    return inspection.inspect_source(source, truth, rules, truth_options(reading), how)


@takes_reading
def convert(
    source: Any,
    output: str | Path,
    *,
    to: str | None = None,
    truth: Any = None,
    force: bool = False,
    **reading: Any,
) -> Truth | Detections:
    """Writes ground truth, or detections of a ground truth, in another format.

    >>> import detmap
    >>> len(detmap.convert("shapes", "truth.csv"))
    326

    Parameters
    ----------
    source : a path, or an object that `detmap.evaluate` takes
    output : the file (coco, csv) or new folder (voc, yolo) to write
    to : ``coco``, ``voc``, ``yolo`` or ``csv`` (default: by the suffix of `output`, .json or .csv)
    truth : the ground truth of a source that is detections
    force : whether to replace an existing file
    reading : options of ``detmap convert``: ``split``, ``truth_format``, ``class_names`` ...

    Returns
    -------
    the table that was written; its notes count what the format does not hold

    Raises
    ------
    DetmapError : invalid input, an output that exists or lies in the input, an unknown format
    """
    target = _target(output, to)
    place = Path(output)
    _refuse_place(place, (source, truth), force)
    table: Truth | Detections
    try:
        table = known = read_truth(source if truth is None else truth, **truth_options(reading))
    except DataError as error:
        if truth is None and _are_detections(source):
            fix = "detections need their ground truth: --truth TRUTH (in Python truth=...)"
            raise DataError(error.where, "are detections", fix) from None
        raise
    shapes: conversion.ShapeKeys = {}
    if truth is not None:
        table = detections_of(source, known, None, reading)
    elif isinstance(source, str | os.PathLike) and _is_coco(Path(source), reading):
        shapes = records.shape_keys(Path(source), known)
    lost = conversion.write(table, place, target, shapes)
    if truth is not None and known.family == "voc" and target == "coco":
        text = (
            "classes are written as ids, and the ground truth has names alone: give both to eval, "
            '--class-names FILE with JSON such as {"1": "cat"}, numbered as the sorted names from 1'
        )
        lost = (*lost, Note("lost-class-names", text, len(table.categories), table.source))
    return replace(table, notes=(*table.notes, *lost))


def _are_detections(source: Any) -> bool:
    """Whether the formats of a path are those of detections alone."""
    from detmap.core.adapters import recognition  # only an error needs it

    if not isinstance(source, str | os.PathLike) or not os.path.exists(source):
        return False
    read = recognition.readings(Path(source))
    return bool(read["detections"]) and not read["truth"]


def _target(output: str | Path, to: str | None) -> str:
    """The format to write."""
    by_suffix = {".json": "coco", ".csv": "csv"}
    target = to or by_suffix.get(Path(output).suffix.lower())
    if target not in conversion.TARGETS:
        what = "no format is given" if target is None else f"no format {target!r}"
        raise DataError("convert: to", what, f"choose one of {', '.join(conversion.TARGETS)}")
    return target


def _refuse_place(output: Path, inputs: Iterable[Any], force: bool) -> None:
    """Raises `DetmapError` for an output that exists, or in a folder that is read."""
    place = output.resolve()
    for each in inputs:
        if isinstance(each, str | os.PathLike) and Path(each).is_dir():
            folder = Path(each).resolve()
            if place.is_relative_to(folder):
                what = f"is in the folder {folder}, which is read"
                raise DetmapError(str(output), what, "choose a path outside of it")
    if os.path.lexists(output) and not (force or output.is_dir()):
        what = "is a link to another place" if output.is_symlink() else "exists"
        raise DetmapError(
            str(output), what, "choose another path, or --force (in Python force=True)"
        )


def _is_coco(path: Path, reading: dict[str, Any]) -> bool:
    """Checks if ground truth is COCO JSON, whose shapes can be copied."""
    wanted = reading.get("truth_format")
    row = registry.choose(registry.FORMATS, path, lambda row: row.truth_looks, wanted)
    return row.name == "coco" and path.is_file()


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
