"""Reads Supervisely projects: ``<dataset>/ann/<image>.json`` and ``meta.json``.

A rectangle has two corners in pixels from 0. Polygons are read as the boxes around them; other
shapes have no box. Notes count both. Tags of an object are flags or numbers by name; a tag such as
``confidence`` makes it a detection.

Source: Supervisely's documentation of its JSON annotation format.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from detmap.annotation_tools import collected_boxes, looks, typed_json
from detmap.annotation_tools.collected_boxes import Boxes
from detmap.core.adapters.joining.unknown_policy import STRICT, Policy
from detmap.core.base.open_files import shown
from detmap.core.tables import Detections, Truth
from detmap.errors import DataError

META = "meta.json"
FORM = "an annotation has size (height, width) and objects, each with classTitle and points"
META_FORM = "classes is a list of classes, each with title"
SCORE = ("confidence", "score", "conf", "probability", "prob")
BOXES = ("rectangle", "polygon")


class _Size(msgspec.Struct, gc=False):
    width: float
    height: float


class _Tag(msgspec.Struct, gc=False):
    name: str
    value: Any = None


class _Points(msgspec.Struct, gc=False):
    exterior: list[tuple[float, float]] = []


class _Object(msgspec.Struct, gc=False, rename="camel"):
    class_title: str
    points: _Points = msgspec.field(default_factory=_Points)
    geometry_type: str = "rectangle"
    tags: list[_Tag] = []


class _File(msgspec.Struct, gc=False):
    size: _Size
    objects: list[_Object]


class _Class(msgspec.Struct, gc=False):
    title: str
    shape: str = "any"


class _Meta(msgspec.Struct, gc=False):
    classes: list[_Class]


def read_truth(path: Path, roles: Sequence[str] = (), attributes: Sequence[str] = ()) -> Truth:
    """Reads the objects of a project, a dataset or a folder of annotations; see `Boxes.truth`."""
    meta = next((each / META for each in (path, path / "..") if (each / META).is_file()), None)
    declared = [] if meta is None else typed_json.decoded(meta, _Meta, META_FORM).classes
    names = [each.title for each in declared if each.shape in ("any", *BOXES)]
    return _read(path).truth(names, roles=roles, attributes=attributes)


def read_detections(path: Path, truth: Truth, policy: Policy = STRICT) -> Detections:
    """Reads objects with a tag such as ``confidence`` as detections."""
    return _read(path).detections(truth, policy)


def _read(path: Path) -> Boxes:
    boxes = Boxes(path, "xyxy")
    folders = looks.supervisely_folders(path)
    if not folders:
        fix = "give the project, a dataset, or its folder ann"
        raise DataError(shown(path), f"no folder {looks.SUPERVISELY}", fix)
    for folder in folders:
        own = folder.parent
        inside = own.name if own in (path, path.parent) else own.relative_to(path).as_posix()
        prefix = f"{inside}/" if len(folders) > 1 else ""
        for file in boxes.json_files(folder):
            content = typed_json.decoded(file, _File, FORM)
            size = content.size
            name = prefix + file.name[: -len(collected_boxes.JSON)]
            boxes.add_image(name, shown(file), size.width, size.height)
            for i, record in enumerate(content.objects):
                _add(boxes, record, f"{shown(file)}: objects[{i}]")
    return boxes


def _add(boxes: Boxes, record: _Object, where: str) -> None:
    kind = record.geometry_type
    if kind not in BOXES:
        boxes.count("shape-without-box", f"objects are of geometry {kind:.40} and are ignored")
        return
    exterior = record.points.exterior
    if kind == "rectangle" and len(exterior) != 2:
        what = f"{len(exterior)} points, a rectangle has 2"
        raise DataError(f"{where}.points.exterior", what, "write two opposite corners")
    if kind == "polygon":
        boxes.count("shape-around", "objects are polygons: the boxes around them are used")
    box = collected_boxes.around(exterior, f"{where}.points.exterior")
    values = {tag.name: True if tag.value is None else tag.value for tag in record.tags}
    boxes.add(record.class_title, box, where, _score(record.tags, where), values)


def _score(tags: Sequence[_Tag], where: str) -> float | None:
    for i, tag in enumerate(tags):
        if tag.name.strip().lower() in SCORE:
            if isinstance(tag.value, bool) or not isinstance(tag.value, int | float):
                what = f"{tag.value!r:.60} is not a number"
                raise DataError(f"{where}.tags[{i}].value", what, "write the score")
            return float(tag.value)
    return None
