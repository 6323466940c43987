"""Masks and keypoints of COCO JSON, read beside the boxes where a protocol asks for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from detmap.adapters import coco, coco_decode, coco_errors, joining
from detmap.errors import DataError
from detmap.overlaps import masks
from detmap.overlaps.keypoints import Keypoints
from detmap.overlaps.masks import Masks
from detmap.rows import positions
from detmap.tables import Columns, Detections, Truth

KINDS = ("boxes", "masks", "keypoints")


class _Annotation(msgspec.Struct, gc=False):
    image_id: coco_decode.Id
    category_id: int | float
    segmentation: Any = None
    keypoints: Any = None
    num_keypoints: Any = None
    area: float | None = None


class _Instances(msgspec.Struct, gc=False):
    annotations: list[_Annotation]
    categories: msgspec.Raw = msgspec.Raw(b"")


class _Detection(msgspec.Struct, gc=False):
    image_id: coco_decode.Id
    category_id: coco_decode.Id
    score: float
    bbox: list[float] | None = None
    segmentation: Any = None
    keypoints: Any = None


class _Results(msgspec.Struct, gc=False):
    annotations: list[_Detection]


def read_truth(path: Path, shapes: str = "boxes") -> Truth:
    """An instances file with its boxes, and its masks or keypoints where they are asked for.

    Source: COCO.annToRLE in pycocotools' coco.py, COCOeval._prepare in cocoeval.py. A missing area
    of a mask is its pixels. Objects without a labelled keypoint have the role "unlabelled".

    Raises
    ------
    DataError : as for boxes; a segmentation or keypoints that are missing or not legal
    """
    if shapes not in KINDS:
        raise DataError("shapes", f"no kind {shapes!r}", f"the kinds are {', '.join(KINDS)}")
    truth = coco.read_truth(path)
    if shapes == "boxes":
        return truth
    rows = _decoded(path, _Instances, coco_errors.INSTANCES).annotations
    image_ids = coco_decode._ids(path, "annotations", "image_id", [row.image_id for row in rows])
    image = joining.places(truth.images.ids, image_ids)
    label = positions(
        truth.categories.ids, np.array([row.category_id for row in rows]).astype(np.int64)
    )
    known = np.flatnonzero((image >= 0) & (label >= 0)).tolist()
    rows = [rows[i] for i in known]

    def place(field: str) -> Callable[[int], str]:
        return lambda i: f"{coco_errors.place(path, 'annotations', known[i])}.{field}"

    if shapes == "masks":
        size = np.stack([truth.images.height, truth.images.width], axis=1)[truth.image]
        found = masks.read([row.segmentation for row in rows], size, place("segmentation"))
        missing = np.array([row.area is None for row in rows], dtype=bool)
        area = np.where(missing, found.area, truth.area)
        attributes = Columns({**truth.attributes, "area": area})
        return replace(truth, attributes=attributes, shapes=found)
    points = _keypoints([row.keypoints for row in rows], place("keypoints"))
    count = [
        int((points[i, :, 2] > 0).sum()) if row.num_keypoints is None else row.num_keypoints
        for i, row in enumerate(rows)
    ]
    for i, number in enumerate(count):
        if type(number) not in (int, float):
            raise DataError(place("num_keypoints")(i), "is not a number", "count the keypoints")
    unlabelled = np.array([number == 0 for number in count], dtype=bool)
    roles = Columns({**truth.roles, "unlabelled": unlabelled})
    return replace(truth, roles=roles, shapes=Keypoints(points, truth.area))


def read_detections(path: Path, truth: Truth) -> Detections:
    """A results file with the masks or keypoints that the truth has, if any.

    Source: COCO.loadRes in pycocotools' coco.py. What the first record has decides for all: with a
    box, areas are those of the boxes, and a mask that is missing is the box; without, the area is
    that of the mask, or of the box around the keypoints.

    Raises
    ------
    DataError : as for boxes; a segmentation or keypoints that are missing or not legal
    """
    if truth.shapes is None:
        return coco.read_detections(path, truth)
    file = _decoded(path, list[_Detection] | _Results, coco_errors.RESULTS)
    rows = file.annotations if isinstance(file, _Results) else file
    group = "annotations" if isinstance(file, _Results) else ""

    def place(field: str) -> Callable[[int], str]:
        return lambda i: f"{coco_errors.place(path, group, i)}.{field}"

    image_ids = coco_decode._ids(path, group, "image_id", [row.image_id for row in rows])
    category_ids = coco_decode._ids(path, group, "category_id", [row.category_id for row in rows])
    image = joining.images_by_id(truth, image_ids, place("image_id")(0))
    label = joining.classes_by_id(truth, category_ids, str(path))
    origin = joining.Origin(str(path), place("image_id"), image_ids, category_ids)
    score = np.array([row.score for row in rows], dtype=np.float64)
    bad = np.flatnonzero(~np.isfinite(score)).tolist()
    if bad:
        raise DataError(place("score")(bad[0]), "is not a finite number", "a score is a number")
    nowhere = joining.joined(
        truth, image, label, np.zeros((len(rows), 4)), score, box_format="xywh", origin=origin
    )
    known = np.flatnonzero(label >= 0).tolist()
    with_boxes = bool(rows and rows[0].bbox)
    rows = [rows[i] for i in known]
    boxes = _boxes(rows, lambda i: place("bbox")(known[i])) if with_boxes else np.zeros((0, 4))
    shapes: Masks | Keypoints
    if isinstance(truth.shapes, Masks):
        given = [
            _as_polygon(boxes[i].tolist())
            if with_boxes and row.segmentation is None
            else row.segmentation
            for i, row in enumerate(rows)
        ]
        size = np.stack([truth.images.height, truth.images.width], axis=1)[nowhere.image]
        shapes = masks.read(given, size, lambda i: place("segmentation")(known[i]))
        if with_boxes:
            shapes = replace(shapes, area=boxes[:, 2] * boxes[:, 3])
        else:
            boxes = shapes.runs.boxes
    else:
        points = _keypoints([row.keypoints for row in rows], lambda i: place("keypoints")(known[i]))
        _same_number(points, truth, lambda i: place("keypoints")(known[i]))
        if not with_boxes:
            low, high = points[:, :, :2].min(axis=1), points[:, :, :2].max(axis=1)
            boxes = np.concatenate([low, high - low], axis=1)
        shapes = Keypoints(points, boxes[:, 2] * boxes[:, 3])
    notes = tuple(note for note in nowhere.notes if note.code != "box-outside")
    notes += joining.outside(truth, nowhere.image, boxes, origin.source)
    return replace(nowhere, boxes=boxes, shapes=shapes, notes=notes)


def _decoded(path: Path, kind: Any, fields: Any) -> Any:
    data = coco_decode._bytes(path)
    try:
        file = msgspec.json.decode(data, type=kind)
    except coco_decode.REFUSALS as error:
        raise coco_errors.explain(path, data, fields, error) from None
    least = coco_decode.least({"annotations": file if isinstance(file, list) else file.annotations})
    if isinstance(file, _Instances):  # all keys of boxes have been looked at
        least = {name: least.get(name, 0) for name in coco_errors.SHAPE_KEYS}
        skeletons = bytes(file.categories).count(b'"keypoints"')
        least["keypoints"] += skeletons
        file.categories = msgspec.Raw(b"")  # it keeps all data
    coco_errors.require_once(path, data, fields, least)
    return file


def _as_polygon(box: Sequence[float]) -> list[list[float]]:
    """The mask of a result that has a box alone. Source: COCO.loadRes."""
    left, top, right, bottom = box[0], box[1], box[0] + box[2], box[1] + box[3]
    return [[left, top, left, bottom, right, bottom, right, top]]


def _boxes(rows: Sequence[_Detection], place: Callable[[int], str]) -> NDArray[np.float64]:
    for i, row in enumerate(rows):
        if row.bbox is None or len(row.bbox) != 4:
            raise DataError(place(i), "not four numbers", "give every record a box, or none")
    boxes = np.array([row.bbox for row in rows], dtype=np.float64).reshape(-1, 4)
    bad = np.flatnonzero(~coco_decode._good_boxes(boxes)).tolist()
    if bad:
        raise DataError(place(bad[0]), f"{rows[bad[0]].bbox}", "boxes are x y width height")
    return boxes


def _keypoints(given: Sequence[Any], place: Callable[[int], str]) -> NDArray[np.float64]:
    """(n, k, 3) x, y, visibility."""
    if not given:
        return np.zeros((0, 17, 3))
    n = len(given[0]) if isinstance(given[0], list) else 0
    for i, row in enumerate(given):
        if not isinstance(row, list) or len(row) != n or not n or n % 3:
            what = "no list of x, y and visibility of each point, as many as in the other records"
            raise DataError(place(i), what, "give [x1, y1, v1, x2, y2, v2, ...]")
        if not all(type(x) in (int, float) and abs(x) <= joining.MAX_PIXEL for x in row):
            raise DataError(place(i), "not numbers of pixels", "give [x1, y1, v1, ...]")
    return np.array(given, dtype=np.float64).reshape(len(given), -1, 3)


def _same_number(points: NDArray[np.float64], truth: Truth, place: Callable[[int], str]) -> None:
    assert isinstance(truth.shapes, Keypoints)
    k = truth.shapes.points.shape[1]
    if len(points) and len(truth) and points.shape[1] != k:
        what = f"{points.shape[1]} points where the truth has {k}"
        raise DataError(place(0), what, "give the points that the truth has")
