"""Assignments of objects to detections, and pycocotools' reading of them."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from detmap.compat.drop_in_engine import Evaluated, Part
from detmap.core.matching.engine import match
from detmap.core.tables.grouping import group, labels


@dataclass(frozen=True, slots=True, eq=False)
class Assignments:
    """n assignments of objects to detections.

    Parameters
    ----------
    row, target : (n,) int32, rows of the matches and of the ground truth
    area, threshold : (n,) int32, positions of the area range and of the threshold
    """

    row: NDArray[np.int32]
    target: NDArray[np.int32]
    area: NDArray[np.int32]
    threshold: NDArray[np.int32]


def find_assignments(evaluated: Evaluated) -> Assignments:
    """Matches all rows again, with assignments."""
    truth, columns = evaluated.truth, []
    n_images, n_classes = len(evaluated.rules.image_ids), evaluated.rules.n_classes
    order = group(truth.image, truth.label, n_images, n_classes)[0]
    cell = truth.label[order].astype(np.int64) * n_images + truth.image[order]
    for part in evaluated.parts:
        matches = match(
            truth, evaluated.detections, part.matches.protocol, taken=True, digested=False
        )
        assert matches.taken is not None
        row, words = matches.taken.detection(), matches.taken.words
        met = labels(matches.off)[row].astype(np.int64) * n_images + matches.image[row]
        target = order[np.searchsorted(cell, met) + matches.taken.object]
        for t, place in enumerate(part.where.tolist()):
            n, a = np.nonzero(words & words.dtype.type(1 << t))
            columns.append((row[n], target[n], a, np.full(len(n), place)))
    kind = np.int32  # a tenth of the memory that evalImgs takes is at stake
    joined = (np.concatenate(each, dtype=kind) for each in zip(*columns, strict=True))
    return Assignments(*joined)


def pycocotools_matches(evaluated: Evaluated) -> Evaluated:
    """Match results with pycocotools' quirks: object id 0 counts as unmatched, and record areas."""
    boxes = evaluated.found.boxes
    own = (
        evaluated.rules.kind == "bbox" and (evaluated.found.area != boxes[:, 2] * boxes[:, 3]).any()
    )
    if own or not evaluated.objects.ids.all():
        return replace(evaluated, parts=_with_quirks(evaluated))
    return evaluated


def _with_quirks(evaluated: Evaluated) -> list[Part]:
    rules, taken = evaluated.rules, find_assignments(evaluated)
    low, high = np.array(rules.areas).T
    area = evaluated.truth.area[taken.target]
    neutral = (
        evaluated.ignored_objects()[taken.target]
        | (area < low[taken.area])
        | (area > high[taken.area])
    )
    matched = evaluated.objects.ids[taken.target] != 0
    parts = []
    for part in evaluated.parts:
        matches = part.matches
        own_area = evaluated.found.area[matches.position, None]
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
