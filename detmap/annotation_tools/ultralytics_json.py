"""Reads a folder of what ``Results.to_json()`` of Ultralytics returns, one file per image.

A file is a list of detections with ``name``, ``class``, ``confidence`` and ``box`` of x1, y1, x2,
y2 in continuous pixels from 0. Rotated boxes have four corners: the upright boxes around them are
used, with a note. ``normalize=True`` gives fractions, with a note. Images are joined by file stem,
classes by name; by ``class`` with --class-names.

Source: ultralytics 8.4, ultralytics/engine/results.py (Results.summary, to_json).
"""

from pathlib import Path

import msgspec

from detmap.annotation_tools import collected_boxes, typed_json
from detmap.annotation_tools.collected_boxes import Boxes
from detmap.core.adapters.joining.unknown_policy import STRICT, Policy
from detmap.core.base.open_files import shown
from detmap.core.tables import Detections, Truth
from detmap.errors import DataError

FORM = "a file is a list of detections, each with name, class, confidence and box"


class _Corners(msgspec.Struct, gc=False):
    x1: float
    y1: float
    x2: float
    y2: float
    x3: float | None = None
    y3: float | None = None
    x4: float | None = None
    y4: float | None = None


class _Detection(msgspec.Struct, gc=False):
    name: str
    confidence: float
    box: _Corners


def read_detections(path: Path, truth: Truth, policy: Policy = STRICT) -> Detections:
    """Reads a folder of detections. Raises `DataError` for invalid files and unknown names."""
    boxes = Boxes(path, "xyxy")
    for file in boxes.json_files(path):
        boxes.add_image(file.stem, shown(file))
        for i, record in enumerate(typed_json.decoded(file, list[_Detection], FORM)):
            where = f"{shown(file)}[{i}]"
            boxes.add(record.name, _box(boxes, record.box, where), where, record.confidence)
    sides = [abs(side) for box in boxes.boxes for side in box]
    if sides and max(sides) <= 1:
        boxes.box_format = "normalized xyxy"
        text = "boxes are read as fractions: no coordinate is above 1"
        boxes.counts["boxes-normalized", text][""] = len(boxes.boxes)
    return boxes.detections(truth, policy)


def _box(boxes: Boxes, box: _Corners, where: str) -> collected_boxes.Corners:
    rest = (box.x3, box.y3, box.x4, box.y4)
    numbers = [side for side in rest if side is not None]
    if not numbers:
        return box.x1, box.y1, box.x2, box.y2
    if len(numbers) < len(rest):
        raise DataError(f"{where}.box", "four corners, but some are missing", FORM)
    boxes.count("box-rotated", "boxes are rotated: the upright boxes around them are used")
    x3, y3, x4, y4 = numbers
    points = [(box.x1, box.y1), (box.x2, box.y2), (x3, y3), (x4, y4)]
    return collected_boxes.around(points, f"{where}.box")
