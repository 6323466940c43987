"""Reads the JSON of the VGG Image Annotator (VIA 1 and 2): an export, or a project.

A rectangle is left, top, width and height in pixels from 0. Polygons, circles and ellipses are read
as the boxes around them; points and lines have no box. Notes count both. The class is the value of
a region attribute, whose name the user chose: the only one, or one of `CLASS`. Sizes of images are
not in the file.

Source: VIA 2.0.12, via.js (via_regions, _via_pack_project).
"""

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from detmap.annotation_tools import collected_boxes, typed_json
from detmap.annotation_tools.collected_boxes import Boxes, Corners
from detmap.core.base import arguments
from detmap.core.base.open_files import shown
from detmap.core.tables import Truth
from detmap.errors import DataError, few

CLASS = ("class", "label", "category", "type", "object", "name")
"""Names of the attribute with the class, in order, if there are several."""
FORM = "an image has filename and regions, each with shape_attributes and region_attributes"
PROJECT = "_via_img_metadata"
AROUND, OTHERS = ("circle", "ellipse", "polygon"), ("point", "polyline", "line")


class _Region(msgspec.Struct, gc=False):
    shape_attributes: dict[str, Any]
    region_attributes: dict[str, Any] = {}


class _Image(msgspec.Struct, gc=False):
    filename: str
    regions: list[_Region] | dict[str, _Region]


class _Project(msgspec.Struct, gc=False):
    metadata: dict[str, msgspec.Raw] = msgspec.field(name=PROJECT)


def read_truth(path: Path, image_sizes: Path | None = None) -> Truth:
    """Reads the objects of an export or project; see `Boxes.truth`."""
    images = _images(path)
    boxes = Boxes(path, "xyxy")
    key = _class_key(images, shown(path))
    for where, image in images.items():
        boxes.add_image(_file_name(image.filename), f"{where}.filename")
        for place, region in _regions(image, where):
            box = _box(boxes, region.shape_attributes, f"{place}.shape_attributes")
            if box is not None:
                label = _class(region.region_attributes.get(key), f"{place}.region_attributes")
                boxes.add(label, box, place)
    return boxes.truth(sizes_file=image_sizes, folders=[path.absolute().parent])


def _images(path: Path) -> dict[str, _Image]:
    """Returns the records of images by their places."""
    given = typed_json.decoded(path, dict[str, msgspec.Raw], FORM)
    where = f"{shown(path)}: "
    if PROJECT in given:
        given = typed_json.decoded(path, _Project, FORM).metadata
        where += PROJECT
    return {place: image for _, place, image in collected_boxes.entries(given, _Image, where, FORM)}


def _file_name(name: str) -> str:
    """Returns the last part of a path or URL."""
    last = name.replace("\\", "/").rstrip("/").rpartition("/")[2]
    return last.partition("?")[0] if "://" in name else name


def _regions(image: _Image, where: str) -> Iterator[tuple[str, _Region]]:
    regions = image.regions
    numbered = regions.items() if isinstance(regions, dict) else enumerate(regions)
    for key, region in numbered:
        yield f"{where}.regions[{key}]", region


# --- classes --------------------------------------------------------------------------------------


def _class_key(images: Mapping[str, _Image], source: str) -> str:
    """Returns the attribute that has the class. Raises `DataError` if it is not clear."""
    keys: dict[str, None] = {}
    for image in images.values():
        for _, region in _regions(image, ""):
            keys |= dict.fromkeys(region.region_attributes)
    if len(keys) > 1:
        named = [key for name in CLASS for key in keys if key.strip().lower() == name]
        if not named:
            raise DataError(
                f"{source}: region_attributes",
                f"several attributes may be the class: {few(map(repr, keys))}",
                f"name that of the class one of: {', '.join(CLASS)}",
            )
        return named[0]
    return next(iter(keys), "")


def _class(value: Any, where: str) -> str:
    """Returns the class of an attribute: a text, or the only checked box."""
    if isinstance(value, dict):
        checked = [key for key, is_checked in value.items() if is_checked is True]
        value = checked[0] if len(checked) == 1 else None
    if not isinstance(value, str) or not value.strip():
        raise DataError(where, "no class, or several", "give every region one class")
    return value.strip()


# --- shapes ---------------------------------------------------------------------------------------


def _box(boxes: Boxes, shape: Mapping[str, Any], where: str) -> Corners | None:
    """Returns left, top, right and bottom of a shape; None if it has no box."""
    kind = shape.get("name")
    if kind in OTHERS:
        boxes.count("shape-without-box", "regions are points or lines and are ignored")
        return None
    if kind == "rect":
        left, top, width, height = _numbers(shape, ("x", "y", "width", "height"), where)
        if width < 0 or height < 0:
            raise DataError(where, "a negative width or height", "draw the region again")
        return left, top, left + width, top + height
    if kind not in AROUND:
        fix = f"the shapes are rect, {', '.join((*AROUND, *OTHERS))}"
        raise DataError(f"{where}.name", f"{kind!r:.60} is not known", fix)
    boxes.count("shape-around", "regions are polygons or circles: the boxes around them are used")
    if kind == "polygon":
        sides = [_list(shape, name, where) for name in ("all_points_x", "all_points_y")]
        if len(sides[0]) != len(sides[1]):
            raise DataError(where, "all_points_x and _y differ in length", "draw it again")
        return collected_boxes.around(list(zip(*sides, strict=True)), where, least=3)
    radii = ("r", "r") if kind == "circle" else ("rx", "ry")
    x, y, a, b = _numbers(shape, ("cx", "cy", *radii), where)
    angle = _numbers(shape, ("theta",), where)[0] if "theta" in shape else 0.0
    cos, sin = math.cos(angle), math.sin(angle)
    wide, high = (
        (a, b) if angle == 0 else (math.hypot(a * cos, b * sin), math.hypot(a * sin, b * cos))
    )
    return x - wide, y - high, x + wide, y + high


def _numbers(shape: Mapping[str, Any], names: tuple[str, ...], where: str) -> list[float]:
    return [_number(shape.get(name), f"{where}.{name}") for name in names]


def _list(shape: Mapping[str, Any], name: str, where: str) -> list[float]:
    values = shape.get(name)
    if not isinstance(values, list):
        raise DataError(f"{where}.{name}", "not a list of numbers", "draw the region again")
    return [_number(value, f"{where}.{name}[{i}]") for i, value in enumerate(values)]


def _number(value: Any, where: str) -> float:
    return arguments.number(where, value, "write a number", 1e9, " is not a number of pixels")
