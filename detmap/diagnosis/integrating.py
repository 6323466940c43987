"""AP of rows that are picked, moved or weighed otherwise, by the rule of a protocol."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from detmap import curves
from detmap.integrators import Integrator, terms_of_curves
from detmap.rows import by_image as by_class


def average_precision(
    label: NDArray[np.int32],
    score: NDArray[np.float64],
    right: NDArray[np.bool_],
    n_objects: NDArray[np.int64],
    rule: Integrator,
    points: NDArray[np.float64],
    epsilon: float,
) -> NDArray[np.float64]:
    """(K,) AP of each class; NaN where it has no object.

    Parameters
    ----------
    label, score, right : (n,) rows, of equal scores the one that ranks first before the other
    n_objects : (K,) objects to find
    rule, points : the integrator and its recall points
    epsilon : added to TP + FP before the division
    """
    order, off = by_class(np.ascontiguousarray(label, dtype=np.int32), len(n_objects))
    lists = curves.Lists(score[order], right[order], curves.NO_WEIGHT, off)
    points_of_curves = curves.rank(lists, "input")
    recall, precision = curves.recall_precision(points_of_curves, n_objects.astype(float), epsilon)
    terms = terms_of_curves(np.nan_to_num(recall), precision, points_of_curves.off, rule, points)
    return np.where(n_objects > 0, terms.mean(axis=1), np.nan)
