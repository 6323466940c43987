"""The numbers of VOC XML that other tools write, and images without an annotation file."""

from pathlib import Path

import pytest

import detmap
from detmap import DataError
from tests.support import builders as make
from tests.support.format_samples import pictures

OWNER = "<owner><name>Label Studio</name></owner>"
WHOLE = make.page(make.voc_object(box=(10, 20, 30, 50)))


def codes(truth: detmap.Truth) -> dict[str, int]:
    return {note.code: note.count for note in truth.notes}


@pytest.mark.parametrize(
    ("box_format", "wanted"),
    [
        (None, [10, 20, 30, 50]),
        ("voc", [10, 20, 30, 50]),
        ("voc from 0", [11, 21, 31, 51]),
        ("xyxy", [10, 20, 20, 30]),
    ],
)
def test_the_choice_of_a_box_format(
    tmp_path: Path, box_format: str | None, wanted: list[float]
) -> None:
    folder = make.write_voc(tmp_path, {"a": WHOLE})
    truth = detmap.read_truth(folder, box_format=box_format)
    assert truth.boxes.tolist() == [wanted]
    assert truth.box_format == ("xywh" if box_format == "xyxy" else "voc")
    sides = (20, 30) if box_format == "xyxy" else (21, 31)
    assert truth.area.tolist() == [sides[0] * sides[1]]


def test_a_box_format_that_xml_cannot_have(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"unknown box format 'xywh' .*voc, voc from 0, xyxy"):
        detmap.read_truth(make.write_voc(tmp_path, {"a": WHOLE}), box_format="xywh")


def test_fractions_of_most_boxes_are_continuous_pixels(tmp_path: Path) -> None:
    odd = make.voc_object(box=(10.5, 20, 30.25, 50))
    truth = detmap.read_truth(make.write_voc(tmp_path / "a", {"a": make.page(odd, odd)}))
    assert truth.boxes.tolist() == [[10.5, 20, 19.75, 30]] * 2
    assert codes(truth)["box-continuous"] == 2
    folder = make.write_voc(tmp_path / "b", {"a": make.page(odd, make.voc_object())})
    truth = detmap.read_truth(folder)
    assert truth.box_format == "voc"
    note = next(note for note in truth.notes if note.code == "box-from-zero")
    assert "--truth-box-format xyxy" in note.text
    assert "'voc from 0'" in note.text
    assert "box-from-zero" not in codes(detmap.read_truth(folder, box_format="voc"))


def test_label_studio_counts_from_0_and_names_itself(tmp_path: Path) -> None:
    page = make.page(OWNER, make.voc_object(box=(10, 20, 30, 50)))
    truth = detmap.read_truth(make.write_voc(tmp_path / "a", {"a": page, "b": page}))
    assert truth.boxes.tolist() == [[10, 20, 20, 30]] * 2
    assert codes(truth)["box-continuous"] == 2
    with pytest.raises(DataError, match=r"others are not.*choose one box format"):
        detmap.read_truth(make.write_voc(tmp_path / "b", {"a": page, "b": WHOLE}))


def test_listed_images_without_a_file_are_empty(tmp_path: Path) -> None:
    folder = make.write_voc(tmp_path, {"a": make.page(), "c": WHOLE}, {"test": "a\nb\nc\n"})
    truth = detmap.read_truth(folder)
    assert truth.images.stems == ("a", "b", "c")
    assert truth.image.tolist() == [2]
    assert codes(truth)["images-unannotated"] == 1


@pytest.mark.parametrize("place", ["", "JPEGImages"])
def test_pictures_without_a_file_are_empty(tmp_path: Path, place: str) -> None:
    folder = tmp_path / "Annotations" if place else tmp_path
    make.write(folder / "b.xml", WHOLE)
    pictures(tmp_path / place)
    truth = detmap.read_truth(tmp_path)
    assert truth.images.stems == ("a", "b", "c")
    assert truth.image.tolist() == [1]
    assert codes(truth)["images-unannotated"] == 2


def test_corners_of_a_table_fit_continuous_truth_without_a_note(tmp_path: Path) -> None:
    table = make.write(tmp_path / "dt.csv", "image,class,score,x1,y1,x2,y2\na,cat,1,10,20,30,50\n")
    folder = make.write_voc(tmp_path / "a", {"a": WHOLE})
    for box_format, noted in (("voc", True), ("xyxy", False)):
        truth = detmap.read_truth(folder, box_format=box_format)
        notes = detmap.read_detections(table, truth).notes
        assert any(note.code == "corners-assumed" for note in notes) == noted
