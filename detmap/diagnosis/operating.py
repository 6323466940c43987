"""Operating points: what precision and recall are when only detections from a score on are kept."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.diagnosis.passing import BEYOND, TP, Diagnosis
from detmap.report.cells import or_none


@dataclass(frozen=True, slots=True)
class Point:
    """What is kept from a score on; NaN where nothing is.

    Parameters
    ----------
    name : the class; ``micro`` for all detections together, ``macro`` for the mean of the classes
    score : the threshold, at least which a detection's score has to be
    precision, recall, f1 : fractions
    tp, fp, missed : counts; of ``macro`` sums
    """

    name: str
    score: float
    precision: float
    recall: float
    f1: float
    tp: int
    fp: int
    missed: int

    def as_dict(self) -> dict[str, Any]:
        """Plain values, None for NaN."""
        return {name: or_none(value) for name, value in asdict(self).items()}


@dataclass(frozen=True, slots=True, eq=False)
class Sweep:
    """Counts at every score that occurs, highest first; equal scores enter together.

    Parameters
    ----------
    name : as of `Point`
    score : (n,) float64, descending
    tp, fp : (n,) int64, detections at or above
    n_objects : objects to find
    """

    name: str
    score: NDArray[np.float64]
    tp: NDArray[np.int64]
    fp: NDArray[np.int64]
    n_objects: int

    def f1(self) -> NDArray[np.float64]:
        """(n,) F1 at each score; 0 where there is neither a detection nor an object."""
        listed = self.tp + self.fp + self.n_objects
        return np.asarray(2 * self.tp / np.maximum(listed, 1), dtype=np.float64)

    def best(self) -> Point:
        """The point of the best F1, of equal ones that of the highest score."""
        if not len(self.score) or not self.n_objects:
            return self.at(float("nan"))
        return self.at(float(self.score[int(np.argmax(self.f1()))]))

    def at(self, score: float) -> Point:
        """The point from this score on."""
        k = int(np.searchsorted(-self.score, -score, "right")) - 1
        tp, fp = (int(self.tp[k]), int(self.fp[k])) if k >= 0 else (0, 0)
        nan = float("nan")
        precision = tp / (tp + fp) if tp + fp else nan
        recall = tp / self.n_objects if self.n_objects else nan
        f1 = 2 * tp / (tp + fp + self.n_objects) if tp + fp + self.n_objects else nan
        return Point(self.name, score, precision, recall, f1, tp, fp, self.n_objects - tp)


def sweep(diagnosis: Diagnosis, label: int | None = None) -> Sweep:
    """All operating points of a class, given by its position, or of all classes together."""
    listed = ~diagnosis.ignored & (diagnosis.kind != BEYOND)
    objects = diagnosis.to_find
    name = "micro"
    if label is not None:
        listed = listed & (diagnosis.detections.label == label)
        objects = objects & (diagnosis.truth.label == label)
        name = diagnosis.truth.categories.names[label]
    return _sweep(
        name, diagnosis.detections.score[listed], diagnosis.kind[listed] == TP, int(objects.sum())
    )


def sweeps(diagnosis: Diagnosis) -> list[Sweep]:
    """The operating points of every class, in their order."""
    n_classes = len(diagnosis.truth.categories)
    rows = np.flatnonzero(~diagnosis.ignored & (diagnosis.kind != BEYOND))
    label = diagnosis.detections.label[rows]
    rows = rows[np.argsort(label, kind="stable")]
    ends = np.cumsum(np.bincount(label, minlength=n_classes))
    n_objects = np.bincount(diagnosis.truth.label[diagnosis.to_find], minlength=n_classes)
    return [
        _sweep(name, diagnosis.detections.score[some], diagnosis.kind[some] == TP, int(n))
        for name, some, n in zip(
            diagnosis.truth.categories.names, np.split(rows, ends[:-1]), n_objects, strict=True
        )
    ]


def best_f1(diagnosis: Diagnosis) -> Point:
    """The operating point of the best F1 over all detections together."""
    return sweep(diagnosis).best()


def operating_points(diagnosis: Diagnosis) -> list[Point]:
    """The best F1 of all detections together, the mean of the classes' best, and of every class."""
    classes = [each.best() for each in sweeps(diagnosis)]
    some = [point for point in classes if not np.isnan(point.recall)]

    def mean(name: str) -> float:
        values = np.nan_to_num([getattr(point, name) for point in some])
        return float(np.mean(values)) if len(values) else float("nan")

    macro = Point(
        "macro",
        float("nan"),
        mean("precision"),
        mean("recall"),
        mean("f1"),
        *(sum(getattr(point, name) for point in some) for name in ("tp", "fp", "missed")),
    )
    return [best_f1(diagnosis), macro, *classes]


def _sweep(
    name: str, score: NDArray[np.float64], right: NDArray[np.bool_], n_objects: int
) -> Sweep:
    order = np.argsort(-score, kind="stable")
    score, right = score[order], right[order]
    ends = np.flatnonzero(np.append(score[1:] != score[:-1], True)) if len(score) else order
    tp = np.cumsum(right)[ends].astype(np.int64)
    return Sweep(name, score[ends], tp, (ends + 1 - tp).astype(np.int64), n_objects)
