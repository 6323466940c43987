"""Pairs of detections and objects of an image, of any classes, that overlap enough."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.analysis.row_overlaps import edges, ious, meetings
from detmap.core.base.pair_limits import limit_compared, limit_listed
from detmap.core.tables import Detections, Truth

CHUNK = 1 << 16  # pairs that are looked at together
SLOWER = 15  # times as long as a pair takes in a kernel


def single_precision_ious(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """`ious` in single precision, with 1e-7 added to the union.

    Source: ultralytics 8.0.200, utils/metrics.py, box_iou.
    """
    one, other = a[:, :4].astype(np.float32), b[:, :4].astype(np.float32)
    sides = np.minimum(one[:, 2:], other[:, 2:]) - np.maximum(one[:, :2], other[:, :2])
    shared = np.maximum(sides, 0).prod(axis=1)
    areas = [(each[:, 2:] - each[:, :2]).prod(axis=1) for each in (other, one)]
    return np.asarray(shared / (areas[0] + areas[1] - shared + np.float32(1e-7)), dtype=np.float64)


Pairs = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]


def pairs(
    truth: Truth,
    detections: Detections | Truth,
    rows: NDArray[np.int64],
    objects: NDArray[np.int64],
    **how: Any,
) -> Pairs:
    """All of `some_pairs` at once.

    Raises
    ------
    CrowdedError : too many for the memory
    """
    none = np.zeros(0, dtype=np.int64)
    found: list[Pairs] = [(none, none, np.zeros(0))]
    n_pairs = 0
    for some in some_pairs(truth, detections, rows, objects, **how):
        found.append(some)
        n_pairs += len(some[0])
        limit_listed("confusion", n_pairs, len(rows) + len(objects))
    columns = [np.concatenate(each) for each in zip(*found, strict=True)]
    return columns[0], columns[1], columns[2]


def some_pairs(
    truth: Truth,
    detections: Detections | Truth,
    rows: NDArray[np.int64],
    objects: NDArray[np.int64],
    *,
    inclusive: bool,
    least: float,
    strict: bool,
    single: bool = False,
    cells: tuple[NDArray[np.integer[Any]], NDArray[np.integer[Any]]] | None = None,
) -> Iterator[Pairs]:
    """Rows of detections, rows of objects and their overlap, for some rows of both; some pairs at
    a time.

    Parameters
    ----------
    rows : detections, by image; objects : objects, by image
    inclusive : whether the last pixel belongs to a box
    least, strict : the overlap from which on a pair counts; whether it has to be more
    single : whether to compute in single precision, with 1e-7 added to the union (Ultralytics,
        box_iou)
    cells : groups of `rows` and of `objects`, both ascending, instead of their images: only pairs
        of one group are compared

    Yields
    ------
    by detection in the order of `rows`, then by object in the order of `objects`

    Raises
    ------
    CrowdedError : too many pairs to compare
    """
    det_edges = edges(detections, rows, inclusive=inclusive)
    obj_edges = edges(truth, objects, inclusive=inclusive)
    group, obj_group = cells or (detections.image[rows], truth.image[objects])
    n_groups = int(max(group.max(initial=-1), obj_group.max(initial=-1))) + 1
    n_objects = np.bincount(obj_group, minlength=n_groups)
    count = n_objects[group]
    limit_compared("diagnose", int(count.sum()), len(rows) + len(objects), SLOWER)
    for some, at in meetings((np.cumsum(n_objects) - n_objects)[group], count, CHUNK):
        det, obj = rows[some], objects[at]
        overlap = (single_precision_ious if single else ious)(det_edges[some], obj_edges[at])
        keep = overlap > least if strict else overlap >= least
        yield det[keep], obj[keep], overlap[keep]
