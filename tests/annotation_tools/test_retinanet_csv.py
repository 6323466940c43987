"""CSV without a header: boxes, empty images, classes.csv, and bad files."""

from pathlib import Path

import pytest

from detmap import read_detections, read_truth
from tests.annotation_tools.refusals import refuses
from tests.support import builders as make

ROWS = "a/1.jpg,10,20,30,60.5,dog\na/1.jpg,1,2,3,4,cat\nb/2.jpg,,,,,\n"


def test_boxes_and_empty_images(tmp_path: Path) -> None:
    truth = read_truth(make.write(tmp_path / "gt.csv", ROWS))
    assert truth.boxes.tolist() == [[10, 20, 20, 40.5], [1, 2, 2, 2]]
    assert (truth.images.ids.tolist(), truth.image.tolist()) == ([1, 2], [0, 0])
    assert truth.categories.names == ("cat", "dog")
    assert truth.categories.ids.tolist() == [1, 2]


@pytest.mark.parametrize(
    "rows", [ROWS.replace("\n", "\r\n"), "\ufeff" + ROWS, '"a/1.jpg"' + ROWS[7:] + "\n"]
)
def test_other_spellings(tmp_path: Path, rows: str) -> None:
    truth = read_truth(make.write(tmp_path / "gt.csv", rows))
    assert (len(truth), len(truth.images)) == (2, 2)


@pytest.mark.parametrize("name", ["classes.csv", "_classes.csv"])
def test_classes_of_the_file_beside(tmp_path: Path, name: str) -> None:
    make.write(tmp_path / name, "dog,0\nbird,1\ncat,2\n")
    truth = read_truth(make.write(tmp_path / "gt.csv", ROWS))
    assert truth.categories.names == ("dog", "bird", "cat")
    assert (truth.categories.ids.tolist(), truth.label.tolist()) == ([0, 1, 2], [0, 2])


def test_class_names_that_are_numbers_stay_names(tmp_path: Path) -> None:
    make.write(tmp_path / "classes.csv", "7,0\n8,1\n")
    truth = read_truth(make.write(tmp_path / "gt.csv", "1.jpg,1,2,3,4,8\n"))
    assert truth.categories.names == ("8",)


def test_detections_have_the_score_last(tmp_path: Path) -> None:
    truth = read_truth(make.write(tmp_path / "gt.csv", ROWS))
    found = read_detections(make.write(tmp_path / "dt.csv", "2.jpg,1,2,3,5,cat,0.25\n"), truth)
    assert (found.boxes.tolist(), found.score.tolist()) == ([[1, 2, 2, 3]], [0.25])
    assert (found.image.tolist(), found.label.tolist()) == ([1], [0])


def test_detections_without_a_score(tmp_path: Path) -> None:
    path = make.write(tmp_path / "gt.csv", ROWS)
    says = "gt.csv: line 1: 6 columns, a row has 7 (write one cell per column: ...class, score"
    refuses(read_detections, path, read_truth(path), says=says)


BAD = {
    "1.jpg,1,2,3,4,cat\n1.jpg,1,2,3\n": ("gt.csv: line 2: 4 columns, a row has 6 (write one cell"),
    "1.jpg,1,2,3,4,cat\n1.jpg,1,2,x,4,cat\n": "gt.csv: line 2, column xmax: 'x' is not a number",
    "1.jpg,1,2,3,4,\n": "gt.csv: line 1, column class: is empty",
    "1.jpg,1,2,,4,cat\n": "gt.csv: line 1, column xmax: nan is not a finite number",
    "1.jpg,9,2,3,4,cat\n": "gt.csv: line 1: box 9 2 3 4 has a negative width or height",
    "": "gt.csv: holds no row",
}


@pytest.mark.parametrize("rows", BAD)
def test_bad_files(tmp_path: Path, rows: str) -> None:
    path = make.write(tmp_path / "gt.csv", rows)
    refuses(read_truth, path, says=BAD[rows], format="retinanet")


@pytest.mark.parametrize(
    ("classes", "says"),
    [
        ("dog,0\ncat,x\n", "classes.csv: class ids that are not whole numbers (a row is: class,id"),
        ("dog,0\ncat,0\n", "classes.csv: a class or an id occurs twice"),
        ("dog,0\n", "line 2, column class: no class 'cat' in categories (list every class)"),
        ("dog\n", "classes.csv: line 1: 1 columns, a row has 2"),
    ],
)
def test_bad_classes(tmp_path: Path, classes: str, says: str) -> None:
    make.write(tmp_path / "classes.csv", classes)
    refuses(read_truth, make.write(tmp_path / "gt.csv", ROWS), says=says)


def test_a_header_makes_it_ordinary_csv(tmp_path: Path) -> None:
    text = "image,xmin,ymin,xmax,ymax,class\n" + ROWS
    assert len(read_truth(make.write(tmp_path / "gt.csv", text))) == 2
