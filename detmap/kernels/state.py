"""Validates the rows of matches: only rows that matching can produce are accepted."""

from __future__ import annotations

from typing import Any

import numpy as np

from detmap.kernels import kernel

NO_GAPS, UPWARDS, ANY_ORDER = range(3)
"""The ranks of an image and class: with a limit per class, all consecutive; with a limit per image,
or with excluded rows, ascending with gaps; by input, in any order.
"""


@kernel
def find_bad_verdict(
    off: Any,
    image: Any,
    rank: Any,
    score: Any,
    tp: Any,
    ignored: Any,
    beyond: Any,
    ranks: int,
    limit: int,
    n_objects: Any,
    seen: Any,
    hits: Any,
) -> int:
    """The first row of matches that matching cannot have produced; -1 if there is none.

    off (K + 1,) int64, checked; image, rank (D,) int32; score (D,) float64; tp, ignored (D, A)
    words; beyond (1,) word, the bits without a threshold; ranks is `NO_GAPS`, `UPWARDS` or
    `ANY_ORDER`; limit, that of the protocol; n_objects (K, A) int64; seen (I,) int32, zeros before
    and after; hits (A, T) int64, scratch. Source: `detmap.core.matching.matches.Matches`, its
    layout: scores descend within a class, a rank is the number of preceding rows for the limit, no
    result is both true and ignored, no object is matched twice.
    """
    n_subsets, n_thresholds = hits.shape
    for k in range(off.size - 1):
        begin, end = off[k], off[k + 1]
        if is_class_fine(
            image[begin:end],
            rank[begin:end],
            score[begin:end],
            tp[begin:end],
            ignored[begin:end],
            beyond[0],
            ranks,
            limit,
            n_objects[k],
            seen,
            hits[0],
        ):
            continue
        hits[:] = 0
        for i in range(off[k], off[k + 1]):
            if image[i] < 0 or image[i] >= seen.size or rank[i] < 0 or rank[i] >= limit:
                return i
            least = seen[image[i]]
            if ranks != ANY_ORDER and (rank[i] < least or (ranks == NO_GAPS and rank[i] > least)):
                return i
            seen[image[i]] = rank[i] + 1
            if score[i] != score[i] or (i > off[k] and score[i] > score[i - 1]):
                return i
            for a in range(n_subsets):
                if tp[i, a] & ignored[i, a] or (tp[i, a] | ignored[i, a]) & beyond[0]:
                    return i
        for i in range(off[k], off[k + 1]):
            seen[image[i]] = 0
        for a in range(n_subsets):
            for i in range(off[k], off[k + 1]):
                for t in range(n_thresholds):
                    hits[a, t] += (np.uint64(tp[i, a]) >> np.uint64(t)) & np.uint64(1)
                    if hits[a, t] > n_objects[k, a]:
                        return i
    return -1


@kernel
def is_class_fine(
    image: Any,
    rank: Any,
    score: Any,
    tp: Any,
    ignored: Any,
    beyond: Any,
    ranks: int,
    limit: int,
    n_objects: Any,
    seen: Any,
    hits: Any,
) -> bool:
    """Whether all rows of a class are certainly valid; False if not sure.

    As `find_bad_verdict`, for the rows of the class; n_objects (A,); hits (T,), scratch. Source:
    none; the loops have almost no branches, so that the compiler can vectorize.
    """
    strange = 0  # what is wrong in some row
    for i in range(image.size):
        strange |= image[i] | rank[i] | (limit - 1 - rank[i]) | (seen.size - 1 - image[i])
    last = np.inf
    ordered = True
    for i in range(image.size):
        ordered &= score[i] <= last
        last = score[i]
    if strange < 0 or not ordered:
        return False
    strange_bits = np.uint64(0)
    for a in range(n_objects.size):
        n_hits = 0
        for i in range(image.size):
            hit, free = np.uint64(tp[i, a]), np.uint64(ignored[i, a])
            strange_bits |= (hit & free) | ((hit | free) & np.uint64(beyond))
            n_hits += hit != 0
        if n_hits <= n_objects[a]:
            continue  # whichever bits are set, there are at most as many as objects
        hits[:] = 0
        for i in range(image.size):
            hit = np.uint64(tp[i, a])
            if hit != 0:
                for t in range(hits.size):
                    hits[t] += (hit >> np.uint64(t)) & np.uint64(1)
        for t in range(hits.size):
            if hits[t] > n_objects[a]:
                return False
    if strange_bits != np.uint64(0):
        return False
    if ranks != ANY_ORDER:
        strange = 0
        for i in range(image.size):
            ahead = rank[i] - seen[image[i]]
            strange |= ahead
            if ranks == NO_GAPS:
                strange |= -ahead
            seen[image[i]] = rank[i] + 1
        for i in range(image.size):
            seen[image[i]] = 0
    return bool(strange >= 0)
