"""Pairs: every detection and object whose overlap may matter, whatever the way they are found."""

import contextlib
import io
import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike, NDArray

import detmap
from detmap.compat.coco_api import COCO
from detmap.compat.cocoeval import COCOeval
from detmap.core.adapters.in_memory.arrays import detections_from_arrays, truth_from_arrays
from detmap.core.curves.scores import coco_arrays
from detmap.core.matching import engine as matching
from detmap.core.matching.subsets import EVERY_SUBSET
from detmap.core.overlaps import box_iou as boxes
from detmap.core.tables import Detections, Truth
from detmap.errors import DataError
from detmap.kernels import cells as layout
from tests.reference import coco, official
from tests.support.drawing import SEEDS, CocoData, build_instances, draw_coco, voc_data
from tests.support.drawn_tables import read_coco, voc_tables
from tests.support.tier import drawn

WAYS = {"sorted": 1, "plain": boxes.NEVER}  # from how many objects on a cell is sorted
CROWDED: dict[str, Any] = {"n_images": 2, "n_classes": 1, "max_objects": 70, "max_detections": 80}


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways of finding what overlaps, forced at every size."""
    monkeypatch.setattr(boxes, "CROWDED", WAYS[request.param])
    return str(request.param)


def pairs_of(
    truth: Truth, detections: Detections, lowest: float
) -> set[tuple[int, int, float, bool]]:
    """Rows of detections and objects, their overlap, and whether the object absorbs, all images
    and classes being one cell."""
    n, g = len(detections), len(truth)
    rows = np.arange(g, dtype=np.int32)
    absorb = np.where(truth.crowd, EVERY_SUBSET, np.uint64(0))
    none = np.zeros(g, np.uint64)
    objects = layout.ObjectColumns(np.array([0, g]), rows, rows, none, absorb, np.full(g, np.inf))
    cells = layout.Cells(np.arange(n, dtype=np.int32), np.array([[0, n, 0, g]]))
    produce = boxes.BoxPairs(truth, detections, objects, extent="continuous", lowest=lowest)
    found = set()
    for n_rows, pairs in produce(cells, 1, np.arange(n, dtype=np.int32)):
        for i in range(n_rows):
            for j in range(pairs.off[i], pairs.off[i + 1]):
                found.add(
                    (
                        int(pairs.detection[i]),
                        int(pairs.object[j]),
                        float(pairs.overlap[j]),
                        bool(pairs.absorbing[j]),
                    )
                )
    return found


@settings(max_examples=drawn(60))
@given(SEEDS, st.sampled_from([0.5, 0.05, 1e-9, 0.0]), st.sampled_from(sorted(WAYS.values())))
def test_pairs_are_those_of_the_naive_twin(seed: int, lowest: float, crowded: int) -> None:
    instances, results = draw_coco(np.random.default_rng(seed), n_images=1, max_objects=30)
    truth, detections = read_coco(instances, results)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(boxes, "CROWDED", crowded)
        patch.setattr(boxes, "BUFFER", 1)  # filled many times
        found = pairs_of(truth, detections, lowest)
    expected = set()
    for g in range(len(truth)):
        obj = coco.Object(tuple(truth.boxes[g].tolist()), 0, bool(truth.crowd[g]))
        for d in range(len(detections)):
            box = tuple(detections.boxes[d].tolist())
            overlap = coco.overlap(coco.Detection(box, 0, 0), obj)
            if overlap >= lowest:
                expected.add((d, g, overlap, obj.crowd))
    assert found == expected


@pytest.mark.slow
@settings(max_examples=drawn(60))
@given(SEEDS, st.sampled_from(sorted(WAYS.values())))
def test_crowded_or_not_the_arrays_are_those_of_pycocotools(seed: int, crowded: int) -> None:
    data = draw_coco(np.random.default_rng(seed), **(CROWDED if seed % 2 else {}))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(boxes, "CROWDED", crowded)
        found = coco_arrays(detmap.evaluate(*read_coco(*data), threads=1).matches)
    expected = official.run(*data).eval
    for name, array in found.items():
        assert np.array_equal(array, expected[name]), name


@settings(max_examples=drawn(60))
@given(voc_data())
def test_crowded_or_not_the_verdicts_of_voc_are_the_same(data: Any) -> None:
    tables, words = voc_tables(*data), []
    for crowded in WAYS.values():
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(boxes, "CROWDED", crowded)
            matches = matching.match(*tables, detmap.load_protocol("voc2007"), threads=1)
        words.append((matches.tp.tolist(), matches.ignored.tolist()))
    assert words[0] == words[1]


def crowd(rng: np.random.Generator, far: float) -> tuple[Truth, Detections]:
    """Up to 60 boxes of few sizes around a corner, with many equal overlaps; far from 0, adding a
    pixel to a coordinate may change nothing."""
    n, step = int(rng.integers(25, 60)), max(1.0, np.spacing(far))
    corners = far + step * rng.integers(0, 6, (2 * n, 2))
    sides = step * rng.integers(0, 5, (2 * n, 2))
    made = np.hstack([corners, corners + sides])
    return stacked(made[:n], made[n:], rng.integers(1, 5, n) / 5)


def stacked(
    objects: NDArray[np.float64], found: NDArray[np.float64], score: ArrayLike
) -> tuple[Truth, Detections]:
    """Corners of objects and detections of one class in one image."""
    ones, others = np.ones(len(objects), int), np.ones(len(found), int)
    truth = truth_from_arrays(ones, ones, np.zeros_like(objects))
    detections = detections_from_arrays(truth, others, others, np.zeros_like(found), score)
    return (
        replace(truth, boxes=np.ascontiguousarray(objects), box_format="voc"),
        replace(detections, boxes=np.ascontiguousarray(found), box_format="voc"),
    )


@settings(max_examples=drawn(120))
@given(SEEDS, st.sampled_from([0.0, 2.0**52, 2.0**53, 2.0**55, 1e17]))
def test_every_way_to_the_best_object_gives_the_same_matches(seed: int, far: float) -> None:
    tables, found = crowd(np.random.default_rng(seed), far), {}
    for equal in ("first", "last"):
        rules = detmap.load_protocol("voc2012").override({"matching.equal": equal})
        for crowded in WAYS.values():
            for best in (True, False):
                with pytest.MonkeyPatch.context() as patch:
                    patch.setattr(boxes, "CROWDED", crowded)
                    patch.setattr(boxes, "ONLY_BEST", best)
                    matches = matching.match(*tables, rules, threads=1, taken=True)
                row = (matches.tp.tolist(), matches.taken.object.tolist())
                found[equal, crowded, best] = row
        kinds = [row for (which, *_), row in found.items() if which == equal]
        assert all(row == kinds[0] for row in kinds)


def test_beyond_2_to_53_the_sorted_search_finds_boxes_that_share_their_last_pixel() -> None:
    """VOC adds 1 to a difference of edges; added to an edge of 2**53 it is lost."""
    made = np.full((30, 4), 2.0**53)
    tables = stacked(made, made[:1], [0.5])
    matches = matching.match(*tables, detmap.load_protocol("voc2012"), threads=1)
    assert matches.tp[0, 0] == 1


def test_only_the_best_pair_of_a_detection_is_listed() -> None:
    truth, detections = crowd(np.random.default_rng(1), 0.0)
    n = len(truth)
    rows, words = np.arange(n, dtype=np.int32), np.zeros(n, np.uint64)
    objects = layout.ObjectColumns(np.array([0, n]), rows, rows, words, words, np.full(n, np.inf))
    cells = layout.Cells(rows, np.array([[0, n, 0, n]]))
    for best, most in (("", n * n), ("first", n), ("last", n)):
        produce = boxes.BoxPairs(
            truth, detections, objects, extent="inclusive", lowest=0.1, best=best
        )
        size = sum(int(pairs.off[found]) for found, pairs in produce(cells, 1, rows))
        assert (0 if best else n) < size <= most


def strangers(n: int) -> CocoData:
    """n objects, and n detections that touch none of them."""
    annotations = [
        {"id": i + 1, "image_id": 1, "category_id": 1, "bbox": [20 * i, 0, 10, 10], "area": 100}
        for i in range(n)
    ]
    results = [
        {"image_id": 1, "category_id": 1, "bbox": [20 * i, 50, 10, 10], "score": 1 - i / 100}
        for i in range(n)
    ]
    return build_instances([1], [1], annotations), results


@pytest.mark.parametrize("n", [23, 24, 25])
def test_a_threshold_of_0_is_met_by_every_object_as_in_pycocotools(n: int, way: str) -> None:
    data = strangers(n)
    found = detmap.evaluate(*read_coco(*data), settings={"iou.cap": 0}, threads=1)
    expected = official.run(*data, iouThrs=np.zeros(10)).eval
    assert found.metrics["AP"] == 1.0
    for name, array in coco_arrays(found.matches).items():
        assert np.array_equal(array, expected[name]), name


def test_under_the_rule_of_voc_an_object_without_overlap_is_never_met(way: str) -> None:
    settings = {"iou.cap": 0, "matching.rule": "best_any"}
    found = detmap.evaluate(*read_coco(*strangers(30)), settings=settings, threads=1)
    assert found.metrics["AP"] == 0.0


def tiny(side: float) -> CocoData:
    """An object and a detection in one place, with sides whose product may be no number."""
    box = [0, 0, side, side]
    annotation = {"id": 1, "image_id": 1, "category_id": 1, "bbox": box, "area": 1, "iscrowd": 0}
    result = {"image_id": 1, "category_id": 1, "bbox": box, "score": 0.5}
    return build_instances([1], [1], [annotation]), [result]


def test_boxes_whose_overlap_is_0_by_0_are_refused(way: str) -> None:
    with pytest.raises(DataError, match=r"row 0.*0/0"):
        detmap.evaluate(*read_coco(*tiny(1e-200)))


def test_boxes_of_the_least_areas_are_those_of_pycocotools(way: str) -> None:
    data = tiny(1e-160)
    found = coco_arrays(detmap.evaluate(*read_coco(*data)).matches)
    for name, array in found.items():
        assert np.array_equal(array, official.run(*data).eval[name]), name


@pytest.mark.parametrize("side", [1e-200, 1e-160])
def test_the_drop_in_reads_an_overlap_of_0_by_0_as_pycocotools(side: float) -> None:
    data = tiny(side)
    expected = official.run(*data).eval
    with contextlib.redirect_stdout(io.StringIO()):
        truth = COCO()
        truth.dataset = official.complete(data[0])
        truth.createIndex()
        evaluation = COCOeval(truth, truth.loadRes(data[1]), "bbox")
        evaluation.evaluate()
        evaluation.accumulate()
    for name in ("precision", "recall", "scores"):
        assert np.array_equal(evaluation.eval[name], expected[name])


@pytest.mark.slow
@pytest.mark.parametrize(("n_objects", "n_detections"), [(20_000, 200), (2_000, 4_000)])
@pytest.mark.parametrize("side", [100.0, 70.0], ids=["equal", "overlap .7"])
@pytest.mark.parametrize("protocol", ["coco-bbox", "voc2012"])
def test_stacked_boxes_take_time_by_their_pairs(
    n_objects: int, n_detections: int, side: float, protocol: str
) -> None:
    """The insertion sort of before took 45 and 13 s; each detection takes an object of its own."""
    box = [0.0, 0.0, 100.0, 100.0]
    truth = truth_from_arrays([1] * n_objects, [1] * n_objects, [box] * n_objects)
    found = [[0.0, 0.0, side, 100.0]] * n_detections
    score = np.linspace(1, 0, n_detections)
    detections = detections_from_arrays(truth, [1] * n_detections, [1] * n_detections, found, score)
    rules = detmap.load_protocol(protocol).override({"limits.max_dets": []})
    matching.match(*read_coco(*strangers(2)), rules, threads=1)  # compiled
    begin = time.process_time()
    matches = matching.match(truth, detections, rules, threads=1)
    seconds = time.process_time() - begin
    n_met = int((matches.tp[:, 0] & 1).sum())
    assert n_met == (min(n_objects, n_detections) if protocol == "coco-bbox" else 1)
    assert seconds < 6, f"{seconds:.2f} s"
