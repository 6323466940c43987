"""VOC as tools write it: every layout has the number of the devkit's."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import detmap
from detmap import DataError
from detmap.core.adapters.voc import scan_voc as voc_scan
from tests.support import builders as make
from tests.support.running import run

SAMPLE = make.SHAPES
TEXT = SAMPLE / "detections" / "contours"
STEMS = (SAMPLE / "ImageSets" / "Main" / "test.txt").read_text().split()
PREFIX = "comp4_det_test_"


def numbers(result: detmap.Result) -> Any:
    shown = result.to_dict()
    return [shown[part] for part in ("metrics", "per_class", "counts")]


def pages(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for stem in STEMS:
        shutil.copy(SAMPLE / "Annotations" / f"{stem}.xml", folder)
    return folder


def roboflow(folder: Path) -> tuple[Path, str | None]:
    for split in ("train", "valid", "test"):
        pages(folder / split)
        for stem in STEMS:
            make.write(folder / split / f"{stem}.jpg", b"")
    for stem in STEMS[1:]:
        (folder / "train" / f"{stem}.xml").unlink()
    make.write(folder / "README.roboflow.txt", "exported\n")
    return folder, None


def valid(folder: Path) -> tuple[Path, str | None]:
    shutil.rmtree(roboflow(folder)[0] / "test")
    return folder, "val"


def one_folder(folder: Path) -> tuple[Path, str | None]:
    return roboflow(folder)[0] / "test", None


def labelimg(folder: Path) -> tuple[Path, str | None]:
    for stem in STEMS:
        make.write(pages(folder) / f"{stem}.png", b"")
    make.write(folder / "classes.txt", "circle\n")
    return folder, None


def cvat(folder: Path) -> tuple[Path, str | None]:
    pages(folder / "Annotations")
    lists = folder / "ImageSets" / "Main"
    make.write(lists / "default.txt", "".join(f"{stem}\n" for stem in STEMS))
    for name in ("circle", "square"):
        make.write(lists / f"{name}_default.txt", "".join(f"{stem} -1\n" for stem in STEMS))
    make.write(folder / "labelmap.txt", "# label:color_rgb:parts:actions\ncircle:1,2,3::\n")
    return folder, None


def any_list(folder: Path) -> tuple[Path, str | None]:
    pages(folder / "Annotations")
    file = folder / "ImageSets" / "Main" / "my_list.txt"
    make.write(file, "".join(f"{stem}\n" for stem in STEMS))
    return folder, None


def no_lists(folder: Path) -> tuple[Path, str | None]:
    pages(folder / "Annotations")
    return folder, None


def annotations(folder: Path) -> tuple[Path, str | None]:
    shutil.copytree(SAMPLE / "Annotations", folder / "Annotations")
    shutil.copytree(SAMPLE / "ImageSets", folder / "ImageSets")
    return folder / "Annotations", None


LAYOUTS: dict[str, tuple[Callable[[Path], tuple[Path, str | None]], set[str]]] = {
    "Roboflow": (roboflow, {"images-unlisted"}),
    "Roboflow's valid as val": (valid, {"images-unlisted"}),
    "one of Roboflow's folders": (one_folder, {"images-unlisted"}),
    "LabelImg": (labelimg, {"images-unlisted"}),
    "CVAT": (cvat, {"split-only"}),
    "a list of any name": (any_list, {"split-only"}),
    "Annotations without lists": (no_lists, {"images-unlisted"}),
    "Annotations itself": (annotations, {"folder-above"}),
}


@pytest.fixture(params=["few", "many"])
def lane(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "many":
        monkeypatch.setattr(voc_scan, "LEAST_FILES", 0)
        monkeypatch.setattr(voc_scan, "LEAST_SIZE", 0)


@pytest.mark.slow
@pytest.mark.parametrize("name", LAYOUTS)
def test_a_layout_has_the_number_of_the_devkits(tmp_path: Path, lane: None, name: str) -> None:
    build, codes = LAYOUTS[name]
    path, split = build(tmp_path / "data")
    truth = detmap.read_truth(path, split=split)
    found = detmap.evaluate(truth, detmap.read_detections(TEXT, truth), "voc2007")
    assert numbers(found) == numbers(detmap.evaluate(SAMPLE, TEXT, "voc2007"))
    new = {note.code for note in truth.notes} & {
        "images-unlisted",
        "images-unannotated",
        "split-only",
        "folder-above",
    }
    assert new == codes
    command = ("eval", path, TEXT, "-p", "voc2007", *(["--split", split] if split else []))
    assert run(*command).code == 0


FILES: dict[str, tuple[Callable[[str], str], set[str]]] = {
    "det_test_x": (lambda name: f"det_test_{name}", set()),
    "x": (lambda name: name, set()),
    "comp3": (lambda name: f"comp3_det_test_{name}", set()),
    "another split": (lambda name: f"comp4_det_val_{name}", {"split-other"}),
    "another split, det": (lambda name: f"det_val_{name}", {"split-other"}),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_files_by_other_names_have_the_same_number(tmp_path: Path, lane: None, name: str) -> None:
    rename, codes = FILES[name]
    for file in TEXT.glob("*.txt"):
        cls = file.stem.removeprefix(PREFIX)
        make.write(tmp_path / "dt" / f"{rename(cls)}.txt", file.read_bytes())
    plain = detmap.evaluate(SAMPLE, TEXT)
    found = detmap.evaluate(SAMPLE, tmp_path / "dt")
    assert numbers(found) == numbers(plain)
    assert found.signature == plain.signature
    new = {note.code for note in found.notes} - {note.code for note in plain.notes}
    assert new == codes


@pytest.mark.slow
def test_traps_of_wild_files_are_refused_or_noted(tmp_path: Path) -> None:
    folder, _ = labelimg(tmp_path / "labelimg")
    (folder / f"{STEMS[0]}.xml").unlink()
    truth = detmap.read_truth(folder)
    assert {n.code: n.count for n in truth.notes}["images-unannotated"] == 1
    with pytest.raises(DataError, match="folder of XML files without lists"):
        detmap.read_truth(folder, split="test")
    robo, _ = roboflow(tmp_path / "robo")
    shutil.rmtree(robo / "test"), shutil.rmtree(robo / "valid")
    pages(robo / "valid")
    with pytest.raises(DataError, match=r"no folder test .*choose a split: valid, train"):
        detmap.read_truth(robo, split="test")
    (tmp_path / "empty" / "Annotations").mkdir(parents=True)
    with pytest.raises(DataError, match="no XML file"):
        detmap.read_truth(tmp_path / "empty", format="voc")
    two = make.write_voc(tmp_path / "two", lists={"a": "000001\n", "b": "000001\n"})
    with pytest.raises(DataError, match="choose a split: a, b"):
        detmap.read_truth(two)
    dt = tmp_path / "dt"
    make.write(dt / "circle.txt", f"{STEMS[0]} .9 10 10 60 60\n")
    make.write(dt / "square.txt", "")
    make.write(dt / "cirle.txt", "")
    with pytest.raises(DataError, match=r"'cirle' is not in .*did you mean 'circle'"):
        detmap.read_detections(dt, detmap.read_truth(SAMPLE))


ROWS = {
    "yolo": "0 .5 .5 .2 .2 .9\n1 .2 .2 .2 .2 .8\n",
    "kitti": "0 -1 -1 -10 10 10 60 60 -1 -1 -1 -1 -1 -1 -1 .9\n",
    "obb": "1 .1 .1 .5 .1 .5 .5 .1 .5 .9\n",
    "voc": "x .9 10 10 60 60\n",
}


@pytest.mark.parametrize("kind", ROWS)
def test_files_named_by_images_and_classes(tmp_path: Path, kind: str) -> None:
    images = [make.image(id=i, file_name=f"{name}.jpg") for i, name in enumerate(["0", "1", "x"])]
    classes = [make.category(id=i, name=str(i)) for i in (0, 1)]
    record = make.annotation(image_id=0, category_id=0)
    content = make.instances(images=images, categories=classes, annotations=[record])
    truth = detmap.read_truth(make.write(tmp_path / "t.json", content))
    for stem in "01":
        make.write(tmp_path / "found" / f"{stem}.txt", ROWS[kind])
    found = detmap.read_detections(tmp_path / "found", truth)
    assert set(found.image.tolist()) == ({2} if kind == "voc" else {0, 1})
    for stem in "01":
        make.write(tmp_path / "found" / f"{stem}.txt", "0 .9 10 10 60 60\n")
    with pytest.raises(detmap.DataError, match=r"ambiguous: voc.*cartucho") as refused:
        detmap.read_detections(tmp_path / "found", truth)
    assert "--detections-format voc" in refused.value.fix
    assert len(detmap.read_detections(tmp_path / "found", truth, format="voc")) == 2
