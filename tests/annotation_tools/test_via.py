"""JSON of the VGG Image Annotator."""

import json
from pathlib import Path
from typing import Any

import pytest

from detmap import DataError, Truth, read_truth
from tests.support import builders as make
from tests.support.edited_json import GONE, edit
from tests.support.format_samples import SAMPLES


def shapes(folder: Path, *regions: tuple[dict[str, Any], dict[str, Any]]) -> Truth:
    """Reads one image with regions of shape and attributes."""
    records = [{"shape_attributes": a, "region_attributes": b} for a, b in regions]
    image = {"filename": "a.png", "size": 1, "regions": records}
    return read_truth(make.write(folder / "via.json", json.dumps({"a.png1": image})))


RECT = {"name": "rect", "x": 1, "y": 2, "width": 3, "height": 4}


def test_boxes_around_shapes(tmp_path: Path) -> None:
    polygon = {"name": "polygon", "all_points_x": [1, 9, 4], "all_points_y": [8, 2, 5]}
    cat = {"kind": "cat"}
    truth = shapes(
        tmp_path,
        (RECT, cat),
        (polygon, cat),
        ({"name": "circle", "cx": 5, "cy": 6, "r": 2}, cat),
        ({"name": "ellipse", "cx": 5, "cy": 6, "rx": 2, "ry": 1, "theta": 0}, cat),
        ({"name": "point", "cx": 5, "cy": 6}, {}),
    )
    expected = [[1, 2, 3, 4], [1, 2, 8, 6], [3, 4, 4, 4], [3, 5, 4, 2]]
    assert truth.boxes.tolist() == expected
    counts = {note.code: note.count for note in truth.notes}
    assert counts == {"shape-around": 3, "shape-without-box": 1}


def test_the_attribute_with_the_class(tmp_path: Path) -> None:
    both = {"quality": {"blur": True}, "Label": "cat"}
    assert shapes(tmp_path, (RECT, both)).categories.names == ("cat",)
    checked = {"animal": {"cat": False, "dog": True}}
    assert shapes(tmp_path, (RECT, checked)).categories.names == ("dog",)
    with pytest.raises(DataError, match=r"several attributes.*'color', 'kind' \(name that"):
        shapes(tmp_path, (RECT, {"color": "red", "kind": "cat"}))
    with pytest.raises(DataError, match=r"regions\[0\].region_attributes: no class, or several"):
        shapes(tmp_path, (RECT, {"animal": {"cat": True, "dog": True}}))


AT = ("a.png100", "regions", 0)
BAD: dict[str, tuple[tuple[Any, ...], Any, str]] = {
    "class": ((*AT, "region_attributes"), {}, r"\['a.png100'\].regions\[0\].region_attributes: no"),
    "shape": ((*AT, "shape_attributes", "name"), "blob", r"attributes.name: 'blob' is not known"),
    "number": ((*AT, "shape_attributes", "x"), "7", r"shape_attributes.x: '7' is not a number"),
    "missing": ((*AT, "shape_attributes", "x"), GONE, r"shape_attributes.x: None is not a number"),
    "negative": ((*AT, "shape_attributes", "width"), -1, r"attributes: a negative width.*\(draw"),
    "regions": (("a.png100", "regions"), 7, r"regions: type int.*\(an image has filename and"),
    "file name": (("a.png100", "filename"), GONE, r"filename: missing"),
    "twice": (("a.png100", "filename"), "b.png", r"two images have the name 'b'"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_files(name: str, tmp_path: Path) -> None:
    keys, value, message = BAD[name]
    file = SAMPLES["via"](tmp_path)[0]
    with pytest.raises(DataError, match=message):
        read_truth(edit(file, keys, value), format="via")


@pytest.mark.parametrize(
    "points", [{"all_points_x": [1, 2]}, {"all_points_x": [1], "all_points_y": [1]}]
)
def test_polygons_without_points(points: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"regions\[0\].shape_attributes"):
        shapes(tmp_path, ({"name": "polygon", **points}, {"kind": "cat"}))
