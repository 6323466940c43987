"""Masks and keypoints against pycocotools, in every bit; and what its routines must never see."""

import copy
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import detmap
from detmap.cli import main
from detmap.core.matching.engine import match
from detmap.core.overlaps import KINDS, kind_of, masks
from detmap.core.overlaps.masks import Masks
from detmap.core.overlaps.polygons import corners
from detmap.core.overlaps.ragged_runs import unpacked
from detmap.core.overlaps.shape_records import ShapeReader
from detmap.errors import DataError
from tests.support import builders as make
from tests.support.drawing import SEEDS, CocoData
from tests.support.drawing_shapes import HEIGHT, WIDTH, draw_keypoints, draw_segm, packed, pixels
from tests.support.shapes import difference
from tests.support.tier import drawn

relaxed = settings(max_examples=drawn(40))


@relaxed
@given(SEEDS)
def test_masks_give_the_arrays_and_stats_of_pycocotools(seed: int) -> None:
    assert difference(draw_segm(np.random.default_rng(seed)), "segm") is None


@relaxed
@given(SEEDS)
def test_keypoints_give_the_arrays_and_stats_of_pycocotools(seed: int) -> None:
    assert difference(draw_keypoints(np.random.default_rng(seed)), "keypoints") is None


def files(folder: Path, data: CocoData) -> tuple[Path, Path]:
    found = folder / "instances.json", folder / "results.json"
    for file, content in zip(found, data, strict=True):
        file.write_text(json.dumps(content))
    return found


def some(kind: str) -> CocoData:
    """Drawn data with objects and detections; every crowd is an object."""
    draw = draw_segm if kind == "segm" else draw_keypoints
    for seed in range(99):
        data = draw(np.random.default_rng(seed))
        if data[0]["annotations"] and data[1]:
            return data
    raise AssertionError


GOOD = packed(pixels((3, 3, 10, 5)))
SIZE = [HEIGHT, WIDTH]
BAD_MASKS: dict[str, Any] = {
    "missing": None,
    "a number": 5,
    "no polygon": [],
    "an empty polygon": [[]],
    "two corners": [[1, 2, 3]],
    "an odd polygon": [[1, 2, 3, 4, 5, 6, 7]],
    "a polygon of text": [["a", 2, 3, 4, 5, 6]],
    "a polygon of flags": [[True, 2, 3, 4, 5, 6]],
    "a polygon that goes round the world": [[0, 0, 1e9, 0, 0, 1e9]],
    "a number of 400 digits": [[0, 0, 10**400, 0, 0, 9]],
    "a box": [[0, 0, 5, 5]],
    "other keys": {"foo": 1},
    "another key, no size": {"counts": [HEIGHT * WIDTH], "x": 1},
    "another key, no counts": {"size": SIZE, "x": 1},
    "no counts": {"size": SIZE},
    "no size, but something else": {"counts": GOOD["counts"], "width": 5},
    "no counts, but something else": {"size": SIZE, "width": 5},
    "a text": "masks",
    "a polygon among polygons": [[1, 2, 3, 4, 5, 6], 7],
    "a box among polygons": [[1, 2, 3, 4, 5, 6], [1, 2, 3, 4]],
    "no size": {"counts": GOOD["counts"]},
    "another size": {"size": [WIDTH, HEIGHT], "counts": GOOD["counts"]},
    "a size of text": {"size": "30", "counts": GOOD["counts"]},
    "counts that end early": {"size": SIZE, "counts": GOOD["counts"][:-1]},
    "counts that go on": {"size": SIZE, "counts": GOOD["counts"] + "1"},
    "counts that never end": {"size": SIZE, "counts": "o" * 50},
    "counts of other text": {"size": SIZE, "counts": "\u00e9\u00e9"},
    "counts with a space": {"size": SIZE, "counts": " " + GOOD["counts"]},
    "empty counts": {"size": SIZE, "counts": ""},
    "counts of null": {"size": SIZE, "counts": None},
    "plain counts too few": {"size": SIZE, "counts": [HEIGHT * WIDTH - 1]},
    "plain counts too many": {"size": SIZE, "counts": [HEIGHT * WIDTH + 1]},
    "negative counts": {"size": SIZE, "counts": [HEIGHT * WIDTH + 5, -5]},
    "counts of fractions": {"size": SIZE, "counts": [HEIGHT * WIDTH - 0.5, 0.5]},
    "counts of flags": {"size": SIZE, "counts": [True, HEIGHT * WIDTH - 1]},
}


@pytest.mark.parametrize("name", BAD_MASKS)
@pytest.mark.parametrize("side", ["truth", "detections"])
def test_bad_masks_are_refused_with_their_place(name: str, side: str, tmp_path: Path) -> None:
    instances, results = copy.deepcopy(some("segm"))
    if side == "truth":
        instances["annotations"][0]["segmentation"] = BAD_MASKS[name]
        place = "annotations[0].segmentation"
    else:
        for result in results:
            result.pop("bbox", None)
        results[0]["segmentation"] = BAD_MASKS[name]
        place = "[0].segmentation"
    with pytest.raises(DataError) as caught:
        detmap.evaluate(*files(tmp_path, (instances, results)), "coco-segm")
    assert place in str(caught.value)


BAD_POINTS: dict[str, Any] = {
    "missing": None,
    "none": [],
    "too few": [1, 2, 3],
    "text": ["a"] * 51,
    "too large": [1e200] * 51,
    "of other number": [1, 2],
}


@pytest.mark.parametrize("name", BAD_POINTS)
def test_keypoints_that_are_none_are_refused_with_their_place(name: str, tmp_path: Path) -> None:
    instances, results = copy.deepcopy(some("keypoints"))
    results[0]["keypoints"] = BAD_POINTS[name]
    with pytest.raises(DataError, match="keypoints"):
        detmap.evaluate(*files(tmp_path, (instances, results)), "coco-keypoints")


@pytest.mark.parametrize("sigmas", [[], [1.0], [0.1] * 16])
def test_sigmas_are_as_many_as_the_keypoints(sigmas: list[float], tmp_path: Path) -> None:
    rules = detmap.load_protocol("coco-keypoints").override({"iou.sigmas": sigmas})
    with pytest.raises(DataError, match=r"^iou\.sigmas: "):
        detmap.evaluate(*files(tmp_path, some("keypoints")), rules)


def test_keypoints_are_as_many_as_the_sigmas(tmp_path: Path) -> None:
    instances, results = copy.deepcopy(some("keypoints"))
    for record in (*instances["annotations"], *results):
        record["keypoints"] = record["keypoints"][:15]
    with pytest.raises(DataError, match=r"^iou\.sigmas: 17 numbers, .* 5 keypoints"):
        detmap.evaluate(*files(tmp_path, (instances, results)), "coco-keypoints")


def test_a_mask_of_very_many_polygons_takes_a_moment() -> None:
    rings = [[0, 0, 5, 0, 5, 5]] * 200_000
    begin = time.process_time()
    corners([rings], [0], str)
    assert time.process_time() - begin < 10


def test_tables_without_masks_are_refused_by_a_protocol_that_compares_them(tmp_path: Path) -> None:
    truth_path, results_path = files(tmp_path, some("keypoints"))
    truth = detmap.read_truth(truth_path)
    with pytest.raises(DataError, match="masks"):
        match(truth, detmap.read_detections(results_path, truth), detmap.load_protocol("coco-segm"))


def test_rows_of_masks_are_selected_with_their_tables(tmp_path: Path) -> None:
    paths = files(tmp_path, some("segm"))
    truth = detmap.read_truth(paths[0], shapes="masks")
    detections = detmap.read_detections(paths[1], truth)
    whole = match(truth, detections, detmap.load_protocol("coco-segm"), taken=True)
    images = np.arange(len(truth.images), dtype=np.int32)
    parts = [
        match(
            truth.select_images(images[i : i + 1]),
            detections.select_images(images[i : i + 1]),
            detmap.load_protocol("coco-segm"),
            taken=True,
        )
        for i in images
    ]
    merged = parts[0].merge(*parts[1:])
    assert (merged.tp == whole.tp).all()
    assert merged.data_digest() == whole.data_digest()
    assert isinstance(truth.shapes, Masks)
    other = truth.shapes.take(np.arange(len(truth))[::-1])
    assert (other.digest() == truth.shapes.digest()[::-1]).all()


@pytest.mark.parametrize("kind", ["segm", "keypoints"])
def test_detections_without_boxes_are_not_said_to_lie_outside(kind: str, tmp_path: Path) -> None:
    data = some(kind)
    for record in data[1]:
        record.pop("bbox", None)
    notes = detmap.evaluate(*files(tmp_path, data), f"coco-{kind}").notes
    outside = {note.code: note.count for note in notes}.get("box-outside", 0)
    assert outside < len(data[1]), "only masks without a pixel and points beyond the image"


@relaxed
@given(SEEDS)
def test_masks_of_objects_without_boxes_give_the_arrays_of_pycocotools(seed: int) -> None:
    instances, results = draw_segm(np.random.default_rng(seed))
    for record in instances["annotations"]:
        record.pop("bbox", None)
    assert difference((instances, results), "segm") is None


def test_boxes_around_masks_and_keypoints_stand_for_those_that_are_missing(tmp_path: Path) -> None:
    image = {"id": 1, "width": WIDTH, "height": HEIGHT}
    record = {"id": 1, "image_id": 1, "category_id": 1}
    categories = [{"id": 1, "name": "person"}]
    points = [4, 5, 2, 9, 9, 0, 14, 15, 1]
    path = tmp_path / "gt.json"
    for kind, own, box, area in (
        ("masks", {"segmentation": packed(pixels((3, 4, 10, 5)))}, [3, 4, 10, 5], 50),
        ("keypoints", {"keypoints": points}, [4, 5, 10, 10], 100),
    ):
        tree = {"images": [image], "annotations": [record | own], "categories": categories}
        path.write_text(json.dumps(tree))
        truth = detmap.read_truth(path, shapes=kind)
        assert truth.boxes.tolist() == [box]
        assert truth.area.tolist() == [area]
        assert {note.code: note.count for note in truth.notes}["bbox-missing"] == 1
    tree["annotations"] = [record | {"keypoints": [4, 5, 0, 9, 9, 0]}]
    path.write_text(json.dumps(tree))
    with pytest.raises(DataError, match=r"annotations\[0\]\.bbox: missing, and "):
        detmap.read_truth(path, shapes="keypoints")
    with pytest.raises(DataError, match=r"the records have keypoints only; use -p coco-keypoints"):
        detmap.read_truth(path)


def test_boxes_asked_of_masks_alone_are_those_around_them(tmp_path: Path) -> None:
    """As `COCO.loadRes` has it; a note says what was compared."""
    from pycocotools.coco import COCO

    truth, results = files(tmp_path, some("segm"))
    rows = json.loads(results.read_text())
    alone = [{k: v for k, v in row.items() if k != "bbox"} for row in rows]
    results.write_text(json.dumps(alone))
    found = detmap.read_detections(results, detmap.read_truth(truth))
    official = COCO(str(truth)).loadRes(str(results)).dataset["annotations"]
    boxes = [[float(x) for x in row["bbox"]] for row in official]
    assert found.boxes.tolist() == boxes
    notes = {note.code: note for note in found.notes}
    assert notes["bbox-missing"].count == len(rows)
    assert "-p coco-segm" in notes["bbox-missing"].text
    plain = [{**row, "bbox": box} for row, box in zip(alone, boxes, strict=True)]
    other = tmp_path / "plain.json"
    other.write_text(json.dumps(plain))
    assert (
        detmap.evaluate(truth, results, "coco-bbox").signature
        == detmap.evaluate(truth, other, "coco-bbox").signature
    )


def test_of_results_with_boxes_and_masks_a_note_says_which_were_compared(tmp_path: Path) -> None:
    instances, results = some("segm")
    for row in results:
        row["bbox"] = [1, 1, 5, 5]
    paths = files(tmp_path, (instances, results))
    for protocol, compared in (("coco-segm", "segmentation"), ("coco-bbox", "bbox")):
        notes = {note.code: note for note in detmap.evaluate(*paths, protocol).notes}
        assert f"the {compared} is compared" in notes["shape-and-box"].text
        assert notes["shape-and-box"].count == len(results)


def test_what_overlaps_and_the_sigmas_decide_the_number(tmp_path: Path) -> None:
    paths = files(tmp_path, some("segm"))
    truth = detmap.read_truth(paths[0], shapes="masks")
    detections = detmap.read_detections(paths[1], truth)
    rules = detmap.load_protocol("coco-segm")
    by_boxes = match(truth, detections, rules.override({"iou.of": "boxes"}), taken=True)
    by_masks = match(truth, detections, rules, taken=True)
    assert by_boxes.taken.overlap.tolist() != by_masks.taken.overlap.tolist()
    paths = files(tmp_path, some("keypoints"))
    truth = detmap.read_truth(paths[0], shapes="keypoints")
    detections = detmap.read_detections(paths[1], truth)
    rules = detmap.load_protocol("coco-keypoints")
    small = rules.override({"iou.sigmas": [1e-9] * 17})
    large = rules.override({"iou.sigmas": [1.0] * 17})
    assert match(truth, detections, small).tp.sum() < match(truth, detections, large).tp.sum()


@pytest.mark.parametrize("kind", ["segm", "keypoints"])
def test_the_command_compares_masks_and_keypoints_with_pycocotools(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [str(path) for path in files(tmp_path, some(kind))]
    assert main(["parity", *paths, "-p", f"coco-{kind}"]) == 0
    assert "identical in every bit" in capsys.readouterr().err
    changed = ["--set", "iou.thresholds=[0.5]", "--set", "subsets.all.area=[0,5000]"]
    assert main(["parity", *paths, "-p", f"coco-{kind}", *changed]) == 0
    capsys.readouterr()
    for other in ("lvis", "voc2007"):
        assert main(["parity", *paths, "-p", other]) == 2
    assert "pycocotools has other rules" in capsys.readouterr().err


@relaxed
@given(SEEDS)
def test_packed_runs_are_read_as_pycocotools_writes_them(seed: int) -> None:
    rng = np.random.default_rng(seed)
    height, width = (int(side) for side in rng.integers(1, 400, 2))
    image = np.asfortranarray(rng.random((height, width)) < rng.choice([0.001, 0.5, 1]))
    one = {"size": [height, width], "counts": packed(image.astype(np.uint8))["counts"]}
    runs = masks.read([one], np.array([[height, width]], dtype=float), str).runs
    assert unpacked(runs.off, runs.counts)[1][1::2].sum() == image.sum()
    for other in (height * width + 1, height * width - 1):
        with pytest.raises(DataError, match="do not add up"):
            masks.read([one | {"size": [1, other]}], np.array([[1.0, other]]), str)


# ---- messages

SQUARE = [[0, 0, 4, 0, 4, 4, 0, 4]]


def files_of(folder: Path, kind: str, objects: dict[str, Any], found: dict[str, Any]) -> list[Path]:
    """One object and one detection, with masks or keypoints."""
    shape = {"segmentation": SQUARE} if kind == "masks" else {"keypoints": [1, 1, 2] * 17}
    truth = make.instances(annotations=[make.annotation(**shape, num_keypoints=17) | objects])
    results = [make.without(make.detection(**shape), "bbox") | found]
    return [make.write(folder / "gt.json", truth), make.write(folder / "dt.json", results)]


@pytest.mark.parametrize("score", ["0.5", True, None])
@pytest.mark.parametrize("kind", ["masks", "keypoints"])
def test_a_score_that_is_no_number_is_what_is_wrong(kind: str, score: Any, tmp_path: Path) -> None:
    protocol = {"masks": "coco-segm", "keypoints": "coco-keypoints"}[kind]
    with pytest.raises(DataError, match=r"\[0\]\.score: .* is not a number"):
        detmap.evaluate(*files_of(tmp_path, kind, {}, {"score": score}), protocol)


def test_an_area_that_is_missing_is_that_of_the_pixels(tmp_path: Path) -> None:
    truth, _ = files_of(tmp_path, "masks", {"area": None}, {})
    table = detmap.read_truth(truth, shapes="masks")
    assert table.area.tolist() == [16]
    assert [str(note) for note in table.notes if note.code == "area-missing"] == [
        "1 annotation has no area: the area of its segmentation is used"
    ]


def test_a_mask_on_an_image_without_a_size_says_which_is_unknown(tmp_path: Path) -> None:
    files = files_of(tmp_path, "masks", {}, {})
    files[0].write_text(files[0].read_text().replace('"height": 80', '"height": 0'))
    with pytest.raises(DataError, match="height unknown and width 100"):
        detmap.evaluate(*files, "coco-segm")


def test_an_image_without_a_size_is_named_as_in_the_file(tmp_path: Path) -> None:
    files = files_of(tmp_path, "masks", {}, {"bbox": [0, 0, 5, 5]})
    files[0].write_text(files[0].read_text().replace('"height": 80', '"height": 0'))
    with pytest.raises(DataError, match="image 1 has no size"):
        detmap.evaluate(*files, "coco-bbox", settings={"boxes.clip": "crowdhuman"})


def test_each_kind_of_overlap_names_a_function_and_a_reader_of_shapes() -> None:
    for kind in KINDS:
        assert callable(kind.producer)
        assert kind.reader is kind.reader
        assert isinstance(kind.reader, ShapeReader) == (kind.name != "boxes")
    assert kind_of("polygons").reader is kind_of("probiou").reader
