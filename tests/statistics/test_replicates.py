"""Replicates: the goldens, any number of threads, and each alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import detmap
from detmap.core.statistics import replicates as drawing
from detmap.core.statistics.formulas.quantiles import student
from detmap.core.statistics.sampling_units import units
from detmap.errors import ProtocolError
from detmap.kernels.curves import Ranked
from detmap.kernels.resampling.steps import PARTLY, TRUE, Steps, list_steps
from tests.statistics.drawn_matches import draw
from tests.statistics.goldens import INTEGRATORS, as_matches, load
from tests.statistics.test_influence import planned


@pytest.mark.parametrize("number", [1, 2])
def test_replicates_are_the_goldens(number: int) -> None:
    case, expected = load(number)
    seed, n = expected["seed"], expected["B"]
    for b in range(3):
        assert drawing.draws(seed, b, 12).tolist() == expected["draws_first_3"][b]
        assert drawing.swaps(seed, b, 12).astype(int).tolist() == expected["swaps_first_3"][b]
    for short in ("grid", "all"):
        golden = expected[f"bootstrap_{short}"]
        sampled = []
        for detector in (0, 1):
            own = planned(as_matches(case["case"], detector, INTEGRATORS[short]))
            each = units(own.matches.image_ids)
            sampled.append(drawing.replicates(own, each, n, seed).metrics[:, 0])
        first, second = sampled
        np.testing.assert_allclose(first, golden["replicates"], rtol=0, atol=1e-12)
        np.testing.assert_allclose(second - first, golden["paired_delta"], rtol=0, atol=1e-12)
        assert first.std(ddof=1) == pytest.approx(golden["se"], abs=1e-12)
        bias = first.mean() - expected["metric"][short][0]
        assert bias == pytest.approx(golden["bias"], abs=1e-12)
        limits = np.quantile(first, [0.025, 0.975])
        np.testing.assert_allclose(limits, golden["percentile"], rtol=0, atol=1e-12)


@pytest.mark.parametrize("number", [1, 2])
def test_replicates_of_groups_are_the_goldens(number: int) -> None:
    case, expected = load(number)
    golden = expected["cluster"]
    own = planned(as_matches(case["case"], 0))
    each = units(own.matches.image_ids, dict(enumerate(golden["groups"])))
    for b, drawn in enumerate(golden["draws_first_2"]):
        assert drawing.draws(expected["seed"], b, each.n).tolist() == drawn
    found = drawing.replicates(own, each, 2, expected["seed"]).metrics[:, 0]
    np.testing.assert_allclose(found, golden["replicates_grid_first_2"], rtol=0, atol=1e-12)


@pytest.mark.parametrize("number", [1, 2])
def test_goldens_of_the_jackknife(number: int) -> None:
    """An image left out is an image of weight 0."""
    case, expected = load(number)
    for short in ("grid", "all"):
        matches = as_matches(case["case"], 0, INTEGRATORS[short])
        left_out = 1 - np.eye(matches.n_images)
        found = [detmap.summarize(matches, weights=w).metrics["AP"] for w in left_out]
        golden = expected[f"jackknife_{short}"]["values"]
        np.testing.assert_allclose(found, golden, rtol=0, atol=1e-12)


@pytest.mark.parametrize("integrator", INTEGRATORS.values())
def test_a_replicate_is_a_result_with_weights(integrator: str) -> None:
    matches = draw(2, integrator=integrator)
    own, each = planned(matches), units(matches.image_ids)
    sampled = drawing.replicates(own, each, 20, seed=7)
    for b in (0, 15, 16, 19):
        weights = np.bincount(drawing.draws(7, b, each.n), minlength=each.n)
        alone = detmap.summarize(matches, weights=weights)
        np.testing.assert_allclose(
            sampled.metrics[b], list(alone.metrics.values()), rtol=0, atol=1e-13
        )
        for c, row in enumerate(own.classes):
            expected = [each_class[row.name] for each_class in alone.per_class]
            np.testing.assert_allclose(sampled.classes[b, c], expected, rtol=0, atol=1e-13)


def test_an_integrator_that_lanes_do_not_know_is_replicated_one_by_one() -> None:
    matches = draw(2, integrator="grid_envelope")
    odd = replace(matches, protocol=matches.protocol.override({"ap.grid": [0.1, 0.35, 0.8]}))
    own, each = planned(odd), units(odd.image_ids)
    assert drawing._grid(own) is None
    sampled = drawing.replicates(own, each, 3, seed=7)
    for b in range(3):
        weights = np.bincount(drawing.draws(7, b, each.n), minlength=each.n)
        alone = detmap.summarize(odd, weights=weights)
        np.testing.assert_allclose(sampled.metrics[b], list(alone.metrics.values()), atol=1e-13)


def test_threads_parts_and_more_replicates_change_no_bit() -> None:
    matches = draw(3, n_images=60)
    each = units(matches.image_ids)
    parts = [matches.select(matches.image_ids[i::3]) for i in (2, 0, 1)]
    merged = parts[0].merge(*parts[1:])
    whole = drawing.replicates(planned(matches), each, 40, seed=1)
    for other, threads in ((matches, 1), (matches, 4), (merged, 2)):
        again = drawing.replicates(planned(other), each, 40, seed=1, threads=threads)
        assert again.metrics.tobytes() == whole.metrics.tobytes()
        assert again.classes.tobytes() == whole.classes.tobytes()
    fewer = drawing.replicates(planned(matches), each, 9, seed=1)
    assert fewer.metrics.tobytes() == whole.metrics[:9].tobytes()


@pytest.mark.parametrize("integrator", ["grid_envelope", "eleven_point"])
def test_rows_of_classes_are_passed_on_or_returned(
    integrator: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    matches = draw(3, 60, integrator)
    own, each = planned(matches), units(matches.image_ids)
    whole = drawing.replicates(own, each, 20, seed=1)
    monkeypatch.setattr(drawing, "MOST_TAKEN", 1)
    passed: list[tuple[np.ndarray, np.ndarray]] = []
    left = drawing.replicates(own, each, 20, seed=1, take=lambda *rows: passed.append(rows))
    assert left.classes.shape == (*whole.classes.shape[:2], 0)
    places, rows = zip(*passed, strict=True)
    assert np.concatenate(places).tolist() == list(range(whole.classes.shape[2]))
    assert np.concatenate(rows, axis=2).tobytes() == whole.classes.tobytes()
    assert left.metrics.tobytes() == whole.metrics.tobytes()


@pytest.mark.parametrize(
    ("p", "df", "value"),
    [  # tables of Student's distribution
        (0.975, 1, 12.706204736432095),
        (0.975, 4, 2.7764451051977987),
        (0.975, 30, 2.0422724563012373),
        (0.95, 10, 1.8124611228107335),
        (0.995, 2.5, 7.163728138948783),
        (0.975, 1e9, 1.959963986120195),
    ],
)
def test_quantiles_of_student_are_those_of_tables(p: float, df: float, value: float) -> None:
    assert student(p, df) == pytest.approx(value, rel=2e-8)
    assert student(1 - p, df) == -student(p, df)


def test_classes_without_objects_change_no_bit() -> None:
    """They are left out of the loop over classes; a naive mean has them all."""
    own = planned(draw(3, n_images=60))
    values = np.random.default_rng(2).random((len(own.positives), len(own.readings.area), 8))
    values[1] = np.nan
    values[0, :, 3] = np.nan
    found = drawing.means(own, values, np.ones((len(own.positives), 8)))
    for q, s in enumerate(own.of_metric):
        for lane in range(8):
            mine = values[own.members[q], s, lane]
            assert found[lane, q] == pytest.approx(np.nanmean(mine), rel=1e-14)


def test_draws_and_swaps_are_those_of_their_streams() -> None:
    """Replicate b draws unit floor(n * upper half / 2^32); a permutation swaps from 2^63 on."""
    words = drawing.random_words(7, drawing.BOOTSTRAP, 3, (1, 9))[0].tolist()
    assert drawing.draws(7, 3, 9).tolist() == [(w >> 32) * 9 >> 32 for w in words]
    words = drawing.random_words(7, drawing.SWAP, 3, (1, 9))[0].tolist()
    swapped = drawing.swaps(7, 3, 9).tolist()
    assert swapped == [w >= 2**63 for w in words]
    assert any(swapped)
    assert not all(swapped)
    lanes = drawing.lanes_of(units(np.arange(9)), 7, 16)
    for lane in range(drawing.LANES):
        counts = np.bincount(drawing.draws(7, 16 + lane, 9), minlength=9)
        assert lanes[:, lane].tolist() == counts.tolist()
    with pytest.raises(ValueError, match="read-only"):
        lanes[0, 0] = 1  # many metrics share it


@pytest.mark.parametrize(
    ("n", "seed", "what"),
    [
        (0, 0, "replicates: 0"),
        (drawing.MOST_REPLICATES + 1, 0, "replicates: 1000001"),
        (True, 0, "replicates: True"),
        (2.0, 0, "replicates: 2.0"),
        ("x", 0, "replicates: 'x'"),
        (1, -1, "seed: -1"),
        (1, 2**64, f"seed: {2**64}"),
    ],
)
def test_numbers_that_are_refused(n: object, seed: object, what: str) -> None:
    with pytest.raises(detmap.DataError, match=what):
        drawing.check(n, seed)  # type: ignore[arg-type]


def test_numbers_at_their_edges() -> None:
    drawing.check(1, 0)
    drawing.check(drawing.MOST_REPLICATES, drawing.MOST_SEED)
    drawing.check(np.int64(5), np.uint64(5))  # type: ignore[arg-type]


def test_progress_is_told_after_each_batch() -> None:
    matches, seen = draw(3), []
    own, n = planned(matches), drawing.LANES + 1
    drawing.replicates(
        own, units(matches.image_ids), n, 1, threads=1, progress=lambda *now: seen.append(now)
    )
    assert seen == [(drawing.LANES, n), (n, n)]


@pytest.mark.parametrize("weights", ["equal", "images"])
@pytest.mark.parametrize("undefined", ["skip", "zero", "one"])
def test_means_of_lanes_are_those_of_the_definition(undefined: str, weights: str) -> None:
    matches = draw(3)
    rules = {"mean.undefined": undefined, "mean.weights": weights}
    rules |= {"groups": {"group": ["class 1", "class 2"]}, "metrics": ["AP", "AP-group", "ARs"]}
    own = planned(replace(matches, protocol=matches.protocol.override(rules)))
    rng = np.random.default_rng(2)
    values = rng.random((3, len(own.readings.area), 4))
    images = rng.integers(1, 9, (3, 4)).astype(float)
    values[0, :, 1:3] = np.nan  # in some lanes
    values[1] = np.nan  # in all
    values[2, :, 2] = np.nan
    images[0, 3] = 0.0
    found = drawing.means(own, values, images)
    for q, s in enumerate(own.of_metric):
        for lane in range(4):
            total = size = 0.0
            for k in np.flatnonzero(own.members[q]):
                value, weight = values[k, s, lane], images[k, lane] if weights == "images" else 1
                if np.isnan(value) and undefined == "skip":
                    continue
                total += weight * np.nan_to_num(value, nan=float(undefined == "one"))
                size += weight
            expected = total / size if size else np.nan
            assert found[lane, q] == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize(
    ("integrator", "grid", "expected"),
    [
        ("all_points", None, (0, 0.0, 0.0)),
        ("step", None, (0, 0.0, 0.0)),
        ("eleven_point", None, (11, 0.1, 10.0)),
        ("grid_envelope", [0.0, 0.5, 1.0], (3, 0.5, 2.0)),
        ("grid_envelope", [0.0, 1.0], (2, 1.0, 1.0)),
        ("grid_envelope", [0.0, 0.25, 0.5], (3, 0.25, 4.0)),
        ("eleven_point", [0.0, 0.25], (2, 0.25, 4.0)),
        ("grid_envelope", [0.0], None),
        ("grid_envelope", [0.0, 0.5, 0.9], None),
        ("grid_envelope", [0.1, 0.2], None),
    ],
)
def test_the_grid_of_the_kernel(integrator: str, grid: object, expected: object) -> None:
    matches = draw(2, integrator=integrator)
    if grid is not None:
        key = "ap.eleven" if integrator == "eleven_point" else "ap.grid"
        rules = matches.protocol.override({key: grid})
        matches = replace(matches, protocol=rules)
    own = planned(matches)
    found = drawing._grid(own)
    assert (found if found is None else tuple(found)) == expected
    if found is None:
        with pytest.raises(ProtocolError, match="no permutation test"):
            drawing.metrics_of_rows(own, 20)
        sampled = drawing.replicates(own, units(matches.image_ids), 1, seed=7)
        weights = np.bincount(drawing.draws(7, 0, 20), minlength=20)
        alone = detmap.summarize(matches, weights=weights)
        np.testing.assert_allclose(sampled.metrics[0], list(alone.metrics.values()), atol=1e-13)


@pytest.mark.parametrize("integrator", ["grid_envelope", "eleven_point"])
@pytest.mark.parametrize("end", [1.0, 0.5, 0.3, 0.01, 1e-300])
@pytest.mark.parametrize("n", [2, 3, 7, 61])
def test_grids_that_end_anywhere_are_read_as_by_one_evaluation(
    integrator: str, end: float, n: int
) -> None:
    """Whole weights: many a recall is a point of the grid."""
    key = "ap.eleven" if integrator == "eleven_point" else "ap.grid"
    matches = draw(n, 10, integrator)
    points = np.arange(n) * (end / (n - 1))
    rules = matches.protocol.override({key: points.tolist()})
    own = planned(replace(matches, protocol=rules))
    assert drawing._grid(own) is not None
    weights = np.random.default_rng(n).integers(0, 3, (10, drawing.LANES)).astype(float)
    metrics = drawing.means(own, *drawing.reader(own)(weights))
    for lane in range(0, drawing.LANES, 3):
        alone = detmap.summarize(own.matches, weights=weights[:, lane])
        np.testing.assert_allclose(metrics[lane], list(alone.metrics.values()), rtol=0, atol=1e-13)
    same = drawing.metrics_of_rows(own, 10)(np.ones((10, drawing.LANES)))
    whole = list(detmap.summarize(own.matches).metrics.values())
    np.testing.assert_allclose(same, np.tile(whole, (drawing.LANES, 1)), rtol=0, atol=1e-13)


@pytest.mark.parametrize("integrator", INTEGRATORS.values())
@pytest.mark.parametrize("most", [1, 3, 255])
def test_weights_of_any_size_are_results_with_weights(integrator: str, most: int) -> None:
    """With 255 each byte is full after one row."""
    matches = draw(4, n_images=30, integrator=integrator)
    own = planned(matches)
    weights = np.random.default_rng(most).integers(0, most + 1, (30, drawing.LANES)).astype(float)
    weights[0, 0], weights[:, 1] = most, 0.0
    values, images = drawing.reader(own)(weights)
    metrics = drawing.means(own, values, images)
    for lane in range(drawing.LANES):
        if lane == 1:
            assert np.isnan(metrics[lane]).all()  # no image
            continue
        alone = detmap.summarize(matches, weights=weights[:, lane])
        np.testing.assert_allclose(metrics[lane], list(alone.metrics.values()), rtol=0, atol=1e-13)


def test_a_weight_that_is_no_byte_is_an_error() -> None:
    matches = draw(4, n_images=30)
    weights = np.ones((30, drawing.LANES))
    weights[3, 2] = 256
    with pytest.raises(detmap.DataError, match="a unit is 256 times in one replicate"):
        drawing.reader(planned(matches))(weights)


def test_steps_list_what_ap_depends_on() -> None:
    """One class and area, thresholds 0 and 1; rows: both true, ignored at 1, false, ignored at
    both, true at 0 and ignored at 1, false at the end.
    """
    tp = np.array([[3], [0], [0], [0], [1], [0]], np.uint16)
    ignored = np.array([[0], [2], [0], [3], [2], [0]], np.uint16)
    ranked = Ranked(np.array([0, 6]), tp, ignored, np.zeros(6, np.int32))
    image, at = np.arange(10, 16, dtype=np.int32), np.empty(2, np.int64)
    starts = [np.zeros(n, np.int64) for n in (2, 2, 3)]
    room = np.full((3, 9), -1, np.int32)
    rows, events, places = starts
    steps = Steps(rows, events, places, room[0], room[1], np.full(9, -1), room[2])
    list_steps(ranked, image, 0, at, steps)
    assert [off.tolist() for off in starts] == [[0, 2], [0, 3], [0, 3, 1]]
    for off in starts:
        np.cumsum(off, out=off)
    list_steps(ranked, image, 1, at, steps)
    assert steps.row[:3].tolist() == [10, 12, -1]
    assert steps.event[:4].tolist() == [10, 11, 14, -1]
    assert steps.upto[:4].tolist() == [1, 1, 2, -1]
    assert steps.step[:5].tolist() == [TRUE, 4 + PARTLY, 8 + TRUE + PARTLY, TRUE, -1]


@pytest.mark.parametrize("grid", [[0.0, 0.5, 1.0], [0.1, 0.35, 0.8]])
def test_replicates_of_means_by_images_and_of_classes(grid: list[float]) -> None:
    """By lanes, and one by one where the kernel does not know the grid."""
    matches = draw(2)
    rules = matches.protocol.override({"mean.weights": "images", "ap.grid": grid})
    matches = replace(matches, protocol=rules)
    own = planned(matches)
    sampled = drawing.replicates(own, units(matches.image_ids), 2, seed=7)
    for b in range(2):
        weights = np.bincount(drawing.draws(7, b, 20), minlength=20)
        alone = detmap.summarize(matches, weights=weights)
        np.testing.assert_allclose(sampled.metrics[b], list(alone.metrics.values()), atol=1e-13)
        for c, row in enumerate(own.classes):
            expected = [line[row.name] for line in alone.per_class]
            np.testing.assert_allclose(sampled.classes[b, c], expected, atol=1e-13)
