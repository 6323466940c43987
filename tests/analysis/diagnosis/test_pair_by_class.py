"""The confusion matrix of crowded images: pairs without a list of them equal the sorted list."""

import numpy as np
import pytest

from detmap.analysis.diagnosis import confusion as module
from detmap.analysis.diagnosis import diagnose, mistakes, overlapping_pairs
from detmap.analysis.diagnosis.confusion import confusion
from detmap.analysis.kernels.diagnosis import Rows, pair_by_class
from detmap.analysis.row_overlaps import edges, ious
from detmap.core.adapters.in_memory.arrays import detections_from_arrays, truth_from_arrays
from detmap.core.base import pair_limits
from detmap.core.tables import Detections, Truth
from detmap.errors import CrowdedError
from tests.analysis.diagnosis.troublesome_tables import tables
from tests.support.tier import drawn

NO_END = 2**62


def draw_rows(rng: np.random.Generator, n_images: int, most: int) -> Rows:
    """Boxes on a coarse grid: many equal boxes, equal overlaps, and boxes without area."""
    sizes = rng.integers(0, most + 1, n_images)
    off = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    corner = rng.integers(0, 4, (off[-1], 2)).astype(np.float64)
    side = rng.integers(0, 5, (off[-1], 2)).astype(np.float64)
    area = side.prod(axis=1)[:, None]
    edges = np.concatenate([corner, corner + side, area], axis=1)
    return Rows(off, rng.integers(0, 3, off[-1]).astype(np.int32), edges)


def sorted_pairs(detections: Rows, objects: Rows, least: float) -> list[int]:
    """The detection of each object: of all pairs in order, those whose sides are both free."""
    taken = [-1] * len(objects.label)
    for i in range(len(detections.off) - 1):
        rows, places = (
            np.arange(each.off[i], each.off[i + 1]).tolist() for each in (detections, objects)
        )
        listed = []
        for d in rows:
            for g in places:
                overlap = float(ious(detections.edges[d : d + 1], objects.edges[g : g + 1])[0])
                if overlap >= least:
                    other = bool(detections.label[d] != objects.label[g])
                    listed.append((other, -overlap, d, g))
        free = set(rows)
        for _, _, d, g in sorted(listed):
            if d in free and taken[g] < 0:
                taken[g] = d
                free.discard(d)
    return taken


def paired(detections: Rows, objects: Rows, least: float, most: int = NO_END) -> list[int] | None:
    found = np.empty(len(objects.label), dtype=np.int64)
    n = pair_by_class(detections, objects, least, most, found, np.empty(len(found)))
    return None if n < 0 else found.tolist()


@pytest.mark.parametrize("seed", range(drawn(48)))
def test_pairs_equal_those_of_the_sorted_list(seed: int) -> None:
    rng = np.random.default_rng(seed)
    detections, objects = (draw_rows(rng, 40, 2 + seed % 7) for _ in range(2))
    for least in (0.0, 0.25, 0.5):
        assert paired(detections, objects, least) == sorted_pairs(detections, objects, least)


def test_the_work_has_an_end() -> None:
    """Each new detection takes the object of the last one, which looks for another."""
    n = 30
    left, size = np.zeros((n, 2)), 1.0 + np.arange(n, dtype=np.float64)[:, None]
    rows = [
        Rows(
            np.array([0, n], dtype=np.int64),
            np.zeros(n, dtype=np.int32),
            np.concatenate([left, side, side, side**2], axis=1),
        )
        for side in (100 + size[::-1], size)
    ]
    found = np.empty(n, dtype=np.int64)
    count = pair_by_class(*rows, 0.0, NO_END, found, np.empty(n))
    assert found.tolist() == sorted_pairs(*rows, 0.0)
    assert count > 2 * n * n
    assert paired(*rows, 0.0, count) is not None
    assert paired(*rows, 0.0, count - 1) is None


@pytest.mark.parametrize("seed", range(drawn(24)))
@pytest.mark.parametrize("rules", ["coco-bbox", "voc2012"])
def test_the_matrix_equals_that_of_the_listed_pairs(seed: int, rules: str) -> None:
    truth, detections = tables(seed)
    diagnosis = diagnose(truth, detections, rules)
    found = confusion(diagnosis, iou=0.4)
    rows = diagnosis.order().astype(np.int64)
    keep = diagnosis.counted()
    rows = rows[(keep & (detections.score >= found.confidence))[rows]]
    objects = np.flatnonzero(diagnosis.to_find)
    objects = objects[np.argsort(truth.image[objects], kind="stable")]
    inclusive = diagnosis.protocol.boxes.extent == "inclusive"
    met = overlapping_pairs.pairs(
        truth, detections, rows, objects, inclusive=inclusive, least=0.4, strict=False
    )
    det, obj, _ = module._class_first(diagnosis, met)
    matrix = np.zeros_like(found.matrix)
    np.add.at(matrix, (truth.label[obj], detections.label[det]), 1)
    assert np.array_equal(found.matrix[:-1, :-1], matrix[:-1, :-1])
    assert found.matrix[-1].sum() == len(rows) - len(det)
    assert found.matrix[:, -1].sum() == len(objects) - len(obj)


def crowd(n: int) -> tuple[Truth, Detections]:
    """So many equal boxes on one image."""
    columns = [1] * n, [1] * n, np.tile([0.0, 0.0, 9.0, 9.0], (n, 1))
    truth = truth_from_arrays(*columns, images=[1], categories={1: "c"})
    return truth, detections_from_arrays(truth, *columns, [0.5] * n)


def test_too_crowded_images_are_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    truth, detections = crowd(40)
    diagnosis = diagnose(truth, detections, "voc2012")
    assert confusion(diagnosis).matrix[0, 0] == 40
    monkeypatch.setattr(pair_limits, "MOST_COMPARED", 1599)
    monkeypatch.setattr(pair_limits, "COMPARED_PER_ROW", 1)
    with pytest.raises(CrowdedError, match="confusion: the images are too crowded: pairing takes"):
        confusion(diagnosis)
    with pytest.raises(CrowdedError, match=r"diagnose: .* 3,200 pairs of boxes"):
        diagnose(truth, detections, "voc2012")
    with pytest.raises(CrowdedError, match=r"diagnose: .* 1,600 pairs of boxes"):
        confusion(diagnosis, rule="supervision", confidence=0.0)
    monkeypatch.setattr(pair_limits, "MOST_COMPARED", 1600 * overlapping_pairs.SLOWER)
    monkeypatch.setattr(pair_limits, "MOST_LISTED", 1599)
    monkeypatch.setattr(pair_limits, "LISTED_PER_ROW", 1)
    with pytest.raises(CrowdedError, match="confusion: the boxes are too crowded: more than 1,599"):
        confusion(diagnosis, rule="supervision", confidence=0.0)


@pytest.mark.parametrize("seed", range(drawn(24)))
@pytest.mark.parametrize("rules", ["coco-bbox", "voc2012"])
def test_objects_labeled_twice_are_those_of_all_pairs(seed: int, rules: str) -> None:
    rng = np.random.default_rng(seed)
    n = 60
    corner, side = rng.integers(0, 4, (n, 2)), rng.integers(28, 34, (n, 2))
    labels, boxes = rng.integers(1, 4, n), np.concatenate([corner, side], axis=1).astype(float)
    columns = rng.integers(1, 4, n).tolist(), labels.tolist(), boxes
    names = {1: "a", 2: "b", 3: "c"}
    truth = truth_from_arrays(*columns, images=[1, 2, 3], categories=names)
    diagnosis = diagnose(truth, detections_from_arrays(truth, *columns, [0.5] * n), rules)
    own = edges(truth, inclusive=rules == "voc2012")
    expected = [
        g
        for g in range(n)
        if any(
            ious(own[g : g + 1], own[h : h + 1])[0] >= mistakes.TWICE
            for h in range(n)
            if h != g and (truth.image[h], truth.label[h]) == (truth.image[g], truth.label[g])
        )
    ]
    assert sorted(mistakes._twice(diagnosis).tolist()) == expected
