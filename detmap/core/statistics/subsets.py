"""The subsets of the images on which every number is evaluated again: all images without one part,
for each of 25 parts, then the two halves of each of 16 random splits.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.core.statistics.random_words import SUBSETS, random_words
from detmap.core.statistics.sampling_units import Units

PARTS, SPLITS = 25, 16
EVALUATIONS = PARTS + 2 * SPLITS

Progress = Callable[[int, int], None]
"""A function of the numbers of finished and of all evaluations."""


def silent(done: int, of: int) -> None:
    """Report no progress."""


@dataclass(frozen=True, slots=True, eq=False)
class Subsets:
    """The E subsets of I images; none of fewer than two units.

    Parameters
    ----------
    units : the sampling units; no unit is divided
    n_parts : number of subsets without a part; the halves follow them, in pairs
    keep : (E, I) bool
    """

    units: Units
    n_parts: int
    keep: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.keep)

    def ids(self, image_ids: NDArray[Any]) -> list[NDArray[Any]]:
        """The ids of the images of each subset."""
        return [image_ids[keep] for keep in self.keep]


def subsets(units: Units, seed: int) -> Subsets:
    """Deal the units into parts and halves at random; sizes differ by at most one unit.

    Source: Kott 2001, The delete-a-group jackknife, J. Official Statistics 17(4).
    """
    n = units.n
    if n < 2:
        return Subsets(units, 0, np.empty((0, len(units.of_image)), dtype=bool))

    def dealt(n_parts: int, stream: int) -> NDArray[np.int64]:
        part = np.empty(n, dtype=np.int64)
        words = random_words(seed, SUBSETS, stream, (1, n))[0]
        part[np.argsort(words, kind="stable")] = np.arange(n) % n_parts
        return part[units.of_image]

    n_parts = min(PARTS, n)
    part = dealt(n_parts, 0)
    keep = [part != g for g in range(n_parts)]
    for split in range(1, SPLITS + 1):
        half = dealt(2, split)
        keep += [half == 0, half == 1]
    return Subsets(units, n_parts, np.array(keep))
