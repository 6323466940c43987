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
from detmap.compat.eval_imgs import cells_of
from detmap.core.adapters.joining.join import MAX_PIXEL
from detmap.core.base.flat_rows import flatten_rows
from detmap.core.matching.subsets import EVERY_SUBSET
from detmap.core.overlaps import masks, producer
from detmap.core.overlaps.keypoints import Keypoints
from detmap.core.overlaps.masks import Masks
from detmap.core.overlaps.ragged_runs import unpacked
from detmap.core.tables.grouping import labels

LOWEST = float(np.finfo(np.float64).tiny)  # every overlap above 0


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
    official._gts, official._dts = map(_cells_of, (evaluated.objects, evaluated.found))
    keypoints = evaluated.rules.kind == "keypoints"
    compute = official.computeOks if keypoints else official.computeIoU
    categories = params.catIds if params.useCats else [-1]
    if not params.useCats:  # both repeat the rows of a category that is listed several times
        listed = [*params.catIds]
        for cells in (official._gts, official._dts):
            for (_, category), records in cells.items():
                del records[len(records) // listed.count(category) :]
    return {(image, k): compute(image, k) for image in params.imgIds for k in categories}


def boundary_overlaps(evaluated: Evaluated) -> dict[tuple[Any, Any], Any]:
    """``ious`` of iouType boundary, as `detmap.compat.eval_imgs.overlaps`."""
    from detmap.kernels.cells import Cells, ObjectColumns

    rules, cells, matches = evaluated.rules, cells_of(evaluated), evaluated.parts[0].matches
    truth, rows = evaluated.truth, cells.objects
    columns = ObjectColumns(
        np.array([0, len(rows)]),
        rows,
        truth.image[rows],
        np.ones(len(rows), dtype=np.uint64),
        np.where(truth.crowd[rows], EVERY_SUBSET, np.uint64(0)),
        np.full(len(rows), LOWEST),
    )
    ends = (cells.d_off[:-1], cells.d_off[1:], cells.g_off[:-1], cells.g_off[1:])
    bounds = np.stack(ends, axis=1).astype(np.int64)
    members = np.arange(len(cells.detections), dtype=np.int32)
    produce = producer(truth, evaluated.detections, columns, matches.protocol, LOWEST)
    sizes = np.diff(cells.d_off) * np.diff(cells.g_off)
    begin, found = np.cumsum(sizes) - sizes, np.zeros(int(sizes.sum()))
    for n, pairs in produce(
        Cells(members, bounds), len(bounds), matches.position[cells.detections]
    ):
        d = pairs.detection[labels(pairs.off[: n + 1])]
        own = np.searchsorted(cells.d_off, d, "right") - 1
        row, column = d - bounds[own, 0], pairs.object[: len(d)] - bounds[own, 2]
        width = bounds[own, 3] - bounds[own, 2]
        found[begin[own] + row * width + column] = pairs.overlap[: len(d)]
    category_ids = [-1] if rules.together else rules.category_ids
    ious: dict[tuple[Any, Any], Any] = {
        (image, category): [] for image in rules.image_ids for category in category_ids
    }
    for c, (k, i) in enumerate(zip(*np.divmod(cells.place, len(rules.image_ids)), strict=True)):
        if sizes[c]:
            matrix = found[begin[c] : begin[c] + sizes[c]]
            shape = bounds[c, 1] - bounds[c, 0], bounds[c, 3] - bounds[c, 2]
            ious[rules.image_ids[i], category_ids[k]] = matrix.reshape(shape)
    return ious


def _cells_of(rows: Rows) -> dict[tuple[Any, Any], list[dict[str, Any]]]:
    """What pycocotools reads of the records, by image and category."""
    cells = defaultdict(list)
    names = ("image", "category", "boxes", "area", "score", "crowd")
    columns = [getattr(rows, name).tolist() for name in names]
    if isinstance(rows.shapes, Masks):
        runs = rows.shapes.runs
        off, counts = unpacked(runs.off, runs.counts)
        sides = zip(runs.size.tolist(), off[:-1].tolist(), off[1:].tolist(), strict=True)
        shapes: list[Any] = [
            mask.frPyObjects({"size": size, "counts": counts[a:b].tolist()}, *size)
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
