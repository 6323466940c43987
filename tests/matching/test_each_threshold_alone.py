"""The matches at an IoU threshold do not depend on the other thresholds of the protocol."""

import itertools

import numpy as np
import pytest

import detmap
from detmap.core.adapters.in_memory.arrays import detections_from_arrays, truth_from_arrays
from detmap.core.tables import Detections, Truth
from tests.support.tier import drawn

THRESHOLDS = [0.3, 0.5, 0.6, 0.75]


def crowd(rng: np.random.Generator) -> tuple[Truth, Detections]:
    """Boxes of few sizes at few places: many equal overlaps."""
    n, m = (int(each) for each in rng.integers(2, 24, 2))
    base = 4 * rng.integers(0, 6, (3, 2))

    def boxes(size: int) -> np.ndarray:
        corners = base[rng.integers(0, 3, size)] + rng.integers(0, 3, (size, 2))
        return np.column_stack([corners, rng.integers(4, 9, (size, 2))]).astype(float)

    image, label = rng.integers(0, 2, (2, n))
    names = {0: "a", 1: "b"}
    truth = truth_from_arrays(image, label, boxes(n), images=[0, 1], categories=names)
    image, label = rng.integers(0, 2, (2, m))
    return truth, detections_from_arrays(truth, image, label, boxes(m), rng.integers(1, 4, m) / 4)


def words(tables: tuple[Truth, Detections], settings: dict[str, object]) -> np.ndarray:
    """(2, n, A) the words of true positives and of ignored detections."""
    rules = detmap.load_protocol("coco-bbox").override({**settings, "metrics": ["AP"]})
    matches = detmap.match(*tables, rules)
    return np.stack([matches.tp, matches.ignored])


def require_same(tables: tuple[Truth, Detections], settings: dict[str, object]) -> None:
    together = words(tables, {**settings, "iou.thresholds": THRESHOLDS})
    for t, threshold in enumerate(THRESHOLDS):
        alone = words(tables, {**settings, "iou.thresholds": [threshold]})
        bit = (together >> together.dtype.type(t)) & together.dtype.type(1)
        assert np.array_equal(bit, alone & alone.dtype.type(1)), (threshold, settings)


@pytest.mark.parametrize("equal", ["last", "sorted", "sorted_own"])
def test_a_better_object_out_of_reach_is_no_candidate(equal: str) -> None:
    """The small object is reached by its tolerance, the large one with a higher IoU is not."""
    objects = [[0.0, 0.0, 6.0, 6.0], [0.0, 0.0, 9.0, 20.0]]
    truth = truth_from_arrays([1, 1], [1, 1], objects)
    detections = detections_from_arrays(truth, [1], [1], [[0.0, 0.0, 9.0, 9.0]], [0.5])
    settings: dict[str, object] = {"matching.equal": equal, "iou.tolerance": 3.1}
    require_same((truth, detections), settings)
    assert words((truth, detections), {**settings, "iou.thresholds": THRESHOLDS})[0, 0, 0] == 15


@pytest.mark.parametrize("rule", ["best_free", "best_any"])
@pytest.mark.parametrize("equal", ["sorted", "sorted_own"])
def test_thresholds_alone_and_together_match_the_same(rule: str, equal: str) -> None:
    for seed, tolerance in itertools.product(range(drawn(12)), (0.0, 0.3, 10.0)):
        settings: dict[str, object] = {
            "matching.rule": rule,
            "matching.equal": equal,
            "iou.tolerance": tolerance,
        }
        require_same(crowd(np.random.default_rng(seed)), settings)
