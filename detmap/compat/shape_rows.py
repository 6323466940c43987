"""Annotations with masks or keypoints as columns."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from pycocotools import mask
from pycocotools.cocoeval import COCOeval

from detmap.compat.annotation_rows import Rows, Unusual, from_records
from detmap.compat.drop_in_engine import Evaluated
from detmap.core.adapters.joining.join import MAX_PIXEL
from detmap.core.base.flat_rows import flatten_rows
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


def overlaps(evaluated: Evaluated, params: Any) -> dict[tuple[Any, Any], Any]:
    """Pycocotools' own IoU or OKS matrices of what was evaluated, whatever the records are now."""
    official = COCOeval()
    official.params = params
    official._gts, official._dts = map(_by_cell, (evaluated.objects, evaluated.found))
    keypoints = evaluated.rules.kind == "keypoints"
    compute = official.computeOks if keypoints else official.computeIoU
    categories = params.catIds if params.useCats else [-1]
    return {(image, k): compute(image, k) for image in params.imgIds for k in categories}


def _by_cell(rows: Rows) -> dict[tuple[Any, Any], list[dict[str, Any]]]:
    """What pycocotools reads of the records, by image and category."""
    cells = defaultdict(list)
    names = ("image", "category", "boxes", "area", "score", "crowd")
    columns = [getattr(rows, name).tolist() for name in names]
    if isinstance(rows.shapes, Masks):
        runs = rows.shapes.runs
        sides = zip(runs.size.tolist(), runs.off[:-1].tolist(), runs.off[1:].tolist(), strict=True)
        shapes: list[Any] = [
            mask.frPyObjects({"size": size, "counts": runs.counts[a:b].tolist()}, *size)
            for size, a, b in sides
        ]
    else:
        assert isinstance(rows.shapes, Keypoints)
        shapes = flatten_rows(rows.shapes.points).tolist()
    for image, category, box, area, score, crowd, shape in zip(*columns, shapes, strict=True):
        record = {"bbox": box, "area": area, "score": score, "iscrowd": crowd}
        record |= {"segmentation": shape, "keypoints": shape}
        cells[rows.image_ids[image], rows.category_ids[category]].append(record)
    return cells
