"""Weights through the curves: what repeating images in a file gives, without the file."""

from typing import Any

import numpy as np
import pytest

import detmap
from detmap.core.curves import scores as curves
from detmap.kernels.resampling import weighted as kernels
from tests.reference import weighted as twin
from tests.statistics.drawn_matches import draw, objects_of_cell, repeated, rows_of_cell, tables
from tests.statistics.goldens import INTEGRATORS, as_matches, load

NAMES = tuple(INTEGRATORS.values())


def cells(matches: detmap.Matches, weights: object = None) -> np.ndarray:
    """(K, A, T) AP."""
    scores = curves.scores(matches, weights=weights)
    shape = len(matches.categories), *scores.terms.shape[:2]
    found = np.full(shape, np.nan)
    found[scores.judged] = scores.terms.mean(axis=2).transpose(2, 0, 1)
    return found


def numbers(tree: object) -> np.ndarray:
    return np.array(tree, dtype=float)  # None becomes NaN


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("short", INTEGRATORS)
def test_weighted_numbers_are_the_goldens(number: int, short: str) -> None:
    case, expected = load(number)
    matches = as_matches(case["case"], 0, INTEGRATORS[short])
    np.testing.assert_allclose(cells(matches), numbers(expected["point"][short]), atol=1e-12)
    for drawn, cell in zip(
        expected["draws_first_3"], expected["replicate_cells_first_3"].get(short, []), strict=False
    ):
        weights = np.bincount(drawn, minlength=matches.n_images)
        np.testing.assert_allclose(cells(matches, weights), numbers(cell), atol=1e-12)


@pytest.mark.parametrize("integrator", NAMES)
def test_weights_of_one_are_the_exact_engine(integrator: str) -> None:
    for seed in range(5):
        matches = draw(seed, integrator=integrator)
        ones = np.ones(matches.n_images)
        plain, weighed = (detmap.summarize(matches, weights=w) for w in (None, ones))
        for name, value in plain.metrics.items():
            assert abs(weighed.metrics[name] - value) <= 1e-13
        assert weighed.counts() == plain.counts()
        for before, after in zip(plain.per_class, weighed.per_class, strict=True):
            assert before == pytest.approx(after, abs=1e-13, nan_ok=True)


@pytest.mark.slow
@pytest.mark.parametrize("integrator", NAMES)
def test_whole_weights_are_images_repeated(integrator: str) -> None:
    for seed in range(5):
        matches = draw(seed, integrator=integrator)
        times = np.random.default_rng(seed).integers(0, 4, matches.n_images)
        whole = detmap.summarize(repeated(matches, times))
        weighed = detmap.summarize(matches, weights=times)
        assert weighed.metrics == pytest.approx(whole.metrics, abs=1e-12, nan_ok=True)
        assert weighed.counts() == whole.counts()
        np.testing.assert_allclose(cells(matches, times), cells(whole.matches), atol=1e-12)


TIMES = [0, 1, 2, 3, 1, 1, 0, 2, 1, 4, 1, 0]


@pytest.mark.parametrize("equal", ["", "between"])
@pytest.mark.parametrize("protocol", ["coco-bbox", "voc2007", "voc2012"])
def test_a_file_in_which_images_are_repeated(protocol: str, equal: str) -> None:
    matches = detmap.evaluate(*tables(3, equal=equal), protocol).matches
    weighed = detmap.summarize(matches, weights=TIMES)
    whole = detmap.evaluate(*tables(3, TIMES, equal), protocol)
    assert weighed.metrics == pytest.approx(whole.metrics, abs=1e-12)
    assert weighed.counts() == whole.counts()
    by_class = [row["AR100"] if "AR100" in row else row["AR"] for row in weighed.per_class]
    assert by_class == pytest.approx(
        [row["AR100"] if "AR100" in row else row["AR"] for row in whole.per_class], abs=1e-12
    )


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["coco-bbox", "voc2012"])
def test_equal_scores_inside_a_repeated_image(protocol: str) -> None:
    """The file ranks whole copies one after the other, weights rank the copies of each row: another
    order of equal scores, so AP differs and neither leaves the bounds over all orders. Docs:
    statistics.md, weights.
    """
    matches = detmap.evaluate(*tables(3, equal="inside"), protocol).matches
    weighed = detmap.summarize(matches, weights=TIMES)
    whole = detmap.evaluate(*tables(3, TIMES, "inside"), protocol)
    in_place = detmap.summarize(repeated(matches, TIMES))
    assert weighed.counts() == whole.counts()
    assert weighed.metrics == pytest.approx(in_place.metrics, abs=1e-12)
    differ = [name for name, x in whole.metrics.items() if abs(x - weighed.metrics[name]) > 1e-9]
    assert differ
    assert not any(name.startswith("AR") for name in differ)
    for name, bound in whole.ties().items():
        assert bound.low - 1e-12 <= weighed.metrics[name] <= bound.high + 1e-12


def test_weighted_curves_are_those_of_the_slow_twin() -> None:
    times = [2, 0, 1, 3, 1] * 4
    for integrator, slow in (("all_points", twin.all_points), ("step", twin.step)):
        matches = draw(1, integrator=integrator)
        found = cells(matches, times)
        for k in range(3):
            verdicts = twin.repeated(rows_of_cell(matches, k, 0, 1), times)
            n = sum(times[i] for i in objects_of_cell(matches, k, 0))
            assert found[k, 0, 1] == pytest.approx(slow(verdicts, n), abs=1e-13)


@pytest.mark.slow
@pytest.mark.parametrize("weight", [0.25, 1.0, 1.5, 3.999, 7.0])
@pytest.mark.parametrize("fp", [0.0, 0.5, 3.0, 1000.0])
def test_step_between_whole_weights_is_the_digamma_function(weight: float, fp: float) -> None:
    tp = 9.25
    expected = weight - fp * (twin.psi(tp + fp + 1) - twin.psi(tp - weight + fp + 1))
    assert kernels.rise(tp, fp, weight) == pytest.approx(expected, abs=2e-10 * max(1.0, fp / 100))


def test_what_real_weights_do_to_a_curve() -> None:
    matches = draw(2, integrator="all_points")
    weights = np.linspace(0.1, 2.3, matches.n_images)
    wanted = pytest.approx(detmap.summarize(matches, weights=weights * 7).metrics, abs=1e-13)
    assert detmap.summarize(matches, weights=weights).metrics == wanted
    result = detmap.summarize(matches, weights=weights)
    assert "|weights:" in result.signature
    recall, precision, _ = result.curve("class 0")
    expected = pytest.approx(result.classes(0.5)[0]["tp"] / result.classes(0.5)[0]["objects"])
    assert recall[-1] == expected
    assert (precision <= 1).all()
    assert result.integrators()["step"]["AP"] < result.integrators()["all-point"]["AP"]


def test_weights_of_images_without_objects_or_detections() -> None:
    truth = detmap.truth_from_arrays([], [], np.zeros((0, 4)), images=[1, 2], categories={1: "a"})
    none = detmap.detections_from_arrays(truth, [], [], np.zeros((0, 4)), [])
    matches = detmap.evaluate(truth, none, "coco-bbox").matches
    scores = curves.scores(matches, weights=[0.5, 2.0])
    assert {column.dtype.kind for column in (scores.n_tp, scores.n_objects, scores.n_images)} == {
        "f"
    }
    assert not scores.n_objects.any()


@pytest.mark.parametrize(
    "weights", [[1.0], np.full(20, -1.0), np.full(20, np.nan), np.full(20, 1e9), ["a"] * 20]
)
def test_weights_that_cannot_be(weights: object) -> None:
    with pytest.raises(detmap.DataError, match="weights"):
        detmap.summarize(draw(0), weights=weights)


@pytest.mark.parametrize("weight", [1e-320, 1e-16, 9e-4])
@pytest.mark.parametrize("others", [1.0, 0.0, None])
def test_weights_above_0_that_are_tiny_are_refused(weight: float, others: float | None) -> None:
    """A class on the images of such weights alone would get an AP that is too low under COCO."""
    matches = draw(0)
    weights = np.full(matches.n_images, weight if others is None else others)
    weights[3:] = weight
    place = 0 if others is None else 3
    with pytest.raises(detmap.DataError, match=rf"weights\[{place}\]: .* too small.*multiply all"):
        detmap.summarize(matches, weights=weights)


def test_weights_that_are_all_0_are_refused() -> None:
    matches = draw(0)
    with pytest.raises(detmap.DataError, match="weights: are all 0"):
        detmap.summarize(matches, weights=np.zeros(matches.n_images))


@pytest.mark.parametrize("weight", [1e-3, 1.0, 1e6])
def test_a_class_on_images_of_other_weights_has_its_ap(weight: float) -> None:
    """Class 2 is on the last image alone: its AP does not depend on the weight of that image."""
    truth = detmap.truth_from_arrays([1, 2], [1, 2], np.array([[0, 0, 10, 10.0]] * 2))
    found: Any = [[0, 0, 10, 10], [0, 0, 10, 10]]
    detections = detmap.detections_from_arrays(truth, [1, 2], [1, 2], found, [0.9, 0.8])
    matches = detmap.match(truth, detections, "coco-bbox")
    rows = detmap.summarize(matches, weights=[1.0, weight]).per_class
    assert [row["AP"] for row in rows] == pytest.approx([1.0, 1.0], abs=1e-12)
