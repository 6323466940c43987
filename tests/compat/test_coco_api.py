"""The drop-in's `COCO` beside pycocotools': columns while nobody asks, the same dicts as soon as
somebody does."""

import copy
import gc
import json
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from detmap.compat import COCO
from detmap.compat import annotation_sources as sources
from detmap.compat.coco_api import EVERYTHING
from detmap.compat.lazy_attributes import own_dict
from detmap.errors import DataError
from tests.compat.both import (
    OFFICIAL,
    OURS,
    Classes,
    Script,
    assert_same,
    evaluation,
    load,
    run,
    run_both,
    same,
)
from tests.compat.test_cocoeval import finish, masks_and_keypoints, records

pytestmark = pytest.mark.filterwarnings("ignore::detmap.compat.PycocotoolsQuirk")
DICTS = {"dataset", "anns", "imgToAnns", "catToImgs"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Plain files, small ones counting as large."""
    monkeypatch.setattr(sources, "LEAST_SIZE", 1)
    instances, results = records()
    instances["info"] = {"year": 2017}
    for category in instances["categories"]:
        category["supercategory"] = "thing"
    for result in results:
        result["score"] = round(result["score"], 3)
    (tmp_path / "instances.json").write_text(json.dumps(instances))
    (tmp_path / "results.json").write_text(json.dumps(results))
    return tmp_path


def pair(classes: Classes, folder: Path) -> tuple[Any, Any]:
    truth = classes.coco(str(folder / "instances.json"))
    return truth, truth.loadRes(str(folder / "results.json"))


def evaluated(folder: Path) -> Script:
    """The script that evaluates both files and summarizes."""
    return lambda classes: finish(evaluation(classes, pair(classes, folder), {}))


def table(folder: Path) -> np.ndarray:
    rows = json.loads((folder / "results.json").read_text())
    return np.array(
        [[row["image_id"], *row["bbox"], row["score"], row["category_id"]] for row in rows],
        dtype=np.float64,
    )


def built(coco: Any) -> set[str]:
    return set(own_dict(coco)) & (DICTS | {"imgs", "cats"})


def test_plain_files_stay_columns(folder: Path) -> None:
    made = run(evaluated(folder), OURS).value
    assert made._evaluated is not None
    assert made.cocoGt.columns(scored=False) is not None
    assert made.cocoDt.columns(scored=True) is not None
    assert built(made.cocoGt) == built(made.cocoDt) == set()


ATTRIBUTES = ("dataset", "anns", "cats", "imgs", "imgToAnns", "catToImgs")


@pytest.mark.parametrize("first", range(len(ATTRIBUTES)))
@pytest.mark.parametrize("side", [0, 1])
def test_attributes_in_any_order(first: int, side: int, folder: Path) -> None:
    names = ATTRIBUTES[first:] + ATTRIBUTES[:first]
    expected, found = run_both(
        lambda classes: [getattr(pair(classes, folder)[side], name) for name in names]
    )
    for name, a, b in zip(names, expected, found, strict=True):
        assert same(dict(a), dict(b)), name
        assert list(a) == list(b), name


QUERIES: dict[str, Callable[[Any], Any]] = {
    "all images": lambda coco: coco.getImgIds(),
    "images by id": lambda coco: sorted(coco.getImgIds(imgIds=coco.getImgIds()[:2])),
    "images by one id": lambda coco: coco.getImgIds(imgIds=coco.getImgIds()[0]),
    "images by category": lambda coco: sorted(coco.getImgIds(catIds=coco.getCatIds())),
    "all categories": lambda coco: coco.getCatIds(),
    "categories by name": lambda coco: coco.getCatIds(
        catNms=[coco.loadCats(coco.getCatIds())[0]["name"]]
    ),
    "categories above": lambda coco: coco.getCatIds(supNms="thing"),
    "categories by id": lambda coco: coco.getCatIds(catIds=coco.getCatIds()[1:]),
    "all annotations": lambda coco: coco.getAnnIds(),
    "annotations of an image": lambda coco: coco.getAnnIds(imgIds=coco.getImgIds()[0]),
    "annotations of a size": lambda coco: coco.getAnnIds(areaRng=[10, 300]),
    "crowds": lambda coco: coco.getAnnIds(iscrowd=True),
    "records": lambda coco: [
        coco.loadAnns(coco.getAnnIds()[:3]),
        coco.loadImgs(coco.getImgIds()),
        coco.loadCats(coco.getCatIds()[0]),
    ],
    "strange records": lambda coco: coco.loadAnns([-5]),
    "information": lambda coco: coco.info(),
}


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("side", [0, 1])
def test_queries_answer_as_pycocotools(name: str, side: int, folder: Path) -> None:
    assert same(*run_both(lambda classes: QUERIES[name](pair(classes, folder)[side])))


def test_images_and_categories_without_annotations(folder: Path) -> None:
    truth, found = run(lambda classes: pair(classes, folder), OURS).value
    for coco in (truth, found):
        coco.getImgIds()
        coco.getCatIds(catNms="class 1")
        coco.loadImgs(coco.getImgIds())
        coco.loadCats(coco.getCatIds())
        assert built(coco) == {"imgs", "cats"}


def test_each_record_is_one_object(folder: Path) -> None:
    truth, found = run(lambda classes: pair(classes, folder), OURS).value
    for coco in (truth, found):
        image = next(iter(coco.imgs.values()))
        image["seen"] = True
        assert coco.dataset["images"][list(coco.imgs).index(image["id"])] is image
        annotation = coco.dataset["annotations"][0]
        assert coco.anns[annotation["id"]] is annotation
        assert coco.imgToAnns[annotation["image_id"]][0] is annotation
    assert found.dataset["images"][0] is truth.dataset["images"][0]
    assert found.dataset["categories"][0] is not truth.dataset["categories"][0]


RESULTS: dict[str, Callable[[Path], Any]] = {
    "path": lambda folder: str(folder / "results.json"),
    "no such path": lambda folder: str(folder / "nothing.json"),
    "not a list": lambda folder: str(folder / "instances.json"),
    "list": lambda folder: json.loads((folder / "results.json").read_text()),
    "tuple": lambda folder: tuple(json.loads((folder / "results.json").read_text())),
    "other image": lambda folder: [
        {"image_id": 4711, "category_id": 1, "bbox": [0, 0, 1, 1], "score": 1}
    ],
    "no image": lambda folder: [{"category_id": 1, "bbox": [0, 0, 1, 1], "score": 1}],
    "captions": lambda folder: [
        {
            "image_id": json.loads((folder / "results.json").read_text())[0]["image_id"],
            "caption": "x",
        }
    ],
    "array": table,
    "array of float32": lambda folder: table(folder)[table(folder)[:, 0] < 1000].astype(np.float32),
    "array of another order": lambda folder: np.asfortranarray(table(folder)),
    "array of six columns": lambda folder: table(folder)[:, :6],
    "array of one dimension": lambda folder: table(folder)[0],
    "array with another image": lambda folder: table(folder) + np.array([10**6, 0, 0, 0, 0, 0, 0]),
    "array with a missing id": lambda folder: np.where(
        table(folder) == table(folder)[0, 0], np.nan, table(folder)
    ),
    "array with fractions": lambda folder: table(folder) + np.array([0.5, 0, 0, 0, 0, 0, 0.9]),
    "array with unknown categories": lambda folder: (
        table(folder) + np.array([0, 0, 0, 0, 0, 0, 100_000])
    ),
    "array with an endless box": lambda folder: np.where(
        table(folder) == table(folder)[0, 3], np.inf, table(folder)
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", RESULTS)
@pytest.mark.parametrize("touched", [False, True])
@pytest.mark.filterwarnings("ignore:invalid value")
def test_results_of_every_kind(name: str, touched: bool, folder: Path) -> None:
    """Numbers and dicts; `touched`: the ground truth's dicts were made before."""

    def script(classes: Classes) -> Any:
        truth = classes.coco(str(folder / "instances.json"))
        if touched:
            len(truth.dataset)
        found = truth.loadRes(RESULTS[name](folder))
        if name == "captions":
            return found.dataset
        made = finish(evaluation(classes, (truth, found), {}))
        return made, found.dataset, found.anns, found.getImgIds()

    expected, found = run_both(script)
    if isinstance(expected, tuple):
        assert_same(expected[0], found[0])
        expected, found = expected[1:], found[1:]
    assert repr(expected) == repr(found)  # types of numbers too


def test_an_array_is_copied(folder: Path) -> None:
    def script(classes: Classes) -> Any:
        truth, given = classes.coco(str(folder / "instances.json")), table(folder)
        found = truth.loadRes(given)
        given[:] = 0
        return finish(evaluation(classes, (truth, found), {}))

    expected, found = run_both(script)
    assert found.cocoDt.columns(scored=True) is not None
    assert_same(expected, found)


@pytest.mark.parametrize(
    "change",
    [
        lambda tree: tree.pop("categories"),
        lambda tree: tree.pop("annotations"),
        lambda tree: tree["annotations"][0].pop("id"),
        lambda tree: tree["annotations"][0].pop("iscrowd"),
        lambda tree: tree["annotations"][0].pop("area"),
        lambda tree: tree["annotations"][1].update(id=tree["annotations"][0]["id"]),
        lambda tree: tree["annotations"][1].update(category_id=70_000),
        lambda tree: tree["images"].append(tree["images"][0]),
        lambda tree: tree["annotations"][1].update(image_id=5),
        lambda tree: tree["categories"][0].update(id=70_000),
        lambda tree: tree["images"][0].update(id="a"),
        lambda tree: tree["images"][0].update(id=2**70),
    ],
)
def test_files_that_are_not_plain(change: Callable[[Any], Any], folder: Path) -> None:
    tree = json.loads((folder / "instances.json").read_text())
    change(tree)
    (folder / "instances.json").write_text(json.dumps(tree))
    expected, found = run_both(evaluated(folder))
    if expected is not None:
        assert_same(expected, found)


def test_images_of_no_common_kind(folder: Path) -> None:
    tree = json.loads((folder / "instances.json").read_text())
    tree["images"] += [{"id": "a"}, {"id": 2**70}]
    (folder / "instances.json").write_text(json.dumps(tree))

    def script(classes: Classes) -> Any:
        truth = classes.coco(str(folder / "instances.json"))
        return [truth.loadRes(RESULTS[name](folder)).anns for name in ("path", "array", "list")]

    assert same(*run_both(script))


@pytest.mark.parametrize("text", ["", "[]", "{", "[1, 2]", '{"images": [}'])
def test_broken_files_fail_as_in_pycocotools(text: str, folder: Path) -> None:
    (folder / "broken.json").write_text(text)
    run_both(lambda classes: classes.coco(str(folder / "broken.json")).getImgIds())
    run_both(lambda classes: classes.coco(str(folder / "missing.json")))
    run_both(lambda classes: classes.coco(folder / "instances.json").getImgIds())


def test_detections_of_unlisted_categories(folder: Path) -> None:
    rows = json.loads((folder / "results.json").read_text())
    for row in rows[::2]:
        row["category_id"] = 65_000
    (folder / "results.json").write_text(json.dumps(rows))
    expected, found = run_both(evaluated(folder))
    assert found.cocoDt.columns(scored=True) is not None
    assert_same(expected, found)


def test_dicts_after_the_file_is_gone(folder: Path) -> None:
    expected = run(lambda classes: pair(classes, folder)[1].anns, OFFICIAL).value
    found = run(lambda classes: pair(classes, folder)[1], OURS).value
    (folder / "results.json").unlink()
    assert same(expected, found.anns)


@pytest.mark.parametrize("name", ["instances.json", "results.json"])
def test_a_file_that_was_rewritten_in_place_still_gives_its_dicts(name: str, folder: Path) -> None:
    """Review, 4F."""
    side = ["instances.json", "results.json"].index(name)

    def script(classes: Classes) -> Any:
        coco = pair(classes, folder)[side]
        text = (folder / name).read_text()
        (folder / name).write_text("[]")
        try:
            return coco.anns, coco.dataset
        finally:
            (folder / name).write_text(text)

    assert same(*map(list, run_both(script)))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes in folders here")
@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_what_is_no_file_is_refused_at_once(kind: str, folder: Path) -> None:
    """A pipe without a writer: once it waited for ever."""
    place = folder / "no.json" if kind == "pipe" else Path("/dev/zero")
    if kind == "pipe":
        os.mkfifo(place)
    truth, _ = run(lambda classes: pair(classes, folder), OURS).value
    for read in (OURS.coco, truth.loadRes):
        with pytest.raises(DataError, match=f"a {kind}, not a file"):
            read(str(place))


def test_a_folder_and_a_missing_file_are_errors_of_pycocotools(folder: Path) -> None:
    def script(classes: Classes, name: str) -> Any:
        return classes.coco(str(folder / name))

    def results(classes: Classes, name: str) -> Any:
        return pair(classes, folder)[0].loadRes(str(folder / name))

    for name in (".", "missing.json", "a\0b"):
        for read in (script, results):
            run_both(lambda classes, read=read, name=name: read(classes, name))


def test_results_that_say_no_more_than_columns_keep_no_text(folder: Path) -> None:
    """The whole text of a large file once stayed in memory."""
    rows = json.loads((folder / "results.json").read_text())
    for row in rows:
        row.update(bbox=list(map(float, row["bbox"])), score=float(row["score"]))
    (folder / "results.json").write_text(json.dumps(rows))
    source = run(lambda classes: pair(classes, folder)[1], OURS).value._source
    assert source.text is None
    (folder / "results.json").write_text("[]")
    assert source._records() == rows
    assert [list(row) for row in source._records()] == [list(row) for row in rows]
    rows[3]["score"] = 1  # Python's json makes an int of it
    (folder / "results.json").write_text(json.dumps(rows))
    source = run(lambda classes: pair(classes, folder)[1], OURS).value._source
    assert source.text is not None


@pytest.mark.slow
def test_no_file_stays_open(folder: Path) -> None:
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    made = run(lambda classes: pair(classes, folder), OURS).value
    assert len(os.listdir("/proc/self/fd")) == before
    assert made[1].columns(scored=True) is not None


@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda coco: pickle.loads(pickle.dumps(coco))]
)
@pytest.mark.parametrize("touched", [False, True])
def test_copies_are_evaluated_as_by_pycocotools(again: Any, touched: bool, folder: Path) -> None:
    def script(classes: Classes) -> Any:
        truth, found = pair(classes, folder)
        if touched:
            len(truth.anns), len(found.dataset)
        truth, found = again(truth), again(found)
        made = finish(evaluation(classes, (truth, found), {}))
        return made, without_marks(truth.dataset), without_marks(found.dataset)

    expected, found = run_both(script)
    assert_same(expected[0], found[0])
    assert same(list(expected[1:]), list(found[1:]))


@pytest.mark.slow
@pytest.mark.parametrize("before", ["", "imgs", "anns", "dataset"])
@pytest.mark.parametrize("name", ["dataset", "anns", "imgToAnns"])
@pytest.mark.parametrize("edits_copy", [False, True])
def test_a_shallow_copy_shares_the_annotations(
    before: str, name: str, edits_copy: bool, folder: Path
) -> None:
    """Who edits one edits the other, whichever was asked first, and before or after the copy."""

    def moved(coco: Any) -> None:
        rows = getattr(coco, name)
        rows = rows["annotations"] if name == "dataset" else rows.values()
        for row in rows:
            for annotation in row if isinstance(row, list) else [row]:
                annotation["bbox"] = [0, 0, 50, 50]

    def script(classes: Classes) -> Any:
        pairs = []
        for coco in pair(classes, folder):
            getattr(coco, before, None)
            pairs.append((coco, copy.copy(coco)))
        kept = []
        for one, two in pairs:
            edited, other = (two, one) if edits_copy else (one, two)
            moved(edited)
            assert all(getattr(one, each) is getattr(two, each) for each in EVERYTHING)
            kept.append(other)
        return finish(evaluation(classes, (kept[0], kept[1]), {}))

    assert_same(*run_both(script))


def test_a_shallow_copy_has_indexes_of_its_own(folder: Path) -> None:
    """After createIndex; and a dataset of its own, where it is given one."""

    def script(classes: Classes) -> Any:
        one = pair(classes, folder)[0]
        two, three = copy.copy(one), copy.copy(one)
        two.createIndex()
        three.dataset = {**one.dataset, "annotations": one.dataset["annotations"][:3]}
        three.createIndex()
        two.anns.clear()
        del one.imgToAnns
        return (
            *(len(each.anns) for each in (one, two, three)),
            one.dataset is two.dataset,
            len(two.imgToAnns) == len(three.imgs),
        )

    assert len(set(run_both(script))) == 1


def without_marks(dataset: dict[str, Any]) -> dict[str, Any]:
    """Without the keys that pycocotools leaves in what it evaluated."""
    marks = ("ignore", "_ignore")
    rows = [
        {key: value for key, value in row.items() if key not in marks}
        for row in dataset["annotations"]
    ]
    return {**dataset, "annotations": rows}


# of pycocotools under NumPy 2
@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
def test_masks_by_way_of_pycocotools(folder: Path) -> None:
    instances, with_masks, _ = masks_and_keypoints()
    (folder / "instances.json").write_text(json.dumps(instances))
    (folder / "results.json").write_text(json.dumps(with_masks))

    def script(classes: Classes) -> Any:
        truth, found = pair(classes, folder)
        area = [
            int(truth.annToMask(annotation).sum())
            for annotation in truth.loadAnns(truth.getAnnIds())
        ]
        return area, truth.annToRLE(truth.anns[1]), evaluation(classes, (truth, found), {}, "segm")

    expected, found = run_both(script)
    assert same(list(expected[:2]), list(found[:2]))
    finish(expected[2]), finish(found[2])
    assert_same(expected[2], found[2])


def test_drawing_and_downloading_are_inherited(folder: Path) -> None:
    run_both(
        lambda classes: [pair(classes, folder)[0].showAnns([]), pair(classes, folder)[0].download()]
    )
    assert issubclass(COCO, OFFICIAL.coco)


def test_an_empty_object_is_that_of_pycocotools() -> None:
    expected, found = run_both(lambda classes: classes.coco())
    for name in ATTRIBUTES:
        assert getattr(found, name) == getattr(expected, name)
    assert isinstance(found, COCO)
    run_both(
        lambda classes: evaluation(classes, load(classes, *records()), {"imgIds": [], "catIds": []})
    )
