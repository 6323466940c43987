"""Reads COCO JSON: instances files (truth) and results lists (detections).

The fast reader (`detmap.core.adapters.coco.scan_json`) reads large simple files. All others fall
back to the reference reader (`detmap.core.adapters.coco.decode`).
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from detmap.core.adapters.coco import (
    decode,
    json_lines,
    lvis,
    record_errors,
    scan_json,
    tool_results,
)
from detmap.core.adapters.coco.decode import Annotations, Boxes, Category, Image, Instances
from detmap.core.adapters.joining import join
from detmap.core.adapters.joining.unknown_policy import STRICT, Policy
from detmap.core.base.open_files import shown
from detmap.core.tables import Detections, Note, Scope, Truth
from detmap.core.tables.grouping import Positions
from detmap.errors import DataError


def read_truth(path: Path, boxes_are: Boxes = "required") -> Truth:
    """Reads an instances JSON file.

    Source: the COCO data format (cocodataset.org, "Data format", object detection) as pycocotools
    reads it. A missing iscrowd is 0 and a missing area is width times height; notes count both.
    LVIS files also have a scope and class groups (`detmap.core.adapters.coco.lvis`).
    """
    return truth_of(path, scan_instances(path) or decode_instances(path, boxes_are))


def truth_of(path: Path, file: Instances) -> Truth:
    """Returns the table of an instances file."""
    rows = file.annotations
    area = np.where(np.isnan(rows.area), rows.boxes[:, 2] * rows.boxes[:, 3], rows.area)
    known = (rows.image >= 0) & (rows.label >= 0)
    categories = replace(
        file.categories, groups=lvis.groups(file.category_records, file.categories)
    )
    scope = lvis.scope(file.image_records, file.images, file.categories)
    roles = {"crowd": rows.iscrowd[known] > 0}
    if rows.ignore is not None:
        roles["ignore"] = rows.ignore[known]
    elif scope is not None:  # LVIS has that flag, whether or not somebody has it
        roles["ignore"] = np.zeros_like(roles["crowd"])
    return Truth(
        file.images,
        categories,
        rows.image[known],
        rows.label[known],
        rows.boxes[known],
        roles=roles,
        attributes={"area": area[known]},
        box_format="xywh",
        family="coco",
        source=shown(path),
        notes=_truth_notes(path, file, scope),
        scope=scope,
    )


def read_detections(path: Path, truth: Truth, policy: Policy = STRICT) -> Detections:
    """Reads a results JSON file: a list of records, or an object with ``annotations``.

    Source: the COCO results format as pycocotools' loadRes reads it. An empty list is valid.
    """
    scanned = scan_results(path, truth, policy)
    return decode_results(path, truth, policy) if scanned is None else scanned


# --- readers -------------------------------------------------------------------------------------


def scan_instances(path: Path, *, shape: str = "") -> Instances | None:
    """Fast reader of `read_truth`: returns None if the reference reader must read the file.

    With a `shape`, "segmentation" or "keypoints", every annotation has one, and is on an image and
    of a class of the file.
    """
    scanned: dict[str, Any] = {}

    def read_images(text: bytes) -> scan_json.Locate:
        scanned["images"] = rows = msgspec.json.decode(text, type=list[Image])
        least = decode.least({"images": rows})
        record_errors.require_once(path, text, record_errors.IMAGES, least)
        images = scanned["image table"] = decode.image_table(path, scanned["images"])
        if not len(images) or images.ids.dtype.kind != "i":
            raise scan_json.HandBack
        return Positions(images.ids)

    def read_categories(text: bytes) -> scan_json.Locate:
        scanned["categories"] = rows = msgspec.json.decode(text, type=list[Category])
        least = decode.least({"categories": rows})
        record_errors.require_once(path, text, record_errors.CATEGORIES, least)
        categories = scanned["category table"] = decode.category_table(path, scanned["categories"])
        return Positions(categories.ids)

    try:
        lists = {"images": read_images, "categories": read_categories}
        rows = scan_json.scan_instances(path, lists, shape=shape)
    except (*decode.REFUSALS, DataError):
        return None
    if rows is None:
        return None
    missing = (rows.seen & scan_json.key("area")) == 0
    crowd = np.where(
        rows.seen & scan_json.key("iscrowd"), (rows.seen & scan_json.key("crowd")) != 0, -1
    ).astype(np.int8)
    columns = Annotations(
        rows.image,
        rows.category,
        rows.boxes,
        np.where(missing, np.nan, rows.value),
        crowd,
        rows.number[(rows.seen & scan_json.key("id")) != 0],
    )
    if (columns.area < 0).any():
        return None
    return Instances(
        scanned["image table"],
        scanned["category table"],
        columns,
        scanned["images"],
        scanned["categories"],
        rows.masks,
    )


def decode_instances(path: Path, boxes_are: Boxes = "required") -> Instances:
    """Reference reader of `read_truth`."""
    return decode.instances(path, boxes_are)


def scan_results(path: Path, truth: Truth, policy: Policy = STRICT) -> Detections | None:
    """Fast reader of `read_detections`: returns None if the reference reader must read the file."""
    if truth.images.ids.dtype.kind != "i" or not tool_results.is_plain(
        json_lines.first_of_file(path)
    ):
        return None
    ids, labels = policy.class_ids(truth, str(path))
    places = Positions(truth.images.ids), Positions(ids)
    rows = scan_json.scan_detections(path, *places)
    if rows is None:
        rows = json_lines.scan_detections(path, *places)
    if rows is None:
        return None
    return join.joined(
        truth,
        rows.image,
        rows.category if labels is None else labels[rows.category],
        rows.boxes,
        rows.value,
        box_format="xywh",
        origin=join.Origin(shown(path), str),
        policy=policy,
        checked=True,
    )


def decode_results(path: Path, truth: Truth, policy: Policy = STRICT) -> Detections:
    """Reference reader of `read_detections`."""
    return decode_text(path, tool_results.results(path, truth, policy), truth, policy)


def decode_text(path: Path, text: tool_results.Text, truth: Truth, policy: Policy) -> Detections:
    """Reference reader of plain JSON text."""
    rows = decode.results(path, text.data)

    def place(field: str) -> Callable[[int], str]:
        return lambda i: f"{record_errors.place(path, rows.group, i)}.{field}"

    image_place, class_place = place(text.image_field), place("category_id")
    origin = join.Origin(shown(path), image_place, rows.image_ids, rows.category_ids, class_place)
    image, notes = text.images(truth, rows.image_ids, origin.place, origin.source, policy)
    classes = text.classes(truth, rows.category_ids, class_place(0), policy)
    return join.joined(
        truth,
        image,
        classes.label,
        rows.boxes,
        rows.score,
        box_format="xywh",
        origin=origin,
        policy=policy,
        notes=(
            *text.notes,
            *notes,
            *classes.notes,
            *(() if rows.scored else join.unscored(len(image), path)),
        ),
    )


# --- notes ----------------------------------------------------------------------------------------


def _truth_notes(path: Path, file: Instances, scope: Scope | None) -> tuple[Note, ...]:
    rows = file.annotations
    sides = np.array(
        [decode.field(file.image_records, name) for name in ("width", "height")], np.float64
    )
    notes: list[tuple[Any, ...]] = [
        (
            "area-missing",
            "annotations have no area: width times height is used",
            int(np.isnan(rows.area).sum()),
        ),
        (
            "bbox-missing",
            "annotations have no bbox: the box around the mask or keypoints is used",
            rows.n_boxless,
        ),
        (
            "iscrowd-missing",
            "annotations have no iscrowd: read as 0",
            0 if scope is not None else int((rows.iscrowd < 0).sum()),  # LVIS has no crowds
        ),
        (
            "iscrowd-odd",
            "annotations have an iscrowd other than 0 and 1: read as 1",
            rows.odd_flags,
        ),
        (
            "image-size-odd",
            "images have a width or height that is not above 0: read as unknown",
            int((sides <= 0).any(axis=0).sum()),
        ),
        (
            "image-unlisted",
            "annotations are on images that are not in the file: dropped",
            int((rows.image < 0).sum()),
        ),
        (
            "category-unlisted",
            "annotations have a category that is not in the file: dropped",
            int(((rows.label < 0) & (rows.image >= 0)).sum()),
        ),
        (
            "id-zero",
            "annotations have the id 0, which pycocotools reads as unmatched; detmap does not",
            sum(i == 0 for i in rows.ids)
            if isinstance(rows.ids, list)
            else int(np.count_nonzero(rows.ids == 0)),
        ),
        (
            "id-twice",
            "annotations have repeated ids: each is an object; pycocotools reads the last of an id",
            _repeats(rows.ids),
        ),
        *(lvis.incomplete(file.image_records, file.categories) if scope is not None else ()),
    ]
    return tuple(
        Note(code, template, count, shown(path), *more)
        for code, template, count, *more in notes
        if count
    )


def _repeats(ids: Any) -> int:
    """Returns the number of repeated ids."""
    if isinstance(ids, np.ndarray):
        ordered = np.sort(ids)
        return int(np.count_nonzero(ordered[1:] == ordered[:-1]))
    return len(ids) - len(set(ids))
