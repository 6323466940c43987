"""Reads detection data sets of Hugging Face: ``metadata.jsonl`` of an imagefolder, and Parquet.

``objects`` of an image has the boxes (``bbox``) and classes (``category``, ``categories``, ...), as
an object of lists or a list of objects. Nothing in the files defines the box format: it is left,
top, width and height unless `box_format` says otherwise, and boxes that can only be corners are an
error. A class is a name, or a number whose name is in the schema of the Parquet file (ClassLabel).

Source: documentation of Hugging Face datasets, "Create an image dataset" (object detection) and
"Features"; the key ``huggingface`` of a Parquet schema.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from detmap.annotation_tools import collected_boxes, huggingface_parquet, looks, typed_json
from detmap.annotation_tools.collected_boxes import Boxes
from detmap.annotation_tools.huggingface_parquet import OBJECTS, Record
from detmap.core.adapters import box_conventions
from detmap.core.adapters.joining.image_sizes import Sizes
from detmap.core.adapters.joining.unknown_policy import STRICT, Policy
from detmap.core.adapters.tabular.csv_parquet import spelled
from detmap.core.base import arguments, open_files, unique_keys
from detmap.core.base.open_files import shown
from detmap.core.tables import Detections, Note, Truth
from detmap.errors import DataError, few

SPLITS = ("test", "validation", "val", "valid")  # in the order in which one is chosen
BOX = ("", "bbox", "bboxes", "boxes")
CLASS = ("category", "categories", "categoryid", "label", "labels", "class", "classes", "classid")
SCORE = ("score", "scores", "confidence")
FORM = f"a line is a JSON object with file_name and {OBJECTS} of bbox and categories"
COLUMNS = f"{OBJECTS} has a list bbox and a list categories (or category), as long"
OUTSIDE = 1.0  # pixels that a box may leave its image


@dataclass(frozen=True, slots=True)
class _Files:
    """The files of a split, and the folder of its images."""

    files: list[Path]
    split: str = ""
    folder: Path = field(default_factory=Path)


def _find(path: Path, split: str | None) -> _Files:
    if not path.is_dir():
        if split is not None:
            raise DataError(shown(path), f"split {split!r} of a file", "remove the split")
        return _Files([path], folder=path.absolute().parent)
    splits = looks.huggingface_splits(path)
    chosen = split if split is not None else next((each for each in SPLITS if each in splits), None)
    if chosen is None and len(splits) == 1:
        chosen = next(iter(splits))
    if chosen not in splits:
        what = f"no {looks.METADATA} or Parquet files with {OBJECTS}"
        if splits:
            what = f"no split {chosen}" if chosen else f"several splits: {few(splits)}"
        raise DataError(shown(path), what, "give the split, or the file of one")
    files = splits[chosen]
    return _Files(files, chosen, files[0].absolute().parent)


def read_truth(
    path: Path,
    split: str | None = None,
    box_format: str | None = None,
    image_sizes: Path | None = None,
    roles: Sequence[str] = (),
    attributes: Sequence[str] = (),
) -> Truth:
    """Reads the objects of a file, or of a split of a folder.

    Parameters
    ----------
    path : the file, or the folder
    split : of a folder; default ``test``, ``validation`` or the only one
    box_format : see `box_conventions.FORMATS`; default ``xywh``
    image_sizes : size file; default: columns width and height, or the images
    roles, attributes : names of flags and numbers in ``objects``

    Raises `DataError` for invalid files and boxes, and for boxes that can only be corners.
    """
    found = _find(path, split)
    content = _read(path, found.files, box_format, (*roles, *attributes))
    boxes = content.boxes
    sizes = boxes.complete_sizes(image_sizes, [found.folder])
    notes = _check_format(boxes, sizes) if box_format is None else ()
    truth = boxes.truth(content.names, roles=roles, attributes=attributes)
    if content.names or content.numbers:
        names = content.names or [str(number) for number in sorted(content.numbers)]
        ids = None if content.names else np.array(sorted(content.numbers), dtype=np.int64)
        truth = collected_boxes.with_class_ids(truth, names, ids)
    if content.image_ids:
        ids = np.array([content.image_ids[name] for name in truth.images.files], dtype=np.int64)
        truth = collected_boxes.with_image_ids(truth, ids)
    truth = _with_areas(truth, boxes)
    return replace(truth, split=found.split, notes=(*truth.notes, *notes))


def read_detections(
    path: Path, truth: Truth, box_format: str | None = None, policy: Policy = STRICT
) -> Detections:
    """Reads objects with a score as detections; see `read_truth`."""
    boxes = _read(path, _find(path, None).files, box_format, ()).boxes
    detections = boxes.detections(truth, policy)
    notes = _check_format(boxes, boxes.complete_sizes()) if box_format is None else ()
    return replace(detections, notes=(*detections.notes, *notes))


def _with_areas(truth: Truth, boxes: Boxes) -> Truth:
    """Returns the ground truth with the areas of the objects that have one, as in COCO."""
    given = [each.get("area") for each in boxes.values]
    known = [isinstance(area, int | float) and 0 <= area <= 1e100 for area in given]
    if not any(known):
        return truth
    pairs = zip(given, known, truth.area.tolist(), strict=True)
    areas = np.array([area if is_known else own for area, is_known, own in pairs], dtype=np.float64)
    return replace(truth, attributes={**truth.attributes, "area": areas})


def _check_format(boxes: Boxes, sizes: Sizes) -> tuple[Note, ...]:
    """Returns a note that is shown if the boxes may be corners and no image has a size.

    Raises `DataError` for fractions, and for boxes that leave their images as left, top, width,
    height, and none of which does as corners.
    """
    numbers = boxes.array()
    if len(numbers) and np.abs(numbers).max() <= 1:
        fix = "give the box format, such as normalized xywh (or xywh if boxes are that small)"
        raise DataError(boxes.place(0), "no number of a box is above 1: fractions?", fix)
    width, height = (side[np.array(boxes.image, dtype=np.int64)] for side in sizes)
    x, y, right, bottom = numbers.T
    leaves = (x + right > width + OUTSIDE) | (y + bottom > height + OUTSIDE)
    may_be = (right >= x) & (bottom >= y)
    fits = ~(right > width + OUTSIDE) & ~(bottom > height + OUTSIDE)
    if leaves.any() and may_be.all() and fits.all():
        what = (
            f"{leaves.sum()} of {len(leaves)} boxes leave their image as left, top, width, height"
        )
        fix = "they look like corners: give the box format, xyxy (or xywh if it is that)"
        raise DataError(boxes.place(int(np.argmax(leaves))), what, fix)
    may_be &= np.isnan(width + height)
    text = (
        "boxes are read as left, top, width, height and may be corners, which sizes of the images "
        "would show (--image-sizes, or the box format xyxy)"
    )
    count, total = int(may_be.sum()), (len(may_be),)
    note = Note("boxes-may-be-corners", text, count, boxes.source, (), total, condition="all")
    return (note,)


# --- content --------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Content:
    """The boxes of a split.

    Parameters
    ----------
    boxes : with class names, or numbers as text
    names : of the classes, by number; () if unknown
    is_named : whether classes are names in ``objects``
    numbers : class numbers without names
    image_ids : by file name, if the files have them
    """

    boxes: Boxes
    names: Sequence[str] = ()
    is_named: bool = False
    numbers: set[int] = field(default_factory=set)
    image_ids: dict[str, int] = field(default_factory=dict)


def _read(
    path: Path, files: Sequence[Path], box_format: str | None, more: Sequence[str]
) -> _Content:
    """Returns the content of files; `more` names further columns of objects."""
    content = _Content(Boxes(path, box_conventions.require(box_format or "xywh")))
    for file in files:
        if file.suffix.lower() in looks.PARQUET:
            columns = (*BOX, *CLASS, *SCORE, "area", "crowd", "iscrowd", "difficult", "ignore")
            wanted = {*columns, *(spelled(name) for each in more for name in (each, f"is{each}"))}
            rows, names = huggingface_parquet.read(file, wanted)
            if content.names and names != content.names:
                raise DataError(shown(file), "other classes than in the first file", "check both")
            content.names = names
        for record in rows if file.suffix.lower() in looks.PARQUET else _lines(file):
            _add(content, record)
    if len(set(content.image_ids.values())) < len(content.boxes.files):
        content.image_ids.clear()
    return content


def _lines(file: Path) -> Iterator[Record]:
    """Yields the records of a metadata.jsonl."""
    data = open_files.read_bytes(file, times=typed_json.DECODED).removeprefix(b"\xef\xbb\xbf")
    for number, line in enumerate(data.splitlines(), start=1):
        if not line.strip():
            continue
        where = f"{shown(file)}: line {number}"
        try:
            row = msgspec.json.decode(line, type=dict[str, Any])
            unique_keys.require(line, where)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise DataError(where, f"not a JSON object: {error}", FORM) from None
        key = next((key for key in row if key.endswith("file_name")), "file_name")
        name = row.get(key)
        if not isinstance(name, str):
            raise DataError(f"{where}.{key}", "missing, or not a text", FORM)
        sizes = [huggingface_parquet.side(row, side, where) for side in ("width", "height")]
        yield Record(where, name, None, sizes[0], sizes[1], row.get(OBJECTS, msgspec.UNSET))


def _add(content: _Content, record: Record) -> None:
    """Adds an image and its objects."""
    boxes, where = content.boxes, record.where
    boxes.add_image(record.name, where, record.width, record.height)
    if record.image_id is not None and boxes.files[-1] not in content.image_ids:
        content.image_ids[boxes.files[-1]] = record.image_id
    place = f"{where}.{OBJECTS}"
    columns = _columns(boxes.require(record.objects, place), place)
    if not columns:
        return
    found = [_column(columns, names) for names in (BOX, CLASS, SCORE)]
    for key, wanted in zip(found[:2], ("bbox", "categories"), strict=True):
        if key is None:
            raise DataError(f"{where}.{OBJECTS}.{wanted}", "missing", COLUMNS)
    box_key, class_key, score_key = found
    for i in range(len(columns[str(box_key)])):
        place = f"{where}.{OBJECTS}.{box_key}[{i}]"
        values = {name: column[i] for name, column in columns.items() if _is_value(column[i])}
        score = None if score_key is None else _number(columns[score_key][i], place)
        name = _class(content, columns[str(class_key)][i], f"{where}.{OBJECTS}.{class_key}[{i}]")
        boxes.add(name, _box(columns[str(box_key)][i], place), place, score, values)


def _columns(objects: Any, where: str) -> dict[str, list[Any]]:
    """Returns the lists of ``objects``, which have one length. Raises `DataError` for others."""
    if objects is None or objects == ():
        return {}
    if isinstance(objects, list) and all(isinstance(each, Mapping) for each in objects):
        keys = dict.fromkeys(key for each in objects for key in each)
        return {key: [each.get(key) for each in objects] for key in keys}
    if not isinstance(objects, Mapping):
        raise DataError(where, "neither lists nor records", COLUMNS)
    columns = {key: value for key, value in objects.items() if isinstance(value, list)}
    read = {key: len(value) for key, value in columns.items()}
    if len(set(read.values())) > 1:
        raise DataError(where, f"lists of {few(read.values())} objects: {few(read)}", COLUMNS)
    return columns


def _column(columns: Mapping[str, Any], names: Sequence[str]) -> str | None:
    return next((key for name in names for key in columns if spelled(key) == name), None)


def _is_value(value: Any) -> bool:
    return isinstance(value, bool | int | float | str)


def _class(content: _Content, value: Any, where: str) -> str:
    """Returns the name of a class, or its number as text."""
    if isinstance(value, str):
        if (content.names and value not in content.names) or content.numbers:
            fix = "write names or numbers alone; the schema lists the names, if it has any"
            raise DataError(where, f"no class {value!r:.60}", fix)
        content.is_named = True
        return value
    if not isinstance(value, int) or isinstance(value, bool) or not abs(value) < 2**63:
        raise DataError(where, f"{value!r:.60} is not a class", "write a name or a whole number")
    if not content.names:
        if content.is_named:
            raise DataError(where, f"class {value} among names", "write names or numbers alone")
        content.numbers.add(value)
        return str(value)
    if not 0 <= value < len(content.names):
        raise DataError(where, f"no class {value}", f"the schema names {len(content.names)}")
    return content.names[value]


def _box(value: Any, where: str) -> list[float]:
    if not isinstance(value, list) or len(value) != 4:
        raise DataError(where, f"{value!r:.60} is not a box", "write four numbers")
    return [_number(each, where) for each in value]


def _number(value: Any, where: str) -> float:
    return arguments.number(where, value, "write a number", what=" is not a finite number")
