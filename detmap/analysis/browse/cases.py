"""What the browser counts and shows: objects, and the detections of each detector, as columns.

Everything is sorted by image; detections by descending score within it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.analysis.browse.columns import packed, packed_floats
from detmap.analysis.diagnosis import Diagnosis
from detmap.analysis.diagnosis.analysis import BEYOND, BOTH, CLS, DUPE, LOC, TP
from detmap.analysis.diagnosis.breakdowns import properties
from detmap.analysis.diagnosis.overlapping_pairs import pairs
from detmap.analysis.diagnosis.shape_overlaps import overlapping_shapes
from detmap.core.tables import Detections, Truth, boxes_as

MOST_DETECTIONS = 1_000_000
"""Detections of a detector that are shown, unless the score threshold of half the best F1's has
more."""
MOST_STEPS = 10_000
"""Score thresholds: each score that occurs, or if there are more a grid of round numbers."""
ORIGIN, QUARTERS, LARGEST = 1024, 4, 65535
"""Of the coordinates in 16 bits: pixels left of 0, and parts of a pixel."""
OF_IMAGE, OF_CLASS = "objects per image", "objects of the class"
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
    scale = scale_of(truth)
    columns = [of_objects[rows].astype(np.int64) + 1 for _, _, of_objects, _ in _own(some)]
    return {
        "counts": packed(np.bincount(truth.image, minlength=len(truth.images))),
        "label": packed(truth.label[rows]),
        "counted": packed(some.diagnosis.to_find[rows]),
        "row": packed(rows),
        "reach": packed(_share(some.diagnosis.reach[rows])),
        "properties": [packed(each) for each in columns],
        "box": [packed(each) for each in _coordinates(truth, rows, scale)],
    }


def detector_content(some: Shown) -> dict[str, Any]:
    """Returns what the browser counts of a detector: steps, kinds, classes, linked objects, own
    properties, and the pairs of the confusion matrix.
    """
    diagnosis, rows = some.diagnosis, some.rows
    n_images = len(diagnosis.truth.images)
    step = np.searchsorted(some.steps, diagnosis.detections.score[rows], side="right") - 1
    det, obj = _pairs(some)
    return {
        "counts": packed(np.bincount(diagnosis.detections.image[rows], minlength=n_images)),
        "steps": packed_floats(some.steps),
        "step": packed(step),
        "kind": packed(diagnosis.kind[rows] + 8 * diagnosis.ignored[rows].astype(np.uint8)),
        "label": packed(diagnosis.detections.label[rows]),
        "object": packed(_linked(some) + 1),
        "code": packed(_code(some)),
        "pairs": packed(np.bincount(diagnosis.detections.image[rows[det]], minlength=n_images)),
        "pairDet": packed(_within(diagnosis.detections.image[rows], n_images)[det]),
        "pairObj": packed(_within(diagnosis.truth.image[some.objects], n_images)[obj]),
    }


def _own(some: Shown) -> Iterator[tuple[str, list[str], NDArray[np.int8], NDArray[np.int8] | None]]:
    """The properties that a table of the images or classes does not give."""
    yield from (each for each in properties(some.diagnosis) if each[0] not in (OF_IMAGE, OF_CLASS))


def property_content(some: Shown) -> list[dict[str, Any]]:
    """Returns names and values of the properties, those of objects first, in the order of
    `truth_content`; the others with their value per image or class.
    """
    truth, detections = some.diagnosis.truth, some.diagnosis.detections
    own, keyed = [], []
    for by, names, of_objects, of_detections in properties(some.diagnosis):
        if by not in (OF_IMAGE, OF_CLASS):
            own.append({"by": by, "names": names, "own": of_detections is not None})
            continue
        key, n = ("image", len(truth.images)) if by == OF_IMAGE else ("label", -1)
        place = np.zeros(len(truth.categories) if n < 0 else n, dtype=np.int64)
        assert of_detections is not None
        place[getattr(detections, key)] = of_detections.astype(np.int64) + 1
        place[getattr(truth, key)] = of_objects.astype(np.int64) + 1
        keyed.append({"by": by, "names": names, "of": key, "place": packed(place)})
    return [*own, *keyed]


def _code(some: Shown) -> NDArray[np.int64]:
    """(n,) the places of each detection among its own properties as one number, 0 for unknown."""
    code = np.zeros(len(some.rows), dtype=np.int64)
    for _, names, _, of_detections in _own(some):
        if of_detections is not None:
            code = code * (len(names) + 1) + of_detections[some.rows].astype(np.int64) + 1
    return code


def _linked(some: Shown) -> NDArray[np.int64]:
    """(n,) the object that a detection matched, or that its error is about, among those of its
    image; -1 for none.
    """
    diagnosis, rows = some.diagnosis, some.rows
    kind, chosen = diagnosis.kind[rows], np.full(len(rows), -1, dtype=np.int64)
    for column, kinds in (
        (diagnosis.took, (TP,)),
        (diagnosis.same_object, (LOC, DUPE)),
        (diagnosis.other_object, (CLS, BOTH)),
    ):
        mine = np.isin(kind, kinds)
        chosen[mine] = column[rows[mine]]
    own = (kind == BOTH) & (diagnosis.same[rows] > diagnosis.other[rows])
    chosen[own] = diagnosis.same_object[rows[own]]
    place = np.full(len(diagnosis.truth) + 1, -1, dtype=np.int64)
    place[some.objects] = _within(diagnosis.truth.image[some.objects], len(diagnosis.truth.images))
    return place[chosen]


def _within(image: NDArray[Any], n_images: int) -> NDArray[np.int64]:
    """(n,) the place of each row, sorted by image, among those of its image."""
    first = np.searchsorted(image, np.arange(n_images))
    return np.asarray(np.arange(len(image)) - first[image])


def _pairs(some: Shown) -> tuple[Rows, Rows]:
    """Places in `rows` and `objects` of the pairs that a confusion matrix may count, by image and
    in the order in which detmap's rule takes them: same class first, then by overlap. Taking from
    a threshold on, one to one and in this order, what is free gives the matrix of that threshold.
    """
    diagnosis = some.diagnosis
    truth, detections, rules = diagnosis.truth, diagnosis.detections, diagnosis.protocol
    rows = some.rows[~diagnosis.ignored[some.rows]]
    objects = some.objects[diagnosis.to_find[some.objects]]
    if rules.iou.of == "boxes":
        inclusive = rules.boxes.extent == "inclusive"
        how = {"inclusive": inclusive, "least": diagnosis.iou, "strict": False}
        det, obj, overlap = pairs(truth, detections, rows, objects, **how)
    else:
        det, obj, overlap = overlapping_shapes(truth, detections, rows, objects, rules)
        enough = overlap >= diagnosis.iou
        det, obj, overlap = det[enough], obj[enough], overlap[enough]
    place, obj_place = (
        _places(each, n) for each, n in ((some.rows, len(detections)), (some.objects, len(truth)))
    )
    other = truth.label[obj] != detections.label[det]
    order = np.lexsort((obj_place[obj], place[det], -overlap, other, detections.image[det]))
    return place[det[order]], obj_place[obj[order]]


def _places(rows: Rows, n: int) -> Rows:
    """(n,) where each row of a table is among some rows."""
    place = np.zeros(n, dtype=np.int64)
    place[rows] = np.arange(len(rows))
    return place


def box_content(every: list[Shown], images: range) -> list[dict[str, Any]]:
    """Returns boxes, overlaps and rows of each detector on some images, in the order of its
    columns.
    """
    found, scale = [], scale_of(every[0].diagnosis.truth)
    for some in every:
        detections = some.diagnosis.detections
        image = detections.image[some.rows]
        rows = some.rows[slice(*np.searchsorted(image, (images.start, images.stop)))]
        overlap = np.maximum(some.diagnosis.same[rows], some.diagnosis.other[rows])
        boxes = [packed(each) for each in _coordinates(detections, rows, scale)]
        found.append({"box": boxes, "overlap": packed(_share(overlap)), "row": packed(rows)})
    return found


def scale_of(truth: Truth) -> int:
    """Returns the parts of a pixel that coordinates are rounded to: 1 if images are large."""
    sides = np.concatenate([truth.images.width, truth.images.height])
    boxes = boxes_as(truth.boxes, truth.box_format, "xywh")
    corner = (boxes[:, :2] + boxes[:, 2:]).max(initial=0)
    largest = max(float(np.nan_to_num(sides).max(initial=0)), float(corner))
    return QUARTERS if largest + ORIGIN <= LARGEST / QUARTERS else 1


def _coordinates(table: Truth | Detections, rows: Rows, scale: int) -> list[NDArray[np.int64]]:
    """x, y, width and height in 16 bits, for display."""
    boxes = boxes_as(table.boxes[rows], table.box_format, "xywh") + np.array([ORIGIN, ORIGIN, 0, 0])
    whole = np.clip(np.rint(boxes * scale), 0, LARGEST).astype(np.int64)
    return list(whole.T)


def _share(overlap: NDArray[Any]) -> NDArray[np.int64]:
    """Overlaps in 8 bits, for display."""
    return np.asarray(np.rint(np.clip(np.nan_to_num(overlap), 0, 1) * 255).astype(np.int64))
