"""Whether rows of matches are what matching makes."""

from __future__ import annotations

from typing import Any

from detmap.kernels import kernel


@kernel
def find_bad_verdict(
    off: Any, image: Any, rank: Any, score: Any, tp: Any, ignored: Any, beyond: Any, seen: Any
) -> int:
    """The first row of matches that matching cannot have made; -1 if there is none.

    off (K + 1,) int64, checked; image, rank (D,) int32; score (D,) float64; tp, ignored (D, A)
    words; beyond (1,) word, the bits that stand for no threshold; seen (I,) int32, zeros before
    and after. Source: the layout of `detmap.matches.Matches`: scores descend within a class, a
    rank counts the rows of its image and class before it, no verdict is both true and ignored.
    """
    for k in range(off.size - 1):
        for i in range(off[k], off[k + 1]):
            if image[i] < 0 or image[i] >= seen.size or rank[i] != seen[image[i]]:
                return i
            seen[image[i]] += 1
            if score[i] != score[i] or (i > off[k] and score[i] > score[i - 1]):
                return i
            for a in range(tp.shape[1]):
                if tp[i, a] & ignored[i, a] or (tp[i, a] | ignored[i, a]) & beyond[0]:
                    return i
        for i in range(off[k], off[k + 1]):
            seen[image[i]] = 0
    return -1
