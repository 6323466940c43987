"""Influence functions of a result: standard errors of all metrics without replicates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from detmap.core.base.parallel import map_ordered
from detmap.core.statistics.class_terms import Plan
from detmap.core.statistics.sampling_units import Units
from detmap.kernels import curves as curve_kernels
from detmap.kernels.resampling import influence as kernels

AT_ONCE = 1 << 20  # values of a batch of classes
BATCHES = 8  # at least, for the threads
LEAST_LEVERAGE = 0.5  # a unit with more than half of a class's objects counts twice at most


@dataclass(frozen=True, slots=True, eq=False)
class OfClasses:
    """Influence of units on the readings of n consecutive classes, for the P pairs of a class and a
    unit that has detections or objects of it. All others have none.

    Parameters
    ----------
    classes : the n classes
    label : (P,) int64, position of the pair's class in `classes`, ascending
    unit : (P,) int64, ascending in each class
    raw : (S, P) float64; its sums over a class are 0
    corrected : (S, P) float64, divided by the leverage, in [1/2, 1]: 1 minus the unit's share of
        the objects of the class. Its variance is too large (HC3), so tests of differences keep
        their level on few images
    n_units : (S, n) int64, units with a ground-truth object
    values : (n, S) float64, the readings
    present : (P,) float64, images of the unit with an object of the class
    """

    classes: range
    label: NDArray[np.int64]
    unit: NDArray[np.int64]
    raw: NDArray[np.float64]
    corrected: NDArray[np.float64]
    n_units: NDArray[np.int64]
    values: NDArray[np.float64]
    present: NDArray[np.float64]

    @property
    def unbiased(self) -> NDArray[np.float64]:
        """(S, P) `raw` divided by the root of the leverage, whose variance is that of the reading
        (HC2). Source: MacKinnon and White 1985.
        """
        root: NDArray[np.float64] = np.sign(self.raw) * np.sqrt(self.raw * self.corrected)
        return root

    def dense(self, j: int, influence: NDArray[np.float64], n_units: int) -> NDArray[np.float64]:
        """(S, U) of the class at position j: its part of `raw` or `corrected`."""
        mine = slice(*np.searchsorted(self.label, [j, j + 1]))
        values = np.zeros((len(influence), n_units))
        values[:, self.unit[mine]] = influence[:, mine]
        return values

    def variances_of_difference(self, other: OfClasses, n_units: int) -> NDArray[np.float64]:
        """(S, n) as `variance` of each class's `corrected` minus that of another detector."""
        of_one = n_units / (n_units - 1) if n_units > 1 else 0.0
        mine, its = (each.label * n_units + each.unit for each in (self, other))
        cells = np.union1d(mine, its)
        apart = np.zeros((len(self.corrected), len(cells)))
        apart[:, np.searchsorted(cells, mine)] = self.corrected
        apart[:, np.searchsorted(cells, its)] -= other.corrected
        label, n = cells // max(n_units, 1), len(self.classes)
        sums = [np.bincount(label, weights=row**2, minlength=n) for row in apart]
        found: NDArray[np.float64] = of_one * np.array(sums, np.float64).reshape(len(apart), n)
        return found

    def variances(self, influence: NDArray[np.float64], n_units: int) -> NDArray[np.float64]:
        """(S, n) as `variance` of each class's part of `raw` or `corrected`."""
        n, of_one = len(self.classes), n_units / (n_units - 1) if n_units > 1 else 0.0
        sums = [np.bincount(self.label, weights=row**2, minlength=n) for row in influence]
        found: NDArray[np.float64] = of_one * np.array(sums, np.float64).reshape(len(influence), n)
        return found


def each_batch(plan: Plan, units: Units, threads: int | None = None) -> Iterator[OfClasses]:
    """Influence on all classes, some at a time; only a few batches are in memory."""
    matches, n_readings = plan.matches, len(plan.readings.area)
    n_areas, n_thresholds = plan.counts.shape[1], len(plan.protocol.thresholds())
    ap, n_classes = plan.protocol.ap, len(plan.positives)
    rule = curve_kernels.Integrator(ap.rule.code(), ap.points(), ap.epsilon)
    objects = kernels.Objects(matches.obj_off, matches.obj_image, plan.counts)
    n_rows, n_objects = np.diff(plan.ranked.off), np.diff(matches.obj_off)

    def class_batch(classes: range) -> OfClasses:
        mine = slice(classes.start, classes.stop)
        touched = np.minimum(n_rows[mine] + n_objects[mine], matches.n_images)
        most = int(np.minimum(n_rows, n_objects)[mine].max(initial=0))
        pairs = kernels.empty_pairs(len(classes), n_readings, n_areas, int(touched.sum()))
        values = np.empty((len(classes), n_readings))
        kernels.influence_of_classes(
            classes.start,
            plan.ranked,
            plan.image,
            objects,
            plan.protocol.max_dets()[-1],
            plan.positives,
            rule,
            plan.readings,
            curve_kernels.empty_true_positives(n_areas, n_thresholds, most),
            kernels.empty_slopes(n_areas, n_thresholds, most),
            kernels.empty_scratch(n_readings, matches.n_images),
            values,
            pairs,
        )
        return _gathered(plan, units, classes, values, pairs)

    wide = max(n_readings * matches.n_images, 1)
    step = max(1, min(AT_ONCE // wide, -(-n_classes // BATCHES)))
    some = (range(k, min(k + step, n_classes)) for k in range(0, n_classes, step))
    yield from map_ordered(class_batch, some, threads)


def _gathered(
    plan: Plan, units: Units, classes: range, values: NDArray[np.float64], pairs: kernels.Pairs
) -> OfClasses:
    """The influence of units from that of their images."""
    n, size = len(classes), int(pairs.off[-1])
    label = np.repeat(np.arange(n), np.diff(pairs.off))
    unit = units.of_image[pairs.image[:size]].astype(np.int64)
    raw, counts, present = pairs.influence[:, :size], pairs.counts[:, :size], pairs.present[:size]
    if units.digest:
        cells, place = np.unique(label * units.n + unit, return_inverse=True)
        label, unit = np.divmod(cells, max(units.n, 1))
        raw, counts, present = (
            np.array([np.bincount(place, weights=row, minlength=len(cells)) for row in rows])
            for rows in (raw, counts, present[None])
        )
        present = present[0]
    area = plan.readings.area
    positives = np.maximum(plan.positives[classes.start : classes.stop], 1.0)[label].T
    leverage = np.maximum(1.0 - counts / positives, LEAST_LEVERAGE)
    n_units = [np.bincount(label[row > 0], minlength=n) for row in counts]
    return OfClasses(
        classes, label, unit, raw, raw / leverage[area], np.array(n_units)[area], values, present
    )


@dataclass(frozen=True, slots=True, eq=False)
class Influence:
    """The influence functions of a result, as its intervals need them.

    Parameters
    ----------
    uncorrected, unbiased, corrected : (Q, U) float64, of each metric, as in `OfClasses`
    class_uncorrected, class_unbiased : (S, K) float64, variances of the readings of each class
    n_units : (S, K) int64, units with a ground-truth object
    values : (S, K) the readings of each class
    n : U
    """

    uncorrected: NDArray[np.float64]
    unbiased: NDArray[np.float64]
    corrected: NDArray[np.float64]
    class_uncorrected: NDArray[np.float64]
    class_unbiased: NDArray[np.float64]
    n_units: NDArray[np.int64]
    values: NDArray[np.float64]
    n: int

    def se(self) -> NDArray[np.float64]:
        """(Q,) standard errors of the metrics, of the classes that the units have."""
        return np.sqrt([variance(row) for row in self.unbiased])

    def uncorrected_se(self) -> NDArray[np.float64]:
        """(Q,) standard errors without the leverage correction."""
        return np.sqrt([variance(row) for row in self.uncorrected])


def variance(influence: NDArray[np.float64]) -> float:
    """Variance of an estimate: U / (U - 1) times the sequential sum of its squared influences."""
    n = len(influence)
    return n / (n - 1) * kernels.sum_of_squares(np.ascontiguousarray(influence)) if n > 1 else 0.0


def influence(plan: Plan, units: Units, threads: int | None = None) -> Influence:
    """Influence of each unit on all metrics of a result; sums run in class order."""
    n_readings, n_classes = len(plan.readings.area), len(plan.positives)
    uncorrected, unbiased, corrected = totals = np.zeros((3, len(plan.metrics), units.n))
    class_uncorrected, class_unbiased = np.zeros((2, n_readings, n_classes))
    n_units = np.zeros((n_readings, n_classes), np.int64)
    values = np.empty((n_readings, n_classes))
    mix = Mixer(plan)
    for each in each_batch(plan, units, threads):
        root = each.unbiased
        mix.add(each, zip(totals, (each.raw, root, each.corrected), strict=True))
        mine = slice(each.classes.start, each.classes.stop)
        class_unbiased[:, mine] = each.variances(root, units.n)
        if plan.of_class:  # a metric does not need them
            class_uncorrected[:, mine] = each.variances(each.raw, units.n)
        n_units[:, mine] = each.n_units
        values[:, mine] = each.values.T
    mix.finish(totals)
    variances = class_uncorrected, class_unbiased
    return Influence(uncorrected, unbiased, corrected, *variances, n_units, values, units.n)


class Mixer:
    """Influence on metrics from the influence on classes. Means over classes may be weighted by
    images; the weights then depend on the images too.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan, self.shares = plan, plan.shares()
        self.by_images = plan.protocol.mean.weights == "images"
        averaged = np.where(plan.averaged(), plan.n_images, 0.0)
        self.per_image = 1.0 / np.maximum(averaged.sum(axis=1), 1.0)
        self.mean = np.zeros(len(plan.metrics))
        self.present: NDArray[np.float64] | None = None

    def add(
        self, each: OfClasses, totals: Iterable[tuple[NDArray[np.float64], NDArray[np.float64]]]
    ) -> None:
        """Add a batch of classes to the metrics, class by class.

        Parameters
        ----------
        totals : pairs of the (Q, U) sums to add to and the (S, P) influence in `each`
        """
        totals = list(totals)
        k = each.label + each.classes.start
        for q, s in enumerate(self.plan.of_metric):
            known = self.plan.positives[:, self.plan.readings.area[s]] > 0
            share = self.shares[q]
            used = np.flatnonzero((share != 0.0)[k] & (known[k] | self.by_images))
            unit, weight = each.unit[used], np.where(known, share, 0.0)[k[used]]
            if not self.by_images:
                for total, influence in totals:
                    np.add.at(total[q], unit, weight * influence[s, used])
                continue
            undefined = 1.0 if self.plan.protocol.mean.undefined == "one" else 0.0
            mine = slice(each.classes.start, each.classes.stop)
            value = np.where(known[mine], each.values[:, s], undefined)
            for of_class, part in zip(value.tolist(), share[mine].tolist(), strict=True):
                self.mean[q] += part * of_class
            moved = self.per_image[q] * each.present[used]
            for total, influence in totals:
                both = [weight * influence[s, used], value[each.label[used]] * moved]
                np.add.at(total[q], np.repeat(unit, 2), np.stack(both, axis=1).ravel())
            if self.present is None:
                self.present = np.zeros_like(total)
            np.add.at(self.present[q], unit, moved)

    def finish(self, totals: Iterable[NDArray[np.float64]]) -> None:
        """Subtract the influence on the weights themselves from (Q, U) sums."""
        if self.present is not None:
            for total in totals:
                total -= self.mean[:, None] * self.present
