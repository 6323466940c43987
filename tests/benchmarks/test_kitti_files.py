"""KITTI text and other tools' spellings of it."""

from pathlib import Path

import pytest

import detmap
from detmap import DataError, read_detections, read_truth
from detmap.core import adapters
from tests.support import builders as make
from tests.support.running import run

REST = " 1.5 1.6 3.9 1 1.7 20 -1.5"
REGION = "DontCare -1 -1 -10 100 100 150 140 -1 -1 -1 -1000 -1000 -1000 -10"
LINE = f"cat 0 0 0 1 2 3 4{REST}\n"


def sample(folder: Path) -> tuple[Path, Path]:
    """Two objects and an ignored region; FiftyOne's spelling of a class in the results."""
    labels, results = folder / "training" / "label_2", folder / "results" / "data"
    make.write(labels / "a.txt", f"cat 0.25 1 -1.57 10 20 40.5 60{REST}\n{REGION}\n")
    make.write(labels / "b.txt", f"guide dog 0 0 0.5 1 2 3 4{REST}\n")
    make.write(results / "a.txt", f"cat -1 -1 1.25 10 20 40 60{REST} 0.9\n")
    make.write(results / "b.txt", f"guide_dog -1 -1 -10 1 2 3 4{REST} .5")
    return folder / "training", folder / "results"


def test_boxes_attributes_and_regions_of_every_class(tmp_path: Path) -> None:
    paths = sample(tmp_path)
    truth = read_truth(paths[0])
    assert truth.categories.names == ("cat", "guide dog")
    assert truth.boxes.tolist() == [[10, 20, 30.5, 40], *[[100, 100, 50, 40]] * 2, [1, 2, 2, 2]]
    assert truth.label.tolist() == [0, 0, 1, 1]
    assert truth.crowd.tolist() == [False, True, True, False]
    assert truth.attributes["truncated"].tolist() == [0.25, -1, -1, 0]
    assert truth.attributes["occluded"].tolist() == [1, -1, -1, 0]
    assert truth.attributes["alpha"].tolist() == [-1.57, -10, -10, 0.5]
    assert [note.count for note in truth.notes] == [1]
    found = read_detections(paths[1], truth)
    assert found.boxes.tolist() == [[10, 20, 30, 40], [1, 2, 2, 2]]
    assert found.attributes["alpha"].tolist() == [1.25, -10]
    assert (found.label.tolist(), found.score.tolist()) == ([0, 1], [0.9, 0.5])
    assert [(note.code, note.count) for note in found.notes] == [("class-joined", 1)]
    outcome = run("eval", *paths)
    assert (outcome.code, "AP" in outcome.out) == (0, True)


def test_a_detection_on_a_dontcare_region_is_ignored_whatever_its_class(tmp_path: Path) -> None:
    paths = sample(tmp_path)
    before = detmap.evaluate(*paths, "coco-bbox").metrics["AP"]
    for name in ("cat", "guide dog"):
        row = f"{name} 0 0 0 110 110 130 130{REST} 0.99\n"
        file = paths[1] / "data" / "a.txt"
        file.write_text(row + file.read_text())
        assert detmap.evaluate(*paths, "coco-bbox").metrics["AP"] == before


def test_datumaros_16th_column_and_images_without_a_file(tmp_path: Path) -> None:
    for name, text in {"a": "five-point star", "b": "cat", "c": "no 2"}.items():
        line = LINE.replace("cat", text).rstrip()
        make.write(tmp_path / "labels" / f"{name}.txt", f"{line} 1.0\n")
    sizes = make.write(
        tmp_path / "s.csv",
        "image,width,height\n"
        + "".join(f"{name}.png,{10 + i},20\n" for i, name in enumerate("dcba")),
    )
    truth = read_truth(tmp_path / "labels", image_sizes=sizes)
    assert truth.categories.names == ("cat", "five-point star", "no 2")
    assert truth.images.stems == ("a", "b", "c", "d")
    assert truth.images.width.tolist() == [13, 12, 11, 10]
    assert [(note.code, note.count) for note in truth.notes] == [("labels-missing", 1)]


def test_images_beside_the_labels_give_names_and_sizes(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    make.write(tmp_path / "label_2" / "a.txt", LINE)
    (tmp_path / "image_2").mkdir()
    for name in "ab":
        image.new("L", (7, 5)).save(tmp_path / "image_2" / f"{name}.png")
    truth = read_truth(tmp_path)
    assert truth.images.stems == ("a", "b")
    assert (truth.images.width.tolist(), truth.images.height.tolist()) == ([7, 7], [5, 5])
    (tmp_path / "image_2" / "a.png").unlink()  # of another data set: no label has one
    assert read_truth(tmp_path).images.stems == ("a",)


def deepstream(folder: Path, *frames: str) -> tuple[Path, Path]:
    """Images b, c and a, in files that are not in their order, and dumps of these frames."""
    images = [make.image(id=i, file_name=f"{name}.jpg") for i, name in enumerate("bca", 1)]
    truth = make.write(folder / "truth.json", make.instances(images=images))
    for i, name in enumerate(frames):
        make.write(folder / "dump" / f"{name}.txt", f"{LINE.rstrip()} 0.{i}\n")
    return truth, folder / "dump"


def test_frames_of_deepstream_are_images_by_file_name(tmp_path: Path) -> None:
    """Whatever the order of the images in the ground truth: frame 0 is a, frame 1 is b."""
    path, dump = deepstream(tmp_path, *(f"00_000_{i:06}" for i in range(3)))
    truth = read_truth(path)
    found = read_detections(dump, truth)
    stems = [truth.images.stems[i] for i in found.image.tolist()]
    assert dict(zip(found.score.tolist(), stems, strict=True)) == {0: "a", 0.1: "b", 0.2: "c"}
    assert "frame k is image k" in str(found.notes[0])


@pytest.mark.parametrize(
    ("frames", "message"),
    [
        (("00_000_000000", "00_000_000001", "00_000_000003"), "3 frames of 1 stream"),
        (("00_000_000000", "00_000_000001"), "2 frames of 1 stream"),
        (("00_000_000000", "01_000_000001", "01_000_000002"), "3 frames of 2 streams"),
        (("00_000_000001", "00_000_000002", "00_000_000003"), "3 frames of 1 stream"),
    ],
)
def test_frames_of_other_images(tmp_path: Path, frames: tuple[str, ...], message: str) -> None:
    truth, dump = deepstream(tmp_path, *frames)
    with pytest.raises(DataError, match=rf"{message}.* 3 images \(rename the files"):
        read_detections(dump, read_truth(truth))


def test_images_that_are_named_like_frames_are_joined_by_name(tmp_path: Path) -> None:
    """Of the second stream: no position is guessed."""
    names = [f"01_000_{i:06}" for i in (7, 8)]
    for name in names:
        make.write(tmp_path / "label_2" / f"{name}.txt", LINE)
    make.write(tmp_path / "dump" / f"{names[1]}.txt", f"{LINE.rstrip()} 0.5\n")
    truth = read_truth(tmp_path / "label_2")
    found = read_detections(tmp_path / "dump", truth)
    assert [truth.images.stems[i] for i in found.image.tolist()] == [names[1]]


def test_a_name_with_spaces_is_joined_only_if_one_class_has_it(tmp_path: Path) -> None:
    classes = [make.category(id=i, name=name) for i, name in enumerate(("a b_c", "a_b c"), 1)]
    tree = make.instances(images=[make.image(id=1, file_name="x.jpg")], categories=classes)
    truth = read_truth(make.write(tmp_path / "truth.json", tree))
    make.write(tmp_path / "dump" / "x.txt", f"{LINE.rstrip().replace('cat', 'a_b_c')} 0.5\n")
    with pytest.raises(DataError, match="no class 'a_b_c'"):
        read_detections(tmp_path / "dump", truth, format="kitti")


NOT_READ = {
    "short": (f"{LINE}cat 0 0 0 1 2 3 4\n", r"t/a.txt: line 2: 8 words: 'cat 0 .*\(a line is: cla"),
    "score": (f"{LINE.rstrip()} 0.9\n", r"t/a.txt: line 1: 16 words, and the last is a score"),
    "number": (LINE.replace("4", "x", 1), r"a.txt: line 1, bottom: 'x' is not .*\(write plain"),
    "nan": (LINE.replace("0", "nan", 1), r"a.txt: line 1, truncated: 'nan' is not a finite"),
    "reversed": (LINE.replace("3", "0", 1), r"a.txt: line 1: box 1 2 0 4 has a negative"),
    "numbered class": (LINE.replace("cat", "no 2"), r"a.txt: line 1: .*a score"),
    "encoding": (b"k\xe4t 0 0", r"a.txt: line 1: not UTF-8"),
}


@pytest.mark.parametrize("name", NOT_READ)
def test_bad_lines_of_a_truth(tmp_path: Path, name: str) -> None:
    text, message = NOT_READ[name]
    make.write(tmp_path / "t" / "a.txt", text)
    with pytest.raises(DataError, match=message):
        read_truth(tmp_path / "t", format="kitti")


@pytest.mark.parametrize(
    ("text", "message"),
    {
        "no score": (LINE, r"r/a.txt: line 1: 15 words: .*and the score\)"),
        "bad score": (f"{LINE.rstrip()} x", r"a.txt: line 1, score: 'x' is not a number"),
        "class": (f"{LINE.replace('cat', 'cow').rstrip()} .5", r"r/a.txt: line 1: no class 'cow'"),
    }.values(),
)
def test_bad_lines_of_results(tmp_path: Path, text: str, message: str) -> None:
    make.write(tmp_path / "t" / "a.txt", LINE)
    make.write(tmp_path / "r" / "a.txt", text)
    truth = read_truth(tmp_path / "t")
    with pytest.raises(DataError, match=message):
        read_detections(tmp_path / "r", truth, format="kitti")


@pytest.mark.parametrize("before", ["0 7 cat", "cat cat", "cat 0"])
def test_results_of_more_words_are_an_error(tmp_path: Path, before: str) -> None:
    make.write(tmp_path / "t" / "a.txt", LINE)
    results = make.write(tmp_path / "r" / "a.txt", f"{before} {LINE[4:-1]} 0.9\n").parent
    outcome = run("eval", tmp_path / "t", results, "-p", "kitti")
    count = 15 + len(before.split())
    assert (outcome.code, outcome.out) == (2, "")
    assert f"a.txt: line 1: {count} words: '{before} " in outcome.err
    assert "fix: a line is: class truncated occluded" in outcome.err
    truth = read_truth(tmp_path / "t")
    assert len(read_detections(results, truth, format="kitti", unknown="drop")) == 0


def test_labels_of_tracking_are_an_error(tmp_path: Path) -> None:
    make.write(tmp_path / "t" / "a.txt", f"{LINE}0 7 {LINE}")
    with pytest.raises(DataError, match=r"line 2: 17 words: .*: remove frame and track"):
        read_truth(tmp_path / "t", format="kitti")


def test_an_empty_folder(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    with pytest.raises(DataError, match=r"t: no .txt files \(give the folder label_2"):
        read_truth(tmp_path / "t", format="kitti")


@pytest.mark.parametrize("ending", ["", " 1.0"])
def test_a_class_may_be_named_by_digits(tmp_path: Path, ending: str) -> None:
    line = "3 0 0 0 10 20 30 40 0 0 0 0 0 0 0"
    (tmp_path / "label_2").mkdir()
    (tmp_path / "label_2" / "a.txt").write_text(f"{line}{ending}\n")
    truth = detmap.read_truth(tmp_path)
    assert truth.categories.names == ("3",)
    assert truth.boxes.tolist() == [[10, 20, 20, 20]]
    (tmp_path / "found").mkdir()
    (tmp_path / "found" / "a.txt").write_text(f"{line} 0.5\n")
    assert detmap.read_detections(tmp_path / "found", truth).score.tolist() == [0.5]


def test_one_label_file_is_no_folder(tmp_path: Path) -> None:
    file = tmp_path / "000001.txt"
    file.write_text(LINE)
    with pytest.raises(DataError, match="a file, but the benchmark's format kitti is a folder"):
        adapters.read_truth_for(file, detmap.load_protocol("kitti"))


def test_empty_labels_are_no_objects(tmp_path: Path) -> None:
    (tmp_path / "label_2").mkdir()
    (tmp_path / "data").mkdir()
    (tmp_path / "label_2" / "000001.txt").touch()
    (tmp_path / "data" / "000001.txt").write_text(f"{LINE.rstrip()} 0.5")
    truth = detmap.read_truth(tmp_path / "label_2", format="kitti")
    with pytest.raises(DataError, match="the ground truth has no objects"):
        detmap.read_detections(tmp_path / "data", truth, format="kitti")
