"""CrowdHuman's Jaccard index JI: one-to-one pairs of boxes per image, at ten score thresholds.

Source: CrowdDet lib/evaluate/compute_JI.py and JIToolkits/JI_tools.py.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from detmap.base.assignment import largest_sum
from detmap.benchmarks.image_pairs import areas, corners, shared_areas
from detmap.matching.scope import clipped
from detmap.protocol import Protocol
from detmap.tables import Detections, Truth
from detmap.tables.grouping import group_images

Floats = NDArray[np.float64]
EPSILON, OVERLAP = 1e-6, 0.5
SCORES = [0.1 * i for i in range(10)]
"""Detections of a larger score take part: compute_JI.py, score_thr."""


def best(truth: Truth, detections: Detections, protocol: Protocol) -> dict[str, float]:
    """JI, the highest mean over images of the ten score thresholds; NaN without boxes."""
    return {"JI": max(ji_at_scores(truth, detections, protocol), default=np.nan)}


def ji_at_scores(truth: Truth, detections: Detections, protocol: Protocol) -> list[float]:
    """The mean JI over images with boxes at each score threshold; without any it is left out."""
    ignored = np.zeros(len(truth), dtype=bool)
    for role, what in protocol.matching.neutral:
        if what != "count":
            ignored |= truth.role(role)
    truth, detections = clipped(truth, detections, protocol)
    objects, found = corners(truth), corners(detections)
    ratios, present = np.zeros((2, len(SCORES)))
    order, off = group_images(detections.image, len(truth.images))
    obj_order, obj_off = group_images(truth.image, len(truth.images))
    for i in range(len(truth.images)):
        rows, objs = order[off[i] : off[i + 1]], obj_order[obj_off[i] : obj_off[i + 1]]
        to_find, regions = objects[objs[~ignored[objs]]], objects[objs[ignored[objs]]]
        image = _Image(found[rows], detections.score[rows], to_find, regions)
        for s, threshold in enumerate(SCORES):
            k, m, n = image.counts(threshold)
            ratios[s] += k / (m + n - k + EPSILON)
            present[s] += m != 0 or n != 0
    means: list[float] = (ratios[present > 0] / present[present > 0]).tolist()
    return means


class _Image:
    """The overlaps of one image, of all its detections."""

    def __init__(self, found: Floats, score: Floats, to_find: Floats, regions: Floats) -> None:
        self.score = score
        self.overlap = _overlaps(found, to_find)
        self.rows, self.columns = np.nonzero(self.overlap > OVERLAP)
        self.excused = _inside_regions(found, regions)
        self.object_excused = _inside_regions(to_find, regions)

    def counts(self, threshold: float) -> tuple[int, int, int]:
        """Pairs k, objects m and detections n; boxes in ignored regions count in pairs only."""
        taken = self.score > threshold
        some = taken[self.rows]
        edges = zip(self.rows[some].tolist(), self.columns[some].tolist(), strict=True)
        pairs = heaviest_pairs([(i, j, float(self.overlap[i, j])) for i, j in edges])
        found, matched = ~taken, np.zeros(len(self.object_excused), dtype=bool)
        for i, j in pairs:
            found[i] = matched[j] = True
        n_objects = len(matched) - int(self.object_excused[~matched].sum())
        return len(pairs), n_objects, int(taken.sum()) - int(self.excused[~found].sum())


def _overlaps(a: Floats, b: Floats) -> Floats:
    shared = shared_areas(a[:, None], b[None])
    return np.asarray(shared / (areas(a)[:, None] + areas(b)[None] - shared + EPSILON))


def _inside_regions(boxes: Floats, regions: Floats) -> NDArray[np.bool_]:
    share = shared_areas(boxes[:, None], regions[None]) / (areas(boxes)[:, None] + EPSILON)
    return np.asarray((share > OVERLAP).any(axis=1))


Edge = tuple[int, int, float]


def heaviest_pairs(edges: list[Edge]) -> list[tuple[int, int]]:
    """One-to-one pairs (i, j) of the largest sum of weights, from edges (i, j, weight > 0)."""
    pairs = []
    for part in _components(edges):
        if len({i for i, _, _ in part}) == 1 or len({j for _, j, _ in part}) == 1:
            i, j, _ = max(part, key=lambda edge: edge[2])
            pairs.append((i, j))
        else:
            pairs += _assigned(part)
    return pairs


def _components(edges: list[Edge]) -> Iterator[list[Edge]]:
    """The edges of each connected part."""
    part_of: dict[tuple[str, int], list[Edge]] = {}
    for i, j, weight in edges:
        a, b = part_of.get(("i", i), []), part_of.get(("j", j), [])
        if len(a) < len(b):
            a, b = b, a
        a.append((i, j, weight))
        if a is not b:
            a += b
        for x, y, _ in [(i, j, weight), *b]:
            part_of["i", x] = part_of["j", y] = a
    seen = {id(part): part for part in part_of.values()}
    yield from seen.values()


def _assigned(edges: list[Edge]) -> list[tuple[int, int]]:
    """The pairs of one connected part."""
    rows = sorted({i for i, _, _ in edges})
    columns = sorted({j for _, j, _ in edges})
    weights = np.zeros((len(rows), len(columns)))
    for i, j, weight in edges:
        weights[rows.index(i), columns.index(j)] = weight
    chosen = (each.tolist() for each in largest_sum(weights))
    return [(rows[i], columns[j]) for i, j in zip(*chosen, strict=True)]
