"""The confusion matrix: true and predicted classes, with a row and a column of background.

Five tools have five rules, and give five matrices of the same files. The default is another one,
since all five count what a benchmark ignores.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.analysis.diagnosis.analysis import Diagnosis, diagnose
from detmap.analysis.diagnosis.class_labels import told_apart
from detmap.analysis.diagnosis.operating_sweep import best_f1
from detmap.analysis.diagnosis.overlapping_pairs import pairs
from detmap.analysis.diagnosis.shape_overlaps import overlapping_shapes
from detmap.analysis.row_overlaps import edges
from detmap.core.base import memory, pair_limits
from detmap.core.base.arguments import fraction
from detmap.core.base.suggestions import did_you_mean, proposes_arguments
from detmap.core.curves.operating_points import require_score
from detmap.core.output.table import Table
from detmap.core.output.tabular import Tabular
from detmap.core.protocol import Protocol
from detmap.core.tables import Detections, Truth
from detmap.errors import CrowdedError, DataError

Pairs = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]


MOST_DENSE = 2000
"""Classes up to which plain values contain the whole matrix."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Confusion(Tabular):
    """Counts of true and predicted classes, both with background last.

    Parameters
    ----------
    classes : K names
    rule : its rule
    confidence, iou : the thresholds; -inf if there is no highest F1
    cases : (n,) each: row, column and image of each counted case
    """

    classes: tuple[str, ...]
    rule: str
    confidence: float
    iou: float
    cases: tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]

    @property
    def matrix(self) -> NDArray[np.int64]:
        """(K + 1, K + 1) int64: one row per true class, one column per predicted class.

        Rows sum to the objects and columns to the detections, except by mmdet's rule, which counts
        every overlapping pair.

        Raises
        ------
        DataError : the matrix of thousands of classes needs more memory than is free
        """
        size = len(self.classes) + 1
        memory.require(
            8 * size**2,
            "confusion",
            f"a matrix of {size - 1} classes",
            "use `counts`, which leaves out zeros, or evaluate fewer classes",
        )
        matrix = np.zeros((size, size), dtype=np.int64)
        row, column, count = self.counts()
        matrix[row, column] = count
        return matrix

    @property
    def array(self) -> NDArray[np.int64]:
        """(K + 1, K + 1) int64: `matrix`."""
        return self.matrix

    def tables(self) -> list[Table]:
        """Returns the table ``confusion``: a row per true class, a column per predicted class."""
        names = (*self.classes, "background")
        rows = zip(names, self.matrix.tolist(), strict=True)
        header = ("true class", *names)
        title = f"confusion matrix at confidence {self.confidence:.4g} and IoU {self.iou:g}"
        return [Table(title, header, tuple((name, *row) for name, row in rows), name="confusion")]

    def to_frame(self, table: str | None = "confusion") -> Any:
        """Returns a `pandas.DataFrame`: true classes as index, predicted classes as columns."""
        return super(Confusion, self).to_frame(table).set_index("true class")

    def plot(
        self, path: str | Path | None = None, *, ax: Any = None, normalize: bool = False
    ) -> Any:
        """Draws the matrix and returns the `matplotlib.figure.Figure`.

        Parameters
        ----------
        path : .png, .svg or .pdf file to write too
        ax : Matplotlib axes to draw in
        normalize : whether to divide each row by its sum

        Raises
        ------
        DetmapError : another suffix, no matplotlib, or the write fails
        """
        from detmap.analysis.diagnosis import matrix_plots

        names = (*self.classes, "background")
        return matrix_plots.plot(self.matrix, names, path, ax=ax, normalize=normalize)

    def counts(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """(m,) each: row, column and count of the cells that are not 0, in their order."""
        size = len(self.classes) + 1
        cell, count = np.unique(
            self.cases[0].astype(np.int64) * size + self.cases[1], return_counts=True
        )
        return cell // size, cell % size, count.astype(np.int64)

    def among(self, classes: Sequence[int]) -> NDArray[np.int64]:
        """(n, n) int64: the cells of n ascending classes, K for background."""
        row, column, count = self.counts()
        inside = np.isin(row, classes) & np.isin(column, classes)
        matrix = np.zeros((len(classes),) * 2, dtype=np.int64)
        at = (np.searchsorted(classes, each[inside]) for each in (row, column))
        matrix[tuple(at)] = count[inside]
        return matrix

    def swapped(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """As `counts`, of two different classes."""
        row, column, count = self.counts()
        other = (row != column) & (np.maximum(row, column) < len(self.classes))
        return row[other], column[other], count[other]

    def to_dict(self) -> dict[str, Any]:
        """Plain values; more than 2,000 classes have `counts` instead of a matrix."""
        dense = len(self.classes) <= MOST_DENSE
        counts = {} if dense else {"counts": np.stack(self.counts(), axis=1).tolist()}
        return {
            "classes": [*self.classes, "background"],
            "matrix": self.matrix.tolist() if dense else None,
            **counts,
            "rows": "true",
            "columns": "predicted",
            "rule": self.rule,
            "confidence": None if np.isinf(self.confidence) else self.confidence,
            "iou": self.iou,
        }

    def confused(self, n: int = 10) -> list[tuple[str, str, int]]:
        """True class, predicted class and count of the most frequent confusions."""
        row, column, count = self.swapped()
        order = np.argsort(-count, kind="stable")[:n]
        return [
            (self.classes[i], self.classes[j], each)
            for i, j, each in zip(
                *(part[order].tolist() for part in (row, column, count)), strict=True
            )
        ]


@dataclass(frozen=True, slots=True)
class Rule:
    """One row of the table of rules.

    Parameters
    ----------
    confidence, iou : default thresholds; None for the highest F1 and that of the diagnosis
    strict : whether a score, an overlap must be above its threshold
    taking : function from pairs to those that count
    source : of the rule
    """

    confidence: float | None
    iou: float | None
    strict: tuple[bool, bool]
    taking: Callable[[Diagnosis, Pairs], Pairs]
    source: str


def confusion(
    diagnosis: Diagnosis,
    *,
    rule: str = "detmap",
    confidence: float | None = None,
    iou: float | None = None,
) -> Confusion:
    """Computes a confusion matrix.

    Parameters
    ----------
    rule : ``detmap``: one to one, pairs of the same class first, then by overlap; without what the
        protocol ignores. The others of `RULES` count every detection, and leave out ignored
        objects; they compare boxes.
    confidence : score threshold; default: that of the rule; ``detmap``: that of the highest F1 over
        all classes
    iou : IoU threshold; default: that of the rule

    Raises
    ------
    DataError : an unknown rule, a threshold that is no number, too crowded images

    Source: supervision 0.31.2, detection.py; ultralytics 8.0.200 and 8.4.190, metrics.py; mmdet
    3.3.0, tools/analysis_tools/confusion_matrix.py.
    """
    if rule not in RULES:
        hint = did_you_mean("choice", str(rule), RULES)
        raise DataError("confusion: rule", repr(rule), f"{hint}the rules are {', '.join(RULES)}")
    how = RULES[rule]
    own = rule == "detmap"
    chosen = how.confidence if confidence is None else confidence
    if chosen is None:
        best = best_f1(diagnosis).score
        chosen = -np.inf if np.isnan(best) else best
    least = (diagnosis.iou if how.iou is None else how.iou) if iou is None else iou
    least = fraction("confusion: iou", least)
    score = diagnosis.detections.score
    chosen = require_score("confusion: confidence", chosen, score)
    listed = score > chosen if how.strict[0] else score >= chosen
    if own:
        listed &= diagnosis.counted()
    truth, detections = diagnosis.truth, diagnosis.detections
    objects = np.flatnonzero(diagnosis.to_find)
    objects = objects[np.argsort(truth.image[objects], kind="stable")]
    order = diagnosis.order().astype(np.int64)
    rows = order[listed[order]]
    if own and diagnosis.protocol.iou.of == "boxes":
        det, obj = _pair_boxes(diagnosis, rows, objects, least)
    else:
        det, obj, _ = how.taking(diagnosis, _met(diagnosis, rule, rows, objects, least))
    found, hit = np.zeros(len(truth), dtype=bool), np.zeros(len(detections), dtype=bool)
    hit[det] = True
    n = len(truth.categories)
    if rule == "mmdet":
        right = truth.label[obj] == detections.label[det]
        found[obj[right]] = True
    else:
        found[obj] = True
    if rule == "ultralytics-8.0":  # where nothing was paired, detections are not counted
        paired = np.zeros(len(truth.images), dtype=bool)
        paired[detections.image[det]] = True
        rows = rows[paired[detections.image[rows]]]
    false, missed = rows[~hit[rows]], objects[~found[objects]]
    nothing = (np.full(len(false), n), np.full(len(missed), n))
    true = np.concatenate([truth.label[obj], nothing[0], truth.label[missed]]).astype(np.int32)
    predicted = np.concatenate([detections.label[det], detections.label[false], nothing[1]])
    image = np.concatenate([truth.image[obj], detections.image[false], truth.image[missed]])
    cases = (true, predicted.astype(np.int32), image)
    return Confusion(told_apart(truth.categories), rule, float(chosen), float(least), cases)


@proposes_arguments
def confusion_matrix(
    truth: Truth,
    detections: Detections,
    protocol: Protocol,
    *,
    confidence: float | None = None,
    iou: float | None = None,
    rule: str = "detmap",
) -> Confusion:
    """Computes the confusion matrix of tables; see `confusion`."""
    diagnosis = diagnose(truth, detections, protocol)
    return confusion(diagnosis, rule=rule, confidence=confidence, iou=iou)


def _met(
    diagnosis: Diagnosis,
    rule: str,
    rows: NDArray[np.int64],
    objects: NDArray[np.int64],
    least: float,
) -> Pairs:
    """The pairs that overlap enough: by the protocol's shapes, other tools' rules by boxes."""
    if rule == "detmap":
        return overlapping(diagnosis, rows, objects, least)
    single = rule.startswith("ultralytics")
    return pairs(
        *(diagnosis.truth, diagnosis.detections, rows, objects),
        inclusive=False,
        least=float(np.float32(least)) if single else least,
        strict=RULES[rule].strict[1],
        single=single,
    )


def overlapping(
    diagnosis: Diagnosis, rows: NDArray[np.int64], objects: NDArray[np.int64], least: float
) -> Pairs:
    """Returns the pairs of some detections and objects, both by image, that overlap enough by the
    protocol's shapes.

    Raises
    ------
    CrowdedError : too many pairs
    """
    tables = (diagnosis.truth, diagnosis.detections, rows, objects)
    if diagnosis.protocol.iou.of == "boxes":
        inclusive = diagnosis.protocol.boxes.extent == "inclusive"
        return pairs(*tables, inclusive=inclusive, least=least, strict=False)
    det, obj, overlap = overlapping_shapes(*tables, diagnosis.protocol)
    enough = overlap >= least
    return det[enough], obj[enough], overlap[enough]


def _pair_boxes(
    diagnosis: Diagnosis, rows: NDArray[np.int64], objects: NDArray[np.int64], least: float
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Does `_class_first` of boxes, without a list of the pairs; by object."""
    from detmap.analysis.kernels.diagnosis import Rows, pair_by_class

    truth, detections = diagnosis.truth, diagnosis.detections
    inclusive = diagnosis.protocol.boxes.extent == "inclusive"

    def group_rows(table: Truth | Detections, some: NDArray[np.int64]) -> Rows:
        off = np.searchsorted(table.image[some], np.arange(len(truth.images) + 1))
        return Rows(off, table.label[some], edges(table, some, inclusive=inclusive))

    found = np.empty(len(objects), dtype=np.int64)
    tables = group_rows(detections, rows), group_rows(truth, objects)
    most = max(pair_limits.MOST_COMPARED, pair_limits.COMPARED_PER_ROW * (len(rows) + len(objects)))
    if pair_by_class(*tables, float(least), most, found, np.empty(len(objects))) < 0:
        what = f"the images are too crowded: pairing takes more than {most:,} overlaps"
        raise CrowdedError("confusion", what, pair_limits.WAY_OUT)
    paired = np.flatnonzero(found >= 0)
    return rows[found[paired]], objects[paired]


def _class_first(diagnosis: Diagnosis, met: Pairs, *, in_file: bool = False) -> Pairs:
    """One to one: pairs of the same class first, then by overlap; then the first object and
    detection in its file.
    """
    det, obj, overlap = met
    other = diagnosis.truth.label[obj] != diagnosis.detections.label[det]
    ties = (det, obj) if in_file else ()
    return _one_to_one(met, np.lexsort((*ties, -overlap, other)))


def _match_by_score(diagnosis: Diagnosis, met: Pairs) -> Pairs:
    """One to one, of any classes: the detections by score, tied ones in file order, each with its
    best free object.
    """
    return _one_to_one(met, np.lexsort((-met[2], _places(met))))


def _places(met: Pairs) -> NDArray[np.int64]:
    """(n,) the place of each pair's detection in `Diagnosis.order`, among those with a pair."""
    return np.cumsum(np.append(0, np.diff(met[0]) != 0))[: len(met[0])]


def _one_to_one(met: Pairs, order: NDArray[np.int64]) -> Pairs:
    """The pairs, in an order, whose detection and object are both still free."""
    det, obj, overlap = met
    free_det, free_obj = (np.ones(each.max(initial=-1) + 1, dtype=bool) for each in (det, obj))
    taken = []
    for place, d, g in zip(order.tolist(), det[order].tolist(), obj[order].tolist(), strict=True):
        if free_det[d] and free_obj[g]:
            free_det[d] = free_obj[g] = False
            taken.append(place)
    return det[taken], obj[taken], overlap[taken]


def _best_of_each(diagnosis: Diagnosis, met: Pairs) -> Pairs:
    """Of each detection its best object, then of each object its best detection, an image at a
    time. Equal overlaps are in the order of NumPy's unstable sort, as there.
    """
    det, obj, overlap = met
    kept = [np.zeros(0, dtype=np.int64)]
    image = diagnosis.detections.image[det]
    place = _places(met)
    single = overlap.astype(np.float32)  # the order of ties depends on the type
    for places in np.split(np.arange(len(det)), np.flatnonzero(np.diff(image)) + 1):
        places = places[np.lexsort((places, obj[places]))]  # torch.where: by object
        if len(places) > 1:
            for side in (place, obj):
                places = places[np.argsort(single[places])[::-1]]
                places = places[np.unique(side[places], return_index=True)[1]]
        kept.append(places)
    whole = np.concatenate(kept)
    return det[whole], obj[whole], overlap[whole]


def _all(diagnosis: Diagnosis, met: Pairs) -> Pairs:
    """Every pair counts."""
    return met


RULES = {
    "detmap": Rule(None, None, (False, False), _class_first, "detmap"),
    "supervision": Rule(
        0.3, 0.5, (False, True), partial(_class_first, in_file=True), "supervision 0.31.2"
    ),
    "ultralytics-8.0": Rule(0.25, 0.45, (True, True), _best_of_each, "ultralytics 8.0.200"),
    "ultralytics-8.4": Rule(0.25, 0.45, (True, True), _match_by_score, "ultralytics 8.4.190"),
    "mmdet": Rule(0.3, 0.5, (False, False), _all, "mmdet 3.3.0, confusion_matrix.py"),
}
