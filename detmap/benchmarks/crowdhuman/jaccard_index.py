"""CrowdHuman's Jaccard index JI: one-to-one pairs of boxes per image, at ten score thresholds.

Source: CrowdDet lib/evaluate/compute_JI.py and JIToolkits/JI_tools.py.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.benchmarks.shared.effort import Effort
from detmap.benchmarks.shared.image_pairs import (
    Pairs,
    areas,
    collected,
    corners,
    named,
    pairs_near,
    shared_areas,
)
from detmap.core.base.assignment import largest_sum
from detmap.core.matching.scope import clipped
from detmap.core.protocol import Protocol
from detmap.core.tables import Detections, Images, Truth
from detmap.core.tables.grouping import group_images, runs

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Rows = NDArray[np.int64]
Places = NDArray[np.integer[Any]]
EPSILON, OVERLAP = 1e-6, 0.5
SCORES = [0.1 * i for i in range(10)]
"""Detections of a larger score take part: compute_JI.py, score_thr."""


def best(truth: Truth, detections: Detections, protocol: Protocol) -> dict[str, float]:
    """JI, the highest mean over images of the ten score thresholds; NaN without boxes."""
    return {"JI": max(ji_at_scores(truth, detections, protocol), default=np.nan)}


def ji_at_scores(truth: Truth, detections: Detections, protocol: Protocol) -> list[float]:
    """The mean JI over images with boxes at each score threshold; without any it is left out.

    Raises
    ------
    CrowdedError : too many boxes overlap
    """
    ignored = np.zeros(len(truth), dtype=bool)
    for role, what in protocol.matching.neutral:
        if what != "count":
            ignored |= truth.role(role)
    truth, detections = clipped(truth, detections, protocol)
    ratios, present = np.zeros((2, len(SCORES)))
    effort = Effort(len(truth) + len(detections))
    for i, image in enumerate(_images(truth, detections, ignored)):
        effort.begin(named(truth.images, i))
        for s, (k, m, n) in enumerate(image.counts_at_scores(effort)):
            ratios[s] += k / (m + n - k + EPSILON)
            present[s] += m != 0 or n != 0
    means: list[float] = (ratios[present > 0] / present[present > 0]).tolist()
    return means


@dataclass(frozen=True, slots=True, eq=False)
class _Image:
    """The boxes of an image.

    Parameters
    ----------
    score : (n,) of all detections
    excused, object_excused : (n,) and (m,) whether a detection or an object is in an ignored region
    pairs : that overlap enough, by detection, then by object
    """

    score: Floats
    excused: Flags
    object_excused: Flags
    pairs: Pairs

    def counts_at_scores(self, effort: Effort) -> Iterator[tuple[int, int, int]]:
        """Yields the counts at each threshold of the scores."""
        before, counts = -1, (0, 0, 0)
        for threshold in SCORES:
            taken = self.score > threshold
            if (n_taken := int(taken.sum())) != before:  # else the same take part
                counts, before = self._counts(taken, effort), n_taken
            yield counts

    def _counts(self, taken: Flags, effort: Effort) -> tuple[int, int, int]:
        """Pairs k, objects m and detections n; boxes in ignored regions count in pairs only."""
        i, j, weight = self.pairs
        some = taken[i]
        rows, columns = heaviest_pairs((i[some], j[some], weight[some]), effort)
        found, matched = ~taken, np.zeros(len(self.object_excused), dtype=bool)
        found[rows] = matched[columns] = True
        n_objects = len(matched) - int(self.object_excused[~matched].sum())
        return len(rows), n_objects, int(taken.sum()) - int(self.excused[~found].sum())


@dataclass(frozen=True, slots=True, eq=False)
class _Boxes:
    """Boxes by image, and where each image begins."""

    rows: NDArray[np.int32]
    off: Rows
    image: NDArray[np.int32]
    sides: Floats


def _group_boxes(table: Truth | Detections, some: Flags) -> _Boxes:
    rows = np.flatnonzero(some).astype(np.int32)
    rows, off = group_images(table.image, len(table.images), rows)
    return _Boxes(rows, off, table.image[rows], corners(table)[rows])


def _images(truth: Truth, detections: Detections, ignored: Flags) -> Iterator[_Image]:
    """All images; `ignored` objects are regions."""
    images = truth.images
    found = _group_boxes(detections, np.ones(len(detections), dtype=bool))
    to_find, regions = _group_boxes(truth, ~ignored), _group_boxes(truth, ignored)
    n_rows = len(found.rows) + len(to_find.rows)
    parts = _overlapping(images, found, to_find)
    pairs = collected(parts, images, found.image, n_rows)
    score = detections.score[found.rows]
    excused, object_excused = (_find_in_regions(images, each, regions) for each in (found, to_find))
    bounds = (found.off, to_find.off, np.searchsorted(pairs[0], found.off))
    for i in range(len(images)):
        mine, own, some = (slice(off[i], off[i + 1]) for off in bounds)
        places = (pairs[0][some] - int(mine.start), pairs[1][some] - int(own.start), pairs[2][some])
        yield _Image(score[mine], excused[mine], object_excused[own], places)


def _overlapping(images: Images, found: _Boxes, to_find: _Boxes) -> Iterator[Pairs]:
    """Pairs that overlap enough, and by how much."""
    area, own = areas(found.sides), areas(to_find.sides)
    for i, j in _near(images, found, to_find):
        shared = shared_areas(found.sides, to_find.sides, (i, j))
        overlap = shared / (area[i] + own[j] - shared + EPSILON)
        kept = overlap > OVERLAP
        yield i[kept].astype(np.int32), j[kept].astype(np.int32), overlap[kept]


def _find_in_regions(images: Images, boxes: _Boxes, regions: _Boxes) -> Flags:
    """Whether enough of a box is in one region."""
    area, inside = areas(boxes.sides), np.zeros(len(boxes.rows), dtype=bool)
    for i, j in _near(images, boxes, regions):
        share = shared_areas(boxes.sides, regions.sides, (i, j)) / (area[i] + EPSILON)
        inside[i[share > OVERLAP]] = True
    return inside


def _near(images: Images, first: _Boxes, second: _Boxes) -> Iterator[tuple[Rows, Rows]]:
    sides = (first.image, first.sides), (second.image, second.sides)
    return pairs_near(images, *sides, apart=0.0)


def heaviest_pairs(edges: Pairs, effort: Effort) -> tuple[Places, Places]:
    """One-to-one pairs of the largest sum of weights above 0, from edges by row, then by column.

    Raises
    ------
    CrowdedError : too much effort
    """
    i, j, weight = edges
    compete = (np.bincount(i)[i] > 1) | (np.bincount(j)[j] > 1)
    pairs = [(i[~compete], j[~compete])]
    if compete.any():
        i, j, weight = i[compete], j[compete], weight[compete]
        part = connected_parts(i, j)
        order = np.argsort(part, kind="stable")
        for begin, end in pairwise(runs(part[order]).tolist()):
            some = order[begin:end]
            pairs.append(_match_part((i[some], j[some], weight[some]), effort))
    rows, columns = map(np.concatenate, zip(*pairs, strict=True))
    return rows, columns


def connected_parts(i: Places, j: Places) -> Places:
    """(n,) a number for each edge between rows and columns: the same if they are connected.

    Of connected parts each joins the one with the lowest number beside it, until none is left.
    """
    first_column = int(i.max(initial=-1)) + 1
    of_rows, of_columns = i, j + i.dtype.type(first_column)
    number = np.arange(int(of_columns.max(initial=-1)) + 1, dtype=i.dtype)
    while (number[of_rows] != number[of_columns]).any():
        ends = number[of_rows], number[of_columns]
        for end in ends:
            np.minimum.at(number, end, np.minimum(*ends))
        while (number[number] != number).any():
            number = number[number]
    return number[of_rows]


def _match_part(edges: Pairs, effort: Effort) -> tuple[Places, Places]:
    """The pairs of one connected part."""
    i, j, weight = edges
    if (i == i[0]).all() or (j == j[0]).all():
        best = [int(np.argmax(weight))]
        return i[best], j[best]
    (rows, of_rows), (columns, of_columns) = (np.unique(k, return_inverse=True) for k in (i, j))
    effort.limit(len(rows), len(columns))
    weights = np.zeros((len(rows), len(columns)))
    weights[of_rows, of_columns] = weight
    chosen = largest_sum(weights, effort.spend)
    return rows[chosen[0]], columns[chosen[1]]
