"""Small-sample bias of a metric, estimated from random halves of the images.

AP of few images is too high, because its envelope takes a maximum over noise. A random half of the
images is a sample of the same source, so the mean over halves estimates the metric of n/2 images.
If the bias of n images is c n^-rate, the difference between n/2 and n images gives c. The rate of a
recall, a ratio of sums, is 1. The rate of AP lies between 1/2 (constant precision: the maximum is
over noise alone) and 1 (steeply falling precision: only neighbours can exceed it). This module uses
2/3, the rate of monotone estimates (cube-root asymptotics: Kim and Pollard 1990). It was tested on
the populations of docs/statistics.md.

Each class uses only the halves that contain it. These have more than half of its images if it is on
few: (m/2) / (1 - 2^-m) of m on average (a binomial number above 0), so the step to them is smaller.
A class on one image has the same image in each of them, and no step at all. It gets c of the other
classes. Missing classes are no bias of a class; see `detmap.core.statistics.support`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from detmap.core.base.parallel import map_ordered
from detmap.core.statistics import replicates as drawing
from detmap.core.statistics.class_terms import Plan
from detmap.core.statistics.sampling_units import Units

MOST_HALVES = 128
WIDER = 1.08  # an AP of few classes minus its bias varies by 4 to 20 % more than the AP itself
FEWEST_CLASSES = 10  # that show how the bias depends on the AP
STEEPER = 2.0  # the line of one class over many samples, than that through classes: 1 to 2.4 times
RATE_OF_AP, RATE_OF_RECALL = 2 / 3, 1.0


@dataclass(frozen=True, slots=True, eq=False)
class Bias:
    """The bias to subtract from each metric.

    Parameters
    ----------
    metrics : (Q,) float64
    terms : (Q, all classes) float64, what each class adds to `metrics`
    classes : (C, K) float64, rows of the per-class table; NaN for a class without objects
    wider : (Q,) float64, by how much a metric minus its bias varies more than the metric
    errors : (Q,) float64, standard errors of `metrics`, apart from what `wider` covers
    """

    metrics: NDArray[np.float64]
    terms: NDArray[np.float64]
    classes: NDArray[np.float64]
    wider: NDArray[np.float64]
    errors: NDArray[np.float64]

    def errors_of_difference(self, other: Bias) -> NDArray[np.float64]:
        """(Q,) standard errors of the difference to the bias of another detector on the same
        images: the difference of a class is taken to be as uncertain as it is large.
        """
        return _length(self.terms - other.terms)


def _length(terms: NDArray[np.float64]) -> NDArray[np.float64]:
    length: NDArray[np.float64] = np.sqrt((terms**2).sum(axis=-1))
    return length


def bias(
    plan: Plan,
    units: Units,
    n_units: NDArray[np.int64],
    n: int,
    seed: int,
    threads: int | None = None,
    read: drawing.Reader | None = None,
) -> Bias:
    """Estimate the bias of every metric of a result.

    Parameters
    ----------
    n_units : (S, K) units with an object of the class, as in `Influence`
    n : number of halves, at most `MOST_HALVES`, rounded up to whole batches
    read : `drawing.reader(plan)`, if it is there already
    """
    read = read or drawing.reader(plan)
    batches = range(-(-min(n, MOST_HALVES) // drawing.LANES))

    total = np.zeros((len(plan.positives), len(plan.readings.area)))
    count = np.zeros(total.shape, np.int64)
    value = np.where(n_units.T > 0, 0.0, np.nan)
    several = np.max(n_units, axis=0, initial=0) > 1  # of one unit, the readings have no effect
    blocks = [block for block in read.blocks if several[block].any()]

    def read_halves(batch: int) -> list[tuple[NDArray[np.float64], NDArray[np.int64]]]:
        """The sums over the halves of a batch, and how many have each class."""
        weights, sums = _halves(units, seed, batch), []
        for block in blocks:
            values = read.read(weights, block)[0]
            there = ~np.isnan(values)
            sums.append((np.where(there, values, 0.0).sum(axis=2), there.sum(axis=2)))
        return sums

    for sums in map_ordered(read_halves, batches, threads):
        for block, (of_block, there) in zip(blocks, sums, strict=True):
            total[block] += of_block
            count[block] += there
    everything = np.ones((len(units.of_image), drawing.LANES))
    for block in blocks:
        value[block] = read.read(everything, block)[0][:, :, 0]
    rate = np.where(plan.readings.limit < 0, RATE_OF_AP, RATE_OF_RECALL)
    half = np.divide(total, count, out=value.copy(), where=count > 0)
    of_class = extrapolate(half - value, n_units.T, rate)
    shares = plan.shares()
    terms = np.zeros((len(plan.metrics), plan.of_all))  # the order of a sum depends on its length
    of_metric = np.array(plan.of_metric, dtype=np.int64)
    terms[:, plan.places] = np.nan_to_num(shares * of_class[:, of_metric].T)
    classes = of_class[:, np.array(plan.of_class, dtype=np.int64)].T
    is_ap = (plan.readings.limit < 0)[of_metric]
    spread = [
        spread_of_bias(of_class[:, s], value[:, s], share, ap)
        for s, share, ap in zip(plan.of_metric, shares, is_ap.tolist(), strict=True)
    ]
    wider, errors = np.array(spread, np.float64).reshape(-1, 2).T
    return Bias(terms.sum(axis=1), terms, np.ascontiguousarray(classes), wider, errors)


def spread_of_bias(
    bias: NDArray[np.float64], value: NDArray[np.float64], share: NDArray[np.float64], is_ap: bool
) -> tuple[float, float]:
    """How a mean minus its bias varies: a factor of the standard error of the mean, and the
    standard error of the bias itself.

    A class whose AP is high by chance has a low estimated bias, so the difference varies more than
    the AP. The line through the biases and the values of all classes shows how much, but it is less
    steep than that of one class over many samples, as classes differ in more than chance. What is
    left of each bias beside the line is its error. A few classes show no line: their bias is taken
    to be as uncertain as it is large.

    Parameters
    ----------
    bias, value, share : (K,) of each class, NaN without objects; its weight in the mean
    is_ap : whether the metric is an AP
    """
    there = (share > 0) & ~np.isnan(bias)
    bias, value, share = bias[there], value[there], share[there]
    n = len(bias)
    if n < FEWEST_CLASSES:
        return WIDER if is_ap else 1.0, float(_length(share * bias))
    apart = value - value.mean()
    among = float((apart**2).sum())
    slope = float((apart * bias).sum()) / max(among, 1e-300)
    beside = bias - bias.mean() - slope * apart
    freedom = math.sqrt(n / (n - 2))  # a line has two coefficients
    return max(1.0, 1.0 - STEEPER * slope), freedom * float(_length(share * beside))


def total_error(se: float, of_bias: float, is_ap: bool) -> float:
    """The error of the value of a class, or of a difference, minus its bias."""
    return math.hypot(WIDER * se if is_ap else se, of_bias)


def extrapolate(
    step: NDArray[np.float64], n_units: NDArray[np.int64], rate: NDArray[np.float64]
) -> NDArray[np.float64]:
    """(K, S) the bias of each class, from the step to the halves that contain it.

    Parameters
    ----------
    step : (K, S), NaN for a class without objects
    n_units : (K, S) units with an object of the class
    rate : (S,)
    """
    m = np.maximum(n_units, 2).astype(np.float64)  # of one unit there is no step
    growth = (2.0 * (1.0 - 0.5**m)) ** rate - 1.0  # of the bias, from all units to these halves
    several = (n_units > 1) & ~np.isnan(step)
    steps = np.where(several, step, 0.0).sum(axis=0)
    per_c = np.where(several, m**-rate * growth, 0.0).sum(axis=0)
    c = np.divide(steps, per_c, out=np.zeros_like(per_c), where=per_c > 0)
    own = np.divide(step, growth, out=np.zeros_like(step), where=several)
    return np.where(np.isnan(step), np.nan, np.where(several, own, c))  # of one unit, m^-rate is 1


def _halves(units: Units, seed: int, batch: int) -> NDArray[np.float64]:
    """(I, L) 1 for the images of each half, else 0: random units, and their complements."""
    pairs = drawing.LANES // 2
    words = drawing.random_words(seed, drawing.HALVES, batch * pairs, (pairs, units.n))
    side = (words >= 1 << 63).T
    lanes = np.concatenate([side, ~side], axis=1).astype(np.float64)
    return np.ascontiguousarray(lanes[units.of_image])
