"""COCO JSON: instances files (truth) and results lists (detections).

The plain case is decoded by msgspec into typed records. A file that it refuses is read once more with the standard library,
record by record, to say precisely what is wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from detmap.adapters import coco_errors, joining
from detmap.errors import DataError
from detmap.tables import MAX_ROWS, Categories, Detections, Images, Note, Truth, positions

Id = int | float | str
Box = tuple[float, float, float, float]


class _Image(msgspec.Struct, gc=False):
    id: Id
    file_name: str | None = None
    width: float | None = None
    height: float | None = None


class _Category(msgspec.Struct, gc=False):
    id: int | float
    name: str | None = None


class _Annotation(msgspec.Struct, gc=False):
    image_id: Id
    category_id: int | float
    bbox: Box
    area: float | None = None
    iscrowd: int | float | bool | None = None
    id: Id | None = None


class _Instances(msgspec.Struct, gc=False):
    images: list[_Image]
    annotations: list[_Annotation]
    categories: list[_Category]


class _Detection(msgspec.Struct, gc=False):
    image_id: Id
    category_id: Id
    bbox: Box
    score: float


class _Results(msgspec.Struct, gc=False):
    annotations: list[_Detection]


def read_truth(path: Path) -> Truth:
    """An instances JSON file.

    Source: the COCO data format (cocodataset.org, "Data format", object detection) as pycocotools reads it. A missing
    iscrowd is 0 and a missing area is width times height; both are counted in the notes.

    Raises
    ------
    DataError : not JSON, a record or field that is missing or of the wrong kind, ids that occur twice
    """
    data = _bytes(path)
    try:
        file = msgspec.json.decode(data, type=_Instances)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise coco_errors.explain(path, data, coco_errors.INSTANCES, error) from None
    del data
    images = _images(path, file.images)
    categories = _categories(path, file.categories)
    rows = file.annotations
    _check_count(path, rows)
    boxes = _boxes([row.bbox for row in rows])
    _raise_first_bad(path, "annotations", ~_good_boxes(boxes), rows, coco_errors.ANNOTATION)
    area = np.array([np.nan if row.area is None else row.area for row in rows], dtype=np.float64)
    area_missing = np.array([row.area is None for row in rows], dtype=bool)
    area[area_missing] = (boxes[:, 2] * boxes[:, 3])[area_missing]
    _raise_first_bad(path, "annotations", ~(np.isfinite(area) & (area >= 0)), rows, coco_errors.ANNOTATION)
    image_ids = _ids(path, "annotations", "image_id", [row.image_id for row in rows])
    category_ids = _ids(path, "annotations", "category_id", [row.category_id for row in rows])
    crowd = np.array([bool(row.iscrowd) for row in rows], dtype=bool)
    if len(rows) and len(images) and image_ids.dtype.kind != images.ids.dtype.kind:
        raise DataError(f"{path}: annotations[0].image_id",
                        f"{image_ids[0].item()!r} where images[0].id is {images.ids[0].item()!r}",
                        "write integers or strings in both")  # fmt: skip
    image, label = positions(images.ids, image_ids), positions(categories.ids, category_ids)
    known = (image >= 0) & (label >= 0)
    notes = _truth_notes(path, rows, area_missing, image, label)
    return Truth(
        images, categories, image[known], label[known], boxes[known], area[known], crowd[known],
        np.zeros(int(known.sum()), dtype=bool), box_format="xywh", family="coco", source=str(path), notes=notes,
    )  # fmt: skip


def read_detections(path: Path, truth: Truth) -> Detections:
    """A results JSON file: a list of records, or the same list as ``annotations`` of an object.

    Source: the COCO results format as pycocotools' loadRes reads it. An empty list is legal.

    Raises
    ------
    DataError : not JSON, a record or field that is missing or of the wrong kind, images that the truth lacks
    """
    data = _bytes(path)
    try:
        file: list[_Detection] | _Results = msgspec.json.decode(data, type=list[_Detection] | _Results)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise coco_errors.explain(path, data, coco_errors.RESULTS, error) from None
    del data
    rows = file.annotations if isinstance(file, _Results) else file
    _check_count(path, rows)
    group = "annotations" if isinstance(file, _Results) else ""
    image_ids = _ids(path, group, "image_id", [row.image_id for row in rows])
    category_ids = _ids(path, group, "category_id", [row.category_id for row in rows])
    score = np.fromiter((row.score for row in rows), dtype=np.float64, count=len(rows))
    boxes = _boxes([row.bbox for row in rows])
    _raise_first_bad(path, group, ~(_good_boxes(boxes) & np.isfinite(score)), rows, coco_errors.DETECTION)
    del rows, file
    image = joining.images_by_id(truth, image_ids, str(path))
    label = joining.classes_by_id(truth, category_ids, str(path))
    return joining.joined(
        truth, image, label, boxes, score, box_format="xywh", source=str(path),
        named=(image_ids.tolist(), category_ids.tolist()) if min(_least(image), _least(label)) < 0 else ((), ()),
    )  # fmt: skip


# --- columns ---------------------------------------------------------------------------------------------------------


def _images(path: Path, rows: Sequence[_Image]) -> Images:
    ids = _ids(path, "images", "id", [row.id for row in rows])
    _raise_twice(f"{path}: images", "id", ids)
    order = np.argsort(ids, kind="stable")
    sides = [[row.width if row.width is not None else np.nan for row in rows],
             [row.height if row.height is not None else np.nan for row in rows]]  # fmt: skip
    width, height = (np.array(side, dtype=np.float64)[order] for side in sides)
    stems = [PurePosixPath(row.file_name.replace("\\", "/")).stem if row.file_name else "" for row in rows]
    return Images(ids[order], tuple(stems[i] for i in order), width, height)


def _categories(path: Path, rows: Sequence[_Category]) -> Categories:
    ids = _ids(path, "categories", "id", [row.id for row in rows]).astype(np.int64)
    _raise_twice(f"{path}: categories", "id", ids)
    order = np.argsort(ids, kind="stable")
    names = [str(ids[i]) if row.name is None else row.name for i, row in enumerate(rows)]
    return Categories(ids[order], tuple(names[i] for i in order))


def _raise_twice(where: str, field: str, values: NDArray[Any]) -> None:
    unique, count = np.unique(values, return_counts=True)
    if (count > 1).any():
        twice = unique[count > 1].tolist()
        raise DataError(where, f"{field} {twice[0]!r} occurs {int(count[count > 1][0])} times",
                        f"every {field} must be unique; {len(twice)} are not")  # fmt: skip


def _ids(path: Path, group: str, field: str, values: list[Any]) -> NDArray[Any]:
    """Ids as one int64 or str array; integral floats are read as integers."""
    kinds = set(map(type, values))
    where = f"{path}: {group}" if group else f"{path}"
    if kinds <= {str} and kinds:
        return np.array(values, dtype=str)
    if str in kinds:
        first = next(i for i, value in enumerate(values) if type(value) is not type(values[0]))
        raise DataError(f"{where}[{first}].{field}", f"{values[first]!r}, while record 0 has {values[0]!r}",
                        "use either integers or strings for all")  # fmt: skip
    if float in kinds:
        for i, value in enumerate(values):
            if isinstance(value, float):
                if not value.is_integer():
                    raise DataError(f"{where}[{i}].{field}", f"{value!r} is not a whole number", "ids are integers")
                values[i] = int(value)
    try:
        return np.array(values, dtype=np.int64)
    except OverflowError:
        first = next(i for i, value in enumerate(values) if not -(2**63) <= value < 2**63)
        raise DataError(f"{where}[{first}].{field}", f"{values[first]} does not fit 64 bits", "use smaller ids") from None


def _boxes(rows: list[Box]) -> NDArray[np.float64]:
    return np.fromiter(chain.from_iterable(rows), dtype=np.float64, count=4 * len(rows)).reshape(-1, 4)


def _good_boxes(boxes: NDArray[np.float64]) -> NDArray[np.bool_]:
    return np.logical_and(np.isfinite(boxes).all(axis=1), (boxes[:, 2:] >= 0).all(axis=1))


def _least(column: NDArray[np.int32]) -> int:
    return int(column.min()) if column.size else 0


def _truth_notes(
    path: Path,
    rows: Sequence[_Annotation],
    area_missing: NDArray[np.bool_],
    image: NDArray[np.int32],
    label: NDArray[np.int32],
) -> tuple[Note, ...]:
    ids = [row.id for row in rows if row.id is not None]
    found = [
        ("area-missing", "annotations give no area: width times height is used", int(area_missing.sum())),
        ("iscrowd-missing", "annotations give no iscrowd: read as 0", sum(row.iscrowd is None for row in rows)),
        ("image-unlisted", "annotations are on images that the file does not list: left out", int((image < 0).sum())),
        ("category-unlisted", "annotations have a category that the file does not list: left out",
         int(((label < 0) & (image >= 0)).sum())),
        ("id-zero", "annotations have the id 0: pycocotools takes one for no match, detmap for an object",
         sum(i == 0 for i in ids)),
        ("id-twice", "annotations share their id with another: each is an object", len(ids) - len(set(ids))),
    ]  # fmt: skip
    return tuple(Note(code, text, count, str(path)) for code, text, count in found if count)


def _check_count(path: Path, rows: Sequence[Any]) -> None:
    if len(rows) > MAX_ROWS:
        raise DataError(str(path), f"{len(rows)} records", f"evaluate at most {MAX_ROWS} at once")


def _raise_first_bad(
    path: Path, group: str, bad: NDArray[np.bool_], rows: Sequence[Any], fields: coco_errors.Fields
) -> None:
    if bad.any():
        row = int(np.argmax(bad))
        raise coco_errors.record_error(
            f"{path}: {group}[{row}]" if group else f"{path}[{row}]", msgspec.structs.asdict(rows[row]), fields
        )


def _bytes(path: Path) -> bytes:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise DataError(str(path), f"cannot be read: {error.strerror}", "check the path and its permissions") from None
    return data[3:] if data.startswith(b"\xef\xbb\xbf") else data
