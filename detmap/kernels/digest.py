"""A fingerprint of table rows, one number an image."""

from __future__ import annotations

from typing import Any

import numpy as np

from detmap.kernels import kernel


@kernel
def fold_rows(image: Any, words: Any, digest: Any) -> None:
    """Fold every row into the digest of its image, in row order.

    image (n,) int32; words (n, W) uint64, the row's columns as bit patterns; in and out: digest (I,) uint64.
    Each word passes the finaliser of splitmix64, so that a change of any bit, or of the order of an image's rows, changes
    the digest. It guards against mistakes, not against forgery.
    """
    for r in range(image.size):
        state = digest[image[r]]
        for w in range(words.shape[1]):
            state = (state ^ words[r, w]) + np.uint64(0x9E3779B97F4A7C15)
            state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            state ^= state >> np.uint64(31)
        digest[image[r]] = state
