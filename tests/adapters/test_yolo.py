"""YOLO data sets and predictions as Ultralytics writes them."""

import dataclasses
import json
import os
import shutil
import sys
import zlib
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import detmap
from detmap import DataError, read_detections, read_truth
from detmap.core.adapters.joining import image_sizes
from detmap.core.adapters.text_per_image import data_yaml as yolo_data
from detmap.core.adapters.text_per_image import plain_yaml
from detmap.core.tables.notes import summed
from tests.support import builders as make
from tests.support import varied_writers as texts
from tests.support import writers
from tests.support.running import run

pytest.importorskip("yaml")
PILImage = pytest.importorskip("PIL.Image")

Tables = tuple[detmap.Truth, detmap.Detections]


@pytest.fixture(scope="module")
def sample() -> Tables:
    """The sample; YOLO's rows know no difficult objects."""
    truth = dataclasses.replace(read_truth(make.SHAPES), roles={})
    return truth, read_detections(make.SHAPES / "detections" / "contours", truth)


@pytest.fixture(scope="module")
def data(sample: Tables, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample as a data set."""
    folder = tmp_path_factory.mktemp("yolo")
    texts.yolo_yaml(writers.case(*sample), folder)
    return folder


def numbers(*files: Any, **options: Any) -> dict[str, float]:
    return detmap.evaluate(*files, "coco-bbox", **options).metrics


def test_the_numbers_of_the_source_files(sample: Tables, data: Path) -> None:
    wanted = pytest.approx(numbers(*sample), abs=1e-12)
    truth = read_truth(data / "data.yaml")
    assert (len(truth), len(truth.images), truth.categories.names) == (
        len(sample[0]),
        len(sample[0].images),
        sample[0].categories.names,
    )
    assert truth.categories.ids.tolist() == list(range(6))
    assert numbers(data / "data.yaml", data / "run") == wanted
    assert numbers(data, data / "run" / "labels") == wanted
    assert numbers(truth, read_detections(make.SHAPES / "detections" / "contours", truth)) == wanted
    outcome = run("eval", data, data / "run", "-p", "coco-bbox", "--format", "json")
    assert outcome.code == 0, outcome.err


def test_a_folder_of_labels_finds_its_images_and_names(sample: Tables, data: Path) -> None:
    truth = read_truth(data / "labels" / "val")
    assert truth.categories.names == tuple("012345")
    assert numbers(truth, read_detections(data / "run", truth)) == pytest.approx(
        numbers(*sample), abs=1e-12
    )


@pytest.mark.parametrize("first", [0, 1])
def test_predictions_json_is_read(sample: Tables, data: Path, tmp_path: Path, first: int) -> None:
    truth = read_truth(data / "data.yaml")
    file = texts.predictions(writers.case(*sample), tmp_path, first=first).found
    found = read_detections(file, truth)
    wanted = pytest.approx(numbers(*sample), abs=1e-12)
    assert numbers(truth, found) == wanted
    names = dict(enumerate(sample[0].categories.names, first))
    assert numbers(sample[0], read_detections(file, sample[0], class_names=names)) == wanted
    codes = [note.code for note in found.notes if note.code != "image-by-file-name"]
    assert codes == ["classes-of-ultralytics"] * first


def test_predictions_that_may_count_from_0_or_from_1(data: Path, tmp_path: Path) -> None:
    truth = read_truth(data / "data.yaml")
    row = make.detection(image_id=1, category_id=3)
    file = make.write(tmp_path / "predictions.json", [row])
    with pytest.raises(DataError, match="classes: the class counted from 1 or the class counted"):
        read_detections(file, truth)
    last = make.write(file, [row, make.detection(image_id=1, category_id=6)])
    assert read_detections(last, truth).label.tolist() == [2, 5]
    first = make.write(file, [row, make.detection(image_id=1, category_id=0)])
    assert read_detections(first, truth).label.tolist() == [3, 0]


def test_where_ids_of_predictions_begin_is_never_guessed(data: Path, tmp_path: Path) -> None:
    truth = read_truth(data)
    row = {"image_id": truth.images.stems[0], "bbox": [1, 2, 3, 4], "score": 0.5}
    last = len(truth.categories)
    rows = [row | {"category_id": i} for i in (1, last)]
    text = json.dumps(rows)
    for given in (text, f"\ufeff{text}"):
        found = read_detections(make.write(tmp_path / "predictions.json", given), truth)
        assert sorted(found.label.tolist()) == [0, last - 1]
    wrapped = make.write(tmp_path / "predictions.json", {"predictions": rows[:1]})
    with pytest.raises(DataError, match="where class ids begin is not known"):
        read_detections(wrapped, truth)
    named = [row | {"category_id": truth.categories.names[1]}]
    found = read_detections(make.write(tmp_path / "predictions.json", named), truth)
    assert found.label.tolist() == [1]


def test_hidden_images_are_left_out(tmp_path: Path) -> None:
    for name in ("a.png", ".b.png", "._a.png", ".ipynb_checkpoints/a-checkpoint.png"):
        make.write(tmp_path / "images" / name, b"")
    make.write(tmp_path / "labels" / "a.txt", "0 .5 .5 .2 .2\n")
    yaml = make.write(tmp_path / "data.yaml", "val: images\nnames: [cat]\n")
    sizes = make.write(tmp_path / "sizes.csv", "image,width,height\na,64,32\n")
    truth = read_truth(yaml, image_sizes=sizes)
    assert truth.images.stems == ("a",)
    (note,) = summed(truth.notes)
    assert (note.code, note.count) == ("hidden-unread", 1)
    assert ".b.png" in note.text


def test_predictions_with_the_ids_of_coco(tmp_path: Path) -> None:
    names = "".join(f"  - c{i}\n" for i in range(80))
    make.write(tmp_path / "data.yaml", f"val: images\nnames:\n{names}")
    make.write(tmp_path / "labels" / "1.txt", "79 .5 .5 .1 .1\n")
    make.write(tmp_path / "sizes.csv", "image,width,height\n1,10,10\n")
    truth = read_truth(tmp_path / "data.yaml", image_sizes=tmp_path / "sizes.csv")
    rows = [make.detection(image_id=1, category_id=i) for i in (90, 13, 1)]
    found = read_detections(make.write(tmp_path / "predictions.json", rows), truth)
    assert found.label.tolist() == [79, 11, 0]


# --- data.yaml ------------------------------------------------------------------------------------


def small(folder: Path, yaml: str = "val: images/val\nnames: [cat, dog]\n", **labels: str) -> Path:
    """A data set of images 40 wide and 20 high, with these labels."""
    for stem in ("a", "b", *labels):
        file = folder / "images" / "val" / f"{stem}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        PILImage.new("L", (40, 20)).save(file)
    for stem, text in labels.items():
        make.write(folder / "labels" / "val" / f"{stem}.txt", text)
    return make.write(folder / "data.yaml", yaml)


def test_a_row_becomes_a_box(tmp_path: Path) -> None:
    truth = read_truth(small(tmp_path, a="1 .5 .5 .25 .5\n"))
    assert truth.boxes.tolist() == [[15, 5, 10, 10]]
    assert truth.label.tolist() == [1]
    assert truth.images.ids.tolist() == ["a", "b"]
    assert truth.images.width.tolist() == [40, 40]


@pytest.mark.parametrize(
    "yaml",
    [
        "path: .\nval: images/val\nnames: {0: cat, 1: dog}\n",
        "val: [images/val]\nnc: 2\nnames:\n- cat\n- dog\n",
        "val: ../images/val\nnames: {'0': cat, '1': dog}\n",
        "path: /nowhere/at/all\nval: images/val\nnames: [cat, dog]\n",
        "val: list.txt\nnames: [cat, dog]\n",
        "train: none\nval:\ntest: images/val\nnames: [cat, dog]\n",
        "val: [list.txt, images/val]\nnames: [cat, dog]\n",
        "\ufeffval: images/val\r\nnames: [cat, dog]\r\n",
    ],
)
def test_the_ways_to_write_data_yaml(tmp_path: Path, yaml: str) -> None:
    file = small(tmp_path, yaml, a="1 .5 .5 .25 .5\n")
    make.write(tmp_path / "list.txt", f"./images/val/a.png\n\n{tmp_path}/images/val/b.png\n")
    truth = read_truth(file)
    assert truth.categories.names == ("cat", "dog")
    assert (truth.images.stems, truth.label.tolist()) == (("a", "b"), [1])


@pytest.mark.parametrize("name", ["yes", "no", "on", "null", "~", "1", "1.50", "0x1F", "1:30"])
def test_class_names_are_kept_as_written(tmp_path: Path, name: str) -> None:
    for names in (f"[{name}, NO]", f"{{0: {name}, 1: NO}}", f"\n- {name}\n- NO"):
        file = small(tmp_path, f"val: images/val\nnames: {names}\n", a="")
        assert read_truth(file).categories.names == (name, "NO")


def test_an_alias_of_a_list(tmp_path: Path) -> None:
    file = small(tmp_path, "all: &c [cat, dog]\nval: images/val\nnames: *c\nnc: 2\nval2: ~\n", a="")
    assert read_truth(file).categories.names == ("cat", "dog")


def test_what_another_file_holds_is_not_shown(tmp_path: Path) -> None:
    make.write(tmp_path / "secret", "root:x:0:0\nimages/val/a.png\n")
    file = small(tmp_path, "val: secret\nnames: [cat]\n")
    outcome = run("eval", file, "x.json")
    assert outcome.code == 2
    assert "not a list of images" in outcome.err
    assert "root" not in outcome.err.replace(str(tmp_path), "")


def test_a_split_that_is_asked_for(tmp_path: Path) -> None:
    yaml = "val: images/val\ntest: images/test\nnames: [cat]\n"
    file = small(tmp_path, yaml)
    with pytest.raises(DataError, match=r"no split 'train' \(choose a split: val, test"):
        read_truth(file, split="train")
    with pytest.raises(DataError, match="images/test: no folder or list of images at"):
        read_truth(file, split="test")


def test_stems_that_are_numbers_are_in_the_order_of_numbers(tmp_path: Path) -> None:
    file = small(tmp_path, "val: images/val\nnames: [cat]\n", **{"10": "", "9": "0 .5 .5 1 1"})
    for stem in "ab":
        (tmp_path / "images" / "val" / f"{stem}.png").unlink()
    assert read_truth(file).images.ids.tolist() == [9, 10]


def test_images_of_one_stem(tmp_path: Path) -> None:
    file = small(tmp_path, a="0 .5 .5 1 1")
    (tmp_path / "images" / "val" / "x").mkdir()
    PILImage.new("L", (40, 20)).save(tmp_path / "images" / "val" / "x" / "a.png")
    assert [Path(each).name for each in read_truth(file).images.ids.tolist()] == ["a", "b", "a"]
    PILImage.new("L", (40, 20)).save(tmp_path / "images" / "val" / "a.jpg")
    with pytest.raises(DataError, match=r"two images have the name '.*a': .*a.jpg and .*a.png"):
        read_truth(file)


BAD_YAML = {
    "code": ("val: !!python/object/apply:os.system ['touch hacked']\nnames: [a]", "line 1: not pl"),
    "nested": ("[" * 20000, "not plain YAML"),
    "binary": (b"\x00\xff\x12", "not plain YAML"),
    "list": ("- a\n- b\n", "instead of keys"),
    "empty": ("", "instead of keys"),
    "no names": ("val: images/val\n", "names: missing"),
    "a gap": ("val: images/val\nnames: {0: a, 2: b}\n", "number the classes 0, 1, 2"),
    "nc": ("val: images/val\nnc: 3\nnames: [a]\n", "1 names, nc is 3"),
    "many": ("val: images/val\nnc: 99999999999\n", "nc: '99999999999'"),
    "no split": ("names: [a]\n", "neither val nor test"),
    "a number": ("val: 5\nnames: [a]\n", ": 5: no folder or list of images"),
    "a file name": ("val: images/val\nnames: coco.names\n", "names: 'coco.names'"),
    "kpt": ("val: images/val\nnames: [a]\nkpt_shape: [17, 5]\n", "kpt_shape"),
    "nowhere": ("val: images/none\nnames: [a]\n", "images/none: no folder or list of images"),
    "laughs": (
        "a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\nval: *c\nnames: [a]\n",
        "write a path, or a list of paths",
    ),
    "billion laughs": (
        "a: &a [x, x, x, x, x, x, x, x, x]\n"
        + "".join(f"{b}: &{b} [{', '.join(9 * [f'*{a}'])}]\n" for a, b in pairwise("abcdefghij"))
        + "val: *j\nnames: [cat]\n",
        "aliases of aliases",
    ),
    "itself": ("val: &a [*a]\nnames: [cat]\n", "no complete value"),
    "sexagesimal": (f"val: images/val\nnames: [a]\nnc: {'59:' * 200000}1\n", "nc: '59:59:"),
    "merge keys": (f"a: &a {{b: 1}}\nc: {{<<: [{'*a, ' * 9}]}}\n", "line 2: .*merge key"),
    "many names": (f"val: images/val\nnames: [{'x,' * 3_000}]\n", "more than 1,000 values"),
    "a key twice": ("val: images/val\nnames: [a]\nval: images/test\n", "line 3: .*'val' occurs"),
    "a list as key": ("? [a]\n: b\n", "a key that is a list"),
    "two documents": ("val: images/val\n---\nnames: [a]\n", "line 2: .*a second document"),
    "tag": ("val: images/val\nnames: !!set {a, b}\n", "line 2: .*the tag"),
    "nameless": ("val: images/val\nnames:\n- a\n-\n", "a name that is not text"),
}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] * (name == "sexagesimal")) for name in BAD_YAML],
)
def test_a_data_yaml_that_is_none(tmp_path: Path, monkeypatch: Any, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    small(tmp_path)
    make.write(tmp_path / "data.yaml", BAD_YAML[name][0])
    if name == "many names":  # the real limit takes seconds
        monkeypatch.setattr(plain_yaml, "MOST_NODES", 1000)
    with pytest.raises(DataError, match=BAD_YAML[name][1]):
        read_truth(tmp_path / "data.yaml")
    assert not (tmp_path / "hacked").exists()
    outcome = run("eval", "data.yaml", "x.json")
    assert outcome.code == 2
    assert "data.yaml" in outcome.err


@pytest.mark.parametrize("kind", ["pipe", "folder", "broken link"])
def test_labels_that_are_no_files_are_errors(tmp_path: Path, kind: str) -> None:
    small(tmp_path, c="0 .5 .5 .1 .1\n")
    label = tmp_path / "labels" / "val" / "a.txt"
    if kind == "pipe":
        os.mkfifo(label)
    elif kind == "folder":
        label.mkdir()
    else:
        label.symlink_to(tmp_path / "gone.txt")
    with pytest.raises(DataError, match=r"a\.txt"):
        read_truth(tmp_path / "data.yaml")


# --- rows -----------------------------------------------------------------------------------------

BAD_ROWS = {
    "0 .5 .5 .1": "a.txt: line 2: 4 columns",
    "0 .5 .5 .1 .1 .9": "6 columns.*a ground truth has no confidence",
    "0 .5 .5 .1 .1 .9 .9 2": "8 columns are read as keypoints, but there is no kpt_shape",
    "0 .5 .5 .1 nan": "line 2, height: 'nan' is not a finite number",
    "0 .5 .5 .1 1e999": "line 2, height: '1e999' is not a finite number",
    "0 .5 .5 .1 x": "line 2, height: 'x' is not a number",
    "0 .5 .5 .1 -.005": "line 2: box 0.5 0.5 0.1 -0.005 has a negative width or height",
    "0 120 80 30 40": "line 2, x: 120 is not a fraction of the image",
    "2 .5 .5 .1 .1": "line 2, class: no class 2 .classes are 0 to 1",
    "0.5 .5 .5 .1 .1": "line 2, class: no class 0.5",
    "-1 .5 .5 .1 .1": "line 2, class: no class -1",
    "cat .5 .5 .1 .1": "line 2, class: 'cat' is not a number",
}


@pytest.mark.parametrize("row", BAD_ROWS)
def test_a_row_that_is_none(tmp_path: Path, row: str) -> None:
    file = small(tmp_path, a=f"0 .5 .5 .1 .1\n{row}\n")
    with pytest.raises(DataError, match=BAD_ROWS[row]) as error:
        read_truth(file)
    assert error.value.fix
    assert "a.txt" in error.value.where


@pytest.mark.parametrize(
    "text, what",
    [
        (b"\x89PNG\r\n\x1a\n\x00", r"line 1: not UTF-8"),
        (b"0 .5 .5 .1 .1\n\xe4", r"line 2: truncated"),
        (b"0 .5 .5 .1 .1\n0 .5 .5 .1 .1\0\n", r"line 2: holds a NUL byte"),
    ],
)
def test_labels_that_are_no_text(tmp_path: Path, text: bytes, what: str) -> None:
    file = small(tmp_path)
    make.write(tmp_path / "labels" / "val" / "a.txt", text)
    with pytest.raises(DataError, match=rf"a.txt: {what}"):
        read_truth(file)


def test_line_ends_marks_and_empty_files(tmp_path: Path) -> None:
    file = small(tmp_path, a="\ufeff0 .5 .5 .1 .1\r\n\r\n1 .5 .5 .1 .1", b="")
    assert read_truth(file).label.tolist() == [0, 1]


def test_polygons_and_keypoints_are_told_from_boxes(tmp_path: Path) -> None:
    rows = "0 .5 .5 .25 .5\n1 .25 .5 .5 .25 .75 1\n"
    truth = read_truth(small(tmp_path, a=rows))
    assert truth.boxes.tolist() == [[15, 5, 10, 10], [10, 5, 20, 15]]
    assert [(note.code, note.count) for note in summed(truth.notes)] == [("polygon", 1)]
    yaml = "val: images/val\nnames: [cat, dog]\nkpt_shape: [1, {}]\n"
    for shape, row in ((2, "0 .5 .5 .25 .5 .9 .9\n"), (3, "0 .5 .5 .25 .5 .9 .9 2\n")):
        truth = read_truth(small(tmp_path, yaml.format(shape), a=row))
        assert truth.boxes.tolist() == [[15, 5, 10, 10]]
        assert [(note.code, note.count) for note in summed(truth.notes)] == [("keypoints", 1)]


def test_rows_of_predictions_end_with_their_score(tmp_path: Path) -> None:
    data = small(tmp_path)
    make.write(tmp_path / "labels" / "val" / "a.txt", "")
    truth = read_truth(data)
    file = make.write(tmp_path / "run" / "labels" / "a.txt", "0 .5 .5 .25 .5 .9\n")
    assert read_detections(tmp_path / "run", truth).score.tolist() == [0.9]
    make.write(file, "1 .25 .5 .5 .25 .75 1 .8\n1 .25 .5 .5 .25 .75 1 .5 .5 .7\n")
    found = read_detections(tmp_path / "run", truth)
    assert found.boxes.tolist() == [[10, 5, 20, 15], [10, 5, 20, 15]]
    assert found.score.tolist() == [0.8, 0.7]
    make.write(file, f"0 .5 .5 .25 .5 {'.5 .5 .9 ' * 17}.6\n")
    found = read_detections(tmp_path / "run", truth)
    assert (found.boxes.tolist(), found.score.tolist()) == ([[15, 5, 10, 10]], [0.6])
    make.write(file, "0 -.02 .5 .25 1.2 .9\n")  # a box that leaves its image
    assert read_detections(tmp_path / "run", truth).boxes[0].tolist() == pytest.approx(
        [-5.8, -2, 10, 24]
    )
    make.write(file, "0 .5 .5 .25 .5\n")
    with pytest.raises(DataError, match=r"5 columns.*no confidence.*save_conf=True"):
        read_detections(tmp_path / "run", truth)
    make.write(file, "5 .5 .5 .25 .5 .9\n0 .5 .5 .25 .5 .9\n")
    make.write(tmp_path / "run" / "labels" / "z.txt", "0 .5 .5 .25 .5 .9\n")
    with pytest.raises(DataError, match=r"z.txt: line 1.*no image 'z'"):
        read_detections(tmp_path / "run", truth)


def test_classes_that_count_from_0_against_ids_that_do_not(tmp_path: Path) -> None:
    truth = read_truth(make.write(tmp_path / "gt.json", make.instances()))
    file = make.write(tmp_path / "run" / "000001.txt", "1 .5 .5 .25 .5 .9\n")
    with pytest.raises(DataError, match=r"classes count from 0, but those of .* have ids from 1"):
        read_detections(file.parent, truth)
    make.write(file.parent / "classes.txt", "dog\ncat\n")
    assert read_detections(file.parent, truth).label.tolist() == [0]
    make.write(file, "2 .5 .5 .25 .5 .9\n")
    with pytest.raises(DataError, match="no class 2"):  # the file names two
        read_detections(file.parent, truth)


# --- sizes of images ------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["jpg", "png", "bmp", "webp", "tif"])
def test_the_size_is_read_from_the_header(tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"a.{suffix}"
    PILImage.new("RGB", (31, 17)).save(file)
    assert [side.tolist() for side in image_sizes.from_headers([file])] == [[31], [17]]


@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_jpeg_is_turned_as_its_exif_says(tmp_path: Path, orientation: int) -> None:
    """As OpenCV loads it, through which Ultralytics does."""
    exif = PILImage.Exif()
    exif[274] = orientation
    file = tmp_path / "a.jpg"
    PILImage.new("L", (31, 17)).save(file, exif=exif)
    found = [side.tolist() for side in image_sizes.from_headers([file])]
    assert found == ([[17], [31]] if orientation >= 5 else [[31], [17]])
    cv2 = pytest.importorskip("cv2")
    assert [[each] for each in cv2.imread(str(file)).shape[1::-1]] == found


@pytest.mark.parametrize("content", [b"", b"\xff\xd8\xff", b"text", b"BM" + bytes(60)])
def test_an_image_that_is_none(tmp_path: Path, content: bytes) -> None:
    file = small(tmp_path)
    make.write(tmp_path / "images" / "val" / "a.png", content)
    with pytest.raises(DataError, match=r"a.png: not an image that Pillow can read.*--image-sizes"):
        read_truth(file)


def test_an_image_of_more_pixels_than_pillow_opens(tmp_path: Path) -> None:
    file = small(tmp_path)
    side = (20_000).to_bytes(4, "big")

    def chunk(kind: bytes, data: bytes) -> bytes:
        crc = zlib.crc32(kind + data).to_bytes(4, "big")
        return len(data).to_bytes(4, "big") + kind + data + crc

    header = chunk(b"IHDR", side + side + b"\x08\0\0\0\0")
    png = b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")
    make.write(tmp_path / "images" / "val" / "a.png", png)
    with pytest.raises(DataError, match=r"a.png: an image of more than 178 million pixels.*sizes"):
        read_truth(file)


def test_sizes_from_a_file(tmp_path: Path) -> None:
    file = small(tmp_path, a="1 .5 .5 .25 .5\n")
    shutil.rmtree(tmp_path / "images")
    with pytest.raises(DataError, match="--image-sizes FILE"):
        read_truth(file)
    sizes = make.write(tmp_path / "s.csv", "height;width;image\n20;40;a.png\n10;10;b\n")
    truth = read_truth(file, image_sizes=sizes)
    assert truth.boxes.tolist() == [[15, 5, 10, 10]]
    assert truth.images.stems == ("a", "b")
    assert read_truth(tmp_path / "labels" / "val", image_sizes=sizes).boxes.tolist() == [
        [15, 5, 10, 10]
    ]


BAD_SIZES = {
    "image,width\na,1\n": "no column height; there are image, width",
    "image,width,height\na,1\n": "line 2: 2 columns, the header has 3",
    "image,width,height\na,1,x\n": "line 2, column height: 'x' is not a number",
    "image,width,height\na,0,5\n": "line 2, column width: 0 pixels",
    "image,width,height\na,nan,5\n": "line 2, column width: nan pixels",
    "image,width,height\na,4,5\na,5,5\n": "line 3: a second size for 'a'",
    "image,width,height\na,4,5\n": "has no unique size for 1 image: 'b.png'",
    "": "line 1: the file is empty",
}


@pytest.mark.parametrize("text", BAD_SIZES)
def test_a_file_of_sizes_that_is_none(tmp_path: Path, text: str) -> None:
    file = small(tmp_path)
    sizes = make.write(tmp_path / "s.csv", text)
    with pytest.raises(DataError, match=BAD_SIZES[text]):
        read_truth(file, image_sizes=sizes)


def test_without_the_libraries_the_extra_is_named(tmp_path: Path, monkeypatch: Any) -> None:
    file = small(tmp_path, a="0 .5 .5 1 1")
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(DataError, match=r"pip install 'detmap-eval\[images\]', or give the sizes"):
        read_truth(file)
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(DataError, match=r"PyYAML.*pip install 'detmap-eval\[yolo\]'"):
        read_truth(file)


def test_label_paths_are_those_of_ultralytics() -> None:
    for image, label in (
        ("/d/images/val/a.jpg", "/d/labels/val/a.txt"),
        ("/images/images/a.b.png", "/images/labels/a.b.txt"),
        ("/d/val/a.jpg", "/d/val/a.txt"),
    ):
        assert yolo_data.label_of(Path(image)) == Path(label)


def test_images_without_label_files_are_counted_or_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"none of 2 images has a label file, such as .*a\.txt"):
        read_truth(small(tmp_path))
    data = small(tmp_path, c="1 .5 .5 .25 .5\n", d="")
    (note,) = (note for note in read_truth(data).notes if note.code == "labels-missing")
    assert (note.count, note.text) == (
        3,
        "images are without objects: 2 of 4 have no label file, 1 an empty one",
    )
    data = small(tmp_path, **dict.fromkeys("ab", "1 .5 .5 .25 .5\n"))
    assert not any(note.code == "labels-missing" for note in summed(read_truth(data).notes))


def test_an_error_lists_the_label_files_that_are_there(tmp_path: Path) -> None:
    make.write(tmp_path / "data.yaml", "val: val.txt\nnames: [cat]\n")
    make.write(tmp_path / "val.txt", "elsewhere/images/a.jpg\n")
    make.write(tmp_path / "labels" / "a.txt", "0 .5 .5 .5 .5\n")
    sizes = make.write(tmp_path / "sizes.csv", "image,width,height\na.jpg,10,10\n")
    with pytest.raises(DataError, match=r"such as .*elsewhere/labels/a.txt; .*labels has 1 file"):
        read_truth(tmp_path / "data.yaml", image_sizes=sizes)


def test_label_files_renamed_by_an_upload_have_their_sizes(tmp_path: Path) -> None:
    make.write(tmp_path / "labels" / "5dcaacec-a.txt", "0 .5 .5 .5 .5\n")
    sizes = make.write(tmp_path / "sizes.csv", "image,width,height\na.jpg,10,20\n")
    truth = read_truth(tmp_path / "labels", image_sizes=sizes)
    assert truth.images.stems == ("5dcaacec-a",)
    assert truth.boxes.tolist() == [[2.5, 5, 5, 10]]
