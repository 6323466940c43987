"""Calibration beside a slow reference, and which pairs a confusion matrix counts first."""

from bisect import bisect_right
from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest

import detmap
from detmap.analysis.diagnosis import Diagnosis, confusion, diagnose
from detmap.analysis.diagnosis.breakdowns import slices
from detmap.analysis.diagnosis.calibration import FEATURES, POSITION, SIZE, calibration
from detmap.analysis.diagnosis.tide import tidecv

WIDTH, HEIGHT = 200, 80


def diagnosed(seed: int) -> Diagnosis:
    """Many detections, half of them right, with scores on the edges of bins too."""
    rng = np.random.default_rng(seed)
    n = 120
    boxes = np.hstack([rng.uniform(0, (150, 40), (n, 2)), rng.uniform(4, (50, 40), (n, 2))])
    truth = detmap.truth_from_arrays(np.arange(n), np.ones(n, int), boxes)
    sizes = {"width": np.full(n, float(WIDTH)), "height": np.full(n, float(HEIGHT))}
    truth = replace(truth, images=replace(truth.images, **sizes))
    found = np.where(rng.random((n, 1)) < 0.5, boxes, boxes * [1, 1, 0.3, 0.3])
    score = rng.choice(np.linspace(0, 1, 21), n)
    found = detmap.detections_from_arrays(truth, np.arange(n), np.ones(n, int), found, score)
    return diagnose(truth, found, "coco-bbox")


def place(value: float, bins: int) -> int:
    """The half-open bin of a value; the last one has its upper edge too."""
    return min(bisect_right(np.linspace(0, 1, bins + 1).tolist(), value) - 1, bins - 1)


def deviation(
    found: Diagnosis, names: tuple[str, ...], bins: int, least: int, min_score: float = 0
) -> tuple[float, list[float]]:
    """The expected error, and the deviation of each cell, detection by detection."""
    cells: dict[tuple[int, ...], list[tuple[float, bool]]] = defaultdict(list)
    table, tiny = found.detections, float(np.finfo(np.float32).eps)
    for score, box, kind in zip(table.score, table.boxes, found.kind, strict=True):
        if score < min_score:
            continue
        clipped = min(max(float(score), tiny), 1 - tiny)
        x, y, w, h = box.tolist()
        known = {"cx": (x + w / 2) / WIDTH, "cy": (y + h / 2) / HEIGHT}
        known |= {"w": w / WIDTH, "h": h / HEIGHT}
        cell = (place(clipped, bins), *(place(known[name], bins) for name in names))
        cells[cell].append((clipped, kind == 0))
    n = sum(map(len, cells.values()))
    total, apart = 0.0, []
    for rows in cells.values():
        scores, right = zip(*rows, strict=True)
        apart.append(abs(sum(right) - sum(scores)) / len(rows))
        total += apart[-1] * len(rows) / n if len(rows) >= least else 0.0
    return total, apart


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("least", [2, 3])
def test_calibration_is_that_of_the_reference(seed: int, least: int) -> None:
    found = diagnosed(seed)
    own = calibration(found, n_bins=20, box_bins=(4, 3), least=least)
    ece, apart = deviation(found, (), 20, 1)
    assert own.ece == pytest.approx(ece)
    assert own.mce == pytest.approx(max(apart))
    assert own.ace == pytest.approx(sum(apart) / len(apart))
    for value, names, bins in (
        *((own.d_ece, FEATURES, 3), (own.d_ece_position, POSITION, 4)),
        (own.d_ece_size, SIZE, 4),
    ):
        assert value == pytest.approx(deviation(found, names, bins, least)[0])
    assert len({own.ece, own.mce, own.ace, own.d_ece_position, own.d_ece_size}) == 5


def test_detections_at_the_lowest_score_take_part() -> None:
    found = diagnosed(1)
    score = found.detections.score
    level = float(np.sort(score)[60])
    own = calibration(found, min_score=level)
    assert own.n == int((score >= level).sum()) > int((score > level).sum())
    assert own.ece == pytest.approx(deviation(found, (), 20, 1, level)[0])


def two_classes(rows: list[tuple[int, list[float], float]]) -> Diagnosis:
    """Two objects that overlap by a half, of the classes 1 and 2, and detections."""
    objects = [[0.0, 0, 30, 20], [10.0, 0, 30, 20]]
    truth = detmap.truth_from_arrays([1, 1], [1, 2], objects)
    label, boxes, score = (list(column) for column in zip(*rows, strict=True))
    found = detmap.detections_from_arrays(truth, [1] * len(rows), label, boxes, score)
    return diagnose(truth, found, "coco-bbox")


def test_a_pair_classless_counts_before_a_larger_overlap() -> None:
    """A detection of class 1, exactly on the object of class 2, at IoU 0.5 with its own."""
    found = two_classes([(1, [10.0, 0, 30, 20], 0.9)])
    for rule in ("detmap", "supervision"):
        matrix = confusion.confusion(found, rule=rule, confidence=0, iou=0.4).matrix
        assert matrix.tolist() == [[1, 0, 0], [0, 0, 1], [0, 0, 0]]
    met = np.array([0, 0]), np.array([0, 1]), np.array([0.5, 1.0])
    det, obj, _ = confusion._class_first(found, met)
    assert (det.tolist(), obj.tolist()) == ([0], [0])


def test_ultralytics_pairs_the_higher_score_before_the_larger_overlap() -> None:
    rows = [(1, [0.0, 0, 30, 20], 0.5), (2, [0.0, 0, 30, 16], 0.9)]
    found = two_classes(rows)
    newer = confusion.confusion(found, rule="ultralytics-8.4").matrix
    assert newer[0].tolist() == [0, 1, 0]  # the object is taken for class 2
    older = confusion.confusion(found, rule="ultralytics-8.0").matrix
    assert older[0].tolist() == [1, 0, 0]


@pytest.mark.parametrize(("most", "dense"), [(2, True), (1, False)])
def test_a_matrix_of_many_classes_is_given_as_counts(
    monkeypatch: pytest.MonkeyPatch, most: int, dense: bool
) -> None:
    monkeypatch.setattr(confusion, "MOST_DENSE", most)
    made = confusion.confusion(two_classes([(1, [0.0, 0, 30, 20], 0.9)])).to_dict()
    assert (made["matrix"] is not None) == dense
    assert ("counts" in made) != dense


def test_a_false_positive_counts_in_every_slice_that_only_objects_have() -> None:
    """By crowding: the false positive of the highest score halves each AP."""
    box = [0.0, 0, 20, 20]
    truth = detmap.truth_from_arrays([1, 2, 2], [1] * 3, [box, box, [8.0, 0, 20, 20]])
    boxes = [[60.0, 60, 20, 20], box, box, [8.0, 0, 20, 20]]
    found = detmap.detections_from_arrays(truth, [1, 1, 2, 2], [1] * 4, boxes, [0.9, 0.8, 0.8, 0.8])
    shown = {
        each.name: each.ap
        for each in slices(diagnose(truth, found, "coco-bbox"))
        if each.by == "crowding"
    }
    assert shown == {"alone": pytest.approx(0.5), "0.3 to 0.5 IoU": pytest.approx(2 / 3, abs=0.01)}


def test_slices_of_objects_per_image_count_what_is_to_be_found() -> None:
    """A crowd is no object of its image, and the area of an object is no slice of its own."""
    box, other = [0.0, 0, 20, 20], [50.0, 50, 20, 20]
    truth = detmap.truth_from_arrays(
        [1, 1, 2, 2], [1] * 4, [box, other] * 2, crowd=[False, True, False, False]
    )
    found = detmap.detections_from_arrays(truth, [1], [1], [box], [0.9])
    shown = slices(diagnose(truth, found, "coco-bbox"))
    by_image = {each.name: each.objects for each in shown if each.by == "objects per image"}
    assert by_image == {"1": 1, "2 to 3": 2}
    assert "area" not in {each.by for each in shown}


def test_by_tidecv_a_fix_ranks_errors_before_true_positives_of_one_score() -> None:
    """AP without a fix is 51 of 101 points; without the missed object it is a half, not 1."""
    box, other = [0.0, 0, 20, 20], [50.0, 50, 20, 20]
    truth = detmap.truth_from_arrays([1, 1], [1, 1], [box, other])
    far = [90.0, 0, 5, 5]
    found = detmap.detections_from_arrays(truth, [1, 1], [1, 1], [box, far], [0.5, 0.5])
    made = tidecv(truth, found)
    assert made.ap == pytest.approx(100 * 51 / 101)
    assert made.gain["Miss"] == pytest.approx(50 - 100 * 51 / 101)
    assert made.to_dict()["Miss"] == 0
