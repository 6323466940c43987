"""What the browser counts and shows: objects, and the detections of each detector, as columns.

Everything is sorted by image; detections by descending score within it.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.analysis.browse.columns import packed
from detmap.analysis.browse.outlines import box_columns, scale_of
from detmap.analysis.diagnosis import Diagnosis
from detmap.analysis.diagnosis.analysis import BEYOND, BOTH, CLS, DUPE, LOC, TP
from detmap.analysis.diagnosis.breakdowns import properties
from detmap.analysis.diagnosis.confusion import overlapping

MOST_DETECTIONS = 1_000_000
"""Detections of a detector that are shown, unless the score threshold of half the best F1's has
more."""
MOST_STEPS = 10_000
"""Score thresholds: each score that occurs, or if there are more a grid of round numbers."""
Rows = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Shown:
    """The rows of a detector that the browser knows.

    Parameters
    ----------
    diagnosis : of the detector
    rows : detections by image and descending score, within the limit and from the floor on
    objects : rows of the ground truth, by image
    steps : (S,) ascending score thresholds; a detection counts from its step on down
    exact : whether all scores are steps, so that any number is an exact threshold
    floor : lowest score, None if no detection is left out
    best : score threshold of the best F1
    """

    diagnosis: Diagnosis
    rows: Rows
    objects: Rows
    steps: NDArray[np.float64]
    exact: bool
    floor: float | None
    best: float


def shown(diagnosis: Diagnosis, best: float, most: int = MOST_DETECTIONS) -> Shown:
    """Selects what the browser shows. A floor of the score changes no number above it, because
    the kind of a detection does not depend on lower scores; a limit per image would.
    """
    score = diagnosis.detections.score
    listed = diagnosis.kind != BEYOND
    floor = None
    if np.count_nonzero(listed) > most:
        lowest = float(np.partition(score[listed], -most)[-most])
        floor = lowest if np.isnan(best) else min(lowest, best / 2 if best > 0 else best)
        listed &= score >= floor
    rows = diagnosis.order().astype(np.int64)
    rows = rows[listed[rows]]
    objects = np.argsort(diagnosis.truth.image, kind="stable")
    steps, exact = _steps(score[rows], best)
    start = best if best == best else float(steps[0])
    return Shown(diagnosis, rows, objects, steps, exact, floor, start)


def _steps(score: NDArray[np.float64], best: float) -> tuple[NDArray[np.float64], bool]:
    """Thresholds, of which the lowest is not above any score; and whether they are all scores."""
    values = np.unique(score)
    if len(values) <= MOST_STEPS:
        return (values if len(values) else np.zeros(1)), True
    low, high = float(values[0]), float(values[-1])
    digits = 0
    while digits < 300 and high * 10.0**digits - low * 10.0**digits < MOST_STEPS / 9.9:
        digits += 1
    unit = 10.0**digits  # a quotient of whole numbers is what a reader types
    first, last = np.ceil(low * unit), np.floor(high * unit)
    if last - first > MOST_STEPS:
        grid = values[np.linspace(0, len(values) - 1, MOST_STEPS).astype(np.int64)]
    else:
        grid = np.arange(first, last + 1) / unit
    some = np.concatenate([values[[0, -1]], grid, [] if np.isnan(best) else [best]])
    return np.unique(some[(some >= low) & (some <= high)]), False


def truth_content(some: Shown) -> dict[str, Any]:
    """Returns the columns of the objects: class, whether it counts, properties, box."""
    truth, rows = some.diagnosis.truth, some.objects
    return {
        "counts": packed(np.bincount(truth.image, minlength=len(truth.images))),
        "label": packed(truth.label[rows]),
        "counted": packed(some.diagnosis.to_find[rows]),
        "row": packed(rows),
        "properties": [
            packed(of_objects[rows].astype(np.int64) + 1)
            for _, _, of_objects, _ in properties(some.diagnosis)
        ],
        "box": box_columns(truth, rows, scale_of(truth)),
    }


def detector_content(some: Shown) -> dict[str, Any]:
    """Returns what the browser counts of a detector: steps, kinds, classes, linked objects,
    properties, and the pairs of the confusion matrix.
    """
    diagnosis, rows = some.diagnosis, some.rows
    n_images, image = len(diagnosis.truth.images), diagnosis.detections.image[rows]
    step = np.searchsorted(some.steps, diagnosis.detections.score[rows], side="right") - 1
    det, obj = _pairs(some)
    return {
        "counts": packed(np.bincount(image, minlength=n_images)),
        "steps": packed(some.steps),
        "step": packed(step),
        "kind": packed(diagnosis.kind[rows] + 8 * diagnosis.ignored[rows].astype(np.uint8)),
        "label": packed(diagnosis.detections.label[rows]),
        "object": packed(_linked(some) + 1),
        "code": packed(_code(some)),
        "pairs": packed(np.bincount(image[det], minlength=n_images)),
        "pairDet": packed(_within(image)[det]),
        "pairObj": packed(_within(diagnosis.truth.image[some.objects])[obj]),
    }


def property_content(some: Shown) -> list[dict[str, Any]]:
    """Returns names and values of the properties, and whether detections have places of their own,
    in the order of `truth_content`.
    """
    return [
        {"by": by, "names": names, "own": of_detections is not None}
        for by, names, _, of_detections in properties(some.diagnosis)
    ]


def _code(some: Shown) -> Rows:
    """(n,) the places of each detection among its own properties as one number, 0 for unknown."""
    code = np.zeros(len(some.rows), dtype=np.int64)
    for _, names, _, of_detections in properties(some.diagnosis):
        if of_detections is not None:
            code = code * (len(names) + 1) + of_detections[some.rows].astype(np.int64) + 1
    return code


def _linked(some: Shown) -> NDArray[np.int64]:
    """(n,) the object that a detection matched, or that its error is about, among those of its
    image; -1 for none.
    """
    diagnosis, rows = some.diagnosis, some.rows
    kind = diagnosis.kind[rows]
    own = (kind == BOTH) & (diagnosis.same[rows] > diagnosis.other[rows])
    chosen = np.select(
        [kind == TP, own | np.isin(kind, (LOC, DUPE)), np.isin(kind, (CLS, BOTH))],
        [each[rows] for each in (diagnosis.took, diagnosis.same_object, diagnosis.other_object)],
        -1,
    )
    place = np.full(len(diagnosis.truth) + 1, -1, dtype=np.int64)
    place[some.objects] = _within(diagnosis.truth.image[some.objects])
    return place[chosen]


def _within(image: NDArray[Any]) -> Rows:
    """(n,) the place of each row, sorted by image, among those of its image."""
    return np.arange(len(image)) - np.searchsorted(image, image)


def _pairs(some: Shown) -> tuple[Rows, Rows]:
    """Places in `rows` and `objects` of the pairs that a confusion matrix may count, by image and
    in the order in which detmap's rule takes them: same class first, then by overlap. Taking from
    a threshold on, one to one and in this order, what is free gives the matrix of that threshold.
    """
    diagnosis = some.diagnosis
    truth, detections = diagnosis.truth, diagnosis.detections
    rows = some.rows[~diagnosis.ignored[some.rows]]
    objects = some.objects[diagnosis.to_find[some.objects]]
    det, obj, overlap = overlapping(diagnosis, rows, objects, diagnosis.iou)
    place, obj_place = np.zeros(len(detections), np.int64), np.zeros(len(truth), np.int64)
    place[some.rows], obj_place[some.objects] = np.arange(len(some.rows)), np.arange(len(truth))
    other = truth.label[obj] != detections.label[det]
    order = np.lexsort((obj_place[obj], place[det], -overlap, other, detections.image[det]))
    return place[det[order]], obj_place[obj[order]]
