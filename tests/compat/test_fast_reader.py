"""The compiled lane for large files stands in for dicts only where it holds all that they would
hold."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from detmap.compat import annotation_sources as sources
from tests.compat.both import Classes, assert_same, evaluation, from_files, run_both, same, written
from tests.compat.test_cocoeval import finish, records
from tests.reference import official
from tests.support.drawing import draw_coco

pytestmark = pytest.mark.filterwarnings("ignore::detmap.compat.PycocotoolsQuirk")


@pytest.fixture(scope="module", autouse=True)
def lane() -> None:
    """These tests say themselves for which files it is used."""


@pytest.fixture
def forced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "LEAST_SIZE", 1)


def scored_instances(padding: int) -> dict[str, Any]:
    """A ground truth whose annotations carry scores, as big as wanted."""
    instances = official.complete(draw_coco(np.random.default_rng(3), n_images=4, max_objects=8)[0])
    rng = np.random.default_rng(0)
    for annotation in instances["annotations"]:
        annotation["score"] = round(float(rng.random()), 3)
    instances["info"] = {"description": "x" * padding}
    return instances


@pytest.mark.parametrize("padding", [0, 1 << 20])
def test_annotations_with_scores_keep_them_as_detections(padding: int, tmp_path: Path) -> None:
    """Review, 4A: AP .1238 for .2189."""
    scored, (instances, _) = scored_instances(padding), records()
    truth = {**scored, "annotations": instances["annotations"][:0]}
    truth["annotations"] = [
        {**annotation, "bbox": [value + 1 for value in annotation["bbox"]]}
        for annotation in scored["annotations"]
    ]

    def script(classes: Classes) -> Any:
        pair = (
            classes.coco(written(str(tmp_path), truth)),
            classes.coco(written(str(tmp_path), scored)),
        )
        return finish(evaluation(classes, pair, {}))

    expected, found = run_both(script)
    assert len(set(found.eval["scores"].flatten())) > 2
    assert_same(expected, found)


@pytest.mark.usefixtures("forced")
def test_a_truth_as_detections_has_no_scores(tmp_path: Path) -> None:
    """Review, 4A: COCOeval(g, g) is a KeyError, not 1.0."""

    def script(classes: Classes) -> Any:
        truth = classes.coco(written(str(tmp_path), records()[0]))
        return finish(evaluation(classes, (truth, truth), {}))

    assert run_both(script) == (None, None)


EDITS: dict[str, Callable[[Any], Any]] = {
    "an annotation away": lambda coco: coco.dataset["annotations"].pop(),
    "all annotations away": lambda coco: coco.dataset.update(annotations=[]),
    "half of the annotations": lambda coco: coco.dataset.update(
        annotations=coco.dataset["annotations"][::2]
    ),
    "another dataset": lambda coco: setattr(coco, "dataset", {**coco.dataset, "annotations": []}),
    "a dataset nobody had read": lambda coco: setattr(coco, "dataset", {"images": []}),
    "another index": lambda coco: setattr(coco, "anns", {}),
    "an image away": lambda coco: coco.imgs.popitem(),
    "a category away": lambda coco: coco.dataset["categories"].pop(),
    "annotations of an image away": lambda coco: coco.imgToAnns.popitem(),
    "a box": lambda coco: [annotation["bbox"].reverse() for annotation in coco.anns.values()],
    "an area": lambda coco: [annotation.update(area=5) for annotation in coco.anns.values()],
    "all images renamed": lambda coco: [
        image.update(file_name="x") for image in coco.imgs.values()
    ],
}


@pytest.mark.slow
@pytest.mark.usefixtures("forced")
@pytest.mark.parametrize("edit", EDITS)
@pytest.mark.parametrize("index", [False, True])
@pytest.mark.parametrize("side", [0, 1])
def test_edits_count_as_in_pycocotools(edit: str, index: bool, side: int, tmp_path: Path) -> None:
    """Review, 4D: without createIndex() the index is what is evaluated."""
    instances, results = records()

    def script(classes: Classes) -> Any:
        truth, found = from_files(classes, tmp_path, instances, results)
        changed = (truth, found)[side]
        EDITS[edit](changed)
        if index:
            changed.createIndex()
        made = finish(evaluation(classes, (truth, found), {}))
        return made, [sorted(coco.getAnnIds()) for coco in (truth, found)], truth.getImgIds()

    expected, found = run_both(script)
    if expected is not None:
        assert_same(expected[0], found[0])
        assert same(list(expected[1:]), list(found[1:]))


@pytest.mark.usefixtures("forced")
def test_results_take_the_truth_as_it_was(tmp_path: Path) -> None:
    """Whatever happens to the ground truth's records after loadRes."""
    instances, results = records()

    def script(classes: Classes) -> Any:
        truth = classes.coco(written(str(tmp_path), instances))
        first, second = list(truth.cats)[:2]
        truth.cats[first]["name"] = "renamed before"
        found = truth.loadRes(written(str(tmp_path), results))
        truth.cats[second]["name"] = "renamed after"
        truth.dataset["images"].append({"id": 5})
        truth.dataset["images"][0]["seen"] = True
        return [found.dataset[name] for name in ("info", "images", "categories")], found.getImgIds()

    expected, found = run_both(script)
    assert same(list(expected), list(found))


KEYS: dict[str, dict[str, Any]] = {
    "ignore": {"ignore": 1},
    "caption": {"caption": "a cat"},
    "segmentation": {"segmentation": [[0.5, 0.5, 9, 0.5, 9, 9]]},
    "iscrowd": {"iscrowd": 1},
    "area and id": {"area": 3.5, "id": 77},
    "keypoints": {"keypoints": [1, 2, 2]},
    "anything": {"attributes": {"a": [1, None, True, "x"]}},
}


@pytest.mark.usefixtures("forced")
@pytest.mark.parametrize("keys", KEYS)
@pytest.mark.parametrize("every", [1, 2])
def test_further_keys_of_results(keys: str, every: int, tmp_path: Path) -> None:
    instances, results = records()
    for result in results[::every]:
        result.update(KEYS[keys])

    def script(classes: Classes) -> Any:
        truth, found = from_files(classes, tmp_path, instances, results)
        rows = [dict(row) for row in found.loadAnns(found.getAnnIds())]
        return rows, finish(evaluation(classes, (truth, found), {}))

    expected, found = run_both(script)
    if expected is not None:
        assert same(expected[0], found[0])
        assert_same(expected[1], found[1])


@pytest.mark.usefixtures("forced")
@pytest.mark.parametrize(
    "number", ["1", "1.0", "-0", "-0.0", "1e2", "0.1", "123456789012345678", "5e-324"]
)
def test_numbers_in_dicts_are_those_of_the_file(number: str, tmp_path: Path) -> None:
    """An integer stays one."""
    instances, results = records()
    text = json.dumps(results[:3]).replace('"score": ', f'"score": {number}, "other": ')
    (tmp_path / "results.json").write_text(text)

    def script(classes: Classes) -> Any:
        truth = classes.coco(written(str(tmp_path), instances))
        return [repr(row) for row in truth.loadRes(str(tmp_path / "results.json")).anns.values()]

    expected, found = run_both(script)
    assert expected == found
