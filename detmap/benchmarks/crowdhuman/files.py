"""Reads CrowdHuman's odgt: one JSON record per line, of one image.

A ground-truth record has ``ID`` and ``gtboxes`` with ``tag``, ``fbox`` (x, y, width, height) and
``extra``; a result has ``ID``, ``width``, ``height`` and ``dtboxes`` with ``box`` and ``score``.
Images are numbered by their line, because the order of tied scores is that of the lines; their
file stem is the ``ID``.

Source: CrowdDet lib/evaluate/APMRToolkits/database.py and image.py (load_gt_boxes,
load_det_boxes).
"""

import math
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from detmap.benchmarks.shared import result_lines
from detmap.core.adapters.joining import join
from detmap.core.adapters.joining.unknown_policy import STRICT, Policy
from detmap.core.base import arguments, json_faults, open_files, unique_keys
from detmap.core.base.open_files import shown
from detmap.core.tables import MAX_PIXEL, Categories, Detections, Images, Truth
from detmap.errors import DataError

SIDES = ("x", "y", "width", "height")


def read_truth(path: Path) -> Truth:
    """Reads an annotation file. Raises `DataError` for an invalid record."""
    names: dict[str, int] = {}
    sizes, rows = [], []
    for where, record in _records(path):
        image = _new(names, record, where)
        sizes.append(_size(record, where))
        for place, box in _boxes(record, "gtboxes", where):
            rows.append((image, *_box(box, "fbox", place), _ignored(box, place)))
    if not names:
        raise DataError(shown(path), "no records", "give CrowdHuman's annotation file")
    table = np.array(rows, dtype=np.float64).reshape(-1, 6)
    boxes = np.ascontiguousarray(table[:, 1:5])
    width, height = np.array(sizes, dtype=np.float64).T.copy()
    return Truth(
        Images(np.arange(1, len(names) + 1), tuple(names), width, height),
        Categories(np.array([1]), ("person",)),
        image=table[:, 0].astype(np.int32),
        label=np.zeros(len(table), dtype=np.int32),
        boxes=boxes,
        roles={"ignore": table[:, 5] != 0},
        attributes={"area": boxes[:, 2] * boxes[:, 3]},
        box_format="xywh",
        family="coco",
        source=shown(path),
    )


def read_detections(path: Path, truth: Truth, policy: Policy = STRICT) -> Detections:
    """Reads a result file; its image sizes complete those of the ground truth."""
    known = {name: place for place, name in enumerate(truth.images.stems)}
    width, height = truth.images.width.copy(), truth.images.height.copy()
    names: dict[str, int] = {}
    rows, places, images = [], [], []
    for where, record in _records(path):
        _new(names, record, where)
        image = known.get(record["ID"], -1)
        if image >= 0:
            size = _size(record, where)
            if np.isnan(width[image]) or np.isnan(height[image]):
                width[image], height[image] = size
        for place, box in _boxes(record, "dtboxes", where):
            score = _number(box.get("score"), f"{place}.score", sys.float_info.max)
            rows.append((image, *_box(box, "box", place), score))
            places.append(place)
            images.append(record["ID"])
    table = np.array(rows, dtype=np.float64).reshape(-1, 6)
    persons, label = result_lines.single_class(truth, "person", len(table), shown(path), policy)
    missing = len(known.keys() - names.keys())
    text = "images have no record, which stops the reference: they have no detections"
    detections = join.joined(
        truth,
        table[:, 0].astype(np.int32),
        label,
        np.ascontiguousarray(table[:, 1:5]),
        np.ascontiguousarray(table[:, 5]),
        box_format="xywh",
        origin=join.Origin(shown(path), places.__getitem__, images, persons),
        policy=policy,
        notes=result_lines.counted(shown(path), ("image-without-results", text, missing)),
    )
    return replace(detections, images=replace(truth.images, width=width, height=height))


def _records(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The place and the record of each line that is not blank."""
    data = open_files.read_bytes(path, times=8).removeprefix(b"\xef\xbb\xbf")
    lines = data.rstrip().split(b"\n")
    for number, line in enumerate(lines, start=1):
        if line.strip():
            where = f"{shown(path)}: line {number}"
            try:
                record = open_files.parse_json(line, where)
                unique_keys.require(line, where)
            except ValueError as error:
                fault = f"not JSON: {error}", "write one record per line"
                if number == len(lines) and json_faults.last_line(line):
                    fault = "truncated: it ends in the middle of a record", json_faults.WRITE_AGAIN
                raise DataError(where, *fault) from None
            if not isinstance(record, dict):
                raise DataError(where, "not a JSON object", "write one record per line")
            yield where, record


def _new(names: dict[str, int], record: dict[str, Any], where: str) -> int:
    """Enters the record's ID and returns its position."""
    name = record.get("ID")
    if not isinstance(name, str) or not name or name != name.encode(errors="replace").decode():
        raise DataError(f"{where}, ID", f"{name!r:.60} is not a name", 'write "ID": "..."')
    if name in names:
        raise DataError(f"{where}, ID", f"{name!r:.60} occurs twice", "write one record per image")
    return names.setdefault(name, len(names))


def _size(record: dict[str, Any], where: str) -> tuple[float, float]:
    """Width and height; NaN where they are not given."""
    width, height = (
        math.nan if record.get(key) is None else _number(record[key], f"{where}, {key}", MAX_PIXEL)
        for key in ("width", "height")
    )
    if width < 0 or height < 0:
        raise DataError(where, f"image size {width:g} x {height:g}", "give the size in pixels")
    return width, height


def _boxes(record: dict[str, Any], key: str, where: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The place and the content of each box."""
    if not isinstance(record.get(key), list):
        other = "gtboxes" if key == "dtboxes" else "dtboxes"
        fix = "the files are swapped" if other in record else f'write "{key}": [...]'
        raise DataError(where, f"no list {key}", fix)
    for i, box in enumerate(record[key]):
        place = f"{where}, {key}[{i}]"
        if not isinstance(box, dict):
            raise DataError(place, f"{box!r:.60} is not a JSON object", "write a record per box")
        yield place, box


def _box(box: dict[str, Any], key: str, place: str) -> list[float]:
    sides = box.get(key)
    if not isinstance(sides, list) or len(sides) != 4:
        raise DataError(f"{place}.{key}", f"{sides!r:.60}", "write x, y, width and height")
    numbers = [_number(each, f"{place}.{key}", MAX_PIXEL) for each in sides]
    if numbers[2] < 0 or numbers[3] < 0:
        raise DataError(f"{place}.{key}", f"{sides} has a negative side", "fix the box")
    return numbers


def _number(value: Any, place: str, most: float) -> float:
    return arguments.number(place, value, "write a number", most, " is not a finite number")


def _ignored(box: dict[str, Any], place: str) -> bool:
    """Whether the object is ignored: another tag than person, or ``extra.ignore``."""
    tag, extra = box.get("tag"), box.get("extra", {})
    if not isinstance(tag, str):
        raise DataError(f"{place}.tag", f"{tag!r:.60} is not a name", 'write "tag": "person"')
    if not isinstance(extra, dict):
        raise DataError(f"{place}.extra", f"{extra!r:.60} is not a JSON object", "write {}")
    ignored = arguments.flag(extra.get("ignore", 0))
    if ignored is None:
        what = f"{extra['ignore']!r:.60} is not a flag"
        raise DataError(f"{place}.extra.ignore", what, arguments.FLAG_FIX)
    return tag != "person" or ignored
