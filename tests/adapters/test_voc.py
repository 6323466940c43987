"""VOC folders: everything that is legal is read as what it says."""

import os
from pathlib import Path

import numpy as np
import pytest

import detmap
from detmap import DataError, Truth
from detmap.core.adapters.voc import scan_voc as voc_scan
from detmap.core.tables.notes import summed
from tests.support import builders as make


def read_objects(folder: Path, *objects: str) -> Truth:
    """The ground truth of one image with these objects."""
    return detmap.read_truth(make.write_voc(folder / "truth", {"000001": make.page(*objects)}))


def read_boxes(folder: Path, truth: Truth, files: dict[str, str]) -> dict[str, list[list[float]]]:
    """The detected boxes of each class, from a folder with these files."""
    detections = detmap.read_detections(make.write_voc_text(folder / "detections", files), truth)
    names = truth.categories.names
    return {name: detections.boxes[detections.label == k].tolist() for k, name in enumerate(names)}


# ---- truth


def test_the_columns_hold_what_the_annotations_say(tmp_path: Path) -> None:
    size = "<size><width>500</width><height>375</height><depth>3</depth></size>"
    pages = {
        "2008_000002": make.page(
            size, make.voc_object("dog", (1, 2, 30, 40)), make.voc_object("cat", difficult=1)
        ),
        "2008_000001": make.page(make.voc_object("cat", (5, 5, 5, 5))),
    }
    truth = detmap.read_truth(make.write_voc(tmp_path / "VOC2008", pages))
    assert truth.images.ids.tolist() == list(truth.images.stems) == ["2008_000001", "2008_000002"]
    np.testing.assert_array_equal(truth.images.width, [np.nan, 500])
    np.testing.assert_array_equal(truth.images.height, [np.nan, 375])
    assert truth.categories.names == ("cat", "dog")
    assert truth.categories.ids.tolist() == [1, 2]
    assert truth.image.tolist() == [0, 1, 1]
    assert truth.label.tolist() == [0, 1, 0]
    assert truth.boxes.tolist() == [[5, 5, 5, 5], [1, 2, 30, 40], [11, 11, 30, 30]]
    assert truth.area.tolist() == [1, 30 * 39, 20 * 20]
    assert truth.difficult.tolist() == [False, False, True]
    assert not truth.crowd.any()
    assert (truth.box_format, truth.family, truth.year, truth.split) == ("voc", "voc", 2008, "test")
    assert summed(truth.notes) == []


@pytest.mark.parametrize("difficult", [None, ""])
def test_objects_without_a_difficult_flag(tmp_path: Path, difficult: str | None) -> None:
    truth = read_objects(
        tmp_path, make.voc_object(difficult=difficult), make.voc_object(difficult=1)
    )
    assert truth.difficult.tolist() == [False, True]
    assert [(note.code, note.count) for note in summed(truth.notes)] == [("difficult-missing", 1)]


@pytest.mark.parametrize(
    "more",
    [
        "<pose>Left</pose>",
        "<truncated>1</truncated>",
        "<occluded>0</occluded><actions><other>1</other></actions>",
        "<!-- -->",
    ],
)
def test_what_an_object_says_beside_its_box_does_not_matter(tmp_path: Path, more: str) -> None:
    truth = read_objects(tmp_path, make.voc_object("cat", (11, 11, 30, 30), more))
    assert truth.boxes.tolist() == [[11, 11, 30, 30]]


def test_coordinates_may_be_fractions(tmp_path: Path) -> None:
    whole = make.voc_object(box=(5, 5, 8, 8))
    truth = read_objects(tmp_path, make.voc_object(box=("45.7", " 8.25\n", "1e2", "99.0")), whole)
    assert truth.boxes.tolist() == [[45.7, 8.25, 100, 99], [5, 5, 8, 8]]


def test_the_boxes_of_an_objects_parts_are_no_objects(tmp_path: Path) -> None:
    part = f"<part><name>head</name>{make.bndbox(1, 1, 2, 2)}</part>"
    box = make.bndbox(3, 3, 9, 9)
    before = f"<object>{part}<name>person</name>{box}<difficult>0</difficult></object>"
    truth = read_objects(tmp_path, make.voc_object("person", (5, 5, 8, 8), part, part), before)
    assert truth.categories.names == ("person",)
    assert truth.boxes.tolist() == [[5, 5, 8, 8], [3, 3, 9, 9]]


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbf" + make.page(make.voc_object("café")).encode(),
        ('<?xml version="1.0" encoding="latin-1"?>\n' + make.page(make.voc_object("café"))).encode(
            "latin-1"
        ),
        (
            '<?xml version="1.0"?>\n<!DOCTYPE annotation>\n'
            + make.page(make.voc_object("\n café\t"))
        ).encode(),
        make.page(make.voc_object("caf&#233;")).encode("utf-16"),
    ],
    ids=["byte order mark", "latin-1", "doctype, white space", "utf-16, character reference"],
)
def test_an_annotation_is_any_xml(tmp_path: Path, content: bytes) -> None:
    truth = detmap.read_truth(make.write_voc(tmp_path, {"1": content}))
    assert truth.categories.names == ("café",)


def test_zero_width_is_the_least_that_a_box_may_have(tmp_path: Path) -> None:
    truth = read_objects(tmp_path, make.voc_object(box=(10, 1, 9, 5)))
    assert truth.area.tolist() == [0]


@pytest.mark.parametrize(
    "lists, wanted, split",
    [
        ({"test": "a", "val": "b"}, None, "test"),
        ({"train": "a", "val": "b", "trainval": "a\nb"}, None, "val"),
        ({"test": "a", "val": "b"}, "val", "val"),
        ({"my_own-split": "b", "test": "a"}, "my_own-split", "my_own-split"),
    ],
)
def test_the_split_is_the_named_one_else_test_else_val(
    tmp_path: Path, lists: dict[str, str], wanted: str | None, split: str
) -> None:
    truth = detmap.read_truth(
        make.write_voc(tmp_path, {"a": make.page(), "b": make.page()}, lists), split=wanted
    )
    assert truth.split == split
    assert truth.images.ids.tolist() == lists[split].split()


@pytest.mark.parametrize(
    "content",
    ["b\na\n", "\n  b \n\na", "b\r\na\r\n", "\N{ZERO WIDTH NO-BREAK SPACE}b\na", "b -1\na  1\n"],
)
def test_a_split_lists_its_images_one_a_line(tmp_path: Path, content: str) -> None:
    truth = detmap.read_truth(
        make.write_voc(tmp_path, {"a": make.page(), "b": make.page()}, {"test": content})
    )
    assert truth.images.ids.tolist() == ["a", "b"]


def test_only_the_images_of_the_split_are_read(tmp_path: Path) -> None:
    truth = detmap.read_truth(
        make.write_voc(tmp_path, {"a": make.page(), "b": "broken"}, {"test": "a"})
    )
    assert len(truth.images) == 1


def test_the_class_lists_of_the_split_name_classes_too(tmp_path: Path) -> None:
    lists = {"test": "a", "dog_test": "a -1", "potted_plant_test": "a -1", "cow_val": "a -1"}
    truth = detmap.read_truth(
        make.write_voc(tmp_path, {"a": make.page(make.voc_object("cat"))}, lists)
    )
    assert truth.categories.names == ("cat", "dog", "potted_plant")


def test_a_devkit_folder_may_hold_one_year(tmp_path: Path) -> None:
    make.write_voc(tmp_path / "VOCdevkit" / "VOC2009")
    make.write(tmp_path / "VOCdevkit" / "VOCcode" / "VOCinit.m", "")
    truth = detmap.read_truth(tmp_path / "VOCdevkit")
    assert truth.year == 2009
    assert truth.source.endswith("VOC2009")


@pytest.mark.parametrize(
    "folder, says, year",
    [
        ("VOC2007", "", 2007),
        ("VOC2012", "<folder>VOC2007</folder>", 2012),
        ("data", "<folder> VOC2008 </folder>", 2008),
        ("data", "<folder>images</folder>", 0),
        ("VOC2007-small", "", 0),
        ("data", "", 0),
    ],
)
def test_the_year_of_a_folder_or_its_annotations(
    tmp_path: Path, folder: str, says: str, year: int
) -> None:
    assert detmap.read_truth(make.write_voc(tmp_path / folder, {"a": make.page(says)})).year == year


@pytest.mark.parametrize("path", [".", "Annotations/.."])
def test_the_year_is_found_from_within_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.chdir(make.write_voc(tmp_path / "VOC2007"))
    assert detmap.read_truth(path).year == 2007


def test_an_image_without_objects_makes_its_detections_false(tmp_path: Path) -> None:
    lines = "000001 0.5 11 11 30 30\n000002 0.9 11 11 30 30\n"
    truth = make.write_voc(tmp_path / "truth")
    result = detmap.evaluate(
        truth, make.write_voc_text(tmp_path / "detections", {"test_cat": lines}), "voc2012"
    )
    assert result.metrics["mAP"] == 0.5
    assert (result.counts()["tp"], result.counts()["fp"]) == (1, 1)


def test_a_split_without_objects_is_legal(tmp_path: Path) -> None:
    truth = make.write_voc(
        tmp_path / "truth", {"000001": make.page()}, {"test": "000001", "cat_test": "000001 -1"}
    )
    result = detmap.evaluate(truth, make.write_voc_text(tmp_path / "detections"))
    assert np.isnan(result.metrics["mAP"])
    assert result.counts()["fp"] == 1


# ---- detections


@pytest.mark.parametrize("lines", ["", "\n", "\n\n"])
def test_an_empty_class_file_is_no_detection(tmp_path: Path, lines: str) -> None:
    truth = detmap.read_truth(make.write_voc(tmp_path / "truth"))
    detections = detmap.read_detections(
        make.write_voc_text(tmp_path / "detections", {"test_cat": lines}), truth
    )
    assert len(detections) == 0
    assert detmap.evaluate(truth, detections).metrics["mAP"] == 0


def test_the_columns_hold_what_the_lines_say(tmp_path: Path) -> None:
    truth = detmap.read_truth(make.write_voc(tmp_path / "truth"))
    lines = "000002 0.1 1 2 3 4\r\n\r\n  000001\t-1e-3  1.5 2 3.25 4 \r\n"
    detections = detmap.read_detections(
        make.write_voc_text(tmp_path / "detections", {"test_cat": lines}), truth
    )
    assert detections.image.tolist() == [1, 0]
    assert detections.score.tolist() == [0.1, -1e-3]
    assert detections.boxes.tolist() == [[1, 2, 3, 4], [1.5, 2, 3.25, 4]]
    assert detections.box_format == "voc"


@pytest.mark.parametrize(
    "file",
    [
        "comp3_det_test_cat",
        "comp4_det_test_cat",
        "comp4_a1b2c3_det_test_cat",
        "comp3_my_salt_det_test_cat",
        "comp4_det_val_cat",
    ],
)
def test_a_file_of_either_competition_with_or_without_salt(tmp_path: Path, file: str) -> None:
    truth = detmap.read_truth(make.write_voc(tmp_path / "truth"))
    assert read_boxes(tmp_path, truth, {file: "000001 1 1 2 3 4"}) == {"cat": [[1, 2, 3, 4]]}


def test_other_files_in_the_folder_are_none_of_its_business(tmp_path: Path) -> None:
    truth = detmap.read_truth(make.write_voc(tmp_path / "truth"))
    make.write(tmp_path / "detections" / "README.md", "about")
    make.write(tmp_path / "detections" / "comp4_det_test_cat.txt.bak", "broken")
    assert read_boxes(tmp_path, truth, {"test_cat": "000001 1 1 2 3 4"}) == {"cat": [[1, 2, 3, 4]]}


def test_a_class_is_told_from_one_whose_name_ends_alike(tmp_path: Path) -> None:
    names = ["plant", "potted_plant", "small_potted_plant", "ant"]
    truth = read_objects(tmp_path, *(make.voc_object(name) for name in names))
    files = {f"test_{name}": f"000001 1 {i} {i} {i} {i}" for i, name in enumerate(names)}
    assert read_boxes(tmp_path, truth, files) == {name: [[i] * 4] for i, name in enumerate(names)}


def test_a_class_whose_name_begins_like_the_end_of_the_split(tmp_path: Path) -> None:
    pages = {"a": make.page(make.voc_object("big_cat"), make.voc_object("cat"))}
    root = make.write_voc(tmp_path / "truth", pages, {"test_big": "a", "test": "a"})
    files = {"test_big_cat": "a 1 1 1 1 1", "test_big_big_cat": "a 1 2 2 2 2"}
    assert read_boxes(tmp_path, detmap.read_truth(root, split="test_big"), files) == {
        "cat": [[1] * 4],
        "big_cat": [[2] * 4],
    }


@pytest.mark.parametrize("split, box", [("test", [1, 1, 1, 1]), ("val", [2, 2, 2, 2])])
def test_the_split_of_the_truth_is_read(tmp_path: Path, split: str, box: list[float]) -> None:
    lists = {"test": "000001", "val": "000002"}
    pages = {stem: make.page(make.voc_object()) for stem in lists.values()}
    truth = detmap.read_truth(make.write_voc(tmp_path / "truth", pages, lists), split=split)
    files = {"test_cat": "000001 1 1 1 1 1", "val_cat": "000002 1 2 2 2 2"}
    assert read_boxes(tmp_path, truth, files) == {"cat": [box]}


def test_a_class_without_a_file_has_no_detections(tmp_path: Path) -> None:
    truth = read_objects(tmp_path, make.voc_object("cat"), make.voc_object("dog"))
    found = read_boxes(tmp_path, truth, {"test_dog": "000001 1 1 2 3 4"})
    assert found == {"cat": [], "dog": [[1, 2, 3, 4]]}
    (note,) = detmap.read_detections(tmp_path / "detections", truth).notes
    assert (note.code, note.count) == ("file-missing", 1)
    assert note.text.endswith(": cat")


def test_files_are_read_in_the_order_of_their_names(tmp_path: Path) -> None:
    truth = read_objects(tmp_path, make.voc_object("cat"), make.voc_object("dog"))
    folder = make.write_voc_text(
        tmp_path / "detections", {"test_dog": "000001 1 1 1 1 1", "test_cat": "000001 2 1 1 1 1"}
    )
    assert detmap.read_detections(folder, truth).score.tolist() == [2, 1]


def test_the_format_may_be_said_but_not_against_the_path(tmp_path: Path) -> None:
    root = make.write_voc(tmp_path / "truth")
    assert len(detmap.read_truth(root, format="voc")) == 1
    with pytest.raises(DataError, match="format coco is a file, this is a folder"):
        detmap.read_truth(root, format="coco")
    with pytest.raises(DataError, match="no format 'nope'"):
        detmap.read_truth(root, format="nope")


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        ("<xmax>50</xmax>", "<xmax>5<b/>0</xmax>"),
        ("<xmax>50</xmax>", "<xmax>5<b></b>0</xmax>"),
        ("<name>cat</name>", "<name>cat<b>ernia</b></name>"),
        ("<difficult>1</difficult>", "<difficult>1<b/></difficult>"),
        ("<width>90</width>", "<width>9<b/>0</width>"),
    ],
)
def test_a_number_or_name_holds_no_element(
    tmp_path: Path, good: str, bad: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(voc_scan, "LEAST_FILES", 0)
    text = make.page(
        "<size><width>90</width><height>9</height></size>",
        make.voc_object("cat", (1, 2, 50, 9), difficult=1),
    )
    assert good in text
    folder = make.write_voc(tmp_path, {"000001": text.replace(good, bad)})
    with pytest.raises(DataError, match="contains an element 'b'"):
        detmap.read_truth(folder)


def test_an_annotation_is_of_moderate_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = make.write_voc(tmp_path)
    os.truncate(folder / "Annotations" / "000001.xml", 1 << 40)
    for least in (0, 64):
        monkeypatch.setattr(voc_scan, "LEAST_FILES", least)
        with pytest.raises(DataError, match="1099511627776 bytes"):
            detmap.read_truth(folder)


def test_a_list_that_is_a_pipe_is_named(tmp_path: Path) -> None:
    folder = make.write_voc(tmp_path)
    file = folder / "ImageSets" / "Main" / "test.txt"
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(DataError, match=r"test\.txt: a pipe, not a file"):
        detmap.read_truth(folder)
