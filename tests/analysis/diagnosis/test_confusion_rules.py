"""The confusion matrices of other tools, restated image by image, on sets full of tied scores."""

from typing import Any

import numpy as np
import pytest

import detmap
from detmap.analysis.diagnosis.confusion import confusion
from detmap.core.tables import Detections, Truth
from tests.support.tier import drawn

Array = np.ndarray[Any, Any]


def draw(seed: int) -> tuple[Truth, Detections]:
    """Boxes in heaps: up to 40 detections of few scores and 12 objects per image."""
    rng = np.random.default_rng(seed)
    step = rng.choice([1.0, 3.0, 7.3])

    def rows(n: int) -> tuple[Array, Array, Array]:
        boxes = np.hstack([rng.integers(0, 4, (n, 2)), rng.integers(2, 6, (n, 2))]) * step
        return np.sort(rng.integers(1, 4, n)), rng.integers(1, 4, n), boxes

    truth = detmap.truth_from_arrays(
        *rows(int(rng.integers(0, 36))), images=[1, 2, 3], categories={1: "a", 2: "b", 3: "c"}
    )
    some = rows(int(rng.integers(0, 120)))
    scores = rng.choice([0.2, 0.25, 0.5, 0.9], len(some[0]))
    return truth, detmap.detections_from_arrays(truth, *some, scores)


def corners(boxes: Array) -> Array:
    return np.hstack([boxes[:, :2], boxes[:, :2] + boxes[:, 2:]])


def single_ious(objects: Array, found: Array) -> Array:
    """(G, D) in float32, with 1e-7 in the denominator. Source: ultralytics metrics.py, box_iou."""
    one, other = (corners(each).astype(np.float32) for each in (objects, found))
    low = np.maximum(one[:, None, :2], other[None, :, :2])
    high = np.minimum(one[:, None, 2:], other[None, :, 2:])
    shared = np.maximum(high - low, 0).prod(axis=2)
    areas = [(each[:, 2:] - each[:, :2]).prod(axis=1) for each in (one, other)]
    return np.asarray(
        shared / (areas[0][:, None] + areas[1][None] - shared + np.float32(1e-7)), np.float32
    )


def claimed(iou: Array, score: Array, least: float) -> list[tuple[int, int]]:
    """(object, detection): by score, ties in file order, each its best free object.

    Source: ultralytics 8.4.190 metrics.py, ConfusionMatrix.process_batch.
    """
    free, pairs = iou.copy(), []
    for d in sorted(range(len(score)), key=lambda d: -score[d]):
        if len(free) and free[:, d].max() > least:
            g = int(free[:, d].argmax())
            pairs.append((g, d))
            free[g] = 0
    return pairs


def unique_pairs(iou: Array, score: Array, least: float) -> list[tuple[int, int]]:
    """(object, detection): each detection's best pair, then each object's.

    Source: ultralytics 8.0.200 metrics.py, ConfusionMatrix.process_batch.
    """
    g, d = np.nonzero(iou > least)
    pairs = np.stack([g, d, iou[g, d]], axis=1).astype(np.float32)
    if len(pairs) > 1:
        for side in (1, 0):
            pairs = pairs[pairs[:, 2].argsort()[::-1]]
            pairs = pairs[np.unique(pairs[:, side], return_index=True)[1]]
    return [(int(g), int(d)) for g, d, _ in pairs]


PAIRS = {"ultralytics-8.4": claimed, "ultralytics-8.0": unique_pairs}


def matrix_of(truth: Truth, found: Detections, rule: str, least: float) -> Array:
    """Rows are true classes; detections reach the rule by score, as suppression leaves them."""
    matrix = np.zeros((4, 4), dtype=np.int64)
    for i in range(len(truth.images)):
        objects = np.flatnonzero(truth.image == i)
        rows = np.flatnonzero((found.image == i) & (found.score > 0.25))
        rows = rows[np.argsort(-found.score[rows], kind="stable")]
        iou = single_ious(truth.boxes[objects], found.boxes[rows])
        pairs = PAIRS[rule](iou, found.score[rows], least)
        for g, d in pairs:
            matrix[truth.label[objects[g]], found.label[rows[d]]] += 1
        for g in set(range(len(objects))) - {g for g, _ in pairs}:
            matrix[truth.label[objects[g]], 3] += 1
        if rule == "ultralytics-8.4" or pairs:
            for d in set(range(len(rows))) - {d for _, d in pairs}:
                matrix[3, found.label[rows[d]]] += 1
    return matrix


@pytest.mark.parametrize("rule", PAIRS)
@pytest.mark.parametrize("seed", range(drawn(160)))
def test_tied_scores_are_visited_as_the_tool_visits_them(rule: str, seed: int) -> None:
    truth, found = draw(seed)
    diagnosis = detmap.diagnose(truth, found, "coco-bbox")
    for iou in (0.45, 0.6):
        matrix = confusion(diagnosis, rule=rule, iou=iou).matrix
        assert np.array_equal(matrix, matrix_of(truth, found, rule, iou))


def test_a_tied_detection_listed_first_claims_the_object() -> None:
    truth = detmap.truth_from_arrays([1], [1], [[0, 0, 10, 10]], categories={1: "a", 2: "b"})
    boxes = [[0, 0, 10, 8], [0, 0, 10, 10]]
    found = detmap.detections_from_arrays(truth, [1, 1], [2, 1], boxes, [0.9, 0.9])
    diagnosis = detmap.diagnose(truth, found, "coco-bbox")
    matrix = confusion(diagnosis, rule="ultralytics-8.4").matrix
    assert matrix.tolist() == [[0, 1, 0], [0, 0, 0], [1, 0, 0]]
