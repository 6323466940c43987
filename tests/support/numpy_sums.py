"""Sums of many numbers: NumPy 2.3 changed their order, and with it the last bit of a mean."""

from typing import Any

import numpy as np
import pytest

HALVES = tuple(map(int, np.__version__.split(".")[:2])) >= (2, 3)
"""Whether `np.sum` halves all numbers. Numbers of a reference come from such a version."""


def equal(value: Any, wanted: Any) -> bool:
    """Equal bits; before NumPy 2.3 up to the order of a sum."""
    return bool(value == wanted if HALVES else value == pytest.approx(wanted, rel=1e-14, abs=0))
