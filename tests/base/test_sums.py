"""Sums with the same bits on every version of Python."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from detmap.core.base.sums import add_floats, add_integers


def rounded(values: list[float]) -> float:
    """Each partial sum is exact, and is then rounded to the nearest double."""
    total = 0.0
    for value in values:
        total = float(Fraction(total) + Fraction(value))
    return total


@given(st.lists(st.floats(-1e9, 1e9)))
def test_floats_are_rounded_after_each_addition(values: list[float]) -> None:
    assert add_floats(values).hex() == rounded(values).hex()
    assert add_floats(values) == (np.cumsum(values)[-1] if values else 0)


def test_a_compensated_sum_differs() -> None:
    tenths = [0.1] * 10
    assert add_floats(tenths) == 0.9999999999999999
    assert math.fsum(tenths) == 1.0


def test_integers_are_exact_and_floats_among_them_are_refused() -> None:
    assert add_integers([2**70, True, np.int64(1)]) == 2**70 + 2
    assert type(add_integers([np.uint8(255), np.uint8(255)])) is int
    with pytest.raises(TypeError):
        add_integers([1, 1.0])
    with pytest.raises(TypeError):
        add_integers([np.float64(1)])
