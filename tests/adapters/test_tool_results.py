"""COCO results as tools write them: each accepted shape has the number of its plain conversion,
each trap is an error or a note."""

import gzip
import json
import unicodedata
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import detmap
from detmap import DataError
from detmap.core.adapters.coco import scan_json as coco_scan
from tests.support import builders as make
from tests.support.running import run

TRUTH = make.SHAPES / "instances_test.json"
PLAIN = make.SHAPES / "detections" / "contours.json"
ROWS: list[dict[str, Any]] = json.loads(PLAIN.read_text())
INSTANCES = json.loads(TRUTH.read_text())
FILE = {each["id"]: each["file_name"] for each in INSTANCES["images"]}
CLASS = {each["id"]: each["name"] for each in INSTANCES["categories"]}


def stem(row: dict[str, Any]) -> str:
    return Path(FILE[row["image_id"]]).stem


def named(change: Callable[[dict[str, Any]], dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**row, **change(row)} for row in ROWS]


def without_id(row: dict[str, Any]) -> dict[str, Any]:
    return {"file_name": FILE[row["image_id"]], **{k: v for k, v in row.items() if k != "image_id"}}


def renumbered() -> dict[str, Any]:
    """An instances object whose images and categories are counted otherwise."""
    images = {i: n + 500 for n, i in enumerate(reversed(FILE))}
    classes = {i: n for n, i in enumerate(reversed(CLASS))}
    return {
        "images": [{"id": images[i], "file_name": f"export/{name}"} for i, name in FILE.items()],
        "categories": [{"id": classes[i], "name": name} for i, name in CLASS.items()],
        "annotations": [
            {**row, "image_id": images[row["image_id"]], "category_id": classes[row["category_id"]]}
            for row in ROWS
        ],
    }


def mask(row: dict[str, Any]) -> list[list[float]]:
    x, y, w, h = row["bbox"]
    return [[x, y, x + w, y, x + w, y + h, x, y + h]]


JOINED, NAMED = "image-joined", "image-by-file-name"
SHAPES: dict[str, tuple[Any, tuple[str, ...]]] = {
    "file stems": (named(lambda row: {"image_id": stem(row)}), (JOINED,)),
    "file names": (named(lambda row: {"image_id": FILE[row["image_id"]]}), (JOINED,)),
    "paths": (named(lambda row: {"image_id": f"/data/test/{FILE[row['image_id']]}"}), (JOINED,)),
    "paths of another system": (
        named(lambda row: {"image_id": f"C:\\test\\{FILE[row['image_id']]}"}),
        (JOINED,),
    ),
    "names of converted images": (named(lambda row: {"image_id": f"{stem(row)}.png"}), (JOINED,)),
    "ids as strings": (named(lambda row: {"image_id": str(row["image_id"])}), (JOINED,)),
    "file_name in place of image_id": ([without_id(row) for row in ROWS], (JOINED,)),
    "file_name beside image_id": (named(lambda row: {"file_name": FILE[row["image_id"]]}), ()),
    "file_name beside a count of one's own": (
        named(lambda row: {"file_name": FILE[row["image_id"]], "image_id": row["image_id"] + 500}),
        (NAMED,),
    ),
    "class names": (named(lambda row: {"category_id": CLASS[row["category_id"]]}), ()),
    "category_name": (
        [
            {
                **{k: v for k, v in row.items() if k != "category_id"},
                "category_name": CLASS[row["category_id"]],
            }
            for row in ROWS
        ],
        (),
    ),
    "annotations": ({"annotations": ROWS}, ()),
    "predictions": ({"predictions": ROWS}, ()),
    "instances of the same numbers": ({**INSTANCES, "annotations": ROWS}, ()),
    "instances of other numbers": (renumbered(), (NAMED, "class-joined")),
    "JSON lines": ("".join(f"{json.dumps(row)}\n" for row in ROWS), ()),
    "JSON lines with names": (
        "".join(f"{json.dumps(without_id(row))}\r\n" for row in ROWS),
        (JOINED,),
    ),
    "detectron2": (named(lambda row: {"segmentation": mask(row)}), ("shape-and-box",)),
    "mmdetection": (
        [{k: row[k] for k in ("image_id", "bbox", "score", "category_id")} for row in ROWS],
        (),
    ),
}
NAMES = {"detectron2": "coco_instances_results.json", "mmdetection": "results.bbox.json"}


def numbers(result: detmap.Result) -> Any:
    shown = result.to_dict()
    return [shown[part] for part in ("metrics", "per_class", "counts")], result.signature


@pytest.fixture(params=["small", pytest.param("large", marks=pytest.mark.slow)])
def lane(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of any size are large for the fast lane, or small."""
    if request.param == "large":
        monkeypatch.setattr(coco_scan, "LEAST_SIZE", 0)


@cache
def of_plain_file(least_size: int) -> detmap.Result:
    """Of the lane that this size leads to."""
    return detmap.evaluate(TRUTH, PLAIN)


@pytest.mark.parametrize(
    "packed", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["plain", "gz"]
)
@pytest.mark.parametrize("name", SHAPES)
def test_a_shape_has_the_number_of_its_plain_conversion(
    tmp_path: Path, lane: None, name: str, packed: bool
) -> None:
    content, codes = SHAPES[name]
    file = make.write(tmp_path / NAMES.get(name, "results.json"), content)
    if packed:
        make.write(tmp_path / f"{file.name}.gz", gzip.compress(file.read_bytes(), 1))
        file = tmp_path / f"{file.name}.gz"
    plain = of_plain_file(coco_scan.LEAST_SIZE)
    found = detmap.evaluate(TRUTH, file)
    assert numbers(found) == numbers(plain)
    new = [n for n in found.notes if n not in plain.notes and n.code not in ("box-outside",)]
    assert {note.code for note in new} == set(codes), new


def test_truth_may_be_packed(tmp_path: Path) -> None:
    truth = make.write(tmp_path / "gt.json.gz", gzip.compress(TRUTH.read_bytes()))
    assert numbers(detmap.evaluate(truth, PLAIN)) == numbers(detmap.evaluate(TRUTH, PLAIN))


def test_names_of_classes_decide_on_own_classes(tmp_path: Path) -> None:
    file = make.write(tmp_path / "dt.json", renumbered())
    plain = detmap.evaluate(make.SHAPES, PLAIN, class_names=CLASS)
    assert numbers(detmap.evaluate(make.SHAPES, file)) == numbers(plain)


# --- numbers of stems


def numbered(folder: Path, *files: str, first: int = 100) -> Path:
    images = [make.image(id=first + i, file_name=name) for i, name in enumerate(files)]
    tree = make.instances(images=images, annotations=[make.annotation(image_id=first)])
    return make.write(folder / "gt.json", tree)


def test_numbers_of_stems_where_no_id_is_one(tmp_path: Path, lane: None) -> None:
    """As Ultralytics writes them: the stem as a number where it is one."""
    truth = numbered(tmp_path, "a/000000000007.jpg", "a/000000000005.jpg")
    file = make.write(tmp_path / "dt.json", [make.detection(image_id=i) for i in (5, 7)])
    found = detmap.read_detections(file, detmap.read_truth(truth))
    assert found.image.tolist() == [1, 0]
    assert [(note.code, note.count) for note in found.notes] == [(JOINED, 2)]


def test_a_number_that_is_an_id_is_that_id(tmp_path: Path, lane: None) -> None:
    truth = detmap.read_truth(numbered(tmp_path, "2.jpg", "1.jpg", first=1))
    plain = make.write(tmp_path / "dt.json", [make.detection(image_id=1)])
    assert detmap.read_detections(plain, truth).image.tolist() == [0]
    mixed = make.write(tmp_path / "dt.json", [make.detection(image_id=i) for i in (1, 7)])
    with pytest.raises(DataError, match="no image 7"):
        detmap.read_detections(mixed, detmap.read_truth(numbered(tmp_path, "7.jpg", first=1)))


def test_the_number_of_a_stem_may_be_the_id_of_another_image(tmp_path: Path) -> None:
    """Ultralytics writes it beside the name; the id of the file's own images decides nothing."""
    truth = detmap.read_truth(numbered(tmp_path, "002.jpg", "001.jpg", first=1))
    rows = [make.detection(image_id=i, file_name=f"00{i}.jpg") for i in (1, 2)]
    own = [{"id": i, "file_name": f"00{i}.jpg"} for i in (1, 2)]
    plain = [make.without(row, "file_name") for row in rows]
    for content in (rows, {"images": own, "annotations": plain}):
        found = detmap.read_detections(make.write(tmp_path / "dt.json", content), truth)
        assert found.image.tolist() == [1, 0]
        assert [(note.code, note.count) for note in found.notes] == [(NAMED, 2)]


def test_an_id_and_a_name_of_two_images_name_both_fields(tmp_path: Path) -> None:
    """pycocotools reads the id alone; which of the two is right, the file does not say."""
    truth = detmap.read_truth(numbered(tmp_path, "a.jpg", "b.jpg"))
    row = make.detection(image_id=100, file_name="b.jpg")
    file = make.write(tmp_path / "dt.json", [row])
    with pytest.raises(DataError) as error:
        detmap.read_detections(file, truth)
    assert error.value.where == f"{file}[0]"
    assert error.value.what.endswith("gt.json, but file_name is 'b.jpg' (image 101)")
    assert error.value.fix.startswith("remove file_name to join by image_id as pycocotools does")


def test_ids_are_numbers_of_stems_in_all_records_or_in_none(tmp_path: Path) -> None:
    """One contradiction among records that agree by id is an error, also if its id is the stem."""
    truth = detmap.read_truth(numbered(tmp_path, "0.jpg", "1.jpg", "2.jpg", first=1))
    agreeing = [make.detection(image_id=i + 1, file_name=f"{i}.jpg") for i in (0, 1, 2)]
    by_stem = make.detection(image_id=1, file_name="1.jpg")
    for rows, at in (([*agreeing, by_stem], 3), ([by_stem, *agreeing], 0)):
        with pytest.raises(DataError, match=r"but file_name is '1\.jpg'") as error:
            detmap.read_detections(make.write(tmp_path / "dt.json", rows), truth)
        assert error.value.where.endswith(f"dt.json[{at}]")
    found = detmap.read_detections(make.write(tmp_path / "dt.json", [by_stem]), truth)
    assert found.image.tolist() == [1]


def test_stems_of_two_folders_that_contradict_are_an_error(tmp_path: Path) -> None:
    truth = detmap.read_truth(numbered(tmp_path, "a/1.jpg", "b/1.jpg", "a/2.jpg", first=1))
    pairs = ((1, "b/1.jpg"), (2, "a/2.jpg"), (3, "a/1.jpg"))
    rows = [make.detection(image_id=i, file_name=name) for i, name in pairs]
    with pytest.raises(DataError, match=r"image_id 1 is 'a/1\.jpg' .* file_name is 'b/1\.jpg'"):
        detmap.read_detections(make.write(tmp_path / "dt.json", rows), truth)


def test_a_known_id_beside_an_unknown_name_names_both_fields(tmp_path: Path) -> None:
    truth = detmap.read_truth(numbered(tmp_path, "a.jpg", "b.jpg"))
    pairs = ((100, "a.jpg"), (101, "gone.jpg"), (7, "b.jpg"))
    rows = [make.detection(image_id=i, file_name=name) for i, name in pairs]
    file = make.write(tmp_path / "dt.json", rows)
    with pytest.raises(DataError) as error:
        detmap.read_detections(file, truth)
    assert error.value.where == f"{file}[1]"
    assert error.value.what.startswith("image_id 101 is 'b.jpg' in ")
    assert error.value.what.endswith("but file_name 'gone.jpg' is not in it")
    assert "remove file_name to join by image_id, as pycocotools does" in error.value.fix
    assert "--unknown drop" in error.value.fix
    found = detmap.read_detections(file, truth, unknown="drop")
    assert found.image.tolist() == [0, 1]
    used = [note.count for note in found.notes if note.code == "image-by-file-name"]
    dropped = [note.count for note in found.notes if note.code == "image-unknown"]
    assert (used, dropped) == ([1], [1])
    make.write(file, rows[:2])
    notes = detmap.read_detections(file, truth, unknown="drop").notes
    assert not any(note.code == "image-by-file-name" for note in notes)


def test_a_name_before_an_upload_is_known(tmp_path: Path) -> None:
    truth = detmap.read_truth(numbered(tmp_path, f"street_jpg.rf.{'0a' * 16}.jpg"))
    file = make.write(tmp_path / "dt.json", [make.detection(image_id=100, file_name="street.jpg")])
    assert detmap.read_detections(file, truth).image.tolist() == [0]


@pytest.mark.parametrize("empty", ["", None])
def test_an_empty_file_name_is_none(tmp_path: Path, empty: str | None) -> None:
    truth = detmap.read_truth(numbered(tmp_path, "a.jpg", "b.jpg"))
    rows = [make.detection(image_id=i, file_name=empty) for i in (101, 100)]
    found = detmap.read_detections(make.write(tmp_path / "dt.json", rows), truth)
    assert (found.image.tolist(), found.notes) == ([1, 0], ())
    own = [{"id": 100, "file_name": "b.jpg"}, {"id": 101, "file_name": "a.jpg"}]
    file = make.write(tmp_path / "dt.json", {"images": own, "annotations": rows})
    assert detmap.read_detections(file, truth).image.tolist() == [0, 1]


# --- traps

TWO = ("a/img.jpg", "b/img.jpg")
E = "\N{LATIN SMALL LETTER E WITH ACUTE}"
TRAPS: dict[str, tuple[tuple[str, ...], Any, str]] = {
    "a stem of two images": (TWO, [{"image_id": "img"}], "'img' may be image 100 (a/img.jpg) or 1"),
    "a name of two images": (TWO, [{"image_id": "img.jpg"}], "may be image 100 (a/img.jpg) or 101"),
    "a path of other folders": (TWO, [{"image_id": "c/img.jpg"}], "may be image 100 (a/img.jpg)"),
    "one stem, two suffixes": (("1.jpg", "1.png"), [{"image_id": "1"}], "may be image 100 (1.jpg)"),
    "a number of two stems": (("01.jpg", "1.jpg"), [{"image_id": 1}], "may be image 100 (01.jpg)"),
    "a name that looks like an id": (
        ("101.jpg", "x.jpg"),
        [{"image_id": "101"}],
        "'101' may be image 100 (101.jpg) or 101 (x.jpg)",
    ),
    "ids and names": (("a.jpg", "b.jpg"), [{"image_id": 100}, {"image_id": "b"}], "while record 0"),
    "case": (("Img.jpg",), [{"image_id": "img"}], "did you mean 'Img'? only the case differs"),
    "Unicode normalisation": (
        (f"{E}.jpg",),
        [{"image_id": unicodedata.normalize("NFD", E)}],
        "only the Unicode normalization differs",
    ),
    "a suffix that is no image's": (("a.jpg",), [{"image_id": "a.v2"}], "no image 'a.v2'"),
    "file_name that the ground truth lacks": (
        ("a.jpg", "b.jpg"),
        [{"file_name": "a.jpg"}, {"file_name": "c.jpg"}],
        "dt.json[1].file_name: no image 'c.jpg'",
    ),
    "file_name that is another than the id": (
        TWO,
        [{"file_name": "img.jpg", "image_id": 7}],
        "may be image 100",
    ),
    "a class as a string of its id": (
        ("a.jpg",),
        [{"image_id": 100, "category_id": "1"}],
        "no class '1'",
    ),
    "own categories that the ground truth lacks": (
        ("a.jpg",),
        {"categories": [{"id": 1, "name": "cow"}], "annotations": [make.detection(image_id=100)]},
        "no class 'cow'",
    ),
    "own categories without the class": (
        ("a.jpg",),
        {"categories": [{"id": 2, "name": "cat"}], "annotations": [make.detection(image_id=100)]},
        "1 is not in the file's own categories",
    ),
    "own categories twice": (
        ("a.jpg",),
        {
            "categories": [{"id": 1, "name": "cat"}, {"id": 1, "name": "dog"}],
            "predictions": [make.detection(image_id=100)],
        },
        "occurs twice",
    ),
    "a key twice": (
        ("a.jpg",),
        '{"predictions": [{"image_id": 100, "image_id": 1, "category_id": 1, "bbox": [1, 1, 2, 2],'
        ' "score": 1}]}',
        "occurs twice",
    ),
    "a ground truth": (("a.jpg",), make.instances(), "this looks like an instances file"),
    "no number": (("a.jpg",), [{"file_name": "a.jpg", "score": float("nan")}], "finite number"),
}


@pytest.mark.parametrize("files, content, what", TRAPS.values(), ids=TRAPS)
def test_a_trap_is_an_error(
    tmp_path: Path, lane: None, files: tuple[str, ...], content: Any, what: str
) -> None:
    if isinstance(content, list):
        rows = [make.detection(**row) for row in content]
        content = [
            make.without(row, "image_id") if "image_id" not in given else row
            for row, given in zip(rows, content, strict=True)
        ]
    outcome = run("eval", numbered(tmp_path, *files), make.write(tmp_path / "dt.json", content))
    assert outcome.code == 2, outcome.out
    assert what in outcome.err
    assert "Traceback" not in outcome.err


# 128 MB in members of one, so that making it is quick.
BOMB = gzip.compress(b"[") + 128 * gzip.compress(b" " * (1 << 20), mtime=0)


@pytest.mark.parametrize(
    "name, content, what",
    [
        ("results.pkl", b"\x80\x04.", "val_evaluator.outfile_prefix=results"),
        ("results.json.gz", b"[]", "not gzip"),
        ("results.json.gz", BOMB, "more than 40 times its"),
        ("results.json.gz", gzip.compress(b"[]" * 99, mtime=0)[:-9], "ends in the middle"),
        ("results.json.gz", gzip.compress(b"[1,", mtime=0), "not JSON"),
    ],
)
def test_files_that_do_not_unpack(tmp_path: Path, name: str, content: bytes, what: str) -> None:
    outcome = run("eval", TRUTH, make.write(tmp_path / name, content))
    assert outcome.code == 2
    assert what in outcome.err


def test_folders_tell_images_of_one_name_apart(tmp_path: Path) -> None:
    truth = detmap.read_truth(numbered(tmp_path, *TWO))
    for names in (
        ("b/img.jpg", "a/img.jpg"),
        ("/root/b/img.jpg", "x\\a\\img.jpg"),
        ("b/img", "a/img"),
    ):
        rows = [make.detection(image_id=name) for name in names]
        file = make.write(tmp_path / "dt.json", rows)
        if names[0] == "b/img":
            with pytest.raises(DataError, match="may be image"):
                detmap.read_detections(file, truth)
        else:
            assert detmap.read_detections(file, truth).image.tolist() == [1, 0]


def test_rotated_boxes_are_read_as_the_boxes_around_them(tmp_path: Path) -> None:
    row = {"image_id": 1, "category_id": 1, "score": 0.5, "rbox": [5, 4, 6, 2, 0.5]}
    poly = [3, 1, 9, 4, 7, 8, 1, 5]
    truth = detmap.read_truth(make.write(tmp_path / "gt.json", make.instances()))
    path = make.write(tmp_path / "predictions.json", [{**row, "poly": poly}])
    found = detmap.read_detections(path, truth)
    assert found.boxes.tolist() == [[1, 1, 8, 7]]
    assert [(note.code, note.count) for note in found.notes] == [("box-rotated", 1)]
    for points, what in (([1, 2, 3], r"\[0\].poly: .* are no corners"), (["x"] * 8, "bbox")):
        make.write(path, [{**row, "poly": points}])
        with pytest.raises(DataError, match=what):
            detmap.read_detections(path, truth)


# ---- a name that only later records have


LATER: dict[str, tuple[Callable[[int], dict[str, Any]], str]] = {
    "the right name": (lambda i: {"file_name": FILE[ROWS[i]["image_id"]]}, ""),
    "the name of another image": (lambda i: {"file_name": next(iter(FILE.values()))}, ""),
    "no name where the first has one": (
        lambda i: {} if i in (7, 9) else {"file_name": FILE[ROWS[i]["image_id"]]},
        "no ",
    ),
}


@pytest.mark.usefixtures("coco_reader")
@pytest.mark.parametrize("case", LATER)
def test_a_file_name_of_some_records(case: str, tmp_path: Path) -> None:
    change, lacking = LATER[case]
    records = [
        {**row, **(change(i) if lacking or i in (7, 9) else {})} for i, row in enumerate(ROWS[:20])
    ]
    truth = detmap.read_truth(TRUTH)
    for tree, where in ((records, "[7]"), ({"annotations": records}, ": annotations[7]")):
        path = make.write(tmp_path / "results.json", tree)
        with pytest.raises(DataError, match="earlier records have") as caught:
            detmap.read_detections(path, truth)
        assert caught.value.where.removeprefix(str(path)).endswith(
            f"{where}.file_name".lstrip(": ")
        )
        assert caught.value.what.startswith(lacking or "a file_name")


def test_a_file_name_of_some_records_in_bounded_memory(tmp_path: Path) -> None:
    rows = [dict(row) for row in ROWS]
    rows[7]["file_name"] = FILE[rows[7]["image_id"]]
    path = make.write(tmp_path / "results.json", rows)
    outcome = run("eval", TRUTH, path, "--memory", "3GB")
    assert outcome.code == 2
    assert "[7]: records without image_id and category_id, or with file_name" in outcome.err


@pytest.mark.usefixtures("coco_reader")
def test_class_names_of_some(tmp_path: Path) -> None:
    truth = detmap.read_truth(TRUTH)
    rows = [dict(row) for row in ROWS]
    rows[7]["category_name"] = CLASS[rows[7]["category_id"]]
    plain = detmap.read_detections(PLAIN, truth)
    found = detmap.read_detections(make.write(tmp_path / "results.json", rows), truth)
    assert (found.label == plain.label).all()
    del rows[7]["category_id"]
    path = make.write(tmp_path / "results.json", rows)
    with pytest.raises(DataError) as caught:
        detmap.read_detections(path, truth)
    assert "[7]" in caught.value.where


def test_the_drop_in_skips_file_names_as_pycocotools_does(tmp_path: Path) -> None:
    from detmap.core.adapters.coco.scan_json import scan_detections

    rows = [{**row, "file_name": "other.jpg"} for row in ROWS]
    path = make.write(tmp_path / "results.json", rows * 9)
    assert path.stat().st_size > coco_scan.LEAST_SIZE
    known = (lambda ids: ids, lambda ids: ids)
    assert scan_detections(path, *known) is None
    columns = scan_detections(path, *known, second_keys=True)
    assert columns.image.tolist() == [row["image_id"] for row in rows * 9]
