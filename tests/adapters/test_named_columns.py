"""Roles and attributes by name: from COCO files, arrays and batches alike; and never in silence."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import detmap
from detmap import DataError, Evaluator, Result
from detmap.core.adapters.tabular import csv_parquet as sheets
from tests.support import builders as make
from tests.support.running import run

RULES = {
    "matching.neutral.occluded": "ignore",
    "subsets.seen.visibility": [0.5, 1],
    "metrics": ["AP", "AP@subset"],
}
OCCLUDED, VISIBILITY = [True, False, False, True], [0.9, 0.2, 0.7, 0.6]
BOXES = [[10.0, 10, 20, 20], [50, 10, 20, 20], [10, 50, 20, 20], [50, 50, 20, 20]]
PROTOCOL = detmap.load_protocol("coco-bbox").override(RULES)


def write(folder: Path, *more: dict[str, Any]) -> tuple[Path, Path]:
    """Four objects with these further keys, and three detections."""
    objects = [
        make.annotation(id=i, bbox=box, **own)
        for i, (box, own) in enumerate(zip(BOXES, more, strict=True), start=1)
    ]
    found = [make.detection(bbox=BOXES[i], score=0.9 - i / 10) for i in (0, 1, 2)]
    return (
        make.write(folder / "gt.json", make.instances(annotations=objects)),
        make.write(folder / "dt.json", found),
    )


def plain() -> list[dict[str, Any]]:
    return [{"occluded": o, "visibility": v} for o, v in zip(OCCLUDED, VISIBILITY, strict=True)]


def of_arrays() -> Result:
    truth = detmap.truth_from_arrays(
        [1] * 4,
        [1] * 4,
        BOXES,
        images=[1, 2],
        categories={1: "cat"},
        roles={"occluded": OCCLUDED},
        attributes={"visibility": VISIBILITY},
    )
    found = detmap.detections_from_arrays(truth, [1] * 3, [1] * 3, BOXES[:3], [0.9, 0.8, 0.7])
    return detmap.evaluate(truth, found, PROTOCOL)


def of_batches() -> Result:
    stream = Evaluator(PROTOCOL, classes={1: "cat"}, box_format="xywh")
    none = np.zeros((0, 4)), np.zeros(0, dtype=int), np.zeros(0)
    stream.update(
        [
            {"image_id": 1, "boxes": BOXES[:3], "labels": [1] * 3, "scores": [0.9, 0.8, 0.7]},
            {"image_id": 2, "boxes": none[0], "labels": none[1], "scores": none[2]},
        ],
        [
            {"boxes": BOXES, "labels": [1] * 4, "occluded": OCCLUDED, "visibility": VISIBILITY},
            {"boxes": none[0], "labels": none[1], "occluded": [], "visibility": []},
        ],
    )
    return stream.compute()


@pytest.mark.parametrize("nested", [False, True])
def test_a_coco_file_arrays_and_batches_give_one_result(tmp_path: Path, nested: bool) -> None:
    more = [{"attributes": each} for each in plain()] if nested else plain()
    result = detmap.evaluate(*write(tmp_path, *more), PROTOCOL)
    # the first and the last are occluded; of the others the third is seen well
    assert result.metrics["AP"] == pytest.approx(1.0)
    assert [int(n) for n in result.matches.n_objects()[0]] == [2, 2, 0, 0, 1]
    for other in (of_arrays(), of_batches()):
        assert other.metrics == result.metrics
        assert other.signature == result.signature
    assert not {note.code for note in result.notes} & {"role-missing", "column-missing"}
    unlike = detmap.evaluate(*write(tmp_path, *plain()), "coco-bbox")
    assert unlike.metrics["AP"] != result.metrics["AP"]


def test_settings_alone_make_the_reader_look(tmp_path: Path) -> None:
    paths = write(tmp_path, *plain())
    by_settings = detmap.evaluate(*paths, settings=RULES)
    assert by_settings.signature == detmap.evaluate(*paths, PROTOCOL).signature


def codes(result: Result) -> dict[str, int]:
    return {note.code: note.count for note in result.notes}


def test_a_role_that_the_truth_lacks_is_noted(tmp_path: Path) -> None:
    rules = {"matching.neutral.occluded": "ignore"}
    paths = write(tmp_path, {}, {}, {}, {})
    assert codes(detmap.evaluate(*paths, "coco-bbox", settings=rules))["role-missing"] == 4
    assert "role-missing" not in codes(detmap.evaluate(*paths, "coco-bbox"))
    assert "role-missing" not in codes(detmap.evaluate(*paths, "voc2007"))
    voc = make.write_voc(tmp_path / "voc"), make.write_voc_text(tmp_path / "text")
    assert "role-missing" in codes(detmap.evaluate(*voc, "voc2007", settings=rules))
    assert "role-missing" not in codes(detmap.evaluate(*voc, "voc2007"))
    unread = detmap.read_truth(write(tmp_path, *plain())[0])
    found = detmap.read_detections(tmp_path / "dt.json", unread)
    notes = detmap.evaluate(unread, found, "coco-bbox", settings=rules).notes
    assert "use roles=['occluded']" in "".join(map(str, notes))
    own = {"matching.neutral.ignore": "absorb"}
    assert "role-missing" in codes(detmap.evaluate(*paths, "coco-bbox", settings=own))


def test_an_attribute_that_the_truth_lacks_is_an_error(tmp_path: Path) -> None:
    rules = {"subsets.seen.visibility": [0.5, 1]}
    with pytest.raises(DataError, match="no object has the attribute 'visibility'"):
        detmap.evaluate(*write(tmp_path, {}, {}, {}, {}), "coco-bbox", settings=rules)


def test_what_some_annotations_lack_is_counted(tmp_path: Path) -> None:
    result = detmap.evaluate(*write(tmp_path, *plain()[:3], {}), PROTOCOL)
    missing = [note for note in result.notes if note.code == "column-missing"]
    assert [note.count for note in missing] == [1, 1]
    assert [int(n) for n in result.matches.n_objects()[0]] == [3, 3, 0, 0, 1]


@pytest.mark.parametrize(
    "own, place",
    [
        ({"occluded": 2}, "occluded: 2 is not a flag"),
        ({"occluded": "yes"}, 'occluded: "yes" is not a flag'),
        ({"visibility": "full"}, 'visibility: "full" is not a number'),
        ({"visibility": [1]}, "is not a number"),
        ({"visibility": 10**400}, "is not a number"),
    ],
)
def test_bad_values_are_refused_by_place(tmp_path: Path, own: dict[str, Any], place: str) -> None:
    rows = plain()
    rows[2] |= own
    with pytest.raises(DataError) as caught:
        detmap.evaluate(*write(tmp_path, *rows), PROTOCOL)
    assert "annotations[2]." in str(caught.value)
    assert place in str(caught.value)


@pytest.mark.parametrize(
    "twice", ['"occluded": 0, "occluded": 1', '"attributes": {"occluded": 0, "occluded": 1}']
)
def test_a_key_that_is_there_twice_is_refused(tmp_path: Path, twice: str) -> None:
    truth, found = write(tmp_path, {}, {}, {"here": 1}, {})
    truth.write_text(truth.read_text().replace('"here": 1', twice))
    with pytest.raises(DataError, match=r"annotations\[2\].*occluded: occurs twice"):
        detmap.evaluate(truth, found, PROTOCOL)


@pytest.mark.parametrize("name", ["image_id", "category_id"])
def test_a_key_with_a_meaning_of_its_own_is_no_role(tmp_path: Path, name: str) -> None:
    with pytest.raises(DataError, match="is a reserved key"):
        detmap.read_truth(write(tmp_path, *plain())[0], roles=[name])


def test_a_reader_without_names_to_choose_says_so(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="remove roles"):
        detmap.read_truth(make.write_voc(tmp_path), roles=["occluded"])


@pytest.mark.parametrize(
    "columns, message",
    [
        ({"roles": {"crowd": [0] * 4}}, "has its own argument"),
        ({"roles": {"occluded": [2] * 4}}, r"roles\['occluded'\]\[0\]: 2 is not a flag"),
        ({"roles": {"occluded": [0] * 3}}, "give one value per box"),
        ({"roles": [1]}, "give a dict"),
        ({"attributes": {"visibility": ["a"] * 4}}, r"attributes\['visibility'\]"),
        ({"attributes": {3: [1] * 4}}, "give a dict"),
    ],
)
def test_arrays_that_are_no_columns(columns: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        detmap.truth_from_arrays([1] * 4, [1] * 4, BOXES, **columns)


def test_targets_give_what_the_protocol_looks_at() -> None:
    stream = Evaluator(PROTOCOL, classes={1: "cat"}, box_format="xywh")
    found = {"boxes": BOXES[:1], "labels": [1], "scores": [0.5]}
    target = {"boxes": BOXES[:1], "labels": [1], "occluded": [0], "visibility": [0.5]}
    with pytest.raises(DataError, match=r"targets\[0\]: no 'occluded'"):
        stream.update([found], [make.without(target, "occluded")])
    with pytest.raises(DataError, match=r"targets\[0\]\.occluded\[0\]: 3 is not a flag"):
        stream.update([found], [target | {"occluded": [3]}])
    with pytest.raises(DataError, match=r"targets\[0\]: no 'visibility'"):
        stream.update([found], [make.without(target, "visibility")])
    assert len(stream) == 0


def test_the_flag_of_lvis_comes_in_batches_too() -> None:
    stream = Evaluator("lvis", classes={1: "cat"}, box_format="xywh")
    found = {"boxes": BOXES[:1], "labels": [1], "scores": [0.5]}
    stream.update([found], [{"boxes": BOXES[:2], "labels": [1, 1], "ignore": [0, 1]}])
    assert stream.matches.n_objects()[0, 0] == 1


# ---- VOC's flag as a key of COCO's records

DIFFICULT = [{"difficult": int(o)} for o in OCCLUDED]
OWN = {"matching.neutral.difficult": "ignore"}


@pytest.mark.parametrize(
    ("protocol", "settings", "to_find"),
    [
        ("voc2012", {}, 2),
        ("voc2007-python", {}, 2),
        ("coco-bbox", OWN, 2),
        ("coco-bbox", {}, 4),  # as pycocotools, which reads no such key
        ("voc2012", {"matching.neutral.difficult": "count"}, 4),
    ],
)
def test_a_flag_of_voc_in_records_of_coco(
    protocol: str, settings: dict[str, str], to_find: int, tmp_path: Path
) -> None:
    result = detmap.evaluate(*write(tmp_path, *DIFFICULT), protocol, settings=settings)
    assert result.counts()["objects"] == to_find


@pytest.mark.parametrize("protocol", ["voc2012", "coco-bbox"])
def test_records_without_that_flag_are_read_as_ever(protocol: str, tmp_path: Path) -> None:
    files = write(tmp_path, {}, {}, {}, {})
    result = detmap.evaluate(*files, protocol)
    tables = detmap.read_truth(files[0]), detmap.read_truth(files[0], roles=["difficult"])
    assert [list(truth.roles) for truth in tables] == [["crowd"], ["crowd"]]
    found = detmap.read_detections(files[1], tables[0])
    assert detmap.evaluate(tables[0], found, protocol).signature == result.signature


def test_a_flag_that_was_asked_for_and_is_nowhere_is_told(tmp_path: Path) -> None:
    result = detmap.evaluate(*write(tmp_path, {}, {}, {}, {}), "coco-bbox", settings=OWN)
    assert "role-missing" in {note.code for note in result.notes}


def test_the_targets_of_a_stream_need_no_such_flag() -> None:
    stream = Evaluator("voc2012", classes=["cat"])
    box = np.array([[0.0, 0, 9, 9]])
    target = {"boxes": box, "labels": np.array([0])}
    stream.update([target | {"scores": np.array([0.9])}], [target])
    assert stream.compute().metrics["mAP"] == 1


GROUPS = "image,class,x1,y1,x2,y2,{}\na,cat,0,0,50,50,1\na,cat,60,0,90,30,0\n"
INSIDE = "image,class,score,x1,y1,x2,y2\na,cat,.9,60,0,90,30\na,cat,.8,5,5,25,25\n"


@pytest.mark.parametrize("column", ["group_of", "IsGroupOf", "Group Of"])
@pytest.mark.parametrize("kind", ["csv", "parquet", "frame"])
def test_a_role_of_the_protocol_is_a_column(tmp_path: Path, column: str, kind: str) -> None:
    """A group is a region: what lies in it is no false positive (tfod-oidv2), in files unasked."""
    truth = make.write(tmp_path / "gt.csv", GROUPS.format(column))
    found = make.write(tmp_path / "dt.csv", INSIDE)
    rules = detmap.load_protocol("tfod-oidv2")
    if kind == "csv":
        result = detmap.evaluate(truth, found, rules)
        assert run("eval", truth, found, "-p", "tfod-oidv2").out.count("1.0000")
    else:
        columns = {n: np.array(sheet) for n, sheet in sheets.read_csv(truth).columns.items()}
        numbers = {n: columns[n].astype(float) for n in ("x1", "y1", "x2", "y2")}
        frame = columns | numbers | {column: columns[column] == "1"}
        if kind == "parquet":
            pyarrow = pytest.importorskip("pyarrow")
            path = tmp_path / "gt.parquet"
            pytest.importorskip("pyarrow.parquet").write_table(pyarrow.table(frame), path)
            result = detmap.evaluate(path, found, rules)
        else:
            table = detmap.truth_from_arrays(frame, roles=["group_of"])
            result = detmap.evaluate(table, detmap.read_detections(found, table), rules)
    assert next(iter(result.metrics.values())) == 1.0
    assert "role-missing" not in {note.code for note in result.notes}


def test_the_advice_of_the_note_is_one_that_the_reader_takes(tmp_path: Path) -> None:
    truth = make.write(tmp_path / "gt.csv", GROUPS.format("group_of"))
    found = make.write(tmp_path / "dt.csv", INSIDE)
    table = detmap.read_truth(make.write(tmp_path / "none.csv", GROUPS.format("other")))
    result = detmap.evaluate(table, detmap.read_detections(found, table), "tfod-oidv2")
    (note,) = (note for note in result.notes if note.code == "role-missing")
    assert "CSV" in note.text
    assert "roles=['group_of']" in note.text
    assert detmap.read_truth(truth, roles=["group_of"]).role("group_of").tolist() == [True, False]


def test_attributes_of_a_sheet_and_flags_that_are_none(tmp_path: Path) -> None:
    truth = make.write(tmp_path / "gt.csv", GROUPS.format("visibility").replace("50,1\n", "50,\n"))
    read = detmap.read_truth(truth, attributes=["visibility", "depth"])
    assert np.array_equal(read.attributes["visibility"], [np.nan, 0], equal_nan=True)
    assert "depth" not in read.attributes
    bad = make.write(tmp_path / "bad.csv", GROUPS.format("group_of").replace("50,1\n", "50,7\n"))
    with pytest.raises(DataError, match=r"column group_of.*is not a flag"):
        detmap.read_truth(bad, roles=["group_of"])
    columns = {"image": ["a"], "class": ["cat"], "x1": [0], "y1": [0], "x2": [5], "y2": [5]}
    for wrong in ("group_of", {"group_of": [True]}):
        with pytest.raises(DataError, match="a table and separate columns"):
            detmap.truth_from_arrays(columns, roles=wrong)
