"""Where a `COCO` has its annotations from while nobody has asked for dicts: columns at once,
dicts when asked.
"""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from detmap.adapters import coco_scan
from detmap.compat.rows import MOST_CATEGORIES, Rows, Unusual, good_boxes
from detmap.errors import DataError
from detmap.tables import Positions

Tree = dict[str, Any]


class KeptFile:
    """A file that can be read again later, also when its name is gone by then. Pickled, it takes
    its text along.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = str(path)
        self.text: bytes | None = None
        self.descriptor = os.open(path, os.O_RDONLY)
        self.state = self._state()

    def __del__(self) -> None:
        if self.__dict__.get("descriptor", -1) >= 0:
            os.close(self.descriptor)

    def __getstate__(self) -> Tree:
        return {"path": self.path, "text": self.read(), "descriptor": -1, "state": self.state}

    def _state(self) -> tuple[int, int]:
        status = os.fstat(self.descriptor)
        return status.st_size, status.st_mtime_ns

    def read(self) -> bytes:
        """The text as it was.

        Raises
        ------
        DataError : the file was written to in the meantime
        """
        if self.text is not None:
            return self.text
        with open(self.descriptor, "rb", closefd=False) as file:
            file.seek(0)
            text = file.read()
        if self._state() != self.state:
            raise DataError(
                self.path,
                "was written to after it was loaded",
                "load it again, or read its dicts before",
            )
        return text


class Instances:
    """An instances file that the compiled scanner understood.

    Parameters
    ----------
    file : to read the dicts from
    rows : its annotations
    texts : of its lists ``images`` and ``categories``
    image_ids : in file order
    """

    def __init__(
        self, file: KeptFile, rows: Rows, texts: dict[str, bytes], image_ids: list[int]
    ) -> None:
        self.file, self.rows, self.texts, self.image_ids = file, rows, texts, image_ids

    @cached_property
    def images(self) -> list[Tree]:
        """The records of the images."""
        return _decoded(self.texts["images"])

    @cached_property
    def categories(self) -> list[Tree]:
        """The records of the categories."""
        return _decoded(self.texts["categories"])

    def head(self) -> Tree:
        """The dataset without its annotations."""
        found = msgspec.json.decode(self.file.read(), type=_Info).info
        info = {} if found is msgspec.UNSET else {"info": found}
        return {**info, "images": self.images, "categories": self.categories}

    def dataset(self) -> Tree:
        """All dicts, those of images and categories being the ones that were handed out before."""
        tree: Tree = json.loads(self.file.read())
        return tree | {"images": self.images, "categories": self.categories}


class Results:
    """Detections of boxes, from a file or an array.

    Parameters
    ----------
    head : makes the truth's dataset, without its annotations
    rows : the detections
    file : to read their dicts from; None where the rows are all there is
    """

    def __init__(self, head: Callable[[], Tree], rows: Rows, file: KeptFile | None = None) -> None:
        self.head, self.rows, self.file = head, rows, file

    @cached_property
    def images(self) -> list[Tree]:
        """The records of the truth's images."""
        return list(self.head()["images"])

    @cached_property
    def categories(self) -> list[Tree]:
        """Copies of the records of the truth's categories."""
        return copy.deepcopy(list(self.head()["categories"]))

    @property
    def image_ids(self) -> list[Any]:
        """Those of the truth, each once."""
        return list({image["id"]: None for image in self.images})

    def dataset(self) -> Tree:
        """All dicts, with what loadRes adds to results of boxes."""
        annotations = self._records() if self.file is None else _decoded(self.file.read())
        for number, annotation in enumerate(annotations, start=1):
            left, top, width, height = annotation["bbox"]
            right, bottom = left + width, top + height
            annotation.setdefault(
                "segmentation", [[left, top, left, bottom, right, bottom, right, top]]
            )
            annotation.update(area=width * height, id=number, iscrowd=0)
        return {
            "info": copy.deepcopy(self.head().get("info", {})),
            "images": self.images,
            "categories": self.categories,
            "annotations": annotations,
        }

    def _records(self) -> list[Tree]:
        rows = self.rows
        image_ids, category_ids = (
            np.array(rows.image_ids)[rows.image],
            np.array(rows.category_ids)[rows.category],
        )
        columns = (
            image_ids.tolist(),
            rows.boxes.tolist(),
            rows.score.tolist(),
            category_ids.tolist(),
        )
        names = "image_id", "bbox", "score", "category_id"
        return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]


def open_instances(path: str | Path) -> Instances | None:
    """A large plain instances file whose annotations have all the fields that pycocotools asks
    for; None for any other.
    """
    texts: dict[str, bytes] = {}
    listed: dict[str, list[int]] = {}

    def read_list(name: str) -> Callable[[bytes], coco_scan.Locate]:
        def read(text: bytes) -> coco_scan.Locate:
            try:
                listed[name] = [
                    record.id for record in msgspec.json.decode(text, type=list[_Record])
                ]
                ids = np.unique(np.array(listed[name], dtype=np.int64))
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, OverflowError):
                raise coco_scan.NotPlain from None
            texts[name] = bytes(text)
            return Positions(ids) if name == "images" else _as_they_are

        return read

    try:
        file = KeptFile(path)
        columns = coco_scan.scan_instances(
            Path(path), {name: read_list(name) for name in ("images", "categories")}
        )
    except (OSError, TypeError, ValueError):
        return None
    wanted = coco_scan.key("area") | coco_scan.key("iscrowd") | coco_scan.key("id")
    if columns is None or not (columns.seen & wanted == wanted).all():
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
        (columns.seen & coco_scan.key("crowd")) != 0,
        columns.number,
    )
    return None if rows.ids_twice() else Instances(file, rows, texts, image_ids)


def open_results(path: str, image_ids: list[Any], head: Callable[[], Tree]) -> Results | None:
    """A large plain file of detections on known images; None for any other."""
    known = _integers(image_ids)
    if known is None:
        return None
    try:
        file = KeptFile(path)
    except OSError:
        return None
    columns = coco_scan.scan_detections(Path(path), Positions(known), _as_they_are)
    if columns is None or not len(columns.seen):
        return None
    rows = _detections(known, columns.image, columns.category, columns.boxes, columns.value)
    return Results(head, rows, file)


def results_of_array(
    table: NDArray[np.float64], image_ids: list[Any], head: Callable[[], Tree]
) -> Results | None:
    """Rows of image_id, x, y, width, height, score, category_id on known images; None for any
    other array.
    """
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
        category = _as_they_are(numbers[:, 1])
        boxes = good_boxes(np.ascontiguousarray(table[:, 1:5]))
    except (coco_scan.NotPlain, Unusual):
        return None
    if (image < 0).any():
        return None
    return Results(head, _detections(known, image, category, boxes, table[:, 5].copy()))


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
        boxes,
        boxes[:, 2] * boxes[:, 3],
        score,
        np.zeros(n, dtype=bool),
        np.arange(1, n + 1),
    )


def _as_they_are(ids: NDArray[np.int64]) -> NDArray[np.int32]:
    """Category ids as their own codes."""
    if len(ids) and (ids.min() < 0 or ids.max() >= MOST_CATEGORIES):
        raise coco_scan.NotPlain
    return ids.astype(np.int32)


def _codes(category: NDArray[np.int32]) -> range:
    """What the codes of `_as_they_are` stand for."""
    return range(int(category.max(initial=-1)) + 1)


def _integers(ids: list[Any]) -> NDArray[np.int64] | None:
    """Ids, ascending, each once; None where they are not integers."""
    try:
        found = np.unique(np.array(ids))
    except (TypeError, ValueError):
        return None
    return found.astype(np.int64) if found.ndim == 1 and found.dtype.kind == "i" else None


def _decoded(text: bytes) -> list[Tree]:
    tree: list[Tree] = json.loads(text)
    return tree


class _Record(msgspec.Struct, gc=False):
    id: int


class _Info(msgspec.Struct, gc=False):
    info: Any = msgspec.UNSET
