"""Which objects were taken, and what pycocotools makes of it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from detmap.compat.drop_in_engine import Judged, Part
from detmap.matching.engine import match
from detmap.tables.grouping import group, labels


@dataclass(frozen=True, slots=True, eq=False)
class Taken:
    """Which objects were taken: n times that a detection took one.

    Parameters
    ----------
    row, target : (n,) rows of the matches and of the truth
    area, threshold : (n,) in which range and at which threshold
    """

    row: NDArray[np.int64]
    target: NDArray[np.int32]
    area: NDArray[np.int64]
    threshold: NDArray[np.int64]


def taken_of(judged: Judged) -> Taken:
    """Who took what: everything is matched once more, to be told."""
    truth, columns = judged.truth, []
    n_images, n_classes = len(judged.rules.image_ids), judged.rules.n_classes
    order = group(truth.image, truth.label, n_images, n_classes)[0]
    cell = truth.label[order].astype(np.int64) * n_images + truth.image[order]
    for part in judged.parts:
        matches = match(truth, judged.detections, part.matches.protocol, taken=True)
        assert matches.taken is not None
        row, words = matches.taken.detection(), matches.taken.words
        met = labels(matches.off)[row].astype(np.int64) * n_images + matches.image[row]
        target = order[np.searchsorted(cell, met) + matches.taken.object]
        for t, place in enumerate(part.where.tolist()):
            n, a = np.nonzero(words & words.dtype.type(1 << t))
            columns.append((row[n], target[n], a, np.full(len(n), place)))
    return Taken(*(np.concatenate(column) for column in zip(*columns, strict=True)))


def pycocotools_matches(judged: Judged) -> Judged:
    """The verdicts as pycocotools reads who took what: the object with id 0 is no object, areas of
    detections are the records' own.
    """
    boxes = judged.found.boxes
    own = judged.rules.kind == "bbox" and (judged.found.area != boxes[:, 2] * boxes[:, 3]).any()
    if own or not judged.objects.ids.all():
        return replace(judged, parts=_rejudged(judged))
    return judged


def _rejudged(judged: Judged) -> list[Part]:
    rules, taken = judged.rules, taken_of(judged)
    low, high = np.array(rules.areas).T
    area = judged.truth.area[taken.target]
    neutral = judged.neutral()[taken.target] | (area < low[taken.area]) | (area > high[taken.area])
    matched = judged.objects.ids[taken.target] != 0
    parts = []
    for part in judged.parts:
        matches = part.matches
        own_area = judged.found.area[matches.position, None]
        outside = (own_area < low) | (own_area > high)
        bit = np.zeros(len(rules.thresholds), dtype=np.uint64)
        bit[part.where] = np.uint64(1) << np.arange(len(part.where), dtype=np.uint64)
        tp, hit, excused = (np.zeros(matches.tp.shape, dtype=np.uint64) for _ in range(3))
        for words, which in ((tp, matched & ~neutral), (hit, matched), (excused, neutral)):
            place = taken.row[which], taken.area[which]
            np.bitwise_or.at(words, place, bit[taken.threshold[which]])
        ignored = excused | np.where(outside, ~hit & bit.sum(), np.uint64(0))
        word = matches.tp.dtype
        new = replace(matches, tp=tp.astype(word), ignored=ignored.astype(word))
        parts.append(Part(part.where, new))
    return parts
