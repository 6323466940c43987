"""Tables check themselves when they are made, by whatever way; wrong ones cannot exist."""

import copy
import pickle
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

import detmap
from detmap import Categories, DataError, DetmapError, Evaluator, Images, MergeError, ProtocolError
from detmap.core.base.immutable import own
from detmap.core.overlaps.keypoints import Keypoints
from detmap.core.overlaps.masks import Masks
from detmap.core.tables import ABSENT, Detections, Scope, Truth, truth_key
from detmap.kernels.runs import Runs

BOX = [[0.0, 0.0, 10.0, 10.0]]


def tables(n: int = 4) -> tuple[Truth, Detections]:
    rng = np.random.default_rng(0)
    ids, boxes = np.arange(n), rng.uniform(1, 50, (n, 4))
    truth = detmap.truth_from_arrays(
        ids, ids % 2, boxes, crowd=ids % 3 == 0, categories={0: "a", 1: "b"}
    )
    return truth, detmap.detections_from_arrays(truth, ids, ids % 2, boxes, rng.random(n))


def view(array: np.ndarray) -> np.ndarray:
    return np.repeat(array, 2, axis=0)[::2]


def changed(array: np.ndarray, value: object) -> np.ndarray:
    copy = array.copy()
    copy.reshape(-1)[-1] = value
    return copy


WRONG: dict[str, Callable[[Any], Any]] = {
    "label -1": lambda t: replace(t, label=changed(t.label, -1)),
    "label 10**6": lambda t: replace(t, label=changed(t.label, 10**6)),
    "image 2**31-1": lambda t: replace(t, image=changed(t.image, 2**31 - 1)),
    "image of 64 bits": lambda t: replace(t, image=t.image.astype(np.int64)),
    "image one short": lambda t: replace(t, image=t.image[:-1]),
    "image as a list": lambda t: replace(t, image=t.image.tolist()),
    "big-endian image": lambda t: replace(t, image=t.image.astype(">i4")),
    "big-endian boxes": lambda t: replace(t, boxes=t.boxes.astype(">f8")),
    "boxes in strides": lambda t: replace(t, boxes=view(t.boxes)),
    "boxes by column": lambda t: replace(t, boxes=np.asfortranarray(t.boxes)),
    "boxes of three": lambda t: replace(t, boxes=np.ascontiguousarray(t.boxes[:, :3])),
    "a scalar for boxes": lambda t: replace(t, boxes=np.float64(3)),
    "boxes NaN": lambda t: replace(t, boxes=changed(t.boxes, np.nan)),
    "boxes infinite": lambda t: replace(t, boxes=changed(t.boxes, -np.inf)),
    "boxes of 1e200": lambda t: replace(t, boxes=changed(t.boxes, 1e200)),
    "masked boxes": lambda t: replace(t, boxes=np.ma.masked_array(t.boxes)),
    "a format of boxes": lambda t: replace(t, box_format="cxcywh"),
    "images None": lambda t: replace(t, images=None),
    "notes as a list": lambda t: replace(t, notes=["x"]),
    "fewer images": lambda t: replace(t, images=t.images.take(np.arange(2))),
    "fewer classes": lambda t: replace(t, categories=t.categories.take(np.arange(1))),
}


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("table", tables(), ids=["truth", "detections"])
def test_a_wrong_table_cannot_be_made_by_replace(table: Truth | Detections, name: str) -> None:
    with pytest.raises(DataError, match=type(table).__name__):
        WRONG[name](table)


@pytest.mark.parametrize(
    "column, value",
    [
        ("score", changed(np.zeros(4), np.nan)),
        ("score", np.zeros(4, dtype=">f8")),
        ("score", np.zeros(4, dtype=np.float32)),
        ("score", np.zeros(3)),
    ],
)
def test_scores_that_are_none(column: str, value: np.ndarray) -> None:
    with pytest.raises(DataError, match=r"Detections.score"):
        replace(tables()[1], **{column: value})


@pytest.mark.parametrize(
    "column, value, where",
    [
        ("roles", {"crowd": np.zeros(4)}, r"roles\['crowd'\]"),
        ("roles", {"crowd": np.zeros(3, dtype=bool)}, r"roles\['crowd'\]"),
        ("roles", {1: np.zeros(4, dtype=bool)}, "roles"),
        ("roles", [np.zeros(4, dtype=bool)], "roles"),
        ("attributes", {}, "attributes: area is missing"),
        ("attributes", {"area": changed(np.zeros(4), np.nan)}, r"attributes\['area'\]\[3\]"),
        (
            "attributes",
            {"area": np.zeros(4), "height": np.zeros(4, int)},
            r"attributes\['height'\]",
        ),
        ("scope", Scope(np.array([0, 0]), np.zeros(0, np.int32), np.zeros(0, np.uint8)), "scope"),
    ],
)
def test_wrong_columns_of_objects(column: str, value: object, where: str) -> None:
    with pytest.raises(DataError, match=rf"Truth\.{where}"):
        replace(tables()[0], **{column: value})


@pytest.mark.parametrize(
    "make, where",
    [
        (lambda: Categories(np.array([2, 1]), ("a", "b")), "Categories.ids"),
        (lambda: Categories(np.array([1, 1]), ("a", "b")), "Categories.ids"),
        (lambda: Categories(np.array([1.0]), ("a",)), "Categories.ids"),
        (lambda: Categories(np.array([1]), ("a", "b")), "Categories.ids"),
        (lambda: Categories(np.array([1]), (5,)), "Categories.names"),  # type: ignore[arg-type]
        (lambda: Categories(np.array([1]), ("a",), ("r", "c")), "Categories.groups"),
        (lambda: Images(np.array([2, 1]), ("", ""), *np.zeros((2, 2))), "Images.ids"),
        (lambda: Images(np.array(["b", "a"]), ("", ""), *np.zeros((2, 2))), "Images.ids"),
        (lambda: Images(np.array([1]), (), *np.zeros((2, 1))), "Images.stems"),
        (lambda: Images(np.array([1]), ("",), *np.zeros((2, 2))), "Images.width"),
        (lambda: Images(np.array(["a" * 2000]), ("",), *np.zeros((2, 1))), "Images.ids"),
    ],
)
def test_wrong_images_and_classes(make: Callable[[], object], where: str) -> None:
    with pytest.raises(DataError, match=where):
        make()


def test_a_scope_that_is_none() -> None:
    off, kind = np.array([0, 2, 2]), np.full(2, ABSENT, np.uint8)
    good = Scope(off, np.array([0, 1], np.int32), kind)
    assert len(good.select_images(np.array([1]))) == 0
    assert good.select_images(np.array([0])).label.tolist() == [0, 1]
    for wrong in (
        lambda: Scope(off, np.array([1, 0], np.int32), kind),
        lambda: Scope(off, np.array([-1, 0], np.int32), kind),
        lambda: Scope(np.array([0, 1, 1]), np.array([0, 1], np.int32), kind),
        lambda: Scope(off, np.array([0, 1], np.int32), kind * 0),
    ):
        with pytest.raises(DataError, match="Scope"):
            wrong()


def test_what_is_done_to_an_array_afterwards_does_not_reach_the_kernels() -> None:
    truth, detections = tables()
    image, label = detections.image.copy(), detections.label.copy()
    mine = replace(detections, image=image, label=label)
    image[:], label[:] = 10**9, -(10**9)
    assert np.array_equal(
        list(detmap.evaluate(truth, mine).metrics.values()),
        list(detmap.evaluate(truth, detections).metrics.values()),
        equal_nan=True,
    )
    for field in fields(mine):
        value = getattr(mine, field.name)
        if isinstance(value, np.ndarray) and value.size:
            with pytest.raises(ValueError, match="read-only"):
                value.reshape(-1)[0] = value.reshape(-1)[0]


def unfrozen(array: np.ndarray) -> np.ndarray:
    """An array that says it is read-only, and does not stay so."""
    array = array.copy()
    array.flags.writeable = False
    return array


@pytest.mark.parametrize("column", ["image", "label", "boxes", "score"])
def test_no_column_can_be_made_writable(column: str) -> None:
    """Once SIGSEGV, or AP 0.0 in silence."""
    truth, detections = tables()
    before = detmap.evaluate(truth, detections).signature
    with pytest.raises(ValueError, match="WRITEABLE"):
        getattr(detections, column).flags.writeable = True
    handed_in = unfrozen(getattr(detections, column))
    mine = replace(detections, **{column: handed_in})
    handed_in.flags.writeable = True
    handed_in[:] = 2**30
    behind = bytearray(getattr(detections, column).tobytes())
    window = np.frombuffer(memoryview(behind).toreadonly(), handed_in.dtype)
    other = replace(detections, **{column: window.reshape(handed_in.shape)})
    behind[:] = b"\x7f" * len(behind)
    assert [detmap.evaluate(truth, each).signature for each in (mine, other)] == [before] * 2


def everything() -> list[Any]:
    truth, detections = tables()
    scope = Scope(np.arange(5), np.zeros(4, np.int32), np.full(4, ABSENT, np.uint8))
    matches = detmap.match(truth, detections, detmap.load_protocol("coco-bbox"), taken=True)
    points = Keypoints(np.zeros((4, 2, 3)), np.ones(4))
    none, pair = np.zeros(0, np.int64), np.zeros((0, 2), np.int64)
    runs = Runs(
        pair, np.zeros(1, np.int64), none.astype(np.uint16), np.zeros((0, 4)), none, none > 0, none
    )
    masks = Masks(runs, np.zeros(0))
    parts = [truth.images, truth.categories, matches.taken]
    return [replace(truth, scope=scope, shapes=points), detections, scope, matches, masks, *parts]


@pytest.mark.parametrize("table", everything(), ids=lambda table: type(table).__name__)
@pytest.mark.parametrize(
    "again",
    [copy.copy, copy.deepcopy]
    + [lambda table, p=p: pickle.loads(pickle.dumps(table, p)) for p in range(6)],
)
def test_copies_of_tables_cannot_be_changed(table: Any, again: Callable[[Any], Any]) -> None:
    """Once SIGSEGV: copies were writable, and nobody looked at them again."""
    same = again(table)
    assert type(same) is type(table)
    for field in fields(same):
        value = getattr(same, field.name)
        columns = value.values() if isinstance(value, Mapping) else [value]
        for column in columns:
            if isinstance(column, np.ndarray):
                assert column.tobytes() == own(column).tobytes()
                with pytest.raises(ValueError, match="WRITEABLE"):
                    column.flags.writeable = True


def test_a_pickle_is_checked_like_any_table() -> None:
    truth, _ = tables()
    make, (kind, *values) = truth.__reduce__()
    names = [field.name for field in fields(truth)]
    columns = dict(zip(names, values, strict=True))
    with pytest.raises(DataError, match=r"Truth.image\[3\]"):
        make(kind, *{**columns, "image": changed(truth.image, 10**8)}.values())


def test_tables_survive_pickling() -> None:
    truth, detections = tables()
    again = pickle.loads(pickle.dumps((truth, detections)))
    assert detmap.evaluate(*again).signature == detmap.evaluate(truth, detections).signature
    assert list(again[0].roles) == ["crowd"]


def test_detections_that_were_read_against_another_truth() -> None:
    """Once SIGSEGV with fewer images, AP 0.0 with more, AP 1.0 with as many others."""

    def truth(ids: Any, category: int = 1) -> Truth:
        boxes = BOX * len(ids)
        return detmap.truth_from_arrays(ids, [category] * len(ids), boxes)

    small, large, other = truth([1, 2]), truth(range(1, 1000)), truth([1, 3])
    for known, read_with in ((small, large), (large, small), (small, other)):
        found = detmap.detections_from_arrays(
            read_with,
            read_with.images.ids,
            [1] * len(read_with),
            read_with.boxes,
            [0.5] * len(read_with),
        )
        assert truth_key(known) != truth_key(found)
        with pytest.raises(DataError, match=r"truth of other images .* only"):
            detmap.evaluate(known, found)
    found = detmap.detections_from_arrays(small, [1], [1], BOX, [0.5])
    with pytest.raises(DataError, match=r"truth of other classes .*'2 2'"):
        detmap.evaluate(truth([1, 2], 2), found)
    assert detmap.evaluate(truth([1, 2]), found).metrics["AR100"] == 0.5


def test_digests_know_roles_and_attributes_by_name_and_image() -> None:
    truth, detections = tables()
    protocol = detmap.load_protocol("coco-bbox")

    def digest(**columns: Any) -> str:
        return detmap.match(replace(truth, **columns), detections, protocol).data_digest()

    plain = digest()
    none, area = np.zeros(4, dtype=bool), truth.area
    nan = np.full(4, np.nan)
    crowd = truth.crowd
    assert digest(roles={"difficult": none, "crowd": crowd}) == plain
    assert digest(attributes={"height": nan, "area": area}) == plain
    others = {
        plain,
        digest(roles={}),
        digest(roles={"difficult": crowd}),
        digest(roles={"crowd": crowd, "ignore": crowd}),
        digest(attributes={"area": area, "height": area}),
        digest(attributes={"area": area + 1}),
    }
    assert len(others) == 6


GOOD: dict[str, Any] = {"image_id": [1], "category_id": [1], "boxes": BOX}
ODD_TRUTH: dict[str, dict[str, Any]] = {
    "mixed ids": {"image_id": [1, "a"], "category_id": [1, 1], "boxes": BOX * 2},
    "ids equal when stored": {"image_id": ["a\0", "a"], "category_id": [1, 1], "boxes": BOX * 2},
    "an id of 20,000 characters": {"image_id": ["a" * 20_000]},
    "one number for ids": {"image_id": 5},
    "true for an id": {"image_id": [True]},
    "a string as category id": {"category_id": ["cat"]},
    "complex boxes": {"boxes": np.array(BOX) * 1j},
    "masked boxes": {"boxes": np.ma.masked_array(BOX, mask=[[1, 0, 0, 0]])},
    "boxes as text": {"boxes": [["0", "0", "1", "1"]]},
    "ragged boxes": {"boxes": [[1, 2, 3], [1]]},
    "strings as flags": {"crowd": ["no"]},
    "NaN as a flag": {"crowd": [np.nan]},
    "a flag of two": {"crowd": [2]},
    "one area for all": {"area": 5.0},
    "complex area": {"area": [1j]},
    "a list of classes": {"categories": ["cat"]},
    "classes by number": {"categories": {1: 5}},
}


@pytest.mark.parametrize("name", ODD_TRUTH)
def test_arrays_that_mean_nothing(name: str) -> None:
    with pytest.raises(DataError) as caught:
        detmap.truth_from_arrays(**{**GOOD, **ODD_TRUTH[name]})
    assert caught.value.where.startswith("truth arrays")
    assert caught.value.fix


TRUTH, FOUND = tables()
ARRAYS = ([0], [0], BOX, [0.5])
CALLS: dict[str, Callable[[], object]] = {
    "classes=5": lambda: Evaluator(classes=5),  # type: ignore[arg-type]
    "protocol=None": lambda: Evaluator(None, classes=["a"]),  # type: ignore[arg-type]
    "settings='x'": lambda: Evaluator(classes=["a"], settings="x"),  # type: ignore[arg-type]
    "box_format=[]": lambda: Evaluator(classes=["a"], box_format=[]),  # type: ignore[arg-type]
    "merge(5)": lambda: Evaluator(classes=["a"]).merge(5),  # type: ignore[arg-type]
    "truth=detections": lambda: Evaluator(truth=FOUND),  # type: ignore[arg-type]
    "threads=-1": lambda: detmap.evaluate(TRUTH, FOUND, threads=-1),
    "threads=0": lambda: detmap.evaluate(TRUTH, FOUND, threads=0),
    "threads='x'": lambda: detmap.evaluate(TRUTH, FOUND, threads="x"),  # type: ignore[arg-type]
    "swapped tables": lambda: detmap.evaluate(FOUND, TRUTH),  # type: ignore[arg-type]
    "match swapped": lambda: detmap.match(FOUND, TRUTH, None),  # type: ignore[arg-type]
    "summarize(5)": lambda: detmap.summarize(5),  # type: ignore[arg-type]
    "read_truth(5)": lambda: detmap.read_truth(5),  # type: ignore[arg-type]
    "read_detections(, 5)": lambda: detmap.read_detections("x", 5),  # type: ignore[arg-type]
    "arrays without truth": lambda: detmap.detections_from_arrays(None, *ARRAYS),  # type: ignore[arg-type]
    "score as text": lambda: detmap.detections_from_arrays(TRUTH, *ARRAYS[:3], ["1"]),
    "curve(iou='x')": lambda: detmap.evaluate(TRUTH, FOUND).curve("a", iou="x"),  # type: ignore[arg-type]
    "curve(iou=nan)": lambda: detmap.evaluate(TRUTH, FOUND).curve("a", iou=np.nan),
    "select_classes([99])": lambda: detmap.evaluate(TRUTH, FOUND).matches.select_classes([99]),
    "select_classes([-1])": lambda: detmap.evaluate(TRUTH, FOUND).matches.select_classes([-1]),
    "select_classes(0)": lambda: detmap.evaluate(TRUTH, FOUND).matches.select_classes(0),
    "select(['a'])": lambda: detmap.evaluate(TRUTH, FOUND).matches.select(["a"]),
    "select([1, 'a'])": lambda: detmap.evaluate(TRUTH, FOUND).matches.select([1, "a"]),
    "Matches.merge(5)": lambda: detmap.evaluate(TRUTH, FOUND).matches.merge(5),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("name", CALLS)
def test_calls_that_mean_nothing(name: str) -> None:
    with pytest.raises((DataError, ProtocolError, MergeError)) as caught:
        CALLS[name]()
    assert caught.value.fix


def test_an_original_size_in_words() -> None:
    stream = Evaluator(classes=["a"], box_format="normalized xyxy")
    image = {"boxes": [[0, 0, 1, 1]], "labels": [0], "orig_size": ["480", "640"]}
    with pytest.raises(DataError, match="orig_size"):
        stream.update([{**image, "scores": [1]}], [image])
    assert len(stream) == 0


def test_sync_needs_no_torch_where_there_is_one_rank() -> None:
    stream = Evaluator(classes=["a"])
    assert stream.sync() is stream


@pytest.mark.parametrize("where", [".", "/dev/null"])
def test_saving_to_what_is_no_file(where: str) -> None:
    with pytest.raises(DetmapError, match=r"is a folder|not a regular file"):
        Evaluator(classes=["a"]).save(where)
