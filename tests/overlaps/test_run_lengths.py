"""The run lengths of a mask, decoded again; the first true position."""

import numpy as np
import pytest

from detmap.core.base.flat_rows import first_true
from detmap.core.overlaps.ragged_runs import run_lengths


@pytest.mark.parametrize("seed", range(12))
def test_run_lengths_give_the_mask_back(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = tuple(rng.integers(0, 6, size=2).tolist())
    mask = rng.random(shape) < rng.choice([0.0, 0.4, 1.0])
    found = run_lengths(mask)
    values = np.arange(len(found["counts"])) % 2 == 1
    assert found["size"] == list(shape)
    assert np.array_equal(np.repeat(values, found["counts"]), mask.ravel(order="F"))
    assert all(count > 0 for count in found["counts"][1:])


def test_the_first_true_position() -> None:
    assert first_true(np.array([False, True, True])) == 1
    assert first_true(np.zeros(3, dtype=bool)) is None
    assert first_true(np.zeros(0, dtype=bool)) is None
