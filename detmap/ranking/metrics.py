"""Metrics of ranked samples: curves, AP, AUC and their averages.

Labels and scores of shape (N,) are one binary problem, with one number per metric; of shape (N, K)
they are K problems, one per class. Undefined values are NaN: recall of a class without positives,
any ranking metric of a class without predictions (all scores -inf), precision if nothing reaches
the threshold (0/0). An average leaves such classes out (``undefined="skip"``), or counts each as 0
(``zero``) or 1 (``one``).
"""

import math
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from detmap.core.base.parallel import map_ordered
from detmap.core.base.reprs import outlined
from detmap.core.curves import scores as curves
from detmap.core.curves.scores import Lists, Points
from detmap.core.protocol import AveragePrecision
from detmap.core.protocol.integrators import AT_TRUE_POSITIVES as TABLE
from detmap.core.protocol.integrators import COCO_POINTS, VOC_POINTS, terms_of_curves
from detmap.ranking.label_inputs import Samples, choice, samples

Average = Literal["macro", "micro", "weighted", "samples"]
AVERAGES = ("macro", "micro", "weighted", "samples")
INTEGRATORS = tuple(row.name for row in TABLE)
TIES = ("together", "input")
UNDEFINED = ("skip", "zero", "one")

T = TypeVar("T")
Value = float | NDArray[np.float64]
Measure = Callable[[Lists], NDArray[np.float64]]
"""L lists to their (L,) values, NaN where undefined."""


@outlined
class PrecisionRecall(NamedTuple):
    """A precision-recall curve like scikit-learn's: by ascending threshold, then the point (1, 0)
    without a threshold.

    Parameters
    ----------
    precision, recall : (P + 1,) float64; element i is for samples with a score of at least
        ``thresholds[i]``
    thresholds : (P,) float64, the distinct scores
    """

    precision: NDArray[np.float64]
    recall: NDArray[np.float64]
    thresholds: NDArray[np.float64]


@outlined
class Roc(NamedTuple):
    """A ROC curve like scikit-learn's: by descending threshold, from the point (0, 0) at threshold
    inf.

    Parameters
    ----------
    fpr, tpr : (P + 1,) float64, rates of negatives and positives with a score of at least
        ``thresholds[i]``
    thresholds : (P + 1,) float64, inf and the distinct scores
    """

    fpr: NDArray[np.float64]
    tpr: NDArray[np.float64]
    thresholds: NDArray[np.float64]


# --- curves ---------------------------------------------------------------------------------------


def precision_recall_curve(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    pos_label: Any = None,
    sample_weight: ArrayLike | None = None,
    ties: str = "together",
    threads: int | None = None,
) -> PrecisionRecall | list[PrecisionRecall]:
    """Precision and recall at every threshold.

    Parameters
    ----------
    y_true, y_score, pos_label, sample_weight : see `detmap.ranking.label_inputs.samples`
    ties : ``together``: one point for each distinct score; ``input``: one for each sample, the
        earlier of two equal scores first
    threads : how many to use; all processors when left out

    Returns
    -------
    One curve, or one for each class. Without positives recall is NaN (scikit-learn: 1, with a
    warning).

    Raises
    ------
    DataError : labels that are not 0/1, scores that are NaN, shapes that differ

    Source: the definitions; the order of the arrays and
    the last point (1, 0) are those of scikit-learn.
    """
    choice("ties", ties, TIES)

    def curve(lists: Lists) -> PrecisionRecall:
        points = curves.rank(lists, ties)
        recall, precision = curves.recall_precision(points, totals(points.tp, points.off), 0.0)
        return PrecisionRecall(
            np.append(precision[::-1], 1.0), np.append(recall[::-1], 0.0), points.score[::-1].copy()
        )

    return _each(
        samples(y_true, y_score, pos_label=pos_label, sample_weight=sample_weight), curve, threads
    )


def roc_curve(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    pos_label: Any = None,
    sample_weight: ArrayLike | None = None,
    threads: int | None = None,
) -> Roc | list[Roc]:
    """False and true positive rates at every threshold; samples of equal score enter together.

    Parameters
    ----------
    y_true, y_score, pos_label, sample_weight : see `detmap.ranking.label_inputs.samples`
    threads : how many to use; all processors when left out

    Returns
    -------
    One curve, or one for each class: a point for every distinct score, as scikit-learn's with
    ``drop_intermediate=False`` (its default drops points on straight lines). A rate over no sample
    is NaN.

    Raises
    ------
    DataError : labels that are not 0/1, scores that are NaN, shapes that differ
    """

    def curve(lists: Lists) -> Roc:
        points = curves.rank(lists, "together")
        fpr, tpr = (
            ratio(np.append(0.0, each), totals(each, points.off)) for each in (points.fp, points.tp)
        )
        return Roc(fpr, tpr, np.append(math.inf, points.score))

    return _each(
        samples(y_true, y_score, pos_label=pos_label, sample_weight=sample_weight), curve, threads
    )


# --- one number for a ranking
# --------------------------------------------------------------------------------------------


def average_precision(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    average: Average | None = "macro",
    integrator: str = "step",
    ties: str = "together",
    undefined: str = "skip",
    pos_label: Any = None,
    sample_weight: ArrayLike | None = None,
    threads: int | None = None,
) -> Value:
    """Average precision, by any of the four integrators.

    Parameters
    ----------
    y_true, y_score, pos_label, sample_weight : see `detmap.ranking.label_inputs.samples`
    average : over classes. ``macro``: plain mean; ``weighted``: by their positives; ``micro``: all
        (sample, class) pairs in one list; ``samples``: mean over samples of the AP of each one's
        list of classes; None: one value a class. One binary problem has no average.
    integrator : ``step``: un-interpolated sum (scikit-learn); ``eleven_point`` (VOC 2007);
        ``all_points`` (VOC 2010 on); ``grid_envelope``: 101 points (COCO)
    ties : ``together``: samples of equal score enter at one threshold, and the value does not
        depend on the order of the input (scikit-learn); ``input``: the earlier of two equal scores
        ranks first (VOC devkit)
    undefined : what a class without positives or without a prediction adds to the mean: nothing
        (``skip``), 0 (``zero``, scikit-learn) or 1 (``one``)
    threads : how many to use; all processors when left out. The value does not depend on it.

    Returns
    -------
    A float, or (K,) float64 with ``average=None``.

    Raises
    ------
    DataError : labels that are not 0/1, scores that are NaN, shapes that differ, an unknown option
    """
    checked = samples(y_true, y_score, pos_label=pos_label, sample_weight=sample_weight)
    check(average=average, integrator=integrator, ties=ties, undefined=undefined)
    ap = AveragePrecision(integrator, grid=COCO_POINTS, eleven=VOC_POINTS, epsilon=0.0)
    return averaged(checked, ap_measure(ap, ties), average, undefined, threads)


def auc(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    average: Average | None = "macro",
    undefined: str = "skip",
    pos_label: Any = None,
    sample_weight: ArrayLike | None = None,
    threads: int | None = None,
) -> Value:
    """Area under the ROC curve: the share of (positive, negative) pairs ranked rightly, ties
    counting half.

    Parameters
    ----------
    y_true, y_score, average, pos_label, sample_weight, threads : as of `average_precision`
    undefined : what a class without positives, without negatives or without a prediction adds to
        the mean

    Returns
    -------
    A float, or (K,) float64 with ``average=None``. Where all weights are 1, the number of pairs is
    exact.

    Raises
    ------
    DataError : labels that are not 0/1, scores that are NaN, shapes that differ, an unknown option
    """
    checked = samples(y_true, y_score, pos_label=pos_label, sample_weight=sample_weight)
    check(average=average, undefined=undefined)
    return averaged(checked, auc_of, average, undefined, threads)


def ap_measure(ap: AveragePrecision, ties: str) -> Measure:
    """AP of lists, by one rule."""

    def measure(lists: Lists) -> NDArray[np.float64]:
        points = curves.rank(lists, ties)
        total = totals(points.tp, points.off)
        recall, precision = curves.recall_precision(points, total, ap.epsilon)
        terms = terms_of_curves(recall, precision, points.off, ap.rule, ap.points())
        value: NDArray[np.float64] = terms.mean(axis=1)
        value[(total == 0) | _unpredicted(points)] = np.nan
        return value

    return measure


def auc_of(lists: Lists) -> NDArray[np.float64]:
    """AUC of lists."""
    from detmap.ranking.kernels import list_scores

    points = curves.rank(lists, "together")
    area = np.empty(len(points.off) - 1)
    list_scores.roc_areas(points.tp, points.fp, points.off, area)
    area[_unpredicted(points)] = np.nan
    return area


def averaged(
    checked: Samples, measure: Measure, average: str | None, undefined: str, threads: int | None
) -> Value:
    """A measure of one binary problem, of each class, or averaged."""
    if checked.single:
        return float(fill(measure(checked.class_samples(0)), undefined)[0])
    if average == "micro":
        return float(fill(measure(checked.pooled()), undefined)[0])
    if average == "samples":
        blocks = list(checked.blocks())
        parts = [np.empty(0)] * len(blocks)

        def rows(i: int) -> None:
            parts[i] = measure(checked.rows(blocks[i]))

        each_largest_first(rows, [block.stop - block.start for block in blocks], threads)
        return mean(np.concatenate([np.empty(0), *parts]), undefined, checked.weight)
    values = class_values(checked, measure, threads)
    if average is None:
        return fill(values, undefined)
    return mean(values, undefined, positives(checked) if average == "weighted" else None)


def class_values(
    checked: Samples, measure: Measure, threads: int | None = None
) -> NDArray[np.float64]:
    """(K,) a measure of each class, NaN where undefined."""
    values = np.empty(checked.shape[1])

    def one(k: int) -> None:
        values[k] = measure(checked.class_samples(k))[0]

    each_largest_first(one, np.ones(len(values)), threads)
    return values


def positives(checked: Samples) -> NDArray[np.float64]:
    """(K,) weight of the positives of each class."""
    counted = checked.positive if checked.counted is None else checked.positive & checked.counted
    return checked.totals(counted).astype(np.float64)


def fill(values: NDArray[np.float64], undefined: str) -> NDArray[np.float64]:
    """The values with the rule for undefined ones applied."""
    return (
        values
        if undefined == "skip"
        else np.where(np.isnan(values), float(undefined == "one"), values)
    )


def mean(
    values: NDArray[np.float64], undefined: str, weight: NDArray[np.float64] | None = None
) -> float:
    """Mean of the defined values, a plain one if their weights are 0; without any value, the value
    of the rule for undefined ones.

    Source: scikit-learn 1.9.1, metrics/_classification.py, _nanaverage.
    """
    values = fill(values, undefined)
    defined = ~np.isnan(values)
    if not defined.any():
        return float(fill(np.array([np.nan]), undefined)[0])
    weight = None if weight is None else weight[defined]
    if weight is not None and not weight.sum() > 0:
        weight = None
    return float(np.average(values[defined], weights=weight))


# --- shared ---------------------------------------------------------------------------------------


def _each(checked: Samples, curve: Callable[[Lists], T], threads: int | None) -> T | list[T]:
    """The curve of one binary problem, or a list of one for each class."""
    values: dict[int, T] = {}

    def one(k: int) -> None:
        values[k] = curve(checked.class_samples(k))

    each_largest_first(one, np.ones(checked.shape[1]), threads)
    return values[0] if checked.single else [values[k] for k in range(checked.shape[1])]


def totals(cumulated: NDArray[np.float64], off: NDArray[np.int64]) -> NDArray[np.float64]:
    """(L,) the end of the cumulative weights of each list; 0 for an empty list."""
    out = np.zeros(len(off) - 1)
    filled = off[1:] > off[:-1]
    out[filled] = cumulated[off[1:][filled] - 1]
    return out


def _unpredicted(points: Points) -> NDArray[np.bool_]:
    """(L,) lists without predictions: the highest score is -inf, or there is no row."""
    out = np.ones(len(points.off) - 1, dtype=np.bool_)
    filled = points.off[1:] > points.off[:-1]
    out[filled] = points.score[points.off[:-1][filled]] == -math.inf
    return out


def ratio(part: Any, whole: Any) -> Any:
    """The quotient; NaN if the denominator is 0."""
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = np.true_divide(part, whole)
    return ratio if ratio.ndim else float(ratio)


def check(**options: Any) -> None:
    """Raise `DataError` for unknown options."""
    legal = {
        "average": (None, *AVERAGES),
        "integrator": INTEGRATORS,
        "ties": TIES,
        "undefined": UNDEFINED,
    }
    for name, value in options.items():
        choice("option", name, tuple(legal))
        choice(name, value, legal[name])


def each_largest_first(
    work: Callable[[int], None], sizes: ArrayLike, threads: int | None = None
) -> None:
    """Calls ``work(k)`` for every k, the largest first."""
    order = np.argsort(-np.asarray(sizes), kind="stable").tolist()
    for _ in map_ordered(work, order, threads):
        pass
