"""Every structural error of a COCO instances file at once, with its count and first place: the
ordinary reader stops at the first.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from detmap.core.results.findings import Finding

LISTS = ("images", "annotations", "categories")
EXTREME = 50.0  # long side over short side of a box


@dataclass
class Errors:
    """Counts and first places of errors by what is wrong."""

    name: str
    found: dict[tuple[str, str], tuple[int, str]] = field(default_factory=dict)

    def add(self, finding: str, what: str, place: str) -> None:
        """Count an error."""
        count, first = self.found.get((finding, what), (0, place))
        self.found[finding, what] = count + 1, first

    def findings(self) -> Iterator[Finding]:
        """Yields a finding per kind of error."""
        for (finding, what), (count, first) in self.found.items():
            yield Finding(finding, f"{count:,} {what}; first: {self.name}: {first}")


def check(path: Path) -> list[Finding] | None:
    """Returns the errors of a file; None if it is no COCO instances file."""
    if path.is_dir():
        return None
    try:
        content: Any = msgspec.json.decode(path.read_bytes())
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None
    if not isinstance(content, dict) or not isinstance(content.get("annotations"), list):
        return None
    errors = Errors(path.name)
    sizes = _images(content.get("images"), errors)
    classes = _categories(content.get("categories"), errors)
    _annotations(content["annotations"], sizes, classes, errors)
    return list(errors.findings())


def _records(given: Any, kind: str, errors: Errors) -> Iterator[tuple[str, dict[str, Any]]]:
    """The records of a list with their places; counts what is no record, and repeated ids."""
    if not isinstance(given, list):
        errors.add("truth-structure", f"list {kind!r} is missing", kind)
        return
    seen = set()
    for i, record in enumerate(given):
        place = f"{kind}[{i}]"
        if not isinstance(record, dict):
            errors.add("truth-structure", f"{kind} are no records", place)
            continue
        number = record.get("id")
        if not isinstance(number, int | str):
            errors.add("truth-structure", f"{kind} have no id", place)
        elif number in seen:
            name = "truth-ids-twice" if kind == "annotations" else "truth-structure"
            more = ""
            if kind == "annotations":
                more = ": pycocotools reads the last one for each, and gives another number"
            errors.add(name, f"{kind} have the id of another one{more}", f"{place} (id {number})")
        seen.add(number)
        yield place, record


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _images(given: Any, errors: Errors) -> dict[Any, Any]:
    sizes: dict[Any, Any] = {}
    for place, image in _records(given, "images", errors):
        width, height = image.get("width"), image.get("height")
        size: Any = (width, height) if _is_number(width) and _is_number(height) else (0, 0)
        if not min(size) > 0:
            errors.add("truth-structure", "images have no width and height above 0", place)
        if not isinstance(image.get("file_name"), str):
            errors.add("truth-structure", "images have no file_name", place)
        sizes[image.get("id")] = size if min(size) > 0 else None
    return sizes


def _categories(given: Any, errors: Errors) -> set[Any]:
    ids, names = set(), set()
    for place, category in _records(given, "categories", errors):
        name = category.get("name")
        if not isinstance(name, str) or not name:
            errors.add("truth-structure", "categories have no name", place)
        elif name in names:
            errors.add("truth-structure", "categories have the name of another one", place)
        names.add(name)
        ids.add(category.get("id"))
    return ids


def _annotations(given: Any, sizes: dict[Any, Any], classes: set[Any], errors: Errors) -> None:
    for place, each in _records(given, "annotations", errors):
        image, category = each.get("image_id"), each.get("category_id")
        if image not in sizes:
            text = "annotations are on images that are not listed: they are dropped"
            errors.add("truth-unlisted", text, f"{place} (image_id {image!r:.40})")
        if category not in classes:
            text = "annotations have a category that is not listed: they are dropped"
            errors.add("truth-unlisted", text, f"{place} (category_id {category!r:.40})")
        _box(place, each.get("bbox"), sizes.get(image), errors, each)
        area = each.get("area")
        if area is not None and not (_is_number(area) and area >= 0):
            errors.add("truth-structure", "annotations have an area that is no number >= 0", place)
        if each.get("iscrowd", 0) not in (0, 1):
            text = "annotations have an iscrowd other than 0 and 1"
            errors.add("truth-structure", text, place)
        _polygons(place, each.get("segmentation"), errors)


def _box(place: str, box: Any, size: Any, errors: Errors, record: dict[str, Any]) -> None:
    if box is None and (record.get("segmentation") or record.get("keypoints")):
        return
    if not (isinstance(box, list) and len(box) == 4 and all(map(_is_number, box))):
        errors.add("truth-structure", "annotations have no bbox of four finite numbers", place)
        return
    x, y, width, height = box
    if min(width, height) < 0:
        text = "annotations have a bbox with a negative width or height"
        errors.add("truth-structure", text, place)
    elif min(width, height) == 0:
        errors.add("truth-empty-boxes", "annotations have a bbox without a size", place)
    elif max(width, height) > EXTREME * min(width, height):
        text = f"annotations have a bbox with sides more than {EXTREME:g} to 1"
        errors.add("truth-extreme-boxes", text, f"{place} {width:g} x {height:g}")
    elif size is not None and (x >= size[0] or y >= size[1] or x + width <= 0 or y + height <= 0):
        errors.add("truth-outside", "annotations lie outside of their image", place)


def _polygons(place: str, value: Any, errors: Errors) -> None:
    if not isinstance(value, list):
        return
    for ring in value:
        if not isinstance(ring, list) or len(ring) < 6 or len(ring) % 2:
            text = "annotations have a polygon of fewer than three points, or of an odd length"
            errors.add("truth-structure", text, place)
            return
