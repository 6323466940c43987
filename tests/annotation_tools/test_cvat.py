"""CVAT for images 1.1: boxes, what is read as the box around it, flags, and bad files."""

from pathlib import Path

import pytest

import detmap
from detmap import read_truth
from tests.annotation_tools.refusals import refuses
from tests.support import builders as make
from tests.support.format_samples import SAMPLES

BOX = {"label": "cat", "occluded": 0, "xtl": "1.50", "ytl": 2, "xbr": 11.5, "ybr": 22.25}


def box(content: str = "", **changes: object) -> str:
    sides = " ".join(f'{key}="{value}"' for key, value in {**BOX, **changes}.items())
    return f"<box {sides}>{content}</box>"


META = (
    "<meta><task><mode>annotation</mode><labels><label><name>dog</name><type>rectangle</type>"
    "</label><label><name>scene</name><type>tag</type></label>"
    "<label><name>paw</name><type>any</type><parent>dog</parent></label></labels></task></meta>"
)


def page(content: str, name: str = "a/1.jpg", meta: str = META) -> str:
    image = f'<image id="0" name="{name}" width="100" height="80">{content}</image>'
    return f"<annotations><version>1.1</version>{meta}{image}</annotations>"


def test_boxes_labels_and_flags(tmp_path: Path) -> None:
    more = '<attribute name="Is_Crowd">true</attribute><attribute name="age">7.5</attribute>'
    text = page(box(more) + box(occluded=1) + box().replace('occluded="0"', ""))
    truth = read_truth(make.write(tmp_path / "x.xml", text), attributes=["age"])
    assert truth.boxes.tolist() == [[1.5, 2, 10, 20.25]] * 3
    assert truth.categories.names == ("cat", "dog"), "a label without objects, but no tag, no part"
    assert truth.roles["occluded"].tolist() == [False, True, False]
    assert truth.roles["crowd"].tolist() == [True, False, False]
    assert truth.attributes["age"][0] == 7.5
    assert (truth.images.ids.tolist(), truth.images.files) == ([1], ("a/1.jpg",))
    assert (truth.images.width.tolist(), truth.notes) == ([100], ())


def test_occluded_objects_are_evaluated(tmp_path: Path) -> None:
    text = page(box(occluded=1))
    truth = read_truth(make.write(tmp_path / "annotations.xml", text))
    found = detmap.detections_from_arrays(
        truth, [1], [1], [[1.5, 2, 10, 20.25]], [0.5], class_names=truth.categories
    )
    for protocol in ("coco-bbox", "voc2012"):
        assert next(iter(detmap.evaluate(truth, found, protocol).metrics.values())) > 0.99


@pytest.mark.parametrize(
    ("shape", "around", "code"),
    [
        (
            '<box label="c" xtl="0" ytl="0" xbr="20" ybr="10" rotation="90"/>',
            (5, -5, 10, 20),
            "box-rotated",
        ),
        ('<polygon label="c" points="5.0,1.0;9.5,4.0;7.0,8.0"/>', (5, 1, 4.5, 7), "shape-around"),
        ('<ellipse label="c" cx="10" cy="20" rx="4" ry="3"/>', (6, 17, 8, 6), "shape-around"),
        (
            '<ellipse label="c" cx="10" cy="20" rx="4" ry="3" rotation="90"/>',
            (7, 16, 6, 8),
            "shape-around box-rotated",
        ),
        (
            '<mask label="c" rle="1, 2" left="3" top="4" width="5" height="6"/>',
            (3, 4, 5, 6),
            "shape-around",
        ),
    ],
)
def test_boxes_around_other_shapes(
    tmp_path: Path, shape: str, around: tuple[float, ...], code: str
) -> None:
    truth = read_truth(make.write(tmp_path / "x.xml", page(shape)))
    assert truth.boxes[0].tolist() == pytest.approx(around)
    assert {note.code: note.count for note in truth.notes} == dict.fromkeys(code.split(), 1)


def test_what_has_no_box_is_counted(tmp_path: Path) -> None:
    text = page('<points label="c" points="1,1"/><tag label="scene"/>' + box(outside=1))
    truth = read_truth(make.write(tmp_path / "x.xml", text))
    assert (len(truth), len(truth.images)) == (0, 1)
    assert [str(note) for note in truth.notes] == [
        "2 annotations have no box and are ignored: points, tag",
        "1 box is marked outside: ignored",
    ]


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (page(box() + "<Box/><cuboid2/>"), 2),
        (page(box()).replace("</annotations>", f"<Image>{box()}</Image></annotations>"), 2),
        (page(box()).replace("</annotations>", f"{box()}</annotations>"), 1),
    ],
)
def test_unknown_elements_are_counted(tmp_path: Path, text: str, count: int) -> None:
    (note,) = read_truth(make.write(tmp_path / "x.xml", text)).notes
    assert (note.code, note.count) == ("element-unknown", count)


def test_images_in_groups_are_read(tmp_path: Path) -> None:
    text = page(box()).replace("<image", "<group><image").replace("</image>", "</image></group>")
    truth = read_truth(make.write(tmp_path / "x.xml", text))
    assert (len(truth), len(truth.images), truth.notes) == (1, 1, ())


def test_a_folder_is_read_too(tmp_path: Path) -> None:
    path, _ = SAMPLES["cvat"](tmp_path)
    assert len(read_truth(path.parent)) == len(read_truth(path)) == 3


VIDEO = '<annotations><track id="4" label="cat"><box frame="0" outside="0"/></track></annotations>'
BAD = {
    VIDEO: "x.xml: track 4: a video track (export it as CVAT for images 1.1 or COCO 1.0",
    "<annotations/>": "x.xml: no image elements (export the task again",
    page("<Box/>"): "x.xml: no boxes, but unknown elements: Box (export the task again",
    "<annotations>": "x.xml: not XML: no element found...write or copy the file again",
    "<!DOCTYPE a [<!ENTITY b 'c'>]><annotations/>": "x.xml: defines XML entities",
    page("", name=""): "x.xml: image 0: no name",
    page("<box/>"): "image a/1.jpg, box[0], label: missing (every box names its class)",
    page(box() + box(xtl="x")): "image a/1.jpg, box[1], xtl: 'x' is not a number",
    page('<box label="cat" xbr="3"/>'): "box[0], xtl: missing (write pixels as plain numbers)",
    page(box(xtl="inf")): "box[0], xtl: 'inf' is not a number",
    page(box(xbr=0)): "box[0]: box 1.5 2 0 22.25 has a negative width",
    page(box('<attribute name="difficult">maybe</attribute>')): (
        "image a/1.jpg, box[0].difficult: 'maybe' is not a flag (write true or false)"
    ),
    page('<polygon label="c" points="1,2;3"/>'): "polygon[0], points: '1,2;3' are not points",
    page("").replace('width="100"', 'width="0"'): "x.xml: image a/1.jpg: a size of 0 x 80 pixels",
    page("").replace("</annotations>", "\n" + page("")[13:]): ("image a/1.jpg: occurs 2 times"),
}


@pytest.mark.parametrize("text", BAD)
def test_bad_files(tmp_path: Path, text: str) -> None:
    refuses(read_truth, make.write(tmp_path / "x.xml", text), says=BAD[text], format="cvat")


def test_annotations_are_no_detections(tmp_path: Path) -> None:
    path, _ = SAMPLES["cvat"](tmp_path)
    says = "annotations.xml: a file of annotations, without scores (give the detector's own output"
    refuses(detmap.read_detections, path, read_truth(path), says=says, format="cvat")
