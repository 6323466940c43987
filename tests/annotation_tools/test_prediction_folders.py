"""Folders of a JSON file per image: Ultralytics' to_json, mmdetection's preds."""

from pathlib import Path
from typing import Any

import pytest

import detmap
from detmap import DataError, read_detections, read_truth
from tests.support import builders as make
from tests.support.edited_json import GONE, edit
from tests.support.format_samples import SAMPLES


def pair(name: str, folder: Path) -> tuple[detmap.Truth, Path]:
    """The ground truth with classes from 1, and a folder of detections."""
    return read_truth(SAMPLES["csv"](folder)[0]), SAMPLES[name](folder)[1]


def test_fractions_and_rotated_boxes(tmp_path: Path) -> None:
    truth, folder = pair("ultralytics-json", tmp_path)
    sizes = make.write(tmp_path / "s.csv", "image,width,height\na,64,32\nb,64,32\nc,64,32\n")
    truth = read_truth(tmp_path / "objects.csv", image_sizes=sizes)
    record = '{"name": "cat", "class": 0, "confidence": 0.5, "box": {%s}}'
    for name in "bc":
        make.write(folder / f"{name}.json", "[]")
    corners = '"x1": 0.5, "y1": 0.25, "x2": 0.75, "y2": 1'
    make.write(folder / "a.json", f"[{record % corners}]")
    found = read_detections(folder, truth)
    assert found.boxes.tolist() == [[32, 8, 16, 24]]
    assert "boxes-normalized" in {note.code for note in found.notes}
    points = zip((5, 9, 7, 3), (1, 3, 8, 6), strict=True)
    corners = ", ".join(f'"x{i}": {x}, "y{i}": {y}' for i, (x, y) in enumerate(points, 1))
    make.write(folder / "a.json", f"[{record % corners}]")
    found = read_detections(folder, truth)
    assert found.boxes.tolist() == [[3, 1, 6, 7]]
    assert "box-rotated" in {note.code for note in found.notes}


def test_labels_without_names_need_them(tmp_path: Path) -> None:
    truth, folder = pair("mmdet-preds", tmp_path)
    with pytest.raises(DataError, match=r"labels count classes from 0.*--class-names FILE"):
        read_detections(folder, truth)
    found = read_detections(folder, truth, class_names=["dog", "cat"])
    assert found.label.tolist() == [1, 0, 0, 1, 1]


AT = (0, "box")
BAD: dict[str, tuple[str, tuple[Any, ...], Any, str]] = {
    "box": ("ultralytics-json", (*AT, "x2"), GONE, r"a.json\[0\].box.x2: missing \(a file is"),
    "corners": ("ultralytics-json", (*AT, "x3"), 5, r"a.json\[0\].box: four corners, but some"),
    "negative": ("ultralytics-json", (*AT, "x2"), -5, r"a.json\[0\]: box .* a negative"),
    "class": ("ultralytics-json", (0, "name"), "cow", r"a.json\[0\]: no class 'cow'"),
    "score": ("ultralytics-json", (0, "confidence"), None, r"a.json\[0\].confidence: type null"),
    "lengths": ("mmdet-preds", ("scores",), [1], r"a.json: 2 labels, 1 scores, 2 bboxes \(a file"),
    "rotated": ("mmdet-preds", ("bboxes", 0), [1, 2, 3, 4, 5], r"a.json.bboxes\[0\]: "),
    "label": ("mmdet-preds", ("labels", 0), 7, r"a.json: row 0: no class 7"),
    "huge": ("mmdet-preds", ("labels", 0), 2**70, r"a.json.*label"),
    "bad box": ("mmdet-preds", ("bboxes", 1), [9, 2, 3, 4], r"a.json: row 1: box .* a negative"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_files(name: str, tmp_path: Path) -> None:
    kind, keys, value, message = BAD[name]
    truth, folder = pair(kind, tmp_path)
    file = next(folder.rglob("a.json"))
    edit(file, keys, value)
    names = ["cat", "dog"] if kind == "mmdet-preds" else None
    with pytest.raises(DataError, match=message):
        read_detections(folder, truth, format=kind, class_names=names)


def test_files_of_unknown_images_and_none(tmp_path: Path) -> None:
    truth, folder = pair("ultralytics-json", tmp_path)
    (folder / "a.json").rename(folder / "z.json")
    with pytest.raises(DataError, match=r"z.json\[0\]: no image 'z'"):
        read_detections(folder, truth)
    for file in folder.iterdir():
        file.unlink()
    with pytest.raises(DataError, match=r"json: no .json files \(give the folder"):
        read_detections(folder, truth, format="ultralytics-json")
