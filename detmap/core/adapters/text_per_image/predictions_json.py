"""Reads Ultralytics' ``predictions.json``: COCO results with other ids.

Source: DetectionValidator.pred_to_json (ultralytics/models/yolo/detect/val.py). An image id is the
file stem, as a number if it is one. A category id is the class counted from 0 (versions before 8.3)
or from 1 (since), or COCO's own id for COCO val2017.
"""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from detmap.core.adapters.coco import shapes
from detmap.core.adapters.joining.unknown_policy import STRICT, Policy
from detmap.core.base import open_files
from detmap.core.base.open_files import shown
from detmap.core.tables import Categories, Detections, Note, Truth
from detmap.errors import DataError

COCO_IDS = [*range(1, 12), *range(13, 26), 27, 28, *range(31, 45), *range(46, 66), 67, 70]
COCO_IDS += [*range(72, 83), *range(84, 91)]  # category ids of instances_val2017.json
DECODED = 8  # bytes of memory that a byte of the file takes


class _Row(msgspec.Struct):
    category_id: int | str  # a name counts from nowhere


def counts_from_zero(truth: Truth) -> bool:
    """Checks that class ids are 0, 1, 2, ... as those of a data.yaml."""
    ids = truth.categories.ids
    return len(ids) > 0 and bool((ids == np.arange(len(ids))).all())


def read_detections(path: Path, truth: Truth, policy: Policy = STRICT) -> Detections:
    """Reads a predictions.json.

    An id of 0, or of the number of classes, shows where ids start. Raises `DataError` if neither
    occurs.
    """
    if policy.class_names is not None or not counts_from_zero(truth):
        return shapes.read_detections(path, truth, policy)
    named = _named(path)
    if named is None:
        detections = shapes.read_detections(path, truth, policy)
        if len(detections) and detections.label.min() > 0:
            what = "not a plain list of detections, so where class ids begin is not known"
            raise DataError(shown(path), what, "write [{...}, ...], or give --class-names FILE")
        return detections
    ids, note = _ids(path, named, len(truth.categories))
    if note is None:
        return shapes.read_detections(path, truth, policy)
    shifted = replace(truth, categories=Categories(ids, truth.categories.names))
    detections = shapes.read_detections(path, shifted, policy)
    return replace(detections, categories=truth.categories, notes=(*detections.notes, note))


def _named(path: Path) -> Counter[int] | None:
    """Returns how often each class id occurs in a file; None if the file is not a plain list."""
    data = open_files.read_bytes(path, times=DECODED).removeprefix(b"\xef\xbb\xbf")
    try:
        rows = msgspec.json.decode(data, type=list[_Row])
    except (msgspec.DecodeError, msgspec.ValidationError, RecursionError, UnicodeDecodeError):
        return None  # the reader of COCO results says what is wrong
    return Counter(row.category_id for row in rows if isinstance(row.category_id, int))


def _ids(path: Path, named: Counter[int], n_classes: int) -> tuple[NDArray[np.int64], Note | None]:
    """Returns the classes' ids in a file, and a note unless they are 0, 1, 2, ..."""
    zero = np.arange(n_classes)
    if not named or min(named) <= 0:
        return zero, None
    names = {}
    if max(named) <= n_classes:
        names["the class counted from 1"] = zero + 1
    if n_classes == len(COCO_IDS) and named.keys() <= set(COCO_IDS):
        names["COCO's own"] = np.array(COCO_IDS)
    if max(named) < n_classes:
        names["the class counted from 0"] = zero
    if len(names) > 1:
        raise DataError(
            f"{shown(path)}: category_id",
            f"{min(named)} to {max(named)} of {n_classes} classes: {' or '.join(names)}?",
            "give the labels that save_txt=True save_conf=True writes, or the ground truth as "
            "COCO JSON",
        )
    for meaning, ids in names.items():
        text = f"detections have category ids that are {meaning}, as Ultralytics writes them"
        return ids, Note("classes-of-ultralytics", text, named.total(), shown(path))
    return zero, None
