"""Influence functions of a result: standard errors of all metrics without replicates."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from detmap.base.parallel import map_ordered
from detmap.kernels import curves as curve_kernels
from detmap.kernels.resampling import influence as kernels
from detmap.statistics.class_terms import Plan
from detmap.statistics.sampling_units import Units

AT_ONCE = 1 << 17  # values of small classes that are found in one go
LEAST_LEVERAGE = 0.5  # a unit with more than half of a class's objects counts twice at most


@dataclass(frozen=True, slots=True, eq=False)
class OfClass:
    """Influence of each unit on the readings of one class.

    Parameters
    ----------
    raw : (S, U) float64; its sums over U are 0
    corrected : (S, U) float64, divided by the leverage, in [1/2, 1]: 1 minus the unit's share of
        the objects of the class
    n_units : (S,) int64, units with a ground-truth object
    values : (S,) float64, the readings
    present : (U,) float64, images of the unit with an object of the class
    """

    raw: NDArray[np.float64]
    corrected: NDArray[np.float64]
    n_units: NDArray[np.int64]
    values: NDArray[np.float64]
    present: NDArray[np.float64]


def each_class(plan: Plan, units: Units, threads: int | None = None) -> Iterator[OfClass]:
    """Influence on the classes, one at a time; only a few are in memory."""
    matches, readings = plan.matches, plan.readings
    n_areas, n_thresholds = plan.counts.shape[1], len(plan.protocol.thresholds())
    ranked, image_of = plan.ranked, plan.image
    limit = plan.protocol.max_dets()[-1]
    ap = plan.protocol.ap
    rule = curve_kernels.Integrator(ap.rule.code(), ap.points(), ap.epsilon)
    most = np.minimum(np.diff(ranked.off), np.diff(matches.obj_off))

    n_readings, n_objects = len(readings.area), np.diff(matches.obj_off)
    nothing = _nothing(n_readings, units.n)
    wide = n_readings * matches.n_images

    def class_batch(classes: range) -> list[OfClass]:
        return [class_influence(k) if n_objects[k] else nothing for k in classes]

    def class_influence(k: int) -> OfClass:
        curves = curve_kernels.empty_true_positives(n_areas, n_thresholds, int(most[k]))
        slopes = kernels.empty_slopes(n_areas, n_thresholds, int(most[k]))
        raw = np.zeros((n_readings, matches.n_images))
        values = np.zeros(n_readings)
        kernels.influence_of_class(
            k,
            ranked,
            image_of,
            limit,
            plan.positives[k],
            rule,
            readings,
            curves,
            slopes,
            np.empty(n_readings),
            values,
            raw,
        )
        mine = slice(matches.obj_off[k], matches.obj_off[k + 1])
        image, counts = matches.obj_image[mine], plan.counts[mine]
        kernels.share_objects(image, counts, values, plan.positives[k], readings.area, raw)
        per_area = np.array(
            [
                np.bincount(units.of_image[image], weights=counts[:, a], minlength=units.n)
                for a in range(n_areas)
            ]
        )
        positives = np.maximum(plan.positives[k], 1.0)[:, None]
        leverage = np.maximum(1.0 - per_area / positives, LEAST_LEVERAGE)
        present = np.bincount(units.of_image[np.unique(image)], minlength=units.n).astype(
            np.float64
        )
        gathered = units.gathered(raw)
        return OfClass(
            gathered,
            gathered / leverage[readings.area],
            (per_area > 0).sum(axis=1)[readings.area],
            values,
            present,
        )

    n_classes, step = len(plan.positives), max(1, min(64, AT_ONCE // max(wide, 1)))
    some = (range(k, min(k + step, n_classes)) for k in range(0, n_classes, step))
    for batch in map_ordered(class_batch, some, threads):
        yield from batch


def _nothing(n_readings: int, n_units: int) -> OfClass:
    """The influence on a class without objects."""
    none, n = np.zeros((n_readings, n_units)), np.zeros(n_readings, np.int64)
    return OfClass(none, none, n, np.zeros(n_readings), np.zeros(n_units))


@dataclass(frozen=True, slots=True, eq=False)
class Influence:
    """The influence functions of a result, as its intervals need them.

    Parameters
    ----------
    uncorrected, corrected : (Q, U) float64, of each metric, without and with leverage correction
    class_uncorrected, class_corrected : (S, K) float64, variances of the readings of each class
    n_units : (S, K) int64, units with a ground-truth object
    n : U
    """

    uncorrected: NDArray[np.float64]
    corrected: NDArray[np.float64]
    class_uncorrected: NDArray[np.float64]
    class_corrected: NDArray[np.float64]
    n_units: NDArray[np.int64]
    n: int

    def se(self) -> NDArray[np.float64]:
        """(Q,) standard errors of the metrics."""
        return np.sqrt([variance(row) for row in self.corrected])

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
    uncorrected, corrected = np.zeros((2, len(plan.metrics), units.n))
    class_uncorrected, class_corrected = np.zeros((2, n_readings, n_classes))
    n_units = np.zeros((n_readings, n_classes), np.int64)
    mix = Mixer(plan)
    for k, each in enumerate(each_class(plan, units, threads)):
        mix.add(k, each, uncorrected, corrected)
        if each.n_units.any():
            class_corrected[:, k] = [variance(row) for row in each.corrected]
            if plan.of_class:  # a metric does not need them
                class_uncorrected[:, k] = [variance(row) for row in each.raw]
        n_units[:, k] = each.n_units
    mix.finish(uncorrected, corrected)
    return Influence(uncorrected, corrected, class_uncorrected, class_corrected, n_units, units.n)


class Mixer:
    """Influence on metrics from the influence on classes. Means over classes may be weighted by
    images; the weights then depend on the images too.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan, self.shares = plan, plan.shares()
        self.by_images = plan.protocol.mean.weights == "images"
        averaged = np.where(plan.averaged(), plan.n_images, 0.0)
        self.per_image = np.divide(
            1.0, averaged.sum(axis=1), out=np.zeros(len(averaged)), where=averaged.sum(axis=1) > 0
        )
        self.mean = np.zeros(len(plan.metrics))
        self.present: NDArray[np.float64] | None = None

    def add(
        self,
        k: int,
        each: OfClass,
        uncorrected: NDArray[np.float64],
        corrected: NDArray[np.float64],
    ) -> None:
        """Add a class to the metrics."""
        for q, s in enumerate(self.plan.of_metric):
            share = self.shares[q, k]
            if share == 0.0:
                continue
            if self.plan.positives[k, self.plan.readings.area[s]] > 0:
                uncorrected[q] += share * each.raw[s]
                corrected[q] += share * each.corrected[s]
                value = each.values[s]
            else:
                value = 1.0 if self.plan.protocol.mean.undefined == "one" else 0.0
            if self.by_images:
                if self.present is None:
                    self.present = np.zeros_like(uncorrected)
                moved = self.per_image[q] * each.present
                uncorrected[q] += value * moved
                corrected[q] += value * moved
                self.present[q] += moved
                self.mean[q] += share * value

    def finish(self, uncorrected: NDArray[np.float64], corrected: NDArray[np.float64]) -> None:
        """Subtract the influence on the weights themselves."""
        if self.present is not None:
            uncorrected -= self.mean[:, None] * self.present
            corrected -= self.mean[:, None] * self.present
