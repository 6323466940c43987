"""Loose readers: files that mean something else than they should, as raw rows.

The ordinary reader is tried first. If it refuses a file or drops rows, a COCO results file and
VOC's text are read once more: ids may be unknown, boxes of any sign, images named by text.
"""

import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from detmap.analysis.doctor import shaped_rows, wide_reading
from detmap.analysis.doctor.raw_rows import Key, Raw, from_table, keyed
from detmap.analysis.doctor.wide_reading import Reading
from detmap.core.adapters import registry
from detmap.core.adapters import text_fields as text
from detmap.core.adapters.coco import scan_json as coco_scan
from detmap.core.adapters.coco.decode import DECODED, REFUSALS, Box
from detmap.core.adapters.in_memory.python_objects import kind_of
from detmap.core.adapters.voc.devkit import DETECTION_FILE
from detmap.core.base import arguments as given
from detmap.core.base import open_files as opening
from detmap.core.base.open_files import shown
from detmap.core.tables import Detections, Truth
from detmap.errors import DataError

Given = Detections | str | Path | Mapping[str, Any] | Sequence[Mapping[str, Any]]
Name = int | float | str | None


class _Row(msgspec.Struct, gc=False):
    bbox: Box
    score: float
    image_id: Name = None
    file_name: str | None = None
    category_id: Name = None
    category_name: str | None = None
    category: Name = None


class _Rows(msgspec.Struct, gc=False):
    annotations: list[_Row]


def read(reading: Reading, truth: Truth) -> Raw:
    """Detections of any kind as raw rows: a path; a table; a list of COCO records; or a dict of the
    arrays ``image_id``, ``category_id``, ``boxes`` (x, y, width, height) and ``score``.

    Raises
    ------
    DataError : what no reader can make rows of
    """
    detections: Given = reading.detections
    if isinstance(detections, Detections):
        return from_table(detections)
    kind = "" if isinstance(detections, str | Path) else kind_of(detections)
    if kind == "COCO" or (kind == "json" and isinstance(detections, Mapping)):
        dataset: Any = getattr(detections, "dataset", detections)
        detections = dataset.get("annotations", ())
    elif kind in ("file", "images", "array") or (kind == "table" and not _is_arrays(detections)):
        with suppress(DataError):
            found = reading.strictly(truth)
            if whole(found):
                return from_table(found)
        return wide_reading.read_objects(truth, reading)
    if isinstance(detections, Mapping):
        return _arrays(detections)
    if isinstance(detections, Sequence) and not isinstance(detections, str):
        records = list(detections)
        dicts = all(isinstance(row, Mapping) for row in records)
        raw = _shaped(records, truth, "detections") if dicts else None
        if raw is not None:
            return raw
        try:
            return _records(msgspec.convert(list(detections), list[_Row]), "detections")
        except msgspec.ValidationError as error:
            raise _strange("detections", str(error)) from None
    path = registry.checked_path(detections)
    with suppress(DataError):
        reading.strictly(truth)
    table = reading.table
    shaped = truth.shapes is not None and not path.is_dir()
    raw = _shaped(shaped_rows.records_of(path), truth, shown(path)) if shaped else None
    if raw is not None:
        return raw
    if table is not None and whole(table):
        return from_table(table)
    raw = None if reading.class_names is not None else _loosely(path, truth)
    if raw is None:
        raw = wide_reading.read(truth, reading)
    if raw is not None:
        return raw
    if table is None:
        raise reading.error or _strange(shown(path), "cannot be read")
    return from_table(table)


def _shaped(given: Any, truth: Truth, source: str) -> Raw | None:
    """The rows of COCO results with the shapes that the ground truth has; None also if a box is not
    four numbers, which the other readers refuse.
    """
    reader = shaped_rows.reader_of(truth.shapes)
    if reader is None or not given or not any(row.get(reader.field) for row in given):
        return None
    values = [(row.get(reader.field), row.get("bbox")) for row in given]
    if not _are_boxes([box for _, box in values if box is not None]):
        return None
    try:
        boxed = [{**row, "bbox": shaped_rows.NOTHING} for row in given]
        raw = _records(msgspec.convert(boxed, list[_Row]), source)
    except (msgspec.ValidationError, DataError):
        return None
    return shaped_rows.with_values(raw, values, reader)


def _are_boxes(given: list[Any]) -> bool:
    """Whether each is four numbers."""
    try:
        return not given or np.array(given, dtype=np.float64).shape == (len(given), 4)
    except (TypeError, ValueError, OverflowError):
        return False


def _is_arrays(thing: Any) -> bool:
    return isinstance(thing, Mapping) and {"boxes", "category_id"} <= thing.keys()


def whole(detections: Detections) -> bool:
    """Whether an ordinary reader took every row, and every id as it is; a COCO result may name its
    image in ``file_name`` too.
    """
    codes = [note.code for note in detections.notes]
    return not any(code.endswith("-unknown") or code == "image-joined" for code in codes)


def _loosely(path: Path, truth: Truth) -> Raw | None:
    """The rows of a file that is not read strictly; None where it is of no known kind."""
    if path.is_dir():
        return _texts(path, truth)
    images, classes = _Codes(), _Codes()
    columns = coco_scan.scan_detections(path, images, classes)
    if columns is not None:
        image, label = images.sorted(columns.image), classes.sorted(columns.category)
        boxes, score = columns.boxes, columns.value
        keys = images.keys, classes.keys
        return Raw(*keys, image, label, boxes, score, "xywh", source=shown(path))
    try:
        data = opening.read_bytes(path, times=DECODED)
        file: list[_Row] | _Rows = msgspec.json.decode(data, type=list[_Row] | _Rows)
        return _records(file.annotations if isinstance(file, _Rows) else file, shown(path))
    except (*REFUSALS, DataError):
        return None


class _Codes:
    """Numbers whole ids as they come: for a scanner, which asks where an id is in the ground
    truth.
    """

    def __init__(self) -> None:
        self.places: dict[int, int] = {}
        self._one_at_a_time = threading.Lock()

    def __call__(self, ids: NDArray[Any]) -> NDArray[Any]:
        unique, inverse = np.unique(ids, return_inverse=True)
        with self._one_at_a_time:
            codes = [self.places.setdefault(i, len(self.places)) for i in unique.tolist()]
        return np.array(codes, dtype=np.int32)[inverse]

    @property
    def keys(self) -> tuple[int, ...]:
        """The ids, ascending."""
        return tuple(sorted(self.places))

    def sorted(self, codes: NDArray[Any]) -> NDArray[np.int32]:
        """Codes that count the ids in their order."""
        rank = np.empty(len(self.places), dtype=np.int32)
        rank[[self.places[key] for key in self.keys]] = np.arange(len(self.places), dtype=np.int32)
        return np.asarray(rank[codes])


def _records(rows: list[_Row], source: str) -> Raw:
    images, image, files = _images(rows)
    named = [_first(row.category_id, row.category_name, row.category) for row in rows]
    classes, label = keyed(named)
    boxes = np.array([row.bbox for row in rows], dtype=np.float64).reshape(-1, 4)
    score = np.fromiter((row.score for row in rows), dtype=np.float64, count=len(rows))
    return Raw(images, classes, image, label, boxes, score, "xywh", source=source, files=files)


def _images(rows: list[_Row]) -> tuple[tuple[Key, ...], NDArray[np.int32], tuple[str, ...]]:
    """The keys of images, which of them each row names, and the file names beside ids."""
    pairs = [(row.image_id, row.file_name) for row in rows]
    if not all(key is not None and name for key, name in pairs):
        return *keyed([_first(*pair) for pair in pairs]), ()
    place: dict[tuple[Name, Name], int] = {}
    code = np.array([place.setdefault(pair, len(place)) for pair in pairs], dtype=np.int32)
    keys, key_of = keyed([key for key, _ in place])
    images = tuple(keys[i] for i in key_of.tolist())
    return images, code, tuple(str(name) for _, name in place)


def _first(*values: Name) -> Name:
    known = next((value for value in values if value is not None), None)
    if known is None:
        raise _strange("detections", "a record names no image or no class")
    return known


def _strange(where: str, what: str) -> DataError:
    return DataError(where, what, "a record has image_id, category_id, bbox and score")


def _arrays(columns: Mapping[str, ArrayLike]) -> Raw:
    where = "detection arrays"
    lacking = [
        name for name in ("image_id", "category_id", "boxes", "score") if name not in columns
    ]
    if lacking:
        fix = "give image_id, category_id, boxes and score"
        raise DataError(where, f"without {', '.join(lacking)}", fix)
    images, image = keyed(given.ids(f"{where}: image_id", columns["image_id"]).tolist())
    classes, label = keyed(given.ids(f"{where}: category_id", columns["category_id"]).tolist())
    boxes = given.numbers(f"{where}: boxes", columns["boxes"])
    boxes = boxes.reshape(0, 4) if boxes.size == 0 else boxes
    score = given.numbers(f"{where}: score", columns["score"])
    if boxes.shape != (len(image), 4) or score.shape != image.shape or label.shape != image.shape:
        raise DataError(where, "columns of different lengths", "give one row a box")
    return Raw(images, classes, image, label, boxes, score, "xywh", source=where)


def _texts(path: Path, truth: Truth) -> Raw | None:
    """A folder of VOC's text, also with classes that the ground truth does not have."""
    names: list[str] = []
    stems: list[str] = []
    numbers: list[list[float]] = []
    known = sorted(truth.categories.names, key=len, reverse=True)
    for file in sorted(path.iterdir()):
        matched = DETECTION_FILE.fullmatch(file.name)
        if not matched:
            continue
        tail = file.name.split("_det_", 1)[1].removesuffix(".txt")
        name = matched["name"]
        if truth.split and tail.startswith(f"{truth.split}_"):
            name = tail.removeprefix(f"{truth.split}_")
        name = next((each for each in known if tail.endswith(f"_{each}")), name)
        for line, words in text.lines(file):
            try:
                row = text.numbers(words[1:])
            except ValueError:
                row = []
            if len(row) != 5:
                what = f"not image score x1 y1 x2 y2: {' '.join(words)[:60]!r}"
                raise DataError(f"{file}: line {line}", what, "write six columns")
            names.append(name)
            stems.append(words[0])
            numbers.append(row)
    if not names:
        return None
    images, image = keyed(stems)
    classes, label = keyed(names)
    columns = np.array(numbers, dtype=np.float64)
    boxes, score = np.ascontiguousarray(columns[:, 1:]), np.ascontiguousarray(columns[:, 0])
    return Raw(images, classes, image, label, boxes, score, "voc", "stem", shown(path))
