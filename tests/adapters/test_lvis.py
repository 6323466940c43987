"""An LVIS truth has a scope and groups of classes; a COCO truth has neither."""

import json
import random
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import detmap
from detmap import DataError, read_detections, read_truth
from detmap.core.adapters.coco import instances as coco
from detmap.core.adapters.coco import scan_json as coco_scan
from detmap.core.tables import ABSENT, NOT_EXHAUSTIVE
from tests.support import builders as make
from tests.support.real_data import data_path


def lvis_file(**first: Any) -> dict[str, Any]:
    return {
        "images": [
            {"id": 7, "neg_category_ids": [3, 1, 3], "not_exhaustive_category_ids": [], **first},
            {"id": 2, "neg_category_ids": [], "not_exhaustive_category_ids": [2, 99]},
            {"id": 5},
        ],
        "annotations": [
            {"id": 1, "image_id": 2, "category_id": 2, "bbox": [0, 0, 5, 5], "area": 20.0}
        ],
        "categories": [
            {"id": 3, "name": "c", "frequency": "r"},
            {"id": 1, "name": "a", "frequency": "f"},
            {"id": 2, "name": "b", "frequency": "c"},
        ],
    }


def pairs(path: Path) -> list[tuple[int, int, int]]:
    truth = read_truth(path)
    image = np.repeat(truth.images.ids, np.diff(truth.scope.off)).tolist()
    labels = truth.categories.ids[truth.scope.label].tolist()
    return list(zip(image, labels, truth.scope.kind.tolist(), strict=True))


def test_scope_and_groups_are_read(tmp_path: Path) -> None:
    path = make.write(tmp_path / "gt.json", lvis_file())
    assert pairs(path) == [(2, 2, NOT_EXHAUSTIVE), (7, 1, ABSENT), (7, 3, ABSENT)]
    truth = read_truth(path)
    assert truth.categories.groups == ("f", "c", "r")
    notes = [(note.code, note.count, note.text.split()[-7:-5]) for note in truth.notes]
    assert notes == [  # nothing about iscrowd
        ("scope-missing", 1, ["no", "neg_category_ids:"]),
        ("scope-unlisted", 1, ["that", "are"]),
        ("scope-missing", 1, ["no", "not_exhaustive_category_ids:"]),
    ]


def test_a_class_that_is_in_both_lists_is_two_pairs(tmp_path: Path) -> None:
    """lvis-api asks each list by itself: the class is judged, and leniently."""
    path = make.write(tmp_path / "gt.json", lvis_file(not_exhaustive_category_ids=[1]))
    assert pairs(path)[1:3] == [(7, 1, ABSENT), (7, 1, NOT_EXHAUSTIVE)]


@pytest.mark.parametrize("value, role", [(1, True), (0, False), (True, True), (None, False)])
@pytest.mark.usefixtures("coco_reader")
def test_an_annotation_may_be_ignored(value: Any, role: bool, tmp_path: Path) -> None:
    tree = lvis_file()
    tree["annotations"].append({**tree["annotations"][0], "id": 2, "ignore": value})
    truth = read_truth(make.write(tmp_path / "gt.json", tree))
    assert truth.role("ignore").tolist() == [False, role]


@pytest.mark.parametrize("value", ["false", [0], 2, -1, {}])
def test_a_flag_is_0_or_1(value: Any, tmp_path: Path) -> None:
    tree = lvis_file()
    tree["annotations"][0]["ignore"] = value
    with pytest.raises(DataError, match=r"annotations\[0\]\.ignore: .* is not a flag"):
        read_truth(make.write(tmp_path / "gt.json", tree))


def test_a_coco_truth_has_neither(tmp_path: Path) -> None:
    truth = read_truth(make.write(tmp_path / "gt.json", make.instances()))
    assert truth.scope is None
    assert truth.categories.groups == ()


@pytest.mark.parametrize(
    "value, what",
    [
        (["1"], 'number 0: "1" is not a number'),
        ([1.5], "number 0: 1.5 is not a whole number"),
        ([1, None], "number 1: null is not a number"),
        ([2**64], "number 0: 18446744073709551616 does not fit 64 bits"),
        (7, "7 is not a list of ids"),
    ],
)
def test_bad_lists_of_classes(value: Any, what: str, tmp_path: Path) -> None:
    path = make.write(tmp_path / "gt.json", lvis_file(neg_category_ids=value))
    with pytest.raises(DataError) as refused:
        read_truth(path)
    assert refused.value.where == f"{path}: images[0].neg_category_ids"
    assert what in refused.value.what


@pytest.mark.parametrize("case", ["1", "2"])
def test_the_scope_of_real_files_is_that_of_their_json(case: str) -> None:
    place = data_path("benchmarks", "lvis", case)
    tree = json.loads((place / "truth.json").read_text())
    expected = sorted(
        {
            (image["id"], k, kind)
            for image in tree["images"]
            for kind, name in ((ABSENT, "neg"), (NOT_EXHAUSTIVE, "not_exhaustive"))
            for k in image[f"{name}_category_ids"]
            if k in {category["id"] for category in tree["categories"]}
        }
    )
    assert pairs(place / "truth.json") == expected
    truth = read_truth(place / "truth.json")
    of = {category["id"]: category["frequency"] for category in tree["categories"]}
    assert truth.categories.groups == tuple(of[i] for i in sorted(of))
    assert len(read_detections(place / "dets.json", truth)) > 0


def test_both_lanes_agree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = make.write(tmp_path / "gt.json", lvis_file())
    monkeypatch.setattr(coco_scan, "LEAST_SIZE", 0)
    assert coco.scan_instances(path) is not None
    fast = read_truth(path)
    monkeypatch.setattr(coco, "scan_instances", lambda path: None)
    slow = read_truth(path)
    assert fast.categories == slow.categories
    for name in ("off", "label", "kind"):
        assert np.array_equal(getattr(fast.scope, name), getattr(slow.scope, name))


@pytest.mark.slow
def test_twenty_thousand_images_of_lvis_are_read_in_two_seconds(tmp_path: Path) -> None:
    rng = random.Random(0)
    lists = {"neg_category_ids": (1, 1000, 12), "not_exhaustive_category_ids": (1000, 1204, 3)}
    images = [
        make.image(id=i, **{key: rng.sample(range(a, b), n) for key, (a, b, n) in lists.items()})
        for i in range(20_000)
    ]
    shape = {"bbox": [1.5, 2.25, 30.5, 40.25], "area": 700.5, "segmentation": [[1.5, 2.5] * 20]}
    annotations = [
        {"id": i, "image_id": rng.randrange(20_000), "category_id": rng.randrange(1, 1204)} | shape
        for i in range(240_000)
    ]
    classes = [{"id": i, "name": f"class {i}", "frequency": "rcf"[i % 3]} for i in range(1, 1204)]
    tree = make.instances(images=images, annotations=annotations, categories=classes)
    path = make.write(tmp_path / "gt.json", tree)
    begin = time.process_time()
    truth = read_truth(path)
    assert time.process_time() - begin < 10
    assert len(truth.scope) > 290_000


@pytest.mark.parametrize("name", ["neg_category_ids", "not_exhaustive_category_ids"])
def test_a_list_that_no_image_has_is_counted(tmp_path: Path, name: str) -> None:
    tree = lvis_file()
    for image in tree["images"]:
        image.pop(name, None)
    notes = read_truth(make.write(tmp_path / "gt.json", tree)).notes
    texts = {note.text: note.count for note in notes if note.code == "scope-missing"}
    everywhere = f"of the {len(tree['images'])} images have no {name}: read as an empty list"
    assert texts[everywhere] == len(tree["images"])


@pytest.mark.parametrize("name", ["neg_category_ids", "not_exhaustive_category_ids"])
def test_lists_without_a_known_class_have_notes_too(tmp_path: Path, name: str) -> None:
    tree = lvis_file()
    for image in tree["images"]:
        for each in ("neg_category_ids", "not_exhaustive_category_ids"):
            image.pop(each, None)
        image[name] = [99]
    notes = {
        note.code: note.count for note in read_truth(make.write(tmp_path / "t.json", tree)).notes
    }
    assert notes["scope-unlisted"] == notes["scope-missing"] == len(tree["images"])


@pytest.mark.parametrize("frequency", [None, "R", "rare", ""])
def test_classes_without_a_frequency_are_named(tmp_path: Path, frequency: str | None) -> None:
    """lvis-api raises ValueError or KeyError; here the means of r, c and f leave them out."""
    tree = lvis_file()
    tree["categories"][1]["frequency"] = frequency
    path = make.write(tmp_path / "gt.json", tree)
    truth = read_truth(path)
    result = detmap.evaluate(truth, detmap.detections_from_arrays(truth, [], [], []), "lvis")
    (note,) = [note for note in result.notes if note.code == "group-none"]
    assert note.count == 1
    assert note.text.startswith("classes are in none of the groups r, c, f: ")
    assert tree["categories"][1]["name"] in note.text
    whole = read_truth(make.write(tmp_path / "whole.json", lvis_file()))
    known = detmap.evaluate(whole, detmap.detections_from_arrays(whole, [], [], []), "lvis")
    assert "group-none" not in [note.code for note in known.notes]
