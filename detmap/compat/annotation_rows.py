"""Annotations as columns: the input of the drop-in's engine."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.core.adapters.joining.join import MAX_PIXEL
from detmap.core.overlaps.keypoints import Keypoints
from detmap.core.overlaps.masks import Masks

MOST_CATEGORIES = 1 << 16
"""Category ids below this are their own codes."""


class Unusual(Exception):  # noqa: N818
    """Input that the engine does not support; the arguments are quirks that it shows."""


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """n annotations in pycocotools' order.

    Parameters
    ----------
    image_ids, category_ids : the id of each code
    image, category : (n,) int32 codes
    boxes : (n, 4) float64, x y width height in pixels; finite
    area : (n,) float64, square pixels; never NaN
    score : (n,) float64, never NaN; zeros for objects
    crowd : (n,) bool; False for detections
    ids : (n,) int64
    shapes : masks or keypoints of the n annotations, if they are evaluated
    unlabelled : (n,) bool, objects without keypoints; None for other types
    """

    image_ids: Sequence[Hashable]
    category_ids: Sequence[Hashable]
    image: NDArray[np.int32]
    category: NDArray[np.int32]
    boxes: NDArray[np.float64]
    area: NDArray[np.float64]
    score: NDArray[np.float64]
    crowd: NDArray[np.bool_]
    ids: NDArray[np.int64]
    shapes: Masks | Keypoints | None = None
    unlabelled: NDArray[np.bool_] | None = None

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, rows: NDArray[Any]) -> Rows:
        """Selects rows, in the given order."""
        columns = ("image", "category", "boxes", "area", "score", "crowd", "ids", "unlabelled")
        found = {name: getattr(self, name) for name in columns}
        chosen = {name: column[rows] for name, column in found.items() if column is not None}
        return replace(
            self, **chosen, shapes=None if self.shapes is None else self.shapes.take(rows)
        )

    def ids_twice(self) -> bool:
        """Whether two rows share an id."""
        return not (np.diff(self.ids) > 0).all() and len(np.unique(self.ids)) < len(self)


def from_records(records: Sequence[Mapping[str, Any]], *, scored: bool, boxed: bool = True) -> Rows:
    """Converts dicts to columns: `scored` detections, or objects. Boxes are zeros unless `boxed`.

    Raises
    ------
    Unusual : a missing key, or a value of another type than files have
    """
    n = len(records)
    try:
        image_ids, image = _codes([record["image_id"] for record in records])
        category_ids, category = _codes([record["category_id"] for record in records])
        boxes = [record["bbox"] if boxed else [0, 0, 0, 0] for record in records]
        if not all(type(box) in (list, np.ndarray) and len(box) == 4 for box in boxes):
            raise Unusual
        return Rows(
            image_ids,
            category_ids,
            image,
            category,
            good_boxes(np.array(boxes, dtype=np.float64).reshape(-1, 4)),
            area=_numbers([record["area"] for record in records]),
            score=_numbers([record["score"] for record in records]) if scored else np.zeros(n),
            crowd=np.zeros(n, dtype=bool)
            if scored
            else _flags([record["iscrowd"] for record in records]),
            ids=_whole([record["id"] for record in records]),
        )
    except (KeyError, TypeError, ValueError, OverflowError):
        raise Unusual from None


def good_boxes(boxes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns the (n, 4) array if no area of these boxes is NaN or overflows."""
    if not (np.abs(boxes) <= MAX_PIXEL).all():
        raise Unusual
    return boxes


def _codes(values: list[Any]) -> tuple[list[Any], NDArray[np.int32]]:
    known: dict[Any, int] = {}
    codes = np.fromiter(
        (known.setdefault(value, len(known)) for value in values), dtype=np.int32, count=len(values)
    )
    return list(known), codes


def _array(values: list[Any], kinds: str) -> NDArray[Any]:
    array = np.array(values)
    if len(values) and (
        array.ndim != 1 or array.dtype.kind not in kinds or array.dtype.itemsize > 8
    ):
        raise Unusual
    return array


MOST_EXACT = 2**53
"""Integers up to here are as exact as float64; pycocotools tells larger ones apart."""


def _numbers(values: list[Any]) -> NDArray[np.float64]:
    array = _array(values, "iuf").astype(np.float64)
    large = np.flatnonzero(~(np.abs(array) < MOST_EXACT)).tolist()
    if np.isnan(array).any() or not all(isinstance(values[i], float | np.floating) for i in large):
        raise Unusual
    return array


def _flags(values: list[Any]) -> NDArray[np.bool_]:
    array = _array(values, "ib")
    if not ((array == 0) | (array == 1)).all():
        raise Unusual
    return array.astype(bool)


def _whole(values: list[Any]) -> NDArray[np.int64]:
    return _array(values, "i").astype(np.int64)
