"""Lists of mistakes: one row per error, images by number of errors, suspected label errors."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.analysis.diagnosis.analysis import BEYOND, BKG, CLS, KINDS, TP, Diagnosis
from detmap.analysis.diagnosis.operating_sweep import best_f1
from detmap.analysis.diagnosis.overlapping_pairs import some_pairs
from detmap.analysis.row_overlaps import edges, ious
from detmap.core.output.cell_text import or_none
from detmap.core.tables import Detections, Truth, boxes_as

TINY, NEARLY_ALL, LONG = 2.0, 0.98, 20.0  # pixels; share of the image; one side over the other
TWICE = 0.9  # IoU of two objects that may be one
ODD = (
    "",
    f"a side under {TINY:g} pixels",
    f"{LONG:g} times longer than wide, or wider than long",
    "nearly the whole image",
)


@dataclass(frozen=True, slots=True)
class Mistake:
    """A false positive, a missed object, or a suspected label error.

    Parameters
    ----------
    kind : of `KINDS`; of a missed object ``Miss``, or ``missed (Cls)`` or ``missed (Loc)`` if
        fixing that error would match it; or of `SUSPECTS`
    image : id; category : name of the class
    box : four numbers in the convention of the table
    score : of the detection; NaN for an object
    overlap : best overlap with an object (of a detection), with a detection of the class (of a
        missed object), or with the other object
    other : name of the class at this location; "" for none
    row : of the detections, or of the ground truth
    reason : why a box is odd
    """

    kind: str
    image: int | str
    category: str
    box: tuple[float, float, float, float]
    score: float
    overlap: float
    other: str
    row: int
    reason: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain values, None for NaN."""
        return {
            "kind": self.kind,
            "image": self.image,
            "class": self.category,
            "x": self.box[0],
            "y": self.box[1],
            "w": self.box[2],
            "h": self.box[3],
            "score": or_none(self.score),
            "overlap": or_none(self.overlap),
            "other": self.other,
            "row": self.row,
        }


SUSPECTS = ("missing label", "wrong label", "label twice", "odd box")


def doubt(suspect: Mistake) -> dict[str, Any]:
    """A doubtful label as plain values: the class that is labelled, and the one detected there."""
    of_detection = suspect.kind in SUSPECTS[:2]
    plain = suspect.to_dict()
    detected, other = plain.pop("class"), plain.pop("other")
    row = plain.pop("row")
    kind, image = plain.pop("kind"), plain.pop("image")
    named = {"label": other, "detected": detected} if of_detection else {"label": detected}
    return {
        **{"kind": kind, "image": image, "label": "", "detected": ""},
        **named,
        **plain,
        **{"reason": suspect.reason, "row": row},
    }


def errors(diagnosis: Diagnosis) -> list[Mistake]:
    """Every false positive, highest score first, then every missed object.

    Ignored detections and those beyond the limit are no errors.
    """
    rows = np.flatnonzero(diagnosis.counted() & (diagnosis.kind != TP))
    rows = rows[np.argsort(-diagnosis.detections.score[rows], kind="stable")]
    names = [KINDS[kind] for kind in diagnosis.kind[rows].tolist()]
    return [*_detection_mistakes(diagnosis, rows, names), *_missed(diagnosis)]


def _missed(diagnosis: Diagnosis) -> list[Mistake]:
    """The unmatched objects: TIDE's Miss, or the error whose fix would match them."""
    rows = np.flatnonzero(diagnosis.to_find & (diagnosis.by < 0))
    fixer = diagnosis.fixer()[rows]
    kinds = [
        "Miss" if det < 0 else f"missed ({KINDS[diagnosis.kind[det]]})" for det in fixer.tolist()
    ]
    names, label = diagnosis.truth.categories.names, diagnosis.detections.label
    taken = [names[label[det]] if det >= 0 else "" for det in fixer.tolist()]
    label_of = diagnosis.truth.label[rows].tolist()
    others = [
        name if det >= 0 and label[det] != k else ""
        for name, det, k in zip(taken, fixer.tolist(), label_of, strict=True)
    ]
    none = np.full(len(rows), np.nan)
    return _rows(diagnosis.truth, rows, kinds, none, diagnosis.reach[rows], others)


def worst(diagnosis: Diagnosis, n: int) -> list[Mistake]:
    """The n highest-scoring false positives of each kind, at most one per image, and the n largest
    objects of TIDE's Miss; a part of `errors`.
    """
    found: list[Mistake] = []
    detections, truth = diagnosis.detections, diagnosis.truth
    for kind in range(TP + 1, BEYOND):
        rows = np.flatnonzero((diagnosis.kind == kind) & ~diagnosis.ignored)
        rows = rows[np.argsort(-detections.score[rows], kind="stable")]
        rows = _one_an_image(rows, detections.image[rows], n)
        found += _detection_mistakes(diagnosis, rows, [KINDS[kind]] * len(rows))
    rows = np.flatnonzero(diagnosis.to_find & (diagnosis.by < 0) & (diagnosis.fixer() < 0))
    rows = rows[np.argsort(-truth.area[rows], kind="stable")]
    rows = _one_an_image(rows, truth.image[rows], n)
    return found + _object_mistakes(diagnosis, rows, "Miss", diagnosis.reach[rows])


def _one_an_image(rows: NDArray[np.int64], image: NDArray[np.int32], n: int) -> NDArray[np.int64]:
    """The first n rows, the first of each image."""
    first = np.sort(np.unique(image, return_index=True)[1])
    return rows[first[:n]]


@dataclass(frozen=True, slots=True)
class ImageErrors:
    """The errors on an image at one score threshold.

    Parameters
    ----------
    image : id; objects : counted objects
    tp, fp, missed : counts; an object matched only below the threshold is missed
    """

    image: int | str
    objects: int
    tp: int
    fp: int
    missed: int

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {name: getattr(self, name) for name in self.__slots__}


def images(diagnosis: Diagnosis, *, confidence: float | None = None) -> list[ImageErrors]:
    """Every image, most errors (false positives and missed objects) first, then by id.

    confidence : lowest score of the detections; default: the score of the highest F1
    """
    least = best_f1(diagnosis).score if confidence is None else confidence
    score, n = diagnosis.detections.score, len(diagnosis.truth.images)
    listed = diagnosis.counted()
    listed &= score >= least if least == least else True
    right = diagnosis.kind == TP
    image = diagnosis.detections.image
    tp, fp = (np.bincount(image[rows], minlength=n) for rows in (listed & right, listed & ~right))
    objects = np.bincount(diagnosis.truth.image[diagnosis.to_find], minlength=n)
    order = np.argsort(-(fp + objects - tp), kind="stable")
    columns = (diagnosis.truth.images.ids, objects, tp, fp, objects - tp)
    rows = zip(*(column[order].tolist() for column in columns), strict=True)
    return [ImageErrors(*row) for row in rows]


def suspects(diagnosis: Diagnosis, *, confidence: float | None = None) -> list[Mistake]:
    """Suspected label errors, to be reviewed by a person; by kind of `SUSPECTS`, highest score
    first.

    ``missing label``: a confident detection on background, not on an ignored object. ``wrong
    label``: one on an object of another class, and not on one of its class. ``label twice``: two
    objects of a class at one location. ``odd box``: as in `ODD`.

    confidence : lowest score of a confident detection; default: the score of the highest F1
    """
    least = best_f1(diagnosis).score if confidence is None else confidence
    score, truth = diagnosis.detections.score, diagnosis.truth
    found: list[Mistake] = []
    for name, kind in zip(SUSPECTS, (BKG, CLS), strict=False):
        rows = np.flatnonzero((diagnosis.kind == kind) & ~diagnosis.ignored & (score >= least))
        rows = rows[diagnosis.twin[rows] < diagnosis.iou]  # only the highest-scoring of several
        own = diagnosis.same[rows] < diagnosis.iou
        rows = rows[~_overlaps_ignored(diagnosis, rows) if kind == BKG else own]
        rows = rows[np.argsort(-score[rows], kind="stable")]
        found += _detection_mistakes(diagnosis, rows, [name] * len(rows))
    twice = _twice(diagnosis)
    found += _object_mistakes(diagnosis, twice, SUSPECTS[2], diagnosis.near[twice])
    why = _odd(truth)
    odd = np.flatnonzero((why > 0) & diagnosis.to_find)
    boxes = _object_mistakes(diagnosis, odd, SUSPECTS[3], np.full(len(odd), np.nan))
    found += [
        replace(each, reason=ODD[place])
        for each, place in zip(boxes, why[odd].tolist(), strict=True)
    ]
    return found


def _overlaps_ignored(diagnosis: Diagnosis, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    """(n,) whether a detection overlaps an ignored object, which is a label."""
    truth, detections = diagnosis.truth, diagnosis.detections
    neutral = np.flatnonzero(~diagnosis.to_find)
    at = diagnosis.background
    inclusive = diagnosis.protocol.boxes.extent == "inclusive"
    some = [
        each[np.argsort(table.image[each], kind="stable")]
        for table, each in ((detections, rows), (truth, neutral))
    ]
    met = np.zeros(len(detections), dtype=bool)
    for one, _, _ in some_pairs(
        truth, detections, *some, inclusive=inclusive, least=at, strict=True
    ):
        met[one] = True
    return np.asarray(met[rows])


def _twice(diagnosis: Diagnosis) -> NDArray[np.int64]:
    """Rows of objects with another object of their class at the same location."""
    truth = diagnosis.truth
    rows = np.flatnonzero(diagnosis.to_find & (diagnosis.near >= TWICE))
    rows = rows[np.lexsort((rows, truth.label[rows], truth.image[rows]))]
    inclusive = diagnosis.protocol.boxes.extent == "inclusive"
    begins = np.ones(len(rows), dtype=bool)
    begins[1:] = np.diff(truth.image[rows]).astype(bool) | np.diff(truth.label[rows]).astype(bool)
    cell, again = np.cumsum(begins), np.zeros(len(truth), dtype=bool)
    again[rows[_near_neighbors(edges(truth, rows, inclusive=inclusive), cell)]] = True
    some = ~again[rows]  # heaps of boxes are full of near neighbors: few are left to compare
    cells = cell[some], cell
    for one, other, _ in some_pairs(
        truth, truth, rows[some], rows, inclusive=inclusive, least=TWICE, strict=False, cells=cells
    ):
        again[one[one != other]] = True
    return np.asarray(rows[again[rows]])


def _near_neighbors(boxes: NDArray[np.float64], cell: NDArray[np.int64]) -> NDArray[np.bool_]:
    """(n,) whether a box is at the location of the next or last one of its cell, by its edges."""
    order = np.lexsort((*boxes.T, cell))
    one, other = order[:-1], order[1:]
    near = (cell[one] == cell[other]) & (ious(boxes[one], boxes[other]) >= TWICE)
    found = np.zeros(len(cell), dtype=bool)
    found[one[near]] = found[other[near]] = True
    return found


def _odd(truth: Truth) -> NDArray[np.int64]:
    """(G,) position in `ODD` of the reason why a box is odd."""
    boxes = _xywh(truth)
    short, long = boxes[:, 2:].min(axis=1), boxes[:, 2:].max(axis=1)
    with np.errstate(invalid="ignore"):
        whole = (truth.images.width * truth.images.height)[truth.image]
        nearly_all = boxes[:, 2] * boxes[:, 3] >= NEARLY_ALL * whole
    return np.select([short < TINY, long > LONG * np.maximum(short, 1e-9), nearly_all], [1, 2, 3])


def _detection_mistakes(
    diagnosis: Diagnosis, rows: NDArray[np.int64], kinds: list[str]
) -> list[Mistake]:
    same, other = diagnosis.same[rows], diagnosis.other[rows]
    names, label = diagnosis.truth.categories.names, diagnosis.truth.label
    there = diagnosis.other_object[rows]
    overlap = np.maximum(same, other)
    of_other = (other > same) & (other > diagnosis.background)
    shown = [
        names[label[g]] if is_other else ""
        for g, is_other in zip(there.tolist(), of_other.tolist(), strict=True)
    ]
    score = diagnosis.detections.score[rows]
    return _rows(diagnosis.detections, rows, kinds, score, overlap, shown)


def _object_mistakes(
    diagnosis: Diagnosis, rows: NDArray[np.int64], kind: str, overlap: NDArray[Any]
) -> list[Mistake]:
    none = np.full(len(rows), np.nan)
    return _rows(diagnosis.truth, rows, [kind] * len(rows), none, overlap, [""] * len(rows))


def _rows(
    table: Truth | Detections,
    rows: NDArray[np.int64],
    kinds: list[str],
    score: NDArray[np.float64],
    overlap: NDArray[Any],
    other: list[str],
) -> list[Mistake]:
    names = table.categories.names
    columns = zip(
        kinds,
        table.images.ids[table.image[rows]].tolist(),
        (names[k] for k in table.label[rows].tolist()),
        map(tuple, _xywh(table)[rows].tolist()),
        score.tolist(),
        overlap.astype(np.float64).tolist(),
        other,
        rows.tolist(),
        strict=True,
    )
    return [Mistake(*row) for row in columns]


def _xywh(table: Truth | Detections) -> NDArray[np.float64]:
    return boxes_as(table.boxes, table.box_format, "xywh")
