"""Counts of few images by one kernel are those of the matching rules."""

from typing import Any

import numpy as np
import pytest

from detmap.core.adapters.in_memory.arrays import detections_from_arrays, truth_from_arrays
from detmap.core.matching.counting import count_at, count_boxes, counts_boxes
from detmap.core.protocol import Protocol, load
from detmap.core.tables import Detections, Truth
from tests.support.tier import drawn

RULES = (
    ("coco-bbox", {}),
    ("coco-bbox", {"matching.equal": "first"}),
    ("voc2007", {}),
    ("voc2012", {"matching.equal": "last"}),
    ("voc2012", {"iou.tolerance": 10.0}),  # lower thresholds of small objects
    ("uavdt", {}),
)


def crowded(seed: int) -> tuple[Truth, Detections]:
    """Three images of equal boxes and scores, regions and difficult objects."""
    rng = np.random.default_rng(seed)

    def boxes(n: int) -> Any:
        return np.concatenate([rng.integers(0, 5, (n, 2)), rng.integers(1, 4, (n, 2))], 1) * 4.0

    n, m = rng.integers(0, 15, 2).tolist()
    truth = truth_from_arrays(
        np.sort([1, 2, 3, *rng.integers(1, 4, n)]),
        [1, 2, 3, *rng.integers(1, 4, n)],
        boxes(n + 3),
        crowd=rng.random(n + 3) < 0.3,
    )
    scores = rng.choice([0.25, 0.5, 0.75, 1.0], m)
    images, labels = np.sort(rng.integers(1, 4, m)), rng.integers(1, 4, m)
    return truth, detections_from_arrays(truth, images, labels, boxes(m), scores)


def by_rules(data: tuple[Truth, Detections], protocol: Protocol, point: Any) -> Any:
    """The counts of the highest scores by the matching rules."""
    truth, detections = data
    detections = detections.take(np.flatnonzero(detections.score >= point[0]))
    return count_at(truth, detections, protocol, point, highest=True)


@pytest.mark.parametrize(("name", "settings"), RULES)
def test_the_kernel_counts_like_the_rules(name: str, settings: dict[str, Any]) -> None:
    protocol = load(name).override(settings)
    assert counts_boxes(protocol)
    for seed in range(drawn(800)):
        data = crowded(seed)
        point = [-np.inf, 0.5, 0.75][seed % 3], 0, seed % len(protocol.thresholds())
        assert count_boxes(*data, protocol, point) == by_rules(data, protocol, point), seed


def test_what_only_the_rules_can_tell() -> None:
    truth, detections = crowded(1)
    one, all_scores = load("coco-bbox").override({"limits.max_dets": [1]}), (0.0, 0, 0)
    assert count_boxes(truth, detections, one, all_scores) is None
    backwards = detections.take(np.arange(len(detections))[::-1])
    assert count_boxes(truth, backwards, load("voc2012"), all_scores) is None
    tiny = np.full((1, 4), 1e-200)
    truth = truth_from_arrays([1], [1], tiny)
    found = detections_from_arrays(truth, [1], [1], tiny, [0.5])
    assert count_boxes(truth, found, load("coco-bbox"), all_scores) is None
    for name, settings in (("lvis", {}), ("coco-bbox", {"boxes.empty": "drop"})):
        assert not counts_boxes(load(name).override(settings))
