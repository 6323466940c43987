"""Bad input: an error that says in which file, record and field, what is wrong, and how to fix it;
exit 2.

Each table below is one place where bad input comes from. A row is what is bad, and what the
error must say: the exact place, and a piece of the description and of the fix."""

import json
import math
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import detmap
from detmap import DetmapError
from tests.support import builders as make
from tests.support.running import Outcome, run, spawn
from tests.support.tier import drawn


def assert_refused(outcome: Outcome, where: str, what: str, fix: str) -> None:
    """Exit 2, nothing on stdout, and on stderr one error of exactly this place."""
    assert outcome.code == 2
    assert outcome.out == ""
    lines = [line for line in outcome.err.splitlines() if not line.startswith("note: doctor: ")]
    assert len(lines) == 2, outcome.err
    assert lines[0].startswith(f"detmap: error: {where}: "), outcome.err
    assert what in lines[0].removeprefix(f"detmap: error: {where}: "), outcome.err
    assert lines[1].startswith("  fix: "), outcome.err
    assert fix in lines[1], outcome.err
    assert len(lines[1]) > len("  fix: ")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with good files of both families: gt.json, dt.json, VOC2007, text."""
    make.write(tmp_path / "gt.json", make.instances())
    make.write(tmp_path / "dt.json", [make.detection(), make.detection()])
    make.write_voc(tmp_path / "VOC2007")
    make.write_voc_text(tmp_path / "text")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_good_files_are_good() -> None:
    assert run("eval", "gt.json", "dt.json").code == 0
    assert run("eval", "VOC2007", "text").code == 0


# ---- any JSON file

COMMA = 3 if sys.version_info >= (3, 13) else 4  # column of the comma, or of what follows it
NOT_JSON = {
    "not JSON": (b"hello", ": line 1, column 1", "not JSON", "JSON library"),
    "single quotes": (b"[\n{'image_id': 1}]", ": line 2, column 2", "not JSON", "JSON library"),
    "trailing comma": (b"[1,]", f": line 1, column {COMMA}", "not JSON", "JSON library"),
    "two lists": (b"[]\n[]", ": line 2, column 1", "not JSON: Extra data", "JSON library"),
    "JSON lines": (b'{"a": 1}\n{"a": 2}\n', ": line 2, column 1", "Extra data", "JSON library"),
    "truncated": (b'[{"id": 1,\n "categ', ": line 2, column 2", "Unterminated", "truncated"),
    "truncated after a record": (b'[{"id": 1},', ": line 1, column 12", "not JSON", "truncated"),
    "empty": (b"", "", "the file is empty", "file is"),
    "white space only": (b" \n\t\n", "", "the file is empty", "file is"),
    "not UTF-8": (b'[\n{"image_id": "\xff"]', ": line 2", "not UTF-8", "write the file as UTF-8"),
    "UTF-16": ("[]".encode("utf-16"), "", "text in UTF-16", "save it as plain text in UTF-8"),
    "binary": (b"\x89PMG\r\n\x1a\n\x00\x00", ": line 1", "not UTF-8", "write the file as UTF-8"),
    "an image": (b"\x89PNG\r\n\x1a\n\x00\x00", "", "an image (PNG)", "give the annotations"),
    "nested too deeply": (b"[" * 100_000 + b"]" * 100_000, "", "nested too deeply", "file is"),
    "digits": (b"[1,\n " + b"9" * 5000 + b"]", ": line 2, column 2", "5000 digits", "shorter"),
    "gzip": (b"\x1f\x8b\x08\0", "", "compressed by gzip", "unpack it"),
    "text after the end": (b"[]\x0c", ": line 1, column 3", "Extra data", "remove what follows"),
}


@pytest.mark.parametrize("file", ["gt.json", "dt.json"])
@pytest.mark.parametrize("content, place, what, fix", NOT_JSON.values(), ids=NOT_JSON)
def test_a_file_that_is_no_json(file: str, content: bytes, place: str, what: str, fix: str) -> None:
    make.write(Path(file), content)
    assert_refused(run("eval", "gt.json", "dt.json"), f"{file}{place}", what, fix)


@pytest.mark.parametrize("length", [250, 5000])
def test_a_single_value_is_cut_in_every_message(folder: Path, length: int) -> None:
    """Many places where a value of others gets into a message: at most 200 characters of it."""
    long = "x" * length
    makers: list[tuple[Any, ...]] = [
        (detmap.evaluate, "gt.json", "dt.json", long),
        (detmap.evaluate, f"{'d/' * 20}{long}", "dt.json"),
        (detmap.read_truth, {"images": long}),
        *(
            (detmap.evaluate, "gt.json", make.write(folder / f"{field}.json", [record]))
            for field in ("image_id", "category_id", "bbox", "score")
            for record in [make.detection(**{field: long})]
        ),
        *(
            (detmap.evaluate, make.write(folder / f"{name}.csv", text), "dt.json")
            for name, text in {
                "head": f"{long},class\n",
                "cell": f"image,class,x,y,w,h\na,b,{long},1,1,1\n",
                "twice": f"{long},{long},class\na,b,c\n",
            }.items()
        ),
        (detmap.errors.DataError, "where", f"{long!r} and {long!r}", f"write {long}, {long}"),
    ]
    for call, *arguments in makers:
        try:
            error = call(*arguments)
        except DetmapError as raised:
            error = raised
        assert isinstance(error, DetmapError), (call, arguments)
        assert "x" * 201 not in str(error), str(error)
        assert len(str(error)) < 2000
    error = detmap.errors.DataError("w" * 9999, f"begin{long * 20}end", "f" * 9999)
    assert len(str(error)) < 2000
    assert (error.what[:5], error.what[-3:]) == ("begin", "end")


def test_json_nested_too_deeply_for_readers_of_clients(folder: Path) -> None:
    from detmap.compat.coco_api import COCO
    from detmap.reproducibility.peers.boxes import per_image

    nest = "[" * 100_000 + "]" * 100_000
    whole = json.dumps(make.instances())
    for text in (nest, whole[:-1] + f', "more": {nest}}}', f'{{"images": [{{"id": 1, "x": {nest}'):
        file = make.write(folder / "deep.json", text)
        for read in (lambda f: COCO(f).dataset, lambda f: per_image(f, f)):
            with pytest.raises((DetmapError, ValueError)):  # ValueError: cut short, as pycocotools
                read(str(file))


# ---- COCO results


def det(**fields: Any) -> list[Any]:
    """Results whose second record has these fields."""
    return [make.detection(), make.detection(**fields)]


def number(text: str, field: str) -> str:
    """Results whose second record has this text for a number."""
    return json.dumps(det(**{field: "HERE"})).replace('"HERE"', text)


RESULTS_SHAPE = "list of records with image_id, category_id, bbox and score"
BOX_FIX = "[x, y, width, height]"
RESULTS: dict[str, tuple[Any, str, str, str]] = {
    "null": ("null", "", "the top level is null", RESULTS_SHAPE),
    "a number": ("3", "", "the top level is 3", RESULTS_SHAPE),
    "a string": ('"x"', "", 'the top level is "x"', RESULTS_SHAPE),
    "true": ("true", "", "the top level is true", RESULTS_SHAPE),
    "an object": ({}, ": annotations", "missing", RESULTS_SHAPE),
    "no list": ({"annotations": {"1": []}}, ": annotations", '{"1": []} is not', RESULTS_SHAPE),
    "ground truth": (make.instances(), ": annotations[0].score", "missing", "(ground truth)"),
    "a record that is null": ([make.detection(), None], "[1]", "null is not an", "image_id"),
    "a record that is a list": ([[1, 1, 0, 0, 1, 1, 0.5]], "[0]", "is not an", "a record has"),
    "wrapped": ({"annotations": det(score="x")}, ": annotations[1].score", '"x" is not', "finite"),
    "score 1e999": (number("1e999", "score"), "[1].score", "Infinity is not a", "finite number"),
    "NaN elsewhere": (det(mask={"rle": [1, math.nan]}), "[1].mask.rle[1]", "NaN is not", "leave"),
    "nested": (number("[" * 100_000 + "]" * 100_000, "x"), "", "nested too deeply", RESULTS_SHAPE),
    "image ids that are strings": (
        [make.detection(image_id="a")],
        "[0].image_id",
        "no image 'a' in gt.json; in all 1 detection is on 1 image that it lacks: 'a'",
        "such as 1",
    ),
    "wrapped ids that are strings": (
        {"annotations": [make.detection(image_id="01")]},
        ": annotations[0].image_id",
        "no image '01' in gt.json",
        "such as 1",
    ),
    "bbox with 1e999": (number("[0, 0, 1e999, 1]", "bbox"), "[1].bbox", "number 2", BOX_FIX),
    "images that the ground truth lacks": (
        [make.detection(image_id=i) for i in (1, 9, 2, 8, 7, 9, 6, 5, 4)],
        "[1].image_id",
        "no image 9 in gt.json; in all 7 detections are on 6 images that it lacks: 9, 8, 7, 6, 5"
        " and 1 more",
        "another split: the ground truth has 2 images such as 1",
    ),
}


LACKING = {"image_id": "image in", "category_id": "category in", "bbox": BOX_FIX, "score": "finite"}
RESULT_FIELDS = [
    *((field, None, "null is not", "") for field in LACKING),
    *((field, True, "true is not", "") for field in LACKING),
    *((field, math.nan, "NaN is not a finite number", "") for field in [*LACKING][::3]),
    *((field, -math.inf, "-Infinity is not a finite", "") for field in [*LACKING][:2]),
    ("score", "0.9", '"0.9" is not a number', "quotation"),
    ("score", [0.9], "[0.9] is not a number", "finite number"),
    ("score", 10**400, "is not a finite number", "finite number"),
    ("image_id", 1.5, "1.5 is not a whole number", "integers"),
    ("image_id", 2**64, "18446744073709551616 does not fit 64 bits", "smaller"),
    ("image_id", 1e300, "does not fit 64 bits", "smaller"),
    ("category_id", -(2**100), "does not fit 64 bits", "smaller"),
    ("image_id", [1], "[1] is not a number", "image in the ground truth"),
    ("image_id", "1", "'1', while record 0 has 1", "either integers or strings"),
    ("category_id", "cat", "'cat', while record 0 has 1", "either"),
    ("bbox", [1, 2, 3], "3 numbers where a box has 4", BOX_FIX),
    ("bbox", [1, 2, 3, 4, 0.9], "5 numbers where a box has 4", BOX_FIX),
    ("bbox", [], "0 numbers where a box has 4", BOX_FIX),
    ("bbox", {"x": 1}, '{"x": 1} is not a list of four numbers', BOX_FIX),
    ("bbox", "1 2 3 4", '"1 2 3 4" is not a list of four numbers', BOX_FIX),
    ("bbox", [1, 2, "3", 4], 'number 2: "3" is not a number', "without quotation marks"),
    ("bbox", [None, 2, 3, 4], "number 0: null is not a number", BOX_FIX),
    ("bbox", [1, False, 3, 4], "number 1: false is not a number", BOX_FIX),
    ("bbox", [1, 2, 3, math.nan], "number 3: NaN is not a finite number", BOX_FIX),
    ("bbox", [0, 0, 10**400, 1], "is not a finite number", BOX_FIX),
    ("bbox", [0, 0, 1e200, 1e200], "number 2: 1e+200 is too large", BOX_FIX),
    ("bbox", [1, 2, -3, 4], "width -3.0 is negative", "x2 - x1"),
    ("bbox", [1, 2, 3, -0.5], "height -0.5 is negative", "x2 - x1"),
]


@pytest.mark.parametrize("field", LACKING)
def test_a_result_without_a_field_is_refused(field: str) -> None:
    make.write(Path("dt.json"), [make.detection(), make.without(make.detection(), field)])
    outcome = run("eval", "gt.json", "dt.json")
    assert_refused(outcome, f"dt.json[1].{field}", "missing", LACKING[field])


@pytest.mark.parametrize("field, value, what, fix", RESULT_FIELDS)
def test_a_bad_field_of_a_result_is_refused(field: str, value: Any, what: str, fix: str) -> None:
    make.write(Path("dt.json"), det(**{field: value}))
    assert_refused(run("eval", "gt.json", "dt.json"), f"dt.json[1].{field}", what, fix)


@pytest.mark.slow
@pytest.mark.parametrize("content, place, what, fix", RESULTS.values(), ids=RESULTS)
def test_bad_results_are_refused_by_place(content: Any, place: str, what: str, fix: str) -> None:
    make.write(Path("dt.json"), content)
    assert_refused(run("eval", "gt.json", "dt.json"), f"dt.json{place}", what, fix)


def test_results_on_a_truth_without_images() -> None:
    make.write(Path("gt.json"), make.instances(images=[], annotations=[]))
    what = "no objects: read 0 images, 1 class, 0 objects"
    assert_refused(run("eval", "gt.json", "dt.json"), "gt.json", what, "annotated split")


def test_results_on_a_voc_truth_that_has_no_such_images() -> None:
    make.write(Path("dt.json"), [make.detection(image_id="img1", category_id="cat")])
    outcome = run("eval", "VOC2007", "dt.json")
    assert_refused(outcome, "dt.json[0].image_id", "no image 'img1' in VOC2007", "'000001'")


# ---- COCO truth


def second(group: str, **fields: Any) -> dict[str, Any]:
    """Instances whose second image, annotation or category has these fields."""
    builders = {"images": make.image, "annotations": make.annotation, "categories": make.category}
    builder = builders[group]
    return make.instances(**{group: [builder(), builder(**{"id": 2, **fields})]})


INSTANCES_SHAPE = "an object with images, annotations and categories"
TRUTH: dict[str, tuple[Any, str, str, str]] = {
    "null": ("null", "", "the top level is null", INSTANCES_SHAPE),
    "a number": ("-0.5", "", "the top level is -0.5", INSTANCES_SHAPE),
    "a results file": ([make.detection()], "", "the top level is a list, as of", INSTANCES_SHAPE),
    **{
        f"no {group}": (make.without(whole, group), f": {group}", "missing", INSTANCES_SHAPE)
        for whole in [make.instances()]
        for group in whole
    },
    "images null": (make.instances(images=None), ": images", "null is not a list", INSTANCES_SHAPE),
    "by id": (make.instances(annotations={"1": {}}), ": annotations", "is not", INSTANCES_SHAPE),
    "by name": (make.instances(categories=["cat"]), ": categories[0]", '"cat" is not', "id, name"),
    "image without id": (make.instances(images=[{}]), ": images[0].id", "missing", "integers"),
    **{
        f"annotation without {field}": (
            make.instances(annotations=[make.annotation(), make.without(make.annotation(), field)]),
            f": annotations[1].{field}",
            "missing",
            fix,
        )
        for field, fix in (("image_id", "images"), ("category_id", "categories"), ("bbox", BOX_FIX))
    },
    "image_id of another kind than the images": (
        make.instances(annotations=[make.annotation(image_id="1")]),
        ": annotations[0].image_id",
        "'1' where images[0].id is 1",
        "in both",
    ),
    "NaN elsewhere": (make.instances(info={"a": math.nan}), ": info.a", "NaN is not", "leave"),
}


@pytest.mark.parametrize("content, place, what, fix", TRUTH.values(), ids=TRUTH)
def test_bad_truth_is_refused_with_its_place(content: Any, place: str, what: str, fix: str) -> None:
    make.write(Path("gt.json"), content)
    assert_refused(run("eval", "gt.json", "dt.json"), f"gt.json{place}", what, fix)


TRUTH_FIELDS = [
    ("images", "id", None, "null is not a number", "integers"),
    ("images", "id", 1, "1 is the id of images[0] already", "unique"),
    ("images", "id", 1.0, "1 is the id of images[0]", "unique"),
    ("images", "id", "2", "'2', while record 0 has 1", "either"),
    ("images", "file_name", 5, "5 is not a string", "image file"),
    ("images", "width", "640", '"640" is not a number', "without quotation marks"),
    ("categories", "id", 1, "1 is the id of categories[0]", "unique"),
    ("categories", "id", "dog", '"dog" is not a number', "integers"),
    ("categories", "id", 2.5, "2.5 is not a whole number", "integers"),
    ("categories", "name", 7, "7 is not a string", "class"),
    ("annotations", "image_id", "1", "'1', while record 0 has 1", "either"),
    ("annotations", "image_id", 2**63, "does not fit 64 bits", "smaller"),
    ("annotations", "category_id", "cat", '"cat" is not a number', "categories"),
    ("annotations", "category_id", True, "true is not a number", "categories"),
    ("annotations", "bbox", [1, 2, 3], "3 numbers", BOX_FIX),
    ("annotations", "bbox", [1, 2, 3, 4, 5], "5 numbers", BOX_FIX),
    ("annotations", "bbox", None, "null is not a list of four numbers", BOX_FIX),
    ("annotations", "bbox", [0, 0, math.inf, 1], "number 2: Infinity", BOX_FIX),
    ("annotations", "bbox", [0, -1e300, 1, 1], "number 1: -1e+300 is too", BOX_FIX),
    ("annotations", "bbox", [5, 5, -1, 1], "width -1.0 is negative", BOX_FIX),
    ("annotations", "area", -4, "-4.0 is negative", "leave it out"),
    ("annotations", "area", math.nan, "NaN is not a finite number", "leave it out"),
    ("annotations", "area", "4", '"4" is not a number', "without quotation marks"),
    ("annotations", "iscrowd", "no", '"no" is not a number', "0 or 1"),
    ("annotations", "id", [1], "[1] is not a number", "leave it out"),
]


@pytest.mark.parametrize("group, field, value, what, fix", TRUTH_FIELDS)
def test_a_bad_field_of_truth_is_refused(
    group: str, field: str, value: Any, what: str, fix: str
) -> None:
    make.write(Path("gt.json"), second(group, **{field: value}))
    place = f"gt.json: {group}[1].{field}"
    assert_refused(run("eval", "gt.json", "dt.json"), place, what, fix)


# ---- VOC annotations

BOMB = (
    "<!DOCTYPE x [<!ENTITY a '"
    + "a" * 10
    + "'>"
    + "".join(
        f"<!ENTITY {now} '{f'&{before};' * 10}'>"
        for before, now in zip("abcdefgh", "bcdefghi", strict=True)
    )
    + "]>"
)


def obj(inner: str) -> str:
    """A page whose second object has this content."""
    return make.page(make.voc_object(), f"<object>{inner}</object>")


CAT, BOX = "<name>cat</name>", make.bndbox(1, 1, 2, 2)
PAGES: dict[str, tuple[str | bytes, str, str, str]] = {
    "broken": ("<annotation><object>", "", "not XML: no element found", "write or copy"),
    "mismatched tags": ("<annotation>\n</object>", "", "not XML: mismatched tag", "write or copy"),
    "empty": ("", "", "not XML: no element found", "write or copy"),
    "JSON": ("{}", "", "not XML", "write or copy"),
    "binary": (b"\xff\xd8\xff\xe0\x00", "", "not XML", "write or copy"),
    "not the encoding that it claims": (
        make.page("<name>é</name>").encode("latin-1"),
        "",
        "not XML",
        "write or copy",
    ),
    "an encoding that does not exist": (
        '<?xml version="1.0" encoding="utf-9"?><annotation/>',
        "",
        "utf-9",
        "write or copy",
    ),
    "an encoding that the parser lacks": (
        '<?xml version="1.0" encoding="gbk"?><annotation/>',
        "",
        "encodings",
        "write",
    ),
    "an entity bomb": (BOMB + make.page(make.voc_object("&i;")), "", "defines XML", "without a"),
    "an external entity": (
        "<!DOCTYPE x [<!ENTITY a SYSTEM 'file:///etc/hosts'>]>" + make.page(make.voc_object("&a;")),
        "",
        "defines XML entities",
        "without a",
    ),
    "another kind of XML": (
        "<annotations><image/></annotations>",
        "",
        "top element is",
        "VOC annotations",
    ),
    "no name": (obj(make.bndbox(1, 1, 2, 2)), ": object[1].name", "missing", "names its class"),
    "no word": (obj(f"<name> \n</name>{BOX}"), ": object[1].name", "missing", "names"),
    "no bndbox": (obj("<name>cat</name>"), ": object[1].bndbox", "missing", "xmin, ymin"),
    "no box of its own": (obj(f"{CAT}<part>{BOX}</part>"), ": object[1].bndbox", "missing", "xmin"),
    "no ymax": (
        obj(CAT + BOX.replace("<ymax>2</ymax>", "")),
        ": object[1].bndbox.ymax",
        "missing",
        "xmin, ymin, xmax",
    ),
    "difficult 2": (
        obj(f"{CAT}<difficult>2</difficult>{BOX}"),
        ": object[1].difficult",
        "'2' is neither 0 nor 1",
        "leave it out",
    ),
    "size": (make.page("<size><width>x</width></size>"), ": size.width", "'x' is not", "plain"),
}
CORNERS = [
    ((1, " ", 2, 2), ".ymin", "missing", "xmin"),
    (("left", 1, 2, 2), ".xmin", "'left' is not a number", "plain"),
    ((1, "1,5", 2, 2), ".ymin", "'1,5' is not a number", "plain numbers"),
    ((1, 1, "nan", 2), ".xmax", "'nan' is not a finite", "plain numbers"),
    ((1, 1, 2, "1e999"), ".ymax", "'1e999' is not a finite", "plain numbers"),
    ((10, 1, 5, 2), "", "10 1 5 2 has a negative width", "not less than xmin"),
    ((1, 9.5, 5, 2), "", "1 9.5 5 2 has a", "ymin"),
]


@pytest.mark.parametrize("box, place, what, fix", CORNERS)
def test_bad_corners_are_refused(box: tuple[Any, ...], place: str, what: str, fix: str) -> None:
    content, place = obj(f"{CAT}{make.bndbox(*box)}"), f": object[1].bndbox{place}"
    test_bad_annotations_are_refused_with_their_place(content, place, what, fix)


@pytest.mark.parametrize("content, place, what, fix", PAGES.values(), ids=PAGES)
def test_bad_annotations_are_refused_with_their_place(
    content: str | bytes, place: str, what: str, fix: str
) -> None:
    make.write(Path("VOC2007/Annotations/000002.xml"), content)
    where = f"VOC2007/Annotations/000002.xml{place}"
    assert_refused(run("eval", "VOC2007", "text"), where, what, fix)


# ---- VOC folders

LISTS: dict[str, tuple[str | bytes, str, str, str]] = {
    "an image twice": ("000001\n000002\n\n000001\n", "test.txt: line 4", "image 000001", "once"),
    "a name too long": (f"000001\n{'a' * 300}\n", "test.txt: line 2", "is not the", "file stem"),
    "no image": ("\n \n", "test.txt", "lists no image", "one file stem per line"),
    "not UTF-8": (b"000001\n\xff\n", "test.txt: line 2", "not UTF-8", "plain text"),
}


@pytest.mark.parametrize("content, place, what, fix", LISTS.values(), ids=LISTS)
def test_a_bad_list_of_a_split(content: str | bytes, place: str, what: str, fix: str) -> None:
    make.write(Path("VOC2007/ImageSets/Main/test.txt"), content)
    assert_refused(run("eval", "VOC2007", "text"), f"VOC2007/ImageSets/Main/{place}", what, fix)


def test_a_list_whose_images_all_lack_an_annotation() -> None:
    make.write(Path("VOC2007/ImageSets/Main/test.txt"), "000003\n000004\n")
    outcome = run("eval", "VOC2007", "text")
    what = "missing, as are the files of all 2"
    assert_refused(outcome, "VOC2007/Annotations/000003.xml", what, "belong to the list test")


OUTSIDE = ["../../x", "..", "a/../../x", "/etc/passwd", "..\\x", "C:\\x", "a\0b", "a\x1bb"]


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("stem", OUTSIDE)
def test_a_listed_image_that_is_no_name_of_a_file_in_the_folder(stem: str, many: bool) -> None:
    make.write(Path("x.xml"), make.page())
    stems = [f"{i:06}" for i in range(3, 73)] if many else []
    for each in stems:
        make.write(Path(f"VOC2007/Annotations/{each}.xml"), make.page())
    content = "\n".join(["000001", stem, *stems])
    make.write(Path("VOC2007/ImageSets/Main/test.txt"), content)
    where, what = "VOC2007/ImageSets/Main/test.txt: line 2", f"image {stem!r} is not the name"
    assert_refused(run("eval", "VOC2007", "text"), where, what, "stem")


def test_an_unknown_split_is_refused() -> None:
    make.write(Path("VOC2007/ImageSets/Main/trainval.txt"), "000001")
    outcome = run("eval", "VOC2007", "text", "--split", "tets")
    where = "VOC2007/ImageSets/Main/tets.txt"
    assert_refused(outcome, where, "no such split", "there are test, trainval")


def test_no_split_by_default() -> None:
    lists = Path("VOC2007/ImageSets/Main")
    (lists / "test.txt").rename(lists / "train.txt")
    (lists / "all.txt").write_bytes((lists / "train.txt").read_bytes())
    outcome = run("eval", "VOC2007", "text")
    assert_refused(outcome, str(lists), "neither test.txt nor val.txt", "split: all, train")


def test_a_split_of_a_coco_file() -> None:
    outcome = run("eval", "gt.json", "dt.json", "--split", "val")
    assert_refused(outcome, "gt.json", "split 'val' is not an option of COCO files", "remove split")


def test_a_devkit_of_several_years() -> None:
    for year in (2007, 2012):
        make.write_voc(Path(f"VOCdevkit/VOC{year}"))
    outcome = run("eval", "VOCdevkit", "text")
    assert_refused(outcome, "VOCdevkit", "2 data sets: VOC2007, VOC2012", "VOCdevkit/VOC2007")


# ---- VOC text

GOOD = "000001 1 1 1 2 2\n"
TEXT: list[tuple[dict[str, str | bytes], str, str, str]] = [
    ({"test_cta": GOOD}, "/comp4_det_test_cta.txt", "class 'cta' is not in", "mean 'cat'?"),
    ({"comp3_det_test_cat": "", "test_cat": ""}, "/comp4_det_test_cat.txt", "a second", "one"),
    ({"val_cat": "", "train_cat": ""}, "", "of the splits train, val, not of test", ""),
    ({"cat": "x\n"}, "", "no files such as comp4_det_test_aeroplane.txt", "one text file per"),
]
TEXT_LINES = [  # the file of a class, line and column, message, fix
    (f"{GOOD}\n000001 0.9 1 1\n", "3", "4 columns: '000001 0.9 1 1'", "image score x1 y1 x2"),
    ("000001 0.9 1 1 2 2 0", "1", "7 columns", "image score x1 y1 x2"),
    ("000001,0.9,1,1,2,2", "1", "1 columns", "image score x1"),
    (f"{GOOD}000001 high 1 1 2 2", "2, score", "'high' is not a number", "plain number"),
    ("000001 nan 1 1 2 2", "1, score", "'nan' is not", "plain"),
    ("\n000001 1 1 1 inf 2", "2, x2", "'inf' is not a", "plain"),
    ("000001 1 1 1e300 1 1e300", "1, y1", "'1e300'", ""),
    (b"000001 1 1 1 2 2\n\xe9 1 1 1 2 2", "2", "not UTF-8", ""),
    (
        f"{GOOD}\n000008 1 1 1 2 2\n000009 1 1 1 2 2\n000008 1 1 1 2 2",
        "3, image",
        "no image '000008' in VOC2007; in all 3 detections are on 2 images",
        "the ground truth has 2 images such as '000001'",
    ),
    ("000001.jpg 1 1 1 2 2", "1, image", "no image '000001.jpg' in VOC2007", "such as '000001'"),
]


@pytest.mark.parametrize("files, place, what, fix", TEXT)
def test_bad_voc_text_is_refused_with_its_line(
    files: dict[str, str | bytes], place: str, what: str, fix: str
) -> None:
    make.write_voc_text(Path("bad"), files)
    assert_refused(run("eval", "VOC2007", "bad"), f"bad{place}", what, fix)


@pytest.mark.parametrize("text, line, what, fix", TEXT_LINES)
def test_a_bad_line_of_text_is_refused(text: str | bytes, line: str, what: str, fix: str) -> None:
    place = f"/comp4_det_test_cat.txt: line {line}"
    test_bad_voc_text_is_refused_with_its_line({"test_cat": text}, place, what, fix)


def test_reversed_voc_corners_are_counted_or_refused() -> None:
    """x2 before x1: counted in a note, and refused under boxes.reversed="refuse"."""
    make.write_voc_text(Path("bad"), {"test_cat": "000001 1 1 1 2 2\n000001 1 9 1 2 2"})
    outcome = run("eval", "VOC2007", "bad")
    assert outcome.code == 0
    assert "note: 1 box has reversed corners" in outcome.err
    refused = run("eval", "VOC2007", "bad", "--set", 'boxes.reversed="refuse"')
    assert_refused(refused, "bad", "the first is 9.0, 1.0, 2.0, 2.0", "--fix boxes-reversed")


def test_a_class_file_that_is_a_folder() -> None:
    Path("bad/comp4_det_test_cat.txt").mkdir(parents=True)
    outcome = run("eval", "VOC2007", "bad")
    assert_refused(outcome, "bad/comp4_det_test_cat.txt", "a folder, not a file", "a regular file")


# ---- paths

LONG = "x" * 5000
CUT = f"{LONG[:100]} ... {LONG[:100]}"
WRONG_ORDER = "the two paths are in the wrong order"
PATHS = [
    ("nope.json dt.json", "nope.json", "no such file or folder", "check the path"),
    ("gt.json nope", "nope", "no such file or folder", "check the path"),
    (f"{LONG} dt.json", CUT, "cannot be read: File name too long", "check the path"),
    ("empty text", "empty", "no folder Annotations", "VOCdevkit/VOC2007"),
    ("VOC2007 empty", "empty", "no files such as comp4", "one text file per"),
    ("text text", "text", "no folder Annotations; truth expected", WRONG_ORDER),
    ("VOC2007 VOC2007", "VOC2007", "no files such as comp4", WRONG_ORDER),
    ("folder.json dt.json", "folder.json", "no folder Annotations", "VOC folder"),
    ("gt.json folder.json", "folder.json", "no files such as", "folder of VOC"),
    ("--truth-format coco VOC2007 text", "VOC2007", "coco is a file, this", "remove the format"),
    ("--detections-format voc gt.json dt.json", "dt.json", "voc is a folder", "remove the format"),
]


@pytest.mark.parametrize("arguments, where, what, fix", PATHS)
def test_bad_paths_are_refused_by_name(arguments: str, where: str, what: str, fix: str) -> None:
    Path("empty").mkdir()
    Path("folder.json").mkdir()
    assert_refused(run("eval", *arguments.split()), where, what, fix)


@pytest.mark.parametrize(
    "locked",
    [
        "gt.json",
        "dt.json",
        "VOC2007",
        "VOC2007/Annotations",
        "VOC2007/ImageSets/Main",
        "VOC2007/Annotations/000001.xml",
        "VOC2007/ImageSets/Main/test.txt",
        "text",
        "text/comp4_det_test_cat.txt",
    ],
)
def test_what_may_not_be_read(locked: str) -> None:
    arguments = ["gt.json", "dt.json"] if locked.endswith("json") else ["VOC2007", "text"]
    mode = Path(locked).stat().st_mode
    Path(locked).chmod(0)
    try:
        if os.access(locked, os.R_OK):
            pytest.skip("this user may read everything")
        outcome = run("eval", *arguments)
    finally:
        Path(locked).chmod(mode)
    assert (outcome.code, outcome.out) == (2, "")
    assert locked in outcome.err
    assert "Permission denied" in outcome.err
    assert "\n  fix: " in outcome.err


# ---- protocols and options

OWN = {
    "no such file": (None, "own.toml", "cannot be read: ", "a shipped protocol or a TOML file"),
    "not TOML": ("name = ", "own.toml", "not TOML: ", "detmap show coco-bbox"),
    "nested too deeply": ("name = " + "[" * 5000, "own.toml", "not TOML: ", "detmap show"),
    "a deep key": (".".join(["a"] * 20_000) + "=1", "own.toml", "line 1: a key with more", "show"),
    "too large": ("#" * 300_000, "own.toml", "has 300000 bytes", "a shipped protocol"),
    "not UTF-8": (b"name = '\xff'", "own.toml", "cannot be read: ", "a shipped protocol or a"),
    "empty": ("", "own.toml: name", "missing", "detmap show coco-bbox"),
    "an unknown key": ("nmae = 'x'", "own.toml: nmae", "unknown key", "did you mean 'name'?"),
}


PROTOCOL_READERS = (["eval", "gt.json", "dt.json", "-p"], ["show"])


@pytest.mark.parametrize("command", PROTOCOL_READERS, ids=["eval", "show"])
@pytest.mark.parametrize("content, where, what, fix", OWN.values(), ids=OWN)
def test_a_bad_protocol_of_ones_own(
    command: list[str], content: str | bytes | None, where: str, what: str, fix: str
) -> None:
    if content is not None:
        make.write(Path("own.toml"), content)
    assert_refused(run(*command, "own.toml"), where, what, fix)


@pytest.mark.parametrize("command", PROTOCOL_READERS, ids=["eval", "show"])
@pytest.mark.parametrize("name, fix", [("coco-box", "mean 'coco-bbox'?"), ("", "there are ")])
def test_an_unknown_protocol_is_refused(command: list[str], name: str, fix: str) -> None:
    assert_refused(run(*command, name), "protocol", f"no protocol {name!r}", fix)


SETTINGS = [  # setting, place if it is not the key, message, fix
    ("limits.max_dets", "--set limits.max_dets", "no value", "key=value"),
    ("limit.max_dets=1", "", "unknown key", "did you mean"),
    ("limits.max_det=1", "", "unknown key", "legal: limits.max_dets"),
    ("max_dets=[1]", "", "unknown key", "limits.max_dets"),
    ("boxes.extent.x=1", "", "unknown key", "boxes.extent"),
    ("=1", "", "unknown key", "legal: "),
    ("boxes=1", "", "1 is not a table", "boxes."),
    ("boxes.extent=exclusive", "", '"exclusive" is not legal', "one of continuous,"),
    ("limits.max_dets=[0, 1]", "", "[0,1] is not legal", "positive whole numbers"),
    ("limits.max_dets=[1.5]", "", "[1.5] is not legal", "positive"),
    (f"limits.max_dets=[{10**30}]", "", "is not legal", "positive"),
    ("iou.thresholds=[0.5, 1.5]", "", "[0.5,1.5] is not legal", "(0, 1]"),
    ("iou.thresholds=0", "", "0 is not legal", "(0, 1]"),
    ("iou.thresholds=[0.7, 0.5]", "", "is not legal", "ascending"),
    ("iou.thresholds=0.01:0.01:0.99", "", "is not legal", "at most 64"),
    ("ap.grid=0:0:1", "", '"0:0:1" is not', "start:step:stop"),
    ("ap.grid=0:1e-300:1", "", "is not legal", "at most 100001"),
    ("ap.grid=[0, nan]", "", "is not legal", "ascending"),
    ("ap.grid=a:b:c", "", "is not legal", "start:step:stop"),
    ("iou.thresholds=", "", '"" is not', "ascending"),
    ("iou.thresholds=" + "[" * 5000, "", "is not legal", "ascending"),
    ("subsets.tiny.area=5", "--set: subsets.tiny", "is not legal", "[low, high]"),
    ("subsets.tiny.area=[9, 5]", "--set: subsets.tiny", "is not legal", "low <= high"),
    ("subsets={'a b'={area=[0, 5]}}", "", "is not legal", "named tables of ranges"),
    ("subsets={}", "", "{} is not legal", "named tables"),
    ("areas.tiny=[0,256]", "", "areas is now subsets", "subsets.tiny.area"),
    ("metrics=AP", "", '"AP" is not', "a list of"),
    ('metrics=["!"]', "", "no metric '!'", "AP50"),
    ("version=2", "", "identifies the protocol", "TOML file of your own"),
]


@pytest.mark.parametrize("setting, where, what, fix", SETTINGS)
def test_bad_settings_are_refused_by_key(setting: str, where: str, what: str, fix: str) -> None:
    outcome = run("eval", "gt.json", "dt.json", "--set", setting)
    assert_refused(outcome, where or f"--set: {setting.partition('=')[0]}", what, fix)


def test_parity_with_what_pycocotools_cannot_do() -> None:
    outcome = run("parity", "gt.json", "dt.json", "--set", "iou.comparison=>")
    assert_refused(outcome, "--set: iou.comparison", "pycocotools has no setting", "iou.thresholds")


OPTIONS = [
    (["--iou", "0.52"], "iou", "0.52 is not", "0.5:0.05:0.95"),
    (["-o", "no/such/file"], "no/such/file", "there is no folder of that name", "create the"),
    (["-o", "VOC2007"], "VOC2007", "is a folder", "give the path"),
]


@pytest.mark.parametrize("options, where, what, fix", OPTIONS)
def test_bad_options_are_refused(options: list[str], where: str, what: str, fix: str) -> None:
    assert_refused(run("eval", "gt.json", "dt.json", *options), where, what, fix)


EVAL = "eval gt.json dt.json"
USAGE = [
    ("nonsense", "no command 'nonsense'"),
    ("eval gt.json", "DETECTIONS is missing"),
    ("doctor", "TRUTH is missing"),
    (f"{EVAL} --fast", "no option --fast"),
    (f"{EVAL} --format none", "no value 'none'"),
    (f"{EVAL} --truth-format none", "no value 'none'"),
    (f"{EVAL} --iou half", "'half' is not a number"),
    ("parity gt.json dt.json --format none", "no value 'none'"),
]


@pytest.mark.parametrize("arguments, what", USAGE)
def test_wrong_usage_is_exit_2(arguments: str, what: str) -> None:
    outcome = run(*arguments.split())
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith(("usage: detmap", "detmap: error: "))
    assert what in outcome.err


# ---- in a process of its own


@pytest.mark.slow
def test_a_process_ends_with_the_error_and_no_traceback() -> None:
    make.write(Path("dt.json"), det(bbox=[1, 2, 3]))
    assert_refused(spawn("eval", "gt.json", "dt.json"), "dt.json[1].bbox", "3 numbers", BOX_FIX)
    make.write(Path("text/comp4_det_test_cow.txt"), "")
    outcome = spawn("eval", "VOC2007", "text")
    assert_refused(outcome, "text/comp4_det_test_cow.txt", "class 'cow'", "")


# ---- files that have been damaged

NUMBERS = [b"-", b"e9", b"e307", b"9" * 20, b"9" * 400, b"NaN", b" 1", b"1e-400", b".5", b"_"]
MARKS = [b"null", b"true", b"[", b"{}", b'"', b",", b"<", b"<object>", b"&lt;", b"&x;", b"\\ud800"]
PIECES = [b"", b"\0", b"\xff", b"\xed\xa0\x80", b"\n", b"\x85", b" ", *NUMBERS, *MARKS]
edits = st.lists(
    st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 12), st.sampled_from(PIECES)),
    min_size=1,
    max_size=4,
)


def damaged(data: bytes, changes: list[tuple[float, int, bytes]]) -> bytes:
    """The data with pieces taken out and others put in their place."""
    for at, length, piece in changes:
        start = int(at * len(data))
        data = data[:start] + piece + data[start + length :]
    return data


VICTIMS = ["gt.json", "dt.json", "text/comp4_det_test_cat.txt"]
VICTIMS += [f"VOC2007/{name}" for name in ("Annotations/000001.xml", "ImageSets/Main/test.txt")]


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=drawn(60))
@pytest.mark.parametrize("victim", VICTIMS)
@given(changes=edits)
def test_a_damaged_file_gives_a_result_or_an_error_of_ours(
    folder: Path, victim: str, changes: list[tuple[float, int, bytes]]
) -> None:
    path = folder / victim
    sound = path.read_bytes()
    inputs = ("gt.json", "dt.json") if victim.endswith(".json") else ("VOC2007", "text")
    path.write_bytes(damaged(sound, changes))
    result = error = None
    try:
        result = detmap.evaluate(*(folder / name for name in inputs))
    except DetmapError as refused:
        error = refused
    finally:
        path.write_bytes(sound)
    if result is not None:
        assert all(0 <= value <= 1.001 or np.isnan(value) for value in result.metrics.values())
    if error is not None:
        assert str(folder) in error.where
        assert error.what
        assert error.fix


def test_the_first_of_a_million_wrong_records_is_named_without_looking_at_the_rest(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It took 3.6 seconds, of which the place of every value took most."""
    from detmap.core.adapters.coco import record_errors as coco_errors

    monkeypatch.setattr(coco_errors, "_leaves", None)
    Path("dt.json").write_text(f"[{'null,' * 1000}null]")
    with pytest.raises(DetmapError, match=r"dt\.json\[0\]: null is not an object"):
        detmap.evaluate("gt.json", "dt.json")


def test_notes_and_errors_name_five_classes_and_count_the_rest() -> None:
    """With 100,000 classes a note was 1 MB."""
    classes = {i: f"class {i}" for i in range(1, 2001)}
    box = [[0.0, 0.0, 9.0, 9.0]]
    truth = detmap.truth_from_arrays([1], [1], box, images=[1], categories=classes)
    result = detmap.evaluate(truth, detmap.detections_from_arrays(truth, [1], [1], box, [0.9]))
    assert max(len(str(note)) for note in result.notes) < 300
    assert "class 6 and 1,994 more" in str(result)
    with pytest.raises(DetmapError, match="class 5 and 1,995 more"):
        result.curve("class 0", 0.5)


@pytest.mark.parametrize("depth", [500, 900, 5000, 100_000])
def test_deep_slices_are_refused_by_file(depth: int) -> None:
    make.write(Path("deep.json"), '{"a": ' + '{"b": ' * depth + "1" + "}" * (depth + 1))
    outcome = run("eval", "gt.json", "dt.json", "--slices", "deep.json")
    assert outcome.code == 2
    assert "deep.json" in outcome.err
