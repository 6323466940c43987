"""Rows of arrays as flat lists of numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray


def flatten_rows(array: NDArray[Any]) -> NDArray[Any]:
    """Returns (n, W) from (n, ...); n may be 0, of which ``reshape(n, -1)`` is an error."""
    return np.reshape(array, (len(array), math.prod(array.shape[1:])))
