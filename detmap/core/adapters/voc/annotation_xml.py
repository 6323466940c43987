"""The reference reader of VOC annotation files: reads all valid files and reports all errors.

Source: the annotation format of the VOC devkit; XML 1.0. A repeated element with equal content is
counted; with different content it is an error. White space around text is that of XML (section
2.3).
"""

import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np

from detmap.core.adapters import text_fields
from detmap.core.adapters.joining import join
from detmap.core.base import open_files
from detmap.errors import DataError

Value = TypeVar("Value")
Node = ElementTree.Element
Box = tuple[float, float, float, float]

LARGEST = 1 << 26
"""Bytes; the annotation of one image has some thousand."""
SIDES = ("xmin", "ymin", "xmax", "ymax")


class Object(NamedTuple):
    """One ``object``; difficult is None if the flag is missing."""

    name: str
    box: Box
    difficult: bool | None


class Page(NamedTuple):
    """One annotation file; sides are NaN if missing, repeats counts repeated elements; owner is
    the tool that wrote it, if known; written is the text ``source.annotation``.
    """

    folder: str
    width: float
    height: float
    objects: list[Object]
    repeats: int
    owner: str = ""
    written: str = ""


def read_page(file: Path) -> Page:
    """Reads an annotation file. Raises `DataError` for invalid XML and missing, wrong or repeated
    elements.
    """
    root = _root(file)
    if root.tag != "annotation":
        raise DataError(
            str(file), f"the top element is <{root.tag}>, not <annotation>", "give VOC annotations"
        )
    page = _Reader(file)
    width, height = page.one(root, "size", "", page.size) or (np.nan, np.nan)
    objects = [page.object(f"object[{i}]", node) for i, node in enumerate(root.findall("object"))]
    tool, written = (_content(root, place) for place in ("owner/name", "source/annotation"))
    return Page(_content(root, "folder"), width, height, objects, page.repeats, tool, written)


def _root(file: Path) -> Node:
    try:
        data = open_files.read_bytes(file, most=LARGEST)
    except open_files.MissingFileError:
        raise DataError(
            str(file),
            "missing, but in the list of the split",
            "add the file or remove it from the list",
        ) from None
    if b"<!ENTITY" in data or (b"\0" in data and b"<!ENTITY" in data.replace(b"\0", b"")):  # UTF-16
        raise DataError(
            str(file), "defines XML entities, which are not supported", "write it without a DOCTYPE"
        )
    try:
        return ElementTree.fromstring(data)
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        raise DataError(str(file), f"not XML: {error}", "write or copy the file again") from None


class _Reader:
    """The elements of one file, and the number of repeated ones."""

    def __init__(self, file: Path) -> None:
        self.file, self.repeats = file, 0

    def one(
        self, parent: Node, tag: str, where: str, read: Callable[[Node, str], Value]
    ) -> Value | None:
        """Returns the child of that name, converted by `read`; None if missing."""
        place = f"{where}.{tag}" if where else tag
        values = [read(node, place) for node in parent.findall(tag)]
        for value in values[1:]:
            if str(value) != str(values[0]):
                raise DataError(
                    f"{self.file}: {place}",
                    f"occurs twice: {_spelled(values[0])} and {_spelled(value)}",
                    "keep the right one",
                )
            self.repeats += 1
        return values[0] if values else None

    def size(self, node: Node, where: str) -> tuple[float, float]:
        sides = (self.one(node, side, where, self.number) for side in ("width", "height"))
        width, height = (np.nan if side is None else side for side in sides)
        return width, height

    def object(self, where: str, node: Node) -> Object:
        name = self.one(node, "name", where, self.word)
        if not name:
            raise DataError(f"{self.file}: {where}.name", "missing", "every object names its class")
        box = self.one(node, "bndbox", where, self.box)
        if box is None:
            raise DataError(
                f"{self.file}: {where}.bndbox",
                "missing",
                "every object has a bndbox with xmin, ymin, xmax, ymax",
            )
        return Object(name, box, self.one(node, "difficult", where, self.flag))

    def box(self, node: Node, where: str) -> Box:
        corners = [self.one(node, side, where, self.number) for side in SIDES]
        for side, corner in zip(SIDES, corners, strict=True):
            if corner is None:
                raise DataError(
                    f"{self.file}: {where}.{side}",
                    "missing",
                    "a bndbox has xmin, ymin, xmax and ymax",
                )
        x1, y1, x2, y2 = corners
        if x2 - x1 + 1 < 0 or y2 - y1 + 1 < 0:  # type: ignore[operator]
            raise DataError(
                f"{self.file}: {where}",
                f"{x1:g} {y1:g} {x2:g} {y2:g} has a negative width or height",
                "xmax and ymax are the last pixel, not less than xmin and ymin",
            )
        return x1, y1, x2, y2  # type: ignore[return-value]

    def word(self, node: Node, where: str) -> str:
        """Returns the text of an element without children."""
        if len(node):
            raise DataError(
                f"{self.file}: {where}",
                f"contains an element {text_fields.short(node[0].tag)} instead of text",
                "write the text alone",
            )
        return _stripped(node)

    def flag(self, node: Node, where: str) -> bool | None:
        flag = self.word(node, where)
        if flag not in ("", "0", "1"):
            raise DataError(
                f"{self.file}: {where}",
                f"{text_fields.short(flag)} is neither 0 nor 1",
                "write 0 or 1, or leave it out",
            )
        return None if flag == "" else flag == "1"

    def number(self, node: Node, where: str) -> float | None:
        word = self.word(node, where)
        if not word:
            return None
        number = text_fields.number(word)
        if number is None or not abs(number) <= join.MAX_PIXEL:
            raise DataError(
                f"{self.file}: {where}",
                text_fields.not_finite(word),
                "write pixels as plain numbers",
            )
        return number


def _stripped(node: Node) -> str:
    return (node.text or "").strip(text_fields.XML_SPACE)


def _content(parent: Node, tag: str) -> str:
    node = parent.find(tag)
    return "" if node is None else _stripped(node)


def _spelled(value: object) -> str:
    if isinstance(value, tuple):
        return " ".join(map(_spelled, value))
    return f"{value:g}" if isinstance(value, float) else repr(value)
