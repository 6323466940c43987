"""Files of CrowdHuman, WIDER FACE and Caltech: good ones, and each kind of bad one."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import detmap
from tests.support.mat import array, cells, mat, text

PERSON = {"tag": "person", "fbox": [0, 0, 10, 20], "extra": {"ignore": 1}}
FOUND = {"box": [0, 0, 10, 20], "score": 0.5, "tag": 1}


def fails(call: Any, *parts: str) -> None:
    with pytest.raises(detmap.DataError) as caught:
        call()
    assert all(part in str(caught.value) for part in parts), str(caught.value)


# ---- odgt


def odgt(path: Path, *records: Any) -> Path:
    path.write_text("\n".join(json.dumps(record) for record in records))
    return path


def test_odgt_records(tmp_path: Path) -> None:
    truth = detmap.read_truth(
        odgt(
            tmp_path / "t.odgt",
            {"ID": "z", "gtboxes": [PERSON, {**PERSON, "extra": {}}, {**PERSON, "tag": "mask"}]},
            {"ID": "a", "gtboxes": [], "width": 5, "height": 6},
        )
    )
    assert truth.images.stems == ("z", "a")  # in file order
    assert truth.role("ignore").tolist() == [True, False, True]
    found = detmap.read_detections(
        odgt(
            tmp_path / "d.odgt",
            {"ID": "a", "dtboxes": [FOUND]},
            {"ID": "z", "width": 9, "height": 8, "dtboxes": []},
        ),
        truth,
    )
    assert (found.image.tolist(), found.score.tolist()) == ([1], [0.5])
    assert (found.images.width.tolist(), found.images.height.tolist()) == ([9, 5], [8, 6])


@pytest.mark.parametrize(
    "record, says",
    [
        ("{", ["line 1", "truncated"]),
        ("[]", ["line 1", "not a JSON object"]),
        ({"gtboxes": []}, ["line 1, ID", "not a name"]),
        ({"ID": "\ud800", "gtboxes": []}, ["line 1, ID", "not a name"]),
        ({"ID": "a"}, ["no list gtboxes"]),
        ({"ID": "a", "dtboxes": []}, ["the files are swapped"]),
        ({"ID": "a", "gtboxes": [3]}, ["gtboxes[0]", "not a JSON object"]),
        ({"ID": "a", "gtboxes": [{**PERSON, "fbox": [1, 2]}]}, ["gtboxes[0].fbox"]),
        ({"ID": "a", "gtboxes": [{**PERSON, "fbox": [0, 0, "x", 1]}]}, ["not a finite number"]),
        ({"ID": "a", "gtboxes": [{**PERSON, "fbox": [0, 0, -1, 1]}]}, ["negative side"]),
        ({"ID": "a", "gtboxes": [{**PERSON, "tag": 1}]}, ["gtboxes[0].tag"]),
        ({"ID": "a", "gtboxes": [{**PERSON, "extra": 1}]}, ["gtboxes[0].extra"]),
        ({"ID": "a", "gtboxes": [], "width": True}, ["width", "not a finite number"]),
        ({"ID": "a", "gtboxes": [], "width": -1, "height": 1}, ["image size"]),
    ],
)
def test_a_bad_odgt_record(tmp_path: Path, record: Any, says: list[str]) -> None:
    path = tmp_path / "t.odgt"
    path.write_text(record if isinstance(record, str) else json.dumps(record))
    fails(lambda: detmap.read_truth(path), "t.odgt", *says)


def test_bad_odgt_files(tmp_path: Path) -> None:
    same = {"ID": "a", "gtboxes": []}
    fails(lambda: detmap.read_truth(odgt(tmp_path / "t.odgt", same, same)), "line 2", "twice")
    fails(lambda: detmap.read_truth(odgt(tmp_path / "t.odgt")), "no records")
    truth = detmap.read_truth(odgt(tmp_path / "t.odgt", same))
    found = odgt(tmp_path / "d.odgt", {"ID": "b", "dtboxes": [FOUND]})
    fails(
        lambda: detmap.read_detections(found, truth), "d.odgt: line 1, dtboxes[0]", "no image 'b'"
    )
    assert len(detmap.read_detections(found, truth, unknown="drop")) == 0
    found = odgt(tmp_path / "d.odgt", {"ID": "a", "dtboxes": [{**FOUND, "score": None}]})
    fails(lambda: detmap.read_detections(found, truth), "dtboxes[0].score", "not a finite number")


# ---- WIDER FACE


def write_wider(folder: Path, **changes: Any) -> Path:
    """Two faces on one image of one event; the second is hard only."""
    parts = {
        "events": [text("", "0--Parade")],
        "files": [cells("", [text("", "one")])],
        "boxes": [cells("", [array("", np.array([[0.0, 0, 9, 9], [20, 0, 9, 9]]))])],
        "easy": [cells("", [array("", np.array([[1.0]]))])],
        "medium": [cells("", [array("", np.array([[1.0]]))])],
        "hard": [cells("", [array("", np.array([[1.0], [2.0]]))])],
    } | changes
    folder.mkdir(exist_ok=True)
    names = {"event_list": "events", "file_list": "files", "face_bbx_list": "boxes"}
    main = [cells(name, parts[part]) for name, part in names.items()]
    (folder / "wider_face_val.mat").write_bytes(mat(*main))
    for subset in ("easy", "medium", "hard"):
        content = mat(cells("gt_list", parts[subset]))
        (folder / f"wider_{subset}_val.mat").write_bytes(content)
    return folder


def write_results(folder: Path, content: str, name: str = "one") -> Path:
    event = folder / "0--Parade"
    event.mkdir(parents=True, exist_ok=True)
    (event / f"{name}.txt").write_text(content)
    return folder


def test_wider_face_by_hand(tmp_path: Path) -> None:
    """The second face counts among the hard ones alone."""
    truth = write_wider(tmp_path / "gt")
    found = write_results(tmp_path / "d", "one.jpg\n2\n0 0 9 9 0.9\n50 0 9 9 0.1 7 8 9\n")
    result = detmap.evaluate(truth, found, "widerface")
    assert list(result.metrics.values()) == [1.0, 1.0, 0.5]
    assert [(note.code, note.count) for note in result.notes] == [("columns-unread", 1)]


def test_a_face_of_negative_width_counts_and_is_never_found(tmp_path: Path) -> None:
    """The distributed file has one, of -2 x 23: the evaluation code keeps it."""
    faces = np.array([[0.0, 0, 9, 9], [20, 0, -2, 23]])
    truth = write_wider(tmp_path / "gt", boxes=[cells("", [array("", faces)])])
    lines = "one.jpg\n3\n0 0 9 9 0.9\n18 0 4 23 0.5\n20 0 0 23 0.1\n"
    result = detmap.evaluate(truth, write_results(tmp_path / "d", lines), "widerface")
    assert list(result.metrics.values()) == [1.0, 1.0, 0.5]
    assert [(n.code, n.count) for n in result.notes if n.code == "box-reversed"] == [
        ("box-reversed", 1)
    ]


def test_bad_files_of_wider_face(tmp_path: Path) -> None:
    folder = tmp_path / "gt"
    two = cells("", [array("", np.array([[3.0]]))])
    for changes, *says in (
        ({"files": []}, "file_list", "0 cells, expected 1"),
        ({"files": [cells("", [array("", np.ones((1, 1)))])]}, "{1}{1}", "not a name"),
        ({"files": [cells("", [text("", "a/b")])]}, "not a name"),
        ({"boxes": [cells("", [array("", np.ones((1, 3)))])]}, "face_bbx_list{1}{1}", "not rows"),
        ({"easy": [two]}, "wider_easy_val.mat: gt_list{1}{1}", "numbers of faces, 1 to 2"),
        ({"hard": [cells("", [array("", np.ones((2, 1)))])]}, "listed twice"),
        (
            {"events": [], "files": [], "boxes": [], "easy": [], "medium": [], "hard": []},
            "no images",
        ),
    ):
        write_wider(folder, **changes)  # type: ignore[arg-type]
        fails(lambda: detmap.read_truth(folder), *says)
    write_wider(folder)
    (folder / "wider_hard_val.mat").unlink()
    fails(lambda: detmap.read_truth(folder), "wider_hard_val.mat", "no such file")


@pytest.mark.parametrize(
    "content, says",
    [
        ("", "no name and number of faces"),
        ("one\n", "no name and number of faces"),
        ("one\nmany\n", "number of faces"),
        ("one\n1.5\n1 2 3 4 .5\n", "number of faces"),
        ("one\n\n1 2 3 4 .5\n", "line 3: '1 2 3 4 .5' is not a number of faces"),
        ("one\n1\n1 2 3 4\n", "line 3"),
        ("one\n1\n1 2 3 x 0.5\n", "line 3, height"),
        ("one\n1\n1 2 3 4 nan\n", "line 3, score"),
        ("one\n1\n9e15 2 3 4 .5\n", "line 3: box 9e+15 2 3 4 is too large"),
        ("two\n1\n1 2 3 4 .5\n", "no image '0--Parade/two'"),
    ],
)
def test_a_bad_result_of_wider_face(tmp_path: Path, content: str, says: str) -> None:
    truth = detmap.read_truth(write_wider(tmp_path / "gt"))
    found = write_results(tmp_path / "d", content)
    fails(lambda: detmap.read_detections(found, truth, format="wider"), says)


def test_notes_on_results_of_wider_face(tmp_path: Path) -> None:
    truth = detmap.read_truth(write_wider(tmp_path / "gt"))
    found = detmap.read_detections(write_results(tmp_path / "d", "one\n7\n"), truth)
    assert [note.code for note in found.notes] == ["count-differs"]
    write_results(tmp_path / "d", "one\n0\n", "two")
    fails(lambda: detmap.read_detections(tmp_path / "d", truth), "two.txt", "was read from")
    empty = tmp_path / "none"
    (empty / "0--Parade").mkdir(parents=True)
    fails(lambda: detmap.read_detections(empty, truth), "no EVENT/*.txt files")


# ---- Caltech

HEAD = "% bbGt version=3\n"


def caltech(folder: Path, *lines: str, head: str = HEAD, name: str = "I00001") -> Path:
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.txt").write_text(head + "\n".join(lines))
    return folder


def test_objects_of_caltech(tmp_path: Path) -> None:
    truth = detmap.read_truth(
        caltech(
            tmp_path / "gt",
            "person 10 20 30 40 0 0 0 0 0 0 0",
            "people 10 20 30 40 1 10 20 15 40 0 0",
            "person? 10 20 30 40 1 10 20 30 40 1 0",
            "ignore 10 20 30 40 1 0 0 0 0 0 0",
            "dog 10 20 30 40 0 0 0 0 0 0 0",
        )
    )
    assert truth.attributes["visible"].tolist() == [1, 0.5, 0, 1]
    assert truth.role("ignore").tolist() == [False, False, True, True]
    assert truth.attributes["right"].tolist() == [40] * 4
    assert [(note.code, note.count) for note in truth.notes] == [("label-unknown", 1)]
    found = caltech(tmp_path / "d", "10 20 30 40 0.5", head="")
    assert detmap.read_detections(found, truth).boxes.tolist() == [[10, 20, 30, 40]]
    assert detmap.evaluate(tmp_path / "gt", found, "caltech").counts()["detections"] == 1


@pytest.mark.parametrize(
    "line, says",
    [
        ("person 1 2 3 4", "line 2"),
        ("person 1 2 3 x 0 0 0 0 0 0 0", "line 2, h"),
        ("person 1 2 3.5 4 0 0 0 0 0 0 0", "line 2, w"),
        ("person 1 2 3 4 0 0 0 0 0 0 90", "rotated"),
        ("person 1 2 3 -4 0 0 0 0 0 0 0", "negative"),
    ],
)
def test_a_bad_object_of_caltech(tmp_path: Path, line: str, says: str) -> None:
    fails(lambda: detmap.read_truth(caltech(tmp_path / "gt", line)), "I00001.txt", says)


def test_bad_files_of_caltech(tmp_path: Path) -> None:
    folder = caltech(tmp_path / "gt")
    truth = detmap.read_truth(folder)
    caltech(folder, "person 1 2 3 4", head="", name="I00002")
    fails(lambda: detmap.read_truth(folder), "I00002.txt: line 1", "% bbGt version=3")
    fails(lambda: detmap.read_truth(caltech(tmp_path / "e", head=""), format="bbgt"), "line 1")
    (tmp_path / "none").mkdir()
    fails(lambda: detmap.read_truth(tmp_path / "none", format="bbgt"), "no .txt files")
    found = tmp_path / "d"
    caltech(found, "1 2 3 4", head="")
    fails(lambda: detmap.read_detections(found, truth, format="bbgt"), "4 columns")
    caltech(found, "1 2 3 4 0.5", head="", name="I00009")
    caltech(found, head="")
    fails(lambda: detmap.read_detections(found, truth), "I00009.txt", "no image 'I00009'")
    (found / "I00009.txt").unlink()
    (found / "I00001.txt").unlink()
    caltech(found, head="", name="I00005")
    notes = detmap.read_detections(found, truth, format="bbgt").notes
    assert [note.code for note in notes] == ["file-missing", "file-unknown"]
