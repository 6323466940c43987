"""The evaluator that is fed batch by batch: the bits of one run, whatever the batches; kinds of
input; errors."""

from __future__ import annotations

import copy
import os
import pickle
import threading
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import detmap
from detmap import DataError, Evaluator, MergeError
from detmap.core.adapters.in_memory.batch_rows import Reader
from detmap.core.adapters.in_memory.batch_tables import Known
from detmap.core.tables import Detections, Truth
from tests.matching.test_matches import assert_same
from tests.support.drawing import CocoData, coco_data, draw_coco, draw_voc, voc_data
from tests.support.drawn_tables import read_coco, voc_tables
from tests.support.running import python
from tests.support.tier import drawn

Fields = dict[str, Any]
PROTOCOLS = ["coco-bbox", "voc2007", "voc2012-python"]


def per_image(truth: Truth, detections: Detections) -> list[tuple[Fields, Fields]]:
    """Tables as (prediction, target) dicts, one pair an image."""
    ids, out = truth.categories.ids, []
    for i, image_id in enumerate(truth.images.ids.tolist()):
        predicted, annotated = detections.image == i, truth.image == i
        prediction = {
            "image_id": image_id,
            "boxes": detections.boxes[predicted],
            "scores": detections.score[predicted],
            "labels": ids[detections.label[predicted]],
        }
        target = {
            "image_id": image_id,
            "boxes": truth.boxes[annotated],
            "labels": ids[truth.label[annotated]],
            "area": truth.area[annotated],
            "iscrowd": truth.crowd[annotated],
            "difficult": truth.difficult[annotated],
        }
        out.append((prediction, target))
    return out


def shuffled(
    tables: tuple[Truth, Detections], random: Any
) -> tuple[Truth, Detections, list[tuple[Fields, Fields]]]:
    """Tables, and the same as pairs in another order."""
    pairs = per_image(*tables)
    random.shuffle(pairs)
    return *tables, pairs


def feed(evaluator: Evaluator, pairs: list[tuple[Fields, Fields]], sizes: list[int]) -> Evaluator:
    """Update with batches of these sizes, in turn."""
    begin, turn = 0, 0
    while begin < len(pairs):
        batch = pairs[begin : begin + sizes[turn % len(sizes)]]
        targets = [t for _, t in batch] if evaluator.truth is None else None
        evaluator.update([p for p, _ in batch], targets)
        begin, turn = begin + len(batch), turn + 1
    return evaluator


def by_image(detections: Detections) -> Detections:
    """The same rows in the input order of a stream."""
    ordered = detections.take(np.argsort(detections.image, kind="stable"))
    return replace(ordered, notes=())


def assert_equal(stream: Evaluator, truth: Truth, detections: Detections, protocol: str) -> None:
    """Every bit of the match rows, every number, and the signature, but for notes of a file's
    reader."""
    batch = detmap.evaluate(truth, by_image(detections), protocol)
    result = stream.compute()
    assert_same(stream.matches, batch.matches, but=("position", "notes"))
    assert np.array_equal(
        list(result.metrics.values()), list(batch.metrics.values()), equal_nan=True
    )
    assert result.signature == batch.signature
    own, theirs = (
        {key: value for key, value in each.to_dict().items() if key != "notes"}
        for each in (result, batch)
    )
    assert own == theirs


batchings = st.lists(st.integers(1, 3), min_size=1, max_size=3)


@pytest.mark.slow
@settings(max_examples=drawn(60))
@given(coco_data(zero_id=True), st.randoms(), batchings, st.sampled_from(PROTOCOLS))
def test_any_batches_in_any_order_give_the_bits_of_one_run(
    data: CocoData, random: Any, sizes: list[int], protocol: str
) -> None:
    truth, detections, pairs = shuffled(read_coco(*data), random)
    stream = Evaluator(protocol, classes=truth.categories, box_format="xywh")
    assert_equal(feed(stream, pairs, sizes), truth, detections, protocol)


@pytest.mark.slow
@settings(max_examples=drawn(40))
@given(voc_data(), st.randoms(), batchings, st.sampled_from(["voc2007", "coco-bbox"]))
def test_voc_boxes_and_stems(data: tuple, random: Any, sizes: list[int], protocol: str) -> None:
    truth, detections, pairs = shuffled(voc_tables(*data), random)
    stream = Evaluator(protocol, classes=truth.categories, box_format="voc")
    assert_equal(feed(stream, pairs, sizes), truth, detections, protocol)


@pytest.mark.slow
@settings(max_examples=drawn(30))
@given(coco_data(), st.randoms(), batchings)
def test_truth_that_is_known_up_front(data: CocoData, random: Any, sizes: list[int]) -> None:
    truth, detections, pairs = shuffled(read_coco(*data), random)
    stream = Evaluator(truth=truth, box_format="xywh")
    feed(stream, pairs[:1], sizes)
    left_out = [note for note in stream.compute().notes if note.code == "image-unseen"]
    assert [note.count for note in left_out] == ([len(pairs) - 1] if len(pairs) > 1 else [])
    feed(stream, pairs[1:], sizes)
    assert_equal(stream, truth, detections, "coco-bbox")
    assert stream.compute().notes == detmap.evaluate(truth, by_image(detections)).notes


@pytest.mark.slow
@settings(max_examples=drawn(30))
@given(coco_data(), st.randoms(), batchings)
def test_merged_saved_loaded_pickled_in_the_middle(
    tmp_path_factory: Any, data: CocoData, random: Any, sizes: list[int]
) -> None:
    truth, detections, pairs = shuffled(read_coco(*data), random)
    cut, path = random.randint(0, len(pairs)), tmp_path_factory.mktemp("state") / "state.npz"
    first, second, third = (
        Evaluator(classes=truth.categories, box_format="xywh") for _ in range(3)
    )
    feed(first, pairs[:cut], sizes)
    first.compute()
    first.save(path)
    first = feed(Evaluator.load(path), pairs[cut : cut + 1], sizes)
    feed(second, pairs[cut + 1 :], sizes)
    merged = pickle.loads(pickle.dumps(second)).merge(copy.copy(first), third)
    assert_equal(merged, truth, detections, "coco-bbox")
    assert_equal(third.merge(first, second), truth, detections, "coco-bbox")
    with pytest.raises(DataError, match="was already added"):
        merged.update([pairs[0][0]], [pairs[0][1]])


@pytest.mark.slow
@given(coco_data())
def test_without_ids_images_are_numbered_as_they_come(data: CocoData) -> None:
    truth, detections = read_coco(*data)
    pairs = per_image(truth, detections)
    bare = [
        ({**p, "image_id": None}, {k: v for k, v in t.items() if k != "image_id"}) for p, t in pairs
    ]
    numbered = [({**p, "image_id": i}, {**t, "image_id": i}) for i, (p, t) in enumerate(pairs)]
    one, other, half = (Evaluator(classes=truth.categories, box_format="xywh") for _ in range(3))
    feed(one, bare, [2]), feed(other, numbered, [1])
    assert_same(one.matches, other.matches)
    feed(half, bare[:1], [1])
    rest = feed(Evaluator(classes=truth.categories, box_format="xywh"), bare[1:], [1])
    assert_same(half.merge(rest).matches, other.matches)
    half.update([], [])
    if len(pairs) > 1:
        with pytest.raises(MergeError, match="not in another"):
            one.merge(other)


def test_compute_at_any_time_and_again() -> None:
    truth, detections = read_coco(*draw_coco(np.random.default_rng(3), n_images=4, n_classes=3))
    pairs = per_image(truth, detections)
    stream = Evaluator(classes=truth.categories, box_format="xywh")
    assert np.isnan(stream.compute().metrics["AP"])
    for i, pair in enumerate(pairs):
        feed(stream, [pair], [1])
        assert stream.compute() is stream.compute()
        seen = detmap.match(truth, detections, stream.protocol).select(truth.images.ids[: i + 1])
        assert_same(stream.matches, seen, but=("position", "notes"))
    assert len(stream) == 4
    stream.reset()
    assert len(stream) == 0
    assert_equal(feed(stream, pairs, [3]), truth, detections, "coco-bbox")


# --- kinds of input -------------------------------------------------------------------------------


def boxes_in(kind: str, xywh: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    height, width = size
    boxes = xywh.copy()
    if kind.endswith("cxcywh"):
        boxes[:, :2] += boxes[:, 2:] / 2
    elif kind.endswith("xyxy"):
        boxes[:, 2:] += boxes[:, :2]
    return boxes / (width, height, width, height) if kind.startswith("normalized") else boxes


@pytest.mark.parametrize(
    "kind", ["xyxy", "xywh", "cxcywh", "normalized xyxy", "normalized xywh", "normalized cxcywh"]
)
def test_box_formats_are_exact_on_halves_of_pixels(kind: str) -> None:
    rng = np.random.default_rng(1)
    size = (512, 1024)
    xywh = rng.integers(0, 200, (30, 4)) / 2
    annotated = {"labels": np.arange(30) % 3, "orig_size": size}
    annotated["boxes"] = boxes_in(kind, xywh, size)
    shifted = xywh + np.array([1, 0, 0, 0])
    found = {**annotated, "boxes": boxes_in(kind, shifted, size), "scores": rng.random(30)}
    stream = Evaluator(classes=[0, 1, 2], box_format=kind)
    stream.update([found], [annotated])
    image, label = np.zeros(30, int), np.arange(30) % 3
    truth = detmap.truth_from_arrays(image, label, xywh)
    detections = detmap.detections_from_arrays(truth, image, label, shifted, found["scores"])
    assert_same(stream.matches, detmap.match(truth, detections, stream.protocol), but=("position",))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@given(seed=st.integers(0, 2**32 - 1))
def test_short_floats_convert_without_rounding(dtype: type, seed: int) -> None:
    """Corners in float32 to width and height in float64 and back are the same corners; so are
    normalized ones."""
    rng = np.random.default_rng(seed)
    corners = np.sort(rng.uniform(2**-9, 1000, (20, 2, 2)), axis=1).reshape(20, 4).astype(dtype)
    found = {"boxes": corners, "labels": np.zeros(20, int), "scores": np.zeros(20)}
    truth = detmap.truth_from_arrays([0], [0], [[0, 0, 1, 1]])
    ids, known = np.zeros(1, np.int64), Known(truth)
    rows = Reader(truth.categories, "xyxy", truth=known).read(ids, [found], []).found
    wide = corners.astype(np.float64)
    assert (rows.boxes[:, :2] == wide[:, :2]).all()
    assert (rows.boxes[:, :2] + rows.boxes[:, 2:] == wide[:, 2:]).all()
    fractions = found | {"boxes": (corners / 1024).astype(dtype), "orig_size": (600, 800)}
    reader = Reader(truth.categories, "normalized xyxy", truth=known)
    rows = reader.read(ids, [fractions], []).found
    exact = fractions["boxes"].astype(np.float64) * (800, 600, 800, 600)
    assert (rows.boxes[:, :2] + rows.boxes[:, 2:] == exact[:, 2:]).all()


def test_other_float64_corners_are_those_of_the_same_arithmetic() -> None:
    """What a batch run gets that converts as documented: x2 - x1 in float64."""
    rng = np.random.default_rng(2)
    corners = np.sort(rng.uniform(0, 100, (50, 2, 2)), axis=1).reshape(50, 4)
    label, image, score = rng.integers(0, 3, 50), rng.integers(0, 5, 50), rng.random(50)
    xywh = np.hstack([corners[:, :2], corners[:, 2:] - corners[:, :2]])
    truth = detmap.truth_from_arrays(
        image, label, xywh, images=range(5), categories=dict(enumerate("abc"))
    )
    detections = detmap.detections_from_arrays(truth, image, label, xywh, score)
    stream = Evaluator(classes=["a", "b", "c"])
    for i in (3, 1, 0, 4, 2):
        mine = image == i
        annotated = {"boxes": corners[mine], "labels": label[mine], "image_id": i}
        stream.update([{**annotated, "scores": score[mine]}], [annotated])
    assert_same(stream.matches, detmap.match(truth, detections, stream.protocol), but=("position",))


class ByDlpack:
    """An array of a package that knows DLPack only."""

    def __init__(self, array: np.ndarray, device: int = 1) -> None:
        self.array, self.device = array, device

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device, 0

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)


class Tensor:
    """What torch does: gradients have to be left, and numpy is not told of bfloat16."""

    def __init__(self, array: np.ndarray, gradients: bool = True) -> None:
        self.array, self.gradients = array, gradients

    def detach(self) -> Tensor:
        return Tensor(self.array, gradients=False)

    def float(self) -> np.ndarray:
        assert not self.gradients
        return self.array.astype(np.float32)

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        raise TypeError("Got unsupported ScalarType BFloat16")


def plain() -> tuple[Fields, Fields]:
    annotated = {
        "boxes": np.array([[10.0, 10, 50, 50], [60, 10, 90, 40]]),
        "labels": np.array([0, 1]),
    }
    return {**annotated, "scores": np.array([0.5, 0.75])}, annotated


@pytest.mark.parametrize(
    "wrap", [ByDlpack, Tensor, np.ndarray.tolist, lambda a: a[::1][:, None][:, 0]]
)
def test_arrays_of_other_packages(wrap: Any) -> None:
    predicted, annotated = plain()
    stream = Evaluator(classes=["a", "b"])
    wrapped = {
        key: wrap(value) if wrap is not Tensor or key != "labels" else value
        for key, value in predicted.items()
    }
    stream.update([wrapped], [annotated])
    assert stream.compute().metrics["AP"] == pytest.approx(1)


def test_bfloat16_as_jax_hands_it_over() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    predicted, annotated = plain()
    stream = Evaluator(classes=["a", "b"])
    predicted["boxes"] = predicted["boxes"].astype(ml_dtypes.bfloat16)
    stream.update([predicted], [annotated])
    assert stream.compute().metrics["AP"] == pytest.approx(1)


def test_detections_of_supervision_are_taken() -> None:
    predicted, annotated = plain()
    stream = Evaluator(classes=["a", "b"])
    as_object = SimpleNamespace(
        xyxy=predicted["boxes"], confidence=predicted["scores"], class_id=predicted["labels"]
    )
    as_object.metadata = {"image_id": 7}
    target = SimpleNamespace(xyxy=annotated["boxes"], confidence=None, class_id=annotated["labels"])
    stream.update([as_object], [target])
    assert stream.compute().metrics["AP"] == pytest.approx(1)
    assert stream.matches.image_ids.tolist() == [7]
    with pytest.raises(DataError, match="boxes are xyxy, not xywh"):
        Evaluator(classes=["a", "b"], box_format="xywh").update([as_object], [target])


@pytest.mark.parametrize("shape", [(0,), (0, 4), (1, 0)])
def test_images_without_boxes_count_as_images(shape: tuple[int, ...]) -> None:
    predicted, annotated = plain()
    empty = {"boxes": np.zeros(shape), "labels": np.zeros(0), "scores": np.zeros(0)}
    stream = Evaluator(classes=["a", "b"])
    stream.update([predicted, empty, empty], [annotated, empty, annotated])
    stream.update([empty], [empty])
    assert stream.compute().counts()["missed"] == 2
    assert len(stream) == 4


def test_area_where_some_images_have_it() -> None:
    predicted, annotated = plain()
    stream = Evaluator(classes=["a", "b"])
    stream.update([predicted, predicted], [annotated, {**annotated, "area": [5000, 7.0]}])
    assert stream.matches.counted[:, 1].tolist() == [False, False, True, True]


def test_classes_as_names_ids_and_both() -> None:
    assert Evaluator(classes=["b", "a"]).categories.names == ("b", "a")
    assert Evaluator(classes=np.array([7, 3])).categories.ids.tolist() == [3, 7]
    assert Evaluator(classes={7: "x", 3: "y"}).categories.names == ("y", "x")
    for wrong in (["a", "a"], [1, 1], [1.5], "cat", [True], [2**70]):
        with pytest.raises(DataError, match="classes"):
            Evaluator(classes=wrong)
    with pytest.raises(DataError, match="its own classes"):
        Evaluator(classes=["a"], truth="x.json")
    with pytest.raises(DataError, match="box_format"):
        Evaluator(classes=["a"], box_format="xyxyn")


def test_settings_of_the_protocol() -> None:
    stream = Evaluator("coco-bbox", classes=["a"], settings={"limits.max_dets": [1, 10, 300]})
    assert "AR300" in stream.compute().metrics
    with pytest.raises(detmap.ProtocolError):
        Evaluator("cocoa", classes=["a"])


# --- errors ---------------------------------------------------------------------------------------


def changed(side: str, key: str, value: Any) -> tuple[list[Fields], list[Fields]]:
    """Two good images, the second with one key changed, or left out."""
    sides = {"predictions": list(plain()), "targets": list(plain())}
    pair = {"predictions": {**plain()[0]}, "targets": {**plain()[1]}}
    if value is None:
        del pair[side][key]
    else:
        pair[side][key] = value
    return [sides["predictions"][0], pair["predictions"]], [sides["targets"][1], pair["targets"]]


FOUND, OBJECTS = "predictions", "targets"
BEYOND = np.array([[0, 0, 1, 1], [0, np.inf, 1, np.inf]])
NEGATIVE = np.array([[0, 0, 1, 1], [5, 0, 4, 1.0]])


@pytest.mark.slow
@pytest.mark.parametrize(
    "side, key, value, message",
    [
        (FOUND, "scores", None, r": no 'scores'"),
        (OBJECTS, "boxes", None, r": no 'boxes'"),
        (FOUND, "boxes", np.zeros((2, 5)), r"\.boxes: shape \(2, 5\) where \(n, 4\)"),
        (FOUND, "boxes", np.zeros((3, 4)), r"\.labels: 2 values for 3 boxes"),
        (FOUND, "scores", np.zeros(3), r"\.scores: 3 values for 2 boxes"),
        (FOUND, "scores", np.zeros((2, 1)), r"\.scores: shape \(2, 1\) where \(n,\)"),
        (FOUND, "scores", np.array([0.5, np.nan]), r"\.scores\[1\]: nan"),
        (FOUND, "boxes", BEYOND, r"\.boxes\[1\].*non-finite"),
        (OBJECTS, "boxes", NEGATIVE, r"\.boxes\[1\].*negative.*xyxy"),
        (OBJECTS, "labels", np.array([0, 2]), r"\.labels\[1\]: no class 2 .*ids are 0, 1\)"),
        (FOUND, "labels", np.array([0.0, 1.0]), r"\.labels: dtype float64"),
        (FOUND, "labels", np.array(["a", "b"]), r"\.labels: dtype <U1"),
        (FOUND, "boxes", "no", r"\.boxes: dtype"),
        (FOUND, "boxes", ByDlpack(np.zeros((2, 4)), device=2), r"\.boxes: .*device.*\.cpu"),
        (OBJECTS, "area", np.array([1, -1]), r"\.area\[1\]: -1"),
        (OBJECTS, "area", np.array([np.nan, 1]), r"\.area\[0\]: nan"),
        (OBJECTS, "iscrowd", np.array([1]), r"\.iscrowd: 1 values for 2 boxes"),
        (OBJECTS, "image_id", 5, r"\.image_id: only some images have one"),
        (OBJECTS, "image_id", 1.5, r"\.image_id: 1.5"),
        (OBJECTS, "image_id", [1, 2], r"\.image_id: \[1, 2\]"),
    ],
)
def test_bad_input_is_named_and_leaves_no_trace(
    side: str, key: str, value: Any, message: str
) -> None:
    stream = Evaluator(classes=["a", "b"])
    predicted, annotated = plain()
    stream.update([predicted], [annotated])
    place = FOUND if "only some" in message else side
    with pytest.raises(DataError, match=rf"{place}\[1\]{message}"):
        stream.update(*changed(side, key, value))
    assert len(stream) == 1
    assert stream.compute().metrics["AP"] == pytest.approx(1)


def test_an_error_counts_images_as_they_were_given() -> None:
    stream = Evaluator(classes=["a", "b"])
    predicted, annotated = plain()
    batch = [
        {**predicted, "image_id": 9},
        {**predicted, "image_id": 5, "labels": np.array([0, 3])},
        {**predicted, "image_id": 7},
    ]
    with pytest.raises(DataError, match=r"predictions\[1\]\.labels\[1\]: no class 3"):
        stream.update(batch, [annotated] * 3)
    with pytest.raises(DataError, match=r"targets\[0\]\.boxes: shape"):
        stream.update(batch[::2], [{**annotated, "boxes": np.zeros(3)}, annotated])


def with_ids(*image_ids: Any) -> list[Fields]:
    return [{**plain()[0], "image_id": each} for each in image_ids]


@pytest.mark.parametrize(
    "predictions, targets, message",
    [
        (plain()[0], [plain()[1]], "predictions: a dict where a list"),
        ([7], [plain()[1]], r"predictions\[0\]: a int where a dict"),
        ([plain()[0]], [], "targets: 0 images, but 1"),
        ([plain()[0]], None, "targets: missing"),
        (with_ids(1), [{**plain()[1], "image_id": 2}], "1, but 2 in targets"),
        (with_ids(1, 1), [plain()[1]] * 2, r"predictions\[1\].image_id: 1 was already added"),
        (with_ids(1, "a"), [plain()[1]] * 2, "whole numbers and strings"),
        (with_ids(2**64), [plain()[1]], "64 bits"),
    ],
)
def test_batches_that_are_none(predictions: Any, targets: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        Evaluator(classes=["a", "b"]).update(predictions, targets)


BOX: Fields = {"boxes": [[0, 0, 1, 1]], "labels": [0]}


def one(image_id: Any, **more: Any) -> tuple[list[Fields], list[Fields]]:
    """A batch of one image with one box."""
    return [{**BOX, "scores": [0.5], "image_id": image_id}], [{**BOX, **more}]


@pytest.mark.slow
def test_threads_that_update_while_another_computes_lose_no_image() -> None:
    """Once a part of the images was gone in silence."""
    stream = Evaluator(classes=["a"])

    def work(begin: int) -> None:
        for i in range(60):
            stream.update(*one(begin + i))

    threads = [threading.Thread(target=work, args=(k * 1000,)) for k in range(3)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        assert stream.matches.n_images <= 180
        time.sleep(1e-4)
    assert len(stream) == stream.matches.n_images == stream.compute().overview.n_images == 180


def test_a_computation_in_the_background_is_that_of_its_moment() -> None:
    stream, begun = Evaluator(classes=["a"]), []
    for i in range(20):
        stream.update(*one(i))
        begun.append(stream.compute_async())
    counts = [each.result().counts()["images"] for each in begun]
    assert counts == [*range(1, 21)]
    assert begun[-1].result().to_dict() == stream.compute().to_dict()


def test_what_fails_in_the_background_is_raised_later(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Evaluator(classes=["a"])
    stream.update(*one(1))
    monkeypatch.setattr(Evaluator, "compute", lambda self: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        stream.compute_async().result()


@pytest.mark.slow
def test_a_program_that_ends_waits_for_the_background() -> None:
    code = """
import atexit, sys, numpy as np, detmap
rng = np.random.default_rng(0)
stream = detmap.Evaluator(classes=list("abcde"))
for _ in range(200):
    boxes = rng.uniform(0, 500, (400, 4))
    boxes[:, 2:] += boxes[:, :2] + 1
    labels = rng.integers(0, 5, 400)
    found = {"boxes": boxes, "scores": rng.random(400), "labels": labels}
    stream.update([found], [{"boxes": boxes[:20] + 1, "labels": labels[:20]}])
background = stream.compute_async()
assert not background.cancel()
background.add_done_callback(lambda each: print(each.result()["AP"]))
atexit.register(lambda: print(stream.compute()["AP"]))
"""
    done = python("-c", code)
    first, second = done.out.split()
    assert (done.code, done.err, first) == (0, "", second)


def test_evaluators_add_up_and_do_not_change() -> None:
    truth, detections = read_coco(*draw_coco(np.random.default_rng(5)))
    pairs, classes = per_image(truth, detections), truth.categories

    def empty() -> Evaluator:
        return Evaluator("coco-bbox", classes=classes, box_format="xywh")

    parts = [feed(empty(), [pair], [1]) for pair in pairs]
    before = [part.compute().metrics for part in parts]
    one, whole = parts[0] + parts[1], sum(parts)
    assert_same(one.matches, feed(empty(), pairs[:2], [2]).matches)
    assert_same(whole.matches, feed(empty(), pairs, [len(pairs)]).matches)
    assert str([part.compute().metrics for part in parts]) == str(before)
    for other in (1, None, "a", parts[0].compute()):
        with pytest.raises((TypeError, MergeError)):
            _ = parts[0] + other  # type: ignore[operator]
        with pytest.raises(TypeError):
            _ = other + parts[0]  # type: ignore[operator]


def test_evaluators_that_merge_into_each_other_do_not_wait_for_ever() -> None:
    streams = [Evaluator(classes=["a"]) for _ in range(2)]
    threads = [
        threading.Thread(target=lambda a=a, b=b: [a.merge(b) for _ in range(10)], daemon=True)
        for a, b in (streams, reversed(streams))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert not any(thread.is_alive() for thread in threads)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_process_does_not_wait_for_a_thread_that_it_lacks() -> None:
    stream = Evaluator(classes=["a"])
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with stream._lock:
            held.set()
            done.wait(30)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(30)
    child = os.fork()
    if child == 0:
        os._exit(0 if stream._lock.acquire(timeout=5) else 1)
    status = os.waitpid(child, 0)[1]
    done.set()
    thread.join()
    assert status == 0


def test_the_same_image_in_two_updates_or_two_evaluators() -> None:
    predicted, annotated = plain()
    named = {**predicted, "image_id": np.array([4])}
    one, other = (Evaluator(classes=["a", "b"]) for _ in range(2))
    one.update([named], [annotated]), other.update([named], [annotated])
    with pytest.raises(DataError, match="4 was already added"):
        one.update([named], [annotated])
    with pytest.raises(DataError, match="only some batches have one"):
        one.update([predicted], [annotated])
    with pytest.raises(MergeError, match="more than one part"):
        one.merge(other)
    with pytest.raises(MergeError, match="the same evaluator twice"):
        one.merge(one)
    assert len(one) == 1
    with pytest.raises(MergeError, match="classes differ"):
        one.merge(Evaluator(classes=["a", "c"]))
    with pytest.raises(MergeError, match="protocol"):
        one.merge(Evaluator("voc2007", classes=["a", "b"]))


def test_errors_with_a_truth_up_front(tmp_path: Path) -> None:
    truth, detections = voc_tables(*draw_voc(np.random.default_rng(4), n_images=3))
    names = truth.categories
    stream = Evaluator("voc2007", truth=truth, box_format="voc", class_names=names)
    pairs = per_image(truth, detections)
    for image_id, message in (
        (None, "missing"),
        (987, "no image 987"),
        ("x", "no image 'x' in .* such as"),
    ):
        with pytest.raises(DataError, match=message):
            stream.update([{**pairs[0][0], "image_id": image_id}])
    with pytest.raises(DataError, match="the evaluator has a ground truth"):
        stream.update([pairs[0][0]], [pairs[0][1]])
    feed(stream, pairs[:2], [1])
    stream.save(tmp_path / "state.npz")
    loaded = Evaluator.load(tmp_path / "state.npz", truth=truth, class_names=names)
    assert_equal(feed(loaded, pairs[2:], [1]), truth, detections, "voc2007")
    other = voc_tables({"zebra": {"1": []}}, {"zebra": []})[0]
    with pytest.raises(DataError, match="other classes"):
        Evaluator.load(tmp_path / "state.npz", truth=other)


def test_a_size_is_needed_for_normalized_boxes() -> None:
    predicted, annotated = plain()
    for size in ({}, {"orig_size": (5,)}, {"orig_size": (0, 5)}):
        with pytest.raises(DataError, match=r"predictions\[0\]\.orig_size|targets\[0\]\.orig_size"):
            Evaluator(classes=["a", "b"], box_format="normalized xyxy").update(
                [{**predicted, **size}], [{**annotated, **size}]
            )


def test_updates_are_matched_together_in_a_bounded_buffer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are matched when enough are buffered, and merged when asked for."""
    monkeypatch.setattr("detmap.core.streaming.evaluator.BUFFERED", 40)
    stream = Evaluator(classes=["a", "b"])
    predicted, annotated = plain()
    for _ in range(50):
        stream.update([predicted], [annotated])
        assert sum(map(len, stream._pending)) == stream._n_pending < 40
    assert len(stream._parts) == 5
    assert stream.compute().counts()["tp"] == 100
    assert len(stream._parts) == 1


class Failing:
    """An object whose numbers cannot be had."""

    confidence, class_id, metadata = (0.5,), (0,), None

    def __array__(self, *_: object, **__: object) -> np.ndarray:
        raise KeyError("x")

    @property
    def xyxy(self) -> object:
        return 1 / 0


ODD: dict[str, tuple[Fields, Fields, str]] = {
    "half a crowd": ({}, {"iscrowd": [0.5]}, r"targets\[0\].iscrowd\[0\]"),
    "a crowd that is NaN": ({}, {"iscrowd": [np.nan]}, r"targets\[0\].iscrowd\[0\]"),
    "difficult -1": ({}, {"difficult": [-1]}, r"targets\[0\].difficult\[0\]"),
    "masked boxes": ({"boxes": np.ma.array([[0.0, 0, 1, 1]], mask=True)}, {}, "masked"),
    "masked scores": ({"scores": np.ma.array([0.5], mask=True)}, {}, "masked"),
    "a label beyond int64": ({"labels": np.array([2**64 - 1], np.uint64)}, {}, "labels"),
    "an array that raises": ({"boxes": Failing()}, {}, r"predictions\[0\].boxes"),
}


@pytest.mark.parametrize("name", ODD)
def test_values_that_once_passed_in_silence(name: str) -> None:
    prediction, target, where = ODD[name]
    stream = Evaluator(classes=[-1, 0])
    with pytest.raises(DataError, match=where):
        stream.update([{**BOX, "scores": [0.5], **prediction}], [{**BOX, **target}])
    assert len(stream) == 0


def test_objects_with_properties_that_fail_and_metadata_of_none() -> None:
    stream = Evaluator(classes=["a"])
    with pytest.raises(DataError, match=r"predictions\[0\]"):
        stream.update([Failing()], [BOX])
    good = SimpleNamespace(xyxy=BOX["boxes"], class_id=[0], confidence=[0.5], metadata=None)
    stream.update([good], [BOX])
    assert len(stream) == 1


def test_labels_of_short_and_unsigned_kinds_together() -> None:
    stream = Evaluator(classes=[2**62 + 1, 2**62 + 2])
    labels = (np.array([2**62 + 1], np.uint64), np.array([2**62 + 2], np.int64))
    stream.update(
        [{**BOX, "scores": [0.5], "labels": each} for each in labels],
        [{**BOX, "labels": each} for each in labels],
    )
    assert stream.compute().counts()["tp"] == 2


def test_an_image_of_two_sizes() -> None:
    stream = Evaluator(classes=["a"], box_format="normalized xyxy")
    with pytest.raises(DataError, match=r"targets\[0\].orig_size"):
        stream.update(
            [{**BOX, "scores": [0.5], "orig_size": [20, 10]}], [{**BOX, "orig_size": [10, 10]}]
        )


def test_evaluators_know_their_truth(tmp_path: Path) -> None:
    truths = [detmap.truth_from_arrays(ids, [0, 0], BOX["boxes"] * 2) for ids in ([1, 2], [2, 3])]
    streams = [Evaluator(truth=truth) for truth in truths]
    for stream, image_id in zip(streams, (1, 3), strict=True):
        stream.update(one(image_id)[0])
    with pytest.raises(MergeError, match="truths differ"):
        streams[0].merge(streams[1])
    streams[0].save(tmp_path / "state.npz")
    with pytest.raises(DataError, match="not in the ground truth"):
        Evaluator.load(tmp_path / "state.npz", truth=truths[1])
    assert len(Evaluator.load(tmp_path / "state.npz", truth=truths[0])) == 1


def test_what_is_done_to_the_metrics_stays_with_the_caller() -> None:
    stream = Evaluator(classes=["a"])
    stream.update(*one(1))
    stream.compute().metrics["AP"] = 9
    assert stream.compute().metrics["AP"] < 1.1


@pytest.mark.parametrize("kind", [set, frozenset])
def test_names_without_an_order_are_refused(kind: type) -> None:
    with pytest.raises(DataError, match="a set has no order"):
        Evaluator("coco-bbox", classes=kind(["cat", "dog"]))
    assert len(Evaluator("coco-bbox", classes=kind([1, 2])).categories) == 2
    assert Evaluator("coco-bbox", classes={"b": 1, "a": 2}.keys()).categories.names == ("b", "a")


@pytest.mark.parametrize("key", ["boxes", "scores"])
def test_flags_are_no_boxes_and_no_scores(key: str) -> None:
    image: Fields = {"boxes": np.ones((2, 4)), "scores": np.ones(2), "labels": np.ones(2, int)}
    target = {"boxes": np.ones((2, 4)), "labels": np.ones(2, int)}
    flags = {**image, key: image[key] > 0}
    evaluator = Evaluator("coco-bbox")
    with pytest.raises(DataError, match=rf"\[1\]\.{key}: dtype bool"):
        evaluator.update([image, flags], [target, target])
    nothing = {**image, "boxes": np.zeros((0, 4), bool), "scores": np.zeros(0, bool)}
    evaluator.update([{**nothing, "labels": np.zeros(0, int)}], [target])
