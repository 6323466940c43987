"""How far a number is off because the images are few: from random halves of them.

AP of few images is too high, as its envelope takes a maximum over noise. A random half of the
images is itself a sample of their source, so the mean over halves is what half as many images give.
If n images are off by c n^-rate, twice as many are off by 2^-rate of it, and the step from n to n/2
tells c. The rate of a recall, a ratio of sums, is 1. That of an AP lies between 1/2, where
precision is level and the maximum over all that follows is one over noise alone, and 1, where it
falls steeply and only neighbours can exceed it; 2/3, the rate of monotone estimates in between
(cube-root asymptotics: Kim and Pollard 1990), was checked on the populations of docs/statistics.md.

Each class is followed for itself, over the halves that have it: which classes a sample lacks is no
bias of a class (`detmap.statistics.support`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from detmap.base.parallel import map_ordered
from detmap.statistics import replicates as drawing
from detmap.statistics.class_terms import Plan
from detmap.statistics.sampling_units import Units

MOST_HALVES = 128
RATE_OF_AP, RATE_OF_RECALL = 2 / 3, 1.0


@dataclass(frozen=True, slots=True, eq=False)
class Bias:
    """What to take off a number.

    Parameters
    ----------
    metrics : (Q,) float64
    classes : (C, K) float64, of the rows of the per-class table; NaN of a class without objects
    """

    metrics: NDArray[np.float64]
    classes: NDArray[np.float64]


def bias(plan: Plan, units: Units, n: int, seed: int, threads: int | None = None) -> Bias:
    """The bias of every number of a result.

    Parameters
    ----------
    n : how many halves, at most `MOST_HALVES`, in whole batches of complements
    """
    read = drawing.reader(plan)
    batches = range(-(-min(n, MOST_HALVES) // drawing.LANES))

    def read_halves(batch: int) -> NDArray[np.float64]:
        return read(_halves(units, seed, batch))[0]

    total = np.zeros((len(plan.positives), len(plan.readings.area)))
    count = np.zeros(total.shape, np.int64)
    for values in map_ordered(read_halves, batches, threads):
        there = ~np.isnan(values)
        total += np.where(there, values, 0.0).sum(axis=2)
        count += there.sum(axis=2)
    value = read(np.ones((len(units.of_image), drawing.LANES)))[0][:, :, 0]
    rate = np.where(plan.readings.limit < 0, RATE_OF_AP, RATE_OF_RECALL)
    half = np.divide(total, count, out=np.full_like(total, np.nan), where=count > 0)
    of_class = (half - value) / (2.0**rate - 1.0)
    shares = plan.shares()
    metrics = [float(np.nansum(shares[q] * of_class[:, s])) for q, s in enumerate(plan.of_metric)]
    classes = of_class[:, np.array(plan.of_class, dtype=np.int64)].T
    return Bias(np.array(metrics), np.ascontiguousarray(classes))


def _halves(units: Units, seed: int, batch: int) -> NDArray[np.float64]:
    """(I, L) 1 for the images of each half, else 0: a coin a unit, and the complements."""
    pairs = drawing.LANES // 2
    words = drawing.random_words(seed, drawing.HALVES, batch * pairs, (pairs, units.n))
    side = (words >= 1 << 63).T
    lanes = np.concatenate([side, ~side], axis=1).astype(np.float64)
    return np.ascontiguousarray(lanes[units.of_image])
