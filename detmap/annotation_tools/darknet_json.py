"""Reads the detections that Darknet writes with ``detector test ... -out result.json``.

A list of frames with ``filename`` and ``objects``; a box is center, width and height in fractions
of the image, whose size is that of the ground truth. Images are joined by file name, classes by
name.

Source: AlexeyAB/darknet, src/detector.c and detection_to_json in src/image.c.
"""

from pathlib import Path

import msgspec

from detmap.annotation_tools import typed_json
from detmap.annotation_tools.collected_boxes import Boxes
from detmap.core.adapters.joining.unknown_policy import STRICT, Policy
from detmap.core.base.open_files import shown
from detmap.core.tables import Detections, Truth
from detmap.errors import DataError

FORM = "a frame has filename and objects, each with name, relative_coordinates and confidence"


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


def read_detections(path: Path, truth: Truth, policy: Policy = STRICT) -> Detections:
    """Reads a result.json.

    Raises `DataError` for invalid files and records, and for frames of a video, which have no name.
    """
    boxes = Boxes(path, "normalized cxcywh")
    for i, frame in enumerate(typed_json.decoded(path, list[_Frame], FORM)):
        where = f"{shown(path)}[{i}]"
        if not frame.filename:
            fix = "run Darknet on a list of images: the frames of a video have no name to join"
            raise DataError(f"{where}.filename", "missing", fix)
        boxes.add_image(frame.filename, f"{where}.filename")
        for j, each in enumerate(frame.objects):
            box = msgspec.structs.astuple(each.relative_coordinates)
            boxes.add(each.name, box, f"{where}.objects[{j}]", each.confidence)
    return boxes.detections(truth, policy)
