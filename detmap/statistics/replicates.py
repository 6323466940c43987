"""Bootstrap replicates of a result: samples the units with replacement and computes every metric
again, without matching again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from detmap.base import memory
from detmap.base.parallel import map_ordered
from detmap.curves import counts as counting
from detmap.curves import scores as curves
from detmap.errors import DataError, ProtocolError
from detmap.kernels import curves as curve_kernels
from detmap.kernels.integrate import ALL_POINTS, ELEVEN_POINT, GRID_ENVELOPE, STEP
from detmap.kernels.resampling import replicates as kernels
from detmap.statistics.class_terms import Plan
from detmap.statistics.sampling_units import Units

LANES = kernels.LANES
MOST_REPLICATES = 1_000_000
MOST_SEED = 2**64 - 1
BOOTSTRAP, SWAP, TIES, HALVES = 1, 2, 3, 4  # tags of the random streams

Progress = Callable[[int, int], None]


def silent(done: int, of: int) -> None:
    """Report no progress."""


def word(value: int) -> NDArray[np.uint64]:
    """An integer as uint64, for kernels that use all 64 bits."""
    return np.array([value], np.uint64)


def random_words(seed: int, tag: int, first: int, shape: tuple[int, int]) -> NDArray[np.uint64]:
    """(n, m) random words: m of each of the n streams from `first` on."""
    words = np.empty(shape, np.uint64)
    kernels.draw_words(word(seed), word(tag), word(first), words)
    return words


def draws(seed: int, b: int, n_units: int) -> NDArray[np.int64]:
    """(U,) the units of replicate b, in the order of drawing."""
    upper = random_words(seed, BOOTSTRAP, b, (1, n_units))[0] >> np.uint64(32)
    drawn: NDArray[np.int64] = ((upper * np.uint64(n_units)) >> np.uint64(32)).astype(np.int64)
    return drawn


def swaps(seed: int, b: int, n_units: int) -> NDArray[np.bool_]:
    """(U,) the units that permutation b exchanges."""
    exchanged: NDArray[np.bool_] = random_words(seed, SWAP, b, (1, n_units))[0] >= 1 << 63
    return exchanged


@lru_cache(maxsize=32)  # shared by many metrics
def lanes_of(units: Units, seed: int, first: int) -> NDArray[np.float64]:
    """(I, L) the count of each image in each of L replicates, starting at `first`."""
    weights, drawn = np.empty((len(units.of_image), LANES)), np.empty((units.n, LANES))
    kernels.draw_lanes(word(seed), word(first), units.of_image, drawn, weights)
    weights.flags.writeable = False
    return weights


def check(replicates: int, seed: int) -> None:
    """Raise `DataError` unless both are integers in range."""
    for name, value, least, most in (
        ("replicates", replicates, 1, MOST_REPLICATES),
        ("seed", seed, 0, MOST_SEED),
    ):
        whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
        if not whole or not least <= value <= most:
            raise DataError(name, f"{value!r}", f"give a whole number from {least} to {most}")


@dataclass(frozen=True, slots=True, eq=False)
class Replicates:
    """All metrics of a result in B replicates; NaN if a replicate has no object for the metric.

    Parameters
    ----------
    metrics : (B, Q) float64
    classes : (B, C, K) float64, the rows of the per-class table
    """

    metrics: NDArray[np.float64]
    classes: NDArray[np.float64]


def replicates(
    plan: Plan,
    units: Units,
    n: int,
    seed: int,
    *,
    threads: int | None = None,
    progress: Progress = silent,
) -> Replicates:
    """Sample the units n times and compute every metric each time.

    Replicate b depends only on the seed and b: any number of threads gives the same bits.
    """
    n_classes, n_rows = len(plan.positives), len(plan.of_class)
    memory.require(
        8 * n * (n_classes * n_rows + len(plan.metrics)),
        "replicates",
        f"{n} replicates of {n_rows} numbers of {n_classes} classes",
        "ask for fewer replicates",
    )
    metrics, classes = np.empty((n, len(plan.metrics))), np.empty((n, n_rows, n_classes))
    batch = reader(plan)

    def metrics_batch(first: int) -> int:
        values, objects = batch(lanes_of(units, seed, first))
        kept = slice(first, min(first + LANES, n))
        lanes = slice(0, kept.stop - first)
        metrics[kept] = means(plan, values, objects)[lanes]
        rows = values[:, np.array(plan.of_class, dtype=np.int64), lanes]
        classes[kept] = rows.transpose(2, 1, 0)
        return kept.stop

    for done in map_ordered(metrics_batch, range(0, n, LANES), threads):
        progress(done, n)
    return Replicates(metrics, classes)


Batch = Callable[[NDArray[np.float64]], tuple[NDArray[np.float64], NDArray[np.float64]]]


def means(
    plan: Plan, values: NDArray[np.float64], n_images: NDArray[np.float64]
) -> NDArray[np.float64]:
    """(L, Q) the metrics, from the readings of the classes.

    Parameters
    ----------
    values : (K, S, L), NaN for a class without objects
    n_images : (K, L), weight of the images with an object of the class
    """
    rules = plan.protocol.mean
    averages = np.empty((values.shape[2], len(plan.metrics)))
    for q, s in enumerate(plan.of_metric):
        chosen = plan.members[q]
        if rules.undefined == "skip":  # classes without objects add nothing
            chosen = chosen & ~np.isnan(values[:, s]).all(axis=1)
        mine, images = values[:, s][chosen], n_images[chosen]
        if rules.undefined != "skip":
            mine = np.where(np.isnan(mine), 1.0 if rules.undefined == "one" else 0.0, mine)
        weight = np.where(np.isnan(mine), 0.0, images if rules.weights == "images" else 1.0)
        total, size = np.zeros((2, values.shape[2]))
        for of_class, w in zip(np.where(weight > 0, mine, 0.0), weight, strict=True):
            total += w * of_class
            size += w
        averages[:, q] = np.divide(total, size, out=np.full_like(total, np.nan), where=size > 0)
    return averages


def _grid(plan: Plan) -> kernels.Grid | None:
    """Parameters of the AP interpolation for the kernel; None if the kernel does not support it."""
    rule = plan.protocol.ap.rule.kernel
    if rule in (ALL_POINTS, STEP):
        return kernels.Grid(0, 0.0)
    points = plan.protocol.ap.points()
    regular = len(points) > 1 and np.array_equal(points, np.arange(len(points)) * points[1])
    if rule in (GRID_ENVELOPE, ELEVEN_POINT) and regular:
        return kernels.Grid(len(points), float(points[1]))
    return None


def reader(plan: Plan) -> Batch:
    """A function of (I, L) image weights: the (K, S, L) readings and (K, L) image weights."""
    return _lanes(plan) if _grid(plan) is not None else _one_by_one(plan)


def _lanes(plan: Plan) -> Batch:
    """The batch for any weights."""
    matches = plan.matches
    first = counting.first_of_image(matches)[:, None].astype(np.float64)
    n_classes, n_areas = plan.positives.shape

    def batch(weights: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        positives = np.empty((n_classes, n_areas, LANES))
        kernels.add_lanes(matches.obj_off, matches.obj_image, plan.counts, weights, positives)
        images = np.empty((n_classes, 1, LANES))
        kernels.add_lanes(matches.obj_off, matches.obj_image, first, weights, images)
        return _values(plan, weights, positives), images[:, 0]

    return batch


def metrics_of_rows(plan: Plan, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """(L, Q) the metrics with weighted rows, by (n, L) weights of `plan.image`; objects and their
    images have weight 1.
    """
    positives = np.repeat(plan.positives[:, :, None], LANES, axis=2)
    images = np.repeat(plan.n_images[:, None], LANES, axis=1)
    if _grid(plan) is None:
        raise ProtocolError(
            "ap.integrator",
            f"{plan.protocol.ap.integrator} with these recall points has no permutation test",
            "use --test z",
        )
    return means(plan, _values(plan, weights, positives), images)


def _values(
    plan: Plan, weights: NDArray[np.float64], positives: NDArray[np.float64]
) -> NDArray[np.float64]:
    """(K, S, L) the readings of all classes, in one call."""
    n_areas, n_thresholds = plan.counts.shape[1], len(plan.protocol.thresholds())
    ap = plan.protocol.ap
    values = np.empty((len(plan.positives), len(plan.readings.area), LANES))
    kernels.replicate_classes(
        np.arange(len(plan.positives), dtype=np.int32),
        plan.ranked,
        plan.image,
        weights,
        positives,
        curve_kernels.Integrator(ap.rule.code(), ap.points(), ap.epsilon),
        _grid(plan),
        plan.readings,
        kernels.empty_lanes(n_areas, n_thresholds),
        values,
    )
    return values


def _one_by_one(plan: Plan) -> Batch:
    """The batch for an AP interpolation without a kernel: each replicate by `curves.scores`."""
    matches, protocol, readings = plan.matches, plan.protocol, plan.readings
    limits = protocol.max_dets()
    bits = np.uint64(1) << np.arange(len(protocol.thresholds()), dtype=np.uint64)

    def batch(weights: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        values = np.full((len(plan.positives), len(readings.area), LANES), np.nan)
        images = np.empty((len(plan.positives), LANES))
        for lane in range(LANES):
            weight = np.ascontiguousarray(weights[:, lane])
            scores = curves.scores(matches, weights=weight, threads=1)
            images[:, lane] = scores.n_images
            for s, (a, words, limit) in enumerate(zip(*readings, strict=True)):
                cells = scores.terms[a].mean(axis=1)
                if limit >= 0:
                    cells = scores.recall[limits.index(int(limit)), a]
                chosen = cells[(words & bits) != 0]
                values[scores.judged, s, lane] = chosen.mean(axis=0)
        return values, images

    return batch
