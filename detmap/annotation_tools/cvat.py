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
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import numpy as np

from detmap.annotation_tools import export_tables
from detmap.annotation_tools.export_tables import Export
from detmap.core.adapters import text_fields
from detmap.core.base import open_files
from detmap.core.base.open_files import shown
from detmap.core.base.sums import add_integers
from detmap.core.tables import Note, Truth
from detmap.core.tables.notes import listed_names
from detmap.errors import DataError, few

NAME = "annotations.xml"
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
FIX = "export the task again as CVAT for images 1.1"
VIDEO = "export it as CVAT for images 1.1 or COCO 1.0: this is CVAT for video"


def looks(path: Path) -> int:
    """See `detmap.core.adapters.format_rows.Looks`."""
    file = path / NAME if open_files.is_folder(path) else path
    if file.suffix.lower() != ".xml" or not open_files.is_file(file):
        return 0
    head = open_files.head(file, 1 << 12)
    return 3 * (b"<annotations" in head and b"<track" not in head)


def read_truth(path: Path, roles: Sequence[str] = (), attributes: Sequence[str] = ()) -> Truth:
    """Reads the annotations of a task, a job or a project.

    Parameters
    ----------
    path : the file, or the folder that holds annotations.xml
    roles, attributes : names of CVAT attributes to read

    Raises `DataError` for invalid XML, numbers and sizes, and for the form of videos.
    """
    file = path / NAME if path.is_dir() else path
    page = _Page(shown(file))
    for node in _nodes(file):
        page.add(node)
    files = page.files
    if not files:
        raise DataError(page.source, "no image elements", FIX)
    if page.unknown and not page.boxes:
        raise DataError(page.source, f"no boxes, but unknown elements: {few(page.unknown)}", FIX)
    _refuse_repeated(file, files)
    export = Export(
        page.source,
        files,
        export_tables.sides(files, page.width, page.height, page.source),
        page.image,
        page.classes,
        np.array(page.boxes, dtype=np.float64).reshape(-1, 4),
        "xyxy",
        page.places.__getitem__,
        page.notes(),
    )
    flags, numbers = export_tables.named_values(page.values, roles, attributes, export.place)
    flags["occluded"] = np.array(page.occluded, dtype=bool)
    return export.truth(page.labels, flags, numbers)


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
    """The content of a file by column; see `Export`."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.labels: list[str] = []
        self.files: list[str] = []
        self.width: list[float] = []
        self.height: list[float] = []
        self.image: list[int] = []
        self.classes: list[str] = []
        self.boxes: list[Sequence[float]] = []
        self.occluded: list[bool] = []
        self.values: list[Mapping[str, Any]] = []
        self.places: list[str] = []
        self.counts: Counter[str] = Counter()
        self.unknown: Counter[str] = Counter()

    def add(self, node: ElementTree.Element) -> None:
        """Adds a label or an image, counts unknown elements, and refuses a track."""
        if node.tag == "track":
            raise DataError(f"{self.source}: track {node.get('id', '')}", "a video track", VIDEO)
        if node.tag == "label":
            kind = (node.findtext("type") or "any").strip()
            if kind in LABEL_TYPES and node.find("parent") is None:  # else of tags, of skeletons
                self.labels += [name for each in node.findall("name") if (name := _text(each))]
            return
        if node.tag != "image":
            self.unknown[node.tag] += 1
            return
        name = node.get("name", "").replace("\\", "/").strip()
        where = f"{self.source}: image {name or node.get('id', '')}"
        if not name:
            raise DataError(where, "no name", FIX)
        for side, sizes in (("width", self.width), ("height", self.height)):
            given = node.get(side)
            sizes.append(np.nan if given is None else self._number(where, side, given))
        self.files.append(name)
        seen: Counter[str] = Counter()
        for shape in node:
            if shape.tag in SHAPES:
                self._add_shape(shape, f"{where}, {shape.tag}[{seen[shape.tag]}]")
                seen[shape.tag] += 1
            elif shape.tag in OTHERS:
                self.counts[shape.tag] += 1
            else:
                self.unknown[shape.tag] += 1

    def _add_shape(self, shape: ElementTree.Element, where: str) -> None:
        if shape.get("outside") == "1":
            self.counts["outside"] += 1
            return
        label = shape.get("label", "").strip()
        if not label:
            raise DataError(f"{where}, label", "missing", "every box names its class")
        self.image.append(len(self.files) - 1)
        self.classes.append(label)
        self.boxes.append(self._box(shape, where))
        self.occluded.append(shape.get("occluded") == "1")
        self.values.append({a.get("name", ""): _text(a) for a in shape.findall("attribute")})
        self.places.append(where)

    def _box(self, shape: ElementTree.Element, where: str) -> Sequence[float]:
        """Returns left, top, right and bottom of a shape."""
        if shape.tag != "box":
            self.counts["around"] += 1
        if shape.tag == "polygon":
            return self._around_points(shape.get("points", ""), where)
        a, b, c, d = (self._number(where, side, shape.get(side)) for side in SIDES[shape.tag])
        if shape.tag == "mask":
            return a, b, a + c, b + d
        degrees = self._number(where, "rotation", shape.get("rotation", "0"))
        self.counts["rotation"] += degrees != 0
        cos, sin = abs(math.cos(math.radians(degrees))), abs(math.sin(math.radians(degrees)))
        if shape.tag == "ellipse":
            wide, high = math.hypot(c * cos, d * sin), math.hypot(c * sin, d * cos)
            return a - wide, b - high, a + wide, b + high
        if degrees == 0:
            return a, b, c, d
        x, y, half_x, half_y = (a + c) / 2, (b + d) / 2, (c - a) / 2, (d - b) / 2
        wide, high = half_x * cos + half_y * sin, half_x * sin + half_y * cos
        return x - wide, y - high, x + wide, y + high

    def _around_points(self, points: str, where: str) -> Sequence[float]:
        pairs = [each.split(",") for each in points.split(";")]
        if any(len(pair) != 2 for pair in pairs):
            what = f"{text_fields.short(points)} are not points"
            raise DataError(f"{where}, points", what, "write x,y;x,y;x,y")
        x, y = zip(
            *([self._number(where, "points", x) for x in each] for each in pairs), strict=True
        )
        return min(x), min(y), max(x), max(y)

    def _number(self, where: str, name: str, word: str | None) -> float:
        number = None if word is None else text_fields.number(word.strip(text_fields.XML_SPACE))
        if number is None or not abs(number) <= 1e9:
            what = "missing" if word is None else f"{text_fields.short(word)} is not a number"
            raise DataError(f"{where}, {name}", what, "write pixels as plain numbers")
        return number

    def notes(self) -> tuple[Note, ...]:
        """Returns what was converted or left out."""
        others = [tag for tag in OTHERS if self.counts[tag]]
        around = "objects are polygons, masks or ellipses: the boxes around them are used"
        rotated = "objects are rotated: the upright boxes around them are used"
        left_out = "annotations have no box and are ignored: {names}"
        unknown = "elements are unknown here and are ignored: {names}"
        n_left_out = add_integers(self.counts[tag] for tag in others)
        rows: tuple[tuple[Any, ...], ...] = (
            ("element-unknown", unknown, self.unknown.total(), listed_names(self.unknown)),
            ("shape-around", around, self.counts["around"]),
            ("box-rotated", rotated, self.counts["rotation"]),
            ("shape-without-box", left_out, n_left_out, listed_names(others)),
            ("box-left-out", "boxes are marked outside: ignored", self.counts["outside"]),
        )
        return export_tables.notes(self.source, rows)


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
