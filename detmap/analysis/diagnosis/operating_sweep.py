"""Operating points of a diagnosis, swept by `detmap.core.curves.operating_points` over what its
matching judged.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.analysis.diagnosis.analysis import TP, Diagnosis
from detmap.analysis.diagnosis.class_labels import told_apart
from detmap.core.base.sums import add_integers
from detmap.core.curves import operating_points as operating
from detmap.core.curves.operating_points import Points
from detmap.core.output.cell_text import or_none

OVERALL = ("micro", "macro", "classwise")
"""Points of all classes: pooled; their mean at one threshold; their mean at a threshold each."""


@dataclass(frozen=True, slots=True)
class Point:
    """What is kept from a score on; NaN where nothing is defined.

    Parameters
    ----------
    name : the class, or one of `OVERALL`
    score : the threshold, at least which a detection's score has to be; NaN of ``classwise``
    precision, recall, f1 : fractions
    tp, fp, missed : counts; of ``macro`` and ``classwise`` sums
    """

    name: str
    score: float
    precision: float
    recall: float
    f1: float
    tp: int
    fp: int
    missed: int

    def to_dict(self) -> dict[str, Any]:
        """Plain values, None for NaN."""
        return {name: or_none(value) for name, value in asdict(self).items()}


def sweep(diagnosis: Diagnosis) -> Points:
    """Every threshold of the detections of all classes together."""
    rows = np.flatnonzero(diagnosis.counted())
    return _sweep(diagnosis, rows, int(diagnosis.to_find.sum()))


def sweeps(diagnosis: Diagnosis) -> list[Points]:
    """Every threshold of each class."""
    n_classes = len(diagnosis.truth.categories)
    rows = np.flatnonzero(diagnosis.counted())
    label = diagnosis.detections.label[rows]
    ends = np.cumsum(np.bincount(label, minlength=n_classes))
    of_class = np.split(rows[np.argsort(label, kind="stable")], ends[:-1])[:n_classes]
    n_objects = np.bincount(diagnosis.truth.label[diagnosis.to_find], minlength=n_classes)
    return [
        _sweep(diagnosis, some, n) for some, n in zip(of_class, n_objects.tolist(), strict=True)
    ]


def point(name: str, points: Points, place: int | None) -> Point:
    """One of the points of a sweep; at None that nothing is kept."""
    return Point(name, *points.row(place).values())


def best_f1(diagnosis: Diagnosis) -> Point:
    """The operating point of the best F1 over all detections together."""
    points = sweep(diagnosis)
    return point("micro", points, points.best())


def operating_points(diagnosis: Diagnosis, *, macro: bool = True) -> list[Point]:
    """Those of the best F1: `OVERALL`, then of every class; without `macro`, which takes long for
    many classes, that point is undefined.
    """
    names, every = told_apart(diagnosis.truth.categories), sweeps(diagnosis)
    classes = [point(*each, each[1].best()) for each in zip(names, every, strict=True)]
    mean = operating.macro_points(every if macro else [])
    place = mean.best() if macro else None
    overall = best_f1(diagnosis), point("macro", mean, place), _classwise(classes)
    return [*overall, *classes]


def _classwise(classes: list[Point]) -> Point:
    """The mean of the classes with an object; a class without a detection has no precision."""
    some = [each for each in classes if not np.isnan(each.recall)]
    precision, recall, f1 = means(some, "precision", "recall", "f1")
    tp, fp, missed = (
        add_integers(getattr(each, name) for each in some) for name in ("tp", "fp", "missed")
    )
    return Point("classwise", float("nan"), precision, recall, f1, tp, fp, missed)


def means(rows: Sequence[Any], *names: str) -> list[float]:
    """The mean of each attribute over the rows where it is defined; NaN of none."""
    columns = (np.array([getattr(each, name) for each in rows]) for name in names)
    known = (column[~np.isnan(column)] for column in columns)
    return [float(each.mean()) if len(each) else float("nan") for each in known]


def found_from(diagnosis: Diagnosis, score: float) -> NDArray[np.bool_]:
    """(G,) objects that a detection of at least this score found; none where it is NaN."""
    found = diagnosis.to_find & (diagnosis.by >= 0)
    found[found] = diagnosis.detections.score[diagnosis.by[found]] >= score
    return found


def _sweep(diagnosis: Diagnosis, rows: NDArray[np.int64], n_objects: int) -> Points:
    score, kind = diagnosis.detections.score[rows], diagnosis.kind[rows]
    return operating.sweep(score, kind == TP, float(n_objects))
