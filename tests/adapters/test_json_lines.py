"""JSON lines: one reader in memory and in bounded memory, with the rows of a list."""

import gzip
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import detmap
from detmap import DataError, Detections
from detmap.core.adapters import pieces, row_estimates
from detmap.core.adapters.coco import instances, json_lines, result_pieces, scan_json
from detmap.core.base import memory
from tests.support.lanes import COCO_TRUTH
from tests.support.running import run

ROWS: list[dict[str, Any]] = [
    {"image_id": i, "category_id": c, "bbox": [x, 1.5, 2e0, 3], "score": 0.1 * x}
    for x, (i, c) in enumerate([(7, 3), (1, 1), (2, 3), (1, 3), (7, 1)] * 5)
]
LINES = [json.dumps(row) for row in ROWS]
GOOD = LINES[0]
COLUMNS = ("image", "label", "boxes", "score")

FORMS: dict[str, bytes] = {
    "LF": "\n".join(LINES).encode(),
    "CR LF": "\r\n".join([*LINES, ""]).encode(),
    "CR": "\r".join([*LINES, ""]).encode(),
    "blank lines": "\n\n \n".join(["", *LINES, "\t", ""]).encode(),
    "byte order mark": b"\xef\xbb\xbf" + "\n".join(LINES).encode(),
}


def in_pieces(path: Path, **options: Any) -> list[Detections]:
    return [each.detections for each in pieces.source(path, COCO_TRUTH, **options).pieces()]


def write_truth(path: Path) -> Path:
    """Ground truth with the images and classes of the detections."""
    sides = {"width": 9, "height": 9}
    images = [{"id": i, "file_name": f"{i}.jpg", **sides} for i in (1, 2, 7)]
    box = {"id": 1, "image_id": 1, "category_id": 1, "bbox": [0, 0, 1, 1]}
    classes = [{"id": 1, "name": "dog"}, {"id": 3, "name": "cat"}]
    path.write_text(json.dumps({"images": images, "annotations": [box], "categories": classes}))
    return path


@pytest.fixture
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fast reader, on small files."""
    monkeypatch.setattr(scan_json, "LEAST_SIZE", 0)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("size", [1, 100, 700, 1 << 20])
@pytest.mark.parametrize("scanned", [True, False])
def test_the_rows_are_those_of_a_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str, size: int, scanned: bool
) -> None:
    monkeypatch.setattr(scan_json, "LEAST_SIZE", 0 if scanned else 1 << 20)
    monkeypatch.setattr(json_lines, "PIECE", size)
    path, listed = tmp_path / "lines.jsonl", tmp_path / "list.json"
    path.write_bytes(FORMS[form])
    listed.write_text(json.dumps(ROWS))
    expected = detmap.read_detections(listed, COCO_TRUTH)
    if scanned:
        monkeypatch.setattr(instances, "decode_text", None)  # which is not called
    found = detmap.read_detections(path, COCO_TRUTH)
    monkeypatch.undo()
    monkeypatch.setattr(scan_json, "LEAST_SIZE", 0 if scanned else 1 << 20)
    monkeypatch.setattr(result_pieces, "PIECE", size)
    parts = in_pieces(path)
    for name in COLUMNS:
        column = getattr(expected, name).tobytes()
        assert getattr(found, name).tobytes() == column
        assert np.concatenate([getattr(part, name) for part in parts]).tobytes() == column
    counts = [(note.code, note.text, note.count) for note in expected.notes]
    assert [(note.code, note.text, note.count) for note in found.notes] == counts


@pytest.mark.parametrize(
    "records",
    [
        [{**row, "ex\u00e9": "}{"} for row in ROWS],
        [{**row, "segmentation": {"counts": "04", "size": [9, 9]}} for row in ROWS],
        [{**row, "bbox": [1000.0, 1000.0, 5, 5]} for row in ROWS],
        [{k: v for k, v in row.items() if k != "score"} for row in ROWS],
        [{**row, "image_id": 99} if i % 3 else row for i, row in enumerate(ROWS)],
    ],
    ids=["other keys", "masks", "outside", "no scores", "dropped"],
)
def test_notes_and_rows_are_those_of_bounded_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fast: None, records: list[dict[str, Any]]
) -> None:
    path = tmp_path / "lines.jsonl"
    path.write_text("\n".join(map(json.dumps, records)))
    whole = detmap.read_detections(path, COCO_TRUTH, unknown="drop")
    monkeypatch.setattr(scan_json, "LEAST_SIZE", 1 << 20)
    reference = detmap.read_detections(path, COCO_TRUTH, unknown="drop")
    (part,) = in_pieces(path, unknown="drop")
    assert whole.notes == reference.notes
    assert [getattr(whole, name).tolist() for name in COLUMNS] == [
        getattr(part, name).tolist() for name in COLUMNS
    ]
    assert whole.notes == part.notes


BAD: dict[str, tuple[bytes, str]] = {
    "a record after the last line": (f"{GOOD}\n{GOOD}{GOOD}".encode(), r"lines.jsonl\[1\]: text"),
    "a record after the only line": (f"{GOOD}{GOOD}".encode(), r"lines.jsonl\[0\]: text after"),
    "a number": (f"{GOOD}\n7\n{GOOD}\n".encode(), r"\[1\]: not a JSON object: '7'"),
    "a cut line": (f'{GOOD}\n\n{{"image_id": 1'.encode(), r"\[1\]: truncated: line 3 ends in"),
    "a score": (f"{GOOD}\n{GOOD.replace('0.0', 'true')}".encode(), r"\[1\].score: true"),
    "two records in a line": (f"{GOOD}\n{GOOD},{GOOD}".encode(), r"\[1\]: text after the object"),
    "a key twice": (
        f'{GOOD}\n{GOOD[:-1]}, "score": 1}}'.encode(),
        r"lines.jsonl\[1\].score: occurs twice",
    ),
    "UTF-16": ("\n".join(LINES).encode("utf-16"), "text in UTF-16, which detmap does not read"),
    "gzip": (gzip.compress("\n".join(LINES).encode()), "gzip"),
    "text": (b"hello", "not JSON"),
    "nothing": (b"", "the file is empty"),
}


@pytest.mark.parametrize("name", BAD)
def test_errors_are_those_of_bounded_memory(tmp_path: Path, fast: None, name: str) -> None:
    text, message = BAD[name]
    path = tmp_path / "lines.jsonl"
    path.write_bytes(text)
    reads: list[Callable[[], Any]] = [
        lambda: detmap.read_detections(path, COCO_TRUTH),
        lambda: in_pieces(path),
    ]
    found = []
    for read in reads:
        with pytest.raises(DataError, match=message) as error:
            read()
        found.append(str(error.value))
    assert found[0] == found[1]


def test_file_names_are_joined_as_in_a_list(tmp_path: Path, fast: None) -> None:
    truth = detmap.read_truth(write_truth(tmp_path / "truth.json"))
    path = tmp_path / "lines.jsonl"
    path.write_text('{"file_name": "1.jpg", "category_id": 3, "bbox": [1, 2, 3, 4], "score": 1}\n')
    assert detmap.read_detections(path, truth).label.tolist() == [1]
    path.write_text(
        '{"image_id": 9, "file_name": "1.jpg", "category_id": 3, "bbox": [1, 2, 3, 4], "score": 1}'
    )
    assert detmap.read_detections(path, truth).image.tolist() == [0]
    with pytest.raises(DataError, match="are read as a whole"):
        list(pieces.source(path, truth).pieces())


@pytest.mark.usefixtures("coco_reader")
def test_a_file_name_in_a_later_line_is_not_ignored(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    path.write_text("\n".join([*LINES, json.dumps({**ROWS[0], "file_name": "1.jpg"})]))
    with pytest.raises(DataError, match=r"\[25\].file_name: a file_name, and earlier"):
        detmap.read_detections(path, COCO_TRUTH)
    with pytest.raises(DataError, match=r"\[25\]: .*with file_name, are read as a whole"):
        in_pieces(path)


@pytest.mark.parametrize("least", [1 << 20, 0], ids=["decoded", "scanned"])
def test_what_does_not_fit_names_the_option(tmp_path: Path, monkeypatch: Any, least: int) -> None:
    monkeypatch.setattr(memory, "SPARE", 0)
    monkeypatch.setattr(memory, "available", lambda: 1000)
    path = tmp_path / "lines.jsonl"
    path.write_text("\n".join(LINES * 20))
    with pytest.raises(DataError, match=r"GiB of memory.*--memory 3GB"):
        detmap.read_detections(path, COCO_TRUTH)


@pytest.mark.parametrize("extra", [{}, {"segmentation": {"counts": "x" * 2500, "size": [9, 9]}}])
@pytest.mark.parametrize("name", ["results.json", "results.jsonl"])
def test_records_are_estimated(tmp_path: Path, extra: dict[str, Any], name: str) -> None:
    """Records of 85 bytes, and of 2,600: a file of 2.6 MB is longer than the samples."""
    rows = [{**row, **extra} for row in ROWS * 40]
    path = tmp_path / name
    path.write_text("\n".join(map(json.dumps, rows)) if name[-1] == "l" else json.dumps(rows))
    assert row_estimates.estimated_rows(path) == pytest.approx(len(rows), rel=0.06)
    assert len(rows) * 0.6 < pieces.source(path, COCO_TRUTH).n_rows < len(rows)


def test_long_records_do_not_need_the_disk_of_short_ones(tmp_path: Path, monkeypatch: Any) -> None:
    from detmap.core.bounded import memory_plan as limits

    def free(n: int) -> None:
        usage = type("Usage", (), {"free": n})
        monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage)

    path = tmp_path / "results.jsonl"
    path.write_text("\n".join(json.dumps({**row, "x": "y" * 2000}) for row in ROWS))
    truth = write_truth(tmp_path / "truth.json")
    free(limits.ON_DISK * len(ROWS))
    assert run("eval", truth, path, "--memory", "1GB").code == 0
    free(limits.ON_DISK * len(ROWS) // 2)
    refused = run("eval", truth, path, "--memory", "1GB")
    assert refused.code == 2
    assert "for temporary files" in refused.err
