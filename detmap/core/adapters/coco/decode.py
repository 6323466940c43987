r"""The reference reader of COCO JSON: reads all valid files and reports all errors.

msgspec decodes a file into typed records. A rejected file is read again with the standard library
to find the exact error. Invalid UTF-8 and unpaired surrogates (``\ud800``) are errors, also in
unused fields.

Source: RFC 8259, sections 8.1 and 8.2, and the COCO data format (cocodataset.org).
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from detmap.core.adapters.coco import ids as coco_ids
from detmap.core.adapters.coco import record_errors, tool_results
from detmap.core.adapters.coco.ids import Id, Ids
from detmap.core.adapters.coco.scan_columns import Segmentations
from detmap.core.adapters.coco.tool_results import DECODED as DECODED
from detmap.core.adapters.joining import image_names, join
from detmap.core.base import arguments
from detmap.core.base.flat_rows import first_true
from detmap.core.tables import MAX_ROWS, Categories, Images
from detmap.core.tables.grouping import positions
from detmap.errors import DataError, counted

ClassId = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
Box = tuple[float, float, float, float]
NO_BOX: Box = (0.0, 0.0, 0.0, 0.0)

REFUSALS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class Image(msgspec.Struct, gc=False):
    """A record of ``images``; the two lists are for LVIS, the last one for CrowdPose."""

    id: Id
    file_name: str | None = None
    width: float | None = None
    height: float | None = None
    neg_category_ids: list[ClassId] | None = None
    not_exhaustive_category_ids: list[ClassId] | None = None
    crowdIndex: float | None = None  # noqa: N815


class Category(msgspec.Struct, gc=False):
    """A record of ``categories``; the frequency is for LVIS."""

    id: int | float
    name: str | None = None
    frequency: str | None = None


class _Annotation(msgspec.Struct, gc=False):
    image_id: Id
    category_id: int | float
    bbox: Box
    area: float | None = None
    iscrowd: int | float | bool | None = None
    ignore: Any = None
    id: Id | None = None


class _Boxless(_Annotation, gc=False):
    bbox: Box | None = None  # type: ignore[assignment]


class _Instances(msgspec.Struct, gc=False):
    images: list[Image]
    annotations: list[_Annotation]
    categories: list[Category]
    licenses: msgspec.Raw = msgspec.Raw(b"")


class _BoxlessInstances(_Instances, gc=False):
    annotations: list[_Boxless]  # type: ignore[assignment]


class _Detection(msgspec.Struct, gc=False):
    image_id: Id
    category_id: Id
    bbox: Box
    score: float


class _Unscored(_Detection, gc=False):
    score: float | None = None  # type: ignore[assignment]


class _Results(msgspec.Struct, gc=False):
    annotations: list[_Detection]


class Annotations(NamedTuple):
    """The annotations of an instances file as columns.

    Parameters
    ----------
    image, label : (n,) int32 positions; -1 for unknown ids
    boxes : (n, 4) float64, zeros if missing
    area : (n,) float64, NaN if missing
    iscrowd : (n,) int8, -1 if missing
    ids : the ids of the annotations that have one
    odd_flags : number of flags other than 0 and 1, read as 1
    ignore : (n,) bool, LVIS's ignore flag; None if no object has it
    n_boxless : number of annotations without a box
    """

    image: NDArray[np.int32]
    label: NDArray[np.int32]
    boxes: NDArray[np.float64]
    area: NDArray[np.float64]
    iscrowd: NDArray[np.int8]
    ids: Sequence[Any] | NDArray[np.int64]
    odd_flags: int = 0
    ignore: NDArray[np.bool_] | None = None
    n_boxless: int = 0


class Instances(NamedTuple):
    """The tables and records of an instances file; the fast reader's segmentations, on request."""

    images: Images
    categories: Categories
    annotations: Annotations
    image_records: list[Image]
    category_records: list[Category]
    masks: Segmentations | None = None


class Scored(NamedTuple):
    """The records of a results file as columns.

    Parameters
    ----------
    image_ids, category_ids : n each; boxes : (n, 4) float64; score : (n,) float64
    group : "annotations" if the list is a field of an object, else ""
    scored : False if no record has a score; then all are 1
    """

    image_ids: Ids
    category_ids: Ids
    boxes: NDArray[np.float64]
    score: NDArray[np.float64]
    group: str
    scored: bool = True


Boxes = Literal["required", "optional"]
"""Whether every object has to have a box, or shapes will tell where it is."""


def instances(path: Path, boxes_are: Boxes = "required") -> Instances:
    """Reads an instances file."""
    data = tool_results.read_bytes(path)
    kind = _Instances if boxes_are == "required" else _BoxlessInstances
    expected = record_errors.INSTANCES if boxes_are == "required" else record_errors.BOXLESS
    try:
        file = msgspec.json.decode(data, type=kind)
    except REFUSALS as error:
        raise record_errors.explain(path, data, expected, error) from None
    _require_utf8(path, data, expected)
    lists: dict[str, Any] = {
        "images": file.images,
        "annotations": file.annotations,
        "categories": file.categories,
    }
    record_errors.require_once(path, data, expected, least(lists, bytes(file.licenses)))
    file.licenses = msgspec.Raw(b"")  # it keeps all data
    del data
    images = image_table(path, file.images)
    categories = category_table(path, file.categories)
    rows = file.annotations
    if rows and not file.images:
        what = f"an empty list, but the file has {counted(len(rows), 'annotation')}"
        raise DataError(f"{path}: images", what, "list the images, with the ids of the annotations")
    _check_count(path, rows)
    boxes = _boxes([row.bbox or NO_BOX for row in rows])
    _raise_first_bad(path, "annotations", ~_good_boxes(boxes), rows, expected[1]["annotations"])
    area = np.array([np.nan if row.area is None else row.area for row in rows], dtype=np.float64)
    bad = ~(np.isfinite(area) & (area >= 0)) & np.array(
        [row.area is not None for row in rows], dtype=bool
    )
    _raise_first_bad(path, "annotations", bad, rows, expected[1]["annotations"])
    crowd, odd_flags = _flags(path, rows)
    image_ids = coco_ids.read(path, "annotations", "image_id", [row.image_id for row in rows])
    category_ids = coco_ids.integers(
        path, "annotations", "category_id", [row.category_id for row in rows]
    )
    if len(rows) and len(images) and isinstance(image_ids, list) != (images.ids.dtype.kind == "U"):
        raise DataError(
            f"{path}: annotations[0].image_id",
            f"{rows[0].image_id!r} where images[0].id is {images.ids[0].item()!r}",
            "write integers or strings in both",
        )
    annotations = Annotations(
        join.places(images.ids, image_ids),
        positions(categories.ids, category_ids),
        boxes,
        area,
        crowd,
        [row.id for row in rows if row.id is not None],
        odd_flags,
        _ignored(path, rows),
        sum(row.bbox is None for row in rows),
    )
    return Instances(images, categories, annotations, file.images, file.categories)


def results(path: Path, data: bytes) -> Scored:
    """Reads results from plain JSON."""
    try:
        file: list[_Detection] | _Results = msgspec.json.decode(
            data, type=list[_Detection] | _Results
        )
    except REFUSALS as error:
        unscored = _without_scores(data)
        if unscored is None:
            raise record_errors.explain(path, data, record_errors.RESULTS, error) from None
        file = unscored
    _require_utf8(path, data, record_errors.RESULTS)
    rows = file.annotations if isinstance(file, _Results) else file
    scored = not rows or rows[0].score is not None
    record_errors.require_once(path, data, record_errors.RESULTS, least({"annotations": rows}))
    del data
    _check_count(path, rows)
    group = "annotations" if isinstance(file, _Results) else ""
    image_ids = coco_ids.read(path, group, "image_id", [row.image_id for row in rows])
    category_ids = coco_ids.read(path, group, "category_id", [row.category_id for row in rows])
    values = (row.score if scored else 1.0 for row in rows)
    score = np.fromiter(values, dtype=np.float64, count=len(rows))
    boxes = _boxes([row.bbox for row in rows])
    fields = {k: v for k, v in record_errors.DETECTION.items() if scored or k != "score"}
    _raise_first_bad(path, group, ~(_good_boxes(boxes) & np.isfinite(score)), rows, fields)
    return Scored(image_ids, category_ids, boxes, score, group, scored)


def _without_scores(data: bytes) -> list[Any] | None:
    """Returns the records of a list in which none has a score; None for any other file."""
    try:
        rows = msgspec.json.decode(data, type=list[_Unscored])
    except REFUSALS:
        return None
    return rows if rows and all(row.score is None for row in rows) else None


def least(lists: Mapping[str, Sequence[Any]], unread: bytes = b"") -> dict[str, int]:
    """Returns lower bounds of how often each key occurs in a file."""
    counts = dict.fromkeys(lists, 1)
    for rows in lists.values():
        for name in rows[0].__struct_fields__ if rows else ():
            n = len(rows) - field(rows, name).count(None)
            counts[name] = counts.get(name, 0) + n
    return {name: n + unread.count(b'"%s"' % name.encode()) for name, n in counts.items()}


def field(rows: Iterable[Any], name: str) -> list[Any]:
    """Returns one field of all records."""
    return list(map(attrgetter(name), rows))


# --- columns --------------------------------------------------------------------------------------


def image_table(path: Path, rows: Sequence[Image]) -> Images:
    """Returns images by ascending id; sides that are not above 0 are unknown."""
    given = coco_ids.read(path, "images", "id", field(rows, "id"))
    if isinstance(given, list):
        coco_ids.check_stored(path, given)
    ids = np.array(given, dtype=str if isinstance(given, list) else np.int64)
    coco_ids.refuse_twice(path, "images", ids)
    order = np.argsort(ids, kind="stable")
    # Of None an array makes NaN.
    sides = np.array([field(rows, "width"), field(rows, "height")], dtype=np.float64)[:, order]
    sides[~(sides > 0)] = np.nan
    width, height = np.ascontiguousarray(sides)
    names = field(rows, "file_name")
    image_names.require_visible(
        (name or None for name in names),
        lambda i: f"{record_errors.place(path, 'images', i)}.file_name",
    )
    files = tuple([names[i] or "" for i in order.tolist()])
    stems = tuple(map(file_stem, files))
    crowding = np.array(field(rows, "crowdIndex"), dtype=np.float64)[order]
    attributes = {} if np.isnan(crowding).all() else {"crowdIndex": crowding}
    return Images(
        ids[order], stems, width, height, files if any(stems) else (), attributes=attributes
    )


def category_table(path: Path, rows: Sequence[Category]) -> Categories:
    """Returns categories by ascending id; a missing name is the id."""
    ids = coco_ids.integers(path, "categories", "id", [row.id for row in rows])
    coco_ids.refuse_twice(path, "categories", ids)
    image_names.require_visible(
        (row.name for row in rows), lambda i: f"{record_errors.place(path, 'categories', i)}.name"
    )
    order = np.argsort(ids, kind="stable")
    names = [str(ids[i]) if row.name is None else row.name for i, row in enumerate(rows)]
    return Categories(ids[order], tuple(names[i] for i in order))


def file_stem(file_name: str) -> str:
    """Returns a file name without folders and suffix."""
    name = file_name
    if "/" in name or "\\" in name:
        name = name.replace("\\", "/").rstrip("/").rpartition("/")[2]
    stem, dot, ending = name.rpartition(".")
    return stem if dot and stem and ending else name


def _ignored(path: Path, rows: Sequence[_Annotation]) -> NDArray[np.bool_] | None:
    """Returns each flag, false if missing; None if no object has it."""
    given = [0 if row.ignore is None else row.ignore for row in rows]
    flags = [arguments.flag(value) for value in given]
    if None in flags:
        row = flags.index(None)
        where = f"{record_errors.place(path, 'annotations', row)}.ignore"
        raise DataError(
            where, f"{record_errors.short(given[row])} is not a flag", arguments.FLAG_FIX
        )
    return np.array(flags, dtype=bool) if any(flags) else None


def _flags(path: Path, rows: Sequence[_Annotation]) -> tuple[NDArray[np.int8], int]:
    """Returns each iscrowd as 0 or 1, -1 if missing, and the number of other values.

    pycocotools evaluates such a value as a truth value and as a byte. It is an error if the two
    differ, else it is read as 1.
    """
    given = [row.iscrowd for row in rows]
    flags = np.array([-1 if flag is None else bool(flag) for flag in given], dtype=np.int8)
    odd = [i for i, flag in enumerate(given) if flag is not None and flag not in (0, 1)]
    for i in odd:
        if not 1 <= given[i] < 256:  # type: ignore[operator]
            raise DataError(
                f"{record_errors.place(path, 'annotations', i)}.iscrowd",
                f"{record_errors.short(given[i])} is neither 0 nor 1",
                "0 or 1, or leave it out",
            )
    return flags, len(odd)


def _boxes(rows: list[Box]) -> NDArray[np.float64]:
    return np.fromiter(chain.from_iterable(rows), dtype=np.float64, count=4 * len(rows)).reshape(
        -1, 4
    )


def _good_boxes(boxes: NDArray[np.float64]) -> NDArray[np.bool_]:
    return np.logical_and(
        (np.abs(boxes) <= join.MAX_PIXEL).all(axis=1), (boxes[:, 2:] >= 0).all(axis=1)
    )


def _check_count(path: Path, rows: Sequence[Any]) -> None:
    if len(rows) > MAX_ROWS:
        raise DataError(str(path), f"{len(rows)} records", f"evaluate at most {MAX_ROWS} at once")


def _raise_first_bad(
    path: Path,
    group: str,
    bad: NDArray[np.bool_],
    rows: Sequence[Any],
    fields: record_errors.Fields,
) -> None:
    if (row := first_true(bad)) is not None:
        raise record_errors.record_error(
            record_errors.place(path, group, row), msgspec.structs.asdict(rows[row]), fields
        )


def _require_utf8(path: Path, data: bytes, expected: record_errors.Expected) -> None:
    """Rejects invalid UTF-8, also in unused fields."""
    if data.isascii():
        return
    try:
        data.decode()
    except UnicodeDecodeError as error:
        raise record_errors.explain(path, data, expected, error) from None
