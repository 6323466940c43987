"""Sums whose bits do not depend on the Python version.

From Python 3.12 on, the builtin ``sum`` adds floats with compensation, so that its last bits differ
from those of 3.11. A test lets detmap use it for visible integers only.
"""

from collections.abc import Iterable
from operator import index


def add_floats(values: Iterable[float]) -> float:
    """Adds from left to right, one rounding per addition, as ``sum`` of Python 3.11 does.

    `math.fsum` gives the exact sum, rounded once, on every version.
    """
    total = 0.0
    for value in values:
        total += value
    return total


def add_integers(values: Iterable[int]) -> int:
    """Adds integers exactly.

    Raises
    ------
    TypeError : a value is not an integer; see `add_floats`
    """
    return sum(map(index, values))
