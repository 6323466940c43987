"""The drop-in's `COCOeval` beside pycocotools': arrays, stats, printed text, evalImgs and ious."""

import copy
import gc
import json
import pickle
import sys
import warnings
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from detmap.compat import PycocotoolsQuirk, eval_imgs, quirks
from detmap.compat import annotation_sources as sources
from detmap.compat.cocoeval import LATER, COCOeval
from tests.compat.both import (
    OFFICIAL,
    OURS,
    Classes,
    Script,
    assert_same,
    assert_same_arrays,
    evaluation,
    load,
    run,
    run_both,
    same,
    summarize,
)
from tests.reference import official
from tests.support.drawing import CocoData, coco_data, draw_coco, many_detections
from tests.support.drawing_shapes import draw_keypoints, draw_segm
from tests.support.tier import drawn

pytestmark = pytest.mark.filterwarnings("ignore::detmap.compat.PycocotoolsQuirk")


def finish(made: Any) -> Any:
    made.accumulate()
    summarize(made)
    return made


def whole(data: Any, params: Any = None, kind: str = "bbox") -> Script:
    """The script that evaluates and summarizes these instances and results."""
    return lambda classes: finish(evaluation(classes, load(classes, *data), params or {}, kind))


def check(
    data: CocoData, finished: Callable[[Any], Any] = finish, *, native: bool = True, **params: Any
) -> None:
    """The same script under both, evaluated by detmap's own engine."""
    expected, found = run_both(
        lambda classes: finished(evaluation(classes, load(classes, *data), params))
    )
    if expected is not None:
        assert (found._evaluated is not None) == native
        assert_same(expected, found)


@pytest.mark.slow
@settings(max_examples=drawn(150))
@given(st.one_of(coco_data(), coco_data(zero_id=True)))
def test_stock_parameters_give_the_arrays_of_pycocotools(data: CocoData) -> None:
    check(data)


@settings(max_examples=drawn(20))
@given(many_detections())
def test_more_detections_than_the_limit(data: CocoData) -> None:
    check(data)


@st.composite
def parameters(draw: st.DrawFn) -> dict[str, Any]:
    """Some parameters replaced by lists that nobody sorted."""
    numbers = st.sampled_from([0.0, 0.05, 0.3, 0.5, 0.5, 0.55, 0.75, 1.0, 1.5])
    bounds = st.sampled_from([-1, 0, 32, 50, 400, 1024, 1e4, 1e10, float("inf")])
    choices = {
        "iouThrs": st.lists(numbers, min_size=1, max_size=5).map(np.array),
        "recThrs": st.lists(numbers, min_size=1, max_size=7).map(np.array),
        "areaRng": st.lists(st.lists(bounds, min_size=2, max_size=2), min_size=1, max_size=4),
        "maxDets": st.lists(st.sampled_from([1, 2, 3, 5, 10, 100]), min_size=1, max_size=4),
        "imgIds": st.lists(
            st.sampled_from([0, 7, 3, 42, 1_000_000_007, 139, 5, 999]), min_size=1, max_size=6
        ),
        "catIds": st.lists(st.sampled_from([18, 1, 90, 3, 44, 77, 1000]), min_size=1, max_size=6),
        "useCats": st.sampled_from([0, 1]),
    }
    chosen = draw(st.sets(st.sampled_from(sorted(choices)), min_size=1))
    return {name: draw(choices[name]) for name in sorted(chosen)}


@pytest.mark.slow
@settings(max_examples=drawn(300))
@given(st.one_of(coco_data(), coco_data(zero_id=True)), parameters())
def test_mutated_parameters_give_equal_arrays(data: CocoData, params: dict[str, Any]) -> None:
    def accumulate(made: Any) -> Any:
        made.accumulate()
        return made

    check(data, accumulate, **params)


@pytest.mark.slow
@pytest.mark.parametrize(
    "params",
    [
        {"iouThrs": np.linspace(0.9, 0.01, 150)},
        {"maxDets": [7]},
        {"maxDets": [1, 10, 300]},
        {"maxDets": [3, 100, 2, 1]},
        {"useCats": 0},
        {"useCats": 0, "catIds": [44, 18, 44]},
        {"useCats": True},
        {"useSegm": 0},
        {"areaRngLbl": ["a"] * 4},
        {"iouThrs": [0.5, 0.75]},
        {"recThrs": [0, 1]},
        {"recThrs": np.array([0.9, 0.1, 0.5])},
        {"recThrs": np.linspace(0, 1, 5, dtype=np.float32)},
        {"areaRng": ((0, 100), (0, 1e10))},
    ],
)
@pytest.mark.parametrize("seed", range(4))
def test_chosen_parameters_give_equal_arrays(seed: int, params: dict[str, Any]) -> None:
    """Summaries too, with the errors that pycocotools has for them."""
    check(draw_coco(np.random.default_rng(seed)), **params)


@pytest.mark.parametrize(
    "params",
    [
        {"iouThrs": np.array([0.5], dtype=np.float32)},
        {"iouThrs": np.array([np.nan])},
        {"iouThrs": []},
        {"imgIds": []},
        {"catIds": []},
        {"maxDets": [0, 3]},
        {"maxDets": [-1]},
        {"maxDets": [1.5]},
        {"maxDets": []},
        {"areaRng": []},
        {"areaRng": [[0, np.nan]]},
        {"useCats": 2},
        {"useCats": None},
        {"imgIds": ["7"]},
        {"iouType": "nothing"},
        {"recThrs": np.array([0.5, np.nan])},
        {"areaRng": [[5]]},
        {"maxDets": None},
        {"recThrs": [[0.5], [0.5, 1]]},
    ],
)
def test_parameters_that_pycocotools_itself_takes(params: dict[str, Any]) -> None:
    native = bool(params.keys() & {"recThrs", "imgIds"}) and params != {"imgIds": []}
    check(draw_coco(np.random.default_rng(5)), native=native, **params)


LISTS = ("iouThrs", "maxDets", "catIds", "imgIds", "recThrs", "areaRng")


@pytest.mark.slow
@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("empty", [np.array([]), []], ids=["array", "list"])
@pytest.mark.parametrize("names", [*combinations(LISTS, 1), *combinations(LISTS, 2)])
def test_empty_parameters_leave_the_arrays_of_pycocotools(
    names: tuple[str, ...], empty: Any, late: bool
) -> None:
    """Whatever ``summarize``, which fails on some of them, would say."""
    values = dict.fromkeys(names, empty)

    def script(classes: Classes) -> Any:
        made = evaluation(classes, load(classes, *records()), {} if late else values)
        for name in names if late else ():
            setattr(made.params, name, copy.copy(empty))
        made.accumulate()
        return made

    expected, found = run_both(script)
    if expected is not None:
        assert_same_arrays(expected, found)
        assert same(expected.evalImgs, found.evalImgs)


@pytest.mark.slow
@settings(max_examples=drawn(200))
@given(coco_data(), parameters(), parameters())
def test_accumulate_other_parameters(
    data: CocoData, first: dict[str, Any], second: dict[str, Any]
) -> None:
    def accumulate(made: Any) -> Any:
        other = copy.deepcopy(made.params)
        for name, value in second.items():
            setattr(other, name, copy.deepcopy(value))
        made.accumulate(other)
        return made

    check(data, accumulate, **first)


@pytest.mark.parametrize(
    "change",
    [
        {"catIds": [1, 77]},
        {"catIds": [77, 1]},
        {"catIds": [3, 77]},
        {"catIds": [3, 1]},
        {"areaRng": [[0, 1e10], [0, 5], [0, 7], [5, 9]]},
        {"areaRng": [[0, 5], [0, 1e10], [0, 1024], [5, 9]]},
        {"areaRng": [[1024, 9216], [0, 1024], [0, 1e10], [9216, 1e10]]},
        {"maxDets": [1, 2, 100]},
        {"maxDets": [100, 10, 1]},
        {"imgIds": [0, 7, 999]},
        {"imgIds": [7, 7, 7]},
        {"iouThrs": np.linspace(0.1, 0.9, 10)},
    ],
    ids=str,
)
@pytest.mark.parametrize("read", [False, True])
def test_accumulate_with_other_values_of_equal_length(change: dict[str, Any], read: bool) -> None:
    """Review, 3: catIds [1, 2] evaluated, [1, 77] accumulated, 6,060 cells differ."""
    data = draw_coco(np.random.default_rng(9), n_images=3, n_classes=5, max_objects=20)
    first = {"catIds": [1, 3], "imgIds": [0, 3, 7]}

    def accumulate(made: Any) -> Any:
        other = copy.deepcopy(made.params)
        for name, value in change.items():
            setattr(other, name, value)
        if read:
            len(made.evalImgs)
        made.accumulate(other)
        return made

    check(data, accumulate, **first)


@pytest.mark.parametrize("seed", range(drawn(12)))
def test_accumulate_with_a_part_of_the_parameters(seed: int) -> None:
    """Done by the engine; which places pycocotools reads is imitated."""
    rng = np.random.default_rng(seed)
    data = draw_coco(rng, n_images=4, n_classes=3, max_detections=20)

    def accumulate(made: Any) -> Any:
        other, rng = copy.deepcopy(made.params), np.random.default_rng(seed)
        other.imgIds = (
            other.imgIds[: int(rng.integers(1, 5))]
            if seed % 2
            else other.imgIds[int(rng.integers(4)) :]
        )
        other.catIds = other.catIds[int(rng.integers(3)) :]
        other.areaRng = [other.areaRng[2], [0, 5], other.areaRng[0]]
        other.maxDets = [100, 1, 77]
        other.recThrs = np.linspace(0, 1, 11)
        made.accumulate(other)
        return made

    expected, found = run_both(
        lambda classes: accumulate(evaluation(classes, load(classes, *data), {}))
    )
    assert found._waits_for("evalImgs"), "the engine did it"
    assert_same(expected, found)


def test_again_with_other_parameters() -> None:
    """useCats 0 leaves catIds as [-1] behind, so the second evaluation finds nothing."""

    def again(made: Any) -> Any:
        finish(made)
        made.params.maxDets = [3, 2, 100]
        made.evaluate()
        return finish(made)

    data = draw_coco(np.random.default_rng(3))
    check(data, again)
    check(data, again, useCats=0)


# --- records --------------------------------------------------------------------------------------


def records(seed: int = 1) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Instances and results with objects, crowds and detections of several classes."""
    instances, results = draw_coco(
        np.random.default_rng(seed), n_images=3, n_classes=2, max_detections=25
    )
    return official.complete(instances), results


def spoiled(change: Callable[[dict[str, Any], dict[str, Any]], Any]) -> Any:
    """A script in which truth and detections, as datasets, were changed before they were
    indexed."""
    instances, results = records()

    def script(classes: Classes) -> Any:
        truth, found = load(classes, instances, results)
        change(truth.dataset, found.dataset)
        truth.createIndex()
        found.createIndex()
        return finish(evaluation(classes, (truth, found), {}))

    return script


def each(side: str, **changes: Any) -> Callable[[dict[str, Any], dict[str, Any]], None]:
    """Set keys of every annotation of ``truth`` or ``found``, to values or to what a function
    makes of row and annotation."""

    def change(truth: dict[str, Any], found: dict[str, Any]) -> None:
        for row, annotation in enumerate({"truth": truth, "found": found}[side]["annotations"]):
            for key, value in changes.items():
                annotation[key] = value(row, annotation) if callable(value) else value

    return change


NATIVE = {
    "negative ids of objects": each("truth", id=lambda row, _: -1 - row),
    "one id for two objects": each("truth", id=lambda row, _: row // 2 + 1),
    "one id for two detections": each("found", id=lambda row, _: row // 2 + 1),
    "areas of masks": each("found", area=lambda row, found: found["area"] * (row % 3)),
    "negative sizes": each(
        "found", bbox=lambda row, found: [*found["bbox"][:3], -1.0 if row % 3 else found["bbox"][3]]
    ),
    "images as strings": lambda truth, found: [
        record.update({key: str(record[key])})
        for tree in (truth, found)
        for group, key in (("images", "id"), ("annotations", "image_id"))
        for record in {id(record): record for record in tree[group]}.values()
        if not isinstance(record[key], str)
    ],
    "boxes as arrays": each(
        "truth", bbox=lambda _, truth: np.array(truth["bbox"], dtype=np.float32)
    ),
    "scores of numpy": each("found", score=lambda _, found: np.float32(found["score"])),
    "flags as booleans": each("truth", iscrowd=lambda _, truth: bool(truth["iscrowd"])),
    "an ignore flag of their own": each("truth", ignore=1),
    "endless scores": each(
        "found", score=lambda row, _: float("inf") if row % 2 else -float("inf")
    ),
    "images that are not listed": lambda truth, found: truth["images"].pop(),
}
FOREIGN = {
    "ids of detections from 0": each("found", id=lambda row, _: row),
    "negative ids of detections": each("found", id=lambda row, _: -1 - row),
    "scores that are no number": each(
        "found", score=lambda row, _: float("nan") if row % 3 == 0 else 0.5
    ),
    "scores that are booleans": each("found", score=lambda row, _: row % 2 == 0),
    "boxes as tuples": each("truth", bbox=lambda _, truth: tuple(truth["bbox"])),
    "boxes of five": each("found", bbox=[0, 0, 1, 1, 1]),
    "endless boxes": each("found", bbox=[0.0, 0.0, float("inf"), 1.0]),
    "no area": lambda truth, found: [annotation.pop("area") for annotation in truth["annotations"]],
    "no iscrowd": lambda truth, found: [
        annotation.pop("iscrowd") for annotation in truth["annotations"]
    ],
    "no score": lambda truth, found: [
        annotation.pop("score") for annotation in found["annotations"]
    ],
    "no id": lambda truth, found: [annotation.pop("id") for annotation in found["annotations"]],
    "ids as strings": each("truth", id=lambda row, _: f"a{row}"),
    "ids beyond 64 bits": each("truth", id=lambda row, _: 2**70 + row),
    "half a crowd": each("truth", iscrowd=0.5),
    "crowds of two": each("truth", iscrowd=2),
    "areas that are no number": each("truth", area=float("nan")),
}


@pytest.mark.parametrize("name", NATIVE)
def test_odd_records_are_evaluated_as_by_pycocotools(name: str) -> None:
    expected, found = run_both(spoiled(NATIVE[name]))
    assert found._evaluated is not None
    assert_same(expected, found)


@pytest.mark.parametrize("name", FOREIGN)
def test_records_that_pycocotools_itself_takes(name: str) -> None:
    expected, found = run_both(spoiled(FOREIGN[name]))
    if expected is not None:
        assert found._evaluated is None
        assert_same(expected, found)


# --- from files -----------------------------------------------------------------------------------


@pytest.mark.slow
@settings(max_examples=drawn(60))
@given(data=st.one_of(coco_data(), coco_data(zero_id=True)), mix=st.randoms(use_true_random=False))
def test_files_are_evaluated_as_by_pycocotools(
    data: CocoData, mix: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Of plain files no dict is made; evalImgs and ious included."""
    assume(data[1])  # pycocotools does not load an empty file
    folder = tmp_path_factory.mktemp("files")
    instances, results = official.complete(data[0]), data[1]
    for group in ("images", "categories"):
        mix.shuffle(instances[group])
    Path(folder, "instances.json").write_text(json.dumps(instances))
    Path(folder, "results.json").write_text(json.dumps(results))

    def script(classes: Classes) -> Any:
        truth = classes.coco(str(folder / "instances.json"))
        return finish(evaluation(classes, (truth, truth.loadRes(str(folder / "results.json"))), {}))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sources, "LEAST_SIZE", 1)
        expected, found = run_both(script)
    if expected is not None:
        assert_same(expected, found)
        # a number such as 1e-300 makes a file one for json.load
        for side in (found.cocoGt, found.cocoDt):
            if isinstance(side._source, sources.Results):
                assert (side.columns(scored=True) is None) != side._waits_for("dataset")


# --- using the parts ------------------------------------------------------------------------------


def test_nothing_is_built_unless_it_is_read() -> None:
    made = run(whole(records()), OURS).value
    assert made._waits_for("evalImgs", "ious", "_gts", "_dts")


EDITS = ("cell", "score", "moved score", "match", "matches", "flag", "object", "key", "all")


def edited(made: Any, edit: str) -> None:
    """Changes results by image where a program may."""
    cells = [cell for cell in made.evalImgs if cell is not None and cell["dtIds"]]
    cell = next(cell for cell in cells if cell["gtIds"] or edit != "object")
    if edit == "cell":
        made.evalImgs[made.evalImgs.index(cell)] = None
    elif edit == "score":
        cell["dtScores"][0] = 0.001
    elif edit == "moved score":  # all scores in turn stay the same; the cells' lengths do not
        cells[1]["dtScores"].insert(0, cells[0]["dtScores"].pop())
    elif edit == "match":
        cell["dtMatches"][0, 0] += 1
    elif edit == "matches":
        cell["dtMatches"] = np.ones_like(cell["dtMatches"])
    elif edit == "flag":
        cell["dtIgnore"][-1, -1] ^= True
    elif edit == "object":
        cell["gtIgnore"][0] = 1
    elif edit == "key":
        del cell["dtIgnore"]
    else:
        made.evalImgs = None


@pytest.mark.parametrize("edit", EDITS)
def test_each_edit_of_results_by_image_is_noticed(edit: str) -> None:
    def script(classes: Classes) -> Any:
        made = evaluation(classes, load(classes, *records()), {})
        finish(made)
        assert isinstance(made.evalImgs, list)
        edited(made, edit)
        if classes is OURS:
            assert not made._is_as_made()
        return finish(made)

    expected, found = run(script, OFFICIAL), run(script, OURS)
    assert found.error == expected.error
    if not expected.error:
        assert_same_arrays(expected.value, found.value)
        assert same(expected.value.stats, found.value.stats)


@pytest.mark.parametrize(
    "kind",
    [
        tuple,
        lambda cells: np.array(cells, dtype=object),
        lambda cells: np.array(cells[:1], dtype=object),
        lambda cells: np.array([], dtype=object),
        lambda cells: dict(enumerate(cells)),
        lambda cells: [],
    ],
    ids=["tuple", "array", "array of one", "empty array", "dict", "empty list"],
)
def test_results_by_image_in_another_container(kind: Callable[[Any], Any]) -> None:
    def script(classes: Classes) -> Any:
        made = evaluation(classes, load(classes, *records()), {})
        made.evalImgs = kind(made.evalImgs)
        return finish(made)

    expected, found = run(script, OFFICIAL), run(script, OURS)
    assert (found.error, found.text) == (expected.error, expected.text)
    if not expected.error:
        assert_same_arrays(expected.value, found.value)


def test_results_by_image_that_were_only_read(monkeypatch: Any) -> None:
    def script(classes: Classes) -> Any:
        made = evaluation(classes, load(classes, *records()), {})
        shape = (-1, len(made.params.areaRng), len(made.params.imgIds))
        cells = np.asarray(made.evalImgs, dtype=object).reshape(shape)
        made.evalImgs = list(cells.flatten())  # as torchvision's references do
        if classes is OURS:
            assert made._is_as_made()
            assert not pickle.loads(pickle.dumps(made))._is_as_made()
        return finish(made)

    monkeypatch.setattr(eval_imgs, "parts_of_results", None)
    assert_same(*run_both(script))


def test_another_length_of_an_axis_is_noticed() -> None:
    def script(classes: Classes) -> Any:
        made = evaluation(classes, load(classes, *records()), {})
        assert made.evalImgs
        made._paramsEval.imgIds = made._paramsEval.imgIds[:-1]
        if classes is OURS:
            assert not made._is_as_made()
        return finish(made)

    expected, found = run_both(script)
    assert_same_arrays(expected, found)


def test_results_by_image_from_elsewhere_are_accumulated() -> None:
    """As torchvision's references put the parts of several processes together."""

    def script(classes: Classes) -> Any:
        pair = load(classes, *records())
        halves = [
            evaluation(classes, pair, {"imgIds": ids})
            for ids in (pair[0].getImgIds()[:1], pair[0].getImgIds()[1:])
        ]
        shape = (-1, len(halves[0].params.areaRng))
        parts = [
            np.asarray(half.evalImgs, dtype=object).reshape(*shape, len(half.params.imgIds))
            for half in halves
        ]
        merged = classes.evaluation(*pair, "bbox")
        merged.params.imgIds = [image for half in halves for image in half.params.imgIds]
        merged.evalImgs = list(np.concatenate(parts, axis=2).flatten())
        merged._paramsEval = copy.deepcopy(merged.params)
        return finish(merged)

    expected, found = run_both(script)
    assert_same_arrays(expected, found)
    assert same(expected.stats, found.stats)


def test_steps_answer_after_evaluate() -> None:
    """Review, 4E: None, [] and empty dicts."""

    def script(classes: Classes) -> Any:
        made = evaluation(classes, load(classes, *records()), {})
        p = made.params
        cells = [(image, category) for image in p.imgIds for category in p.catIds]
        return (
            [
                made.evaluateImg(*cell, bounds, limit)
                for cell in cells
                for bounds in (*p.areaRng, [5, 50])
                for limit in (1, 100)
            ],
            [made.computeIoU(*cell) for cell in cells],
            dict(made._gts),
            dict(made._dts),
            run(lambda _: made.computeOks(*cells[0]), classes).error,
        )

    expected, found = run_both(script)
    assert sum(map(len, expected[3].values())) > 10
    assert same(list(expected), list(found))


def test_results_by_image_that_were_changed_through_a_view_are_accumulated() -> None:
    """Arrays are contiguous as in pycocotools: a flat view of them is no copy."""

    def script(classes: Classes) -> Any:
        made = evaluation(classes, load(classes, *records()), {})
        for result in made.evalImgs:
            if result is not None:
                for name in ("dtMatches", "gtMatches"):
                    result[name].reshape(-1)[:1] = 0
                result["dtIgnore"].ravel()[1:2] = True
        return finish(made)

    assert_same(*run_both(script))


@pytest.mark.parametrize("collects", [True, False])
def test_results_of_images_are_plain_dicts_with_a_shared_table(collects: bool) -> None:
    """590,000 of them fit in memory; the garbage collector is paused meanwhile, and only then."""
    folder = Path(__file__).parents[2] / "datasets" / "shapes"

    def script(classes: Classes) -> Any:
        truth = classes.coco(str(folder / "instances_test.json"))
        found = truth.loadRes(str(folder / "detections" / "contours.json"))
        return evaluation(classes, (truth, found), {})

    expected, found = run_both(script)
    (gc.enable if collects else gc.disable)()
    try:
        cells = [cell for cell in found.evalImgs if cell is not None]
        assert gc.isenabled() == collects
    finally:
        gc.enable()
    keys = next(list(cell) for cell in expected.evalImgs if cell is not None)
    assert {type(cell) for cell in cells} == {dict}
    assert all(list(cell) == keys for cell in cells)
    own = dict(zip(keys, cells[0].values(), strict=True))
    assert sys.getsizeof(cells[0]) < sys.getsizeof(own)
    cells[0]["other"] = 1
    del cells[0]["dtIds"]
    assert list(cells[1]) == keys


@pytest.mark.parametrize("name", ["evalImgs", "ious", "_gts", "_dts"])
def test_what_was_deleted_is_gone(name: str) -> None:
    """Review, 4G."""

    def script(classes: Classes) -> Any:
        made = evaluation(classes, load(classes, *records()), {})
        delattr(made, name)
        error = run(lambda _: finish(made), classes).error
        assert not hasattr(made, name)
        assert name not in vars(made)
        made.evaluate()
        return error, finish(made)

    expected, found = run_both(script)
    assert expected[0] == found[0]
    assert_same(expected[1], found[1])


def test_vars_has_every_attribute() -> None:
    """Review, 4G."""

    def script(classes: Classes) -> Any:
        pair = load(classes, *records())
        made = finish(evaluation(classes, pair, {}))
        for record in pair[0].dataset["annotations"]:  # without `createIndex`
            record["id"] += 1000
        cells = [
            {key: [record["id"] for record in of[key]] for key in of if of[key]}
            for of in (made._gts, made._dts)
        ]
        return {**vars(made)}, {**vars(pair[0])}, {**vars(pair[1])}, dir(made), cells

    expected, found = run_both(script)
    for before, after in zip(expected[:3], found[:3], strict=True):
        assert before.keys() <= after.keys()
        for name in before.keys() & {"evalImgs", "ious", "stats", "imgs", "cats", "catToImgs"}:
            assert same(before[name], after[name]), name
    assert set(expected[3]) <= set(found[3])
    assert expected[4] == found[4]


def test_overlaps_that_somebody_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Review, 4G: ``pycocotools.mask.iou`` is what pycocotools calls."""
    from pycocotools import mask

    monkeypatch.setattr(mask, "iou", lambda d, g, crowd: np.full((len(d), len(g)), 0.6))
    expected, found = run_both(whole(records()))
    assert found._evaluated is None
    assert_same(expected, found)


def test_steps_out_of_order_fail_alike() -> None:
    for step in ("accumulate", "summarize"):
        run_both(
            lambda classes, step=step: getattr(
                classes.evaluation(*load(classes, *records()), "bbox"), step
            )()
        )
    run_both(lambda classes: classes.evaluation(iouType=None))
    run_both(lambda classes: classes.evaluation(iouType="other"))


def test_a_subclass_with_overlaps_of_its_own() -> None:
    def script(classes: Classes) -> Any:
        class Inverted(classes.evaluation):
            def computeIoU(self, image_id: int, category_id: int) -> Any:  # noqa: N802
                ious = super().computeIoU(image_id, category_id)
                return 1 - ious if len(ious) else ious

        return finish(evaluation(Classes(classes.coco, Inverted), load(classes, *records()), {}))

    expected, found = run_both(script)
    assert found._evaluated is None
    assert_same(expected, found)


def test_a_subclass_that_hides_annotations() -> None:
    def script(classes: Classes) -> Any:
        class Half(classes.coco):
            def getAnnIds(self, *args: Any, **kwargs: Any) -> Any:  # noqa: N802
                return super().getAnnIds(*args, **kwargs)[::2]

        return finish(evaluation(classes, load(Classes(Half, None), *records()), {}))

    assert_same(*run_both(script))


@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda made: pickle.loads(pickle.dumps(made))]
)
@pytest.mark.parametrize("n_steps", range(4))
def test_copies_go_on_where_the_original_stood(again: Any, n_steps: int) -> None:
    def script(classes: Classes) -> Any:
        made = classes.evaluation(*load(classes, *records()), "bbox")
        for step in ("evaluate", "accumulate", "summarize")[:n_steps]:
            getattr(made, step)()
        made = again(made)
        for step in ("evaluate", "accumulate", "summarize")[n_steps:]:
            getattr(made, step)()
        return made

    assert_same(*run_both(script))


@pytest.mark.parametrize("name", LATER)
@pytest.mark.parametrize("edits_copy", [False, True])
def test_a_shallow_copy_shares_what_is_made_later(name: str, edits_copy: bool) -> None:
    def script(classes: Classes) -> Any:
        made = evaluation(classes, load(classes, *records()), {})
        other = copy.copy(made)
        edited, kept = (other, made) if edits_copy else (made, other)
        value = getattr(edited, name)
        if isinstance(value, list):
            value[:] = [None] * len(value)
        else:
            value.clear()
        assert getattr(kept, name) is value
        kept.accumulate()
        edited.evaluate()
        assert getattr(kept, name) is value is not getattr(edited, name)
        return kept.eval["precision"], kept.eval["scores"]

    expected, found = run_both(script)
    assert same(list(expected), list(found))


def masks_and_keypoints() -> tuple[dict[str, Any], list[dict[str, Any]], list[dict[str, Any]]]:
    """A small truth, detections with masks, detections with keypoints."""
    rng = np.random.default_rng(0)
    annotations, with_masks, with_keypoints = [], [], []
    for i in range(12):
        x, y, size = rng.integers(5, 40), rng.integers(5, 40), rng.integers(10, 30)
        outline = [[float(v) for v in (x, y, x + size, y, x + size, y + size, x, y + size)]]
        points = np.column_stack(
            [rng.integers(x, x + size, 17), rng.integers(y, y + size, 17), np.full(17, 2)]
        )
        box = [float(x), float(y), float(size), float(size)]
        annotations.append(
            {
                "id": i + 1,
                "image_id": i % 3,
                "category_id": 1,
                "bbox": box,
                "area": float(size**2),
                "iscrowd": 0,
                "segmentation": outline,
                "keypoints": points.flatten().tolist(),
                "num_keypoints": 17,
            }
        )
        shared = {"image_id": i % 3, "category_id": 1, "score": round(float(rng.random()), 1)}
        moved = [[v + 2 for v in outline[0]]]
        with_masks.append(shared | {"segmentation": moved, "bbox": box})
        with_keypoints.append(
            shared | {"keypoints": (points + np.array([1, 1, 0])).flatten().tolist()}
        )
    images = [{"id": i, "width": 100, "height": 100} for i in range(3)]
    classes = [{"id": 1, "name": "person"}]
    instances = {"images": images, "categories": classes, "annotations": annotations}
    return instances, with_masks, with_keypoints


@pytest.mark.parametrize("seed", range(drawn(15)))
@pytest.mark.parametrize("iou_type", ["segm", "keypoints"])
def test_drawn_masks_and_keypoints(iou_type: str, seed: int) -> None:
    """Polygons, run lengths of both kinds, crowds, objects without keypoints; read or not."""
    draw = draw_segm if iou_type == "segm" else draw_keypoints
    data = draw(np.random.default_rng(seed))
    ids = [each["id"] for each in data[0]["categories"]]
    params = {"useCats": 0, "catIds": [*ids, *ids[:1], *ids[:2]]} if seed % 3 == 1 else {}

    def script(classes: Classes) -> Any:
        made = evaluation(classes, load(classes, *data), params, iou_type)
        if seed % 2:
            len(made.evalImgs)
        return finish(made)

    expected, found = run_both(script)
    assert (found._evaluated is not None) == (not params or iou_type == "segm")
    assert_same(expected, found)


def test_a_deprecated_switch_to_masks() -> None:
    instances, with_masks, _ = masks_and_keypoints()
    assert_same(*run_both(whole((instances, with_masks), {"useSegm": 1})))


# --- wrong behaviours -----------------------------------------------------------------------------


def provoke(kind: str) -> None:
    instances, results = records()
    pair = load(OURS, instances, results)
    params: dict[str, Any] = {}
    if kind == "id-zero":
        pair[0].dataset["annotations"][0]["id"] = 0
        pair[0].createIndex()
    elif kind == "id-not-positive":
        pair[1].dataset["annotations"][0]["id"] = 0
        pair[1].createIndex()
    elif kind == "id-twice":
        pair[0].dataset["annotations"][0]["id"] = pair[0].dataset["annotations"][1]["id"]
        pair[0].createIndex()
    elif kind == "category-unlisted":
        pair[0].dataset["categories"].pop()
        pair[0].createIndex()
        params = {"catIds": [1, 3, 18, 44, 90]}
    elif kind == "points-unsorted":
        params = {"recThrs": np.array([1, 0.5])}
    elif kind == "categories-forgotten":
        params = {"useCats": 0}
    elif kind == "summary-of-defaults":
        params = {"maxDets": [1, 10, 300]}
        evaluated = evaluation(OURS, pair, params)
        evaluated.accumulate()
        evaluated.summarize()
        return
    made: COCOeval = evaluation(OURS, pair, params)
    if kind == "subset-by-position":
        other = copy.deepcopy(made.params)
        other.catIds = other.catIds[1:]
        made.accumulate(other)
    finish(made)


@pytest.mark.parametrize("kind", quirks.QUIRKS)
def test_wrong_behaviour_is_told_once(kind: str, monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.setattr(quirks, "_warned", set())
    with pytest.warns(PycocotoolsQuirk, match=rf"\[{kind}\]") as told:
        provoke(kind)
    assert [str(each.message).rpartition("[")[2] for each in told] == [f"{kind}]"]
    assert told[0].filename.endswith(("test_cocoeval.py", "both.py"))
    with warnings.catch_warnings():
        warnings.simplefilter("error", PycocotoolsQuirk)
        provoke(kind)


def test_the_documentation_names_each_of_them() -> None:
    import detmap.compat

    for kind in quirks.QUIRKS:
        assert f"\n{kind} " in (detmap.compat.__doc__ or "")


ONE = {
    "images": [{"id": 1}],
    "categories": [{"id": 1, "name": "a"}],
    "annotations": [
        {"id": 1, "image_id": 1, "category_id": 1, "bbox": [0, 0, 9, 9], "area": 81, "iscrowd": 0}
    ],
}


def _scored(*found: tuple[int, int]) -> list[dict[str, Any]]:
    return [
        {"image_id": 1, "category_id": 1, "bbox": [left, 0, 9, 9], "score": score}
        for left, score in found
    ]


def test_more_area_ranges_than_a_word_has_bits() -> None:
    ranges = [[0, 1e10], *([i, i + 40] for i in range(70))]
    labels = ["all", "small", "medium", "large", *map(str, range(67))]
    check((ONE, _scored((0, 1), (5, 2))), native=False, areaRng=ranges, areaRngLbl=labels)


def test_integer_scores_that_no_float_tells_apart() -> None:
    check((ONE, _scored((50, 2**53), (0, 2**53 + 1))), native=False)


def test_without_detections_the_error_is_that_of_pycocotools() -> None:
    def script(classes: Classes) -> None:
        truth = classes.coco()
        truth.dataset = ONE
        truth.createIndex()
        classes.evaluation(truth, None, "bbox").evaluate()

    run_both(script)
    assert run(script, OURS).error.startswith("AttributeError")


def test_sigmas_that_are_no_array_stop_both() -> None:
    data = draw_keypoints(np.random.default_rng(3))
    for classes in (OFFICIAL, OURS):
        pair = load(classes, *data)
        with pytest.raises(TypeError, match="unsupported operand"):
            evaluation(classes, pair, {"kpt_oks_sigmas": [0.1] * 17}, "keypoints")
