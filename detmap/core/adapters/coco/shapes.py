"""Reads masks, keypoints, roles and attributes of COCO JSON on request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from detmap.core.adapters.coco import (
    decode,
    instances,
    json_lines,
    record_errors,
    scan_json,
    tool_results,
)
from detmap.core.adapters.coco.number_lists import NumberLists
from detmap.core.adapters.coco.scan_columns import Segmentations
from detmap.core.adapters.joining import join
from detmap.core.adapters.joining.unknown_policy import STRICT, Policy
from detmap.core.base import memory
from detmap.core.base.open_files import shown
from detmap.core.overlaps import KINDS, kind_of
from detmap.core.tables import Columns, Detections, Images, Note, Shapes, Truth
from detmap.core.tables.grouping import Positions
from detmap.errors import DataError

if TYPE_CHECKING:
    from detmap.core.adapters.coco.records import Records
    from detmap.core.overlaps.masks import Masks
    from detmap.core.overlaps.polygons import Corners
    from detmap.core.overlaps.shape_records import ShapeReader

LEAST_SHAPE = 100  # bytes of an object with its shape, in a file
BOX_KEYS = {"image_id", "category_id", "bbox", "score"}
"""The keys of a result without shapes; readers of shapes are imported for others alone."""


def read_truth(
    path: Path, shapes: str = "boxes", roles: Sequence[str] = (), attributes: Sequence[str] = ()
) -> Truth:
    """Reads an instances file with its boxes and the requested data.

    Source: COCO.annToRLE in pycocotools' coco.py, COCOeval._prepare in cocoeval.py. A missing box
    is the one around the mask or the labeled keypoints.

    Parameters
    ----------
    shapes : a kind of overlap, whose shapes are read
    roles, attributes : keys of annotations, or of their ``attributes``

    Raises `DataError` for invalid boxes, shapes, roles or attributes.
    """
    reader = kind_of(shapes).reader
    truth = None if reader is None else _scan_truth(path, reader)
    with_shapes = reader is not None and truth is None
    if truth is None:
        truth = instances.read_truth(path, "optional" if with_shapes else "required")
    roles = [name for name in dict.fromkeys(roles) if name not in truth.roles]
    attributes = [name for name in dict.fromkeys(attributes) if name not in truth.attributes]
    if not with_shapes and not roles and not attributes:
        return truth
    from detmap.core.adapters.coco import named_columns
    from detmap.core.adapters.coco.records import objects

    more = (reader.field, *reader.more, "area", "bbox") if reader and with_shapes else ()
    records = objects(path, truth, (*more, *roles, *attributes))
    truth = named_columns.with_columns(truth, records, roles, attributes)
    return _with_shapes(truth, records, reader) if reader and with_shapes else truth


def _scan_truth(path: Path, reader: ShapeReader) -> Truth | None:
    """Fast reader of objects with shapes: returns None if the reference reader must read them."""
    scanned = reader.runs or reader.listed
    file = instances.scan_instances(path, shape=reader.field) if scanned else None
    if file is None or file.masks is None:
        return None
    truth = instances.truth_of(path, file)
    shapes = _scanned_shapes(file.masks, reader, truth.images, truth.image)
    if shapes is None:
        return None
    area = _with_none(file.annotations.area, np.isnan(file.annotations.area))
    labelled = _with_none(file.masks.labelled, file.masks.labelled < 0)
    del file
    if len(shapes) * LEAST_SHAPE > scan_json.HELD:
        memory.give_back()  # what reading and drawing took: the detections take as much again
    return reader.complete(truth, shapes, {"area": area, "num_keypoints": labelled}, str)


def _with_none(column: NDArray[Any], missing: NDArray[np.bool_]) -> list[Any]:
    """Returns the values of a column, None where they are missing."""
    values = column.astype(object)
    values[missing] = None
    return list(values)


def _scanned_shapes(
    given: Segmentations,
    reader: ShapeReader,
    images: Images,
    image: NDArray[np.int32],
    like: Shapes | None = None,
) -> Any:
    """Returns shapes, or None if the reference reader must report an error."""
    if reader.runs:
        return scanned_masks(given, np.stack([images.height, images.width], axis=1)[image])
    length = np.diff(given.lists.list_off)
    if not len(image) or len(given.rows) < len(image):
        return None
    if (length != length[0]).any() or length[0] % 3:
        return None
    try:
        return reader.from_numbers(given.lists.numbers.reshape(len(length), -1), str, like)
    except DataError:
        return None


def scanned_masks(
    given: Segmentations, sizes: NDArray[np.float64], area: NDArray[np.float64] | None = None
) -> Masks | None:
    """Returns masks on images of these sizes (n, 2), or None if the reference reader must report an
    error; an area of None is the pixel count.
    """
    from detmap.core.overlaps import masks

    outlined = _polygons(given.lists)
    try:
        texts = b"[" + b",".join(given.others.values()) + b"]"
        values = msgspec.json.decode(texts)
        if outlined is None or not record_errors.surely_once(
            texts, record_errors.least_runs(values)
        ):
            return None
        others = dict(zip(given.others, values, strict=True))
        runs = (given.off, given.counts)
        return masks.from_runs(given.size, runs, others, sizes, str, (given.rows, outlined), area)
    except (*decode.REFUSALS, DataError):
        return None


def _polygons(lists: NumberLists) -> Corners | None:
    """Returns polygons, or None if the reference reader must read them."""
    from detmap.core.overlaps.polygons import Corners

    if (lists.list_off % 2).any():
        return None
    found = Corners(lists.numbers.reshape(-1, 2), lists.list_off // 2, lists.value_off)
    return found if len(lists.numbers) == 0 or found.are_legal() else None


def _with_shapes(truth: Truth, records: Records, reader: ShapeReader) -> Truth:
    place = records.place(reader.field)
    size = np.stack([truth.images.height, truth.images.width], axis=1)[truth.image]
    shapes = reader.read(records.values[reader.field], size, place)
    boxless = np.array([box is None for box in records.values["bbox"]], dtype=bool)
    if boxless.any():
        around = reader.around_objects(shapes)
        lost = np.flatnonzero(boxless & np.isnan(around).any(axis=1)).tolist()
        if lost:
            what = f"missing, and {reader.field} does not define it"
            raise DataError(records.place("bbox")(lost[0]), what, "give the box")
        boxes = np.where(boxless[:, None], around, truth.boxes)
        arealess = np.array([area is None for area in records.values["area"]], dtype=bool)
        area = np.where(boxless & arealess, boxes[:, 2] * boxes[:, 3], truth.area)
        truth = replace(truth, boxes=boxes, attributes=Columns({**truth.attributes, "area": area}))
    return reader.complete(truth, shapes, records.values, place)


def read_detections(path: Path, truth: Truth, policy: Policy = STRICT) -> Detections:
    """Reads a results file with masks or keypoints, if the ground truth has them.

    Source: COCO.loadRes in pycocotools' coco.py. The first record decides for all. With a box,
    areas are those of the boxes, and a missing mask is the box. Without, the area is that of the
    mask, or of the box around the keypoints.

    Raises `DataError` for invalid boxes or shapes.
    """
    reader = None if truth.shapes is None else _reader_of(truth.shapes)
    if reader is None and (scanned := instances.scan_results(path, truth, policy)) is not None:
        return with_boxes(path, json_lines.first_of_file(path), scanned)
    if reader is not None and (found := _scan_shapes(path, truth, policy, reader)) is not None:
        return found
    text = tool_results.results(path, truth, policy)
    given_shape = _shape_alone(text.first)
    if reader is None and given_shape is None:
        return with_boxes(path, text.first, instances.decode_text(path, text, truth, policy))
    if reader is None:
        assert given_shape is not None
        return read_shaped(path, text, truth, policy, given_shape, only_boxes=True)[0]
    return read_shaped(path, text, truth, policy, reader)[0]


def read_shaped(
    path: Path,
    text: tool_results.Text,
    truth: Truth,
    policy: Policy,
    reader: ShapeReader,
    more: Sequence[str] = (),
    *,
    only_boxes: bool = False,
) -> tuple[Detections, Records]:
    """Reads results with shapes; returns them and their records, with the keys `more`.

    With `only_boxes` the boxes around the shapes are kept, and not the shapes.
    """
    from detmap.core.adapters.coco.records import results

    given = results(path, text.data, ("bbox", reader.field, *more))
    records = given.records
    source = shown(path)
    image_place, class_place = records.place(text.image_field), records.place("category_id")
    image, joins = text.images(truth, given.image_ids, image_place, source, policy)
    first = f"{record_errors.place(path, records.group, 0)}.category_id"
    classes = text.classes(truth, given.category_ids, first, policy)
    label = classes.label
    origin = join.Origin(source, image_place, given.image_ids, given.category_ids, class_place)
    known, dropped = join.judged(truth, image, label, origin, policy)
    nowhere = join.joined(
        truth,
        image[known],
        label[known],
        np.zeros((int(known.sum()), 4)),
        given.score[known],
        box_format="xywh",
        origin=origin,
        notes=(*text.notes, *joins, *classes.notes, *dropped),
    )
    with_boxes = bool(len(image) and records.values["bbox"][0])
    with_shapes = bool(len(image) and records.values[reader.field][0] is not None)
    records = records.take(np.flatnonzero(known).tolist())
    values = records.values[reader.field]
    if with_boxes:
        boxes = _boxes(records)
        values = [
            reader.from_box(box) if value is None else value
            for value, box in zip(values, boxes.tolist(), strict=True)
        ]
    size = np.stack([truth.images.height, truth.images.width], axis=1)[nowhere.image]
    shapes = reader.read(values, size, records.place(reader.field), truth.shapes)
    if only_boxes:
        return _around(nowhere, reader, shapes), records
    return _shaped(nowhere, reader, shapes, boxes if with_boxes else None, with_shapes), records


def _shaped(
    nowhere: Detections,
    reader: ShapeReader,
    shapes: Any,
    boxes: NDArray[np.float64] | None,
    with_shapes: bool,
) -> Detections:
    """Adds shapes to detections, and their boxes or those around the shapes."""
    with_boxes = boxes is not None
    if boxes is None:
        boxes = reader.around(shapes)
    elif reader.box_gives_area:
        shapes = replace(shapes, area=boxes[:, 2] * boxes[:, 3])
    notes = tuple(note for note in nowhere.notes if note.code != "box-outside")
    notes += join.outside(nowhere.images, nowhere.image, boxes, nowhere.source)
    if with_boxes and with_shapes:
        what = f"detections have a bbox and a {reader.field}: the {reader.field} is compared, "
        what += f"the {'bbox' if reader.box_gives_area else reader.field} gives the area"
        notes += (Note("shape-and-box", what, len(boxes), nowhere.source),)
    return replace(nowhere, boxes=boxes, shapes=shapes, notes=notes)


def _scan_shapes(
    path: Path, truth: Truth, policy: Policy, reader: ShapeReader
) -> Detections | None:
    """Fast reader of shapes: returns None if the reference reader must read the file."""
    if (
        not (reader.runs or reader.listed)
        or truth.regions is not None
        or truth.images.ids.dtype.kind != "i"
    ):
        return None
    if not tool_results.is_plain(record_errors.first_record(path)):
        return None
    ids, labels = policy.class_ids(truth, str(path))
    places = Positions(truth.images.ids), Positions(ids)
    rows = scan_json.scan_detections(path, *places, shape=reader.field)
    if rows is None or rows.masks is None or not len(rows.image):
        return None
    boxes = rows.boxes if rows.seen[0] & scan_json.key("bbox") else None
    shapes = _scanned_shapes(rows.masks, reader, truth.images, rows.image, truth.shapes)
    if shapes is None or (boxes is not None and not decode._good_boxes(boxes).all()):
        return None
    nowhere = join.joined(
        truth,
        rows.image,
        rows.category if labels is None else labels[rows.category],
        np.zeros((len(rows.image), 4)),
        rows.value,
        box_format="xywh",
        origin=join.Origin(shown(path), str),
        policy=policy,
    )
    return _shaped(nowhere, reader, shapes, boxes, True)


def _reader_of(shapes: Shapes) -> ShapeReader | None:
    readers = [row.reader for row in KINDS if row.reader is not None]
    return next((each for each in readers if isinstance(shapes, each.kind)), None)


def _shape_alone(first: Mapping[str, Any]) -> ShapeReader | None:
    """Returns the reader of results that have shapes but no boxes, judging by the first record."""
    if first.get("bbox"):
        return None
    readers = [row.reader for row in KINDS if row.reader is not None]
    alone = [each for each in readers if first.get(each.field)]
    return alone[0] if alone else None


def _around(detections: Detections, reader: ShapeReader, shapes: Any) -> Detections:
    """Replaces boxes by those around the shapes."""
    boxes = reader.around(shapes)
    name = next(row.name for row in KINDS if row.reader is reader)
    protocol = {"masks": "coco-segm", "keypoints": "coco-keypoints"}.get(name)
    text = f"detections have no bbox: the box around their {reader.field} is used"
    text += f"; -p {protocol} compares it" if protocol else ""
    notes = [note for note in detections.notes if note.code != "box-outside"]
    if len(detections):
        notes.append(Note("bbox-missing", text, len(detections), detections.source))
    notes += join.outside(detections.images, detections.image, boxes, detections.source)
    return replace(detections, boxes=boxes, notes=tuple(notes))


def with_boxes(path: Path, first: Mapping[str, Any], detections: Detections) -> Detections:
    """Adds a note if results have shapes that are not used."""
    if first.keys() <= BOX_KEYS:
        return detections
    for row in KINDS:
        if row.reader is not None and first.get(row.reader.field) and len(detections):
            text = f"detections have a bbox and a {row.reader.field}: the bbox is compared"
            note = Note("shape-and-box", text, len(detections), shown(path))
            return replace(detections, notes=(*detections.notes, note))
    return detections


def _boxes(records: Records) -> NDArray[np.float64]:
    for i, box in enumerate(records.values["bbox"]):
        numbers = isinstance(box, list) and all(type(x) in (int, float) for x in box)
        if not numbers or len(box) != 4:
            where = records.place("bbox")(i)
            raise DataError(where, "not four numbers", "give every record a box, or none")
    try:
        boxes = np.array(records.values["bbox"], dtype=np.float64).reshape(-1, 4)
    except OverflowError:
        boxes = np.array([[float(str(x)) for x in box] for box in records.values["bbox"]])
    bad = np.flatnonzero(~decode._good_boxes(boxes)).tolist()
    if bad:
        where, box = records.place("bbox")(bad[0]), records.values["bbox"][bad[0]]
        raise DataError(where, record_errors.short(box), "boxes are x y width height")
    return boxes
