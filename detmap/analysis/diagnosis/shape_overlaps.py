"""Overlaps of any kind (masks, keypoints, polygons ...) between rows of any classes of an image.

A diagnosis of boxes has a compiled pass; for every other kind of overlap the producer of the
protocol makes the pairs, as in matching.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from detmap.core.base.pair_limits import limit_listed
from detmap.core.overlaps import producer
from detmap.core.protocol import Protocol
from detmap.core.tables import Detections, Truth
from detmap.core.tables.grouping import labels

if TYPE_CHECKING:
    from detmap.analysis.kernels.diagnosis import Seen

Rows = NDArray[np.int64]
Pairs = tuple[Rows, Rows, NDArray[np.float64]]
LOWEST = float(np.finfo(np.float64).tiny)  # every overlap above 0


def overlapping_shapes(
    truth: Truth, detections: Detections, rows: Rows, objects: Rows, rules: Protocol
) -> Pairs:
    """Rows of detections, rows of objects and their overlap, where it is above 0.

    Parameters
    ----------
    rows : detections, by image; objects : objects, by image; of any classes
    rules : the protocol whose ``iou.of`` is compared

    Returns
    -------
    by detection in the order of `rows`, then by object in the order of `objects`

    Raises
    ------
    CrowdedError : too many overlapping pairs
    """
    from detmap.kernels.cells import Cells, ObjectColumns

    off, obj_off = (
        np.searchsorted(table.image[some], np.arange(len(truth.images) + 1))
        for table, some in ((detections, rows), (truth, objects))
    )
    both = np.flatnonzero((np.diff(off) > 0) & (np.diff(obj_off) > 0))
    bounds = np.stack([off[both], off[both + 1], obj_off[both], obj_off[both + 1]], axis=1)
    columns = ObjectColumns(
        np.array([0, len(objects)], dtype=np.int64),
        objects.astype(np.int32),
        truth.image[objects],
        np.ones(len(objects), dtype=np.uint64),
        np.zeros(len(objects), dtype=np.uint64),
        np.full(len(objects), LOWEST),
    )
    cells = Cells(np.arange(len(rows), dtype=np.int32), np.ascontiguousarray(bounds, np.int64))
    produce = producer(truth, detections, columns, rules, LOWEST)
    none, n_pairs = np.zeros(0, dtype=np.int64), 0
    found: list[Pairs] = [(none, none, np.zeros(0))]
    for n, pairs in produce(cells, len(bounds), rows.astype(np.int32)):
        detection = pairs.detection[:n].astype(np.int64)[labels(pairs.off[: n + 1])]
        size = len(detection)
        n_pairs += size
        limit_listed("diagnose", n_pairs, len(rows) + len(objects))
        found.append((detection, pairs.object[:size].astype(np.int64), pairs.overlap[:size].copy()))
    det, obj, overlap = (np.concatenate(column) for column in zip(*found, strict=True))
    order = np.lexsort((obj, det))
    order = order[overlap[order] > 0]
    return rows[det[order]], objects[obj[order]], overlap[order]


def overlap_of_pairs(
    truth: Truth, detections: Detections, rows: Rows, objects: Rows, rules: Protocol
) -> NDArray[np.float64]:
    """(n,) overlap of each of n detections, all different, with an object of its image."""
    by_image, objects_by_image = (
        np.unique(some)[np.argsort(table.image[np.unique(some)], kind="stable")]
        for table, some in ((detections, rows), (truth, objects))
    )
    det, obj, overlap = overlapping_shapes(truth, detections, by_image, objects_by_image, rules)
    wanted = np.full(len(detections), -1, dtype=np.int64)
    wanted[rows] = objects
    found = np.zeros(len(detections))
    own = wanted[det] == obj
    found[det[own]] = overlap[own]
    return found[rows]


def compare_shapes(
    truth: Truth,
    detections: Detections,
    rules: Protocol,
    judged: tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]],
    thresholds: tuple[float, float],
    seen: Seen,
) -> None:
    """Replace what the pass over boxes found: `same`, `other`, their objects, `kind` and `reach`.

    Duplicates (`twin`) and crowding (`near`) stay those of the boxes around the shapes: an overlap
    is defined between a detection and an object only.

    Parameters
    ----------
    judged : (D,) detections within the limit; (G,) counted objects; (G,) objects that a detection
        found
    thresholds : overlap of a match; overlap up to which a detection is background

    Source: the kinds and their order are those of `diagnose_images` of the kernels.
    """
    listed, to_find, found = judged
    rows, objects = (
        np.flatnonzero(some)[np.argsort(table.image[some], kind="stable")]
        for table, some in ((detections, listed), (truth, to_find))
    )
    det, obj, overlap = overlapping_shapes(truth, detections, rows, objects, rules)
    _set_first_objects(truth, detections, rows, objects, seen)
    is_same = truth.label[obj] == detections.label[det]
    for column, place, mine in (
        (seen.same, seen.same_object, is_same),
        (seen.other, seen.other_object, ~is_same),
    ):
        column[:] = 0.0
        order = np.flatnonzero(mine)
        order = order[np.lexsort((-overlap[order], det[order]))]  # of equals the first
        best = order[np.unique(det[order], return_index=True)[1]]
        column[det[best]], place[det[best]] = overlap[best], obj[best]
    seen.reach[:] = 0.0
    np.maximum.at(seen.reach, obj[is_same], overlap[is_same].astype(np.float32))
    best_taken = np.full(len(detections), -1.0)
    taken = is_same & found[obj]
    np.maximum.at(best_taken, det[taken], overlap[taken])
    _set_kinds(rows, best_taken, thresholds, seen)


def _set_first_objects(
    truth: Truth, detections: Detections, rows: Rows, objects: Rows, seen: Seen
) -> None:
    """The first object of its class and of another class on each detection's image; -1 for none."""
    n_classes = max(len(truth.categories), 1)
    seen.same_object[:], seen.other_object[:] = -1, -1
    first = np.full(len(truth.images) * n_classes, -1, dtype=np.int32)
    cell = truth.image[objects].astype(np.int64) * n_classes + truth.label[objects]
    first[cell[::-1]] = objects[::-1]
    image, label = detections.image[rows], detections.label[rows]
    seen.same_object[rows] = first[image.astype(np.int64) * n_classes + label]
    some = np.full(len(truth.images), -1, dtype=np.int64)
    some[truth.image[objects][::-1]] = objects[::-1]
    apart = objects[truth.label[objects] != truth.label[some[truth.image[objects]]]]
    others = np.full(len(truth.images), -1, dtype=np.int64)
    others[truth.image[apart][::-1]] = apart[::-1]
    there = some[image]
    own, known = np.zeros(len(rows), dtype=bool), there >= 0
    own[known] = truth.label[there[known]] == label[known]
    seen.other_object[rows] = np.where(own, others[image], there)


def _set_kinds(
    rows: Rows, best_taken: NDArray[np.float64], thresholds: tuple[float, float], seen: Seen
) -> None:
    """The kind of each false positive."""
    from detmap.analysis.kernels.diagnosis import BKG, BOTH, CLS, DUPE, LOC, TP

    iou, background = thresholds
    rows = rows[seen.kind[rows] != TP]
    same, other = seen.same[rows], seen.other[rows]
    has_same, has_other = seen.same_object[rows] >= 0, seen.other_object[rows] >= 0
    conditions = [
        ~has_same & ~has_other,
        has_same & (background <= same) & (same <= iou),
        has_other & (other >= iou),
        best_taken[rows] >= iou,
        np.maximum(same, other) <= background,
    ]
    seen.kind[rows] = np.select(conditions, [BKG, LOC, CLS, DUPE, BKG], BOTH)
