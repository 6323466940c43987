"""Converted tables give the same number; what a format cannot hold is a note or an error."""

import json
import math
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import detmap
from detmap.annotation_tools.conversion import writers
from detmap.core.tables import Categories, Detections, Images, Truth, boxes_as
from detmap.errors import DataError
from tests.support import builders as make
from tests.support.format_samples import SAMPLES
from tests.support.running import run
from tests.support.tier import drawn

CLASSES = ("cat", "traffic light", "a & <b>", 'say "x"')
STEMS = ("img 1", "b-2", "000003", "x.y", "ärger")
METRICS = {"coco": "coco-bbox", "csv": "coco-bbox", "yolo": "coco-bbox", "voc": "voc2012"}


def tables(seed: int, step: float, spaces: bool, whole: float = 0) -> tuple[Truth, Detections]:
    """Objects, some of them flagged, an image without objects, and moved boxes with scores.

    A share of the objects, `whole`, has whole pixels; one is narrower than a pixel.
    """
    rng = np.random.default_rng(seed)
    stems = sorted(STEMS if spaces else STEMS[1:])
    n = len(stems)
    images = Images(np.array(stems), tuple(stems), np.full(n, 128.0), np.full(n, 64.0))
    categories = Categories(np.arange(1, len(CLASSES) + 1), CLASSES)
    g = int(rng.integers(4, 15))
    low = np.round(rng.uniform(2, 30, (g, 2)) / step) * step
    boxes = np.hstack([low, np.round(rng.uniform(4, 30, (g, 2)) / step) * step])
    boxes = np.where(rng.random((g, 1)) < whole, np.round(boxes), boxes)
    boxes[0, 2] = rng.choice([boxes[0, 2], step])
    image = rng.integers(0, n - 1, g).astype(np.int32)
    label = np.append(np.arange(len(CLASSES)), rng.integers(0, len(CLASSES), g))[:g]
    roles = {name: rng.random(g) < 0.2 for name in ("crowd", "difficult")}
    area = {"area": boxes[:, 2] * boxes[:, 3]}
    truth = Truth(
        images, categories, image, label.astype(np.int32), boxes, roles, area, "xywh", "coco"
    )
    moved = boxes + np.round(rng.uniform(-2, 2, boxes.shape) / step) * step
    moved[:, 2:] = np.maximum(moved[:, 2:], step)
    score = rng.permutation(g) / 64 + 0.125
    found = Detections(images, categories, image, truth.label, moved, score, box_format="xywh")
    return truth, found


@settings(max_examples=drawn(40))
@given(
    seed=st.integers(0, 2**31),
    step=st.sampled_from([1.0, 0.125]),
    spaces=st.booleans(),
    whole=st.sampled_from([0, 0.4, 0.6, 0.97]),
)
@pytest.mark.parametrize("target", writers.TARGETS)
def test_what_is_written_is_read_again(
    tmp_path_factory: pytest.TempPathFactory,
    target: str,
    seed: int,
    step: float,
    spaces: bool,
    whole: float,
) -> None:
    folder = tmp_path_factory.mktemp("converted")
    truth, found = tables(seed, step, spaces, whole)
    if target == "yolo":
        truth = Truth(
            *(truth.images, truth.categories, truth.image, truth.label, truth.boxes, {}),
            *(dict(truth.attributes), truth.box_format, truth.family),
        )
    suffix = {"coco": ".json", "csv": ".csv"}.get(target, "")
    places = folder / f"truth{suffix}", folder / f"found{suffix}"
    for table, place in zip((truth, found), places, strict=True):
        writers.write(table, place, target)
    sizes = places[0] / "sizes.csv" if target == "yolo" else None
    again = detmap.read_truth(places[0], image_sizes=sizes)
    rows = detmap.read_detections(places[1], again)
    rules = METRICS[target]
    metrics = detmap.evaluate(again, rows, rules).metrics
    wanted = detmap.evaluate(truth, found, rules).metrics
    assert metrics == pytest.approx(wanted, abs=1e-9, nan_ok=True)
    assert len(again.images) == len(truth.images)
    assert again.categories.names == truth.categories.names or target in ("csv", "voc")


def test_losses_are_counted_and_files_are_kept(tmp_path: Path) -> None:
    truth, _ = tables(7, 0.125, False)
    codes = {
        target: {note.code: note.count for note in writers.write(truth, tmp_path / target, target)}
        for target in writers.TARGETS
    }
    flags = truth.crowd | truth.difficult
    assert codes["yolo"]["lost-flags"] == flags.sum()
    assert codes["voc"]["boxes-continuous"] == len(truth)
    assert codes["voc"]["lost-crowd"] == truth.crowd.sum()
    assert codes["coco"]["lost-difficult"] == (truth.difficult & ~truth.crowd).sum()
    assert codes["csv"] == {}
    with pytest.raises(DataError, match=r"exists .*name a new folder"):
        writers.write(truth, tmp_path / "voc", "voc")
    assert not list(tmp_path.glob(".detmap-*"))


@pytest.mark.slow
@pytest.mark.parametrize("kind", SAMPLES)
@pytest.mark.parametrize("target", writers.TARGETS)
def test_every_format_is_converted_to_every_target(tmp_path: Path, kind: str, target: str) -> None:
    if "parquet" in kind:
        pytest.importorskip("pyarrow")
    paths, plain = SAMPLES[kind](tmp_path / "in"), SAMPLES["coco"](tmp_path / "plain")
    truth = detmap.read_truth(paths[0], image_sizes=plain[0])
    found = detmap.read_detections(paths[1], truth)
    suffix = {"coco": ".json", "csv": ".csv"}.get(target, "")
    places = tmp_path / f"truth{suffix}", tmp_path / f"found{suffix}"
    for table, place in zip((truth, found), places, strict=True):
        writers.write(table, place, target)
    again = detmap.read_truth(
        places[0], image_sizes=places[0] / "sizes.csv" if target == "yolo" else None
    )
    wanted = detmap.evaluate(truth, found, "coco-bbox").metrics
    metrics = detmap.evaluate(again, detmap.read_detections(places[1], again), "coco-bbox").metrics
    assert metrics == pytest.approx(wanted, abs=1e-9, nan_ok=True)


def one_box(stem: str, box: list[float], side: float = 64.0) -> Truth:
    sides = np.array([side])
    return Truth(
        *(Images(np.array([stem]), (stem,), sides, sides), Categories(np.array([1]), ("cat",))),
        *(np.zeros(1, np.int32), np.zeros(1, np.int32), np.array([box]), {}),
        *({"area": np.array([81.0])}, "xywh", "coco"),
    )


@given(
    seed=st.integers(0, 2**31),
    whole=st.sampled_from([0, 0.5, 0.9, 1]),
    noise=st.sampled_from([0, 1e-15, 0.3]),
    box_format=st.sampled_from(["xywh", "voc"]),
)
@settings(max_examples=drawn(30))
def test_voc_declares_what_its_boxes_mean(
    tmp_path_factory: pytest.TempPathFactory, seed: int, whole: float, noise: float, box_format: str
) -> None:
    rng = np.random.default_rng(seed)
    boxes = rng.uniform(0, 60, (4, 4))
    boxes = np.where(rng.random((4, 1)) < whole, np.round(boxes) * (1 - noise), boxes)
    boxes[:, 2:] += boxes[:, :2] * (box_format == "voc")
    one, rows = one_box("a", [1.0, 1, 9, 9]), np.zeros(4, np.int32)
    roles: dict[str, np.ndarray] = {}
    truth = Truth(
        *(one.images, one.categories, rows, rows, boxes, roles, {"area": np.ones(4)}),
        *(box_format, "coco"),  # type: ignore[arg-type]
    )
    folder = tmp_path_factory.mktemp("voc")
    writers.write(truth, folder, "voc")
    again = detmap.read_truth(folder)
    if box_format == "voc":
        assert (again.boxes == boxes).all()
    assert boxes_as(again.boxes, again.box_format, "xywh") == pytest.approx(
        boxes_as(boxes, truth.box_format, "xywh"), rel=0, abs=1e-13
    )
    assert "box-continuous" not in {note.code for note in again.notes}


def test_yolo_is_not_written_without_sizes(tmp_path: Path) -> None:
    truth = one_box("a", [1.0, 1, 9, 9], math.nan)
    empty = truth.take(np.zeros(0, dtype=np.int64))
    for table in (truth, empty):
        with pytest.raises(DataError, match=r"unknown size.*--image-sizes"):
            writers.write(table, tmp_path / "new", "yolo")
    file = tmp_path / "t.json"
    writers.write(truth, file, "coco")
    sizes = make.write(tmp_path / "sizes.csv", "image,width,height\na.jpg,64,32\n")
    options = ("--to", "yolo", "--image-sizes", sizes)
    assert run("convert", file, tmp_path / "new", *options).code == 0
    assert "nan" not in (tmp_path / "new" / "sizes.csv").read_text()


@pytest.mark.parametrize("target", ["coco", "csv", "yolo"])
def test_boxes_of_negative_width_are_refused(tmp_path: Path, target: str) -> None:
    with pytest.raises(DataError, match="1 box of negative width or height"):
        writers.write(one_box("a", [9.0, 1, -2, 9]), tmp_path / "new", target)


@pytest.mark.parametrize("stem", ["a.b", "v1.2.3", "x.", "a"])
def test_dots_of_names_are_kept(tmp_path: Path, stem: str) -> None:
    record = {"label": 0, "bounding_box": [0.1, 0.1, 0.5, 0.5]}
    tree = {"classes": ["cat"], "labels": {stem: [record]}}
    sizes = make.write(tmp_path / "sizes.csv", f"image,width,height\n{stem},64,32\n")
    file = make.write(tmp_path / "labels.json", json.dumps(tree))
    truth = detmap.read_truth(file, image_sizes=sizes)
    writers.write(truth, tmp_path / "t.json", "coco")
    assert detmap.read_truth(tmp_path / "t.json").images.stems == (stem,)


def test_an_existing_file_is_replaced_with_force_only(tmp_path: Path) -> None:
    source = SAMPLES["coco"](tmp_path / "in")[0]
    other = make.write(tmp_path / "other.json", "mine")
    link = tmp_path / "link.json"
    link.symlink_to(other)
    for place, what in ((other, "exists"), (link, "is a link to another place")):
        outcome = run("convert", source, place, "--to", "coco")
        assert outcome.code == 2
        assert f"{place}: {what}" in outcome.err
        assert "--force" in outcome.err
        assert other.read_text() == "mine"
    assert run("convert", source, other, "--to", "coco", "--force").code == 0
    assert len(detmap.read_truth(other)) == 3


def test_new_class_ids_are_reported(tmp_path: Path) -> None:
    notes = writers.write(one_box("a", [1.0, 1, 9, 9]), tmp_path / "new", "yolo")
    assert "lost-class-ids" in {note.code for note in notes}


@pytest.mark.parametrize("target", ["voc", "yolo"])
def test_names_that_no_file_can_have_are_refused(tmp_path: Path, target: str) -> None:
    truth = one_box("a/b", [1.0, 1, 9, 9])
    with pytest.raises(DataError, match=r"1 image with names .*a/b.*write coco or csv"):
        writers.write(truth, tmp_path / "new", target)
    assert not (tmp_path / "new").exists()


def test_a_bad_source_is_exit_code_2(tmp_path: Path) -> None:
    outcome = run("convert", tmp_path / "none", tmp_path / "x.json", "--to", "coco")
    assert outcome.code == 2
    assert "no such file or folder" in outcome.err


@pytest.mark.parametrize("target", ["Annotations/000001.xml", "README.md"])
def test_a_file_of_the_folder_that_is_read_is_not_overwritten(tmp_path: Path, target: str) -> None:
    folder = shutil.copytree(make.SHAPES, tmp_path / "shapes")
    before = (folder / target).read_bytes()
    outcome = run("convert", folder, folder / target, "--to", "coco")
    assert outcome.code == 2
    assert "which is read" in outcome.err or "would be overwritten" in outcome.err
    assert (folder / target).read_bytes() == before


@pytest.mark.parametrize("place", ["new.json", "Annotations/new.json", "a/b"])
@pytest.mark.parametrize("target", ["coco", "yolo"])
def test_nothing_is_written_into_the_source_folder(tmp_path: Path, place: str, target: str) -> None:
    folder = SAMPLES["voc"](tmp_path)[0]
    before = sorted(tmp_path.rglob("*"))
    outcome = run("convert", folder, folder / place, "--to", target, "--force")
    assert outcome.code == 2
    assert "which is read" in outcome.err
    assert sorted(tmp_path.rglob("*")) == before


MASK = {"size": [32, 64], "counts": [100, 20, 1928]}
SEGMENTED = {
    "images": [{"id": 7, "file_name": "sub/d.e.jpg", "width": 64, "height": 32}],
    "annotations": [
        {"id": 4, "image_id": 7, "category_id": 2, "bbox": [1, 1, 9, 9], "area": 50.0} | shape
        for shape in (
            {"iscrowd": 0, "segmentation": [[1.0, 1.0, 10.0, 1.0, 10.0, 10.5]]},
            {"iscrowd": 1, "segmentation": MASK},
            {"iscrowd": 0, "keypoints": [1, 1, 2], "num_keypoints": 1},
        )
    ],
    "categories": [{"id": 2, "name": "cat"}],
}


def test_shapes_of_coco_are_kept_in_coco_and_counted_elsewhere(tmp_path: Path) -> None:
    source = make.write(tmp_path / "t.json", SEGMENTED)
    assert run("convert", source, tmp_path / "new.json", "--to", "coco").code == 0
    rows = json.loads((tmp_path / "new.json").read_text())["annotations"]
    for key in ("segmentation", "keypoints", "num_keypoints"):
        wanted = [row.get(key) for row in SEGMENTED["annotations"]]
        assert [row.get(key) for row in rows] == wanted
    for target in ("csv", "voc", "yolo"):
        outcome = run("convert", source, tmp_path / target, "--to", target)
        assert "3 masks or keypoints are left out" in outcome.err + outcome.out


def test_shapes_of_detections_are_counted(tmp_path: Path) -> None:
    truth = make.write(tmp_path / "t.json", SEGMENTED)
    row = {"image_id": 7, "category_id": 2, "score": 0.5, "bbox": [1, 1, 9, 9]}
    found = make.write(tmp_path / "d.json", [row | {"segmentation": MASK}])
    outcome = run("convert", found, tmp_path / "n.json", "--to", "coco", "--truth", truth)
    assert "left out" in outcome.err + outcome.out


@pytest.mark.parametrize(
    ("target", "codes"),
    [
        ("coco", set()),
        ("csv", set()),
        ("voc", {"lost-image-ids", "lost-folders"}),
        ("yolo", {"lost-image-ids", "lost-folders"}),
    ],
)
def test_changed_names_and_ids_are_counted(tmp_path: Path, target: str, codes: set[str]) -> None:
    truth = detmap.read_truth(make.write(tmp_path / "t.json", SEGMENTED))
    notes = writers.write(truth, tmp_path / "new", target)
    assert {note.code for note in notes} & {"lost-image-ids", "lost-folders"} == codes


def test_ids_of_tables_are_kept_in_coco_if_they_are_numbers(tmp_path: Path) -> None:
    for name, kept in (("12.jpg", True), ("x.jpg", False)):
        file = make.write(tmp_path / "t.csv", f"image,class,x,y,w,h\n{name},cat,1,1,5,5\n")
        notes = writers.write(detmap.read_truth(file), tmp_path / "new.json", "coco")
        assert ("lost-image-ids" in {note.code for note in notes}) is not kept
        image_id = json.loads((tmp_path / "new.json").read_text())["images"][0]["id"]
        assert image_id == (12 if kept else 1)


def test_lost_names_of_images_are_counted(tmp_path: Path) -> None:
    images = [make.image(id=i, file_name=f"a.{end}") for i, end in enumerate(["jpg", "png"])]
    content = make.instances(images=images, annotations=[])
    truth = detmap.read_truth(make.write(tmp_path / "t.json", content))
    for target, lost in (("csv", False), ("voc", True)):
        notes = writers.write(truth, tmp_path / target, target)
        assert ("lost-image-names" in {note.code for note in notes}) is lost


def tied_pair(folder: Path, stems: tuple[str, ...]) -> tuple[Path, Path]:
    """COCO files whose AP depends on which of two images comes first: their scores are equal."""
    images = [make.image(id=5 + i, file_name=f"{stem}.jpg") for i, stem in enumerate(stems)]
    box = [1.0, 1.0, 20.0, 20.0]
    truth = make.instances(images=images, annotations=[make.annotation(image_id=5, bbox=box)])
    rows = [make.detection(image_id=image, bbox=box, score=0.5) for image in (5, 6)]
    return make.write(folder / "t.json", truth), make.write(folder / "d.json", rows)


@pytest.mark.parametrize("stems", [("b", "a"), ("10", "9"), ("a", "b")])
@pytest.mark.parametrize("target", writers.TARGETS)
def test_another_order_of_images_is_a_note_or_the_number_is_equal(
    tmp_path: Path, target: str, stems: tuple[str, ...]
) -> None:
    truth_file, found_file = tied_pair(tmp_path, stems)
    truth = detmap.read_truth(truth_file)
    found = detmap.read_detections(found_file, truth)
    suffix = {"coco": ".json", "csv": ".csv"}.get(target, "")
    places = tmp_path / f"truth{suffix}", tmp_path / f"found{suffix}"
    notes = [
        {note.code: note.count for note in writers.write(table, place, target)}
        for table, place in zip((truth, found), places, strict=True)
    ]
    sizes = places[0] / "sizes.csv" if target == "yolo" else None
    again = detmap.read_truth(places[0], image_sizes=sizes)
    rows = detmap.read_detections(places[1], again)
    before, after = (
        detmap.evaluate(*pair, "coco-bbox").metrics["AP"]
        for pair in ((truth, found), (again, rows))
    )
    moved = list(again.images.stems) != list(truth.images.stems)
    assert (after != pytest.approx(before)) is moved
    assert [each.get("image-order") for each in notes] == ([2, 2] if moved else [None, None])
    assert not (moved and target in ("coco", "csv"))


@pytest.mark.parametrize(("target", "counts"), [("yolo", [2]), ("voc", []), ("csv", [])])
def test_rows_in_another_order_have_a_note(tmp_path: Path, target: str, counts: list[int]) -> None:
    truth_file, found_file = tied_pair(tmp_path, ("a", "b"))
    make.write(found_file, json.loads(found_file.read_text())[::-1])
    truth = detmap.read_truth(truth_file)
    found = detmap.read_detections(found_file, truth)
    notes = writers.write(found, tmp_path / "found.csv", target)
    assert [note.count for note in notes if note.code == "image-order"] == counts
    again = detmap.read_detections(tmp_path / "found.csv", truth)
    before, after = (
        detmap.evaluate(truth, each, "voc2012").metrics["mAP"] for each in (found, again)
    )
    assert (after != pytest.approx(before)) is bool(counts)


def test_ids_of_images_are_kept_in_csv(tmp_path: Path) -> None:
    truth_file, found_file = tied_pair(tmp_path, ("b", "a"))
    table = tmp_path / "t.csv"
    assert run("convert", truth_file, table, "--to", "csv").code == 0
    truth = detmap.read_truth(table)
    assert (truth.images.ids.tolist(), truth.images.stems) == ([5, 6], ("b", "a"))
    assert len(detmap.read_detections(found_file, truth)) == 2


@pytest.mark.parametrize("target", writers.TARGETS)
@pytest.mark.parametrize(
    ("stem", "name"), [("end ", "cat"), (" a", "cat"), ("a", "person "), ("a", "\tcat")]
)
def test_white_space_around_names(tmp_path: Path, target: str, stem: str, name: str) -> None:
    one = one_box(stem, [1.0, 1, 9, 9])
    truth = Truth(
        *(one.images, Categories(np.array([1]), (name,)), one.image, one.label, one.boxes, {}),
        *({"area": np.array([81.0])}, "xywh", "coco"),
    )
    place = tmp_path / {"coco": "t.json", "csv": "t.csv"}.get(target, "t")
    if target == "coco" or (target == "yolo" and stem == "a"):
        writers.write(truth, place, target)
        sizes = place / "sizes.csv" if target == "yolo" else None
        again = detmap.read_truth(place, image_sizes=sizes)
        assert (again.images.stems, again.categories.names) == ((stem,), (name,))
        return
    with pytest.raises(DataError, match=r"1 (image|class) with names that .*rename them") as raised:
        writers.write(truth, place, target)
    assert repr(stem if stem != "a" else name)[1:-1].strip() in str(raised.value)
    assert not place.exists()
