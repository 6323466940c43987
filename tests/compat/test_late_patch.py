"""The README's order: objects, names and subclasses of pycocotools exist before the patch."""

import copy
import json
import pickle
from abc import ABC
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pycocotools import coco, cocoeval
from pycocotools.coco import COCO as imported_coco  # noqa: N811
from pycocotools.cocoeval import COCOeval as imported_evaluation  # noqa: N813

from detmap.compat import COCO, COCOeval, patch_pycocotools
from detmap.compat.class_stand_in import is_ours
from tests.compat.both import OFFICIAL, Classes, assert_same, evaluation, load, run, same
from tests.compat.test_cocoeval import finish, records

pytestmark = pytest.mark.filterwarnings("ignore::detmap.compat.PycocotoolsQuirk")


class Truth(coco.COCO):  # type: ignore[misc, name-defined]
    """As the wrapper of TensorFlow's models: made before, calling a name that is looked up now."""

    def __init__(self, dataset: Any = None) -> None:
        coco.COCO.__init__(self)
        if dataset is not None:
            self.dataset = dataset
            self.createIndex()

    def load(self, results: Any) -> Any:
        found = coco.COCO()
        found.dataset["images"] = list(self.dataset["images"])
        found.dataset["categories"] = copy.deepcopy(self.dataset["categories"])
        for number, result in enumerate(results, start=1):
            area = result["bbox"][2] * result["bbox"][3]
            result.update(area=area, id=number, iscrowd=0)
        found.dataset["annotations"] = results
        found.createIndex()
        return found


class Evaluation(cocoeval.COCOeval):  # type: ignore[misc, name-defined]
    def __init__(self, truth: Any, found: Any) -> None:
        cocoeval.COCOeval.__init__(self, truth, found, iouType="bbox")

    def summarize(self) -> None:
        cocoeval.COCOeval.summarize(self)
        self.first = self.stats[0]


def early() -> tuple[Any, Any]:
    """Objects of pycocotools, whatever its names stand for now."""
    found: tuple[Any, Any] = run(lambda classes: load(classes, *records()), OFFICIAL).value
    return found


@pytest.fixture
def expected() -> Any:
    return run(lambda classes: finish(evaluation(classes, early(), {})), OFFICIAL).value


METHODS: dict[str, Any] = {
    "createIndex": lambda truth: coco.COCO.createIndex(truth),
    "getImgIds": lambda truth: coco.COCO.getImgIds(truth),
    "getImgIds of a category": lambda truth: sorted(coco.COCO.getImgIds(truth, catIds=[1])),
    "getCatIds": lambda truth: coco.COCO.getCatIds(truth),
    "getCatIds by name": lambda truth: coco.COCO.getCatIds(truth, catNms=["class 1"]),
    "getAnnIds": lambda truth: coco.COCO.getAnnIds(truth, imgIds=[7]),
    "loadAnns": lambda truth: coco.COCO.loadAnns(truth, [1]),
    "loadImgs": lambda truth: coco.COCO.loadImgs(truth, [7]),
    "loadCats": lambda truth: coco.COCO.loadCats(truth, [1]),
    "loadRes": lambda truth: coco.COCO.loadRes(truth, records()[1]).anns,
    "loadRes by method": lambda truth: truth.loadRes(records()[1]).anns,
    "info": lambda truth: coco.COCO.info(truth),
    "init": lambda truth: coco.COCO.__init__(truth) or truth.dataset,
}


@pytest.mark.parametrize("name", METHODS)
def test_methods_of_the_patched_class_take_early_objects(name: str) -> None:
    """Review, 4B: AttributeError."""
    before = run(lambda _: METHODS[name](early()[0]), OFFICIAL)
    with patch_pycocotools():
        after = run(lambda _: METHODS[name](early()[0]), OFFICIAL)
    assert same(before.value, after.value)
    assert before.error == after.error
    assert before.text == after.text


def test_early_objects_are_evaluated_by_detmap(expected: Any) -> None:
    pair = early()
    with patch_pycocotools():
        found = run(
            lambda _: finish(evaluation(Classes(coco.COCO, cocoeval.COCOeval), pair, {})), OFFICIAL
        ).value
        assert found._evaluated is not None
    assert_same(expected, found)


def test_early_results_of_an_early_truth(expected: Any) -> None:
    truth = early()[0]
    with patch_pycocotools():
        found = run(lambda _: truth.loadRes(records()[1]), OFFICIAL).value
        assert is_ours(found, COCO), "pycocotools looks its own name up"
        made = run(
            lambda _: finish(evaluation(Classes(None, imported_evaluation), (truth, found), {})),
            OFFICIAL,
        ).value
    assert_same(expected, made)


def test_an_early_evaluation_goes_on(expected: Any) -> None:
    made = run(lambda classes: evaluation(classes, early(), {}), OFFICIAL).value
    with patch_pycocotools():
        run(lambda _: cocoeval.COCOeval.accumulate(made), OFFICIAL)
        run(lambda _: cocoeval.COCOeval.summarize(made), OFFICIAL)
    assert_same(expected, made)
    with patch_pycocotools():
        run(lambda _: cocoeval.COCOeval.evaluate(made), OFFICIAL)
        run(lambda _: finish(made), OFFICIAL)
    assert_same(expected, made)


@pytest.mark.parametrize("when", ["first", "last", "never"])
def test_early_subclasses_are_served(when: str, expected: Any) -> None:
    """Review, 4C: TypeError."""
    instances, results = records()
    truth = Truth(copy.deepcopy(instances)) if when == "last" else None
    patch = None if when == "never" else patch_pycocotools()
    try:
        truth = truth or Truth(copy.deepcopy(instances))
        made = Evaluation(truth, truth.load(results))
        error = run(lambda _: finish(made.evaluate() or made), OFFICIAL).error
        assert not error
        assert_same(expected, made)
        assert made.first == expected.stats[0]
    finally:
        if patch:
            patch.restore()


def test_isinstance_and_issubclass_as_before() -> None:
    truth, found = early()
    made = OFFICIAL.evaluation(truth, found, "bbox")
    with patch_pycocotools():
        for thing, name in ((truth, coco.COCO), (made, cocoeval.COCOeval)):
            assert isinstance(thing, name)
        assert isinstance(Truth(), coco.COCO)
        assert isinstance(coco.COCO(), coco.COCO)
        assert issubclass(Truth, coco.COCO)
        assert issubclass(Evaluation, cocoeval.COCOeval)
        assert issubclass(OFFICIAL.coco, coco.COCO)
        assert not isinstance(truth, cocoeval.COCOeval)
        assert not isinstance(5, coco.COCO)

        class Further(coco.COCO):  # type: ignore[misc, name-defined]
            pass

        assert not isinstance(truth, Further)
        assert isinstance(Further(), OFFICIAL.coco)
    assert not isinstance(truth, COCO)
    assert not issubclass(Evaluation, COCOeval)


def test_an_abstract_class_beside() -> None:
    class Both(COCO, ABC):
        pass

    assert Both().dataset == {}


@pytest.mark.parametrize(
    "again", [copy.deepcopy, copy.copy, lambda x: pickle.loads(pickle.dumps(x))]
)
def test_early_objects_are_copied_and_pickled(again: Any, expected: Any) -> None:
    """Pickling a class whose name stands for another one is an error."""
    made = OFFICIAL.evaluation(*early(), "bbox")
    with patch_pycocotools():
        made = again(made)
        assert type(made) is OFFICIAL.evaluation
        assert type(made.cocoGt) is OFFICIAL.coco
    run(lambda _: finish(made.evaluate() or made), OFFICIAL)
    assert_same(expected, made)


def test_pickles_cross_the_border_of_the_patch(expected: Any) -> None:
    before = pickle.dumps(run(lambda c: evaluation(c, early(), {}), OFFICIAL).value)
    with patch_pycocotools():
        inside = pickle.loads(before)
        again = pickle.dumps(inside)
        assert_same(expected, run(lambda _: finish(inside), OFFICIAL).value)
        fresh = pickle.dumps(
            run(lambda _: evaluation(Classes(None, cocoeval.COCOeval), early(), {}), OFFICIAL).value
        )
    for text in (before, again, fresh):
        assert_same(expected, run(lambda _, t=text: finish(pickle.loads(t)), OFFICIAL).value)


def test_imported_names_and_files(tmp_path: Path, expected: Any) -> None:
    instances, results = records()
    (tmp_path / "truth.json").write_text(json.dumps(instances))
    (tmp_path / "results.json").write_text(json.dumps(results))
    with patch_pycocotools():
        truth = run(lambda _: imported_coco(str(tmp_path / "truth.json")), OFFICIAL).value
        found = run(lambda _: truth.loadRes(str(tmp_path / "results.json")), OFFICIAL).value
        made = run(
            lambda _: finish(evaluation(Classes(None, imported_evaluation), (truth, found), {})),
            OFFICIAL,
        ).value
    assert_same(expected, made)


def test_super_of_a_class_that_was_written_under_the_patch(expected: Any) -> None:
    with patch_pycocotools():

        class Later(cocoeval.COCOeval):  # type: ignore[misc, name-defined]
            def summarize(self) -> None:
                super().summarize()
                self.first = float(self.stats[0])

    made = run(lambda _: finish(evaluation(Classes(None, Later), early(), {})), OFFICIAL).value
    assert made._evaluated is not None
    assert_same(expected, made)
    assert np.isclose(made.first, expected.stats[0])
