"""Whether rows of matches are what matching makes."""

from __future__ import annotations

from typing import Any

from detmap.kernels import kernel

NO_GAPS, UPWARDS, ANY_ORDER = range(3)
"""How the ranks of an image and class go on: with the limit of a class every row counts; with that
of an image, or where rows are left out, some are missing; by input they stand as they came."""


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
    seen: Any,
) -> int:
    """The first row of matches that matching cannot have made; -1 if there is none.

    off (K + 1,) int64, checked; image, rank (D,) int32; score (D,) float64; tp, ignored (D, A)
    words; beyond (1,) word, the bits that stand for no threshold; ranks is `NO_GAPS`, `UPWARDS` or
    `ANY_ORDER`; limit, that of the protocol; seen (I,) int32, zeros before and after. Source:
    `detmap.matches.Matches`, its layout: scores descend within a class, a rank counts the rows before
    it that the limit counts, no verdict is both true and ignored.
    """
    for k in range(off.size - 1):
        for i in range(off[k], off[k + 1]):
            if image[i] < 0 or image[i] >= seen.size or rank[i] < 0 or rank[i] >= limit:
                return i
            least = seen[image[i]]
            if ranks != ANY_ORDER and (rank[i] < least or (ranks == NO_GAPS and rank[i] > least)):
                return i
            seen[image[i]] = rank[i] + 1
            if score[i] != score[i] or (i > off[k] and score[i] > score[i - 1]):
                return i
            for a in range(tp.shape[1]):
                if tp[i, a] & ignored[i, a] or (tp[i, a] | ignored[i, a]) & beyond[0]:
                    return i
        for i in range(off[k], off[k + 1]):
            seen[image[i]] = 0
    return -1
