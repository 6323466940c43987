"""Reads LabelMe: a JSON file an image, in a folder with the images or without them.

A rectangle has two corners in the order of the mouse, or four (X-AnyLabeling), in continuous pixels
from 0. Polygons, masks and circles (center, point on the edge) are read as the boxes around them;
points and lines have no box. Notes count both. ``imagePath`` names the image, also by a relative
path or one of Windows. Flags of a shape are roles by name. A shape with ``score`` (AnyLabeling) may
be a detection.

Source: wkentaro/labelme, labelme/label_file.py and shape.py.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from detmap.annotation_tools import typed_json
from detmap.annotation_tools.collected_boxes import Boxes, Corners
from detmap.core.adapters import folder_files
from detmap.core.adapters.joining import image_names
from detmap.core.adapters.joining.unknown_policy import STRICT, Policy
from detmap.core.base.open_files import shown
from detmap.core.tables import Detections, Truth
from detmap.errors import DataError

FORM = "a LabelMe file has shapes (each with label and points), imagePath, imageWidth, imageHeight"
AROUND = ("polygon", "mask", "circle")
OTHERS = ("point", "points", "line", "linestrip")
WITHOUT_FILE = "images in the folder have no JSON file: read as images without objects"


class _Shape(msgspec.Struct, gc=False):
    label: str
    points: list[tuple[float, float]]
    shape_type: str | None = None
    flags: dict[str, Any] | None = None
    score: float | None = None


class _File(msgspec.Struct, gc=False, rename="camel"):
    shapes: list[_Shape]
    image_path: str | None = None
    image_width: float | None = None
    image_height: float | None = None


def read_truth(path: Path, roles: Sequence[str] = (), attributes: Sequence[str] = ()) -> Truth:
    """Reads the shapes of all files as ground truth.

    Images of the folder without a file have no objects; a note counts them.

    Parameters
    ----------
    path : the folder, or one file
    roles, attributes : names of shape flags to read

    Raises `DataError` for invalid files and shapes.
    """
    boxes = _read(path)
    if path.is_dir():
        boxes.add_pictures(folder_files.images(path), WITHOUT_FILE)
    return boxes.truth(roles=roles, attributes=attributes)


def read_detections(path: Path, truth: Truth, policy: Policy = STRICT) -> Detections:
    """Reads shapes with a score as detections.

    Raises `DataError` for shapes without a score and as `read_truth`.
    """
    return _read(path).detections(truth, policy)


def _read(path: Path) -> Boxes:
    boxes = Boxes(path, "xyxy")
    file_of: dict[str, Path] = {}
    fix = "give the folder with LabelMe's files"
    for file in boxes.json_files(path, fix) if path.is_dir() else [path]:
        page = typed_json.decoded(file, _File, FORM)
        name = _name(page, file)
        other = file_of.setdefault(image_names.stem(name), file)
        if other != file:
            what = f"imagePath {name!r:.200} is that of {shown(other)} too"
            raise DataError(shown(file), what, "remove one, or correct its imagePath")
        boxes.add_image(name, f"{shown(file)}: imagePath", page.image_width, page.image_height)
        for i, shape in enumerate(page.shapes):
            _add(boxes, shape, f"{shown(file)}: shapes[{i}]")
    return boxes


def _add(boxes: Boxes, shape: _Shape, where: str) -> None:
    kind = shape.shape_type or ("rectangle" if len(shape.points) == 2 else "polygon")
    if kind in OTHERS:
        boxes.count("shape-without-box", "shapes are points or lines and are ignored")
        return
    if kind in AROUND:
        text = "shapes are polygons, masks or circles: the boxes around them are used"
        boxes.count("shape-around", text)
    score = math.nan if shape.score is None else shape.score
    boxes.add(shape.label, _box(shape, kind, where), where, score, shape.flags)


def _name(page: _File, file: Path) -> str:
    """Returns the name of a file's image: the last part of imagePath, else that of the file."""
    last = (page.image_path or "").replace("\\", "/").rpartition("/")[2]
    return last or shown(file.with_suffix("").name)


def _box(shape: _Shape, kind: str, where: str) -> Corners:
    """Returns left, top, right and bottom of a shape."""
    if not shape.label.strip():
        raise DataError(f"{where}.label", "empty", "give every shape a label")
    if kind not in ("rectangle", *AROUND):
        fix = f"the types are rectangle, {', '.join((*AROUND, *OTHERS))}"
        raise DataError(f"{where}.shape_type", f"{kind!r:.60} is not known", fix)
    count = len(shape.points)
    least = 3 if kind == "polygon" else 2
    corners = kind == "rectangle" and count == 4  # of X-AnyLabeling
    if count < least or (kind != "polygon" and count != least and not corners):
        needed = "at least 3 points" if kind == "polygon" else "2 points"
        what = f"{len(shape.points)} points, a {kind} has {needed}"
        raise DataError(f"{where}.points", what, "draw the shape again or remove it")
    x, y = zip(*shape.points, strict=True)
    if kind == "circle":
        radius = math.hypot(x[1] - x[0], y[1] - y[0])
        return x[0] - radius, y[0] - radius, x[0] + radius, y[0] + radius
    return min(x), min(y), max(x), max(y)
