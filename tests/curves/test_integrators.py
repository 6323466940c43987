"""The four integrators against their definitions, and the invariances that follow from them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from detmap.curves import integrators
from detmap.kernels import integrate as kernels
from tests.reference import curves, voc

POINTS = integrators.VOC_POINTS.values()
GRID = integrators.COCO_POINTS.values()


@st.composite
def ranked(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """Recall and precision at every rank of a list of verdicts."""
    hits = np.array(draw(st.lists(st.booleans(), min_size=1, max_size=40)))
    n_objects = int(hits.sum()) + draw(st.integers(0, 5)) or 1
    found = np.cumsum(hits)
    return found / n_objects, found / np.arange(1, len(hits) + 1)


@given(ranked())
def test_against_the_slow_twins(curve: tuple[np.ndarray, np.ndarray]) -> None:
    recall, precision = (x.tolist() for x in curve)
    assert integrators.eleven_point(recall, precision) == voc.eleven_point(
        recall, precision, POINTS.tolist()
    )
    assert integrators.all_points(recall, precision) == pytest.approx(
        voc.all_points(recall, precision), abs=1e-15
    )
    assert integrators.grid_envelope(recall, precision) == np.mean(
        curves.grid_envelope(recall, precision, GRID.tolist())
    )
    assert integrators.step(recall, precision) == pytest.approx(
        curves.step(recall, precision), abs=1e-15
    )


@given(ranked())
def test_the_points_where_recall_rises_are_enough(curve: tuple[np.ndarray, np.ndarray]) -> None:
    recall, precision = curve
    rises = np.diff(recall, prepend=0) > 0
    for rule in (
        integrators.eleven_point,
        integrators.all_points,
        integrators.grid_envelope,
        integrators.step,
    ):
        assert rule(recall[rises], precision[rises]) == rule(recall, precision)


@pytest.mark.parametrize(
    "rule",
    [integrators.eleven_point, integrators.all_points, integrators.grid_envelope, integrators.step],
)
def test_nothing_found_is_zero_and_a_perfect_list_is_one(rule: object) -> None:
    assert rule([], []) == 0  # type: ignore[operator]
    n = np.arange(1, 101)
    assert rule(n / 100, np.ones(100)) == pytest.approx(1, abs=1e-15)  # type: ignore[operator]


def test_a_worked_example_comes_out_as_by_hand() -> None:
    """Ranks TP FP TP of two objects: precision 1 to recall 0.5, then 2/3."""
    recall, precision = [0.5, 0.5, 1.0], [1.0, 0.5, 2 / 3]
    assert integrators.step(recall, precision) == pytest.approx(5 / 6)
    assert integrators.all_points(recall, precision) == pytest.approx(5 / 6)
    assert integrators.eleven_point(recall, precision) == pytest.approx((6 + 5 * 2 / 3) / 11)
    assert integrators.grid_envelope(recall, precision) == pytest.approx((51 + 50 * 2 / 3) / 101)


def test_shapes_that_differ_are_refused() -> None:
    with pytest.raises(ValueError, match=r"\(2,\).*\(1,\)"):
        integrators.step([0.5, 1], [1])


def test_a_shuffled_table_gives_the_same_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    recall, precision = np.array([0.25, 0.5, 0.5, 1.0]), np.array([1.0, 1.0, 0.5, 0.75])
    points, off = GRID, np.array([0, 4])

    def numbers() -> dict[str, list[float]]:
        return {
            row.name: integrators.terms_of_curves(
                recall, precision, off, integrators.integrator(row.name), points
            ).tolist()
            for row in integrators.INTEGRATORS
        }

    before = numbers()
    monkeypatch.setattr(integrators, "INTEGRATORS", integrators.INTEGRATORS[::-1])
    assert numbers() == before
    assert before["step"] == [[integrators.step(recall, precision)]]
    assert before["all_points"] == [[integrators.all_points(recall, precision)]]


def test_each_row_of_the_table_carries_the_number_of_its_kernel() -> None:
    for row in integrators.AT_TRUE_POSITIVES:
        assert getattr(kernels, row.name.upper()) == row.kernel
    numbers = {row.kernel for row in integrators.AT_TRUE_POSITIVES}
    assert len(numbers) == len(integrators.AT_TRUE_POSITIVES)
    assert all(row.kernel in (-1, *numbers) for row in integrators.INTEGRATORS)
