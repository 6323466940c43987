"""Reads CreateML JSON: a list of images with annotations.

``coordinates`` are the center, width and height of a box, in continuous pixels from 0. A file with
``confidence`` may be detections. The file lists no image that was never saved (LabelImg): pictures
beside it are read as images without objects, with a note.

Source: Apple's documentation of Create ML's object detectors; LabelImg 1.8.6, libs/create_ml_io.py.
"""

from pathlib import Path
from typing import Any

import msgspec

from detmap.annotation_tools import looks, typed_json
from detmap.annotation_tools.collected_boxes import Boxes
from detmap.core.adapters import folder_files
from detmap.core.adapters.joining import image_names
from detmap.core.adapters.joining.unknown_policy import STRICT, Policy
from detmap.core.base.open_files import shown
from detmap.core.tables import Detections, Truth
from detmap.errors import DataError

FORM = "a list of images, each with image and annotations of label and coordinates (x, y: center)"


class _Center(msgspec.Struct, gc=False):
    x: float
    y: float
    width: float
    height: float


class _Box(msgspec.Struct, gc=False):
    label: str
    coordinates: _Center
    confidence: float | None = None


class _Image(msgspec.Struct, gc=False):
    """An image; Apple's own examples have the names of the two optional fields."""

    image: str | None = None
    annotations: list[_Box] | None = None
    imagefilename: str | None = None
    annotation: list[_Box] | None = None


def read_truth(path: Path, image_sizes: Path | None = None) -> Truth:
    """Reads the objects of a file, or of Roboflow's folder with it; see `Boxes.truth`."""
    boxes = _read(path)
    folders = [looks.file_in(path, looks.CREATEML).parent]
    known = set(map(image_names.stem, boxes.files))
    text = "images of the folder are not in the file: read as images without objects"
    boxes.add_pictures(sorted(folder_files.pictures(folders, known).values()), text)
    return boxes.truth(sizes_file=image_sizes, folders=folders)


def read_detections(path: Path, truth: Truth, policy: Policy = STRICT) -> Detections:
    """Reads annotations with a confidence as detections."""
    return _read(path).detections(truth, policy)


def _read(path: Path) -> Boxes:
    file = looks.file_in(path, looks.CREATEML)
    boxes = Boxes(file, "cxcywh")
    for i, image in enumerate(typed_json.decoded(file, list[_Image], FORM)):
        where = f"{shown(file)}[{i}]"
        name = _only(image, where, "image", "imagefilename")
        boxes.add_image(name, f"{where}.image")
        for j, record in enumerate(_only(image, where, "annotations", "annotation")):
            box = record.coordinates
            numbers = (box.x, box.y, box.width, box.height)
            boxes.add(record.label, numbers, f"{where}.annotations[{j}]", record.confidence)
    return boxes


def _only(image: _Image, where: str, *names: str) -> Any:
    """Returns the value of the only field that is given."""
    given = [value for name in names if (value := getattr(image, name)) is not None]
    if len(given) != 1:
        what = "both are given" if given else "missing"
        raise DataError(f"{where}.{' or '.join(names) if given else names[0]}", what, FORM)
    return given[0]
