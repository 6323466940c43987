"""Exports whose records lack a key, or are of another format than the files beside them."""

import json
from pathlib import Path
from typing import Any

import pytest

from detmap import DataError, read_detections, read_truth
from detmap.core.tables.notes import summed
from tests.support import builders as make
from tests.support.format_samples import SAMPLES

KEYS = {
    "createml": "annotations",
    "huggingface": "objects",
    "labelme": "shapes",
    "labelstudio": "annotations",
    "supervisely": "objects",
    "via": "regions",
    "vott": "regions",
}


def without(tree: Any, key: str) -> Any:
    if isinstance(tree, dict):
        return {name: without(value, key) for name, value in tree.items() if name != key}
    return [without(each, key) for each in tree] if isinstance(tree, list) else tree


@pytest.mark.parametrize("kind", KEYS)
def test_a_key_that_no_record_has_is_an_error(tmp_path: Path, kind: str) -> None:
    path, _ = SAMPLES[kind](tmp_path)
    for file in tmp_path.rglob("*.json*"):
        lines = file.read_text().splitlines() if file.suffix == ".jsonl" else [file.read_text()]
        content = [json.dumps(without(json.loads(line), KEYS[kind])) for line in lines]
        make.write(file, "\n".join(content))
    with pytest.raises(DataError, match=KEYS[kind]):
        read_truth(path, format=kind)


VOTT = {"asset": {"name": "a.jpg", "size": {"width": 9, "height": 9}}}
REGION = {"tags": ["cat"], "boundingBox": {"left": 1, "top": 1, "width": 3, "height": 3}}
SOME = {
    "vott.json": {
        "assets": {
            "1": VOTT | {"regions": [REGION]},
            "2": {"asset": {"name": "b.jpg"}},
            "3": {"asset": {"name": "c.jpg"}, "regions": []},
        }
    },
    "metadata.jsonl": [
        {"file_name": "a.jpg", "objects": {"bbox": [[1, 1, 3, 3]], "categories": ["cat"]}},
        {"file_name": "b.jpg"},
        {"file_name": "c.jpg", "objects": None},
    ],
}


@pytest.mark.parametrize("name", SOME)
def test_a_key_that_some_records_lack_is_counted(tmp_path: Path, name: str) -> None:
    rows = SOME[name]
    lines = rows if isinstance(rows, list) else [rows]
    truth = read_truth(make.write(tmp_path / name, "\n".join(map(json.dumps, lines))))
    assert [(note.code, note.count) for note in summed(truth.notes)] == [("key-missing", 1)]
    assert (len(truth), len(truth.images)) == (1, 3)


def test_a_missing_key_of_detections_is_counted_once(tmp_path: Path) -> None:
    rows = SOME["metadata.jsonl"]
    scored = [{**rows[0], "objects": {**rows[0]["objects"], "score": [0.5]}}, *rows[1:]]
    paths = [
        make.write(tmp_path / f"{name}.jsonl", "\n".join(map(json.dumps, content)))
        for name, content in (("truth", rows), ("found", scored))
    ]
    found = read_detections(paths[1], read_truth(paths[0]))
    counts = {note.code: note.count for note in summed(found.notes)}
    assert (len(found), counts["key-missing"]) == (1, 1)


COCO = {"images": [], "annotations": [], "categories": []}
ULTRALYTICS = [{"name": "a", "class": 0, "confidence": 0.5, "box": {}}]
OTHERS = [("COCO instances", COCO), ("Ultralytics' to_json", ULTRALYTICS)]


@pytest.mark.parametrize("kind", ["labelme", "supervisely"])
@pytest.mark.parametrize(("name", "content"), OTHERS)
def test_files_of_another_format_are_named(
    tmp_path: Path, kind: str, name: str, content: Any
) -> None:
    path, _ = SAMPLES[kind](tmp_path)
    folder = next(file.parent for file in sorted(path.rglob("*.json")) if file.name != "meta.json")
    make.write(folder / "zz.json", content)
    with pytest.raises(DataError, match=rf"zz.json.*looks like {name}.*move it out"):
        read_truth(path, format=kind)


def test_both_formats_of_a_mixed_folder_are_named(tmp_path: Path) -> None:
    path, _ = SAMPLES["labelme"](tmp_path)
    corners = {"x1": 1, "y1": 1, "x2": 3, "y2": 3}
    make.write(path / "0.json", [ULTRALYTICS[0] | {"box": corners}])
    with pytest.raises(DataError, match=r"ultralytics-json; other files .* the format labelme"):
        read_truth(path)


BOX = {"image_id": 1, "category_id": 1, "bbox": [1, 1, 2, 2]}
WHOLE = {
    "images": [{"id": 1, "file_name": "a.jpg"}],
    "annotations": [BOX],
    "categories": [{"id": 1, "name": "x"}],
}
NONSENSE = {
    "images": [],
    "images ": [{"id": 1, "file_name": " "}],
    "images\0": [{"id": 1, "file_name": "a\0.jpg"}],
    "categories": [{"id": 1, "name": ""}],
    "categories\0": [{"id": 1, "name": "a\0b"}],
}


@pytest.mark.parametrize("change", NONSENSE)
def test_coco_without_images_or_names(tmp_path: Path, change: str) -> None:
    tree = WHOLE | {change.strip(" \0"): NONSENSE[change]}
    with pytest.raises(DataError, match=r"is not a name|an empty list, but"):
        read_truth(make.write(tmp_path / "t.json", tree))


@pytest.mark.parametrize("name", ["", " ", "a\0b"])
@pytest.mark.parametrize("place", ["image", "class", "declared"])
def test_names_of_exports(tmp_path: Path, name: str, place: str) -> None:
    asset = {"name": name if place == "image" else "a.jpg", "size": {"width": 9, "height": 9}}
    region = REGION | {"tags": [name if place == "class" else "cat"]}
    tree: dict[str, Any] = {"assets": {"1": {"asset": asset, "regions": [region]}}}
    tree["tags"] = [{"name": name if place == "declared" else "cat"}]
    with pytest.raises(DataError, match=r"no class|is not (a|the) name"):
        read_truth(make.write(tmp_path / "t.json", tree))


@pytest.mark.parametrize(
    ("header", "row", "says"),
    [
        ("class,Label", "cat,dog", "columns class and Label may both be the class"),
        ("category,name", "cat,dog", "columns category and name may both be the class"),
        ("class,label", "cat,cat", ""),
        ("class,name", "1,cat", ""),
        ("class", "c\0t", "line 2, column class: .* holds a NUL"),
    ],
)
def test_classes_of_csv(tmp_path: Path, header: str, row: str, says: str) -> None:
    file = make.write(tmp_path / "t.csv", f"image,x,y,w,h,{header}\na,1,1,2,2,{row}\n")
    if not says:
        assert len(read_truth(file)) == 1
        return
    with pytest.raises(DataError, match=says):
        read_truth(file)
