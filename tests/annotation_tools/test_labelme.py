"""LabelMe: corners in any order, other shapes, how an image is named, flags, and bad files."""

from pathlib import Path
from typing import Any

import pytest

import detmap
from detmap import read_detections, read_truth
from tests.annotation_tools.refusals import refuses
from tests.support import builders as make
from tests.support.format_samples import SAMPLES, pictures

Tree = dict[str, Any]


def shape(*points: tuple[float, float], **more: Any) -> Tree:
    corners = [[30, 4.5], [10, 20]] if not points else [list(point) for point in points]
    return {"label": "cat", "points": corners, "shape_type": "rectangle", **more}


def page(*shapes: Tree, **more: Any) -> Tree:
    size = {"imageWidth": 100, "imageHeight": 80}
    return {"shapes": list(shapes), "imagePath": "a.jpg", **size, **more}


@pytest.mark.parametrize(
    "points", [((10, 4.5), (30, 20)), ((30, 20), (10, 4.5)), ((30, 4.5), (10, 20))]
)
def test_two_corners_in_the_order_of_the_mouse(tmp_path: Path, points: Any) -> None:
    make.write(tmp_path / "a.json", page(shape(*points)))
    truth = read_truth(tmp_path)
    assert truth.boxes.tolist() == [[10, 4.5, 20, 15.5]]
    assert (truth.images.width.tolist(), truth.images.height.tolist()) == ([100], [80])


def test_other_shapes(tmp_path: Path) -> None:
    make.write(
        tmp_path / "a.json",
        page(
            shape((1, 1), (5, 2), (3, 9), shape_type="polygon"),
            shape((10, 10), (13, 14), shape_type="circle"),
            shape((1, 2), (3, 4), shape_type="mask", mask="iVBO"),
            shape((1, 2), (3, 4), shape_type="line"),
            shape((1, 2), shape_type="point"),
        ),
    )
    truth = read_truth(tmp_path)
    assert truth.boxes.tolist() == [[1, 1, 4, 8], [5, 5, 10, 10], [1, 2, 2, 2]]
    counts = {note.code: note.count for note in truth.notes}
    assert counts == {"shape-around": 3, "shape-without-box": 2}


@pytest.mark.parametrize(
    ("given", "stem"),
    [("../data/b.jpg", "b"), ("..\\data\\b.jpg", "b"), ("b.jpg", "b"), ("", "x"), (None, "x")],
)
def test_how_a_file_names_its_image(tmp_path: Path, given: str | None, stem: str) -> None:
    make.write(tmp_path / "x.json", page(imagePath=given))
    assert read_truth(tmp_path / "x.json").images.stems == (stem,)


def test_images_without_a_file_have_no_objects(tmp_path: Path) -> None:
    pictures(tmp_path)
    make.write(tmp_path / "a.json", page(shape(), imagePath="a.png"))
    truth = read_truth(tmp_path)
    assert truth.images.stems == ("a", "b", "c")
    assert "2 images in the folder have no JSON file" in str(truth.notes[0])


def test_flags_are_roles_and_attributes(tmp_path: Path) -> None:
    flags = ({"difficult": True, "occluded": True, "age": 2}, {"occluded": False}, None)
    make.write(tmp_path / "a.json", page(*(shape(flags=each) for each in flags)))
    truth = read_truth(tmp_path, roles=["occluded"], attributes=["age"])
    assert truth.roles["difficult"].tolist() == [True, False, False]
    assert truth.roles["occluded"].tolist() == [True, False, False]
    assert truth.attributes["age"].tolist()[0] == 2


def test_shapes_with_a_score_are_detections(tmp_path: Path) -> None:
    labels, scored = SAMPLES["labelme"](tmp_path)
    truth = read_truth(labels)
    assert read_detections(scored, truth).score.tolist() == [0.875, 0.75, 0.625, 0.5, 0.25]
    make.write(scored / "a.json", page(shape(), imagePath="a.png"))
    says = "a.json: shapes[0]: no finite score (give every detection a score)"
    refuses(read_detections, scored, truth, says=says, format="labelme")


BAD = {
    "json": ('{"shapes": [', "a.json: line 1, column 13: not JSON: ...(the file is truncated"),
    "list": ("[]", "a.json: type array, the field needs object (a LabelMe file has shapes"),
    "shapes": ('{"imagePath": "a.jpg"}', "a.json.shapes: missing (a LabelMe file has"),
    "label": (page(shape(label="")), "a.json: shapes[0].label: empty"),
    "kind": (page(shape(shape_type="cube")), "shapes[0].shape_type: 'cube' is not known (the"),
    "points": (page(shape(), shape((1, 2))), "shapes[1].points: 1 points, a rectangle has 2"),
    "polygon": (page(shape((1, 2), shape_type="polygon")), "a polygon has at least 3 points"),
    "number": (page(shape((1, "x"), (2, 2))), "a.json.shapes[0].points[0][1]: type str, the field"),  # type: ignore[arg-type]
    "large": (page(shape((1e200, 2), (2, 2))), "a.json: shapes[0]: box 2 2 1e+200 2 is not finite"),
    "size": (page(imageWidth=-1), "image a.jpg: a size of -1 x 80 pixels"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_files(tmp_path: Path, name: str) -> None:
    content, says = BAD[name]
    make.write(tmp_path / "a.json", content)
    refuses(read_truth, tmp_path, says=says, format="labelme")


def test_two_files_of_one_image(tmp_path: Path) -> None:
    make.write(tmp_path / "a.json", page())
    make.write(tmp_path / "b.json", page())
    refuses(read_truth, tmp_path, says="b.json: imagePath 'a.jpg' is that of ...a.json too")
    refuses(
        read_truth,
        make.write(tmp_path / "c" / "x.txt", "").parent,
        says="c: no .json files",
        format="labelme",
    )


def test_a_coco_file_with_a_class_called_shapes_is_no_labelme(tmp_path: Path) -> None:
    tree = make.instances(categories=[{"name": "shapes", "id": 1}])
    assert detmap.read_truth(make.write(tmp_path / "gt.json", tree)).categories.names == ("shapes",)


def test_a_rectangle_of_four_points_and_shapes_without_a_type(tmp_path: Path) -> None:
    four = [(10, 4), (30, 4), (30, 20), (10, 20)]
    untyped = shape(*four[:3], shape_type=None)
    make.write(tmp_path / "a.json", page(shape(*four), shape(*four[::2], shape_type=None), untyped))
    assert read_truth(tmp_path).boxes.tolist() == [[10, 4, 20, 16]] * 3
