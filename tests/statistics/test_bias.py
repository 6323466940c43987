"""The bias by halves, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from detmap.statistics import bias as made
from detmap.statistics import replicates as drawing
from detmap.statistics.sampling_units import units
from tests.statistics.drawn_matches import draw
from tests.statistics.test_influence import planned


def test_halves_come_with_their_complements() -> None:
    halves = made._halves(units(np.arange(400)), 0, 0)
    first, second = np.split(halves, 2, axis=1)
    assert np.array_equal(first + second, np.ones_like(first))
    assert 0.4 < first.mean() < 0.6


def test_the_bias_of_an_ap_is_the_step_to_halves_by_its_rate() -> None:
    matches = draw(0, 60, "all_points")
    plan, drawn = planned(matches), units(matches.image_ids)
    read = drawing.reader(plan)
    halves = read(made._halves(drawn, 3, 0))[0]
    whole = read(np.ones((60, drawing.LANES)))[0][:, :, 0]
    s = plan.of_class[0]
    expected = (np.nanmean(halves, axis=2) - whole)[:, s] / (2 ** (2 / 3) - 1)
    assert made.bias(plan, drawn, drawing.LANES, 3).classes[0] == pytest.approx(expected)
