"""Boxes that are already in memory, as arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from detmap.adapters import joining
from detmap.errors import DataError
from detmap.tables import MAX_ROWS, Categories, Detections, Images, Truth, positions


def truth_from_arrays(
    image_id: ArrayLike, category_id: ArrayLike, boxes: ArrayLike, *, area: ArrayLike | None = None,
    crowd: ArrayLike | None = None, images: ArrayLike | None = None, categories: dict[int, str] | None = None,
) -> Truth:  # fmt: skip
    """Ground truth from arrays, boxes as COCO's x, y, width, height.

    Parameters
    ----------
    image_id : (G,) integers or strings
    category_id : (G,) integers
    boxes : (G, 4) pixels: x, y, width, height
    area : (G,) square pixels; width times height when left out
    crowd : (G,) bool; none when left out
    images : ids of all images of the split; those of `image_id` when left out, and then an image without objects is
        unknown
    categories : id to name; the ids of `category_id`, named by their number, when left out

    Raises
    ------
    DataError : shapes that differ, negative or non-finite numbers, ids that `images` or `categories` lack
    """
    where = "truth arrays"
    image_ids, category_ids = _ids(where, "image_id", image_id), _ids(where, "category_id", category_id)
    xywh = _boxes(where, boxes, len(image_ids))
    known = np.unique(image_ids if images is None else _ids(where, "images", images))
    names = {int(i): str(i) for i in np.unique(category_ids)} if categories is None else categories
    class_ids = np.array(sorted(names), dtype=np.int64)
    areas = xywh[:, 2] * xywh[:, 3] if area is None else np.asarray(area, dtype=np.float64)
    crowds = np.zeros(len(xywh), dtype=bool) if crowd is None else np.asarray(crowd, dtype=bool)
    _same_length(where, len(xywh), category_id=category_ids, area=areas, crowd=crowds)
    image, label = positions(known, image_ids), positions(class_ids, category_ids)
    for field, column, values in (("image_id", image, image_ids), ("category_id", label, category_ids)):
        if (column < 0).any():
            row = int(np.argmax(column < 0))
            raise DataError(f"{where}: {field}[{row}]", f"{values[row].item()!r} is unknown",
                            "list every id in images= and categories=")  # fmt: skip
    unknown = np.full(len(known), np.nan)
    return Truth(
        Images(known, ("",) * len(known), unknown, unknown), Categories(class_ids, tuple(names[int(i)] for i in class_ids)),
        image, label, xywh, areas, crowds, difficult=np.zeros(len(xywh), dtype=bool), box_format="xywh", family="coco",
        source=where,
    )  # fmt: skip


def detections_from_arrays(
    truth: Truth, image_id: ArrayLike, category_id: ArrayLike, boxes: ArrayLike, score: ArrayLike
) -> Detections:
    """Detections from arrays, boxes as COCO's x, y, width, height.

    Parameters
    ----------
    truth : whose images and classes the ids refer to
    image_id, category_id : (D,) ids as in the truth
    boxes : (D, 4) pixels: x, y, width, height
    score : (D,) finite numbers

    Raises
    ------
    DataError : shapes that differ, negative or non-finite numbers, images that the truth lacks
    """
    where = "detection arrays"
    image_ids, category_ids = _ids(where, "image_id", image_id), _ids(where, "category_id", category_id)
    xywh = _boxes(where, boxes, len(image_ids))
    scores = np.ascontiguousarray(score, dtype=np.float64)
    _same_length(where, len(xywh), category_id=category_ids, score=scores)
    if not np.isfinite(scores).all():
        row = int(np.argmin(np.isfinite(scores)))
        raise DataError(f"{where}: score[{row}]", f"{scores[row]} is not a finite number", "remove the row")
    image = joining.images_by_id(truth, image_ids, where)
    label = joining.classes_by_id(truth, category_ids, where)
    return joining.joined(truth, image, label, xywh, scores, box_format="xywh", source=where,
                          named=(image_ids.tolist(), category_ids.tolist()))  # fmt: skip


def _ids(where: str, field: str, values: ArrayLike) -> NDArray[Any]:
    """(n,) int64 or str ids; floats only where they are whole numbers."""
    ids = np.asarray(values)
    if ids.ndim != 1:
        raise DataError(f"{where}: {field}", f"shape {ids.shape} where (n,) is needed", "one id a box")
    if ids.dtype.kind in "iub" or ids.size == 0:
        return ids.astype(np.int64)
    if ids.dtype.kind == "f" and np.isfinite(ids).all() and (ids == np.floor(ids)).all():
        return ids.astype(np.int64)
    if ids.dtype.kind == "U":
        return ids
    raise DataError(f"{where}: {field}", f"dtype {ids.dtype}", "ids are whole numbers or strings")


def _boxes(where: str, boxes: ArrayLike, n_rows: int) -> NDArray[np.float64]:
    array = np.ascontiguousarray(boxes, dtype=np.float64)
    if array.size == 0:
        array = array.reshape(0, 4)
    if array.ndim != 2 or array.shape[1] != 4 or len(array) != n_rows:
        raise DataError(f"{where}: boxes", f"shape {array.shape} where ({n_rows}, 4) is needed",
                        "one row of x, y, width, height for each image id")  # fmt: skip
    if n_rows > MAX_ROWS:
        raise DataError(f"{where}: boxes", f"{n_rows} rows", f"evaluate at most {MAX_ROWS} at once")
    bad = ~np.isfinite(array).all(axis=1) | (array[:, 2:] < 0).any(axis=1)
    if bad.any():
        row = int(np.argmax(bad))
        raise DataError(f"{where}: boxes[{row}]", f"{array[row].tolist()} has a negative size or a non-finite number",
                        "a box is x, y, width, height in pixels")  # fmt: skip
    return array


def _same_length(where: str, n_rows: int, **columns: NDArray[Any]) -> None:
    for name, column in columns.items():
        if column.shape != (n_rows,):
            raise DataError(f"{where}: {name}", f"shape {column.shape} where ({n_rows},) is needed", "one value a box")
