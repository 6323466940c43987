"""Roboflow's folders: which file and split is read, the unused category, images without objects."""

from pathlib import Path

import pytest

from detmap import read_detections, read_truth
from tests.annotation_tools.refusals import refuses
from tests.support import builders as make
from tests.support.format_samples import OBJECTS, SAMPLES


def coco(folder: Path, **groups: object) -> Path:
    return make.write(folder / "_annotations.coco.json", make.instances(**groups)).parent


UNUSED = [{"id": 0, "name": "animals"}, {"id": 1, "name": "cat"}]


def test_the_unused_category_is_left_out_with_a_note(tmp_path: Path) -> None:
    truth = read_truth(coco(tmp_path / "test", categories=UNUSED))
    assert (truth.categories.names, truth.label.tolist()) == (("cat",), [0])
    assert (
        str(truth.notes[-1]) == "1 category without objects is left out: 0 (animals), of Roboflow"
    )
    used = [make.annotation(category_id=0)]
    truth = read_truth(coco(tmp_path / "test", categories=UNUSED, annotations=used))
    assert truth.categories.names == ("animals", "cat")
    truth = read_truth(tmp_path / "test" / "_annotations.coco.json", format="coco")
    assert truth.categories.names == ("animals", "cat")


def test_the_split(tmp_path: Path) -> None:
    for name, n in (("train", 3), ("valid", 1), ("test", 2)):
        coco(tmp_path / name, annotations=[make.annotation(id=i) for i in range(n)])
    assert len(read_truth(tmp_path, split="train")) == 3
    assert len(read_truth(tmp_path, split="val")) == 1
    assert len(read_truth(tmp_path)) == 2
    assert "split of 3 was chosen: test" in str(read_truth(tmp_path).notes[-1])
    assert len(read_truth(tmp_path / "train")) == 3
    refuses(read_truth, tmp_path, split="all", says="no split 'all' (the splits are: test, valid")
    refuses(read_truth, tmp_path / "train", split="test", says="split 'test', but this is one")


def test_images_of_the_folder_that_csv_does_not_name(tmp_path: Path) -> None:
    path, _ = SAMPLES["roboflow-csv"](tmp_path)
    truth = read_truth(path)
    assert truth.images.stems == ("a", "b", "c")
    assert str(truth.notes[-1]).startswith("1 image has no row with a box: read as")


def test_options_are_those_of_the_file(tmp_path: Path) -> None:
    path = coco(tmp_path / "test")
    says = "box_format 'xyxy' is not an option of COCO files (remove box_format)"
    refuses(read_truth, path, box_format="xyxy", says=says)
    csv, _ = SAMPLES["roboflow-csv"](tmp_path / "csv")

    assert read_truth(csv, box_format="voc").box_format == "voc"
    assert read_truth(csv, roles=["occluded"]).roles == {}


def test_names_before_the_upload(tmp_path: Path) -> None:
    """By ``extra.name``, which the name that Roboflow made of it does not show."""
    images = [
        make.image(id=i, file_name=f"my-photo-{i}-_jpg.rf.{i:032x}.jpg", extra={"name": name})
        for i, name in enumerate(["my photo (0).jpg", "my photo (1).jpg", "twice.jpg", "twice.jpg"])
    ]
    truth = read_truth(coco(tmp_path / "test", images=images))
    rows = "image,class,score,x,y,w,h\nmy photo (1).jpg,cat,0.5,1,2,3,4\n"
    found = read_detections(make.write(tmp_path / "found.csv", rows), truth)
    assert found.image.tolist() == [1]
    twice = make.write(tmp_path / "found.csv", rows.replace("my photo (1)", "twice"))
    refuses(read_detections, twice, truth, says="no image 'twice.jpg'")


def test_bad_folders(tmp_path: Path) -> None:
    make.write(tmp_path / "test" / "_annotations.coco.json", "{")
    refuses(read_truth, tmp_path, says="_annotations.coco.json: line 1, column 2: not JSON")
    make.write(tmp_path / "empty" / "a.txt", "")
    says = "empty: no split test or valid (the splits are: none)"
    refuses(read_truth, tmp_path / "empty", says=says, format="roboflow")


@pytest.mark.parametrize("name", ["_annotations.csv", "_annotations.coco.json"])
def test_the_file_alone(tmp_path: Path, name: str) -> None:
    SAMPLES["roboflow-csv" if name.endswith(".csv") else "roboflow"](tmp_path)
    assert len(read_truth(tmp_path / "test" / name)) == len(OBJECTS)
