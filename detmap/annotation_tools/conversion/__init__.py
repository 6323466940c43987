"""Conversion of ground truth and detections between formats: `detmap.convert`."""

import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from detmap.annotation_tools.conversion import writers
from detmap.core.adapters import read_truth, recognition, registry
from detmap.core.adapters.coco import records
from detmap.core.tables import Detections, Note, Truth
from detmap.errors import DataError, DetmapError
from detmap.files import detections_of, takes_reading, truth_options

SHAPE_KEYS = ("segmentation", "keypoints", "num_keypoints")


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
    shapes: writers.ShapeKeys = {}
    if truth is not None:
        table = detections_of(source, known, None, reading)
    elif isinstance(source, str | os.PathLike) and _is_coco(Path(source), reading):
        values = records.objects(Path(source), known, SHAPE_KEYS).values
        shapes = {key: of for key, of in values.items() if any(each is not None for each in of)}
    lost = writers.write(table, place, target, shapes)
    if truth is not None and known.family == "voc" and target == "coco":
        text = (
            "classes are written as ids, and the ground truth has names alone: give both to eval, "
            '--class-names FILE with JSON such as {"1": "cat"}, numbered as the sorted names from 1'
        )
        lost = (*lost, Note("lost-class-names", text, len(table.categories), table.source))
    return replace(table, notes=(*table.notes, *lost))


def _are_detections(source: Any) -> bool:
    """Whether the formats of a path are those of detections alone."""
    if not isinstance(source, str | os.PathLike) or not os.path.exists(source):
        return False
    read = recognition.readings(Path(source))
    return bool(read["detections"]) and not read["truth"]


def _target(output: str | Path, to: str | None) -> str:
    """The format to write."""
    by_suffix = {".json": "coco", ".csv": "csv"}
    target = to or by_suffix.get(Path(output).suffix.lower())
    if target not in writers.TARGETS:
        what = "no format is given" if target is None else f"no format {target!r}"
        raise DataError("convert: to", what, f"choose one of {', '.join(writers.TARGETS)}")
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
    row, _ = registry.choose_noted(registry.FORMATS, path, lambda row: row.truth_looks, wanted)
    return row.name == "coco" and path.is_file()
