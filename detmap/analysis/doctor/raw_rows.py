"""Detections as they are written: rows that name images and classes by whatever the file has.

A repair is a function from raw rows to raw rows. Rows are joined with a ground truth by the rules
of the ordinary readers (`detmap.core.adapters.joining.join`); what these would refuse is counted
here instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from detmap.analysis.row_overlaps import Met, best_overlaps
from detmap.core.adapters.joining import join as joining
from detmap.core.adapters.joining.image_lookup import STEM_IS_ID
from detmap.core.overlaps import KINDS
from detmap.core.tables import MAX_PIXEL, BoxFormat, Detections, Note, Shapes, Truth, reversed_boxes
from detmap.core.tables.notes import DROPPED
from detmap.errors import DataError

Key = int | str
ImageKey = Literal["any", "stem", "id"]
"""How rows name images: by what a reader would find, by file stem as VOC's text does, or by the
ground truth's own ids and nothing else, as after a repair."""


@dataclass(frozen=True, slots=True, eq=False)
class Raw:
    """D rows of detections.

    Parameters
    ----------
    images, classes : the keys that rows name: all integers, or all strings
    image, label : (D,) int32, which of `images` and `classes` a row names
    boxes : (D, 4) float64, four numbers in the meaning of `box_format`, if they are right
    score : (D,) float64
    box_format : see `detmap.core.tables.BoxFormat`
    key : how `images` name images, see `ImageKey`
    source : the path, for messages
    files : the file name beside each of `images`, if every row has both; a key is listed once per
        file name
    names : what class ids mean, where they are not those of the ground truth
    values : (D,) object, the shape and the box of each record as JSON has them, of results with
        masks, keypoints or corners; `boxes` are then those around the shapes
    shapes : the same of a table
    affine : (D, 2, 3) float64, what repairs of boxes do to points of the shapes
    image_names, class_names : `images` and `classes` as the file has them, after a fix changed them
    left_out : the reader's notes on rows that it dropped
    """

    images: tuple[Key, ...]
    classes: tuple[Key, ...]
    image: NDArray[np.int32]
    label: NDArray[np.int32]
    boxes: NDArray[np.float64]
    score: NDArray[np.float64]
    box_format: BoxFormat
    key: ImageKey = "any"
    source: str = "detections"
    files: tuple[str, ...] = ()
    names: Mapping[int, str] | None = None
    values: NDArray[Any] | None = None
    shapes: Shapes | None = None
    affine: NDArray[np.float64] | None = None
    image_names: tuple[Key, ...] = ()
    class_names: tuple[Key, ...] = ()
    left_out: tuple[Note, ...] = ()

    def __len__(self) -> int:
        return len(self.score)

    def take(self, rows: NDArray[Any]) -> Raw:
        """Some of the rows."""
        return replace(
            self,
            image=self.image[rows],
            label=self.label[rows],
            boxes=self.boxes[rows],
            score=self.score[rows],
            values=None if self.values is None else self.values[rows],
            shapes=None if self.shapes is None else self.shapes.take(rows),
            affine=None if self.affine is None else self.affine[rows],
        )

    def classless(self) -> Raw:
        """Returns the rows as `Trial.agnostic` compares them."""
        return replace(self, classes=(1,), label=np.zeros_like(self.label))

    @property
    def is_shaped(self) -> bool:
        """Whether rows have more than boxes."""
        return self.values is not None or self.shapes is not None

    def places(self, truth: Truth) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Positions in the ground truth of each row's image and class, -1 where it has none
        such.
        """
        image = image_places(truth, self.images, self.key)
        label = class_places(truth, self.classes, self.names)
        return image[self.image], label[self.label]


def readable(raw: Raw) -> NDArray[np.bool_]:
    """(D,) whether a row's box and score are what a table holds."""
    boxes = raw.boxes
    good = (np.abs(boxes) <= MAX_PIXEL).all(axis=1) & np.isfinite(raw.score)
    if raw.box_format == "xywh":  # VOC's readers accept corners the wrong way round
        good &= ~reversed_boxes(boxes, "xywh")
    return np.asarray(good)


def joined(truth: Truth, raw: Raw) -> Detections:
    """The rows of `joinable` as a table."""
    return table(truth, raw, *joinable(truth, raw))


def joinable(
    truth: Truth, raw: Raw
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]:
    """The rows that the ground truth has an image and a class for, and that a table can hold, with
    the positions of these.
    """
    image, label = raw.places(truth)
    rows = np.flatnonzero((image >= 0) & (label >= 0) & readable(raw))
    return rows, image[rows], label[rows]


def table(
    truth: Truth,
    raw: Raw,
    rows: NDArray[np.int64],
    image: NDArray[np.int32],
    label: NDArray[np.int32],
) -> Detections:
    """Detections of some rows, whose images and classes are known."""
    return Detections(
        truth.images,
        truth.categories,
        np.ascontiguousarray(image, dtype=np.int32),
        np.ascontiguousarray(label, dtype=np.int32),
        np.ascontiguousarray(raw.boxes[rows]),
        np.ascontiguousarray(raw.score[rows]),
        box_format=raw.box_format,
        source=raw.source,
    )


def from_table(detections: Detections) -> Raw:
    """The rows of a table, which names images and classes by their ids; images by their file
    stems if the file does and these are ids of other images.
    """
    boxes, box_format = detections.boxes, detections.box_format
    for kind in KINDS if detections.shapes is not None else ():
        if kind.reader is not None and isinstance(detections.shapes, kind.reader.kind):
            boxes, box_format = kind.reader.around(detections.shapes), "xywh"
            break
    by_stem = any(note.code == STEM_IS_ID for note in detections.notes)
    images, image = tuple(detections.images.ids.tolist()), detections.image
    if by_stem:
        used, code = np.unique(image, return_inverse=True)
        images, image = tuple(detections.images.stems[i] for i in used), code.astype(np.int32)
    return Raw(
        images,
        tuple(detections.categories.ids.tolist()),
        image,
        detections.label,
        boxes,
        detections.score,
        box_format,
        "stem" if by_stem else "id",
        detections.source,
        shapes=detections.shapes,
        left_out=tuple(note for note in detections.notes if note.code in DROPPED),
    )


def keyed(values: Sequence[Any]) -> tuple[tuple[Key, ...], NDArray[np.int32]]:
    """The different keys of a column, and which of them each row has.

    Whole floats are integers; where integers and strings are mixed, all are strings.
    """
    array = np.asarray(values) if len(values) else np.zeros(0, dtype=np.int64)
    if array.dtype.kind in "iu" and array.ndim == 1:
        keys, codes = np.unique(array, return_inverse=True)
        return tuple(keys.tolist()), codes.astype(np.int32)
    place: dict[Any, int] = {}
    rows = np.fromiter(
        (place.setdefault(value, len(place)) for value in values), np.int32, count=len(values)
    )
    whole: list[Any] = [
        int(key) if isinstance(key, float) and key.is_integer() else key for key in place
    ]
    if any(not isinstance(key, int) for key in whole):
        whole = [str(key) for key in whole]
    again: dict[Any, int] = {}
    codes = np.array([again.setdefault(key, len(again)) for key in whole], dtype=np.int32)
    return tuple(again), codes[rows].astype(np.int32)


def are_numbers(keys: Sequence[Key]) -> bool:
    """Whether keys are integers."""
    return bool(keys) and isinstance(keys[0], int)


def restricted(
    raw: Raw, truth: Truth, image: NDArray[np.int32], positions: NDArray[np.int64]
) -> Raw:
    """The rows on images at some positions of a ground truth, which are named by the ground
    truth's own ids; `image` holds the position of each row's image, or -1.
    """
    wanted = np.zeros(len(truth.images) + 1, dtype=bool)  # the last one is for -1
    wanted[positions] = True
    rows = np.flatnonzero(wanted[image])
    used, code = np.unique(image[rows], return_inverse=True)
    ids = tuple(truth.images.ids[used].tolist())
    image = code.astype(np.int32)
    return replace(raw.take(rows), images=ids, image=image, key="id", files=(), image_names=())


@lru_cache(maxsize=8)  # used many times in one examination, which clears it at its end
def image_places(truth: Truth, keys: tuple[Key, ...], key: ImageKey) -> NDArray[np.int32]:
    """Positions of images that are named so; -1 where there is none."""
    if key == "id":
        place = {each: i for i, each in enumerate(truth.images.ids.tolist())}
        return np.array([place.get(each, -1) for each in keys], dtype=np.int32)
    nothing = np.full(len(keys), -1, dtype=np.int32)
    numbers = are_numbers(keys)
    try:
        if key == "stem":
            return joining.images_by_stem(truth, [str(each) for each in keys], "")
        if not numbers and truth.images.ids.dtype.kind != "U":
            return nothing
        given: Any = np.array(keys, dtype=np.int64) if numbers else [str(each) for each in keys]
        return joining.images_by_id(truth, given, "")
    except (DataError, OverflowError):
        return nothing


def class_places(
    truth: Truth, keys: Sequence[Key], names: Mapping[int, str] | None = None
) -> NDArray[np.int32]:
    """Positions of classes by the ground truth's ids or names, or by `names` of ids; -1 where there
    is none.
    """
    if names is not None:
        by_name = {name: k for k, name in enumerate(truth.categories.names)}
        found = [by_name.get(names.get(int(key), ""), -1) for key in keys]
        return np.array(found, dtype=np.int32)
    if not are_numbers(keys):
        try:
            return joining.classes_by_id(truth, [str(key) for key in keys], "")
        except DataError:
            return np.full(len(keys), -1, dtype=np.int32)
    place = {i: k for k, i in enumerate(truth.categories.ids.tolist())}
    return np.array([place.get(key, -1) for key in keys], dtype=np.int32)


def best_objects(raw: Raw, truth: Truth, least: float = 0.5) -> Met:
    """Rows with the object of their image that they overlap most, at an overlap of `least` or more,
    whatever their class.
    """
    image, _ = raw.places(truth)
    return best_overlaps(raw, image, np.flatnonzero((image >= 0) & readable(raw)), truth, least)
