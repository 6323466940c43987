"""Counts and rates at a threshold, and the thresholds that are
best at something. Shapes as in `detmap.ranking.metrics`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from detmap.core.base import arguments as given
from detmap.core.base.flat_rows import first_true
from detmap.core.base.reprs import outlined
from detmap.core.curves import scores as curves
from detmap.core.curves.operating_points import f_beta
from detmap.core.tables.grouping import last
from detmap.errors import DataError
from detmap.ranking.label_inputs import Samples, samples
from detmap.ranking.metrics import (
    Average,
    check,
    each_largest_first,
    fill,
    mean,
    positives,
    ratio,
    totals,
)


@outlined
class OperatingPoint(NamedTuple):
    """A threshold and what it yields: floats for one binary problem, (K,) float64 for K classes;
    NaN where there is none.
    """

    threshold: Any
    precision: Any
    recall: Any
    f: Any


@outlined
class AtThreshold(NamedTuple):
    """Four metrics at a threshold: floats, or (K,) float64 where they are not averaged."""

    accuracy: Any
    precision: Any
    recall: Any
    f1: Any


# --- at a threshold -------------------------------------------------------------------------------


@outlined
@dataclass(frozen=True, slots=True, eq=False)
class Confusion:
    """Counts at a threshold: numbers for one binary problem, (K,) for K classes; int64, or float64
    with weights.

    Parameters
    ----------
    tp, fp, tn, fn : true positives, false positives, true negatives, false negatives
    """

    tp: Any
    fp: Any
    tn: Any
    fn: Any

    @property
    def accuracy(self) -> Any:
        """(TP + TN) / all."""
        return ratio(self.tp + self.tn, self.tp + self.tn + self.fp + self.fn)

    @property
    def precision(self) -> Any:
        """TP / (TP + FP); NaN where nothing is predicted."""
        return ratio(self.tp, self.tp + self.fp)

    @property
    def recall(self) -> Any:
        """TP / (TP + FN); NaN without positives."""
        return ratio(self.tp, self.tp + self.fn)

    @property
    def f1(self) -> Any:
        """2 TP / (2 TP + FP + FN); NaN where nothing is positive and nothing predicted."""
        return ratio(2 * self.tp, 2 * self.tp + self.fp + self.fn)


def confusion(
    y_true: ArrayLike,
    y_score: ArrayLike,
    threshold: ArrayLike = 0.5,
    *,
    pos_label: Any = None,
    sample_weight: ArrayLike | None = None,
) -> Confusion:
    """TP, FP, TN and FN where a score of the threshold or more is a positive prediction.

    Parameters
    ----------
    y_true, y_score, pos_label, sample_weight : see `detmap.ranking.label_inputs.samples`
    threshold : one number, or (K,) one per class

    Raises
    ------
    DataError : labels that are not 0/1, scores or thresholds that are NaN, shapes that differ
    """
    checked = samples(y_true, y_score, pos_label=pos_label, sample_weight=sample_weight)
    counts = count(checked, threshold, axis=0)
    if not checked.single:
        return counts
    return Confusion(*(each[0].item() for each in (counts.tp, counts.fp, counts.tn, counts.fn)))


def operating_point(
    y_true: ArrayLike,
    y_score: ArrayLike,
    threshold: ArrayLike = 0.5,
    *,
    average: Average | None = "macro",
    undefined: str = "skip",
    pos_label: Any = None,
    sample_weight: ArrayLike | None = None,
) -> AtThreshold:
    """Accuracy, precision, recall and F1 at a threshold, averaged.

    Parameters
    ----------
    y_true, y_score, average, pos_label, sample_weight : as of `average_precision`; ``micro`` adds
        up the counts
    threshold : one number, or (K,) one per class
    undefined : what a metric that is 0/0 adds to the mean; scikit-learn's ``zero_division`` of nan,
        0 and 1

    Raises
    ------
    DataError : labels that are not 0/1, scores or thresholds that are NaN, shapes that differ,
        an unknown option
    """
    checked = samples(y_true, y_score, pos_label=pos_label, sample_weight=sample_weight)
    check(average=average, undefined=undefined)
    return threshold_rates(checked, threshold, average, undefined)


def threshold_rates(
    checked: Samples, threshold: ArrayLike, average: str | None, undefined: str
) -> AtThreshold:
    """As `operating_point`, for checked samples."""
    counts = count(checked, threshold, axis=1 if average == "samples" and not checked.single else 0)
    if average == "micro":
        counts = Confusion(
            *(each.sum(keepdims=True) for each in (counts.tp, counts.fp, counts.tn, counts.fn))
        )
    values = [
        fill(each, undefined)
        for each in (counts.accuracy, counts.precision, counts.recall, counts.f1)
    ]
    if checked.single or average == "micro":
        return AtThreshold(*(float(each[0]) for each in values))
    if average is None:
        return AtThreshold(*values)
    weight = {"weighted": positives(checked), "samples": checked.weight}.get(average)
    return AtThreshold(*(mean(each, undefined, weight) for each in values))


def count(checked: Samples, threshold: ArrayLike, axis: int) -> Confusion:
    """Counts of each class (axis 0) or of each sample over its classes (axis 1, unweighted)."""
    limit = given.numbers("threshold", threshold)
    if limit.shape not in ((), (checked.shape[1],)) or np.isnan(limit).any():
        raise DataError(
            "threshold",
            f"{threshold!r} for {checked.shape[1]} classes",
            "give one number, or one per class",
        )
    predicted = checked.score >= limit
    positive, negative = checked.positive, ~checked.positive
    if checked.counted is not None:
        positive, negative = positive & checked.counted, negative & checked.counted

    def total(cells: NDArray[np.bool_]) -> NDArray[Any]:
        return np.asarray(cells.sum(axis=1)) if axis == 1 else checked.totals(cells)

    return Confusion(
        total(positive & predicted),
        total(negative & predicted),
        total(negative & ~predicted),
        total(positive & ~predicted),
    )


# --- operating points -----------------------------------------------------------------------------


def best_f_beta(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    beta: float = 1.0,
    pos_label: Any = None,
    sample_weight: ArrayLike | None = None,
    threads: int | None = None,
) -> OperatingPoint:
    """The threshold of the highest F-beta, of each class; of equal ones the highest threshold.

    Parameters
    ----------
    y_true, y_score, pos_label, sample_weight : see `detmap.ranking.label_inputs.samples`
    beta : above 0; recall counts beta times as much as precision

    Raises
    ------
    DataError : labels that are not 0/1, scores that are NaN, shapes that differ, beta not above 0
    """
    if not given.number("beta", beta) > 0:
        raise DataError(
            "beta", f"{beta!r}", "a number above 0; 1 weighs precision and recall alike"
        )
    checked = samples(y_true, y_score, pos_label=pos_label, sample_weight=sample_weight)
    return best_f_of_samples(checked, beta, threads)


def threshold_for_precision(
    y_true: ArrayLike,
    y_score: ArrayLike,
    precision: float,
    *,
    pos_label: Any = None,
    sample_weight: ArrayLike | None = None,
    threads: int | None = None,
) -> OperatingPoint:
    """The lowest threshold with at least the wanted precision, which is the one of most recall; `f`
    is its F1.

    Parameters
    ----------
    y_true, y_score, pos_label, sample_weight : see `detmap.ranking.label_inputs.samples`
    precision : wanted, in [0, 1]; NaN comes back where no threshold reaches it

    Raises
    ------
    DataError : labels that are not 0/1, scores that are NaN, shapes that differ, a precision
        outside [0, 1]
    """
    given.fraction("precision", precision)
    checked = samples(y_true, y_score, pos_label=pos_label, sample_weight=sample_weight)
    return _operating_points(
        checked, 1.0, lambda point: last(point.precision >= precision), threads
    )


def threshold_for_recall(
    y_true: ArrayLike,
    y_score: ArrayLike,
    recall: float,
    *,
    pos_label: Any = None,
    sample_weight: ArrayLike | None = None,
    threads: int | None = None,
) -> OperatingPoint:
    """The highest threshold with at least the wanted recall, which is the one of fewest
    predictions; `f` is its F1.

    Parameters
    ----------
    y_true, y_score, pos_label, sample_weight : see `detmap.ranking.label_inputs.samples`
    recall : wanted, in [0, 1]

    Raises
    ------
    DataError : labels that are not 0/1, scores that are NaN, shapes that differ, a recall
        outside [0, 1]
    """
    given.fraction("recall", recall)
    checked = samples(y_true, y_score, pos_label=pos_label, sample_weight=sample_weight)
    return _operating_points(
        checked, 1.0, lambda point: first_true(point.recall >= recall), threads
    )


def best_f_of_samples(
    checked: Samples, beta: float = 1.0, threads: int | None = None
) -> OperatingPoint:
    """As `best_f_beta`, for checked samples."""
    return _operating_points(checked, beta, lambda point: int(np.argmax(point.f)), threads)


def _operating_points(
    checked: Samples,
    beta: float,
    choose: Callable[[OperatingPoint], int | None],
    threads: int | None,
) -> OperatingPoint:
    """For each class the point that `choose` picks
    among those of all thresholds, best score first.
    """
    chosen = np.full((4, checked.shape[1]), np.nan)

    def one(k: int) -> None:
        points = curves.rank(checked.class_samples(k), "together")
        n_objects = totals(points.tp, points.off)
        recall, precision = curves.recall_precision(points, n_objects, 0.0)
        predicted = points.score > -math.inf  # at -inf nothing was predicted
        if n_objects[0] == 0 or not predicted.any():
            return
        f = f_beta(points.tp, points.fp, n_objects[0], beta)
        every = OperatingPoint(*(each[predicted] for each in (points.score, precision, recall, f)))
        place = choose(every)
        if place is not None:
            chosen[:, k] = [each[place] for each in every]

    each_largest_first(one, np.ones(checked.shape[1]), threads)
    return OperatingPoint(*(float(row[0]) if checked.single else row for row in chosen))
