"""Reads the masks, keypoints and rotated boxes of a batch."""

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.core.adapters.in_memory.batches import Fields, image_size, place_at, to_array
from detmap.core.base.flat_rows import flatten_rows
from detmap.core.overlaps import ragged_runs
from detmap.core.overlaps.shape_records import ShapeReader
from detmap.core.tables import BoxFormat, Note, Shapes, apart, boxes_as
from detmap.errors import DataError

OUTSIDE = (
    "masks do not lie in the box beside them: a mask has the height and width of its image, run "
    "lengths go down the columns, and a box is in pixels"
)


def shapes_of(
    where: str,
    images: Sequence[Fields],
    reader: ShapeReader,
    known: NDArray[np.float64],
    like: Shapes | None = None,
) -> tuple[Shapes, list[int], NDArray[np.float64]]:
    """Returns the shapes of a batch, the number on each image, and the (B, 2) heights and widths.

    Parameters
    ----------
    images : B dicts with an array of shapes, or a list of values as in COCO JSON
    known : (B, 2) heights and widths; NaN if unknown: then ``orig_size`` or the mask gives it
    like : the shapes of the ground truth, when reading predictions

    Raises `DataError` for missing or invalid shapes.
    """
    array = reader.array or reader.field
    key = array if any(array in image for image in images) else reader.field
    values = [_values(f"{where}[{i}]", image, key, reader) for i, image in enumerate(images)]
    sizes = known.copy()
    for i, rows in enumerate(values):
        if "orig_size" in images[i] and np.isnan(sizes[i]).any():
            sizes[i] = image_size(where, i, images[i])
        elif rows and isinstance(rows[0], dict) and np.isnan(sizes[i]).any():
            given = rows[0].get("size")
            if isinstance(given, list) and list(map(type, given)) == [int, int]:
                sizes[i] = given
    count = [len(rows) for rows in values]

    def place(row: int) -> str:
        i, at = place_at(np.array(count), row)
        return f"{where}[{i}].{key}[{at}]"

    shapes = reader.read(
        list(chain.from_iterable(values)), np.repeat(sizes, count, axis=0), place, like
    )
    return shapes, count, sizes


def outside_boxes(
    where: str, boxes: NDArray[np.float64], shapes: Shapes | None, box_format: BoxFormat
) -> tuple[Note, ...]:
    """Returns the note on masks that do not lie in the boxes (n, 4) beside them."""
    runs = getattr(shapes, "runs", None)
    if runs is None:
        return ()
    around = np.asarray(runs.boxes, dtype=np.float64)
    odd = int(apart(around, boxes_as(boxes, box_format, "xywh")).sum())
    note = Note("mask-outside-box", OUTSIDE, odd, where, numbers=(len(boxes),), condition="odd")
    return (note,) * bool(len(boxes))


def boxes_around(
    where: str,
    images: Sequence[Fields],
    around: NDArray[np.float64],
    count: Sequence[int],
    box_format: BoxFormat,
) -> list[Fields]:
    """Adds the boxes around shapes to images without boxes."""
    lost = np.isnan(around).any(axis=1)
    if lost.any():
        i, _ = place_at(np.array(count), int(np.argmax(lost)))
        raise DataError(f"{where}[{i}]", "no 'boxes', and no labeled point", "give the boxes")
    parts = np.split(boxes_as(around, "xywh", box_format), np.cumsum(count)[:-1])
    return [{**image, "boxes": part} for image, part in zip(images, parts, strict=True)]


def _values(where: str, image: Fields, key: str, reader: ShapeReader) -> list[Any]:
    """Returns the shapes of an image as values of COCO JSON."""
    array, sides = reader.array or reader.field, reader.sides
    try:
        given = image[key]
    except KeyError:
        fix = f"every image needs {key}; an array, or a list of values as in COCO JSON"
        raise DataError(where, f"no {key!r}", fix) from None
    listed = given if isinstance(given, list | tuple) else None
    if listed is not None and all(isinstance(each, dict | list | None) for each in listed):
        return [_plain(each) for each in listed]
    rows = to_array(f"{where}.{key}", given)
    if not rows.size:
        return []
    if key == "masks":
        if rows.ndim != 3 or rows.dtype.kind not in "biu":
            what = f"shape {rows.shape}, dtype {rows.dtype} where {sides} is needed"
            raise DataError(f"{where}.{key}", what, "give masks of bool, one per row")
        return [ragged_runs.run_lengths(each != 0) for each in rows]
    if key != array or rows.dtype.kind not in "fiu" or rows.ndim not in (2, 3):
        what = f"shape {rows.shape}, dtype {rows.dtype} where {sides} is needed"
        raise DataError(f"{where}.{key}", what, "give one row per object")
    if key == "keypoints" and (rows.ndim != 3 or rows.shape[2] != 3):
        what = f"shape {rows.shape} where {sides} is needed"
        raise DataError(f"{where}.{key}", what, "a point is x, y and visibility")
    values: list[Any] = flatten_rows(rows).astype(np.float64).tolist()
    return values


def _plain(value: Any) -> Any:
    """A COCO value as JSON has it: pycocotools' run lengths are bytes, sizes may be tuples."""
    if not isinstance(value, dict) or not {"size", "counts"} <= value.keys():
        return value
    counts, size = value["counts"], value["size"]
    if isinstance(counts, bytes):
        counts = counts.decode("ascii", "replace")
    return {"size": [int(side) for side in size], "counts": counts}
