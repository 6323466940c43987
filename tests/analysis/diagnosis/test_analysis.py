"""The pass: against a slow twin, its laws, what it refuses."""

import dataclasses
import tracemalloc

import numpy as np
import pytest

import detmap
from detmap.analysis.diagnosis import diagnose, merge, overlapping_pairs
from detmap.analysis.diagnosis.analysis import OF_DETECTIONS, OF_OBJECTS
from detmap.analysis.diagnosis.mistakes import suspects
from detmap.analysis.diagnosis.tide import ERRORS, tide, tidecv
from detmap.errors import DataError, MergeError
from tests.analysis.diagnosis.troublesome_tables import tables
from tests.analysis.diagnosis.twin import iou, tide_counts
from tests.protocol.test_keys import A, B, data
from tests.support.tier import drawn

SEEDS = range(drawn(60))


@pytest.mark.parametrize("seed", SEEDS)
def test_best_overlaps_are_those_of_a_slow_twin(seed: int) -> None:
    truth, detections = tables(seed)
    found = diagnose(truth, detections, "coco-bbox")
    for d in range(len(detections)):
        here = [g for g in np.flatnonzero(found.to_find) if truth.image[g] == detections.image[d]]
        for same, overlap, place in (
            (True, found.same[d], found.same_object[d]),
            (False, found.other[d], found.other_object[d]),
        ):
            wanted = {
                g: iou(detections.boxes[d], truth.boxes[g])
                for g in here
                if (truth.label[g] == detections.label[d]) == same
            }
            assert overlap == max(wanted.values(), default=0.0)
            assert place == max(wanted, key=lambda g, w=wanted: (w[g], -g), default=-1)
        better = [
            iou(detections.boxes[d], detections.boxes[e])
            for e in range(len(detections))
            if detections.image[d] == detections.image[e]
            and detections.label[d] == detections.label[e]
            and (-detections.score[e], e) < (-detections.score[d], d)
        ]
        assert found.twin[d] == np.float32(max(better, default=0.0))
    for g in np.flatnonzero(found.to_find):
        others = [h for h in np.flatnonzero(found.to_find) if truth.image[h] == truth.image[g]]
        near = [iou(truth.boxes[g], truth.boxes[h]) for h in others if h != g]
        assert found.near[g] == np.float32(max(near, default=0.0))


@pytest.mark.parametrize("seed", SEEDS)
def test_counts_are_those_of_tidecv_told_in_words(seed: int) -> None:
    truth, detections = tables(seed)
    assert tidecv(truth, detections).counts == tide_counts(truth, detections)


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", ["coco-bbox", "voc2012"])
def test_a_diagnosis_agrees_with_the_evaluation(seed: int, name: str) -> None:
    truth, detections = tables(seed)
    found = diagnose(truth, detections, name)
    counts = detmap.evaluate(truth, detections, name).counts(0.5)
    mine = found.counts()
    assert (mine["TP"], mine["ignored"]) == (counts["tp"], counts["ignored"])
    assert sum(mine[kind] for kind in ("Cls", "Loc", "Both", "Dupe", "Bkg")) == counts["fp"]
    assert (found.by < 0)[found.to_find].sum() == counts["missed"]
    right = found.kind == 0
    assert (found.by[found.took[right]] == np.flatnonzero(right)).all()


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_merged_parts_are_the_whole(seed: int) -> None:
    truth, detections = tables(seed)
    order = np.argsort(truth.image, kind="stable")
    rows = np.argsort(detections.image, kind="stable")
    truth, detections = truth.take(order), detections.take(rows)
    whole = diagnose(truth, detections, "coco-bbox")
    shares = (np.array([3, 4]), np.array([0]), np.array([1, 2]))
    parts = [
        diagnose(truth.select_images(some), detections.select_images(some), "coco-bbox")
        for some in shares
    ]
    merged = merge(parts)
    for name in (*OF_DETECTIONS, *OF_OBJECTS):
        assert np.array_equal(getattr(merged, name), getattr(whole, name)), name
    assert repr(tide(merged)) == repr(tide(whole))  # NaN too


def test_threads_never_show(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("detmap.core.base.parallel.WORTH_A_THREAD", 0)
    for seed in range(10):
        truth, detections = tables(seed)
        one, many = (diagnose(truth, detections, "coco-bbox", threads=n) for n in (1, 3))
        for name in (*OF_DETECTIONS, *OF_OBJECTS):
            assert np.array_equal(getattr(one, name), getattr(many, name))


def test_mending_nothing_changes_nothing() -> None:
    truth, _ = tables(3)
    whole = truth.take(np.flatnonzero(~truth.crowd))
    detections = detmap.detections_from_arrays(
        whole,
        whole.images.ids[whole.image],
        whole.categories.ids[whole.label],
        whole.boxes,
        np.ones(len(whole)),
    )
    found = tide(diagnose(whole, detections, "coco-bbox"))
    assert found.gain == dict.fromkeys((*ERRORS, "FalsePos", "FalseNeg"), 0.0)
    assert found.ap == 100.0


def test_rows_take_less_than_40_bytes_a_detection() -> None:
    truth, detections = tables(1)
    found = diagnose(truth, detections, "coco-bbox")
    assert sum(getattr(found, name).itemsize for name in OF_DETECTIONS) < 40
    assert sum(getattr(found, name).itemsize for name in OF_OBJECTS) <= 16


def test_detections_beyond_the_limit_are_neither_right_nor_wrong() -> None:
    truth, detections = tables(7)
    found = diagnose(truth, detections, "coco-bbox", settings={"limits.max_dets": [1]})
    cells = {(int(i), int(k)) for i, k in zip(detections.image, detections.label, strict=True)}
    assert (found.kind != 6).sum() == len(cells)
    assert found.counts()["beyond"] == len(detections) - len(cells) > 0


def test_a_diagnosis_cannot_be_changed() -> None:
    found = diagnose(*tables(1), "coco-bbox")
    with pytest.raises(ValueError, match="read-only"):
        found.kind[:] = 0
    with pytest.raises(ValueError, match="WRITEABLE"):
        found.kind.flags.writeable = True
    with pytest.raises(DataError, match="kind"):
        dataclasses.replace(found, kind=found.kind[:-1])


def test_a_notebook_shows_what_stands_out() -> None:
    truth = detmap.truth_from_arrays([1], [1], [[0, 0, 9, 9]], categories={1: "<i>"})
    detections = detmap.detections_from_arrays(truth, [1], [1], [[50, 50, 9, 9]], [0.5])
    shown = diagnose(truth, detections)._repr_html_()
    assert "<li>AP50 is 0.0: no object is matched. The loss is Miss" in shown
    assert '<div class="tile"><span>AP at IoU 0.5</span><b>0.00</b></div>' in shown
    assert "<i>" not in shown


def test_repr_is_short() -> None:
    assert "\n" not in repr(diagnose(*tables(1), "coco-bbox"))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"iou": float("nan")}, "iou"),
        ({"iou": 2}, "iou"),
        ({"iou": "half"}, "iou"),
        ({"background": -1}, "background"),
        ({"background": 0.5}, "not below"),
    ],
)
def test_thresholds_that_make_no_sense(options: dict[str, object], words: str) -> None:
    with pytest.raises(DataError, match=words):
        diagnose(*tables(1), "coco-bbox", **options)  # type: ignore[arg-type]


def test_parts_that_do_not_belong_together() -> None:
    truth, detections = tables(2)
    part = diagnose(truth, detections, "coco-bbox")
    with pytest.raises(MergeError, match="in two parts"):
        merge([part, part])
    with pytest.raises(MergeError, match="other rules"):
        merge([part, diagnose(truth, detections, "coco-bbox", iou=0.75)])
    with pytest.raises(MergeError, match="nothing"):
        merge([])


def test_a_diagnosis_of_no_detections_misses_everything() -> None:
    truth, detections = tables(1)
    none = detections.take(np.zeros(0, dtype=np.int64))
    found = diagnose(truth, none, "coco-bbox")
    assert found.counts()["missed"] == found.to_find.sum()
    empty = truth.take(np.zeros(0, dtype=np.int64))
    assert np.isnan(tide(diagnose(empty, detections, "coco-bbox")).ap)
    assert np.isnan(tidecv(empty, none).ap)


@pytest.mark.parametrize(
    "settings", [{"boxes.empty": "drop"}, {"matching.neutral.crowd": "absent"}]
)
def test_an_object_that_takes_no_part_moves_no_other(settings: dict[str, str]) -> None:
    truth, found = data([(5, 5, 0, 0), A, B], [A], roles={"crowd": [True, False, False]})
    diagnosis = diagnose(truth, found, "coco-bbox", settings=settings)
    assert diagnosis.took.tolist() == [1]
    assert diagnosis.to_find.tolist() == [False, True, True]


def test_suspected_labels_in_a_heap_take_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overlapping_pairs, "CHUNK", 1 << 10)
    n = 800
    heap = np.tile([[0.0, 0, 10, 10]], (n, 1))
    truth = detmap.truth_from_arrays([1] * n, [1] * n, heap)
    found = detmap.detections_from_arrays(truth, [1], [1], heap[:1], [0.5])
    diagnosis = diagnose(truth, found, detmap.load_protocol("coco-bbox"))
    tracemalloc.start()
    twice = [each for each in suspects(diagnosis) if each.kind == "label twice"]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(twice) == n
    assert peak < 10 * n * n  # bytes; the pairs take 24 each
