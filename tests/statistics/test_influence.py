"""Influence functions: the goldens, the slow twin, and what a derivative has to be."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import detmap
from detmap.core.curves import scores as curves
from detmap.core.curves.aggregation import class_rows
from detmap.core.protocol import metric_rows
from detmap.core.protocol.metric_rows import Metric
from detmap.core.statistics import class_terms as readings
from detmap.core.statistics import influence as module
from detmap.core.statistics.influence import OfClasses, each_batch, influence, variance
from detmap.core.statistics.sampling_units import Units, units
from detmap.errors import ProtocolError
from tests.reference import weighted as twin
from tests.statistics.drawn_matches import draw, objects_of_cell, rows_of_cell
from tests.statistics.goldens import as_matches, load


def planned(matches: detmap.Matches):
    return readings.plan(matches, matches.protocol.rows()[0], class_rows(matches.protocol))


def each_class(plan: readings.Plan, of: Units) -> list[np.ndarray]:
    """(S, U) uncorrected influence on each class."""
    return [
        batch.dense(j, batch.raw, of.n)
        for batch in each_batch(plan, of)
        for j in range(len(batch.classes))
    ]


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("detector", [0, 1])
def test_influence_and_its_error_are_the_goldens(number: int, detector: int) -> None:
    case, expected = load(number)
    golden = expected["influence_x" if detector == 0 else "influence_y"]
    matches = as_matches(case["case"], detector)
    own, each = planned(matches), units(matches.image_ids)
    moved = influence(own, each)
    np.testing.assert_allclose(moved.uncorrected[0], golden["mean"], rtol=0, atol=1e-12)
    np.testing.assert_allclose(moved.corrected[0], golden["mean_leverage"], rtol=0, atol=1e-12)
    assert moved.uncorrected_se()[0] == pytest.approx(golden["se"], abs=1e-12)
    se = np.sqrt(variance(moved.corrected[0]))
    assert se == pytest.approx(golden["se_leverage"], abs=1e-12)
    classes = each_class(own, each)
    for k, values in golden["per_class"].items():
        np.testing.assert_allclose(classes[int(k)][0], values, rtol=0, atol=1e-12)


@pytest.mark.parametrize("number", [1, 2])
def test_goldens_of_groups_and_pairs(number: int) -> None:
    case, expected = load(number)
    first, second = (planned(as_matches(case["case"], i)) for i in (0, 1))
    image_ids = first.matches.image_ids
    groups = dict(enumerate(expected["cluster"]["groups"]))
    moved = influence(first, units(image_ids, groups))
    assert moved.uncorrected_se()[0] == pytest.approx(expected["cluster"]["ij_se"], abs=1e-12)
    each = units(image_ids)
    apart = influence(second, each).uncorrected[0] - influence(first, each).uncorrected[0]
    n = len(apart)
    se = np.sqrt(n / (n - 1) * (apart**2).sum())
    assert se == pytest.approx(expected["paired_ij_se"], abs=1e-12)


@pytest.mark.parametrize("integrator", ["grid_envelope", "all_points", "step"])
def test_influence_is_that_of_the_slow_twin(integrator: str) -> None:
    matches = draw(4, integrator=integrator)
    own = planned(matches)
    s = own.of_metric[1]  # AP50
    for k, each in enumerate(each_class(own, units(matches.image_ids))):
        rows, objects = rows_of_cell(matches, k, 0, 0), objects_of_cell(matches, k, 0)
        expected = twin.influence(rows, objects, matches.n_images, integrator == "step")
        np.testing.assert_allclose(each[s], expected, rtol=0, atol=1e-14)


@pytest.mark.parametrize("integrator", ["grid_envelope", "all_points", "eleven_point", "step"])
def test_influence_sums_to_nothing(integrator: str) -> None:
    for seed in range(5):
        matches = draw(seed, integrator=integrator)
        for each in each_class(planned(matches), units(matches.image_ids)):
            assert np.abs(each.sum(axis=1)).max() < 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_influence_is_the_derivative_by_central_differences(seed: int) -> None:
    """AP and recall move as the influence says when one image weighs a little more or less; where
    two precisions are equal there is a kink, and the two sides differ."""
    matches = draw(seed, n_images=60, integrator="all_points")
    own = planned(matches)
    h, compared = 1e-4, 0
    for image in range(0, 60, 3):
        ones = np.ones((3, 60))
        ones[0, image], ones[2, image] = 1 - h, 1 + h
        low, middle, high = (curves.scores(matches, weights=w) for w in ones)
        for k, each in enumerate(each_class(own, units(matches.image_ids))):
            if k not in low.judged:
                continue
            j = low.judged.tolist().index(k)
            for s, (a, t) in ((own.of_metric[1], (0, 0)),):
                below, here, above = (x.terms[a, t, 0, j] for x in (low, middle, high))
                if abs((above - here) - (here - below)) < 1e-8:
                    assert (above - below) / (2 * h) == pytest.approx(each[s, image], abs=1e-6)
                    compared += 1
            recall = own.of_metric[3]
            below, above = (x.recall[-1, 0, :, j].mean() for x in (low, high))
            assert (above - below) / (2 * h) == pytest.approx(each[recall, image], abs=1e-6)
    assert compared > 40


@pytest.mark.slow
def test_a_mean_weighed_by_images_moves_with_them() -> None:
    matches = draw(1, n_images=60, integrator="all_points")
    rules = matches.protocol.override({"mean.weights": "images"})
    from dataclasses import replace

    matches = replace(matches, protocol=rules)
    moved = influence(planned(matches), units(matches.image_ids))
    assert abs(moved.uncorrected.sum(axis=1)).max() < 1e-12
    h, compared = 1e-4, 0
    for image in range(60):
        weights = np.ones((3, 60))
        weights[0, image], weights[2, image] = 1 - h, 1 + h
        below, here, above = (detmap.summarize(matches, weights=w).metrics["AP50"] for w in weights)
        if abs((above - here) - (here - below)) < 1e-8:
            assert (above - below) / (2 * h) == pytest.approx(moved.uncorrected[1, image], abs=1e-6)
            compared += 1
    assert compared > 20


def test_threads_change_no_bit() -> None:
    matches = draw(3, n_images=200)
    bits = {
        influence(planned(matches), units(matches.image_ids), threads).corrected.tobytes()
        for threads in (1, 2, 4)
    }
    assert len(bits) == 1


@pytest.mark.parametrize("what", ["row", "integrator"])
def test_what_came_later_gets_nobody_elses_influence(
    what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    matches = draw(0)
    rows = matches.protocol.rows()[0]
    if what == "row":
        later = Metric("worst", "the worst class")  # as somebody adds it, in one row
        monkeypatch.setitem(metric_rows.BY_NAME, "worst", later)
        rows = [replace(rows[0], kind="worst")]
    else:
        monkeypatch.setattr(readings, "INTEGRATORS", ("step",))
    with pytest.raises(ProtocolError, match="no influence function"):
        readings.plan(matches, rows, ())


@pytest.mark.parametrize("undefined", ["skip", "zero", "one"])
@pytest.mark.parametrize("weights", ["equal", "images"])
def test_the_influence_on_a_mean_of_recalls_is_its_derivative(weights: str, undefined: str) -> None:
    """Recall has no kinks. One class has no small object, which its images still weigh; another is
    not in the group.
    """
    matches = draw(2, n_images=12)
    rows = ["AR@1000", "ARs", "AR-group"]
    settings = {"groups": {"group": ["class 0", "class 2"]}, "metrics": rows}
    rules = matches.protocol.override(
        {"mean.weights": weights, "mean.undefined": undefined, **settings}
    )
    counted = matches.counted.copy()
    counted[matches.obj_off[2] :, 1] = False
    matches = replace(matches, protocol=rules, counted=counted)
    own, of = planned(matches), units(matches.image_ids)
    both = influence(own, of)
    leverage = np.zeros_like(both.corrected)  # of classes alone, not of the weights
    for k, batch in enumerate(each_batch(own, of)):
        apart = batch.dense(0, batch.corrected - batch.raw, of.n)
        leverage += own.shares()[:, k, None] * apart[list(own.of_metric)]
    np.testing.assert_allclose(both.corrected - both.uncorrected, leverage, atol=1e-14)
    moved, h = both.uncorrected, 1e-4
    for image in range(12):
        sides = np.ones((2, 12))
        sides[:, image] = 1 - h, 1 + h
        below, above = (
            np.array(list(detmap.summarize(matches, weights=w).metrics.values())) for w in sides
        )
        np.testing.assert_allclose(moved[:, image], (above - below) / (2 * h), atol=1e-8)
    assert np.abs(moved).max(axis=1).min() > 1e-3


def test_batches_of_classes_change_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    matches = draw(3)
    own, of = planned(matches), units(matches.image_ids)
    alone, classes = influence(own, of), each_class(own, of)
    monkeypatch.setattr(module, "BATCHES", 1)
    together = influence(own, of)
    names = "uncorrected", "unbiased", "corrected", "class_uncorrected", "class_unbiased", "n_units"
    for name in names:
        assert np.array_equal(getattr(alone, name), getattr(together, name))
    assert np.array_equal(alone.values, together.values)
    assert all(map(np.array_equal, classes, each_class(own, of)))
    for batch in each_batch(own, of):
        for j, k in enumerate(batch.classes):
            for part, found in (
                (batch.raw, alone.class_uncorrected),
                (batch.unbiased, alone.class_unbiased),
            ):
                expected = [variance(row) for row in batch.dense(j, part, of.n)]
                np.testing.assert_allclose(found[:, k], expected, rtol=1e-12)


def test_leverage_corrects_the_variance_by_its_root_or_whole() -> None:
    """`unbiased` is half way, on a logarithmic scale, between `raw` and `corrected`."""
    matches = draw(3)
    for batch in each_batch(planned(matches), units(matches.image_ids)):
        there = batch.raw != 0
        leverage = batch.raw[there] / batch.corrected[there]
        assert (leverage <= 1).all()
        assert leverage.min() < 0.9
        np.testing.assert_allclose(batch.unbiased[there], batch.raw[there] / np.sqrt(leverage))
        assert not batch.unbiased[~there].any()


def test_the_highest_limit_is_that_of_ap() -> None:
    matches = draw(4)
    own = planned(matches)
    more = matches.protocol.override({"limits.max_dets": [1, 2, 1000]})
    of = units(matches.image_ids)
    found = influence(planned(replace(matches, protocol=more)), of)
    assert np.array_equal(found.corrected, influence(own, of).corrected)


@pytest.mark.parametrize("n_groups", [None, 5, 1])
def test_units_with_an_object_are_counted(
    n_groups: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BATCHES", 1)
    matches = draw(6)
    groups = None if n_groups is None else {i: i % n_groups for i in range(20)}
    own, of = planned(matches), units(matches.image_ids, groups)
    found = influence(own, of)
    for s, a in enumerate(own.readings.area.tolist()):
        for k in range(3):
            images = objects_of_cell(matches, k, a)
            assert found.n_units[s, k] == len({int(of.of_image[i]) for i in images})


def test_one_unit_has_no_variance_and_two_have() -> None:
    assert variance(np.array([3.0])) == 0.0
    assert variance(np.array([3.0, -1.0])) == pytest.approx(20.0)
    label, some = np.zeros(1, np.int64), np.array([[3.0], [2.0]])
    one = OfClasses(range(4, 5), label, label, some, some, label, some.T, some[0])
    assert one.variances(some, 1).tolist() == [[0.0], [0.0]]
    assert one.variances(some, 2).tolist() == [[18.0], [8.0]]
