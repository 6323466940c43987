"""FiftyOne's labels.json."""

from pathlib import Path
from typing import Any

import pytest

from detmap import DataError, read_truth
from tests.support import builders as make
from tests.support.edited_json import GONE, edit
from tests.support.format_samples import SAMPLES

SIZES = "image,width,height\na,64,32\nb,64,32\nc,64,32\n"


def truth_file(folder: Path) -> Path:
    return SAMPLES["fiftyone"](folder)[0] / "labels.json"


def test_class_order_flags_attributes_and_unlabelled_samples(tmp_path: Path) -> None:
    file = edit(truth_file(tmp_path), ("classes",), ["dog", "cat", "cow"])
    edit(file, ("labels", "a", 0, "attributes"), {"iscrowd": 1, "occluded": True, "blur": 0.5})
    edit(file, ("labels", "c"), None)
    truth = read_truth(file, roles=["occluded"], attributes=["blur"])
    assert truth.categories.names == ("dog", "cat", "cow")
    assert truth.categories.ids.tolist() == [0, 1, 2]
    assert truth.label.tolist() == [0, 1, 0]
    assert truth.crowd.tolist() == truth.roles["occluded"].tolist() == [True, False, False]
    assert truth.attributes["blur"][0] == 0.5
    assert [(note.code, note.count) for note in truth.notes] == [("images-unlabelled", 1)]


def test_names_and_sizes_without_pictures(tmp_path: Path) -> None:
    text = '{"classes": null, "labels": {"a": [{"label": "x", "bounding_box": [0.5, 0, 0.25, 1]}]}}'
    file = make.write(tmp_path / "labels.json", text)
    with pytest.raises(DataError, match=r"labels\['a'\]\[0\]: a normalized.*--image-sizes FILE"):
        read_truth(tmp_path)
    truth = read_truth(file, image_sizes=make.write(tmp_path / "s.csv", SIZES))
    assert truth.boxes.tolist() == [[32, 0, 16, 32]]
    assert truth.categories.names == ("x",)


BAD: dict[str, tuple[tuple[Any, ...], Any, str]] = {
    "index": (("labels", "a", 0, "label"), 2, r"\['a'\]\[0\].label: no class 2.*\(list it"),
    "name": (("labels", "a", 0, "label"), "cow", r"\['a'\]\[0\].label: no class 'cow'"),
    "null classes": (("classes",), None, r"\['a'\]\[0\].label: no class 0, classes is null"),
    "box": (("labels", "a", 0, "bounding_box"), [0, 1], r"labels\['a'\]\[0\].bounding_box: "),
    "missing": (("labels", "a", 0, "bounding_box"), GONE, r"\[0\].bounding_box: missing"),
    "negative": (("labels", "a", 0, "bounding_box"), [0, 0, -1, 1], r"\['a'\]\[0\]: box .* neg"),
    "one label": (("labels", "a"), 3, r"labels\['a'\]: type int.*\(labels is an object: a list"),
    "no labels": (("labels",), GONE, r"labels.json.labels: missing"),
    "two classes": (("classes",), ["cat", "cat"], r"class 'cat' occurs twice \(give each"),
    "flag": (("labels", "a", 0, "attributes"), {"iscrowd": 7}, r"\[0\].iscrowd: '7' is not a flag"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_files(name: str, tmp_path: Path) -> None:
    keys, value, message = BAD[name]
    with pytest.raises(DataError, match=message):
        read_truth(edit(truth_file(tmp_path), keys, value), format="fiftyone")
