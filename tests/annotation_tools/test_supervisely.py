"""Supervisely projects and data sets."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from detmap import DataError, read_truth
from tests.support.edited_json import GONE, edit
from tests.support.format_samples import SAMPLES


def test_shapes_tags_and_declared_classes(tmp_path: Path) -> None:
    root = SAMPLES["supervisely"](tmp_path)[0]
    classes = [{"title": name, "shape": "any"} for name in ("cat", "dog", "cow")]
    edit(root / "meta.json", ("classes",), [*classes, {"title": "x", "shape": "bitmap"}])
    file = root / "set 1" / "ann" / "a.png.json"
    edit(file, ("objects", 0, "tags"), [{"name": "difficult"}, {"name": "blur", "value": 0.5}])
    edit(file, ("objects", 1, "geometryType"), "polygon")
    edit(file, ("objects", 1, "points", "exterior"), [[9, 1], [3, 7], [5, 2]])
    line = {"classTitle": "x", "geometryType": "line", "points": {"exterior": [[0, 0]]}}
    edit(root / "set 1" / "ann" / "c.png.json", ("objects",), [line])
    truth = read_truth(root, attributes=["blur"])
    assert truth.categories.names == ("cat", "cow", "dog")
    assert truth.boxes.tolist() == [[8, 4, 16, 8], [3, 1, 6, 6], [0, 0, 32, 16]]
    assert truth.difficult.tolist() == [True, False, False]
    assert truth.attributes["blur"][0] == 0.5
    codes = {note.code: note.count for note in truth.notes}
    assert codes == {"shape-around": 1, "shape-without-box": 1}


def test_a_data_set_and_several(tmp_path: Path) -> None:
    root = SAMPLES["supervisely"](tmp_path)[0]
    for path in (root / "set 1", root / "set 1" / "ann"):
        assert read_truth(path).images.stems == ("a", "b", "c")
    shutil.copytree(root / "set 1", root / "set 2")
    assert read_truth(root).images.ids.tolist() == [f"set {i}/{s}" for i in (1, 2) for s in "abc"]


BAD: dict[str, tuple[tuple[Any, ...], Any, str]] = {
    "corners": (("objects", 0, "points", "exterior"), [[1, 2]], r"exterior: 1 points, a rectangle"),
    "class": (("objects", 1, "classTitle"), GONE, r"objects\[1\].classTitle: missing \(an anno"),
    "empty class": (("objects", 1, "classTitle"), "", r"objects\[1\]: no class \(give every"),
    "size": (("size", "width"), 0, r"a.png: a size of 0 x 32 pixels \(write the size"),
    "no size": (("size",), GONE, r"a.png.json.size: missing"),
    "video": (("objects",), GONE, r"a.png.json.objects: missing"),
    "score": (("objects", 0, "tags"), [{"name": "conf", "value": "high"}], r"tags\[0\].value: 'hi"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_files(name: str, tmp_path: Path) -> None:
    keys, value, message = BAD[name]
    root = SAMPLES["supervisely"](tmp_path)[0]
    edit(root / "set 1" / "ann" / "a.png.json", keys, value)
    with pytest.raises(DataError, match=message):
        read_truth(root, format="supervisely")


def test_folders_without_annotations(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no folder ann \(give the project"):
        read_truth(tmp_path, format="supervisely")
    (tmp_path / "ann").mkdir()
    with pytest.raises(DataError, match=r"no .json files"):
        read_truth(tmp_path, format="supervisely")


def test_nested_data_sets_are_read(tmp_path: Path) -> None:
    root = SAMPLES["supervisely"](tmp_path)[0]
    n = len(read_truth(root))
    shutil.copytree(root / "set 1", root / "set 1" / "datasets" / "ds1")
    shutil.copytree(
        root / "set 1" / "ann", root / "set 1" / "datasets" / "ds1" / "datasets" / "x" / "ann"
    )
    assert len(read_truth(root)) == len(read_truth(root / "set 1")) == 3 * n
