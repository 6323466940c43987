"""Detections of one family of files on truth of the other: images, classes and boxes find each
other."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import detmap
from detmap import DataError, Detections, Truth
from detmap.core import protocol as protocols
from detmap.core.adapters.joining import join as joining
from detmap.core.tables import boxes_as
from tests.support import builders as make

STEMS = ("000003", "000012", "2008_000003")
NAMES = ("cat", "dog", "potted_plant")


def voc_truth(folder: Path, stems: tuple[str, ...] = STEMS) -> Truth:
    """One object of each class on each image."""
    objects = [make.voc_object(name) for name in NAMES]
    return detmap.read_truth(
        make.write_voc(folder / "truth", {stem: make.page(*objects) for stem in stems})
    )


def coco_truth(folder: Path, *images: dict[str, Any]) -> Truth:
    categories = [make.category(id=i, name=name) for i, name in zip((7, 3, 5), NAMES, strict=True)]
    return detmap.read_truth(
        make.write(
            folder / "gt.json", make.instances(images=images, annotations=[], categories=categories)
        )
    )


def read_results(folder: Path, truth: Truth, *records: dict[str, Any]) -> Detections:
    """Class ids count a VOC truth's classes."""
    return detmap.read_detections(
        make.write(folder / "dt.json", list(records)),
        truth,
        class_names=truth.categories if numbers_of_classes(truth, records) else None,
    )


def numbers_of_classes(truth: Truth, records: Any) -> bool:
    return truth.family == "voc" and not any(isinstance(r["category_id"], str) for r in records)


def read_text(folder: Path, truth: Truth, **files: str) -> Detections:
    return detmap.read_detections(make.write_voc_text(folder / "dt", files), truth)


def images_of(detections: Detections, truth: Truth) -> list[Any]:
    return list(truth.images.ids[detections.image].tolist())


def classes_of(detections: Detections, truth: Truth) -> list[str]:
    return [truth.categories.names[k] for k in detections.label]


# ---- COCO results on VOC truth


@pytest.mark.parametrize(
    "given, joined",
    [
        ([12, 3, 2008000003], ["000012", "000003", "2008_000003"]),
        ([12.0], ["000012"]),
        (["2008_000003", "000012"], ["2008_000003", "000012"]),
    ],
    ids=["integers", "integral floats", "stems"],
)
def test_results_name_images_by_stem_or_number(
    tmp_path: Path, given: list[Any], joined: list[str]
) -> None:
    truth = voc_truth(tmp_path)
    detections = read_results(tmp_path, truth, *(make.detection(image_id=i) for i in given))
    assert images_of(detections, truth) == joined


@pytest.mark.parametrize(
    "given", [[1, 3, 2], ["cat", "potted_plant", "dog"]], ids=["alphabetical numbers", "names"]
)
def test_results_name_a_voc_class_by_number_or_name(tmp_path: Path, given: list[Any]) -> None:
    truth = voc_truth(tmp_path)
    detections = read_results(
        tmp_path, truth, *(make.detection(image_id=3, category_id=k) for k in given)
    )
    assert classes_of(detections, truth) == ["cat", "potted_plant", "dog"]


def test_images_keep_their_numbers_in_any_order_of_stems(tmp_path: Path) -> None:
    truth = voc_truth(tmp_path, ("10", "9", "100"))
    detections = read_results(tmp_path, truth, *(make.detection(image_id=i) for i in (9, 10, 100)))
    assert images_of(detections, truth) == ["9", "10", "100"]


@pytest.mark.parametrize(
    "stems", [("000001", "img-7"), ("01", "1")], ids=["not all are numbers", "one number twice"]
)
def test_numbers_of_stems_that_are_not_all_numbers(tmp_path: Path, stems: tuple[str, ...]) -> None:
    with pytest.raises(DataError, match=r"image ids are integers .* but strings in"):
        read_results(tmp_path, voc_truth(tmp_path, stems), make.detection())


def test_results_name_the_class_of_a_coco_truth_by_its_name_too(tmp_path: Path) -> None:
    truth = coco_truth(tmp_path, make.image())
    detections = read_results(
        tmp_path, truth, *(make.detection(category_id=name) for name in ("dog", "cat"))
    )
    assert classes_of(detections, truth) == ["dog", "cat"]
    assert detections.notes == ()


def test_a_name_that_two_categories_share_names_none(tmp_path: Path) -> None:
    categories = [make.category(id=1), make.category(id=2)]
    truth = detmap.read_truth(
        make.write(tmp_path / "gt.json", make.instances(categories=categories))
    )
    assert len(read_results(tmp_path, truth, make.detection(category_id=2))) == 1
    with pytest.raises(DataError, match="not unique"):
        read_results(tmp_path, truth, make.detection(category_id="cat"))


# ---- VOC text on COCO truth


@pytest.mark.parametrize(
    "images, named",
    [
        (
            [
                make.image(id=9, file_name="000012.jpg"),
                make.image(id=12, file_name="train/000009.v2.png"),
            ],
            ["000012", "000009.v2"],
        ),
        (
            [
                make.without(make.image(id=9), "file_name"),
                make.without(make.image(id=12), "file_name"),
            ],
            ["9", "12"],
        ),
        ([make.image(id=9, file_name="12.jpg"), make.image(id=12, file_name="9.jpg")], ["12", "9"]),
        (
            [make.image(id=9, file_name="a/img.jpg"), make.image(id=12, file_name="b/img.jpg")],
            ["9", "12"],
        ),
        (
            [
                make.image(id=9, file_name="a\\b\\left.jpg"),
                make.image(id=12, file_name="a\\b\\right.jpg"),
            ],
            ["left", "right"],
        ),
    ],
    ids=["stem", "id", "stem before id", "id where stems are shared", "stem behind backslashes"],
)
def test_text_names_images_by_stem_or_id(
    tmp_path: Path, images: list[Any], named: list[str]
) -> None:
    truth = coco_truth(tmp_path, *images)
    detections = read_text(
        tmp_path, truth, test_dog="".join(f"{name} 0.5 1 1 2 2\n" for name in named)
    )
    assert images_of(detections, truth) == [9, 12]
    assert classes_of(detections, truth) == ["dog", "dog"]


def test_a_stem_that_two_images_share_names_none(tmp_path: Path) -> None:
    truth = coco_truth(
        tmp_path, make.image(id=1, file_name="a/img.jpg"), make.image(id=2, file_name="b/img.jpg")
    )
    with pytest.raises(DataError, match=r"two images of .* have the file stem 'img'"):
        read_text(tmp_path, truth, test_cat="img 0.5 1 1 2 2\n")


def test_text_of_a_coco_truth_may_be_of_any_split_but_of_one(tmp_path: Path) -> None:
    truth = coco_truth(tmp_path, make.image())
    line = "000001 0.5 1 1 2 2\n"
    assert classes_of(read_text(tmp_path / "one", truth, val_potted_plant=line), truth) == [
        "potted_plant"
    ]
    with pytest.raises(DataError, match="splits test, val"):
        read_text(tmp_path / "two", truth, val_cat=line, test_dog=line)


# ---- boxes


@pytest.mark.parametrize(
    "voc, coco",
    [
        ((1, 1, 1, 1), (0, 0, 1, 1)),
        ((11, 21, 30, 60), (10, 20, 20, 40)),
        ((1, 1, 500, 375), (0, 0, 500, 375)),
        ((0, -4, 3, 3), (-1, -5, 4, 8)),
        ((10, 5, 9, 4), (9, 4, 0, 0)),
        ((1.5, 2.25, 8.5, 16.75), (0.5, 1.25, 8, 15.5)),
    ],
)
def test_voc_boxes_count_from_1_to_the_last(
    voc: tuple[float, ...], coco: tuple[float, ...]
) -> None:
    assert boxes_as(np.array([voc], dtype=float), "voc", "xywh").tolist() == [list(coco)]
    assert boxes_as(np.array([coco], dtype=float), "xywh", "voc").tolist() == [list(voc)]


whole = st.integers(-1000, 1000)
side = st.integers(1, 500)


@pytest.mark.slow
@given(x1=whole, y1=whole, width=side, height=side)
def test_whole_pixels_convert_both_ways(x1: int, y1: int, width: int, height: int) -> None:
    voc = np.array([[x1, y1, x1 + width - 1, y1 + height - 1]], dtype=float)
    coco = boxes_as(voc, "voc", "xywh")
    x2, y2 = voc[0, 2:]
    assert coco.tolist() == [[x1 - 1, y1 - 1, x2 - x1 + 1, y2 - y1 + 1]]
    assert boxes_as(coco, "xywh", "voc").tolist() == voc.tolist()


@pytest.mark.parametrize("protocol", ["coco-bbox", "voc2012"])
def test_the_same_box_in_both_families_overlaps_wholly(tmp_path: Path, protocol: str) -> None:
    perfect = {"iou.thresholds": [1.0], "metrics": ["AP"]}
    voc = make.write_voc(
        tmp_path / "truth", {"000001": make.page(make.voc_object(box=(11, 21, 30, 60)))}
    )
    coco = make.write(
        tmp_path / "gt.json", make.instances(annotations=[make.annotation(bbox=[10, 20, 20, 40])])
    )
    results = make.write(tmp_path / "dt.json", [make.detection(bbox=[10, 20, 20, 40])])
    text = make.write_voc_text(tmp_path / "dt", {"test_cat": "000001 0.5 11 21 30 60\n"})
    for truth in (voc, coco):
        for detections in (results, text):
            names = {1: "cat"} if detections is results else None
            result = detmap.evaluate(
                truth, detections, protocol, settings=perfect, class_names=names
            )
            assert result.metrics["AP"] == pytest.approx(1)


# ---- the same data in both families


def numbers(result: detmap.Result) -> dict[str, Any]:
    """Everything but names of inputs."""
    shown = result.to_dict()
    return {part: shown[part] for part in ("metrics", "per_class", "counts")}


KNOWN = {name: protocols.load(name) for name in protocols.names()}
BOXES = [
    name
    for name, it in KNOWN.items()
    if it.iou.of == "boxes" and not it.files.truth and it.evaluation.rule == "matching"
    if not any(group.classes for group in it.groups)  # of a benchmark's own classes
]


def one_flag(name: str) -> bool:
    """Whether crowds and difficult objects are the same to a protocol."""
    neutral = dict(KNOWN[name].matching.neutral)
    return neutral.get("crowd") == neutral.get("difficult")


@pytest.mark.slow
@pytest.mark.parametrize("protocol", BOXES)
@pytest.mark.parametrize("detector", ["contours", "template"])
def test_the_sample_gives_equal_numbers_in_all_mixtures(detector: str, protocol: str) -> None:
    names = make.SHAPES / "instances_test.json"
    results = [
        numbers(
            detmap.evaluate(
                truth, make.SHAPES / "detections" / detections, protocol, class_names=given
            )
        )
        for truth in (make.SHAPES, make.SHAPES / "instances_test.json")
        for detections, given in ((detector, None), (f"{detector}.json", names))
    ]
    assert results[0] == results[1]
    assert results[2] == results[3]
    if one_flag(protocol):
        assert results[0] == results[2]
    else:  # the one flag of a family is not the other's: lvis-api does not read iscrowd
        assert results[0] != results[2]


def test_a_negative_side_is_refused_with_its_record() -> None:
    truth = detmap.truth_from_arrays([1], [1], [[1, 1, 2, 2]])
    row, score = np.zeros(2, dtype=np.int32), np.array([0.5, 0.4])
    origin = joining.Origin("found.txt", lambda i: f"found.txt: line {i + 1}")
    boxes = np.array([[1.0, 1, 2, 2], [5, 5, -3, 4]])
    with pytest.raises(DataError, match=r"found.txt: line 2: box .* has a negative width"):
        joining.joined(truth, row, row, boxes, score, box_format="xywh", origin=origin)
    boxes[1] = (5, 5, 0, 4)
    assert len(joining.joined(truth, row, row, boxes, score, box_format="xywh", origin=origin)) == 2


# ---- names before an upload

HASH = "0123456789abcdef0123456789abcdef"
RENAMED = {
    "plain detections": (["5dcaacec-a.jpg", f"b_jpg.rf.{HASH}.jpg"], ["a.jpg", "b"]),
    "plain truth": (["a.jpg", "b.jpg"], ["5dcaacec-a.jpg", f"b_png.rf.{HASH}"]),
}


@pytest.mark.parametrize("names, given", RENAMED.values(), ids=RENAMED)
@pytest.mark.parametrize("suffix", ["csv", "json"])
def test_names_before_an_upload(
    tmp_path: Path, names: list[str], given: list[str], suffix: str
) -> None:
    images = [make.image(id=i, file_name=name) for i, name in enumerate(names, 1)]
    truth = detmap.read_truth(make.write(tmp_path / "t.json", make.instances(images=images)))
    rows = "".join(f"{name},cat,0.5,1,2,3,4\n" for name in given)
    content: Any = f"image,class,score,x,y,w,h\n{rows}"
    if suffix == "json":
        content = [make.detection(image_id=name) for name in given]
    found = detmap.read_detections(make.write(tmp_path / f"dt.{suffix}", content), truth)
    assert found.image.tolist() == [0, 1]
    assert {note.code: note.count for note in found.notes}["image-renamed"] == 2


@pytest.mark.parametrize(
    "names, given",
    [
        (["5dcaacec-a", "5dcaaced-a"], ["a"]),  # two images
        (["a"], [f"a_jpg.rf.{HASH}", f"a_jpg.rf.{HASH[::-1]}"]),  # two copies of one
        (["5dcaacec-a"], ["5dcaaced-a"]),  # neither is plain
    ],
)
def test_ambiguous_names_before_an_upload(
    tmp_path: Path, names: list[str], given: list[str]
) -> None:
    page = make.page(make.voc_object())
    truth = detmap.read_truth(make.write_voc(tmp_path, dict.fromkeys(names, page)))
    rows = "".join(f"{name} 0.5 1 2 3 4\n" for name in given)
    text = make.write_voc_text(tmp_path / "dt", {"comp4_det_test_cat": rows})
    with pytest.raises(DataError, match="no image"):
        detmap.read_detections(text, truth, unknown="error")


def test_a_name_that_a_tool_wrote_as_in_a_url(tmp_path: Path) -> None:
    names = ["a0b1c2d3-my%20photo.jpg", "a0b1c2d4-100%25.jpg", "a0b1c2d5-plain.jpg"]
    images = [{"id": i, "file_name": name} for i, name in enumerate(names, 1)]
    box = {"bbox": [1, 1, 4, 4], "category_id": 1}
    objects = [box | {"id": i, "image_id": i, "area": 16, "iscrowd": 0} for i in (1, 2, 3)]
    tree = {"images": images, "annotations": objects, "categories": [{"id": 1, "name": "cat"}]}
    truth = detmap.read_truth(make.write(tmp_path / "truth.json", tree))
    rows = "".join(f"{name}.jpg,cat,.5,1,1,5,5\n" for name in ("my photo", "100%", "plain"))
    text = f"image,class,score,xmin,ymin,xmax,ymax\n{rows}"
    found = detmap.read_detections(make.write(tmp_path / "found.csv", text), truth)
    assert found.image.tolist() == [0, 1, 2]
    assert [(note.code, note.count) for note in found.notes] == [("image-renamed", 3)]
