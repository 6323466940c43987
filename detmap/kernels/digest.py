"""Digests of table rows, one number per image."""

from __future__ import annotations

from typing import Any

import numpy as np

from detmap.kernels import kernel


@kernel
def fold_rows(image: Any, words: Any, digest: Any) -> None:
    """Add every row to the digest of its image, in row order.

    image (n,) int32; words (n, W) uint64, the row's columns as bit patterns; in and out: digest
    (I,) uint64. Each word, with its column, passes the finalizer of splitmix64, and so does the
    digest with the sum of a row's words. Any change of a bit, of columns, or of the order of an
    image's rows changes the digest. It detects mistakes, not forgery. The words of a row are
    independent of each other, which uses the processor well. Source: none; our own digest.
    """
    for r in range(image.size):
        row, column = np.uint64(0), np.uint64(0)
        for w in range(words.shape[1]):
            column += np.uint64(0x9E3779B97F4A7C15)
            row += finalise(words[r, w] ^ column)
        digest[image[r]] = finalise((digest[image[r]] ^ row) + np.uint64(0x9E3779B97F4A7C15))


@kernel
def finalise(word: Any) -> Any:
    """Mix the bits of a word. Source: splitmix64, Steele, Lea and Flood 2014."""
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))
