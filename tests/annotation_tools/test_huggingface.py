"""Hugging Face data sets: metadata.jsonl and Parquet."""

import json
from pathlib import Path
from typing import Any

import pytest

from detmap import DataError, Truth, read_detections, read_truth
from detmap.core.tables.notes import summed
from tests.support import builders as make
from tests.support.format_samples import SAMPLES, pictures

SIZE = {"width": 64, "height": 32}
BOX = [[8, 4, 16, 8]]


def write(folder: Path, objects: Any, **more: Any) -> Path:
    row = {"file_name": "a.png", **SIZE, "objects": objects} | more
    return make.write(folder / "metadata.jsonl", json.dumps(row) + "\n")


def read(folder: Path, objects: Any, **options: Any) -> Truth:
    return read_truth(write(folder, objects), **options)


def test_lists_or_records_flags_and_areas(tmp_path: Path) -> None:
    lists = {"bbox": [*BOX, [1, 2, 3, 4]], "label": ["x", "y"], "iscrowd": [0, 1], "area": [5, 6]}
    truth = read(tmp_path, lists, attributes=["blur"])
    records = [
        dict(zip(lists, values, strict=True)) for values in zip(*lists.values(), strict=True)
    ]
    for each in (truth, read(tmp_path, records)):
        assert each.boxes.tolist() == lists["bbox"]
        assert each.crowd.tolist() == [False, True]
        assert each.area.tolist() == [5, 6]
        assert each.images.width.tolist() == [64]
    assert len(read(tmp_path, None)) == 0


def test_numbers_without_names_are_named_by_class_names(tmp_path: Path) -> None:
    truth = read(tmp_path, {"bbox": [*BOX, *BOX], "categories": [4, 2]})
    assert truth.categories.ids.tolist() == [2, 4]
    assert truth.categories.names == ("2", "4")
    text = "image,class,score,xmin,ymin,xmax,ymax\na,fox,0.5,1,2,3,4\n"
    found = make.write(tmp_path / "d.csv", text)
    with pytest.raises(DataError, match=r"no class 'fox'.*only class numbers.*--class-names FILE"):
        read_detections(found, truth)
    names = {2: "cow", 4: "fox", 5: "elk"}
    assert read_detections(found, truth, class_names=names).label.tolist() == [1]
    with pytest.raises(DataError, match="two classes share a name"):
        read_detections(found, truth, class_names={2: "fox", 4: "fox"})
    named = read(tmp_path, {"bbox": BOX, "categories": ["fox"]})
    with pytest.raises(DataError, match="remove --class-names"):
        read_detections(found, named, class_names=names)


def test_boxes_that_are_not_left_top_width_height(tmp_path: Path) -> None:
    corners = {"bbox": [[40, 8, 60, 30]], "category": ["x"]}
    with pytest.raises(DataError, match=r"objects.bbox\[0\]: 1 of 1 boxes leave .*xyxy \(or xywh"):
        read(tmp_path, corners)
    assert read(tmp_path, corners, box_format="xyxy").boxes.tolist() == [[40, 8, 20, 22]]
    assert read(tmp_path, corners, box_format="xywh").boxes.tolist() == [[40, 8, 60, 30]]
    fractions = {"bbox": [[0.5, 0.5, 0.25, 0.5]], "category": ["x"]}
    with pytest.raises(DataError, match=r"fractions\? \(give the box format, such as normalized"):
        read(tmp_path, fractions)
    boxes = read(tmp_path, fractions, box_format="normalized xywh").boxes
    assert boxes.tolist() == [[32, 16, 16, 16]]


def test_boxes_that_may_be_corners(tmp_path: Path) -> None:
    corners = [[i, 2, i + 9, 30] for i in range(8)]
    plain = [*corners[:7], [20, 10, 5, 6]]
    for boxes, n_notes in ((corners, 1), (plain, 0), (corners[:7], 0)):
        line = {"file_name": "a.png", "objects": {"bbox": boxes, "category": ["x"] * len(boxes)}}
        truth = read_truth(make.write(tmp_path / "metadata.jsonl", json.dumps(line)))
        assert sum(note.code == "boxes-may-be-corners" for note in summed(truth.notes)) == n_notes
        scored = {**line, "objects": {**line["objects"], "score": [0.5] * len(boxes)}}  # type: ignore[dict-item]
        found = read_detections(make.write(tmp_path / "found.jsonl", json.dumps(scored)), truth)
        assert sum(note.code == "boxes-may-be-corners" for note in summed(found.notes)) == n_notes


def test_splits_of_a_folder_and_sizes_of_its_images(tmp_path: Path) -> None:
    pytest.importorskip("PIL")
    line = '{"file_name": "a.png", "objects": {"bbox": [[1, 2, 3, 4]], "categories": ["x"]}}\n'
    for split in ("train", "validation"):
        make.write(tmp_path / split / "metadata.jsonl", line)
    pictures(tmp_path / "validation")
    truth = read_truth(tmp_path)
    assert (truth.split, truth.images.width.tolist()) == ("validation", [64])
    assert read_truth(tmp_path, split="train").split == "train"
    with pytest.raises(DataError, match=r"no split test \(give the split"):
        read_truth(tmp_path, split="test")


OBJECTS: dict[str, tuple[Any, str]] = {
    "neither": (7, r"line 1.objects: neither lists nor records \(objects has a list"),
    "lengths": ({"bbox": BOX, "category": []}, r"line 1.objects: lists of 1, 0 objects: bbox, cat"),
    "no class": ({"bbox": BOX}, r"line 1.objects.categories: missing"),
    "no box": ({"category": [1]}, r"line 1.objects.bbox: missing"),
    "three": (
        {"bbox": [[1, 2, 3]], "category": [1]},
        r"objects.bbox\[0\]: \[1, 2, 3\] is not a box",
    ),
    "text": ({"bbox": [[1, 2, 3, "x"]], "category": [1]}, r"bbox\[0\]: 'x' is not a finite number"),
    "negative": ({"bbox": [[9, 2, -3, 4]], "category": [1]}, r"objects.bbox\[0\]: box .* negative"),
    "fraction": ({"bbox": BOX, "category": [0.5]}, r"objects.category\[0\]: 0.5 is not a class"),
    "mixed": ({"bbox": BOX * 2, "category": [1, "x"]}, r"category\[1\]: no class 'x' \(write"),
    "mixed too": ({"bbox": BOX * 2, "category": ["x", 1]}, r"category\[1\]: class 1 among names"),
}


@pytest.mark.parametrize("name", OBJECTS)
def test_bad_objects(name: str, tmp_path: Path) -> None:
    objects, message = OBJECTS[name]
    with pytest.raises(DataError, match=message):
        read(tmp_path, objects)


def test_bad_lines(tmp_path: Path) -> None:
    for text, message in (
        ("\n[1]\n", r"metadata.jsonl: line 2: not a JSON object: .*\(a line is a JSON object with"),
        ('{"objects": {}}', r"line 1.file_name: missing, or not a text"),
        ('{"file_name": "a", "width": "x"}', r"line 1.width: 'x' is not a number \(write pixels"),
        ('{"file_name": "a", "width": -1, "height": 2}', r"image a: a size of -1 x 2 pixels"),
        ("", r"metadata.jsonl"),
    ):
        file = make.write(tmp_path / "metadata.jsonl", text)
        with pytest.raises(DataError, match=message):
            read_truth(file, format="huggingface", split="x" if not text else None)


# --- Parquet --------------------------------------------------------------------------------------


def parquet(folder: Path, rows: list[dict[str, Any]], schema: Any = None) -> Path:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow.parquet import write_table

    table = pyarrow.Table.from_pylist(rows)
    if schema is not None:
        info = json.dumps({"info": {"features": {"objects": schema}}})
        table = table.replace_schema_metadata({"huggingface": info})
    write_table(table, folder / "train-0.parquet")
    return folder / "train-0.parquet"


def row(image_id: int, path: str | None, category: int) -> dict[str, Any]:
    objects = {"bbox": [[8.0, 4.0, 16.0, 8.0]], "category": [category]}
    return {"image": {"bytes": b"no image", "path": path}, "image_id": image_id, **SIZE} | {
        "objects": objects
    }


def test_ids_of_images_and_classes_of_the_schema(tmp_path: Path) -> None:
    label = {"names": ["dog", "cat", "cow"], "_type": "ClassLabel"}
    rows = [row(9, "a.png", 1), row(5, "b.png", 2)]
    truth = read_truth(parquet(tmp_path, rows, [{"category": label, "bbox": {}}]))
    assert truth.images.ids.tolist() == [5, 9]
    assert truth.images.stems == ("b", "a")
    assert truth.image.tolist() == [1, 0]
    assert truth.categories.names == ("dog", "cat", "cow")
    assert truth.categories.ids.tolist() == [0, 1, 2]
    assert truth.label.tolist() == [1, 2]
    with pytest.raises(DataError, match=r"row 1.objects.category\[0\]: no class 7 .the schema nam"):
        read_truth(parquet(tmp_path, [rows[0], row(5, "b.png", 7)], {"feature": label}))


@pytest.mark.parametrize("path", [None, "image.jpg"])
def test_images_that_only_ids_tell_apart(path: str | None, tmp_path: Path) -> None:
    truth = read_truth(parquet(tmp_path, [row(9, path, 1), row(5, path, 2)]))
    assert truth.images.ids.tolist() == [5, 9]
    assert truth.categories.names == ("1", "2")


def test_bad_parquet(tmp_path: Path) -> None:
    without = {"image": {"path": None}, "objects": {"bbox": [[1.0] * 4], "category": [0]}}
    with pytest.raises(DataError, match=r"row 0: no path of the image, file name or id \(add"):
        read_truth(parquet(tmp_path, [without]))
    sizeless = {key: value for key, value in row(1, "a", 0).items() if key not in SIZE}
    pytest.importorskip("PIL")
    with pytest.raises(DataError, match=r"row 0, image: not an image that Pillow can read"):
        read_truth(parquet(tmp_path, [sizeless]))
    plain = parquet(tmp_path, [{"image": "a", "x": 1}])
    with pytest.raises(DataError, match=r"no column objects \(give a detection data set"):
        read_truth(plain, format="huggingface")
    with pytest.raises(DataError, match=r"train-0.parquet: cannot be read as Parquet"):
        read_truth(make.write(plain, b"PAR1 objects PAR1"), format="huggingface")


def test_a_parquet_sample_from_its_folder(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    truth = read_truth(SAMPLES["huggingface-parquet"](tmp_path)[0])
    assert truth.images.ids.tolist() == [100, 101, 102]
    assert truth.split == "test"
