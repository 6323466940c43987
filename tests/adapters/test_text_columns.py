"""Text without a header in another layout, or without content: what the messages say."""

from pathlib import Path

import pytest

import detmap
from detmap import DataError
from tests.support import builders as make
from tests.support.running import run

REST = "10 11 30 31 1.5 1.6 3.9 1 1.7 20"
PERCENT = "if these are confidences in percent, divide them by 100"


def one_class(folder: Path) -> detmap.Truth:
    """Images a and b with an object of the class cat each."""
    images = [make.image(id=k, file_name=f"{stem}.jpg") for k, stem in enumerate("ab", 1)]
    objects = [
        make.annotation(id=k, image_id=k, category_id=1, bbox=[10, 11, 20, 20]) for k in (1, 2)
    ]
    tree = make.instances(
        images=images, annotations=objects, categories=[make.category(id=1, name="cat")]
    )
    return detmap.read_truth(make.write(folder / "gt.json", tree))


def scored(folder: Path, name: str, scores: tuple[str, str]) -> Path:
    """Two detections of an image in a format, with these words as scores."""
    if name == "retinanet":
        rows = [f"a.jpg,1{i},11,31,31,cat,{score}" for i, score in enumerate(scores)]
        return make.write(folder / "dt.csv", "\n".join(rows))
    line = {
        "kitti": "cat -1 -1 -1.5 10 11 3{} 31 1.5 1.6 3.9 1 1.7 20 -1.5 {}",
        "cartucho": "cat {1} 11 12 3{0} 31",
        "yolo": "0 0.5 0.5 0.2{} 0.2 {}",
    }[name]
    text = "\n".join(line.format(i, score) for i, score in enumerate(scores))
    return make.write(folder / name / "a.txt", text).parent


def read(folder: Path, name: str, scores: tuple[str, str]) -> detmap.Detections:
    truth = one_class(folder)
    names = ["cat"] if name == "yolo" else None
    return detmap.read_detections(
        scored(folder, name, scores), truth, format=name, class_names=names
    )


FORMATS = ("kitti", "retinanet", "cartucho", "yolo")


@pytest.mark.parametrize("name", FORMATS)
def test_whole_numbers_are_no_confidences(name: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="track ids") as refused:
        read(tmp_path, name, ("90", "89"))
    assert PERCENT in refused.value.fix
    with pytest.raises(DataError, match="track ids") as refused:
        read(tmp_path, name, ("101", "7"))
    assert PERCENT not in refused.value.fix
    assert read(tmp_path, name, ("0.9", "0.89")).score.tolist() == [0.9, 0.89]


@pytest.mark.parametrize("name", FORMATS)
def test_scores_of_0_and_1_have_a_note(name: str, tmp_path: Path) -> None:
    found = read(tmp_path, name, ("1", "0"))
    assert "score-two-values" in [note.code for note in found.notes]
    codes = [note.code for note in read(tmp_path, name, ("1", "0.5")).notes]
    assert "score-two-values" not in codes


@pytest.mark.parametrize("last", ["-1.5", "0", "2", "-10"])
def test_kitti_with_the_score_after_the_class(last: str, tmp_path: Path) -> None:
    truth = one_class(tmp_path)
    file = make.write(tmp_path / "r" / "a.txt", f"cat 0.9 -1 -1 -1.58 {REST} {last}\n")
    with pytest.raises(DataError, match="class score truncated occluded alpha left top"):
        detmap.read_detections(file.parent, truth, format="kitti")
    file.write_text(f"cat 0.9 0 0 0 {REST} -1.5 0.75\n".replace(" 20 ", " "))
    found = detmap.read_detections(file.parent, truth, format="kitti")
    assert (found.score.tolist(), found.boxes.tolist()) == ([0.75], [[0, 10, 11, 20]])


def test_classes_of_yolo_may_be_written_as_floats(tmp_path: Path) -> None:
    truth = one_class(tmp_path)
    file = make.write(tmp_path / "labels" / "a.txt", "0.0 0.5 0.5 0.2 0.2 0.9\n")
    found = detmap.read_detections(file.parent, truth, class_names=["cat"])
    assert (found.score.tolist(), found.label.tolist()) == ([0.9], [0])
    file.write_text("0.5 0.5 0.5 0.2 0.2 0.9\n")
    with pytest.raises(DataError, match="the format is ambiguous"):
        detmap.read_detections(file.parent, truth, class_names=["cat"])


@pytest.mark.parametrize("name", ["det.txt", "det.csv", ""])
def test_mot_text_is_named(name: str, tmp_path: Path) -> None:
    truth = one_class(tmp_path)
    rows = "1,1,11,11,49,49,0.9,-1,-1,-1\n2,-1,11,11,49,49,8.5e-1,-1,-1,-1\n"
    make.write(tmp_path / "mot" / (name or "seq.txt"), rows)
    with pytest.raises(DataError, match="text of MOT") as refused:
        detmap.read_detections(tmp_path / "mot" / name, truth)
    assert "ambiguous" not in str(refused.value)
    assert "image,class,x,y,w,h,score" in refused.value.fix
    table = "image,class,x,y,w,h,score\na.jpg,cat,11,11,49,49,0.9\n"
    found = detmap.read_detections(make.write(tmp_path / "dt.csv", table), truth)
    assert (found.boxes.tolist(), found.score.tolist()) == ([[11, 11, 49, 49]], [0.9])


@pytest.mark.parametrize("inside", ["", "labels"])
def test_a_folder_of_empty_files_asks_for_the_format(inside: str, tmp_path: Path) -> None:
    truth = one_class(tmp_path)
    for stem in "ab":
        make.write(tmp_path / "dt" / inside / f"{stem}.txt", " \n" * (stem == "a"))
    with pytest.raises(DataError, match="all text files are empty") as refused:
        detmap.read_detections(tmp_path / "dt", truth)
    assert "--detections-format yolo, cartucho, kitti" in refused.value.fix
    assert len(detmap.read_detections(tmp_path / "dt", truth, format="yolo")) == 0
    make.write(tmp_path / "dt" / "dt.json", [make.detection()])  # of a folder with other marks
    with pytest.raises(DataError) as refused:
        detmap.read_detections(tmp_path / "dt", truth)
    assert "all text files are empty" not in str(refused.value)


@pytest.mark.parametrize("name", [None, "yolo", "cartucho", "kitti"])
def test_a_folder_without_files_says_what_to_give(name: str | None, tmp_path: Path) -> None:
    truth = one_class(tmp_path)
    (tmp_path / "labels").mkdir()
    with pytest.raises(DataError, match="a JSON file that holds"):
        detmap.read_detections(tmp_path / "labels", truth, format=name)
    nothing = make.write(tmp_path / "dt.json", "[]")
    assert len(detmap.read_detections(nothing, truth)) == 0
    outcome = run("inspect", nothing)
    assert outcome.code == 0
    assert "detections in the format coco" in outcome.out
