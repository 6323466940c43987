"""Sources of a `COCO`: columns at once, dicts on first access."""

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray
from pycocotools import mask
from pycocotools.coco import COCO

from detmap.compat import shape_columns
from detmap.compat.annotation_rows import MOST_CATEGORIES, MOST_EXACT, Rows, Unusual, good_boxes
from detmap.compat.shape_columns import FIELDS, HeldText, Sizes
from detmap.core.adapters.coco import scan_json
from detmap.core.adapters.coco.scan_columns import Columns as ScannedColumns
from detmap.core.base import memory, open_files
from detmap.core.base.immutable import own
from detmap.core.base.locks import cached_property
from detmap.core.base.open_files import parse_json
from detmap.core.tables.grouping import Positions
from detmap.errors import DataError

Tree = dict[str, Any]


SCORE = b'"score"'
"""A key; a plain file has no escapes, so whoever has it has its bytes."""
LEAST_SIZE = 1 << 10
"""Bytes; of smaller files dicts are made at once."""


class Converted(NamedTuple):
    """Annotations whose segmentations an evaluation of masks turned into run lengths.

    Parameters
    ----------
    image_ids, category_ids : of the evaluation; None for all categories
    sizes : of the images at that time
    """

    image_ids: Sequence[Any]
    category_ids: Sequence[Any] | None
    sizes: Sizes

    def concerns(self, rows: Rows) -> NDArray[np.bool_]:
        """Whether each of n rows was evaluated."""
        chosen = np.ones(len(rows), dtype=bool)
        for wanted, ids, code in (
            (self.image_ids, rows.image_ids, rows.image),
            (self.category_ids, rows.category_ids, rows.category),
        ):
            if wanted is not None:
                some = set(wanted)
                chosen &= np.array([each in some for each in ids], dtype=bool)[code]
        return chosen

    def convert(self, annotations: Sequence[Tree]) -> None:
        """Does what COCOeval._prepare in pycocotools' cocoeval.py does to the records."""
        official = COCO()
        official.imgs = {key: {"height": h, "width": w} for key, (h, w) in self.sizes.items()}
        images = set(self.image_ids)
        categories = None if self.category_ids is None else set(self.category_ids)
        for each in annotations:
            if each["image_id"] in images and (
                categories is None or each["category_id"] in categories
            ):
                each["segmentation"] = official.annToRLE(each)


class Instances:
    """An instances file that the compiled scanner read.

    Parameters
    ----------
    text : of the file
    rows : its annotations
    texts : of its lists ``images`` and ``categories``
    image_ids : in file order, without duplicates
    """

    def __init__(
        self, text: bytes, rows: Rows, texts: dict[str, bytes], image_ids: list[int]
    ) -> None:
        self.text, self.rows, self.texts, self.image_ids = text, rows, texts, image_ids
        self.converted: list[Converted] = []
        self._shaped: dict[str, tuple[NDArray[np.float64], Rows | None]] = {}

    def shaped(self, kind: str, sizes: Sizes) -> Rows | None:
        """The annotations with the shapes of an iouType, polygons drawn on images of these sizes;
        None if only pycocotools can read them.
        """
        size = self._sizes(sizes) if kind == "segm" else np.zeros((0, 2))
        if size is None:
            return None
        if kind not in self._shaped or not np.array_equal(self._shaped[kind][0], size):
            file = HeldText("annotations", self.text)
            found = shape_columns.object_columns(file, kind, self.rows, size)
            self._shaped[kind] = size, found
            if len(self.text) > scan_json.HELD:
                memory.give_back()  # what reading and drawing took
        return self._shaped[kind][1]

    def _sizes(self, sizes: Sizes) -> NDArray[np.float64] | None:
        """(n, 2) the size of each annotation's mask: that of its image now, or when the first
        evaluation made run lengths of it; None where only pycocotools can draw it.
        """
        size = shape_columns.sizes_of(self.rows, sizes)
        if size is None:
            return None
        for earlier in reversed(self.converted):
            before = shape_columns.sizes_of(self.rows, earlier.sizes)
            if before is not None and not np.array_equal(before, size):
                size = np.where(earlier.concerns(self.rows)[:, None], before, size)
        return size

    def convert_later(self, converted: Converted) -> None:
        """Notes what an evaluation of masks made of the records, for dicts that are made later."""
        if self.converted[-1:] != [converted]:
            self.converted.append(converted)

    @cached_property
    def images(self) -> tuple[Tree, ...]:
        """The records of the images."""
        return tuple(parse_json(self.texts["images"], "images"))

    @cached_property
    def categories(self) -> tuple[Tree, ...]:
        """The records of the categories."""
        return tuple(parse_json(self.texts["categories"], "categories"))

    @property
    def info(self) -> Any:
        """The ``info`` that results copy."""
        info = msgspec.json.decode(self.text, type=_Info).info
        return {} if info is msgspec.UNSET else info

    def without_annotations(self) -> Tree:
        """The dataset without annotations, for `loadRes`."""
        return {"info": self.info, "images": list(self.images), "categories": list(self.categories)}

    def dataset(self) -> Tree:
        """All dicts, those of images and categories being the ones that were handed out before."""
        tree: Tree = parse_json(self.text, "annotations")
        for each in self.converted:
            each.convert(tree["annotations"])
        return tree | {"images": list(self.images), "categories": list(self.categories)}


class Edited(NamedTuple):
    """A dataset of dicts, used like `Instances`."""

    images: list[Tree]
    info: Any

    @property
    def image_ids(self) -> list[Any]:
        """The ids without duplicates."""
        return list({image["id"]: None for image in self.images})


class Head(NamedTuple):
    """What results copy from their ground truth: images, info, and copies of the categories."""

    truth: Instances | Edited
    categories: Sequence[Tree]


class Results:
    """Detections from a file or an array.

    Parameters
    ----------
    head : of the ground truth
    rows : the detections
    text : of the file; None if the rows hold everything
    keys : of a record, in their order
    shape : the iouType of records without boxes; "" if they have boxes
    scalars : whether numbers are NumPy's, as pycocotools takes them from an array
    """

    def __init__(
        self,
        head: Head,
        rows: Rows,
        text: bytes | None = None,
        keys: Sequence[str] = ("image_id", "bbox", "score", "category_id"),
        shape: str = "",
        scalars: bool = False,
    ) -> None:
        self.head, self.rows, self.text, self.keys = head, rows, text, keys
        self.shape, self.scalars = shape, scalars

    def shaped(self, kind: str) -> Rows | None:
        """As `Instances.shaped`."""
        if kind == "segm" and any(None in size for size in sizes_of(self.images).values()):
            return None  # pycocotools reads the sizes of images with detections
        if self.shape:
            return self.rows if self.shape == kind else None
        if self.text is None or f'"{FIELDS[kind]}"'.encode() not in self.text:
            return None
        return shape_columns.result_columns(self.text, kind, self.rows)

    @property
    def images(self) -> Sequence[Tree]:
        """The image records of the ground truth."""
        return self.head.truth.images

    @property
    def categories(self) -> Sequence[Tree]:
        """Copies of the category records of the ground truth."""
        return self.head.categories

    @property
    def image_ids(self) -> list[Any]:
        """The image ids of the ground truth, without duplicates."""
        return self.head.truth.image_ids

    def dataset(self) -> Tree:
        """All dicts, with what loadRes adds."""
        annotations = self._records() if self.text is None else parse_json(self.text, "results")
        if self.shape:
            _complete(annotations, self.shape)
        for number, annotation in enumerate([] if self.shape else annotations, start=1):
            left, top, width, height = annotation["bbox"]
            right, bottom = left + width, top + height
            annotation.setdefault(
                "segmentation", [[left, top, left, bottom, right, bottom, right, top]]
            )
            annotation.update(area=width * height, id=number, iscrowd=0)
        return {
            "info": self.head.truth.info,
            "images": list(self.images),
            "categories": list(self.categories),
            "annotations": annotations,
        }

    def _records(self) -> list[Tree]:
        rows = self.rows
        image_ids, category_ids = (
            np.array(rows.image_ids)[rows.image],
            np.array(rows.category_ids)[rows.category],
        )
        columns = {
            "image_id": image_ids.tolist(),
            "bbox": [*map(list, rows.boxes)] if self.scalars else rows.boxes.tolist(),
            "score": [*rows.score] if self.scalars else rows.score.tolist(),
            "category_id": category_ids.tolist(),
        }
        each = zip(*(columns[key] for key in self.keys), strict=True)
        return [dict(zip(self.keys, values, strict=True)) for values in each]


def _complete(annotations: Sequence[Tree], kind: str) -> None:
    """Adds what loadRes adds to results without boxes.

    Source: COCO.loadRes in pycocotools' coco.py.
    """
    for number, annotation in enumerate(annotations, start=1):
        if kind == "segm":
            annotation["area"] = mask.area(annotation["segmentation"])
            if "bbox" not in annotation:
                annotation["bbox"] = mask.toBbox(annotation["segmentation"])
            annotation.update(id=number, iscrowd=0)
        else:
            x, y = annotation["keypoints"][0::3], annotation["keypoints"][1::3]
            left, right, top, bottom = np.min(x), np.max(x), np.min(y), np.max(y)
            annotation["area"] = (right - left) * (bottom - top)
            annotation["id"] = number
            annotation["bbox"] = [left, top, right - left, bottom - top]


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """Annotations of a caller that has them as columns.

    Parameters
    ----------
    rows : the annotations
    images, categories : their records
    make_dataset : creates the dataset with the same annotations as dicts
    """

    rows: Rows
    images: Sequence[Tree]
    categories: Sequence[Tree]
    make_dataset: Callable[[], Tree]

    @property
    def image_ids(self) -> list[Any]:
        """The image ids, without duplicates."""
        return list({image["id"]: None for image in self.images})

    def dataset(self) -> Tree:
        """All dicts."""
        return self.make_dataset()


def sizes_of(images: Iterable[Tree]) -> Sizes:
    """Returns height and width by image id."""
    return {each["id"]: (each.get("height"), each.get("width")) for each in images}


def open_instances(path: Any) -> Instances | None:
    """Opens a large plain instances file with all fields that pycocotools reads; else None."""
    texts: dict[str, bytes] = {}
    listed: dict[str, list[int]] = {}

    def read_list(name: str) -> Callable[[bytes], scan_json.Locate]:
        def read(text: bytes) -> scan_json.Locate:
            try:
                listed[name] = [
                    record.id for record in msgspec.json.decode(text, type=list[_Record])
                ]
                ids = np.array(sorted(set(listed[name])), dtype=np.int64)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, OverflowError):
                raise scan_json.HandBack from None
            texts[name] = bytes(text)
            return Positions(ids) if name == "images" else _identity_codes

        return read

    text = _text_of(path)
    if text is None or open_files.has(text, SCORE):  # columns of objects have no scores
        return None
    try:
        columns = scan_json.scan_instances(
            HeldText(path, text), {name: read_list(name) for name in ("images", "categories")}
        )
    except ValueError:
        return None
    wanted = scan_json.key("area") | scan_json.key("iscrowd") | scan_json.key("id")
    if columns is None or not (columns.seen & wanted == wanted).all():
        return None
    if not _exact(columns.value):
        return None
    image_ids = list(dict.fromkeys(listed["images"]))
    rows = Rows(
        sorted(image_ids),
        _codes(columns.category),
        columns.image,
        columns.category,
        columns.boxes,
        columns.value,
        np.zeros(len(columns.seen)),
        (columns.seen & scan_json.key("crowd")) != 0,
        columns.number,
    )
    return None if rows.ids_twice() else Instances(text, rows, texts, image_ids)


def open_results(path: str, image_ids: list[Any], head: Head) -> Results | None:
    """Opens a large plain file of detections on known images; None for any other file."""
    known, text = _integers(image_ids), _text_of(path)
    if known is None or text is None:
        return None
    file = HeldText(path, text)
    shape = _shape_alone(file, text)
    if shape is None:
        return None
    if shape and isinstance(head.truth, Instances):  # drawing takes memory: before the results do
        head.truth.shaped(shape, sizes_of(head.truth.images))
    columns = scan_json.scan_detections(
        file, Positions(known), _identity_codes, shape=FIELDS.get(shape, ""), second_keys=True
    )
    if shape and columns is not None:
        return _shaped_results(columns, known, head, text, shape)
    if columns is None or not len(columns.seen) or not _exact(columns.value):
        return None
    rows = _detections(known, columns.image, columns.category, columns.boxes, columns.value)
    if not columns.whole:
        return Results(head, rows, text)
    first = parse_json(text[text.index(b"{") : text.index(b"}") + 1], str(path))
    return Results(head, rows, keys=tuple(first))


def _shape_alone(file: scan_json.JsonFile, text: bytes) -> str | None:
    """The iouType of results that have shapes and no boxes, as the first record decides; "" if they
    have boxes; None for captions and other files.
    """
    try:
        at, byte = file.byte(0)
        begin, brace = file.byte(at + 1)
        if (byte, brace) != (ord("["), ord("{")):
            return None
        first = msgspec.json.decode(text[begin : file.value_end(begin)])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, scan_json.HandBack):
        return None
    if "caption" in first:
        return None
    if "bbox" in first:
        return "" if first["bbox"] != [] else None
    return next((kind for kind, field in FIELDS.items() if field in first), None)


def _shaped_results(
    columns: ScannedColumns, known: NDArray[np.int64], head: Head, text: bytes, shape: str
) -> Results | None:
    """Results without boxes, whose boxes and areas are those around the shapes."""
    if not len(columns.seen) or not _exact(columns.value):
        return None
    if (columns.seen & scan_json.key("bbox")).any():
        return None
    nowhere = np.zeros((len(columns.seen), 4))
    rows = _detections(known, columns.image, columns.category, nowhere, columns.value)
    found = shape_columns.lone_result_columns(text, columns, shape, rows)
    return None if found is None else Results(head, found, text, shape=shape)


def results_of_array(
    table: NDArray[np.float64], image_ids: list[Any], head: Head
) -> Results | None:
    """Reads rows of image_id, x, y, width, height, score, category_id; None for other arrays."""
    known = _integers(image_ids)
    if (
        known is None
        or table.ndim != 2
        or table.shape[1] != 7
        or not len(table)
        or table.dtype != np.float64
    ):
        return None
    if not (np.abs(table[:, [0, 6]]) < 2.0**63).all() or np.isnan(table[:, 5]).any():
        return None
    numbers = table[:, [0, 6]].astype(np.int64)
    image = Positions(known)(numbers[:, 0])
    try:
        category = _identity_codes(numbers[:, 1])
        boxes = good_boxes(np.ascontiguousarray(table[:, 1:5]))
    except (scan_json.HandBack, Unusual):
        return None
    if (image < 0).any():
        return None
    rows = _detections(known, image, category, boxes, table[:, 5].copy())
    return Results(head, rows, scalars=True)


def _detections(
    known: NDArray[np.int64],
    image: NDArray[np.int32],
    category: NDArray[np.int32],
    boxes: NDArray[np.float64],
    score: NDArray[np.float64],
) -> Rows:
    n = len(score)
    return Rows(
        known.tolist(),
        _codes(category),
        image,
        category,
        own(boxes),  # without a copy, also where tables take them up
        boxes[:, 2] * boxes[:, 3],
        own(score),
        np.zeros(n, dtype=bool),
        np.arange(1, n + 1),
    )


def _text_of(path: Any) -> bytes | None:
    """The text of a large readable file; None for any other."""
    try:
        if not isinstance(path, str | Path) or os.stat(path).st_size < LEAST_SIZE:
            return None
        return open_files.read_bytes(path)
    except (OSError, ValueError, DataError):
        return None


def _exact(numbers: NDArray[np.float64]) -> bool:
    """Whether float64 holds these numbers exactly, integers included."""
    return bool((np.abs(numbers) < MOST_EXACT).all())


def _identity_codes(ids: NDArray[np.int64]) -> NDArray[np.int32]:
    """Uses category ids as their own codes."""
    if len(ids) and (ids.min() < 0 or ids.max() >= MOST_CATEGORIES):
        raise scan_json.HandBack
    return ids.astype(np.int32)


def _codes(category: NDArray[np.int32]) -> range:
    """The category ids of `_identity_codes`."""
    return range(int(category.max(initial=-1)) + 1)


def _integers(ids: list[Any]) -> NDArray[np.int64] | None:
    """Ascending unique ids; None if they are not integers."""
    try:
        values = np.unique(np.array(ids))
    except (TypeError, ValueError):
        return None
    return values.astype(np.int64) if values.ndim == 1 and values.dtype.kind == "i" else None


class _Record(msgspec.Struct, gc=False):
    id: int


class _Info(msgspec.Struct, gc=False):
    info: Any = msgspec.UNSET
