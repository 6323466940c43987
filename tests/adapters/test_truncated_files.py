"""Files that are cut, or still being written, are called truncated."""

import gzip
import json
from pathlib import Path

import pytest

import detmap
from detmap import DataError, DetmapError
from detmap.core.adapters import pieces
from detmap.core.base import json_faults
from tests.support import builders as make

ROWS = [make.detection(score=score) for score in (0.5, 0.25, 1e-05)]
LINES = "".join(json.dumps(row) + "\n" for row in ROWS)


@pytest.mark.parametrize("text", ['[{"a": [1.5e-3, true], "b\\u00e9": "x\\n\\""}, null, -1]'])
def test_every_beginning_of_json_is_truncated(text: str) -> None:
    for end in range(1, len(text)):
        assert json_faults.last_line(text[:end]) == 1, text[:end]
        assert json_faults.last_line(b"\n\n" + text[:end].encode()) == 3
    assert json_faults.last_line(text) == 0
    assert json_faults.last_line('["é'.encode()[:-1]) == 1


@pytest.mark.parametrize(
    "text", ["", "x", "{a", "[1 2", "[1,]", "{]", '{"a" 1}', "[1]]", '["\n"', "tx"]
)
def test_other_faults_are_not(text: str) -> None:
    assert json_faults.last_line(text) == 0


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize("kept", [2.2, 2.5, 2.95, 1.01])
def test_lines_that_end_in_a_record_are_truncated(tmp_path: Path, kept: float, suffix: str) -> None:
    truth = detmap.read_truth(make.write(tmp_path / "t.json", make.instances()))
    lines = LINES.splitlines(keepends=True)
    whole, part = divmod(kept, 1)
    cut = lines[int(whole)][: max(1, int(part * len(lines[int(whole)])))]
    text = "".join(lines[: int(whole)]) + cut.rstrip("}\n")
    file = tmp_path / f"d.jsonl{suffix}"
    file.write_bytes(gzip.compress(text.encode()) if suffix else text.encode())
    message = rf"\[{int(whole)}\]: truncated: line {int(whole) + 1} ends in the middle of a record"
    with pytest.raises(DataError, match=message):
        detmap.read_detections(file, truth)
    if not suffix:
        with pytest.raises(DataError, match=message):
            list(pieces.source(file, truth).pieces())


def test_records_over_several_lines_are_not_truncated(tmp_path: Path) -> None:
    truth = detmap.read_truth(make.write(tmp_path / "t.json", make.instances()))
    file = make.write(tmp_path / "d.jsonl", LINES + json.dumps(ROWS[0], indent=1))
    with pytest.raises(DataError, match="one record per line"):
        detmap.read_detections(file, truth)


@pytest.mark.parametrize("name", ["t.json", "d.json", "d.json.gz", "t.json.gz"])
def test_cut_json_and_gzip_are_truncated(tmp_path: Path, name: str) -> None:
    truth = detmap.read_truth(make.write(tmp_path / "whole.json", make.instances()))
    text = json.dumps(make.instances() if name[0] == "t" else ROWS).encode()
    data = gzip.compress(text)[:-9] if name.endswith("gz") else text[:-20]
    (tmp_path / name).write_bytes(data)
    file, of = tmp_path / name, {"d": (truth,), "t": ()}[name[0]]
    read = detmap.read_detections if of else detmap.read_truth
    with pytest.raises(DetmapError, match="truncated"):
        read(file, *of)
