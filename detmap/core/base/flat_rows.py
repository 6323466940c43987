"""Rows of arrays as flat lists, and the first of them that is bad."""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray


def flatten_rows(array: NDArray[Any]) -> NDArray[Any]:
    """Returns (n, W) from (n, ...); n may be 0, of which ``reshape(n, -1)`` is an error."""
    return np.reshape(array, (len(array), math.prod(array.shape[1:])))


def first_true(true: Any) -> int | None:
    """Returns the first true position of an array of booleans, None if there is none."""
    return int(np.argmax(true)) if true.any() else None


def first_repeated(values: Iterable[Any]) -> int | None:
    """Returns the first position of a value that came before, None if there is none."""
    seen: set[Any] = set()
    for place, value in enumerate(values):
        if value in seen:
            return place
        seen.add(value)
    return None
