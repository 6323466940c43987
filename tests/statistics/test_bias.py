"""The bias by halves, by hand."""

from __future__ import annotations

import numpy as np
import pytest

import detmap
from detmap.statistics import bias as made
from detmap.statistics import replicates as drawing
from detmap.statistics.sampling_units import units
from tests.statistics.drawn_matches import draw, tables
from tests.statistics.test_influence import planned


def test_halves_come_with_their_complements() -> None:
    halves = made._halves(units(np.arange(400)), 0, 0)
    first, second = np.split(halves, 2, axis=1)
    assert np.array_equal(first + second, np.ones_like(first))
    assert 0.4 < first.mean() < 0.6


@pytest.mark.parametrize("n_images", [60, 6])  # of 6, some halves have no object of a class
def test_the_bias_of_an_ap_is_the_step_to_halves_by_its_rate(n_images: int) -> None:
    matches = draw(0, n_images, "all_points")
    plan, drawn = planned(matches), units(matches.image_ids)
    read = drawing.reader(plan)
    halves = read(made._halves(drawn, 3, 0))[0]
    whole = read(np.ones((n_images, drawing.LANES)))[0][:, :, 0]
    s = plan.of_class[0]
    expected = (np.nanmean(halves, axis=2) - whole)[:, s] / (2 ** (2 / 3) - 1)
    assert made.bias(plan, drawn, drawing.LANES, 3).classes[0] == pytest.approx(expected)
    absent = np.isnan(halves[:, s]).any(axis=1) & ~np.isnan(whole[:, s])
    assert absent.any() == (n_images == 6)


def test_the_bias_of_recall_falls_with_its_own_rate_at_the_first_limit() -> None:
    rules = {"limits.max_dets": [100], "metrics": ["AR"]}
    matches = detmap.evaluate(*tables(3), "coco-bbox", settings=rules).matches
    plan, drawn = planned(matches), units(matches.image_ids)
    read = drawing.reader(plan)
    halves = np.nanmean(read(made._halves(drawn, 3, 0))[0], axis=2)
    whole = read(np.ones((12, drawing.LANES)))[0][:, :, 0]
    (s,) = plan.of_metric
    assert made.RATE_OF_RECALL == 1
    expected = (halves - whole)[:, s].mean()
    assert made.bias(plan, drawn, drawing.LANES, 3).metrics[0] == pytest.approx(expected)
