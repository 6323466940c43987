"""Files of a folder are read whatever the case of their suffixes; none is left out silently."""

import unicodedata
from pathlib import Path

import pytest

import detmap
from detmap.core.adapters import folder_files
from detmap.core.tables.notes import summed
from detmap.errors import DataError
from tests.support import builders as make
from tests.support.format_samples import SAMPLES, STEMS

FREE_NAMES = ("csv", "coco", "cvat", "createml", "retinanet")
"""Formats whose files have any name, so that all their suffixes may be in upper case."""
NAME = unicodedata.normalize("NFC", "é")


def of_images(folder: Path, wanted: tuple[str, ...] = STEMS) -> list[Path]:
    """The files that are named by an image or a class."""
    return [file for file in folder.rglob("*") if file.name.split(".")[0] in wanted]


def loud(file: Path) -> Path:
    return file.rename(file.with_suffix(file.suffix.upper()))


def score(truth: Path, found: Path) -> tuple[float, set[str]]:
    """AP, and the codes of all notes."""
    table = detmap.read_truth(truth)
    rows = detmap.read_detections(found, table)
    ap = detmap.evaluate(table, rows, "coco-bbox").metrics["AP"]
    return ap, {note.code for note in (*table.notes, *rows.notes)}


@pytest.fixture(scope="module")
def wanted(tmp_path_factory: pytest.TempPathFactory) -> float:
    return score(*SAMPLES["coco"](tmp_path_factory.mktemp("wanted")))[0]


@pytest.mark.parametrize("kind", SAMPLES)
def test_suffixes_are_read_in_upper_case(tmp_path: Path, kind: str, wanted: float) -> None:
    if "parquet" in kind:
        pytest.importorskip("pyarrow")
    truth, found = SAMPLES[kind](tmp_path)
    for file in of_images(tmp_path):
        loud(file)
    for file in tmp_path.glob("**/ImageSets/Main/*"):
        loud(file)
    if kind in FREE_NAMES:
        truth, found = loud(truth), loud(found)
    assert score(truth, found)[0] == pytest.approx(wanted)


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("kind", SAMPLES)
def test_files_in_sub_folders(tmp_path: Path, kind: str, side: int, wanted: float) -> None:
    paths = SAMPLES[kind](tmp_path)
    files = of_images(paths[side], ("b",)) if paths[side].is_dir() else []
    files = [file for file in files if file.suffix != ".png"]
    if not files:
        pytest.skip("the format has no file per image")
    for file in files:
        (file.parent / "more").mkdir()
        file.rename(file.parent / "more" / file.name)
    try:
        ap, codes = score(*paths)
    except DataError:
        return
    said = codes & {"sub-folders-unread", "labels-missing", "images-unannotated"}
    assert ap == pytest.approx(wanted) or said


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("kind", SAMPLES)
def test_two_files_of_one_image_are_an_error(tmp_path: Path, kind: str, side: int) -> None:
    paths = SAMPLES[kind](tmp_path)
    files = of_images(paths[side], ("a",)) if paths[side].is_dir() else []
    files = [file for file in files if file.suffix != ".png"]
    if not files or (kind, side) in (("voc", 0), ("yolo", 0), ("yolo-darknet", 0)):
        pytest.skip("no file per image, or lists name each file")
    for file in files:
        (file.with_suffix(file.suffix.upper())).write_bytes(file.read_bytes())
    with pytest.raises(DataError, match="two files of the same stem"):
        score(*paths)


LINES = {
    "my image": "my image",
    "a  b": "a  b",
    "cat 1": "cat 1",
    "flagged": "flagged -1",
    "quoted name": '"quoted name" 1',
    "v1.2.jpg": "v1.2.jpg",
    "x.y": "x.y 1",
    NAME: NAME,
}


def test_a_list_of_images_takes_any_name(tmp_path: Path) -> None:
    pages = {name: make.page(make.voc_object()) for name in LINES}
    folder = make.write_voc(tmp_path, pages)
    (folder / "Annotations" / f"{NAME}.xml").rename(
        folder / "Annotations" / f"{unicodedata.normalize('NFD', NAME)}.xml"
    )
    make.write(folder / "Annotations" / "cat.xml", make.page())
    make.write(folder / "ImageSets/Main/test.txt", "".join(f"{text}\n" for text in LINES.values()))
    truth = detmap.read_truth(folder)
    assert set(truth.images.stems) == LINES.keys()
    assert len(truth) == len(LINES)
    assert summed(truth.notes) == []
    lines = "".join(f"{name} 0.5 1 2 3 4\n" for name in LINES if "  " not in name)
    text = make.write_voc_text(tmp_path / "found", {"comp4_det_test_dog.txt": lines})
    found = detmap.read_detections(text, detmap.read_truth(folder), unknown="drop")
    assert len(found) + sum(note.count for note in found.notes) >= len(LINES) - 1


def test_a_name_on_disk_may_differ_in_its_unicode_form(tmp_path: Path) -> None:
    here = make.write(tmp_path / f"{unicodedata.normalize('NFD', NAME)}.TXT", "")
    files = [tmp_path / f"{NAME}.txt", tmp_path / "E.txt", tmp_path / "none" / "a.txt"]
    assert folder_files.existing(files) == [here, None, None]


def test_hidden_files_are_reported_without_the_copies_of_macos(tmp_path: Path) -> None:
    for name in (".a.txt", "._a.txt", "b.txt", ".note"):
        make.write(tmp_path / name, "")
    assert [file.name for file in folder_files.listed(tmp_path, ".txt")] == ["b.txt"]
    (note,) = folder_files.unread(tmp_path, ".txt")
    assert (note.code, note.count) == ("hidden-unread", 1)
    assert ".a.txt" in note.text
