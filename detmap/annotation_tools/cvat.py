"""Reads "CVAT for images 1.1": an XML file with one ``image`` element an image.

``box`` elements have the sides xtl, ytl, xbr and ybr in continuous pixels from 0. ``occluded``
becomes the role of this name, which no protocol ignores by itself. Rotated boxes (degrees clockwise
about the center), polygons, masks and ellipses are read as the upright boxes around them. Points,
lines, cuboids, skeletons and tags have no box. Notes count all of them.

Source: cvat-ai/cvat, cvat/apps/dataset_manager/formats/cvat.py.
"""

import io
import math
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

from detmap.annotation_tools import collected_boxes, looks
from detmap.annotation_tools.collected_boxes import Boxes, Corners
from detmap.core.adapters import text_fields
from detmap.core.base import open_files
from detmap.core.base.open_files import shown
from detmap.core.tables import Truth
from detmap.errors import DataError, few

PARSED = 4  # bytes of memory that a byte of the file takes: images are parsed one by one
SIDES = {
    "box": ("xtl", "ytl", "xbr", "ybr"),
    "mask": ("left", "top", "width", "height"),
    "ellipse": ("cx", "cy", "rx", "ry"),
}
SHAPES = (*SIDES, "polygon")
LABEL_TYPES = ("any", "rectangle", *SHAPES)
HOLDERS = ("image", "track")
OTHERS = ("points", "polyline", "cuboid", "skeleton", "tag")
NOTES = {
    "element-unknown": "elements are unknown here and are ignored: {names}",
    "shape-around": "objects are polygons, masks or ellipses: the boxes around them are used",
    "box-rotated": "objects are rotated: the upright boxes around them are used",
    "shape-without-box": "annotations have no box and are ignored: {names}",
    "box-left-out": "boxes are marked outside: ignored",
}
FIX = "export the task again as CVAT for images 1.1"
VIDEO = "export it as CVAT for images 1.1 or COCO 1.0: this is CVAT for video"


def read_truth(path: Path, roles: Sequence[str] = (), attributes: Sequence[str] = ()) -> Truth:
    """Reads the annotations of a task, a job or a project.

    Parameters
    ----------
    path : the file, or the folder that holds annotations.xml
    roles, attributes : names of CVAT attributes to read

    Raises `DataError` for invalid XML, numbers and sizes, and for the form of videos.
    """
    file = looks.file_in(path, looks.CVAT)
    page = _Page(file)
    for node in _nodes(file):
        page.add(node)
    files, source = page.boxes.files, page.boxes.source
    if not files:
        raise DataError(source, "no image elements", FIX)
    unknown = page.boxes.counts.get(("element-unknown", NOTES["element-unknown"]))
    if unknown and not page.boxes.boxes:
        raise DataError(source, f"no boxes, but unknown elements: {few(unknown)}", FIX)
    _refuse_repeated(file, files)
    flags = {"occluded": page.occluded}
    return page.boxes.truth(page.labels, roles=roles, attributes=attributes, flags=flags)


def _refuse_repeated(file: Path, names: Sequence[str]) -> None:
    """Raises `DataError` for an image that occurs twice, with its lines if they are plain text."""
    name, count = Counter(names).most_common(1)[0]
    if count > 1:
        word = f'name="{escape(name)}"'.encode()
        lines = open_files.read_bytes(file).split(b"\n")
        found = [i for i, line in enumerate(lines, 1) if b"<image" in line and word in line]
        at = f" (lines {few(found)})" if len(found) == count else ""
        where = f"{shown(file)}: image {name}"
        raise DataError(where, f"occurs {count} times{at}", "remove or rename the others")


class _Page:
    """The boxes of a file, with declared labels, and the flag of each box."""

    def __init__(self, file: Path) -> None:
        self.boxes = Boxes(file, "xyxy", NOTES)
        self.labels: list[str] = []
        self.occluded: list[bool] = []

    def add(self, node: ElementTree.Element) -> None:
        """Adds a label or an image, counts unknown elements, and refuses a track."""
        source = self.boxes.source
        if node.tag == "track":
            raise DataError(f"{source}: track {node.get('id', '')}", "a video track", VIDEO)
        if node.tag == "label":
            kind = (node.findtext("type") or "any").strip()
            if kind in LABEL_TYPES and node.find("parent") is None:  # else of tags, of skeletons
                self.labels += [name for each in node.findall("name") if (name := _text(each))]
            return
        if node.tag != "image":
            self.boxes.count("element-unknown", name=node.tag)
            return
        name = node.get("name", "").replace("\\", "/").strip()
        where = f"{source}: image {name or node.get('id', '')}"
        if not name:
            raise DataError(where, "no name", FIX)
        given = [(side, node.get(side)) for side in ("width", "height")]
        sizes = [None if word is None else _number(where, side, word) for side, word in given]
        self.boxes.add_image(name, where, *sizes)
        seen: Counter[str] = Counter()
        for shape in node:
            if shape.tag in SHAPES:
                self._add_shape(shape, f"{where}, {shape.tag}[{seen[shape.tag]}]")
                seen[shape.tag] += 1
            elif shape.tag in OTHERS:
                self.boxes.count("shape-without-box", name=shape.tag)
            else:
                self.boxes.count("element-unknown", name=shape.tag)

    def _add_shape(self, shape: ElementTree.Element, where: str) -> None:
        if shape.get("outside") == "1":
            self.boxes.count("box-left-out")
            return
        label = shape.get("label", "").strip()
        if not label:
            raise DataError(f"{where}, label", "missing", "every box names its class")
        values = {each.get("name", ""): _text(each) for each in shape.findall("attribute")}
        self.boxes.add(label, _box(self.boxes, shape, where), where, values=values)
        self.occluded.append(shape.get("occluded") == "1")


def _box(boxes: Boxes, shape: ElementTree.Element, where: str) -> Corners:
    """Returns left, top, right and bottom of a shape."""
    if shape.tag != "box":
        boxes.count("shape-around")
    if shape.tag == "polygon":
        return _around_points(shape.get("points", ""), where)
    a, b, c, d = (_number(where, side, shape.get(side)) for side in SIDES[shape.tag])
    if shape.tag == "mask":
        return a, b, a + c, b + d
    degrees = _number(where, "rotation", shape.get("rotation", "0"))
    if degrees != 0:
        boxes.count("box-rotated")
    cos, sin = abs(math.cos(math.radians(degrees))), abs(math.sin(math.radians(degrees)))
    if shape.tag == "ellipse":
        wide, high = math.hypot(c * cos, d * sin), math.hypot(c * sin, d * cos)
        return a - wide, b - high, a + wide, b + high
    if degrees == 0:
        return a, b, c, d
    x, y, half_x, half_y = (a + c) / 2, (b + d) / 2, (c - a) / 2, (d - b) / 2
    wide, high = half_x * cos + half_y * sin, half_x * sin + half_y * cos
    return x - wide, y - high, x + wide, y + high


def _around_points(points: str, where: str) -> Corners:
    pairs = [each.split(",") for each in points.split(";")]
    if any(len(pair) != 2 for pair in pairs):
        what = f"{text_fields.short(points)} are not points"
        raise DataError(f"{where}, points", what, "write x,y;x,y;x,y")
    numbers = [[_number(where, "points", word) for word in pair] for pair in pairs]
    return collected_boxes.around(numbers, where, least=1)


def _number(where: str, name: str, word: str | None) -> float:
    number = None if word is None else text_fields.number(word.strip(text_fields.XML_SPACE))
    if number is None or not abs(number) <= 1e9:
        what = "missing" if word is None else f"{text_fields.short(word)} is not a number"
        raise DataError(f"{where}, {name}", what, "write pixels as plain numbers")
    return number


def _text(node: ElementTree.Element) -> str:
    return (node.text or "").strip(text_fields.XML_SPACE)


def _nodes(file: Path) -> Iterator[ElementTree.Element]:
    """Yields labels, images, also nested ones, tracks, and shapes outside of them, one by one.

    Raises `DataError` for invalid XML and other documents.
    """
    data = open_files.read_bytes(file, times=PARSED)
    if b"<!ENTITY" in data or (b"\0" in data and b"<!ENTITY" in data.replace(b"\0", b"")):  # UTF-16
        what = "defines XML entities, which are not supported"
        raise DataError(shown(file), what, "write it without a DOCTYPE")
    parents: list[ElementTree.Element] = []
    try:
        for event, node in ElementTree.iterparse(io.BytesIO(data), ("start", "end")):
            if event == "start":
                parents.append(node)
                if len(parents) == 1 and node.tag != "annotations":
                    what = f"the top element is <{node.tag}>, not <annotations>"
                    raise DataError(shown(file), what, FIX)
                continue
            parents.pop()
            if node.tag in HOLDERS:
                yield node
                parents[-1].clear()  # it keeps all that was read
                continue
            above = {each.tag for each in parents}
            is_label = node.tag == "label" and "meta" in above
            is_outside = node.tag.lower() in ("image", *SHAPES) and above.isdisjoint(HOLDERS)
            if is_label or is_outside:
                yield node
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        raise DataError(shown(file), f"not XML: {error}", "write or copy the file again") from None
