"""Intervals of means whose rare classes are the hard ones: a sample lacks some of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import detmap
from detmap.core.statistics import support
from detmap.core.statistics.intervals import Maker
from detmap.core.statistics.sampling_units import units
from tools.coverage import measure, sampled

N_COMMON, N_RARE, N_IMAGES = 100, 20, 1500
BOX, ELSEWHERE = [0, 0, 10, 10], [50, 50, 60, 60]


def population() -> detmap.Result:
    """Common classes with an AP of about 0.8, and rare ones of which nothing is found."""
    rng = np.random.default_rng(0)
    objects, rows = [], []
    for k in range(N_COMMON + N_RARE):
        rare = k >= N_COMMON
        images = np.flatnonzero(rng.random(N_IMAGES) < (0.015 if rare else 0.06))
        objects += [(i, k) for i in images]
        found = [] if rare else images[rng.random(len(images)) < 0.9]
        rows += [(i, k, s, True) for i, s in zip(found, rng.beta(4, 2, len(found)), strict=True)]
        false = rng.choice(N_IMAGES, len(images), replace=False)
        rows += [(i, k, s, False) for i, s in zip(false, rng.beta(2, 4, len(false)), strict=True)]
    image, label = (list(column) for column in zip(*objects, strict=True))
    names = list(range(N_IMAGES))
    truth = detmap.truth_from_arrays(image, label, [BOX] * len(image), images=names)
    image, label, score, hit = (list(column) for column in zip(*rows, strict=True))
    boxes = [BOX if each else ELSEWHERE for each in hit]
    detections = detmap.detections_from_arrays(truth, image, label, boxes, score)
    return detmap.evaluate(truth, detections, "voc2012")


@pytest.mark.slow
def test_intervals_hold_though_samples_lack_hard_classes() -> None:
    """Without the variance that they add to the mean, too few hold."""
    whole = population()
    true, held = whole.metrics["mAP"], {True: 0, False: 0}
    for b in range(60):
        drawn = np.random.default_rng([7, b]).integers(0, N_IMAGES, 200)
        one = measure(sampled(whole.matches, drawn), b)
        made = (one.planned, one.moved, one.sample, one.off, one.drawn, 0.95, "influence")
        for allowed in held:
            maker = Maker(*made)
            if not allowed:
                maker.moved = replace(one.moved, values=np.zeros_like(one.moved.values))
            interval = maker.metric_interval(0, one.values[0])
            held[allowed] += interval.low <= true <= interval.high
    assert held[True] >= 56, held
    assert held[False] < 55, held


def test_the_share_of_lacking_classes_by_hand() -> None:
    shares, n_units = np.array([0.5, 0.25, 0.25, 0.0]), np.array([50, 2, 0, 9])
    lost = (0.5 * (1 - 0.50) ** 100 + 0.25 * (1 - 0.02) ** 100) / 0.75
    assert support.lacking_share(shares, n_units, units(np.arange(100))) == pytest.approx(lost)


@pytest.mark.parametrize("undefined", [None, 0.0, 1.0])
def test_the_variance_of_rare_classes_by_hand(undefined: float | None) -> None:
    shares, n_units = np.array([0.3, 0.25, 0.15, 0.1, 0.0]), np.array([50, 2, 1, 1, 9])
    values, drawn = np.array([0.8, 0.2, 0.5, 0.3, 0.9]), units(np.arange(100))
    variances = np.array([0.001, 0.03, 0.0, 0.0, 0.5])
    of_unit = (0.3 * 50 * 0.001 + 0.25 * 2 * 0.03) / 0.55
    mean = (0.3 * 0.8 + 0.25 * 0.2 + 0.15 * 0.5 + 0.1 * 0.3) / 0.8
    moved = [
        share * (value - (mean if undefined is None else undefined))
        for share, value in zip(shares.tolist(), values.tolist(), strict=True)
    ]
    lost = [(1 - n / 100) ** 100 for n in n_units.tolist()]
    expected = (0.15**2 + 0.1**2) * of_unit
    expected += sum(p * each**2 for p, each in zip(lost[:4], moved[:4], strict=True))
    given = (shares, n_units, values, variances, drawn, undefined)
    assert support.variance_of_rare_classes(*given) == pytest.approx(expected)


def test_the_variance_of_rare_classes_without_others() -> None:
    """One class on one image, or none: nothing is known of its variance."""
    one, none = np.ones(1), np.zeros(1, np.int64)
    drawn = units(np.arange(100))
    for n_units in (none, none + 1):
        given = (one, n_units, one, 0 * one, drawn, None)
        assert support.variance_of_rare_classes(*given) == 0.0


def test_classes_on_every_image_are_never_lacking() -> None:
    drawn = units(np.arange(60))
    assert support.lacking_share(np.ones(3), np.full(3, 60), drawn) == 0.0
    assert not support.refuse_mean(np.ones(3), np.full(3, 60), drawn)
    why = support.refuse_mean(np.ones(2), np.array([60, 1]), drawn)
    assert "more images would help" in why
    assert "a group of classes" in why
