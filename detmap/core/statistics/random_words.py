"""Random 64-bit words: numbered streams of a seed, equal on every machine."""

import numpy as np
from numpy.typing import NDArray

from detmap.errors import DataError
from detmap.kernels.resampling import random_words as kernels

MOST_SEED = 2**64 - 1
TIES, SUBSETS = 3, 0x6A61636B  # tags of the random streams


def random_words(seed: int, tag: int, first: int, shape: tuple[int, int]) -> NDArray[np.uint64]:
    """(n, m) random words: m of each of the n streams from `first` on."""
    words = np.empty(shape, np.uint64)
    given = [np.array([value], np.uint64) for value in (seed, tag, first)]
    kernels.draw_words(given[0], given[1], given[2], words)
    return words


def check_seed(seed: int) -> None:
    """Raise `DataError` unless the seed is a whole number in range."""
    whole = isinstance(seed, int | np.integer) and not isinstance(seed, bool)
    if not whole or not 0 <= seed <= MOST_SEED:
        raise DataError("seed", f"{seed!r}", f"give a whole number from 0 to {MOST_SEED}")
