"""Darknet's result.json: relative coordinates, joins by file name, and bad files."""

from pathlib import Path
from typing import Any

import pytest

import detmap
from detmap import read_detections, read_truth
from tests.annotation_tools.refusals import refuses
from tests.support import builders as make
from tests.support.format_samples import SAMPLES

Tree = dict[str, Any]


def found(**changes: Any) -> Tree:
    sides = {"center_x": 0.5, "center_y": 0.25, "width": 0.5, "height": 0.125}
    whole = {"class_id": 0, "name": "cat", "relative_coordinates": sides, "confidence": 0.5}
    return whole | changes


def frames(*objects: Tree, name: str | None = "data/obj/000001.jpg") -> list[Tree]:
    named = {} if name is None else {"filename": name}
    return [{"frame_id": 1, **named, "objects": list(objects)}]


@pytest.fixture
def truth(tmp_path: Path) -> detmap.Truth:
    return read_truth(make.write(tmp_path / "gt.json", make.instances()))


def test_fractions_of_the_image_of_the_truth(tmp_path: Path, truth: detmap.Truth) -> None:
    path = make.write(tmp_path / "result.json", frames(found()) + frames(name="x/000002.jpg"))
    read = read_detections(path, truth)
    assert read.boxes.tolist() == [[25, 15, 50, 10]]
    assert (read.image.tolist(), read.score.tolist()) == ([0], [0.5])


def test_unknown_images_and_classes_are_dropped(tmp_path: Path, truth: detmap.Truth) -> None:
    tree = frames(found(name="dog"), found()) + frames(found(), name="3.jpg")
    path = make.write(tmp_path / "result.json", tree)
    assert len(read_detections(path, truth, unknown="drop")) == 1
    refuses(read_detections, path, truth, says="result.json[1].objects[0]: no image '3.jpg'")


def test_results_are_no_ground_truth(tmp_path: Path) -> None:
    _, path = SAMPLES["darknet"](tmp_path)
    says = "result.json: detections of Darknet, not a ground truth (give the labels"
    refuses(read_truth, path, says=says, format="darknet")


BAD = {
    "video": (frames(found(), name=None), "result.json[0].filename: missing (run Darknet"),
    "side": (
        frames(found(relative_coordinates={})),
        "result.json[0].objects[0].relative_coordinates.center_x: missing",
    ),
    "score": (frames(found(confidence="1")), "[0].objects[0].confidence: type str, the field"),
    "negative": (
        frames(
            found(relative_coordinates={"center_x": 0, "center_y": 0, "width": -1, "height": 0})
        ),
        "result.json[0].objects[0]: box 0 0 -1 0 has a negative width or height",
    ),
    "end": ('[{"frame_id": 1, "filename": "1.jpg", "objects": [', "not JSON: ...(the file"),
    "path": ('[{"frame_id":1,"filename":"C:\\x.jpg","objects":[]}]', "line 1, column 30: not JSON"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_files(tmp_path: Path, truth: detmap.Truth, name: str) -> None:
    content, says = BAD[name]
    path = make.write(tmp_path / "result.json", content)
    refuses(read_detections, path, truth, says=says, format="darknet")


def test_a_truth_without_sizes(tmp_path: Path) -> None:
    path = make.write(tmp_path / "result.json", frames(found()))
    rows = "image,class,x,y,w,h\n000001.jpg,cat,1,2,3,4\n"
    truth = read_truth(make.write(tmp_path / "gt.csv", rows))
    refuses(read_detections, path, truth, says="a normalized box on an image of unknown size (give")
