"""The bias by halves, by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import detmap
from detmap.core.statistics import bias as made
from detmap.core.statistics import replicates as drawing
from detmap.core.statistics.influence import influence
from detmap.core.statistics.sampling_units import units
from tests.statistics.drawn_matches import draw, tables
from tests.statistics.test_influence import planned


def test_halves_come_with_their_complements() -> None:
    halves = made._halves(units(np.arange(400)), 0, 0)
    first, second = np.split(halves, 2, axis=1)
    assert np.array_equal(first + second, np.ones_like(first))
    assert 0.4 < first.mean() < 0.6


def test_halves_are_those_of_their_streams() -> None:
    """Batch b has the streams from 8 b on; groups are in a half as a whole."""
    groups = units(np.arange(9), {i: i // 2 for i in range(9)})
    for batch in (0, 1, 3):
        words = drawing.random_words(4, drawing.HALVES, 8 * batch, (8, 5)).tolist()
        found = made._halves(groups, 4, batch)
        for lane in range(16):
            for image in range(9):
                inside = words[lane % 8][image // 2] >= 2**63
                assert found[image, lane] == (inside if lane < 8 else not inside)


@np.errstate(all="raise")
def test_a_class_without_objects_has_no_bias() -> None:
    matches = draw(0, 20, "all_points")
    tp, counted = matches.tp.copy(), matches.counted.copy()
    tp[matches.off[2] :], counted[matches.obj_off[2] :] = 0, False
    plan, drawn = planned(replace(matches, tp=tp, counted=counted)), units(matches.image_ids)
    found = made.bias(plan, drawn, influence(plan, drawn).n_units, 20, 3)
    assert np.isnan(found.classes[:, 2]).all()
    assert not np.isnan(found.classes[:, :2]).any()
    share = found.classes[0, :2] / 2  # of AP in the mean of both
    assert found.metrics[0] == pytest.approx(share.sum())
    assert found.errors[0] == pytest.approx(np.hypot(*share))


@pytest.mark.parametrize("n_images", [60, 6])  # of 6, some halves have no object of a class
def test_the_bias_of_an_ap_is_the_step_to_halves_by_its_rate(n_images: int) -> None:
    matches = draw(0, n_images, "all_points")
    plan, drawn = planned(matches), units(matches.image_ids)
    read = drawing.reader(plan)
    halves = read(made._halves(drawn, 3, 0))[0]
    whole = read(np.ones((n_images, drawing.LANES)))[0][:, :, 0]
    s, n_units = plan.of_class[0], influence(plan, drawn).n_units
    step = (np.nanmean(halves, axis=2) - whole)[:, s]
    expected = [
        each / ((2 * (1 - 2.0**-m)) ** (2 / 3) - 1)
        for each, m in zip(step.tolist(), n_units[s].tolist(), strict=True)
    ]
    found = made.bias(plan, drawn, n_units, drawing.LANES, 3)
    assert found.classes[0] == pytest.approx(expected)
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
    n_units = influence(plan, drawn).n_units
    expected = ((halves - whole)[:, s] / (1 - 2.0 ** (1 - n_units[s]))).mean()
    found = made.bias(plan, drawn, n_units, drawing.LANES, 3)
    assert found.metrics[0] == pytest.approx(expected)


@pytest.mark.parametrize("m", range(2, 9))
def test_halves_that_contain_a_class_have_more_than_half_of_its_images(m: int) -> None:
    """By all halves: the step to them gives the bias c / m^rate back."""
    sizes = [bin(half).count("1") for half in range(1, 2**m)]
    mean = sum(sizes) / len(sizes)
    step = 0.3 * mean ** -(2 / 3) - 0.3 * m ** -(2 / 3)
    found = made.extrapolate(np.array([[step]]), np.array([[m]]), np.array([2 / 3]))
    assert found[0, 0] == pytest.approx(0.3 * m ** -(2 / 3))


def test_a_class_on_one_image_has_the_bias_of_the_others() -> None:
    rate, nan = np.array([2 / 3, 1.0]), np.nan
    m = np.array([[1, 1], [2, 1], [9, 1], [0, 0]])
    step = np.array([[0.0, 0.0], [0.03, 0.0], [0.01, 0.0], [nan, nan]])
    found = made.extrapolate(step, m, rate)
    scale = (2 * (1 - 2.0 ** -m[1:3, 0])) ** (2 / 3) - 1
    c = step[1:3, 0].sum() / (scale * m[1:3, 0] ** -(2 / 3)).sum()
    assert found[0, 0] == pytest.approx(c)
    assert found[1:3, 0] == pytest.approx(step[1:3, 0] / scale)
    assert found[:3, 1].tolist() == [0.0, 0.0, 0.0]  # no class shows any step
    assert np.isnan(found[3]).all()


def test_the_error_of_a_difference_is_that_of_the_classes_apart() -> None:
    one, other = (
        made.Bias(terms.sum(axis=1), terms, np.zeros((1, 2)), np.ones(2), np.zeros(2))
        for terms in (np.array([[0.5, 0.1], [0.2, 0.2]]), np.array([[0.2, 0.5], [0.2, 0.2]]))
    )
    assert one.errors_of_difference(other) == pytest.approx([0.5, 0.0])


def test_the_error_of_a_value_minus_its_bias() -> None:
    assert made.total_error(0.3, 0.4, is_ap=False) == pytest.approx(0.5)
    assert made.total_error(3 / 1.08, 4.0, is_ap=True) == pytest.approx(5.0)


def test_the_line_through_the_biases_of_classes() -> None:
    """A bias of 0.1 - 0.2 of the AP, and errors of 0.01 beside it that do not tilt the line."""
    value = np.repeat(np.linspace(0.1, 0.4, 8), 2)
    beside = np.tile([0.01, -0.01], 8)
    share = np.full(16, 1 / 16)
    wider, error = made.spread_of_bias(0.1 - 0.2 * value + beside, value, share, is_ap=True)
    assert wider == pytest.approx(1.4)
    assert error == pytest.approx(0.01 / 4 * np.sqrt(16 / 14))
    other = made.spread_of_bias(0.1 + 0.2 * value + beside, value, share, is_ap=False)
    assert other == pytest.approx((1.0, error))  # never narrower


def test_the_line_is_that_of_the_classes_in_the_mean() -> None:
    rng = np.random.default_rng(0)
    value, share = rng.random(14), np.array([0.1] * 6 + [0.05] * 8)
    bias = 0.05 - 0.1 * value + rng.normal(0, 0.01, 14)
    expected = made.spread_of_bias(bias, value, share, is_ap=True)
    slope, at = np.polyfit(value, bias, 1)
    rest = share * (bias - at - slope * value)
    assert expected == pytest.approx((1 - 2 * slope, np.sqrt(14 / 12 * (rest**2).sum())))
    more = [np.append(each, some) for each, some in ((bias, [9, np.nan]), (value, [9, np.nan]))]
    assert made.spread_of_bias(*more, np.append(share, [0.0, 0.1]), is_ap=True) == expected


@pytest.mark.parametrize("n", [9, 10])
def test_few_classes_show_no_line(n: int) -> None:
    value, bias, share = np.linspace(0, 1, n), np.linspace(0.1, 0, n), np.full(n, 1 / n)
    for is_ap, wider in ((True, 1.08), (False, 1.0)):
        found = made.spread_of_bias(bias, value, share, is_ap)
        if n == 9:
            assert found == pytest.approx((wider, np.sqrt((bias**2).sum()) / n))
        else:
            assert found == pytest.approx((1.2, 0.0))
    level = made.spread_of_bias(bias, np.full(n, 0.5), share, is_ap=True)
    assert level[0] == (1.08 if n == 9 else 1.0)
