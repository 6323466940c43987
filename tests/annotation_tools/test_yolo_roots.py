"""Roots of YOLO data: obj.data with lists of images, and classes.txt beside images and labels."""

from pathlib import Path

import pytest

from detmap import read_truth
from tests.annotation_tools.refusals import refuses
from tests.support import builders as make
from tests.support.format_samples import SAMPLES, pictures


@pytest.fixture
def root(tmp_path: Path) -> Path:
    path, _ = SAMPLES["yolo-darknet"](tmp_path / "set")
    return path


def test_a_data_file_is_read_as_its_folder(root: Path) -> None:
    one, other = read_truth(root), read_truth(root / "obj.data")
    assert one.boxes.tolist() == other.boxes.tolist()
    assert "list of images, train, is the only one and is used" in str(one.notes[0])
    assert (one.split, one.categories.ids.tolist()) == ("train", [0, 1])


def test_the_split(root: Path) -> None:
    make.write(root / "valid.txt", "data/obj_train_data/b.png\n")
    text = "classes=2\nTrain = data/train.txt\nvalid = data/valid.txt # b\nnames = data/obj.names\n"
    make.write(root / "obj.data", text)
    assert len(read_truth(root).images) == len(read_truth(root, split="val").images) == 1
    assert len(read_truth(root, split="train").images) == 3
    (root / "obj.data").unlink()
    assert len(read_truth(root, split="val").images) == 1


@pytest.mark.parametrize(
    "entry",
    ["data/obj_train_data/a.png", "/home/x/set/obj_train_data/a.png", "obj_train_data\\a.png"],
)
def test_paths_of_another_machine(root: Path, entry: str) -> None:
    make.write(root / "train.txt", entry)
    assert len(read_truth(root)) == 2


def test_labels_in_the_folder_beside_the_images(root: Path) -> None:
    for folder in ("images", "JPEGImages"):
        pictures(root / folder)
        make.write(root / "train.txt", f"{folder}/b.png")
        make.write(root / "labels" / "b.txt", "1 .5 .5 .5 .5")
        assert read_truth(root).boxes.tolist() == [[16, 8, 32, 16]]


def test_sizes_without_images(root: Path, tmp_path: Path) -> None:
    for file in (root / "obj_train_data").glob("*.png"):
        file.unlink()
    says = "no image of the list is there, such as ...a.png: sizes are unknown (give them: --image"
    refuses(read_truth, root, says=f"train.txt: {says}")
    rows = "image,width,height\na,64,32\nb,64,32\nc.png,64,32\n"
    sizes = make.write(tmp_path / "sizes.csv", rows)
    assert read_truth(root, image_sizes=sizes).boxes[0].tolist() == [8, 4, 16, 8]


BAD = {
    "classes = 3\ntrain = data/train.txt\n": "obj.data: classes: 3, but ...obj.names has 2 names",
    "train data/train.txt\n": "obj.data: line 1: 'train data/train.txt' is not key = value",
    "names = data/obj.names\n": "obj.data: no list of images (the splits are: none)",
    "train = lost.txt\n": "lost.txt: no such file",
    "train = train.txt\nnames = lost.names\n": "lost.names: no such file",
    "train = \n": "a folder, not a file",
}


@pytest.mark.parametrize("text", BAD)
def test_bad_data_files(root: Path, text: str) -> None:
    make.write(root / "obj.data", text)
    refuses(read_truth, root, says=BAD[text])


def test_bad_lists_and_splits(root: Path) -> None:
    refuses(read_truth, root, split="test", says="obj.data: no split 'test' (the splits are: train")
    make.write(root / "train.txt", "")
    refuses(read_truth, root, says="train.txt: lists no image")
    make.write(root / "train.txt", "a.xml\n")
    refuses(read_truth, root, says="not a list of images")
    make.write(root / "train.txt", "obj_train_data/a.png\n")
    make.write(root / "obj_train_data" / "a.txt", "2 .5 .5 .5 .5\n")
    refuses(read_truth, root, says="a.txt: line 1, class: no class 2 (classes are 0 to 1)")


def test_labels_below_a_root_with_class_names(tmp_path: Path) -> None:
    path, _ = SAMPLES["yolo-labels"](tmp_path)
    truth = read_truth(path)
    assert (len(truth), len(truth.images), truth.categories.names) == (3, 3, ("cat", "dog"))


def test_labels_named_after_an_upload_and_sizes_before_it(tmp_path: Path) -> None:
    """As Label Studio exports them without pictures."""
    make.write(tmp_path / "set" / "classes.txt", "cat\n")
    for name in ("0a1b2c3d-a", "1a1b2c3d-b"):
        make.write(tmp_path / "set" / "labels" / f"{name}.txt", "0 .5 .5 .5 .5\n")
    sizes = make.write(
        tmp_path / "s.csv", "image,width,height\na.jpg,20,10\nb.jpg,40,20\nc.jpg,9,9\n"
    )
    truth = read_truth(tmp_path / "set", image_sizes=sizes)
    assert truth.images.stems == ("0a1b2c3d-a", "1a1b2c3d-b", "c")
    assert truth.boxes.tolist() == [[5, 2.5, 10, 5], [10, 5, 20, 10]]
