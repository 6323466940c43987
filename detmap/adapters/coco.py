"""COCO JSON: instances files (truth) and results lists (detections).

Two lanes read them. The reference lane decodes with msgspec into typed records and is the
authority on every legal file; a file that it refuses is read once more with the standard
library, record by record, to say precisely what is wrong. The fast lane
(`detmap.adapters.coco_scan`) takes large plain files, and hands back whatever it does not
understand.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from detmap import opening
from detmap.adapters import coco_errors, coco_scan, joining
from detmap.errors import DataError
from detmap.rows import Positions, positions
from detmap.tables import MAX_ROWS, Categories, Detections, Images, Note, Truth

Id = int | float | str
Box = tuple[float, float, float, float]

DECODED = 6  # bytes of memory that a byte of JSON takes as typed records and columns
_REFUSALS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


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


class _Annotations(NamedTuple):
    """The annotations of an instances file as columns, whichever lane read them.

    Parameters
    ----------
    image, label : (n,) int32 positions; -1 for an id that the file does not list
    boxes : (n, 4) float64; area : (n,) float64, NaN where missing; iscrowd : (n,) int8, -1 where
        missing
    ids : the ids of the annotations that have one
    """

    image: NDArray[np.int32]
    label: NDArray[np.int32]
    boxes: NDArray[np.float64]
    area: NDArray[np.float64]
    iscrowd: NDArray[np.int8]
    ids: Sequence[Any] | NDArray[np.int64]


def read_truth(path: Path) -> Truth:
    """An instances JSON file.

    Source: the COCO data format (cocodataset.org, "Data format", object detection) as pycocotools
    reads it. A missing iscrowd is 0 and a missing area is width times height; both are counted in
    the notes.

    Raises
    ------
    DataError : not JSON, a record or field that is missing or of the wrong kind, ids that occur
        twice
    """
    images, categories, rows = scan_instances(path) or decode_instances(path)
    area = np.where(np.isnan(rows.area), rows.boxes[:, 2] * rows.boxes[:, 3], rows.area)
    known = (rows.image >= 0) & (rows.label >= 0)
    return Truth(
        images,
        categories,
        rows.image[known],
        rows.label[known],
        rows.boxes[known],
        roles={"crowd": rows.iscrowd[known] > 0},
        attributes={"area": area[known]},
        box_format="xywh",
        family="coco",
        source=str(path),
        notes=_truth_notes(path, rows),
    )


def read_detections(path: Path, truth: Truth) -> Detections:
    """A results JSON file: a list of records, or the same list as ``annotations`` of an object.

    Source: the COCO results format as pycocotools' loadRes reads it. An empty list is legal.

    Raises
    ------
    DataError : not JSON, a record or field that is missing or of the wrong kind, images that the
        truth lacks
    """
    return scan_results(path, truth) or decode_results(path, truth)


# --- two lanes ------------------------------------------------------------------------------------


def scan_instances(path: Path) -> tuple[Images, Categories, _Annotations] | None:
    """The fast lane of `read_truth`: None where the file is not plain."""
    found: dict[str, Any] = {}

    def read_images(text: bytes) -> coco_scan.Locate:
        images = found["images"] = _images(path, msgspec.json.decode(text, type=list[_Image]))
        if images.ids.dtype.kind != "i":
            raise coco_scan.NotPlain
        return Positions(images.ids)

    def read_categories(text: bytes) -> coco_scan.Locate:
        categories = found["categories"] = _categories(
            path, msgspec.json.decode(text, type=list[_Category])
        )
        return Positions(categories.ids)

    try:
        rows = coco_scan.scan_instances(
            path, {"images": read_images, "categories": read_categories}
        )
    except (*_REFUSALS, DataError):
        return None
    if rows is None:
        return None
    missing = (rows.seen & coco_scan.key("area")) == 0
    crowd = np.where(
        rows.seen & coco_scan.key("iscrowd"), (rows.seen & coco_scan.key("crowd")) != 0, -1
    ).astype(np.int8)
    columns = _Annotations(
        rows.image,
        rows.category,
        rows.boxes,
        np.where(missing, np.nan, rows.value),
        crowd,
        rows.number[(rows.seen & coco_scan.key("id")) != 0],
    )
    if (columns.area < 0).any():
        return None
    return found["images"], found["categories"], columns


def decode_instances(path: Path) -> tuple[Images, Categories, _Annotations]:
    """The reference lane of `read_truth`: every legal file, and every error."""
    data = _bytes(path)
    try:
        file = msgspec.json.decode(data, type=_Instances)
    except _REFUSALS as error:
        raise coco_errors.explain(path, data, coco_errors.INSTANCES, error) from None
    del data
    images = _images(path, file.images)
    categories = _categories(path, file.categories)
    rows = file.annotations
    _check_count(path, rows)
    boxes = _boxes([row.bbox for row in rows])
    _raise_first_bad(path, "annotations", ~_good_boxes(boxes), rows, coco_errors.ANNOTATION)
    area = np.array([np.nan if row.area is None else row.area for row in rows], dtype=np.float64)
    bad = ~(np.isfinite(area) & (area >= 0)) & np.array(
        [row.area is not None for row in rows], dtype=bool
    )
    _raise_first_bad(path, "annotations", bad, rows, coco_errors.ANNOTATION)
    image_ids = _ids(path, "annotations", "image_id", [row.image_id for row in rows])
    category_ids = _ids(path, "annotations", "category_id", [row.category_id for row in rows])
    if len(rows) and len(images) and image_ids.dtype.kind != images.ids.dtype.kind:
        raise DataError(
            f"{path}: annotations[0].image_id",
            f"{image_ids[0].item()!r} where images[0].id is {images.ids[0].item()!r}",
            "write integers or strings in both",
        )
    return (
        images,
        categories,
        _Annotations(
            positions(images.ids, image_ids),
            positions(categories.ids, category_ids),
            boxes,
            area,
            np.array(
                [-1 if row.iscrowd is None else bool(row.iscrowd) for row in rows], dtype=np.int8
            ),
            [row.id for row in rows if row.id is not None],
        ),
    )


def scan_results(path: Path, truth: Truth) -> Detections | None:
    """The fast lane of `read_detections`: None where the file is not plain."""
    if truth.images.ids.dtype.kind != "i":
        return None
    rows = coco_scan.scan_detections(
        path, Positions(truth.images.ids), Positions(truth.categories.ids)
    )
    if rows is None:
        return None
    return joining.joined(
        truth,
        rows.image,
        rows.category,
        rows.boxes,
        rows.value,
        box_format="xywh",
        origin=joining.Origin(str(path), str),
    )


def decode_results(path: Path, truth: Truth) -> Detections:
    """The reference lane of `read_detections`: every legal file, and every error."""
    data = _bytes(path)
    try:
        file: list[_Detection] | _Results = msgspec.json.decode(
            data, type=list[_Detection] | _Results
        )
    except _REFUSALS as error:
        raise coco_errors.explain(path, data, coco_errors.RESULTS, error) from None
    del data
    rows = file.annotations if isinstance(file, _Results) else file
    _check_count(path, rows)
    group = "annotations" if isinstance(file, _Results) else ""
    image_ids = _ids(path, group, "image_id", [row.image_id for row in rows])
    category_ids = _ids(path, group, "category_id", [row.category_id for row in rows])
    score = np.fromiter((row.score for row in rows), dtype=np.float64, count=len(rows))
    boxes = _boxes([row.bbox for row in rows])
    _raise_first_bad(
        path, group, ~(_good_boxes(boxes) & np.isfinite(score)), rows, coco_errors.DETECTION
    )
    del rows, file
    origin = joining.Origin(str(path), lambda i: f"{coco_errors.place(path, group, i)}.image_id")
    image = joining.images_by_id(truth, image_ids, origin.place(0))
    label = joining.classes_by_id(truth, category_ids, str(path))
    if min(_least(image), _least(label)) < 0:
        origin = origin._replace(images=image_ids, classes=category_ids)
    return joining.joined(truth, image, label, boxes, score, box_format="xywh", origin=origin)


# --- columns --------------------------------------------------------------------------------------


def _images(path: Path, rows: Sequence[_Image]) -> Images:
    ids = _ids(path, "images", "id", [row.id for row in rows])
    _raise_twice(path, "images", ids)
    order = np.argsort(ids, kind="stable")
    sides = [
        [row.width if row.width is not None else np.nan for row in rows],
        [row.height if row.height is not None else np.nan for row in rows],
    ]
    width, height = (np.array(side, dtype=np.float64)[order] for side in sides)
    stems = [_stem(row.file_name) if row.file_name else "" for row in rows]
    return Images(ids[order], tuple(stems[i] for i in order), width, height)


def _stem(file_name: str) -> str:
    """The name without folders and without what follows its last dot."""
    name = file_name.replace("\\", "/").rstrip("/").rpartition("/")[2]
    stem, dot, ending = name.rpartition(".")
    return stem if dot and stem and ending else name


def _categories(path: Path, rows: Sequence[_Category]) -> Categories:
    ids = _ids(path, "categories", "id", [row.id for row in rows]).astype(np.int64)
    _raise_twice(path, "categories", ids)
    order = np.argsort(ids, kind="stable")
    names = [str(ids[i]) if row.name is None else row.name for i, row in enumerate(rows)]
    return Categories(ids[order], tuple(names[i] for i in order))


def _raise_twice(path: Path, group: str, ids: NDArray[Any]) -> None:
    unique, count = np.unique(ids, return_counts=True)
    if (count > 1).any():
        twice = unique[count > 1]
        first, second = np.flatnonzero(ids == twice[0])[:2].tolist()
        raise DataError(
            f"{coco_errors.place(path, group, second)}.id",
            f"{twice[0].item()!r} is the id of {group}[{first}] already",
            f"every id must be unique; {len(twice)} of {len(unique)} are not",
        )


def _ids(path: Path, group: str, field: str, values: list[Any]) -> NDArray[Any]:
    """Ids as one int64 or str array; integral floats are read as integers."""
    kinds = set(map(type, values))
    if kinds <= {str} and kinds:
        return np.array(values, dtype=str)
    if str in kinds:
        first = next(i for i, value in enumerate(values) if type(value) is not type(values[0]))
        raise DataError(
            f"{coco_errors.place(path, group, first)}.{field}",
            f"{values[first]!r}, while record 0 has {values[0]!r}",
            "use either integers or strings for all",
        )
    if float in kinds:
        for i, value in enumerate(values):
            if isinstance(value, float):
                if not value.is_integer():
                    raise DataError(
                        f"{coco_errors.place(path, group, i)}.{field}",
                        f"{value!r} is not a whole number",
                        "ids are integers",
                    )
                values[i] = int(value)
    try:
        return np.array(values, dtype=np.int64)
    except OverflowError:
        first = next(i for i, value in enumerate(values) if not -(2**63) <= value < 2**63)
        raise DataError(
            f"{coco_errors.place(path, group, first)}.{field}",
            f"{coco_errors.short(values[first])} does not fit 64 bits",
            "use smaller ids",
        ) from None


def _boxes(rows: list[Box]) -> NDArray[np.float64]:
    return np.fromiter(chain.from_iterable(rows), dtype=np.float64, count=4 * len(rows)).reshape(
        -1, 4
    )


def _good_boxes(boxes: NDArray[np.float64]) -> NDArray[np.bool_]:
    return np.logical_and(
        (np.abs(boxes) <= joining.MAX_PIXEL).all(axis=1), (boxes[:, 2:] >= 0).all(axis=1)
    )


def _least(column: NDArray[np.int32]) -> int:
    return int(column.min()) if column.size else 0


def _truth_notes(path: Path, rows: _Annotations) -> tuple[Note, ...]:
    found = [
        (
            "area-missing",
            "annotations give no area: width times height is used",
            int(np.isnan(rows.area).sum()),
        ),
        (
            "iscrowd-missing",
            "annotations give no iscrowd: read as 0",
            int((rows.iscrowd < 0).sum()),
        ),
        (
            "image-unlisted",
            "annotations are on images that the file does not list: left out",
            int((rows.image < 0).sum()),
        ),
        (
            "category-unlisted",
            "annotations have a category that the file does not list: left out",
            int(((rows.label < 0) & (rows.image >= 0)).sum()),
        ),
        (
            "id-zero",
            "annotations have the id 0: pycocotools takes one for no match, detmap for an object",
            sum(i == 0 for i in rows.ids)
            if isinstance(rows.ids, list)
            else int(np.count_nonzero(rows.ids == 0)),
        ),
        (
            "id-twice",
            "annotations share their id with another: each is an object",
            _repeats(rows.ids),
        ),
    ]
    return tuple(Note(code, text, count, str(path)) for code, text, count in found if count)


def _repeats(ids: Sequence[Any] | NDArray[np.int64]) -> int:
    """How many ids have occurred before."""
    if isinstance(ids, np.ndarray):
        return int((np.diff(np.sort(ids)) == 0).sum())
    return len(ids) - len(set(ids))


def _check_count(path: Path, rows: Sequence[Any]) -> None:
    if len(rows) > MAX_ROWS:
        raise DataError(str(path), f"{len(rows)} records", f"evaluate at most {MAX_ROWS} at once")


def _raise_first_bad(
    path: Path, group: str, bad: NDArray[np.bool_], rows: Sequence[Any], fields: coco_errors.Fields
) -> None:
    if bad.any():
        row = int(np.argmax(bad))
        raise coco_errors.record_error(
            coco_errors.place(path, group, row), msgspec.structs.asdict(rows[row]), fields
        )


def _bytes(path: Path) -> bytes:
    data = opening.read_bytes(path, times=DECODED, what="decoding the file")
    return data.removeprefix(b"\xef\xbb\xbf")
