"""Against pycocotools: equal in every bit, on data drawn to be troublesome."""

import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import detmap
from detmap.core.curves import scores as curves
from tests.reference import coco, official
from tests.support.drawing import CocoData, coco_data, draw_coco, many_detections, round_recall
from tests.support.drawn_tables import read_coco
from tests.support.tier import drawn

relaxed = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
ARRAYS = ("precision", "recall", "scores")


def assert_parity(data: CocoData, **params: object) -> None:
    """Arrays, and under stock settings the twelve stats, equal in every bit."""
    truth, detections = read_coco(*data)
    result = detmap.evaluate(truth, detections, "coco-bbox", settings=as_settings(params))
    expected = official.run(*data, **params)
    found = curves.coco_arrays(result.matches)
    for name in ARRAYS:
        assert found[name].shape == expected.eval[name].shape
        assert (found[name] == expected.eval[name]).all(), name
    if not params:
        stats = [-1.0 if math.isnan(value) else value for value in result.metrics.values()]
        assert stats == expected.stats.tolist()


def as_settings(params: dict[str, object]) -> dict[str, object]:
    """pycocotools' parameters as keys of the protocol."""
    keys = {
        "iouThrs": "iou.thresholds",
        "recThrs": "ap.grid",
        "maxDets": "limits.max_dets",
        "areaRng": "subsets",
    }
    given = {keys[name]: np.asarray(value).tolist() for name, value in params.items()}
    if "subsets" in given:
        given["subsets"] = {
            f"range-{i}": {"area": bounds} for i, bounds in enumerate(given["subsets"])
        }
    return given


@settings(relaxed, max_examples=drawn(100))
@given(coco_data())
def test_arrays_and_stats_are_those_of_pycocotools(data: CocoData) -> None:
    assert_parity(data)


@pytest.mark.slow
@settings(relaxed, max_examples=drawn(500))
@given(coco_data())
def test_arrays_and_stats_of_many_sets_are_those_of_pycocotools(data: CocoData) -> None:
    assert_parity(data)


@settings(relaxed, max_examples=drawn(40))
@given(many_detections())
def test_more_detections_than_the_limit(data: CocoData) -> None:
    assert_parity(data)


@pytest.mark.slow
@settings(relaxed, max_examples=drawn(40))
@given(round_recall())
def test_recall_exactly_at_a_grid_point(data: CocoData) -> None:
    assert_parity(data)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(drawn(60)))
def test_crowded_images_where_objects_are_sorted(seed: int) -> None:
    assert_parity(
        draw_coco(
            np.random.default_rng(seed), n_images=2, n_classes=2, max_objects=90, max_detections=90
        )
    )


# 32 multiples of 1/64: exact in binary, and many more than fit the small word of verdicts
many_thresholds = st.sets(st.integers(1, 64), min_size=1, max_size=64).map(
    lambda k: np.array(sorted(k)) / 64
)
odd_thresholds = st.lists(st.floats(0.01, 1), min_size=1, max_size=8, unique=True).map(
    lambda t: np.array(sorted(t))
)
limits = st.lists(st.integers(1, 12), min_size=1, max_size=4, unique=True).map(sorted)
ranges = st.lists(
    st.tuples(
        st.sampled_from([0, 10, 50, 100, 1024]), st.sampled_from([100, 200, 1024, 9216, 1e10])
    )
    .filter(lambda pair: pair[0] <= pair[1])
    .map(list),
    min_size=1,
    max_size=4,
    unique_by=tuple,
)
points = st.sampled_from(
    [np.linspace(0, 1, 11), np.array([0.0, 0.5, 1.0]), np.array([0.3, 0.30000000000000004])]
)


@pytest.mark.slow
@settings(relaxed, max_examples=drawn(120))
@given(coco_data(), st.one_of(many_thresholds, odd_thresholds), limits, ranges, points)
def test_other_settings_give_the_arrays_of_pycocotools(
    data: CocoData, iou: np.ndarray, max_dets: list[int], areas: list[list[float]], grid: np.ndarray
) -> None:
    assert_parity(data, iouThrs=iou, maxDets=max_dets, areaRng=areas, recThrs=grid)


@settings(relaxed, max_examples=drawn(60))
@given(coco_data(zero_id=True))
def test_an_object_with_id_0_is_an_object(data: CocoData) -> None:
    """pycocotools takes the match with it for no match; the twin, and detmap, do not."""
    truth, detections = read_coco(*data)
    found = curves.coco_arrays(detmap.evaluate(truth, detections).matches)
    expected = coco.evaluate(*data)
    for name in ARRAYS:
        assert (found[name] == expected[name]).all(), name


@pytest.mark.parametrize("seed", range(drawn(20)))
def test_stock_numbers_under_other_names_when_settings_change(seed: int) -> None:
    """A limit, an area and a threshold of one's own: each row is the mean of its own cells of
    pycocotools' arrays."""
    data = draw_coco(np.random.default_rng(seed))
    iou, areas, limits = np.array([0.3, 0.5, 0.6]), [[0, 1e10], [0, 50], [50, 400]], [1, 2, 7]
    expected = official.evaluate(*data, iouThrs=iou, areaRng=areas, maxDets=limits)
    truth, detections = read_coco(*data)
    result = detmap.evaluate(
        truth,
        detections,
        settings={
            "iou.thresholds": [0.3, 0.5, 0.6],
            "limits.max_dets": limits,
            "subsets": {
                "all": {"area": [0, 1e10]},
                "tiny": {"area": [0, 50]},
                "small": {"area": [50, 400]},
            },
            "metrics": ["AP", "AP30", "AP60", "AP@subset", "AR@max_dets", "AR@subset"],
        },
    )
    wanted = {
        "AP": expected["precision"][..., 0, 2],
        "AP30": expected["precision"][:1, ..., 0, 2],
        "AP60": expected["precision"][2:, ..., 0, 2],
        "AP-tiny": expected["precision"][..., 1, 2],
        "APs": expected["precision"][..., 2, 2],
        "AR1": expected["recall"][..., 0, 0],
        "AR2": expected["recall"][..., 0, 1],
        "AR7": expected["recall"][..., 0, 2],
        "AR-tiny": expected["recall"][..., 1, 2],
        "ARs": expected["recall"][..., 2, 2],
    }
    assert list(result.metrics) == list(wanted)
    for name, cells in wanted.items():
        mean = np.mean(cells[cells > -1]) if (cells > -1).any() else math.nan
        assert result.metrics[name] == mean or (
            math.isnan(mean) and math.isnan(result.metrics[name])
        ), name
