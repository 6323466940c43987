"""The influence functions of AP and recall: the effect of each image.

AP is (1/N) times the sum, over the true positives, of the highest precision P at their rank or
later. An image contributes by its true positives, by all its rows ranked before the positions of
these highest precisions, and by its share of the N counted objects.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.kernels import kernel
from detmap.kernels.curves import find_true_positives
from detmap.kernels.integrate import STEP


class Objects(NamedTuple):
    """Ground-truth objects by class: off (K + 1,) int64; image (G,) int32; counts (G, A) float64,
    1 where an object counts in an area.
    """

    off: NDArray[np.int64]
    image: NDArray[np.int32]
    counts: NDArray[np.float64]


class Scratch(NamedTuple):
    """Scratch space of `influence_of_classes`: influence (S, I) and seen (I,) uint8, all 0; place
    (I,) int64; below (S,).
    """

    influence: NDArray[np.float64]
    seen: NDArray[np.uint8]
    place: NDArray[np.int64]
    below: NDArray[np.float64]


class Pairs(NamedTuple):
    """The P pairs of n classes and the images with a row or an object of them: off (n + 1,) int64;
    image (P,) int32, ascending in each class; influence (S, P); counts (A, P), objects that count;
    present (P,), 1 where the image has an object. The arrays may be longer.
    """

    off: NDArray[np.int64]
    image: NDArray[np.int32]
    influence: NDArray[np.float64]
    counts: NDArray[np.float64]
    present: NDArray[np.float64]


def empty_scratch(n_readings: int, n_images: int) -> Scratch:
    """Scratch space for any number of classes."""
    return Scratch(
        np.zeros((n_readings, n_images)),
        np.zeros(n_images, np.uint8),
        np.empty(n_images, np.int64),
        np.empty(n_readings),
    )


def empty_pairs(n_classes: int, n_readings: int, n_areas: int, most: int) -> Pairs:
    """Room for `most` pairs."""
    return Pairs(
        np.zeros(n_classes + 1, np.int64),
        np.empty(most, np.int32),
        np.empty((n_readings, most)),
        np.zeros((n_areas, most)),
        np.zeros(most),
    )


class Slopes(NamedTuple):
    """The contribution of a row to the influence of its image, (A, T, P + 1) each: gain, of true
    positive i; fall, of a false positive between true positives i - 1 and i. After the last it is
    0.

    at (A, T), the next true positive; mean (A, T), the mean of the highest precisions.
    """

    gain: NDArray[np.float64]
    fall: NDArray[np.float64]
    at: NDArray[np.int64]
    mean: NDArray[np.float64]


def empty_slopes(n_areas: int, n_thresholds: int, most: int) -> Slopes:
    """Arrays for a class with up to `most` true positives."""
    shape = n_areas, n_thresholds, most + 1
    return Slopes(
        np.empty(shape), np.empty(shape), np.empty(shape[:2], np.int64), np.empty(shape[:2])
    )


@kernel
def find_slopes(
    false_before: Any, n_tp: int, n_objects: float, rule: Any, gain: Any, fall: Any
) -> float:
    """Gains and falls of one curve over the N counted objects. Returns its AP.

    false_before (P,); out: gain, fall (P + 1,). The highest precision at a rank or later is read at
    the earliest rank that has it. The rule `step` reads each true positive at its own rank.

    Source: the derivative of AP by the weight of an image; reference implementation in
    tests/reference/weighted.py.
    """
    gain[n_tp], fall[n_tp] = 0.0, 0.0
    total, a, b = 0.0, 0.0, 0.0
    last = n_tp - 1
    while last >= 0:
        true = float(last + 1)
        size = true + float(false_before[last])
        precision = true / size
        first = last  # of the true positives that are read at `last`
        while rule.code != STEP and first > 0:
            before = float(first)
            if before / (before + float(false_before[first - 1])) >= precision:
                break
            first -= 1
        members = float(last - first + 1)
        a += members * (1.0 - precision) / size
        b += members * precision / size
        for i in range(first, last + 1):
            gain[i] = (precision + a) / n_objects
            fall[i] = b / n_objects
        total += members * precision
        last = first - 1
    return total / n_objects


@kernel
def influence_of_class(
    k: int,
    ranked: Any,
    image: Any,
    limit: int,
    n_objects: Any,
    rule: Any,
    readings: Any,
    curves: Any,
    slopes: Any,
    below: Any,
    values: Any,
    influence: Any,
) -> None:
    """Influence of each image on the readings of a class, times the number of their thresholds, but
    for its share of the objects.

    n_objects (A,) float64; readings: `replicates.Readings`; curves: scratch of
    `find_true_positives`; slopes: `Slopes`; below (S,) is scratch space; out: values (S,), the
    readings; influence (S, I), zero before. An area without objects is left alone.

    Source: Hampel 1974, the influence curve; as `find_slopes`.
    """
    find_true_positives(k, ranked, limit, curves)
    n_areas, n_thresholds = curves.n_tp.shape
    zero = np.uint64(0)
    full = ~zero >> np.uint64(64 - n_thresholds)
    for a in range(n_areas):
        for t in range(n_thresholds):
            n = curves.n_tp[a, t]
            slopes.at[a, t] = n
            slopes.mean[a, t] = 0.0
            if n_objects[a] > 0.0:
                slopes.mean[a, t] = find_slopes(
                    curves.false_before[a, t],
                    n,
                    n_objects[a],
                    rule,
                    slopes.gain[a, t],
                    slopes.fall[a, t],
                )
    below[:] = 0.0  # the sum of the falls of a reading's thresholds, here
    for back in range(ranked.off[k + 1] - ranked.off[k]):
        r = ranked.off[k + 1] - 1 - back
        i = image[r]
        for a in range(n_areas):
            if n_objects[a] <= 0.0:
                continue
            hits, ignored = np.uint64(ranked.tp[r, a]), np.uint64(ranked.ignored[r, a])
            if hits == zero and ignored == full:
                continue
            if (hits | ignored) == zero:
                for s in range(readings.area.size):
                    if readings.area[s] == a and readings.limit[s] < 0:
                        influence[s, i] -= below[s]
                continue
            for t in range(n_thresholds):
                bit = np.uint64(1) << np.uint64(t)
                if hits & bit:
                    at = slopes.at[a, t] - 1
                    slopes.at[a, t] = at
                    deeper = slopes.fall[a, t, at] - slopes.fall[a, t, at + 1]
                    for s in range(readings.area.size):
                        if (
                            readings.area[s] == a
                            and readings.limit[s] < 0
                            and readings.words[s] & bit
                        ):
                            influence[s, i] += slopes.gain[a, t, at]
                            below[s] += deeper
                elif not ignored & bit:
                    for s in range(readings.area.size):
                        if (
                            readings.area[s] == a
                            and readings.limit[s] < 0
                            and readings.words[s] & bit
                        ):
                            influence[s, i] -= slopes.fall[a, t, slopes.at[a, t]]
    for s in range(readings.area.size):
        a = readings.area[s]
        values[s] = 0.0
        if n_objects[a] <= 0.0:
            continue
        for t in range(n_thresholds):
            if (readings.words[s] >> np.uint64(t)) & np.uint64(1) and readings.limit[s] < 0:
                values[s] += slopes.mean[a, t]
        if readings.limit[s] >= 0:
            for r in range(ranked.off[k], ranked.off[k + 1]):
                hits = np.uint64(ranked.tp[r, a]) & readings.words[s]
                if ranked.rank[r] < readings.limit[s]:
                    while hits != zero:
                        hits &= hits - np.uint64(1)
                        influence[s, image[r]] += 1.0 / n_objects[a]
                        values[s] += 1.0 / n_objects[a]
        values[s] /= count_bits(readings.words[s])


@kernel
def count_bits(word: Any) -> float:
    """The number of ones. Source: Wegner 1960."""
    n, rest = 0.0, np.uint64(word)
    while rest != np.uint64(0):
        rest &= rest - np.uint64(1)
        n += 1.0
    return n


@kernel
def collect_images(k: int, ranked: Any, image: Any, objects: Any, seen: Any) -> None:
    """Mark the images with a row or an object of a class.

    in and out: seen (I,) uint8. Source: none; no other image has an influence.
    """
    for r in range(ranked.off[k], ranked.off[k + 1]):
        seen[image[r]] = 1
    for g in range(objects.off[k], objects.off[k + 1]):
        seen[objects.image[g]] = 1


@kernel
def influence_of_classes(
    first: int,
    ranked: Any,
    image: Any,
    objects: Any,
    limit: int,
    n_objects: Any,
    rule: Any,
    readings: Any,
    curves: Any,
    slopes: Any,
    scratch: Any,
    values: Any,
    pairs: Any,
) -> None:
    """Influence of each image on the readings of n classes from `first` on. It includes the image's
    share of the objects: what the reading would have at the average. Classes without objects have
    no pairs.

    n_objects (K, A) float64; curves, slopes: as in `influence_of_class`; scratch: `Scratch`, as it
    was on return; out: values (n, S), 0 for a class without objects; pairs: `Pairs`, counts and
    present 0 before. Source: as `influence_of_class`, and the derivative of 1/N.
    """
    at = 0
    for j in range(values.shape[0]):
        k = first + j
        if objects.off[k + 1] == objects.off[k]:
            values[j, :] = 0.0
            pairs.off[j + 1] = at
            continue
        influence_of_class(
            k,
            ranked,
            image,
            limit,
            n_objects[k],
            rule,
            readings,
            curves,
            slopes,
            scratch.below,
            values[j],
            scratch.influence,
        )
        collect_images(k, ranked, image, objects, scratch.seen)
        for i in range(scratch.seen.size):
            if scratch.seen[i] == 0:
                continue
            scratch.seen[i] = 0
            scratch.place[i] = at
            pairs.image[at] = i
            for s in range(readings.area.size):
                pairs.influence[s, at] = scratch.influence[s, i] / count_bits(readings.words[s])
                scratch.influence[s, i] = 0.0
            at += 1
        for g in range(objects.off[k], objects.off[k + 1]):
            p = scratch.place[objects.image[g]]
            pairs.present[p] = 1.0
            for a in range(objects.counts.shape[1]):
                pairs.counts[a, p] += objects.counts[g, a]
        for s in range(readings.area.size):
            a = readings.area[s]
            if n_objects[k, a] > 0.0:
                for g in range(objects.off[k], objects.off[k + 1]):
                    p = scratch.place[objects.image[g]]
                    pairs.influence[s, p] -= values[j, s] * objects.counts[g, a] / n_objects[k, a]
        pairs.off[j + 1] = at


@kernel
def sum_of_squares(values: Any) -> float:
    """A sequential sum, so that the bits are the same on every machine. Source: none; a sum."""
    total = 0.0
    for i in range(values.size):
        total += values[i] * values[i]
    return total
