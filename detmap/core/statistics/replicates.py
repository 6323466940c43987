"""Bootstrap replicates of a result: samples the units with replacement and computes every metric
again, without matching again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from detmap.core.base import memory
from detmap.core.base.parallel import map_ordered
from detmap.core.curves import counts as counting
from detmap.core.curves import scores as curves
from detmap.core.statistics.class_terms import Plan
from detmap.core.statistics.image_sums import Tally, tally
from detmap.core.statistics.sampling_units import Units
from detmap.core.tables.grouping import labels
from detmap.errors import DataError, ProtocolError
from detmap.kernels import curves as curve_kernels
from detmap.kernels.integrate import ALL_POINTS, ELEVEN_POINT, GRID_ENVELOPE, STEP
from detmap.kernels.resampling import replicates as kernels
from detmap.kernels.resampling.steps import Steps, list_steps

LANES = kernels.LANES
MOST_REPLICATES = 1_000_000
MOST_DRAWN = 2_000_000  # classes times replicates, of thousands of classes
MOST_SEED = 2**64 - 1
MOST_WEIGHT = 255  # of an image in a replicate: weights are bytes
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


def affordable(replicates: int, n_classes: int, least: int) -> int:
    """The number of replicates for so many classes: those asked for, or fewer, but `least`."""
    return min(replicates, max(least, MOST_DRAWN // max(1, n_classes)))


Blocks = tuple[slice, ...]
Take = Callable[[NDArray[np.int64], NDArray[np.float64]], None]
"""A function of the places of k classes and their (B, C, k) replicates."""
Batch = Callable[[NDArray[np.float64], slice], tuple[NDArray[np.float64], NDArray[np.float64]]]
"""A function of (I, L) image weights and some of the K classes: their (k, S, L) readings and (k, L)
image weights.
"""
AT_ONCE = 1 << 20  # readings of a block of classes: those of 45,000 classes take gigabytes
MOST_TAKEN = 1 << 22  # replicates of classes that are passed on together


@dataclass(frozen=True, slots=True, eq=False)
class Reader:
    """Computes the readings of classes from image weights.

    Parameters
    ----------
    read : the function
    blocks : the classes that are read together
    """

    read: Batch
    blocks: Blocks

    def __call__(
        self, weights: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The (K, S, L) readings and (K, L) image weights of all classes."""
        return self.read(weights, slice(0, self.blocks[-1].stop if self.blocks else 0))


@dataclass(frozen=True, slots=True, eq=False)
class Replicates:
    """All metrics of a result in B replicates; NaN if a replicate has no object for the metric.

    Parameters
    ----------
    metrics : (B, Q) float64
    classes : (B, C, k) float64, the rows of the per-class table of the k kept classes; none if
        they were passed on
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
    read: Reader | None = None,
    kept: NDArray[np.int64] | None = None,
    take: Take | None = None,
) -> Replicates:
    """Sample the units n times and compute every metric each time.

    Replicate b depends only on the seed and b: any number of threads gives the same bits.

    Parameters
    ----------
    read : `reader(plan)`, if it is there already
    kept : (k,) ascending, classes whose rows are returned (default: all)
    take : called with the rows of some classes after the other, which are not returned then
    """
    places = np.arange(len(plan.positives)) if kept is None else kept
    n_rows, read = len(plan.of_class), read or reader(plan)
    parts = (read.blocks,) if take is None else _parts(plan, read, n * n_rows)
    most = max(len(_within(places, part)) for part in parts)
    memory.require(
        8 * n * (most * n_rows + len(plan.metrics)),
        "replicates",
        f"{n} replicates of {n_rows} numbers of {most} classes",
        "ask for fewer replicates",
    )
    metrics, classes = np.empty((n, len(plan.metrics))), np.empty((n, n_rows, 0))
    sums = [Means(plan) for _ in range(0, n, LANES)]
    of_class = np.array(plan.of_class, dtype=np.int64)

    def read_batch(first: int, part: Blocks, mine: NDArray[np.int64]) -> int:
        weights, drawn = lanes_of(units, seed, first), slice(first, min(first + LANES, n))
        lanes = slice(0, drawn.stop - first)
        for block in part:
            values, objects = read.read(weights, block)
            sums[first // LANES].add(block, values, objects)
            some = slice(*np.searchsorted(mine, [block.start, block.stop]))
            rows = values[mine[some] - block.start][:, of_class, lanes]
            classes[drawn, :, some] = rows.transpose(2, 1, 0)
        return drawn.stop

    for i, part in enumerate(parts):
        mine = _within(places, part)
        classes = np.empty((n, n_rows, len(mine)))
        batch = partial(read_batch, part=part, mine=mine)
        for done in map_ordered(batch, range(0, n, LANES), threads):
            progress((i * n + done) // len(parts), n)
        if take is not None:
            take(mine, classes)
    for first, each in zip(range(0, n, LANES), sums, strict=True):
        metrics[first : first + LANES] = each.means()[: n - first]
    return Replicates(metrics, classes if take is None else np.empty((n, n_rows, 0)))


def _within(places: NDArray[np.int64], part: Blocks) -> NDArray[np.int64]:
    """The places in consecutive blocks of classes."""
    if not part:
        return places[:0]
    return places[slice(*np.searchsorted(places, [part[0].start, part[-1].stop]))]


def _parts(plan: Plan, read: Reader, n_each: int) -> tuple[Blocks, ...]:
    """Blocks of classes whose replicates fit into memory together, `n_each` per class. Without a
    kernel, a block takes as long as all.
    """
    if _grid(plan) is None:
        return (read.blocks,)
    step = max(1, MOST_TAKEN // max(1, n_each))
    parts = tuple(
        (slice(k, min(k + step, block.stop)),)
        for block in read.blocks
        for k in range(block.start, block.stop, step)
    )
    return parts or (read.blocks,)


class Means:
    """The metrics of L replicates, from the readings of one block of classes after the other."""

    def __init__(self, plan: Plan, n_lanes: int = LANES) -> None:
        self.plan = plan
        self.total, self.size = np.zeros((2, len(plan.metrics), n_lanes))

    def add(self, block: slice, values: NDArray[np.float64], n_images: NDArray[np.float64]) -> None:
        """Add the classes of a block, in their order.

        Parameters
        ----------
        values : (k, S, L), NaN for a class without objects
        n_images : (k, L), weight of the images with an object of the class
        """
        rules = self.plan.protocol.mean
        for q, s in enumerate(self.plan.of_metric):
            chosen = self.plan.members[q, block]
            mine, images = values[:, s][chosen], n_images[chosen]
            if rules.undefined != "skip":
                mine = np.where(np.isnan(mine), 1.0 if rules.undefined == "one" else 0.0, mine)
            weight = np.where(np.isnan(mine), 0.0, images if rules.weights == "images" else 1.0)
            add_rows(self.total[q], weight * np.where(weight > 0, mine, 0.0))
            add_rows(self.size[q], weight)

    def means(self) -> NDArray[np.float64]:
        """(L, Q) the metrics; NaN where no class has an object."""
        nothing = np.full_like(self.total, np.nan)
        return np.divide(self.total, self.size, out=nothing, where=self.size > 0).T


def means(
    plan: Plan, values: NDArray[np.float64], n_images: NDArray[np.float64]
) -> NDArray[np.float64]:
    """(L, Q) the metrics, from the (K, S, L) readings and (K, L) image weights of all classes."""
    sums = Means(plan, values.shape[2])
    sums.add(slice(0, len(values)), values, n_images)
    return sums.means()


def add_rows(total: NDArray[np.float64], rows: NDArray[np.float64]) -> None:
    """Add (k, L) rows to (L,) sums, one row after the other."""
    if len(rows):
        rows[0] += total
        total[:] = np.cumsum(rows, axis=0, out=rows)[-1]


def _grid(plan: Plan) -> kernels.Grid | None:
    """Parameters of the AP interpolation for the kernel; None if the kernel does not support it."""
    rule = plan.protocol.ap.rule.kernel
    if rule in (ALL_POINTS, STEP):
        return kernels.Grid(0, 0.0, 0.0)
    points = plan.protocol.ap.points()
    regular = len(points) > 1 and np.array_equal(points, np.arange(len(points)) * points[1])
    if rule in (GRID_ENVELOPE, ELEVEN_POINT) and regular:
        return kernels.Grid(len(points), float(points[1]), (len(points) - 1) / float(points[-1]))
    return None


def reader(plan: Plan) -> Reader:
    """The readings of a plan's classes; in blocks of classes, if the kernel knows the rule."""
    n_classes = len(plan.positives)
    if _grid(plan) is None:
        return Reader(_one_by_one(plan), (slice(0, n_classes),))
    step = max(1, AT_ONCE // (LANES * max(1, len(plan.readings.area))))
    starts = range(0, n_classes, step)
    return Reader(_lanes(plan), tuple(slice(k, min(k + step, n_classes)) for k in starts))


def _lanes(plan: Plan) -> Batch:
    """The batch for whole weights of at most 255."""
    matches, n_areas = plan.matches, plan.counts.shape[1]
    columns = [*plan.counts.T, counting.first_of_image(matches)]
    place = labels(matches.obj_off)
    objects = tally(place, matches.obj_image, columns, len(plan.positives), matches.n_images)
    values = readings_of_classes(plan, matches.n_images)

    def batch(
        weights: NDArray[np.float64], block: slice
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        sums = objects.of_groups(block).totals(weights)
        positives = np.ascontiguousarray(sums[:, :n_areas])
        return values(weights, positives, block), sums[:, n_areas]

    return batch


def metrics_of_rows(
    plan: Plan, n_images: int
) -> Callable[[NDArray[np.float64]], NDArray[np.float64]]:
    """A function of (n, L) weights of `plan.image`, n images: the (L, Q) metrics with weighted
    rows; objects and their images have weight 1.
    """
    if _grid(plan) is None:
        raise ProtocolError(
            "ap.integrator",
            f"{plan.protocol.ap.integrator} with these recall points has no permutation test",
            "use --test z",
        )
    positives = np.repeat(plan.positives[:, :, None], LANES, axis=2)
    images = np.repeat(plan.n_images[:, None], LANES, axis=1)
    values, everything = readings_of_classes(plan, n_images), slice(0, len(images))
    return lambda weights: means(plan, values(weights, positives, everything), images)


def readings_of_classes(
    plan: Plan, n_images: int
) -> Callable[[NDArray[np.float64], NDArray[np.float64], slice], NDArray[np.float64]]:
    """A function of (I, L) weights of the images, (k, A, L) weights of the objects of a block of
    classes and the block: the (k, S, L) readings of these classes.
    """
    steps, recalled = _steps(plan), _recalled(plan, n_images)
    ap = plan.protocol.ap
    rule, grid = curve_kernels.Integrator(ap.rule.code(), ap.points(), ap.epsilon), _grid(plan)
    most = int(np.diff(steps.event_off).max(initial=0))

    def values(
        weights: NDArray[np.float64], positives: NDArray[np.float64], block: slice
    ) -> NDArray[np.float64]:
        read = np.empty((len(positives), len(plan.readings.area), LANES))
        kernels.replicate_classes(
            _steps_of(steps, block, plan),
            _weights(weights),
            positives,
            recalled.of_groups(block).totals(weights),
            rule,
            grid,
            plan.readings,
            kernels.empty_lanes(most),
            read,
        )
        return read

    return values


def _weights(weights: NDArray[np.float64]) -> kernels.Weights:
    """The weights as the kernel reads them."""
    most = int(weights.max(initial=1.0))
    if most > MOST_WEIGHT:  # less probable than 1e-500
        what = f"a unit is {most} times in one replicate, more than {MOST_WEIGHT}"
        raise DataError("replicates", what, "use another seed")
    packed = weights.astype(np.uint8).view(np.uint64)
    return kernels.Weights(weights, packed, MOST_WEIGHT // most)


def _steps(plan: Plan) -> Steps:
    """The rows that AP depends on."""
    n_classes, n_areas = plan.positives.shape
    at = np.empty(len(plan.protocol.thresholds()), np.int64)
    n_cells = n_classes * n_areas
    starts = [np.zeros(n + 1, np.int64) for n in (n_cells, n_cells, n_cells * len(at))]
    row_off, event_off, step_off = starts
    nothing, no_ends = np.empty(0, np.int32), np.empty(0, np.int64)
    steps = Steps(row_off, event_off, step_off, nothing, nothing, no_ends, nothing)
    list_steps(plan.ranked, plan.image, 0, at, steps)
    for off in starts:
        np.cumsum(off, out=off)
    row, event, step = (np.empty(int(off[-1]), np.int32) for off in starts)
    upto = np.empty(len(event), np.int64)
    steps = Steps(row_off, event_off, step_off, row, event, upto, step)
    list_steps(plan.ranked, plan.image, 1, at, steps)
    return steps


def _steps_of(steps: Steps, block: slice, plan: Plan) -> Steps:
    """The steps of a block of classes: the starts of their cells."""
    n_areas, n_thresholds = plan.positives.shape[1], len(plan.protocol.thresholds())
    cells = slice(block.start * n_areas, block.stop * n_areas + 1)
    of_thresholds = slice(cells.start * n_thresholds, (cells.stop - 1) * n_thresholds + 1)
    return steps._replace(
        row_off=steps.row_off[cells],
        event_off=steps.event_off[cells],
        step_off=steps.step_off[of_thresholds],
    )


def _recalled(plan: Plan, n_images: int) -> Tally:
    """True positives of the classes on each image, summed over the thresholds of each reading of
    recall; 0 for others.
    """
    ranked, readings = plan.ranked, plan.readings
    some = np.flatnonzero(ranked.tp.any(axis=1))
    tp, rank = ranked.tp[some], ranked.rank[some]
    columns = []
    for a, words, limit in zip(*readings, strict=True):
        hits = np.bitwise_count(tp[:, a] & words.astype(tp.dtype))
        columns.append(np.where(rank < limit, hits, 0))
    image = plan.image[some]
    return tally(labels(ranked.off)[some], image, columns, len(plan.positives), n_images)


def _one_by_one(plan: Plan) -> Batch:
    """The batch for an AP interpolation without a kernel: each replicate by `curves.scores`."""
    matches, protocol, readings = plan.matches, plan.protocol, plan.readings
    limits = protocol.max_dets()
    bits = np.uint64(1) << np.arange(len(protocol.thresholds()), dtype=np.uint64)

    def batch(
        weights: NDArray[np.float64], block: slice
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
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
        return values[block], images[block]

    return batch
