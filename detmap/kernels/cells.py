"""Prepares the detections of some classes for matching: ranks them, cuts them to the limit, and
finds the objects of their cell (image and class).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.kernels import kernel
from detmap.kernels.grouping import Sorter, rank_by_score, sorter

Words = NDArray[np.unsignedinteger[Any]]


class DetectionColumns(NamedTuple):
    """The detections: orders of their rows, and the columns of these rows.

    `outside` and `dropped` are words, bit a for subset a. An unmatched detection outside the subset
    is IGNORED instead of a false positive; a dropped one never matches.
    """

    rows: NDArray[np.int32]  # (D,) by class, then by image, then in input order
    ties: NDArray[np.int32]  # (D,) by class, then in the order of ties
    off: NDArray[np.int64]  # (K + 1,) where each class begins in both
    image: NDArray[np.int32]  # (D,)
    score_bits: NDArray[np.uint64]  # (D,)
    outside: Words  # (D,)
    dropped: NDArray[np.uint64]  # (D,), or (0,) where nothing is
    rank: NDArray[np.int32]  # (D,) rank for the limit, or (0,) if the limit is per cell


class ObjectColumns(NamedTuple):
    """The ground truth by cell: by class, then by image, then in input order.

    `find` and `absorb` are words, bit a for subset a: whether the object is counted, and whether it
    is an ignored region, which can match any number of detections by the overlap over their own
    area.
    """

    off: NDArray[np.int64]  # (K + 1,) where each class begins
    row: NDArray[np.int32]  # (G,) of the truth
    image: NDArray[np.int32]  # (G,)
    find: NDArray[np.uint64]  # (G,)
    absorb: NDArray[np.uint64]  # (G,) all ones if it is an ignored region in every subset
    enough: NDArray[np.float64]  # (G,) the overlap that is a match at any threshold, inf for none


class Verdicts(NamedTuple):
    """The output: rows by class, best score first; tp
    and ignored are words, bit t for threshold t.
    """

    off: NDArray[np.int64]  # (K + 1,)
    image: NDArray[np.int32]  # (D',)
    rank: NDArray[np.int32]  # (D',) number of preceding rows in the cell, or for the limit
    position: NDArray[np.int32]  # (D',) the row of the detections
    score_bits: NDArray[np.uint64]  # (D',)
    tp: Words  # (D', A), zero before
    ignored: Words  # (D', A)


class Cells(NamedTuple):
    """The cells of some classes that have detections and objects."""

    members: NDArray[np.int32]  # (m,) rows of the verdicts, by cell, best score first
    bounds: NDArray[np.int64]  # (c, 4) first and last + 1 of the members, and of the objects' order


class Ranking(NamedTuple):
    """Scratch arrays of `lay_out`, for I images and m detections of a class.

    The columns of a class are copied once, in the order of ties: few enough for a cache.
    """

    seen: NDArray[np.int32]  # (I,) detections of the image so far; zero between classes
    place: NDArray[np.int32]  # (I,) where the image's run of detections begins
    runs: NDArray[np.int32]  # (m,) the image of each run
    image: NDArray[np.int32]  # (m,)
    score_bits: NDArray[np.uint64]  # (m,)
    outside: Words  # (m,)
    order: NDArray[np.int32]  # (m,) places in these columns, ranked
    sorter: Sorter


def ranking(n_images: int, n_detections: int, outside: Words) -> Ranking:
    """Scratch arrays for classes with up to n detections and the column `outside`."""
    return Ranking(
        seen=np.zeros(n_images, np.int32),
        place=np.empty(n_images, np.int32),
        runs=np.empty(n_detections, np.int32),
        image=np.empty(n_detections, np.int32),
        score_bits=np.empty(n_detections, np.uint64),
        outside=np.empty(n_detections, outside.dtype),
        order=np.empty(n_detections, np.int32),
        sorter=sorter(n_detections),
    )


@kernel
def lay_out(
    classes: NDArray[np.int32],
    detections: DetectionColumns,
    objects: ObjectColumns,
    limit: int,
    n_thresholds: int,
    verdicts: Verdicts,
    cells: Cells,
    scratch: Ranking,
) -> int:
    """Rank the detections of some classes, write the results of those in cells without objects, and
    list the other cells. Returns the number of cells.

    Source: COCOeval.evaluateImg and accumulate: detections of an image and class by descending
    score, at most `limit`; a class's detections of all images by descending score, in a stable
    order. An unmatched detection outside the subset is IGNORED.
    """
    full = ~np.uint64(0) >> np.uint64(64 - n_thresholds)
    n_cells, base = 0, 0
    for c in range(classes.size):
        k = classes[c]
        begin = detections.off[k]
        n = detections.off[k + 1] - begin
        n_runs, before = 0, -1
        for i in range(n):
            row = detections.ties[begin + i]
            scratch.order[i], scratch.image[i] = i, detections.image[row]
            scratch.score_bits[i] = detections.score_bits[row]
            scratch.outside[i] = detections.outside[row]
            image = detections.image[detections.rows[begin + i]]
            if image != before:  # a run of one image begins
                scratch.place[image] = base + i
                scratch.runs[n_runs] = image
                n_runs += 1
                before = image
        rank_by_score(scratch.score_bits, scratch.order[:n], scratch.sorter)
        # Best first over the class, so best first within each image too.
        at = verdicts.off[k]
        for i in range(n):
            j = scratch.order[i]
            row, image = detections.ties[begin + j], scratch.image[j]
            in_cell = scratch.seen[image]
            rank = detections.rank[row] if detections.rank.size else in_cell
            if rank >= limit:
                continue
            scratch.seen[image] = in_cell + 1
            cells.members[scratch.place[image] + in_cell] = at
            verdicts.image[at], verdicts.rank[at], verdicts.position[at] = image, rank, row
            verdicts.score_bits[at] = scratch.score_bits[j]
            outside = np.uint64(scratch.outside[j])
            for a in range(verdicts.ignored.shape[1]):
                is_outside = (outside >> np.uint64(a)) & np.uint64(1)
                verdicts.ignored[at, a] = full * is_outside  # no branch: areas are random
            at += 1
        # Runs of detections and of objects are both in the order of the images.
        first = objects.off[k]
        for run in range(n_runs):
            image = scratch.runs[run]
            while first < objects.off[k + 1] and objects.image[first] < image:
                first += 1
            last = first
            while last < objects.off[k + 1] and objects.image[last] == image:
                last += 1
            if last > first and scratch.seen[image] > 0:
                cells.bounds[n_cells, 0] = scratch.place[image]
                cells.bounds[n_cells, 1] = scratch.place[image] + scratch.seen[image]
                cells.bounds[n_cells, 2] = first
                cells.bounds[n_cells, 3] = last
                n_cells += 1
            scratch.seen[image] = 0
            first = last
        base += n
    return n_cells


@kernel
def mark_outside(value: NDArray[np.float64], ranges: NDArray[np.float64], words: Words) -> None:
    """Set bit a of each word whose value is outside the a-th range, both ends included.

    value (n,); ranges (A, 2); words (n,). Source: COCOeval.evaluateImg, ``a < aRng[0] or a >
    aRng[1]``; NaN is never outside.
    """
    for a in range(ranges.shape[0]):
        low, high, bit = ranges[a, 0], ranges[a, 1], np.uint64(1) << np.uint64(a)
        for i in range(value.size):  # without a branch, so that the compiler can vectorize
            words[i] |= bit if (value[i] < low) | (value[i] > high) else np.uint64(0)


@kernel
def count_within(
    image: NDArray[np.int32],
    rows: NDArray[np.int32],
    off: NDArray[np.int64],
    limit: int,
    kept: NDArray[np.int64],
    cut: NDArray[np.int32],
) -> None:
    """The number of rows per class after cutting each image to `limit` rows, and of those cut.

    image (N,), the image of each row; rows (n,), grouped by class, then by image; off (K + 1,);
    out: kept (K,); cut (I,), added to. Source: COCOeval.evaluateImg, the detections up to maxDet.
    """
    for k in range(kept.size):
        kept[k] = 0
        before, run = -1, 0
        for i in range(off[k], off[k + 1]):
            at = image[rows[i]]
            run = run + 1 if at == before else 1
            before = at
            kept[k] += run <= limit
            cut[at] += run > limit
