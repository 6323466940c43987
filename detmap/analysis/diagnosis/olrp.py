"""oLRP: localization, false positives and misses in one error, at the best threshold of each class.

Source: Oksuz et al., One Metric to Measure Them All, TPAMI 2021; LRP-Error, cocoeval.py.
"""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.analysis.diagnosis import operating_sweep
from detmap.analysis.diagnosis.analysis import TP, Diagnosis
from detmap.analysis.diagnosis.class_labels import told_apart
from detmap.analysis.diagnosis.shape_overlaps import overlap_of_pairs
from detmap.analysis.row_overlaps import edges, ious
from detmap.core.base.grids import Grid
from detmap.core.output.cell_text import or_none

LRP_GRID = Grid("0:0.01:1")
"""The score thresholds of LRP-Error."""


@dataclass(frozen=True, slots=True)
class Lrp:
    """The lowest error over the thresholds, and its parts there; fractions, 0 is perfect.

    Parameters
    ----------
    olrp : (sum of (1 - overlap) / (1 - iou) over true positives + FP + missed) / (TP + FP + missed)
    loc : mean of 1 - overlap of the true positives; NaN without any
    fp : 1 - precision; NaN without detections
    fn : 1 - recall
    score : the threshold; NaN for a mean of classes
    """

    olrp: float
    loc: float
    fp: float
    fn: float
    score: float

    def to_dict(self) -> dict[str, Any]:
        """Plain values, None for NaN."""
        return {name: or_none(value) for name, value in asdict(self).items()}


def olrp(diagnosis: Diagnosis, *, grid: Grid | None = None) -> dict[str, Lrp]:
    """OLRP of each class with objects by its name (`told_apart`), and their mean as ``""``.

    Parameters
    ----------
    grid : score thresholds to choose from; default: every score. `LRP_GRID` gives the numbers of
        LRP-Error. At IoU 1 all values are NaN.
    """
    detections, truth = diagnosis.detections, diagnosis.truth
    n_classes = len(truth.categories)
    nan = float("nan")
    listed = np.flatnonzero(diagnosis.counted())
    error = np.zeros(len(detections))
    right = np.flatnonzero(diagnosis.kind == TP)
    error[right] = 1 - overlap_taken(diagnosis, right)
    n_objects = np.bincount(truth.label[diagnosis.to_find], minlength=n_classes)
    label = detections.label[listed]
    listed = listed[np.argsort(label, kind="stable")]
    ends = np.cumsum(np.bincount(label, minlength=n_classes))
    points = None if grid is None else grid.values()
    names = told_apart(truth.categories)
    found: dict[str, Lrp] = {}
    for k, rows in enumerate(np.split(listed, ends[:-1])[:n_classes]):
        if n_objects[k] and diagnosis.iou == 1:
            found[names[k]] = Lrp(nan, nan, nan, nan, nan)
        elif n_objects[k]:
            found[names[k]] = _least(
                detections.score[rows],
                diagnosis.kind[rows] == TP,
                error[rows],
                int(n_objects[k]),
                1 - diagnosis.iou,
                points,
            )
    parts = ("olrp", "loc", "fp", "fn")
    means = zip(parts, operating_sweep.means(list(found.values()), *parts), strict=True)
    return {"": Lrp(**dict(means), score=nan), **found}


def overlap_taken(diagnosis: Diagnosis, rows: NDArray[np.integer[Any]]) -> NDArray[np.float64]:
    """(n,) overlap of some detections with their matched objects."""
    if diagnosis.protocol.iou.of != "boxes":
        tables = (diagnosis.truth, diagnosis.detections)
        places = (rows.astype(np.int64), diagnosis.took[rows].astype(np.int64))
        return overlap_of_pairs(*tables, *places, diagnosis.protocol)
    inclusive = diagnosis.protocol.boxes.extent == "inclusive"
    objects = edges(diagnosis.truth, diagnosis.took[rows], inclusive=inclusive)
    return ious(edges(diagnosis.detections, rows, inclusive=inclusive), objects)


def _least(
    score: NDArray[np.float64],
    right: NDArray[np.bool_],
    error: NDArray[np.float64],
    n_objects: int,
    span: float,
    points: NDArray[np.float64] | None,
) -> Lrp:
    """The lowest error of a class; of ties that at the lowest threshold."""
    order = np.argsort(-score, kind="stable")
    score, right, error = score[order], right[order], error[order]
    if points is None:
        points = np.unique(score)
    within = np.searchsorted(-score, -points, "right")  # detections at or above each threshold
    total = np.concatenate([[0.0], np.cumsum(error)])[within]
    tp = np.concatenate([[0], np.cumsum(right)])[within]
    if not len(points):
        return Lrp(1.0, float("nan"), float("nan"), 1.0, float("nan"))
    value = (total / span + (within - tp) + (n_objects - tp)) / (within - tp + n_objects)
    best = int(np.argmin(value))
    nan = float("nan")
    return Lrp(
        float(value[best]),
        float(total[best] / tp[best]) if tp[best] else nan,
        float(1 - tp[best] / within[best]) if within[best] else nan,
        float(1 - tp[best] / n_objects),
        float(points[best]),
    )
