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

HEADER = "image_id,category_id,x,y,w,h,score"


@pytest.fixture
def truth(tmp_path: Path) -> detmap.Truth:
    return detmap.read_truth(make.write(tmp_path / "gt.json", make.instances()))


@pytest.mark.parametrize(
    "last, what",
    [
        ('"1","1","10","10","20","20","0.78', "inside a quoted cell"),
        ('"1","1","10","10","20","20","', "inside a quoted cell"),
        ('1,1,10,10,20,20,"', "inside a quoted cell"),
        ("1,1,10,10,2", "in the middle of a row"),
        ('"1","1","10"', "in the middle of a row"),
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_cut_csv_files(truth: detmap.Truth, tmp_path: Path, last: str, what: str, end: str) -> None:
    file = tmp_path / "dt.csv"
    file.write_text(
        end.join([HEADER, "1,1,10,10,20,20,0.5", "1,1,10,10,20,20,0.6", last]), newline=""
    )
    with pytest.raises(DataError, match=f"dt.csv: line 4: truncated: the file ends {what}"):
        detmap.read_detections(file, truth)


def test_a_row_that_is_short_is_not_the_end_of_a_file(truth: detmap.Truth, tmp_path: Path) -> None:
    file = tmp_path / "dt.csv"
    for text in ("1,1,10,10\n", "1,1,10,10\n1,1,10,10,20,20,0.5"):
        file.write_text(f"{HEADER}\n{text}")
        with pytest.raises(DataError, match="line 2: 4 columns, the header has 7"):
            detmap.read_detections(file, truth)


def test_quotes_that_are_closed(truth: detmap.Truth, tmp_path: Path) -> None:
    """A literal quote in a cell without quotes opens nothing."""
    file = tmp_path / "dt.csv"
    file.write_text(f'{HEADER},note\n1,1,10,10,20,20,0.5,5" disk\n1,1,10,10,20,20,"0.25","a\n""b"')
    assert detmap.read_detections(file, truth).score.tolist() == [0.5, 0.25]


def test_a_parquet_file_that_is_cut(truth: detmap.Truth, tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    file = tmp_path / "dt.parquet"
    row = dict(zip(HEADER.split(","), (1, 1, 10.0, 10.0, 20.0, 20.0, 0.5), strict=True))
    pandas.DataFrame([row] * 9).to_parquet(file)
    content = file.read_bytes()
    for size in (len(content) - 1, len(content) // 2, 4):
        file.write_bytes(content[:size])
        with pytest.raises(DataError, match="truncated: its end is missing"):
            detmap.read_detections(file, truth)


@pytest.mark.parametrize("missing", [1, 2, 21, 22, 30])
def test_saved_matches_that_are_cut(truth: detmap.Truth, tmp_path: Path, missing: int) -> None:
    found = detmap.detections_from_arrays(truth, [1], [1], [[10, 10, 20, 20]], [0.5])
    file = tmp_path / "part.npz"
    detmap.match(truth, found).save(file)
    content = file.read_bytes()
    for part in (content[:-missing], content[:2]):
        file.write_bytes(part)
        with pytest.raises(DataError, match="the file is truncated"):
            detmap.Matches.load(file)


@pytest.mark.parametrize("name", ["dt.json", "dt.csv"])
def test_a_file_cut_inside_a_character(truth: detmap.Truth, tmp_path: Path, name: str) -> None:
    record = json.dumps([make.detection(note="Zürich")], ensure_ascii=False).encode()
    text = f"{HEADER},note\n1,1,10,10,20,20,0.5,Zürich\n".encode()
    content = record if name == "dt.json" else text
    file = tmp_path / name
    file.write_bytes(content[: content.index("ü".encode()) + 1])
    with pytest.raises(DataError, match=r"truncated: .*ends in the middle of a character"):
        detmap.read_detections(file, truth)
    file.write_bytes(content.replace("ü".encode(), b"\xfc"))
    with pytest.raises(DataError, match="not UTF-8"):
        detmap.read_detections(file, truth)


# ---- JSON and its lines

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
def test_lines_that_end_in_a_record_are_truncated(
    truth: detmap.Truth, tmp_path: Path, kept: float, suffix: str
) -> None:
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


def test_records_over_several_lines_are_not_truncated(truth: detmap.Truth, tmp_path: Path) -> None:
    file = make.write(tmp_path / "d.jsonl", LINES + json.dumps(ROWS[0], indent=1))
    with pytest.raises(DataError, match="one record per line"):
        detmap.read_detections(file, truth)


@pytest.mark.parametrize("name", ["t.json", "d.json", "d.json.gz", "t.json.gz"])
def test_cut_json_and_gzip_are_truncated(truth: detmap.Truth, tmp_path: Path, name: str) -> None:
    text = json.dumps(make.instances() if name[0] == "t" else ROWS).encode()
    data = gzip.compress(text)[:-9] if name.endswith("gz") else text[:-20]
    (tmp_path / name).write_bytes(data)
    file, of = tmp_path / name, {"d": (truth,), "t": ()}[name[0]]
    read = detmap.read_detections if of else detmap.read_truth
    with pytest.raises(DetmapError, match="truncated"):
        read(file, *of)
