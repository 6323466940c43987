"""CreateML JSON: x and y are the center."""

from pathlib import Path
from typing import Any

import pytest

from detmap import DataError, read_truth
from tests.support import builders as make
from tests.support.edited_json import GONE, edit
from tests.support.format_samples import SAMPLES, pictures

BOX = '{"label": "cat", "coordinates": {"x": 10, "y": 20, "width": 6, "height": 8}}'
ONE = f'[{{"image": "a.png", "annotations": [{BOX}]}}]'


def test_the_center_and_pictures_that_are_not_in_the_file(tmp_path: Path) -> None:
    pytest.importorskip("PIL")
    pictures(tmp_path)
    truth = read_truth(make.write(tmp_path / "x.json", ONE))
    assert truth.boxes.tolist() == [[7, 16, 6, 8]]
    assert truth.images.stems == ("a", "b", "c")
    assert truth.images.width.tolist() == [64, 64, 64]
    assert [(note.code, note.count) for note in truth.notes] == [("images-unannotated", 2)]


def test_the_folder_of_roboflow_and_files_without_pictures(tmp_path: Path) -> None:
    make.write(tmp_path / "_annotations.createml.json", ONE)
    for path in (tmp_path, tmp_path / "_annotations.createml.json"):
        assert read_truth(path).images.stems == ("a",)


BAD: dict[str, tuple[tuple[Any, ...], Any, str]] = {
    "label": ((0, "annotations", 0, "label"), " ", r"\[0\].annotations\[0\]: no class \(give ev"),
    "no image": ((0, "image"), GONE, r"\[0\].image: missing \(a list of images"),
    "empty name": ((0, "image"), "", r"\[0\].image: '' is not the name of an image \(name its"),
    "twice": ((1, "image"), "a.png", r"two images have the name 'a'.*unique stem"),
    "text": ((0, "annotations", 1, "coordinates", "x"), "7", r"\[0\].annotations\[1\].coord.*x: "),
    "no side": ((0, "annotations", 0, "coordinates", "width"), GONE, r"dinates.width: missing"),
    "negative": ((0, "annotations", 0, "coordinates", "width"), -1, r"\[0\]: box .* neg"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_files(name: str, tmp_path: Path) -> None:
    keys, value, message = BAD[name]
    file = SAMPLES["createml"](tmp_path)[0]
    with pytest.raises(DataError, match=message):
        read_truth(edit(file, keys, value), format="createml")


def test_what_is_no_list(tmp_path: Path) -> None:
    for text in ("{}", '["a"]', "[{", ""):
        with pytest.raises(DataError, match=r"x.json"):
            read_truth(make.write(tmp_path / "x.json", text), format="createml")
