"""Annotations with masks or keypoints as columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from detmap.compat.annotation_rows import Rows, Unusual, from_records
from detmap.core.adapters.joining.join import MAX_PIXEL
from detmap.core.overlaps import masks
from detmap.core.overlaps.keypoints import Keypoints
from detmap.core.overlaps.masks import Masks


def with_shapes(kind: str, records: Sequence[dict[str, Any]], coco: Any, *, scored: bool) -> Rows:
    """Converts dicts to columns with the shapes of this iouType.

    Segmentations become run lengths in the records themselves, as in pycocotools.

    Raises
    ------
    Unusual : values that only pycocotools handles
    """
    boxed = kind == "keypoints" and not scored
    rows = from_records(records, scored=scored, boxed=boxed)
    try:
        if kind == "segm":
            return replace(rows, shapes=_masks(records, rows, coco))
        points = [np.asarray(record["keypoints"]) for record in records]
        unlabelled = [not scored and record["num_keypoints"] == 0 for record in records]
        length = {each.shape for each in points}
        plain = all(each.ndim == 1 and each.dtype.kind in "if" for each in points)
        if not plain or len(length) > 1 or any(shape[0] % 3 for shape in length):
            raise Unusual
        n = len(points[0]) // 3 if points else 0
        array = np.array(points, dtype=np.float64).reshape(len(points), n, 3)
    except Unusual:
        raise
    except Exception:  # of a client's record or its annToRLE: pycocotools will meet it in its order
        raise Unusual from None
    if not (np.abs(array) <= MAX_PIXEL).all():
        raise Unusual
    flags = np.array(unlabelled, dtype=bool)
    return replace(rows, shapes=Keypoints(array, rows.area), unlabelled=flags)


def _masks(records: Sequence[dict[str, Any]], rows: Rows, coco: Any) -> Masks:
    sizes, counts = [], []
    for record in records:
        runs = coco.annToRLE(record)
        record["segmentation"] = runs
        text = runs["counts"]
        sizes.append(runs["size"])
        counts.append(text.encode("ascii") if isinstance(text, str) else bytes(text))
    size = np.array(sizes, dtype=np.int64).reshape(-1, 2)
    return masks.from_texts(counts, size, rows.area, str)
