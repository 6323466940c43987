"""The numbers of a diagnosis that are functions of sums over images, on subsets of the images.

Given score thresholds do not change; those of the best F1 and of oLRP are chosen again on each
subset.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from detmap.analysis.diagnosis.analysis import TP, Diagnosis
from detmap.analysis.diagnosis.calibration import Bins
from detmap.analysis.diagnosis.image_sums import tally
from detmap.analysis.diagnosis.olrp import overlap_taken
from detmap.analysis.diagnosis.operating_sweep import Point, found_from
from detmap.analysis.diagnosis.ranked_lists import ranked, tie_order
from detmap.core.statistics.estimates import RULE_OF_BEST, RULE_OF_DEVIATIONS, Estimates, Rule
from detmap.core.statistics.refusals import reason, refuse_class
from detmap.core.statistics.subsets import Subsets

Floats = NDArray[np.float64]
RATIO = Rule()
AT_BEST = ("search", "search", "")  # precision, recall, F1
MOST_SCORES = 128  # of a list, at which the best F1 of a subset is looked for


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Q numbers that are functions of sums over images.

    Parameters
    ----------
    values : (Q,)
    of : function from (I, L) image weights to the (Q, L) numbers
    n_units : (Q,) number of images with cases of each number
    rule : of their errors
    refused : (Q,) key of the reason why a number has no interval; "" for none (default: all)
    """

    values: Floats
    of: Callable[[Floats], Floats]
    n_units: NDArray[np.int64]
    rule: Rule = RATIO
    refused: Sequence[str] = ()


def estimate(part: Part, subsets: Subsets) -> Estimates:
    """The numbers of a part on subsets of the images."""
    from detmap.analysis.kernels.image_sums import LANES

    weights, columns = subsets.keep.astype(np.float64), []
    for begin in range(0, len(weights), LANES):
        lanes = weights[begin : begin + LANES]
        batch = np.ones((LANES, weights.shape[1]))
        batch[: len(lanes)] = lanes
        columns.append(part.of(np.ascontiguousarray(batch.T))[:, : len(lanes)].T)
    parts = np.concatenate([np.empty((0, len(part.values))), *columns])
    rules = []
    for m, key in zip(part.n_units.tolist(), part.refused or [""] * len(part.values), strict=True):
        why = refuse_class(m, subsets.units, "cases")
        why = why or (reason(key, subsets.units) if key else "")
        rules.append(part.rule._replace(why_not=why, alone=m))
    return Estimates(part.values, part.values, parts, subsets, tuple(rules))


def ratio(over: Floats, under: Floats) -> Floats:
    """Quotients, NaN where there is nothing to divide by."""
    found: Floats = np.full(np.shape(over), np.nan)
    np.divide(over, under, out=found, where=np.asarray(under) > 0)
    return found


def _rates(tp: Floats, fp: Floats, n: Floats) -> Floats:
    """(3, ...) precision, recall and F1."""
    n = np.broadcast_to(n, tp.shape)
    f1 = ratio(np.where(n > 0, 2 * tp, np.nan), tp + fp + n)
    return np.stack([ratio(tp, tp + fp), ratio(tp, n), f1])


def operating(diagnosis: Diagnosis, scores: Floats) -> Part:
    """Precision, recall and F1 of all detections together, (3 P,), at P scores, highest first."""
    detections, truth = diagnosis.detections, diagnosis.truth
    n_images = len(truth.images)
    place = np.searchsorted(-scores, -detections.score, "left").astype(np.int32)
    place[~diagnosis.counted() | (place == len(scores))] = -1
    right = diagnosis.kind == TP
    cases = tally(place, detections.image, [right, ~right], len(scores), n_images)
    objects = tally(
        np.where(diagnosis.to_find, 0, -1), truth.image, [np.ones(len(truth))], 1, n_images
    )

    def evaluate(weights: Floats) -> Floats:
        tp, fp = np.cumsum(cases.totals(weights), axis=0).transpose(1, 0, 2)
        rates = _rates(tp, fp, objects.totals(weights)[:, 0])
        return rates.reshape(3 * len(scores), weights.shape[1])

    n_units = np.full(3 * len(scores), len(np.union1d(cases.image, objects.image)))
    return Part(_once(evaluate, n_images), evaluate, n_units)


def best(diagnosis: Diagnosis, point: Point) -> Part:
    """Precision, recall and F1 of all detections together at the best F1: (3,)."""
    everything = np.zeros_like(diagnosis.detections.label), np.zeros_like(diagnosis.truth.label)
    lists = _Lists(diagnosis, [point], *everything)
    n_units = np.full(3, len(np.union1d(lists.cases.image, lists.objects.image)))
    values, of = lists.values[:, 0], lambda weights: lists.best(weights)[:, 0]
    return Part(values, of, n_units, RULE_OF_BEST, AT_BEST)


def classes(
    diagnosis: Diagnosis, points: Sequence[Point], some: NDArray[np.int64] | None = None
) -> Part:
    """Precision, recall and F1 of k of the K classes, each at its own best F1, then of the mean of
    all: (3 (k + 1),).

    points : of the classes; some : (k,) positions (default: all)
    """
    chosen = np.arange(len(points)) if some is None else some
    lists = _Lists(diagnosis, points, diagnosis.detections.label, diagnosis.truth.label)

    def with_mean(rates: Floats) -> Floats:
        known = ~np.isnan(rates) & ~np.isnan(rates[1])  # there is a recall if there are objects
        total = np.where(known, rates, 0.0).sum(axis=1)
        mean = ratio(total, known.sum(axis=1).astype(float))
        both = np.concatenate([rates[:, chosen], mean[:, None]], axis=1)
        return both.reshape(3 * both.shape[1], *rates.shape[2:])

    on = np.append(lists.objects.n_images()[chosen], len(np.unique(lists.objects.image)))
    with_rows = np.append(lists.n_listed[chosen], len(np.unique(lists.cases.image)))
    n_units = np.concatenate([with_rows, on, on])
    values, refused = with_mean(lists.values), np.repeat(AT_BEST, len(chosen) + 1).tolist()
    return Part(values, lambda w: with_mean(lists.best(w)), n_units, RULE_OF_BEST, refused)


class _Lists:
    """n lists of detections and their objects, whose best F1 is looked for on each subset, at
    `MOST_SCORES` scores at most.

    Parameters
    ----------
    points : (n,) of the best F1 of all images
    label, object_label : (D,) and (G,) the list of each detection and object
    """

    def __init__(
        self,
        diagnosis: Diagnosis,
        points: Sequence[Point],
        label: NDArray[np.int32],
        object_label: NDArray[np.int32],
    ) -> None:
        detections, truth = diagnosis.detections, diagnosis.truth
        n, n_images = len(points), len(truth.images)
        values = np.array([[one.precision, one.recall, one.f1] for one in points])
        self.values = values.reshape(n, 3).T
        rows = np.flatnonzero(diagnosis.counted())
        rows = rows[np.lexsort((-detections.score[rows], label[rows]))]
        place = np.full(len(detections), -1, dtype=np.int32)
        self.off, self.n_listed = np.zeros(n + 1, dtype=np.int64), np.zeros(n, dtype=np.int64)
        begins = np.searchsorted(label[rows], np.arange(n + 1))
        for k, (begin, end) in enumerate(pairwise(begins)):
            mine = rows[begin:end]
            score = detections.score[mine]
            at = np.unique(np.linspace(0, max(0, len(mine) - 1), MOST_SCORES).astype(np.int64))
            looked = -np.unique(-np.append(score[at[: len(mine)]], points[k].score))
            looked = looked[~np.isnan(looked)]
            place[mine] = self.off[k] + np.searchsorted(-looked, -score, "left")
            self.off[k + 1] = self.off[k] + len(looked)
            self.n_listed[k] = len(np.unique(detections.image[mine]))
        right = diagnosis.kind == TP
        columns = [right, ~right]
        self.cases = tally(place, detections.image, columns, int(self.off[-1]), n_images)
        sought = np.where(diagnosis.to_find, object_label, -1)
        self.objects = tally(sought, truth.image, [np.ones(len(truth))], n, n_images)

    def best(self, weights: Floats) -> Floats:
        """(3, n, L) precision, recall and F1 at the score of the best F1."""
        counts, sought = self.cases.totals(weights), self.objects.totals(weights)[:, 0]
        found = np.empty((3, len(sought), weights.shape[1]))
        for k, n_objects in enumerate(sought):
            mine = counts[self.off[k] : self.off[k + 1]]
            tp, fp = np.cumsum(mine, axis=0).transpose(1, 0, 2)
            nothing = np.zeros((1, len(n_objects)))  # of a list without detections
            tp, fp = (each if len(mine) else nothing for each in (tp, fp))
            rates = _rates(tp, fp, n_objects)
            at = np.argmax(np.where(tp + fp > 0, rates[2], -1.0), axis=0)
            best = np.take_along_axis(rates, at[None, None], axis=1)[:, 0]
            found[:, k] = np.where(n_objects > 0, best, np.nan)
        return found


def calibrated(diagnosis: Diagnosis, bins: Bins) -> Part:
    """ECE, the largest deviation of a bin, the mean one, and D-ECE: (4,)."""
    n_images, image = len(diagnosis.truth.images), diagnosis.detections.image[bins.rows]
    columns = [np.ones(len(image)), bins.score, bins.right]
    of_score = tally(bins.place, image, columns, bins.n_bins, n_images)
    box_tallies = tally(bins.cell, image, columns, int(bins.cell.max(initial=-1)) + 1, n_images)

    def evaluate(weights: Floats) -> Floats:
        n, score, right = of_score.totals(weights).transpose(1, 0, 2)
        gap = np.abs(right - score)
        deviation = ratio(gap, n)
        filled = np.where(n > 0, deviation, 0.0)
        found = [
            ratio(gap.sum(axis=0), n.sum(axis=0)),
            np.where((n > 0).any(axis=0), filled.max(axis=0, initial=0.0), np.nan),
            ratio(filled.sum(axis=0), (n > 0).sum(axis=0).astype(float)),
        ]
        n, score, right = box_tallies.totals(weights).transpose(1, 0, 2)
        gap = np.where(n >= bins.least, np.abs(right - score), 0.0)
        of_boxes = ratio(gap.sum(axis=0), n.sum(axis=0))
        found.append(of_boxes if bins.has_boxes else np.full_like(of_boxes, np.nan))
        return np.stack(found)

    n_units, refused = np.full(4, len(np.unique(image))), ("", *["deviations"] * 3)
    return Part(_once(evaluate, n_images), evaluate, n_units, RULE_OF_DEVIATIONS, refused)


def localised(diagnosis: Diagnosis) -> Part:
    """Mean overlap of the true positives: (1,)."""
    rows = np.flatnonzero(diagnosis.kind == TP)
    n_images = len(diagnosis.truth.images)
    columns = [np.ones(len(rows)), overlap_taken(diagnosis, rows)]
    image = diagnosis.detections.image[rows]
    sums = tally(np.zeros(len(rows)), image, columns, 1, n_images)

    def evaluate(weights: Floats) -> Floats:
        n, overlap = sums.totals(weights)[0]
        return ratio(overlap, n)[None]

    return Part(_once(evaluate, n_images), evaluate, sums.n_images())


def recalled(diagnosis: Diagnosis, objects: Sequence[NDArray[np.bool_]], score: float) -> Part:
    """Share of some objects, S masks (G,), that detections from a score on found: (S,)."""
    truth, n_images = diagnosis.truth, len(diagnosis.truth.images)
    rows = [np.flatnonzero(mask) for mask in objects]
    every = np.concatenate([np.zeros(0, dtype=np.int64), *rows])
    place = np.repeat(np.arange(len(rows)), [len(each) for each in rows])
    columns = [np.ones(len(every)), found_from(diagnosis, score)[every]]
    sums = tally(place, truth.image[every], columns, len(rows), n_images)

    def evaluate(weights: Floats) -> Floats:
        n, found = sums.totals(weights).transpose(1, 0, 2)
        return ratio(found, n)

    return Part(_once(evaluate, n_images), evaluate, sums.n_images())


def least_lrp(diagnosis: Diagnosis) -> Part:
    """OLRP and its parts, each the mean of the classes: (4,)."""
    from detmap.analysis.kernels import least as kernels

    truth, n_images = diagnosis.truth, len(diagnosis.truth.images)
    ranks = ranked(diagnosis, tie_order(diagnosis))
    ranks = ranks.kept(~diagnosis.ignored[ranks.rows])
    error, score = np.zeros(len(ranks.rows)), ranks.score()
    right = np.flatnonzero(ranks.right)
    error[right] = 1 - overlap_taken(diagnosis, ranks.rows[right])
    last = np.ones(len(score), dtype=bool)
    last[:-1] = score[1:] != score[:-1]
    last[ranks.off[1:][ranks.off[1:] > 0] - 1] = True
    image = diagnosis.detections.image[ranks.rows]
    rows = kernels.Rows(ranks.off, image, ranks.right, error, last)
    n = len(truth.categories)
    place = np.where(diagnosis.to_find, truth.label, -1)
    objects = tally(place, truth.image, [np.ones(len(truth))], n, n_images)

    def evaluate(weights: Floats) -> Floats:
        n_lanes = weights.shape[1]
        found = np.empty((n, 4, n_lanes))
        sought = np.ascontiguousarray(objects.totals(weights)[:, 0])
        sums = np.empty((3, n_lanes))
        kernels.least_errors(rows, sought, 1 - diagnosis.iou, weights, sums, found)
        known = ~np.isnan(found)
        return ratio(np.where(known, found, 0.0).sum(axis=0), known.sum(axis=0).astype(float))

    n_units = np.full(4, len(np.unique(objects.image)))
    return Part(_once(evaluate, n_images), evaluate, n_units, RULE_OF_BEST)


def _once(of: Callable[[Floats], Floats], n_images: int) -> Floats:
    """What the numbers are where every image counts once."""
    from detmap.analysis.kernels.image_sums import LANES

    return of(np.ones((n_images, LANES)))[:, 0]
