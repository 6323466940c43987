"""Random words: splitmix64 by seed, stream and place."""

from __future__ import annotations

from typing import Any

import numpy as np

from detmap.kernels import kernel
from detmap.kernels.digest import finalise

GOLDEN = 0x9E3779B97F4A7C15


@kernel
def word(seed: Any, tag: Any, b: Any, j: Any) -> Any:
    """Random word j of stream b; a tag per kind of stream.

    Source: splitmix64, Steele, Lea and Flood 2014, its finaliser over seed, stream and place.
    """
    golden, one = np.uint64(GOLDEN), np.uint64(1)
    state = finalise(finalise(seed + golden * tag) + golden * (b + one))
    return finalise(state + golden * (j + one))


@kernel
def draw_words(seed: Any, tag: Any, first: Any, words: Any) -> None:
    """Words 0, 1 ... of the streams from `first` on; seed, tag, first (1,) uint64; out: words (n,
    m) uint64. Source: none; a loop over `word`.
    """
    for b in range(words.shape[0]):
        for j in range(words.shape[1]):
            words[b, j] = word(seed[0], tag[0], first[0] + np.uint64(b), np.uint64(j))
