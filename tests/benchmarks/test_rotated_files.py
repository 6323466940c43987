"""Files of rotated boxes: DOTA, HRSC2016, DIOR-R, roLabelImg, columns; wrong ones, and where."""

import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import detmap
from detmap import DataError, read_detections, read_truth
from detmap.core.overlaps.rotated_boxes import RotatedBoxes
from tests.support import builders as make

BOX = "0 0 10 0 10 5 0 5"
FAR = "50 50 60 50 60 55 50 55"
CSV = "image,class,difficult,cx,cy,w,h,angle\na,ship,0,5,2.5,10,5,0\nb,ship,1,5,2.5,10,5,0\n"
HRSC = (
    "<HRSC_Image><Img_SizeWidth>99</Img_SizeWidth><Img_SizeHeight>80</Img_SizeHeight><HRSC_Objects>"
    "<HRSC_Object><mbox_cx>5</mbox_cx><mbox_cy>2.5</mbox_cy><mbox_w>10</mbox_w><mbox_h>5</mbox_h>"
    "<mbox_ang>0</mbox_ang></HRSC_Object></HRSC_Objects></HRSC_Image>"
)
SIDES = "".join(
    f"<{axis}_{corner}>{value}</{axis}_{corner}>"
    for (axis, corner), value in zip(
        ((a, c) for c in ("left_top", "right_top", "right_bottom", "left_bottom") for a in "xy"),
        BOX.split(),
        strict=True,
    )
)
DIOR = f"<annotation><object><name>ship</name><robndbox>{SIDES}</robndbox></object></annotation>"

ROLABELIMG = (
    "<annotation><object><type>robndbox</type><name>ship</name><robndbox><cx>5</cx><cy>2.5</cy>"
    "<w>10</w><h>5</h><angle>0</angle></robndbox></object></annotation>"
)


def dota(folder: Path, **files: str) -> Path:
    for stem, text in files.items():
        make.write(folder / "labelTxt" / f"{stem}.txt", text)
    return folder / "labelTxt"


def results(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        make.write(folder / "results" / f"Task1_{name}.txt", text)
    return folder / "results"


def test_a_box_is_the_same_in_every_form(tmp_path: Path) -> None:
    head = "imagesource:GoogleEarth\ngsd:0.1\n"
    label = dota(tmp_path, a=f"{head}{BOX} ship 0\n", b=f"{BOX} ship 1", c="")
    make.write(tmp_path / "five.csv", CSV + "c,,,,,,,\n")
    columns = ",".join(f"{axis}{i}" for i in (1, 2, 3, 4) for axis in "xy")
    box = BOX.replace(" ", ",")
    eight = f"image,class,difficult,{columns}\na,ship,0,{box}\nb,ship,1,{box}\nc,,,,,,,,,,\n"
    make.write(tmp_path / "eight.csv", eight)
    hard = HRSC.replace("<mbox_cx", "<difficult>1</difficult><mbox_cx")
    for stem, text in (("a", HRSC), ("b", hard)):
        make.write(tmp_path / "hrsc" / "Annotations" / f"{stem}.xml", text)
        make.write(tmp_path / "dior" / f"{stem}.xml", DIOR)
        make.write(tmp_path / "ro" / f"{stem}.xml", ROLABELIMG)
    found = results(tmp_path, ship=f"a .9 {BOX}\nb .8 {BOX}\na .7 {FAR}\n")
    for place in (
        label,
        *(tmp_path / name for name in ("five.csv", "eight.csv", "hrsc", "dior", "ro")),
    ):
        truth = read_truth(place)
        assert truth.area.tolist() == [50, 50]
        assert truth.boxes.tolist() == [[0, 0, 10, 5]] * 2
        assert truth.difficult.tolist() == [False, place.name not in ("dior", "ro")]
        assert truth.categories.names == ("ship",)
        number = detmap.evaluate(truth, read_detections(found, truth)).counts()
        wanted = (2, 1, 0) if place.name in ("dior", "ro") else (1, 1, 1)
        assert (number["tp"], number["fp"], number["ignored"]) == wanted
    assert read_truth(tmp_path / "hrsc").images.width.tolist() == [99, 99]
    assert read_truth(label).images.ids.tolist() == ["a", "b", "c"]


def test_the_angle_of_rolabelimg_is_clockwise(tmp_path: Path) -> None:
    """A corner is where its canvas draws it: (cx - w/2 cos + h/2 sin, cy - h/2 cos - w/2 sin)."""
    make.write(tmp_path / "a.xml", ROLABELIMG.replace("<angle>0", "<angle>0.3"))
    shapes = read_truth(tmp_path).shapes
    assert isinstance(shapes, RotatedBoxes)
    across, down = 5 * np.cos(0.3) - 2.5 * np.sin(0.3), 2.5 * np.cos(0.3) + 5 * np.sin(0.3)
    assert np.isclose(shapes.corners().reshape(4, 2), [5 - across, 2.5 - down]).all(axis=1).any()


def test_splits_of_hrsc(tmp_path: Path) -> None:
    for stem in ("a", "b"):
        make.write(tmp_path / "FullDataSet" / "Annotations" / f"{stem}.xml", HRSC)
    make.write(tmp_path / "ImageSets" / "test.txt", "b\n")
    assert read_truth(tmp_path, split="test").images.ids.tolist() == ["b"]
    assert len(read_truth(tmp_path / "FullDataSet").images) == 2
    make.write(tmp_path / "ImageSets" / "val.txt", "c\n")
    with pytest.raises(DataError, match=r"val.txt: line 1: no annotation of image 'c'"):
        read_truth(tmp_path, split="val")
    with pytest.raises(DataError, match=r"no ImageSets/train.txt in or above it"):
        read_truth(tmp_path, split="train")


BAD_LABELS = {
    f"{BOX} ship 0 1": r"a.txt: line 2: 11 words: .*a class is one word",
    f"{BOX} ship x": r"a.txt: line 2, difficult: 'x' is no whole number",
    f"{BOX} ship -1": r"a.txt: line 2, difficult: '-1' is no whole number",
    f"{BOX[:-1]}x ship 0": r"a.txt: line 2, y4: 'x' is not a number",
    f"nan{BOX[1:]} ship 0": r"a.txt: line 2, x1: 'nan' is not a finite number",
    f"1e10{BOX[1:]} ship 0": r"a.txt: line 2: box 1e\+10 0 .* above a billion",
}


@pytest.mark.parametrize("line", BAD_LABELS)
def test_bad_labels(tmp_path: Path, line: str) -> None:
    place = dota(tmp_path, a=f"{BOX} ship 0\n{line}\n")
    with pytest.raises(DataError, match=BAD_LABELS[line]):
        read_truth(place, format="dota")


def test_short_lines_are_counted(tmp_path: Path) -> None:
    truth = read_truth(dota(tmp_path, a=f"gsd:1\n{BOX} ship\n1 2 3\n"))
    assert [(note.code, note.count) for note in truth.notes] == [("line-short", 1)]
    assert truth.difficult.tolist() == [False]
    with pytest.raises(DataError, match=r"no .txt files"):
        read_truth(make.write(tmp_path / "x" / "a.md", "").parent, format="dota")
    with pytest.raises(DataError, match=r"shapes 'masks' is not an option of DOTA"):
        read_truth(tmp_path / "labelTxt", shapes="masks")


BAD_RESULTS = {
    f"a .9 {BOX} 1": r"Task1_ship.txt: line 1: 11 words",
    f"a x {BOX}": r"line 1, score: 'x' is not a number",
    f"a .9 {BOX[:-1]}nan": r"line 1, y4: 'nan' is not a finite number",
    f"z .9 {BOX}": r"line 1: no image 'z'",
    f"a__0__1___2 .9 {BOX}": r"line 1: patch 'a__0__1___2' has no rate above 0",
    f"a__.__1___2 .9 {BOX}": r"line 1: patch 'a__.__1___2' has no rate above 0",
    f"a__1__1___2 .9 {BOX}\nz .9 {BOX}": r"line 2: 'z' is no patch, and other lines name patches",
    f"z__1__1___2 .9 {BOX}": r"line 1: no image 'z'",
    f"a__0.0000000001__1___2 .9 {FAR}": r"line 1: box 5.1e\+11 .* above a billion",
}


@pytest.mark.parametrize("line", BAD_RESULTS)
def test_bad_results(tmp_path: Path, line: str) -> None:
    truth = read_truth(dota(tmp_path, a=f"{BOX} ship 0\n"))
    with pytest.raises(DataError, match=BAD_RESULTS[line]):
        read_detections(results(tmp_path, ship=line), truth)


def test_unknown_classes_are_added_by_the_protocol(tmp_path: Path) -> None:
    place = dota(tmp_path, a=f"{BOX} ship 0\n", b="")
    found = results(tmp_path, ship=f"a .9 {BOX}\n", plane=f"a .9 {FAR}\n")
    with pytest.raises(DataError, match="class 'plane'"):
        read_detections(found, read_truth(place))
    result = detmap.evaluate(place, found, "dota")
    assert result.metrics == pytest.approx({"mAP": 0.5})
    assert "class-added" in {note.code for note in result.notes}
    with pytest.raises(DataError, match="class 'plane'"):
        detmap.evaluate(place, found, "dota", settings={"scope.unknown": "error"})
    assert detmap.evaluate(place, found, "dota", unknown="drop").metrics["mAP"] == pytest.approx(1)
    compared = detmap.compare(place, found, found, protocol="dota")
    assert len(compared.names) == 2


def test_images_of_detections_are_added_in_their_order(tmp_path: Path) -> None:
    """The same numbers as with a list of the images."""
    text = "image,class,cx,cy,w,h,angle\n5,ship,5,5,9,4,.5\n12,ship,5,5,9,4,.5\n"
    truth = make.write(tmp_path / "truth.csv", text)
    full = make.write(tmp_path / "full.csv", f"{text}7,,,,,,\n300,,,,,,\n")
    scores = ((7, 0.9), (12, 0.8), (300, 0.7), (5, 0.6))
    rows = "".join(f"{i},ship,{score},5,5,9,4,.5\n" for i, score in scores)
    found = make.write(tmp_path / "found.csv", f"image,class,score,cx,cy,w,h,angle\n{rows}")
    one, other = (detmap.evaluate(each, found, "dior-r") for each in (truth, full))
    assert one.metrics == other.metrics
    assert one.counts() == other.counts()
    strange = make.write(tmp_path / "s.csv", found.read_text().replace("300", "x"))
    with pytest.raises(DataError, match="on 2 images that it lacks: '7', 'x'"):
        detmap.evaluate(truth, strange, "dior-r")


def test_patches_are_merged_as_the_devkit_does(tmp_path: Path) -> None:
    truth = read_truth(dota(tmp_path, a=f"{BOX} ship 0\n", b=f"{BOX} ship 0\n"))
    lines = [
        "a__1__0___0 .5 0 0 10 0 10 10 0 10",
        "a__1__5___0 .9 0 0 10 0 10 10 0 10",  # at 5 0: IoU 1/3 with the first
        "a__1__14___0 .4 0 0 10 0 10 10 0 10",  # 1/19 with the second
        "a__0.5__0___0 .3 0 0 10 0 10 10 0 10",  # twice as large
        "b__1__0___0 .1 0 0 10 0 10 10 0 10",
    ]
    found = read_detections(results(tmp_path, ship="\n".join(lines)), truth)
    assert found.score.tolist() == [0.9, 0.4, 0.3, 0.1]
    assert found.boxes[:3].tolist() == [[5, 0, 10, 10], [14, 0, 10, 10], [0, 0, 20, 20]]
    assert [(note.code, note.count) for note in found.notes] == [("patches-merged", 5)]
    names = {f"a__1__{i}___0": f"{BOX} ship 0\n" for i in (0, 5)}
    patches = read_truth(dota(tmp_path / "of", **names))  # evaluated patch by patch
    kept = read_detections(results(tmp_path / "of", ship="\n".join(lines[:2])), patches)
    assert len(kept) == 2


def test_patches_merge_as_in_a_plain_loop(tmp_path: Path, monkeypatch: Any) -> None:
    from detmap.benchmarks.dota import patches
    from tests.benchmarks.test_rotated_overlaps import iou

    monkeypatch.setattr(patches, "AT_ONCE", 200)
    rng = np.random.default_rng(3)
    corners = detmap.core.overlaps.rotated_boxes.corners_of(rng.uniform(5, 30, (60, 5)))
    score = rng.random(60)
    kept: list[int] = []
    for i in np.argsort(-score).tolist():
        if all(iou(corners[j], corners[i]) <= 0.3 for j in kept):
            kept.append(i)
    label = np.zeros(60, dtype=np.int32)
    assert patches.kept(["a"] * 60, label, score, corners.reshape(-1, 8)).tolist() == sorted(kept)


BAD_XML = {
    HRSC.replace("<mbox_h>5</mbox_h>", ""): r"a.xml: HRSC_Object\[0\].mbox_h: missing",
    HRSC.replace(">2.5<", ">x<"): r"a.xml: HRSC_Object\[0\].mbox_cy: 'x' is not a number",
    HRSC.replace("<mbox_w>10", "<mbox_w>-1"): r"a.xml: HRSC_Object\[0\]: .* a negative width",
    HRSC[:-9]: r"a.xml: not XML",
    DIOR.replace("<name>ship</name>", ""): r"a.xml: object\[0\].name: missing",
    DIOR.replace("y_left_top", "y"): r"a.xml: object\[0\].y_left_top: missing",
    DIOR.replace("annotation", "x"): r"a.xml: the top element is <x>, not <annotation>",
}


@pytest.mark.parametrize("text", BAD_XML)
def test_bad_xml(tmp_path: Path, text: str) -> None:
    make.write(tmp_path / "a.xml", text)
    with pytest.raises(DataError, match=BAD_XML[text]):
        read_truth(tmp_path, format="rotated-xml")


BAD_CSV = {
    ",5,2.5,10,5,0\nb": (",5,2.5,10,5,x\nb", r"line 2, column angle"),
    ",10,5,0\nb": (",-10,5,0\nb", r"line 2: box 5 2.5 -10 5 0 has a negative width"),
    ",2.5,10,5,0\nb": (",,10,5,0\nb", r"line 2, column cy"),
}


@pytest.mark.parametrize("old", BAD_CSV)
def test_bad_columns(tmp_path: Path, old: str) -> None:
    new, message = BAD_CSV[old]
    file = make.write(tmp_path / "t.csv", CSV.replace(old, new))
    with pytest.raises(DataError, match=message):
        read_truth(file)
    with pytest.raises(DataError, match="the columns define rotated"):
        read_truth(make.write(file, CSV), box_format="xyxy")
    with pytest.raises(DataError, match="shapes 'masks' is not an option of CSV"):
        read_truth(file, shapes="masks")


FLIPS: dict[str, Any] = {
    "iou.of": ("polygons", "rotated"),
    "iou.comparison": (">", ">="),
    "matching.neutral": ({"difficult": "ignore"}, {"difficult": "count"}),
    "ap.integrator": ("eleven_point", "all_points"),
    "mean.undefined": ("zero", "skip"),
}


@pytest.mark.parametrize("key", FLIPS)
def test_every_key_moves_a_number(tmp_path: Path, key: str) -> None:
    slanted = "100 100 110 100 110 100.5 100 105"  # its rectangle is nearly twice as large
    objects = f"{BOX} ship 0\n{FAR} ship 1\n{slanted} ship 0\n"
    place = dota(tmp_path, a=objects, b=f"{BOX} ship 0\n")
    around = "100 100 110 100 110 109 100 109"
    lines = f"a .9 0 0 10 0 10 2.5 0 2.5\na .8 {FAR}\nb .7 {BOX}\na .6 {around}\n"
    found = results(tmp_path, ship=lines, plane=f"a .9 {FAR}\n")
    one, other = (
        detmap.evaluate(place, found, "dota", settings={key: value}).metrics["mAP"]
        for value in FLIPS[key]
    )
    assert one != other


def test_the_overlap_of_rotated_boxes_is_signed() -> None:
    columns = {"image": ["a"], "class": ["ship"], "cx": [5.0], "cy": [5.0], "w": [9.0], "h": [4.0]}
    signed = set()
    for angle in (0.5, -0.5):  # the same upright box and area
        truth = detmap.truth_from_arrays({**columns, "angle": [angle]})
        found = detmap.detections_from_arrays(truth, {**columns, "angle": [0.5], "score": [0.5]})
        signed.add(detmap.evaluate(truth, found).signature)
        plain = replace(truth, shapes=None)
        with pytest.raises(DataError, match="has no polygons, which dota compares"):
            detmap.evaluate(plain, found, "dota")
    assert len(signed) == 2


def test_what_happens_to_rotated_boxes_elsewhere(tmp_path: Path) -> None:
    place = dota(tmp_path, a=f"{BOX} ship 0\n", b="")
    found = results(tmp_path, ship=f"a .9 {BOX}\n")
    truth = read_truth(place)
    again = pickle.loads(pickle.dumps(truth))
    assert again.shapes.digest().tolist() == truth.shapes.digest().tolist()
    assert detmap.evaluate(place, found).signature.startswith("dota.1|")
    upright = detmap.evaluate(place, found, "coco-bbox")
    assert "rotated-upright" in {note.code for note in upright.notes}
    moved = detmap.explain(place, found, start="dota", end="dior-r")
    assert "overlap" in {step.name for step in moved.steps}
    with pytest.raises(DataError, match="dota compares polygons, coco-bbox boxes"):
        detmap.explain(place, found, start="dota", end="coco-bbox")
    diagnosed = detmap.diagnose(place, found, "dota")
    assert diagnosed.counts()["TP"] == 1
    assert diagnosed.same.tolist() == [1.0]


def test_a_folder_that_shows_no_format_is_that_of_the_protocol(tmp_path: Path) -> None:
    place, found = dota(tmp_path, a="", b="1 2\n"), results(tmp_path, ship="")
    assert detmap.evaluate(place, found, "dota").counts()["tp"] == 0
    with pytest.raises(DataError, match=r"no files such as Task1_ship.txt"):
        detmap.evaluate(place, place, "dota")
    with pytest.raises(DataError, match=r"Task1_.txt: names no class"):
        detmap.evaluate(place, make.write(found / "Task1_.txt", "").parent, "dota")


def test_names_of_result_files_in_any_case(tmp_path: Path) -> None:
    truth = read_truth(dota(tmp_path, a=f"{BOX} ship 0\n"))
    folder = make.write(tmp_path / "r" / "task1_ship.txt", f"a .5 {BOX}\n").parent
    assert len(read_detections(folder, truth)) == 1
    make.write(folder / "Task1_ship.txt", f"a .5 {BOX}\n")
    if len(list(folder.iterdir())) > 1:  # the file system has both
        with pytest.raises(DataError, match="two files of results of class 'ship'"):
            read_detections(folder, truth)
