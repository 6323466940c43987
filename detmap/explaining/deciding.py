"""The classes and detections in which two evaluations differ most."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.aggregation import per_class
from detmap.explaining.steps import ClassMove, Decided
from detmap.matches import Matches
from detmap.result import Result
from detmap.tables import Detections

MOST_CLASSES = 5
MOST_DECIDED = 5
ABSENT = "not looked at"


def classes_moved(before: Result, after: Result) -> tuple[ClassMove, ...]:
    """The classes whose AP moved most, largest move first."""
    names = before.verdicts.categories.names
    a, b = (_headline_of_classes(result) for result in (before, after))
    moves = [ClassMove(name, a[name], b.get(name, math.nan)) for name in names]
    moved = sorted((each for each in moves if each.change), key=lambda each: -abs(each.change))
    return tuple(moved[:MOST_CLASSES])


def _headline_of_classes(result: Result) -> dict[str, float]:
    """The value of each class in the first row of a result."""
    values = per_class(result.scores, result.rows[0], result.protocol)
    return dict(zip(result.verdicts.categories.names, values.tolist(), strict=True))


def decided(
    before: Result, after: Result, detections: Detections, moves: tuple[ClassMove, ...]
) -> tuple[Decided, ...]:
    """Up to five detections that are judged otherwise: of the classes that moved most, best score
    first; at IoU 0.5, or the first threshold.
    """
    n = len(detections)
    a, b = (_verdicts(result.matches, n) for result in (before, after))
    overlaps = [_overlaps(result.matches, n) for result in (before, after)]
    overlap = np.where(np.isnan(overlaps[1]), overlaps[0], overlaps[1])
    rows = np.flatnonzero(a != b)
    names = detections.categories.names
    size = {move.name: abs(move.change) for move in moves}
    of_class = np.array([size.get(name, 0.0) for name in names])
    order = np.lexsort((rows, -detections.score[rows], -of_class[detections.label[rows]]))
    ids = detections.images.ids
    return tuple(
        Decided(
            detections.source,
            int(row),
            ids[detections.image[row]].item(),
            names[detections.label[row]],
            float(detections.score[row]),
            float(overlap[row]),
            str(a[row]),
            str(b[row]),
        )
        for row in rows[order[:MOST_DECIDED]]
    )


def _bit(matches: Matches) -> np.unsignedinteger[Any]:
    t = matches.protocol.axes().threshold(0.5) or 0
    return matches.tp.dtype.type(1 << t)


def _verdicts(matches: Matches, n: int) -> NDArray[np.str_]:
    """(n,) the verdict of each row of the detections."""
    found = np.full(n, ABSENT, dtype="U16")
    a, bit = matches.protocol.subset(), _bit(matches)
    true, excused = matches.tp[:, a] & bit != 0, matches.ignored[:, a] & bit != 0
    found[matches.position] = np.where(true, "TP", np.where(excused, "IGNORED", "FP"))
    return found


def _overlaps(matches: Matches, n: int) -> NDArray[np.float64]:
    """(n,) the overlap with the object that each row of the detections took; NaN for none."""
    found = np.full(n, np.nan)
    if matches.taken is None:
        return found
    a, bit = matches.protocol.subset(), _bit(matches)
    mine = matches.taken.words[:, a] & bit != 0
    rows = matches.taken.detection()[mine]
    found[matches.position[rows]] = matches.taken.overlap[mine]
    return found
