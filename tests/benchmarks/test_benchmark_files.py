"""Readers of Open Images, ImageNet, BDD100K, VisDrone and UAVDT: small files and bad ones."""

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import detmap
from detmap.benchmarks.open_images import label_hierarchy
from detmap.core.adapters import read_images
from detmap.errors import DataError, DetmapError
from tests.benchmarks import test_kitti_files as test_kitti
from tests.benchmarks import test_people_files as test_people
from tests.benchmarks import test_rotated_files as test_rotated
from tests.benchmarks.small_cases import (
    BDD100K,
    CASES,
    OPEN_IMAGES,
    UAVDT,
    VISDRONE,
    frame,
    written,
)
from tests.support import builders as make
from tests.support.mat import saved
from tests.support.running import run
from tests.support.tier import drawn

WANTED = {
    "openimages-v2": {"mAP": 0.5},  # animal: 1 of 2, the group is no object; cat 1; dog 0
    "openimages-challenge": {"mAP": (2 / 3 + 1) / 3, "mAP-as-given": 0.5},
    # a 10 x 10 object has the threshold 1/4; y is blacklisted for n01
    "imagenet-det": {"mAP": 1.0},
    "imagenet-vid": {"mAP": 0.5, "mAP-slow": 1.0, "mAP-fast": 0.0},
    "visdrone": {"AP": 0.75, "AR500": 0.75, "AR1": 0.5, "AR10": 0.75},
    "uavdt": {"mAP": 0.5},  # one detection is strictly inside of the region, one only inside
    "bdd100k": {"AP": 1.0, "AP50": 1.0},  # 10 x 10; the one in the crowd is ignored
}


@pytest.mark.parametrize("protocol", CASES)
def test_small_cases_by_hand(tmp_path: Path, protocol: str) -> None:
    result = detmap.evaluate(*written(tmp_path, protocol))
    for name, value in WANTED[protocol].items():
        assert result.metrics[name] == pytest.approx(value, abs=1e-12), name
    assert str(result)
    assert result.to_dict()["signature"].startswith(protocol)


def with_line(content: str | bytes, line: str) -> str:
    assert isinstance(content, str)
    return content + line + "\n"


def frames(*stems: str) -> str:
    """Frames of BDD100K without labels."""
    return json.dumps([frame(f"{stem}.jpg") for stem in stems])


def one_car(box: tuple[int, ...] = (0, 0, 9, 9), **flags: Any) -> str:
    """A frame of BDD100K with a car."""
    return json.dumps([frame("a.jpg", ("car", 1, box, flags))])


CAR = "truth.json: [0].labels[0]."
BAD: list[Any] = [
    ("openimages-v2", "hierarchy.json", None, "boxes.csv", "hierarchy.json"),
    ("openimages-v2", "labels.csv", None, "boxes.csv", "labels.csv"),
    ("openimages-v2", "hierarchy.json", "{}", "hierarchy.json: top", "no LabelName"),
    ("openimages-v2", "labelmap.pbtxt", "item {", "labelmap.pbtxt", "not a label map"),
    ("openimages-v2", "labels.csv", "ImageID,LabelName,Confidence\na,/m/cat,.5\n", "line 2", "0.5"),
    *(
        ("openimages-v2", "boxes.csv", with_line(OPEN_IMAGES["boxes.csv"], line), where, what)
        for line, where, what in (
            ("a,/m/cow,0,1,0,1,0", "line 5, column LabelName", "no class '/m/cow'"),
            ("a,/m/cat,.5,.4,0,1,0", "line 5", "is no box"),
            ("a,/m/cat,x,.4,0,1,0", "line 5, column XMin", "'x' is not a number"),
            ("a,/m/animal,.1,.3,.1,.3,0\nb,/m/animal,0,.5,0,.5,0", "boxes.csv", "expanded"),
        )
    ),
    ("imagenet-det", "synsets.txt", None, "xml", "synsets.txt or map_det.txt"),
    ("imagenet-det", "val.txt", None, "xml", "no val.txt"),
    ("imagenet-det", "synsets.txt", "n01\n", "x.xml", "not listed: n02"),
    ("imagenet-det", "val.txt", "x 2\ny 2\n", "val.txt: line 2", "index 2 occurs twice"),
    ("imagenet-det", "val.txt", "x 2\nz 1\n", "z.xml", "missing"),
    ("imagenet-det", "blacklist.txt", "1 n07\n", "blacklist.txt: line 1", "no class 'n07'"),
    ("imagenet-det", "dets.txt", "2 1 .9 1 1 10\n", "line 1", "6 columns"),
    ("imagenet-det", "dets.txt", "2 9 .9 1 1 9 9\n", "line 1, class", "no class 9"),
    ("imagenet-det", "dets.txt", "2.5 1 .9 1 1 9 9\n", "line 1, image", "2.5 is not a whole"),
    ("imagenet-vid", "motion_iou.mat", None, "Annotations", "motion_iou.mat"),
    ("imagenet-vid", "motion_iou.mat", saved({"x": 1.0}), "motion_iou.mat", "no variable 'motion"),
    (
        *(
            "imagenet-vid",
            "motion_iou.mat",
            saved({"motion_iou": [np.ones((1, 1)), np.ones((0, 0))]}),
        ),
        *("motion_iou.mat: v/0", "cell 1 is not a column of 2 numbers"),
    ),
    ("visdrone", "sizes.txt", None, "a.txt", "image of unknown size"),
    ("visdrone", "sizes.txt", "a 100 90\n", "sizes.txt", "lacks 1 of 2 images: b"),
    ("visdrone", "sizes.txt", "a 100\n", "sizes.txt: line 1", "'a 100'"),
    ("visdrone", "annotations/b.txt", "1,1,5,5,1\n", "b.txt: line 1", "5 columns"),
    ("visdrone", "results/b.txt", "1,1,5,5,.5,1,-1\n", "b.txt: line 1", "7 columns"),
    ("visdrone", "results/b.txt", "1,1,5,5,.5,1,-1,-1,0\n", "b.txt: line 1", "9 columns"),
    ("visdrone", "results/b.txt", "1,1,,5,.5,1,-1,-1\n", "line 1, column 3", "'' is not a number"),
    ("visdrone", "annotations/b.txt", "1,1,5,5,.5,1,0,0\n", "line 1, score", "0.5"),
    ("visdrone", "annotations/b.txt", "1,1,5,5,1,12,0,0\n", "line 1, category", "12"),
    ("visdrone", "annotations/b.txt", "1,1,-5,5,1,1,0,0\n", "line 1", "negative"),
    ("visdrone", "results/c.txt", "1,1,5,5,1,1,-1,-1\n", "c.txt: line 1", "no image 'c'"),
    ("uavdt", "M1_det.txt", None, "", "no results of 1 of 1 sequences: M1"),
    ("uavdt", "M1_det.txt", "0,-1,1,1,5,5,.5\n", "line 1, frame", "0"),
    *(
        ("uavdt", "M1_det.txt", f"1,-1,1,1,5,5,.5,1,-1\n{line}\n", where, what)
        for line, where, what in (
            ("1,-1,1,1,5,5,,1,-1", "line 2, column 7", "'' is not a number"),
            (",1,1,1,5,5,.5,1,-1", "line 2, column 1", "'' is not a number"),
            ("1,-1,1,5,5,.5,1,-1", "line 2", "8 columns"),
            ("1,-1,1,1,5,5,.5,1,-1,-1", "line 2", "10 columns"),
        )
    ),
    ("uavdt", "M1.txt", "1,-1,1,1,5,5,.5\n", "", "two files of results of M1: M1_det.txt, M1.txt"),
    ("uavdt", "M1_gt_whole.txt", "1,1,10,10,50,40,1,1\n", "line 1", "8 columns"),
    ("uavdt", "M1_det.txt", "7,-1,1,1,5,5,.5\n", "line 1, frame", "no image 'M1/000007'"),
    ("bdd100k", "truth.json", "[", "truth.json", "truncated"),
    ("bdd100k", "truth.json", '[{"name": 3}]', "truth.json: $[0].name", "Expected `str`"),
    ("bdd100k", "truth.json", frames("a", "a"), "truth.json: [1]", "'a.jpg' occurs twice"),
    ("bdd100k", "dets.json", frames("b", "a", "b"), "dets.json: [2]", "'b.jpg' occurs twice"),
    ("bdd100k", "truth.json", one_car((0, 0, 9, 10**23)), CAR + "box2d", "0 0 9 1e+23 is too"),
    ("bdd100k", "truth.json", one_car((9, 9, 3, 3)), CAR + "box2d", "negative"),
    *(
        ("bdd100k", "truth.json", one_car(crowd=flag), CAR + "attributes.crowd", "is not a flag")
        for flag in ("no", 2, None, [])
    ),
    (
        *("bdd100k", "dets.json", BDD100K["dets.json"].replace('"score": 0.9', '"score": null')),
        *("dets.json: [0].labels[0]", "no score"),
    ),
]


@pytest.mark.parametrize(("protocol", "file", "content", "where", "what"), BAD)
def test_bad_files_are_named(
    tmp_path: Path, protocol: str, file: str, content: str | None, where: str, what: str
) -> None:
    arguments = written(tmp_path, protocol)
    written(tmp_path, protocol, **{file: content})
    with pytest.raises(DataError) as error:
        detmap.evaluate(*arguments)
    assert where in error.value.where
    assert what in error.value.what
    assert error.value.fix


@pytest.mark.slow
@pytest.mark.parametrize("protocol", [name for name in CASES if name != "openimages-challenge"])
def test_damaged_files_are_read_or_refused(tmp_path: Path, protocol: str) -> None:
    draw, (files, *_) = random.Random(0), CASES[protocol]
    arguments = written(tmp_path, protocol)
    for _ in range(drawn(40)):
        name = draw.choice(sorted(files))
        content = files[name]
        data = bytearray(content.encode() if isinstance(content, str) else content)
        data[draw.randrange(len(data))] = draw.choice(b"\0\n,-9x\xff")
        (tmp_path / name).write_bytes(data)
        try:
            detmap.evaluate(*arguments)
        except DetmapError as error:
            assert error.fix  # noqa: PT017  # both ends are right
        written(tmp_path, protocol)


def test_official_names_and_other_layouts(tmp_path: Path) -> None:
    files = {"challenge-2019-label500-hierarchy.json": OPEN_IMAGES["hierarchy.json"]}
    result = detmap.evaluate(
        *written(tmp_path / "oid", "openimages-v2", **{"hierarchy.json": None, **files})
    )
    assert result.metrics["mAP"] == 0.5
    more = with_line(OPEN_IMAGES["labels.csv"], "a,/m/other,1")  # not in the label map
    given = written(tmp_path / "more", "openimages-challenge", **{"labels.csv": more})
    assert detmap.evaluate(*given).metrics["mAP-as-given"] == 0.5
    names = {"synsets.txt": None, "map_det.txt": "n02 2 dog\nn01 1 cat\n"}
    assert detmap.evaluate(*written(tmp_path / "det", "imagenet-det", **names)).metrics["mAP"] == 1
    bare = detmap.evaluate(*written(tmp_path / "bare", "imagenet-det", **{"blacklist.txt": None}))
    assert "blacklist-missing" in {note.code for note in bare.notes}
    own = {"M1_det.txt": None, "M1.txt": UAVDT["M1_det.txt"]}
    assert detmap.evaluate(*written(tmp_path / "uavdt", "uavdt", **own)).metrics["mAP"] == 0.5


@pytest.mark.parametrize("left", [slice(0, 0), slice(2, 3)])
def test_regions_may_be_missing_or_on_other_images_than_boxes(tmp_path: Path, left: slice) -> None:
    lines = str(VISDRONE["annotations/a.txt"]).splitlines(keepends=True)[left]
    files = {"annotations/a.txt": "".join(lines), "results/a.txt": ""}
    result = detmap.evaluate(*written(tmp_path, "visdrone", **files))
    assert result.metrics["AP"] == 1.0
    no_regions = {"annotations/a.txt": "1,1,20,20,1,4,0,0\n", "sizes.txt": None}
    assert detmap.evaluate(*written(tmp_path / "b", "visdrone", **no_regions)).counts()["fp"] == 3
    none = {"M1_gt_ignore.txt": None}
    assert detmap.evaluate(*written(tmp_path / "c", "uavdt", **none)).counts()["fp"] == 3


def test_detections_of_any_format_are_dropped_in_regions(tmp_path: Path) -> None:
    truth = detmap.read_truth(written(tmp_path, "visdrone")[0], format="visdrone")
    arrays = ["a", "a"], [4, 4], [[61, 4, 10, 10], [1, 1, 20, 20]], [0.8, 0.9]
    detections = detmap.detections_from_arrays(truth, *arrays)
    assert detections.score.tolist() == [0.9]
    for place, n_regions in ((0, 1), (1, 0)):
        regions = truth.select_images(np.array([place])).regions
        assert len(regions) == n_regions


def test_the_rule_of_vid_refuses_keys_that_it_does_not_know(tmp_path: Path) -> None:
    arguments = written(tmp_path, "imagenet-vid")
    with pytest.raises(DetmapError, match="rule motion"):
        detmap.evaluate(*arguments, settings={"ap.integrator": "eleven_point"})
    with pytest.raises(DetmapError, match="not available under the rule motion"):
        detmap.evaluate(*arguments).curves()


@pytest.mark.parametrize("protocol", CASES)
def test_inspect_and_doctor_read_the_files_of_a_protocol(tmp_path: Path, protocol: str) -> None:
    truth, detections, _ = written(tmp_path, protocol)
    rules = ("-p", protocol)
    assert "ground truth" in run("inspect", truth, *rules).out
    assert "detections" in run("inspect", detections, "--truth", truth, *rules).out
    assert run("doctor", truth, detections, *rules).code in (0, 1)


def test_an_ambiguous_format_names_the_benchmarks_that_have_it(tmp_path: Path) -> None:
    truth, detections, _ = written(tmp_path, "visdrone")
    for command in (("inspect", truth), ("doctor", truth, detections)):
        outcome = run(*command)
        assert outcome.code == 2
        assert "or the benchmark: -p visdrone" in outcome.err


def test_missing_and_other_result_files_are_counted(tmp_path: Path) -> None:
    """In every reader of a folder with a result file per image, or per class."""
    annotations, results, _ = written(tmp_path / "visdrone", "visdrone")
    labels, found = test_kitti.sample(tmp_path / "kitti")
    frames, boxes = tmp_path / "gt", tmp_path / "dt"
    for name in ("I00001", "I00002"):
        test_people.caltech(frames, "person 1 2 30 80 0 0 0 0 0 0 0", name=name)
        test_people.caltech(boxes, "1 2 30 80 0.5", head="", name=name)
    polygon = "1 1 9 1 9 9 1 9"
    dota = test_rotated.dota(tmp_path / "dota", p=f"{polygon} ship 0\n{polygon} plane 0\n")
    task = test_rotated.results(tmp_path / "dota", ship=f"p .5 {polygon}\n", plane="")
    for folder, files, first in (
        (annotations, results, "b.txt"),
        (labels, found / "data", "b.txt"),
        (frames, boxes, "I00002.txt"),
        (dota, task, "Task1_plane.txt"),
    ):
        truth = detmap.read_truth(folder, **FORMATS.get(folder.name, {}))
        how = FORMATS.get(folder.name, {})
        whole = {note.code for note in detmap.read_detections(files, truth, **how).notes}
        assert not whole & {"file-missing", "file-unknown"}
        (files / first).unlink()
        (files / first.replace(".txt", "x9.txt")).write_text("")
        notes = {note.code: note for note in detmap.read_detections(files, truth, **how).notes}
        assert str(notes["file-missing"]).startswith("1 of the 2 "), folder
        assert notes["file-unknown"].count == 1, folder


FORMATS = {"annotations": {"format": "visdrone"}, "gt": {"format": "bbgt"}}


def test_files_of_other_sequences_and_fields_that_are_not_read_are_counted(tmp_path: Path) -> None:
    truth, results, _ = written(tmp_path, "uavdt")
    make.write(tmp_path / "M9_det.txt", "1,-1,10,10,50,40,.9,1,-1\n")
    table = detmap.read_truth(truth, format="uavdt")
    notes = {
        note.code: note for note in detmap.read_detections(results, table, format="uavdt").notes
    }
    assert "M9_det.txt" in notes["file-unknown"].text
    labels, found = test_kitti.sample(tmp_path / "kitti")
    file = found / "data" / "a.txt"
    file.write_text(file.read_text().replace("1.5 1.6", "1.5 tall"))
    notes = {
        note.code: note
        for note in detmap.read_detections(found, detmap.read_truth(labels), format="kitti").notes
    }
    assert notes["field-unread"].count == 1


def test_frames_and_boxes_that_are_missing_are_counted(tmp_path: Path) -> None:
    truth, found, protocol = written(tmp_path, "bdd100k")
    content = "\ufeff" + json.dumps([{"name": "b.jpg", "labels": [{"category": "car"}]}])
    found.write_text(content, encoding="utf-8")
    codes = {note.code: note.count for note in detmap.evaluate(truth, found, protocol).notes}
    assert (codes["frame-missing"], codes["box-missing"]) == (1, 1)
    found.write_text(json.dumps([{"name": "a.jpg", "label": []}, {"name": "b.jpg"}]))
    codes = {note.code: note.count for note in detmap.evaluate(truth, found, protocol).notes}
    assert codes["labels-missing"] == 2
    assert "frame-missing" not in codes


def test_images_of_visdrone_that_are_not_sorted_are_counted(tmp_path: Path) -> None:
    truth, found, protocol = written(tmp_path, "visdrone")

    def counts(**settings: object) -> list[int]:
        result = detmap.evaluate(truth, found, protocol, settings=settings)
        return [note.count for note in result.notes if note.code == "limit-unsorted"]

    assert counts() == [1]  # a: .5 .9 .8, of one category; b: .7 .6
    assert counts(**{"limits.order": "score", "evaluation.extra": []}) == []
    make.write(found / "b.txt", "1,1,9,9,.6,11,-1,-1\n10,10,30,10,.7,1,-1,-1\n")
    assert counts() == [2]  # in all categories together
    make.write(found / "a.txt", "1,1,20,20,.9,4,-1,-1\n40,40,20,20,.9,4,-1,-1\n")
    assert counts() == [1]


def test_frames_of_videos_are_listed_by_path_or_number(tmp_path: Path) -> None:
    files = {
        "Annotations/VID/w/0.xml": "<annotation></annotation>",
        "VID_val_frames.txt": "v/0 1\nv/1 2\nw/0 3\n",
        "motion_iou.mat": saved(
            {"motion_iou": [np.array([[0.95], [0.5]]), *[np.zeros((0, 0))] * 2]}, False
        ),
    }
    truth = detmap.read_truth(written(tmp_path, "imagenet-vid", **files)[0], format="imagenet-vid")
    for text in ("w/0\nv/1\n", "3\n2\n"):
        assert read_images(make.write(tmp_path / "list.txt", text), truth).tolist() == [2, 1]
    with pytest.raises(DataError, match=r"line 1: no image 'w/0 3' .*, path or id, one per line"):
        read_images(make.write(tmp_path / "list.txt", "w/0 3\n"), truth)


def test_a_class_that_kitti_does_not_have_is_counted(tmp_path: Path) -> None:
    labels, found = test_kitti.sample(tmp_path)
    notes = {note.code: note for note in detmap.evaluate(labels, found, "kitti").notes}
    assert notes["class-excluded"].count == 2
    assert "cat, guide dog" in notes["class-excluded"].text


def test_sizes_of_visdrone_may_be_an_option(tmp_path: Path) -> None:
    truth = written(tmp_path, "visdrone", **{"sizes.txt": None})[0]
    sizes = make.write(tmp_path / "s.csv", "image,width,height\na,100,90\nb,100,90\n")
    table = detmap.read_truth(truth, format="visdrone", image_sizes=sizes)
    assert table.images.width.tolist() == [100, 100]
    written(tmp_path, "visdrone")
    assert detmap.evaluate(tmp_path, tmp_path, "visdrone").metrics["AP"] == 0.75  # the data set


@pytest.mark.parametrize("protocol", ["openimages-v2", "bdd100k", "froc-luna16"])
def test_a_folder_where_the_benchmark_has_a_file(tmp_path: Path, protocol: str) -> None:
    (tmp_path / "notes").mkdir()
    with pytest.raises(DataError, match=r"a folder, but the benchmark's format .* is a file"):
        detmap.evaluate(tmp_path, tmp_path, protocol)


def test_labels_that_the_map_lacks_are_counted_and_items_may_have_commas(tmp_path: Path) -> None:
    labels = with_line(with_line(OPEN_IMAGES["labels.csv"], "a,/m/cow,0"), "b,/m/emu,1")
    items = str(OPEN_IMAGES["labelmap.pbtxt"]).replace("\n  id", ",\n  id").replace("}\n", "},\n")
    files = {"labels.csv": labels, "labelmap.pbtxt": items}
    result = detmap.evaluate(*written(tmp_path, "openimages-v2", **files))
    assert result.metrics["mAP"] == 0.5
    notes = {note.code: note for note in result.notes}
    assert notes["label-unlisted"].count == 2
    assert "/m/cow, /m/emu" in notes["label-unlisted"].text


def test_a_hierarchy_that_multiplies_rows_is_refused(tmp_path: Path, monkeypatch: Any) -> None:
    """Three boxes make five objects, three labels six."""
    labels = "ImageID,LabelName,Confidence\na,/m/cat,1\nb,/m/dog,1\nc,/m/cat,1\n"
    case = written(tmp_path, "openimages-v2", **{"labels.csv": labels})
    monkeypatch.setattr(label_hierarchy, "EXPANDED_PER_ROW", 0)
    for most, message in (
        (4, "hierarchy.json: makes 5 rows of 3"),
        (5, "labels.csv: makes 6 rows of 3"),
    ):
        monkeypatch.setattr(label_hierarchy, "MOST_EXPANDED", most)
        with pytest.raises(detmap.DataError, match=message):
            detmap.evaluate(*case)
    monkeypatch.setattr(label_hierarchy, "MOST_EXPANDED", 6)
    assert detmap.evaluate(*case)
