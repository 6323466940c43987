"""Reads Label Studio's JSON and JSON-MIN exports: annotations as truth, predictions as detections.

Boxes are in percent of ``original_width`` and ``original_height``. Rotated boxes (degrees clockwise
about the top left corner), polygons and ellipses are read as the upright boxes around them. Other
regions have no box. Notes count all of them. Of several annotations of a task the one that is
marked ``ground_truth`` counts, else the one that was updated last; skipped ones never do.

Source: HumanSignal/label-studio-sdk, label_studio_sdk/converter/converter.py.
"""

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import msgspec

from detmap.annotation_tools import typed_json
from detmap.annotation_tools.collected_boxes import Boxes, Corners
from detmap.annotation_tools.looks import LABEL_STUDIO_MIN
from detmap.core.adapters.coco import record_errors
from detmap.core.adapters.joining import image_names
from detmap.core.adapters.joining.unknown_policy import STRICT, Policy
from detmap.core.base.open_files import shown
from detmap.core.tables import Detections, Truth
from detmap.errors import DataError, few

FORM = "export as JSON or JSON-MIN: a list of tasks, each with its image and regions in percent"
LABELS = ("rectanglelabels", "labels", "polygonlabels", "ellipselabels")
NOTES = {
    "annotations-several": "tasks have several annotations: the one marked ground_truth is used, "
    "else the one that was updated last",
    "task-unannotated": "tasks have no annotation: read as images without objects",
    "shape-around": "regions are polygons or ellipses: the boxes around them are used",
    "box-rotated": "regions are rotated: the upright boxes around them are used",
    "labels-several": "regions have several labels: each is an object",
    "region-without-box": "regions have no box or no label: ignored",
}
RECTANGLE = ("x", "y", "width", "height")
ELLIPSE = ("x", "y", "radius_x", "radius_y")
MARKS = {"original_width", "original_height", *LABELS} - {"labels"}
"""Keys that only regions of images have; one of them is enough, since any may be missing."""


class _Value(msgspec.Struct, gc=False, rename="camel"):
    x: float | None = None
    y: float | None = None
    width: float | None = None
    height: float | None = None
    radius_x: float | None = None
    radius_y: float | None = None
    rotation: float | None = None
    points: list[tuple[float, float]] | None = None
    rectanglelabels: list[str] | None = None
    labels: list[str] | None = None
    polygonlabels: list[str] | None = None
    ellipselabels: list[str] | None = None


class _Region(msgspec.Struct, gc=False):
    value: _Value | None = None
    original_width: float | None = None
    original_height: float | None = None
    image_rotation: float | None = None
    score: float | None = None


class _Annotation(msgspec.Struct, gc=False):
    result: list[_Region]
    was_cancelled: bool | None = None
    ground_truth: bool | None = None
    created_at: str | None = None
    updated_at: str | None = None
    model_version: str | None = None


class _Task(msgspec.Struct, gc=False):
    data: dict[str, Any]
    annotations: list[_Annotation] | None = None
    predictions: list[_Annotation] | None = None
    file_upload: str | None = None


def read_truth(path: Path) -> Truth:
    """Reads the annotations of all tasks; a task without one is an image without objects.

    Raises `DataError` for invalid files and regions, and tasks whose image is not defined.
    """
    boxes = Boxes(path, "xywh", NOTES)
    for where, image, given in _tasks(path):
        done = [each for each in given if not each[1].was_cancelled]
        marked = [each for each in done if each[1].ground_truth] or done
        if len(done) != 1:
            boxes.count("annotations-several" if done else "task-unannotated")
        _add(boxes, image, where, _newest(marked))
    return boxes.truth()


def read_detections(path: Path, truth: Truth, policy: Policy = STRICT) -> Detections:
    """Reads the predictions of all tasks, whose regions have a score.

    Raises `DataError` if there are none, or those of several models, and as `read_truth`.
    """
    tasks = typed_json.decoded(path, list[_Task], FORM)
    given = [each for task in tasks for each in task.predictions or ()]
    models = sorted({each.model_version or "" for each in given})
    if not given:
        fix = "export a project with predictions as JSON, or give the detector's own output"
        raise DataError(shown(path), "no predictions", fix)
    if len(models) > 1:
        what = f"predictions of {len(models)} models: {few(map(repr, models))}"
        raise DataError(shown(path), what, "keep the predictions of one model_version")
    boxes = Boxes(path, "xywh", NOTES)
    for i, task in enumerate(tasks):
        where = f"{shown(path)}[{i}]"
        regions = _newest(_placed(f"{where}.predictions", task.predictions))
        _add(boxes, _image(task, where), where, regions)
    if None in boxes.scores:
        fix = "write a score to every region of a prediction"
        raise DataError(f"{boxes.place(boxes.scores.index(None))}.score", "missing", fix)
    return boxes.detections(truth, policy)


# --- tasks ----------------------------------------------------------------------------------------

_Placed = tuple[str, _Annotation]
"""The place of the regions of an annotation, and the annotation."""


def _tasks(path: Path) -> list[tuple[str, str, list[_Placed]]]:
    """Returns place, image and annotations of each task of either form."""
    if len(record_errors.first_record(path).keys() & LABEL_STUDIO_MIN) > 1:
        return _min_tasks(path)
    tasks = typed_json.decoded(path, list[_Task], FORM)
    if tasks and all(task.annotations is None for task in tasks):
        raise DataError(f"{shown(path)}[0].annotations", "missing in all tasks", FORM)
    places = [f"{shown(path)}[{i}]" for i in range(len(tasks))]
    return [
        (where, _image(task, where), _placed(f"{where}.annotations", task.annotations))
        for where, task in zip(places, tasks, strict=True)
    ]


def _placed(where: str, given: Iterable[_Annotation] | None) -> list[_Placed]:
    return [(f"{where}[{i}].result", each) for i, each in enumerate(given or ())]


def _min_tasks(path: Path) -> list[tuple[str, str, list[_Placed]]]:
    """Reads JSON-MIN, which has a record an annotation: those with equal ids are of one task."""
    tasks: dict[Any, tuple[str, str, list[_Placed]]] = {}
    records = typed_json.decoded(path, list[dict[str, Any]], FORM)
    fields = {key for record in records for key, value in record.items() if _has_regions(value)}
    if not fields:
        raise DataError(shown(path), "no task has a region with original_width", FORM)
    for i, record in enumerate(records):
        where = f"{shown(path)}[{i}]"
        annotation = _Annotation(
            [
                region
                for key in record
                if key in fields
                for region in _min_regions(f"{where}.{key}", record[key])
            ],
            updated_at=str(record.get("updated_at") or record.get("created_at") or ""),
        )
        number = record.get("id")
        if not isinstance(number, int | str):
            raise DataError(f"{where}.id", "not the id of a task", FORM)
        image = _image(_Task(record), where)
        first, _, given = tasks.setdefault(number, (where, image, []))
        given.append((f"{first}.regions[{len(given)}].result", annotation))
    return list(tasks.values())


def _has_regions(value: Any) -> bool:
    """Checks for a list with a region of an image."""
    return isinstance(value, list) and any(
        isinstance(each, dict) and not MARKS.isdisjoint(each) for each in value
    )


def _min_regions(where: str, value: Any) -> Iterable[_Region]:
    """Returns the regions of a field of a JSON-MIN record that holds regions in some record."""
    place = where
    try:
        for i, each in enumerate(msgspec.convert(value, list[dict[str, Any]] | None) or ()):
            place = f"{where}[{i}]"
            region = msgspec.convert(each, _Region)
            region.value = msgspec.convert(each, _Value)
            yield region
    except msgspec.ValidationError as error:
        raise typed_json.invalid(place, error, FORM) from None


def _newest(annotations: Sequence[_Placed]) -> list[tuple[str, _Region]]:
    """Returns the regions of the annotation that was updated last, each with its place."""
    by_time = sorted(annotations, key=lambda each: each[1].updated_at or each[1].created_at or "")
    return [
        (f"{place}[{j}]", region)
        for place, newest in by_time[-1:]
        for j, region in enumerate(newest.result)
    ]


def _image(task: _Task, where: str) -> str:
    """Returns the file name of a task's image, from the only field that names an image."""
    texts = {key: value for key, value in task.data.items() if isinstance(value, str)}
    names = {key: _path(value) for key, value in texts.items()}
    images = {key: name for key, name in names.items() if image_names.is_image(name)}
    if names.get("image"):
        images = {"image": names["image"]}
    if not images and task.file_upload:
        images = {"file_upload": task.file_upload}
    if len(images) != 1 or not any(images.values()):
        what = f"the image may be {few(images)}" if images else "no field names an image"
        raise DataError(f"{where}.data", what, "name the image in the field image")
    return next(iter(images.values()))


def _path(text: str) -> str:
    """Returns the path of an image from a path or URL."""
    if "?d=" in text:  # local files
        return unquote(text.partition("?d=")[2].partition("&")[0])
    if "://" in text:
        return unquote(text.partition("://")[2].partition("?")[0].partition("#")[0])
    return unquote(text) if text.startswith("/data/") else text


# --- regions --------------------------------------------------------------------------------------


def _add(boxes: Boxes, image: str, where: str, regions: Sequence[tuple[str, _Region]]) -> None:
    """Adds an image and its regions, each with its place in the file."""
    boxes.add_image(image, where)
    known: tuple[float, float] | None = None
    for place, region in regions:
        kind, labels = _kind(region.value)
        if kind == "other" or region.value is None:
            boxes.count("region-without-box")
            continue
        size = _size(region, place)
        if known not in (None, size):
            what = f"{size[0]:g} x {size[1]:g} pixels, but other sizes before"
            raise DataError(f"{place}.original_width", what, "export the task again")
        boxes.sizes[-1] = known = size
        box = _box(region.value, kind, size, place)
        if kind != "box":
            boxes.count("shape-around")
        if region.value.rotation:
            boxes.count("box-rotated")
        if len(labels) > 1:
            boxes.count("labels-several")
        for label in labels:
            boxes.add(label, box, place, region.score)


def _kind(value: _Value | None) -> tuple[str, list[str]]:
    """Returns what a region is, "other" without a box, and its labels."""
    given = next((each for name in LABELS if value and (each := getattr(value, name))), None)
    labels = [label for label in given or () if label.strip()]
    if value is None or not labels:
        return "other", []
    if value.points:
        return "polygon", labels
    if value.radius_x is not None:
        return "ellipse", labels
    return ("box" if value.width is not None and value.height is not None else "other"), labels


def _size(region: _Region, where: str) -> tuple[float, float]:
    if region.image_rotation:
        what = f"{region.image_rotation:g} degrees: boxes of rotated images are not read"
        raise DataError(f"{where}.image_rotation", what, "export the project as COCO")
    if region.original_width is None or region.original_height is None:
        raise DataError(f"{where}.original_width", "no size of the image", FORM)
    return region.original_width, region.original_height


def _box(value: _Value, kind: str, size: tuple[float, float], where: str) -> Corners:
    """Returns left, top, width and height of a region in pixels."""
    if kind == "polygon":
        x = [size[0] * point[0] / 100 for point in value.points or ()]
        y = [size[1] * point[1] / 100 for point in value.points or ()]
        return min(x), min(y), max(x) - min(x), max(y) - min(y)
    numbers = []
    for name, side in zip(ELLIPSE if kind == "ellipse" else RECTANGLE, size * 2, strict=True):
        number = getattr(value, name)
        if number is None:
            raise DataError(f"{where}.value.{name}", "missing", FORM)
        numbers.append(side * number / 100)
    a, b, c, d = numbers
    if min(c, d) < 0 or not value.rotation:
        return (a - c, b - d, 2 * c, 2 * d) if kind == "ellipse" else (a, b, c, d)
    angle = math.radians(value.rotation)
    cos, sin = math.cos(angle), math.sin(angle)
    if kind == "ellipse":
        wide, high = math.hypot(c * cos, d * sin), math.hypot(c * sin, d * cos)
        return a - wide, b - high, 2 * wide, 2 * high
    across = [0.0, c * cos, -d * sin, c * cos - d * sin]
    down = [0.0, c * sin, d * cos, c * sin + d * cos]
    wide, high = max(across) - min(across), max(down) - min(down)
    return a + min(across), b + min(down), wide, high
