"""Reads the detections that Darknet writes with ``detector test ... -out result.json``.

A list of frames with ``filename`` and ``objects``; a box is center, width and height in fractions
of the image, whose size is that of the ground truth. Images are joined by file name, classes by
name.

Source: AlexeyAB/darknet, src/detector.c and detection_to_json in src/image.c.
"""

from pathlib import Path
from typing import NoReturn

import msgspec
import numpy as np

from detmap.annotation_tools import typed_json
from detmap.annotation_tools.export_tables import Export
from detmap.core.adapters import box_conventions
from detmap.core.adapters.coco import record_errors
from detmap.core.adapters.joining.unknown_policy import STRICT, Policy
from detmap.core.base import open_files
from detmap.core.base.open_files import shown
from detmap.core.tables import Detections, Truth
from detmap.errors import DataError

FORM = "a frame has filename and objects, each with name, relative_coordinates and confidence"
SIDES = ("center_x", "center_y", "width", "height")


class _Sides(msgspec.Struct, gc=False):
    center_x: float
    center_y: float
    width: float
    height: float


class _Object(msgspec.Struct, gc=False):
    name: str
    relative_coordinates: _Sides
    confidence: float


class _Frame(msgspec.Struct, gc=False):
    objects: list[_Object]
    filename: str | None = None


def looks(path: Path) -> int:
    """See `detmap.core.adapters.format_rows.Looks`."""
    if path.suffix.lower() != ".json" or open_files.is_folder(path):
        return 0
    try:
        record = record_errors.first_record(path)
    except DataError:
        return 0
    return 3 * (record.keys() >= {"frame_id", "objects"})


def read_truth(path: Path) -> NoReturn:
    """Raises the error for detections that are given as ground truth."""
    fix = "give the labels of the data set, such as its obj.data"
    raise DataError(shown(path), "detections of Darknet, not a ground truth", fix)


def read_detections(path: Path, truth: Truth, policy: Policy = STRICT) -> Detections:
    """Reads a result.json.

    Raises `DataError` for invalid files and records, and for frames of a video, which have no name.
    """
    frames = typed_json.decoded(path, list[_Frame], FORM)
    for i, frame in enumerate(frames):
        if not frame.filename:
            fix = "run Darknet on a list of images: the frames of a video have no name to join"
            raise DataError(f"{shown(path)}[{i}].filename", "missing", fix)
    counts = [len(frame.objects) for frame in frames]
    image = np.repeat(np.arange(len(frames)), counts)
    first = np.cumsum([0, *counts])
    rows = [each for frame in frames for each in frame.objects]

    def place(row: int) -> str:
        return f"{shown(path)}[{image[row]}].objects[{row - first[image[row]]}]"

    fields = (getattr(row.relative_coordinates, side) for row in rows for side in SIDES)
    export = Export(
        shown(path),
        [frame.filename or "" for frame in frames],
        box_conventions.unknown_sizes(len(frames)),
        image.tolist(),
        [row.name for row in rows],
        np.fromiter(fields, np.float64, count=4 * len(rows)).reshape(-1, 4),
        "normalized cxcywh",
        place,
    )
    score = np.array([row.confidence for row in rows], dtype=np.float64)
    return export.detections(truth, score, policy)
