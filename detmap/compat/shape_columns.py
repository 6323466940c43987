"""Masks and keypoints of large plain files as columns."""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.compat.annotation_rows import Rows
from detmap.core.adapters.coco import scan_json
from detmap.core.adapters.coco.scan_columns import Columns, Segmentations
from detmap.core.adapters.coco.shapes import scanned_masks
from detmap.core.base.immutable import vouched
from detmap.core.overlaps import masks
from detmap.core.overlaps.keypoints import Keypoints, boxes_around
from detmap.core.overlaps.masks import Masks
from detmap.errors import DataError

FIELDS = {"segm": "segmentation", "keypoints": "keypoints"}
"""By iouType: the key of an annotation's shape."""

LISTED = re.compile(rb'"counts"\s*:\s*\[')
"""Run lengths as lists, which pycocotools does not read as results."""

QUOTE = ord('"')

Sizes = Mapping[Any, tuple[Any, Any]]
"""Height and width by image id."""


def sizes_of(rows: Rows, sizes: Sizes) -> NDArray[np.float64] | None:
    """Returns (n, 2) the height and width of the image of each row; None unless those of all images
    are integers, which polygons need.
    """
    known = [sizes.get(each, (None, None)) for each in rows.image_ids]
    if not all(type(side) is int for each in known for side in each):
        return None
    return np.array(known, dtype=np.float64).reshape(-1, 2)[rows.image]


def object_columns(
    file: scan_json.JsonFile, kind: str, rows: Rows, size: NDArray[np.float64]
) -> Rows | None:
    """Returns objects with shapes; None if only pycocotools can read them.

    Parameters
    ----------
    file : the instances file
    kind : iouType
    rows : its annotations without shapes
    size : (n, 2) height and width of the image of each
    """
    columns = scan_json.scan_instances(
        file, dict.fromkeys(("images", "categories"), lambda text: _nowhere), shape=FIELDS[kind]
    )
    if columns is None or columns.masks is None:
        return None
    given = columns.masks
    if kind == "keypoints":
        found = _points(given, len(rows))
        if found is None or (given.labelled < 0).any():
            return None
        unlabelled = given.labelled == 0
        shapes = vouched(Keypoints, points=found[0], area=rows.area)
        return replace(rows, shapes=shapes, unlabelled=unlabelled)
    drawn = scanned_masks(given, size, rows.area)
    return None if drawn is None else replace(rows, shapes=drawn)


class HeldText(scan_json.JsonFile):
    """A file whose text is in memory, so that later changes to the file have no effect."""

    def __init__(self, path: str | Path, text: bytes) -> None:
        self.path, self.size = path, len(text)
        self.hold(text)


def result_columns(text: bytes, kind: str, rows: Rows) -> Rows | None:
    """Returns detections that have boxes with their shapes; None as in `object_columns`."""
    columns = scan_json.scan_detections(
        HeldText("results", text), _nowhere, _nowhere, shape=FIELDS[kind], second_keys=True
    )
    if columns is None or columns.masks is None:
        return None
    if kind == "keypoints":
        points = _points(columns.masks, len(rows))
        return None if points is None else _with_points(rows, points[0], rows.area)
    found = None if _has_listed(text, columns) else _runs(columns.masks, rows.area)
    return None if found is None else replace(rows, shapes=found)


def lone_result_columns(text: bytes, columns: Columns, kind: str, rows: Rows) -> Rows | None:
    """Returns detections without boxes with their shapes, and the boxes and areas of these; None as
    in `object_columns`.

    Source: COCO.loadRes in pycocotools' coco.py.
    """
    given = columns.masks
    if given is None:
        return None
    if kind == "segm":
        found = None if _has_listed(text, columns) else _runs(given, None)
        if found is None:
            return None
        return replace(rows, boxes=found.runs.boxes, area=found.area, shapes=found)
    around = _points(given, len(rows))
    if around is None:
        return None
    points, boxes = around
    return _with_points(replace(rows, boxes=boxes), points, boxes[:, 2] * boxes[:, 3])


def _has_listed(text: bytes, columns: Columns) -> bool:
    """Whether run lengths may be lists. Records without other keys have as many quotation marks as
    their keys and one string need, which are counted in a quarter of the time of a search.
    """
    n, quotes = len(columns.seen), 0
    if columns.whole and n:
        keys = int(columns.seen[0]).bit_count() + 3  # segmentation, size and counts
        block = range(0, len(text), 1 << 20)
        every = np.frombuffer(text, dtype=np.uint8)
        quotes = sum(int(np.count_nonzero(every[at : at + block.step] == QUOTE)) for at in block)
        if quotes == 2 * n * (keys + 1):
            return False
    return LISTED.search(text) is not None


def _with_points(rows: Rows, points: NDArray[np.float64], area: NDArray[np.float64]) -> Rows:
    """Detections with checked points."""
    shapes = vouched(Keypoints, points=points, area=area)
    return replace(rows, area=area, shapes=shapes, unlabelled=np.zeros(len(rows), dtype=bool))


def _runs(given: Segmentations, area: NDArray[np.float64] | None) -> Masks | None:
    """The masks of detections, of which pycocotools reads compressed run lengths alone."""
    if len(given.rows) or given.others:
        return None
    try:
        return masks.measured(given.size, (given.off, given.counts), area)
    except DataError:
        return None


def _points(given: Segmentations, n: int) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """The (n, k, 3) points and (n, 4) boxes around them; None if rows have other lengths or no
    points of pixels.
    """
    length = np.diff(given.lists.list_off)
    if not n or len(given.rows) < n or (length != length[0]).any() or length[0] % 3:
        return None
    points = given.lists.numbers.reshape(n, -1, 3)
    boxes, n_good = boxes_around(points)
    return (points, boxes) if n_good == n else None


def _nowhere(ids: NDArray[Any]) -> NDArray[np.int32]:
    """The look-up of a scan whose images and classes are known already."""
    return np.zeros(len(ids), dtype=np.int32)
