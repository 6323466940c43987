"""The integrators against their definitions, and the invariances that follow from them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import detmap
from detmap.core.curves import every_rank
from detmap.core.protocol import integrators
from detmap.kernels import integrate as kernels
from tests.reference import curves, voc
from tests.support.package_source import copy_without
from tests.support.running import python

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
            for row in integrators.AT_TRUE_POSITIVES
        }

    before = numbers()
    monkeypatch.setattr(integrators, "INTEGRATORS", integrators.INTEGRATORS[::-1])
    assert numbers() == before
    assert before["step"] == [[integrators.step(recall, precision)]]
    assert before["all_points"] == [[integrators.all_points(recall, precision)]]


@pytest.mark.parametrize("rule", [r for r in integrators.INTEGRATORS if r.turning_points])
@given(ranked(), st.sampled_from(["float32", "float64"]), st.sampled_from(["ramp", "drop"]))
def test_turning_points_give_the_same_bits(
    rule: integrators.Integrator, curve: tuple[np.ndarray, np.ndarray], arithmetic: str, tail: str
) -> None:
    recall, precision = curve[0], curve[1].astype(arithmetic)
    points = POINTS if rule.points == "eleven" else GRID
    hit = np.diff(recall, prepend=0) > 0
    at = every_rank._turning_points(hit)
    assert set(at) >= {*np.flatnonzero(hit), len(hit) - 1}
    whole = rule.at_ranks(integrators.Curve(recall, precision, points, tail=tail))
    some = rule.at_ranks(integrators.Curve(recall[at], precision[at], points, tail=tail))
    assert np.array_equal(whole, some)


@given(ranked(), st.booleans(), st.sampled_from([np.float32, np.float64]))
def test_running_sums_are_those_of_every_rank(
    curve: tuple[np.ndarray, np.ndarray], weighted: bool, number: type
) -> None:
    hit = np.diff(curve[0], prepend=0) > 0
    gain = np.linspace(0.1, 3, len(hit)) if weighted else None
    each = np.ones(len(hit)) if gain is None else gain
    at = every_rank._turning_points(hit)
    sums = every_rank._running_sums(hit, gain, at, number)
    for found, some in zip(sums, (hit, ~hit), strict=True):
        assert found.dtype == number
        assert np.array_equal(found, np.cumsum(some * each, dtype=number)[at])


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 4)), max_size=30))
def test_true_positives_first_among_equal_scores(rows: list[tuple[bool, int]]) -> None:
    rows = sorted(rows, key=lambda row: -row[1])
    hit = np.array([row[0] for row in rows], dtype=bool)
    score = np.array([row[1] for row in rows], dtype=float)
    expected = np.lexsort((~hit, -score))
    assert every_rank._true_first(hit, score).tolist() == expected.tolist()


@given(ranked())
def test_at_true_positives_as_at_every_rank(curve: tuple[np.ndarray, np.ndarray]) -> None:
    recall, precision = curve
    rises = np.diff(recall, prepend=0) > 0
    off = np.array([0, rises.sum()])
    for row in integrators.AT_TRUE_POSITIVES:
        points = POINTS if row.points == "eleven" else GRID
        terms = integrators.terms_of_curves(recall[rises], precision[rises], off, row, points)
        expected = row.at_ranks(integrators.Curve(recall, precision, points))
        assert terms[0] == pytest.approx(expected, abs=1e-15)


def test_each_row_of_the_table_carries_the_number_of_its_kernel() -> None:
    compiled = integrators.AT_TRUE_POSITIVES
    assert [kernels.RULES[row.code()] for row in compiled] == [row.name for row in compiled]
    assert len(compiled) == len(kernels.RULES)


def test_what_is_not_there_is_refused_by_name() -> None:
    known = integrators.integrator("trapezoid")
    strange = integrators.Integrator("no rule", "No rule", known.at_ranks, kernel=9)
    another = integrators.Integrator("no rule", "No rule", known.at_ranks, kernel=3)
    for row in (known, strange, another):
        with pytest.raises(detmap.ProtocolError, match=f"{row.name} has no compiled function"):
            integrators.terms_of_curves(GRID, GRID, np.array([0, 101]), row, GRID)
    with pytest.raises(detmap.ProtocolError, match="no integrator 'no rule'"):
        integrators.integrator("no rule")


@pytest.mark.slow
def test_a_kernel_that_is_not_there_gives_no_number() -> None:
    terms = np.zeros(1)
    kernels.integrate(9, GRID.copy(), GRID.copy(), GRID, terms)
    assert np.isnan(terms).all()


def test_a_kernel_of_another_name_is_refused() -> None:
    """Index 0 is that of the 11-point rule; all-point has the next one."""
    known = integrators.integrator("all_points")
    with pytest.raises(detmap.ProtocolError, match="all_points has no compiled function"):
        known._replace(kernel=0).code()


# ---- rules of every rank, by hand


@pytest.mark.parametrize(("tail", "area"), [("ramp", 0.578125), ("drop", 0.34375)])
def test_trapezoids_under_sampled_points(tail: str, area: float) -> None:
    """The envelope falls from 1 to 0.75 at recall 0.125 and stays there up to recall 0.5. Then it
    falls to 0, along a line to recall 1 (``ramp``) or at once (``drop``).
    """
    curve = integrators.Curve(
        np.array([0.125, 0.25, 0.5]),
        np.array([0.5, 0.5, 0.75]),
        np.array([0, 0.125, 0.25, 0.375, 0.5, 0.75, 1]),
        tail=tail,
    )
    assert integrators.integrator("trapezoid").at_ranks(curve) == area


@pytest.mark.parametrize(("tail", "area"), [("ramp", 0.6171875), ("drop", 0.40625)])
def test_trapezoids_read_a_point_below_the_highest_recall(tail: str, area: float) -> None:
    """At recall 0.4375 the curve is 0.75, at 0.5 it is 0.75 or has dropped to 0."""
    curve = integrators.Curve(
        np.array([0.125, 0.25, 0.375, 0.5]),
        np.array([0.5, 0.5, 0.5, 0.75]),
        np.array([0, 0.4375, 0.5, 0.75, 1]),
        tail=tail,
    )
    assert integrators.integrator("trapezoid").at_ranks(curve) == area


def test_a_step_of_recall_has_the_envelope_of_the_rank_before() -> None:
    """Envelope 0.75, 0.5, 0.5, 0.25: four steps of 0.25 with 0.75, 0.75, 0.5 and 0.5."""
    recall, precision = np.array([0.25, 0.5, 0.75, 1]), np.array([0.75, 0.25, 0.5, 0.25])
    curve = integrators.Curve(recall, precision, GRID)
    assert integrators.integrator("left_envelope").at_ranks(curve) == 0.625


@pytest.mark.parametrize(("n", "area"), [(1, 0), (2, 0.1875), (4, 0.46875)])
def test_trapezoids_from_rank_to_rank(n: int, area: float) -> None:
    """Steps of 0.25 with the mean precisions 0.75, 0.625 and 0.5; a single rank has no step."""
    recall, precision = np.array([0.25, 0.5, 0.75, 1]), np.array([1, 0.5, 0.75, 0.25])
    curve = integrators.Curve(recall[:n], precision[:n], GRID)
    assert integrators.integrator("between_ranks").at_ranks(curve) == area


@pytest.mark.parametrize(("samples", "area"), [(4, 0.4375), (2, 0.4375), (1, 0.375)])
def test_a_curve_at_sampled_scores(samples: int, area: float) -> None:
    """The lowest sample is score 0, so the last rank is never read. One sample reads rank 2 alone:
    precision 0.75 up to recall 0.5.
    """
    curve = integrators.Curve(
        np.array([0.25, 0.5, 0.75]),
        np.array([1, 0.75, 0.5]),
        GRID,
        score=np.array([0.8, 0.4, -0.1]),
        samples=samples,
    )
    assert integrators.integrator("score_samples").at_ranks(curve) == area


def test_eleven_points_in_float32_are_summed_and_then_divided() -> None:
    recall, points = np.array([0.5, 1]), np.array([0, 0.5, 1])
    curve = integrators.Curve(recall, np.array([1, 0.5], dtype=np.float32), points)
    rule = integrators.integrator("eleven_point").at_ranks
    single = rule(curve)
    assert single == float(np.float32(2.5) / np.float32(3))
    double = rule(curve._replace(precision=np.array([1, 0.5])))
    assert double == 1 / 3 + 1 / 3 + 0.5 / 3
    assert single != double


# ---- the recipe of docs/CONTRIBUTING.md: a row, and a compiled function if it is to be fast

PATHS: list[dict[str, object]] = [
    {},
    {"ap.arithmetic": "float32"},
    {"ap.sum": "pairwise"},
    {"ap.pool": "all"},
    {"ranking.equal": "true_first"},
    {"ranking.ties": "input"},
    {"ap.recall_over": "all"},
    {"mean.undefined": "zero"},
]
ROW = """
INTEGRATORS += (Integrator("best_f1", "best F1", lambda curve: _best_f1(curve)KERNEL),)
AT_TRUE_POSITIVES = tuple(row for row in INTEGRATORS if row.kernel >= 0)


def _best_f1(curve):
    both = curve.recall + curve.precision
    return float(np.max(2 * curve.recall * curve.precision / np.where(both > 0, both, 1)))
"""
LOOP = """
@kernel
def best_f1(recall: Any, precision: Any) -> float:
    best = 0.0
    for i in range(recall.size):
        best = max(best, 2 * recall[i] * precision[i] / (recall[i] + precision[i]))
    return best


@kernel
def integrate("""
BRANCH = """    elif code == BEST_F1:
        terms[0] = best_f1(recall, precision)
    else:
        terms[:]"""
COMPILED = (
    ('"grid_envelope", "step")', '"grid_envelope", "step", "best_f1")'),
    ("GRID_ENVELOPE, STEP = ", "GRID_ENVELOPE, STEP, BEST_F1 = "),
    ("    else:\n        terms[:]", BRANCH),
    ("\n@kernel\ndef integrate(", LOOP),
)
RUN = f"""
import detmap, numpy as np
from detmap.core import curves
box = np.array([[20 * i, 0, 10, 10] for i in range(4)], float)
truth = detmap.truth_from_arrays([1] * 4, [1] * 4, box)
away = np.array([[500, 0, 9, 9]], float)
found = detmap.detections_from_arrays(
    truth, [1] * 5, [1] * 5, np.concatenate([box[:2], away, box[2:3], away]), [.9, .8, .7, .6, .5])
for settings in {PATHS}:
    rules = {{"ap.integrator": "best_f1", "metrics": ["AP50"]}} | settings
    result = detmap.evaluate(truth, found, "coco-bbox", settings=rules)
    weighted = detmap.summarize(result.matches, weights=[2.0])
    for each in (result, weighted):
        (value,) = each.metrics.values()
        assert abs(value - .75) < 1e-6, (settings, value)
"""


@pytest.mark.slow
@pytest.mark.parametrize("compiled", [False, True])
def test_the_recipe_works_on_every_path(tmp_path: Path, compiled: bool) -> None:
    """Best F1 at three of four objects in four rows: P and R 3/4."""
    package = copy_without(tmp_path) / "detmap"
    table = package / "core" / "protocol" / "integrators.py"
    loops = package / "kernels" / "integrate.py"
    with table.open("a") as file:
        file.write(ROW.replace("KERNEL", ", kernel=4" if compiled else ""))
    text = loops.read_text()
    for old, new in COMPILED if compiled else ():
        assert text.count(old) == 1
        text = text.replace(old, new)
    loops.write_text(text)
    done = python("-c", RUN, cwd=tmp_path, NUMBA_DISABLE_JIT=1, PYTHONPATH=tmp_path)
    assert done.code == 0, done.err


def add_in_order(parts: Any) -> Any:
    """Each partial sum is rounded; ``sum`` of Python 3.12 and later corrects these errors."""
    return np.cumsum(parts)[-1]


@pytest.mark.parametrize("kind, add", [("pairwise", np.sum), ("running", add_in_order)])
def test_an_area_is_summed_as_the_protocol_says(kind: str, add: Any) -> None:
    recall, heights = np.arange(1, 1001) / 1000, np.linspace(0.9, 0.1, 1000)
    parts = np.diff(np.append(0.0, recall)) * heights
    assert np.sum(parts) != add_in_order(parts)
    curve = integrators.Curve(recall, heights, GRID, sum=kind)
    assert curve.area(heights) == add(parts)


def test_a_curve_sampled_at_scores_begins_with_the_first_rank() -> None:
    """At scores above 0.75, 0.5, 0.25 and 0 the list ends with the ranks 1, 2, 2 and 2."""
    recall, precision = np.array([0.5, 1.0]), np.array([1.0, 0.5])
    curve = integrators.Curve(recall, precision, GRID, score=np.array([0.95, 0.5]), samples=4)
    rule = integrators.integrator("score_samples")
    assert rule.at_ranks(curve) == pytest.approx(0.5 * 1 + 0.5 * 0.5)
