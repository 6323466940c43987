"""LUNA16's CSV files: what is read, and bad files with place, cause and fix."""

from pathlib import Path

import numpy as np
import pytest

import detmap
from tests.support.running import run

HEAD = "seriesuid,coordX,coordY,coordZ,"
FILES = {
    "annotations.csv": f"{HEAD}diameter_mm\ns.2,1,2,3,4\ns.9,1,2,3,4\n",
    "annotations_excluded.csv": f"{HEAD}diameter_mm\ns.1,5,6,7,-1\n",
    "seriesuids.csv": "s.2\ns.1\n",
    "results.csv": f"{HEAD}probability\ns.1,1,2,3,.5\ns.2,-4.5,5,6,.25\n",
}


def read(folder: Path, **other: str) -> tuple[detmap.Truth, detmap.Detections]:
    for name, text in (
        FILES | {key.replace("_csv", ".csv"): x for key, x in other.items()}
    ).items():
        (folder / name).write_text(text)
    truth = detmap.read_truth(folder / "annotations.csv", format="luna16")
    return truth, detmap.read_detections(folder / "results.csv", truth, format="luna16")


def test_notes_name_the_nodules_and_the_excluded_findings(tmp_path: Path) -> None:
    line = "s.9,1,1,1,3\n"
    truth, _ = read(tmp_path, annotations_excluded_csv=FILES["annotations_excluded.csv"] + line)
    begins = [str(note)[:17] for note in truth.notes]
    assert begins == ["1 nodule is of sc", "1 excluded findin"]


def test_spheres(tmp_path: Path) -> None:
    truth, detections = read(tmp_path)
    assert truth.images.ids.tolist() == ["s.1", "s.2"]
    assert truth.image.tolist() == [1, 0]  # s.9 is not listed
    assert truth.role("excluded").tolist() == [False, True]
    assert truth.attributes["diameter"].tolist() == [4.0, -1.0]
    assert truth.boxes.tolist() == [[-1, 0, 4, 4], [0, 1, 10, 10]]
    assert [note.code for note in truth.notes] == ["scan-unlisted"]
    assert detections.attributes["x"].tolist() == [1.0, -4.5]
    assert detections.score.tolist() == [0.5, 0.25]


def test_a_header_in_the_list_and_lists_without_findings(tmp_path: Path) -> None:
    truth, _ = read(
        tmp_path,
        seriesuids_csv="seriesuid\ns.1\ns.2\n",
        annotations_excluded_csv=f"{HEAD}diameter_mm\n",
    )
    assert (len(truth), len(truth.images)) == (1, 2)


@pytest.mark.parametrize(
    "file, text, message",
    [
        ("annotations.csv", f"{HEAD}diameter_mm\ns.2,1,x,3,4\n", "line 2, column coordY: 'x'"),
        ("annotations.csv", f"{HEAD}diameter_mm\ns.2,1,inf,3,4\n", "line 2, column coordY"),
        ("annotations.csv", f"{HEAD}d\ns.2,1,2,3,4\n", "line 1: no column diameter_mm; there"),
        ("annotations_excluded.csv", f"{HEAD}diameter_mm\n,1,2,3,4\n", "is empty"),
        ("annotations_excluded.csv", f"{HEAD}diameter_mm\ns.1,1,2\n", "3 columns"),
        ("seriesuids.csv", "s.1\ns.1\n", "lists scans twice: s.1"),
        ("seriesuids.csv", "\n", "lists no scan"),
        ("seriesuids.csv", "s.1 s.2\n", "line 1: 2 words"),
        ("results.csv", f"{HEAD}probability\ns.1,1,2,3,nan\n", "column probability"),
        ("results.csv", f"{HEAD}p\ns.1,1,2,3,.5\n", "line 1: no column probability; there"),
        (
            "results.csv",
            "s.1,1,2,3,.5\n",
            "no column seriesuid, coordX, .* names the columns: series",
        ),
        ("results.csv", f"{HEAD}probability\ns.7,1,2,3,.5\n", "s.7"),
    ],
)
def test_bad_files(file: str, text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(detmap.DataError, match=message) as error:
        read(tmp_path, **{file.replace(".csv", "_csv"): text})
    assert file in error.value.where


@pytest.mark.parametrize("name", ["seriesuids.csv", "annotations_excluded.csv"])
def test_a_missing_file_beside_is_named(name: str, tmp_path: Path) -> None:
    read(tmp_path)
    (tmp_path / name).unlink()
    with pytest.raises(detmap.DataError, match=f"no {name} beside it"):
        detmap.read_truth(tmp_path / "annotations.csv", format="luna16")


def test_unknown_scans_can_be_dropped(tmp_path: Path) -> None:
    truth, _ = read(tmp_path)
    path = tmp_path / "results.csv"
    path.write_text(f"{HEAD}probability\ns.7,1,2,3,.5\ns.1,1,2,3,.5\n")
    detections = detmap.read_detections(path, truth, format="luna16", unknown="drop")
    assert detections.image.tolist() == [0]
    assert np.array_equal(detections.attributes["z"], [3.0])


def test_the_format_is_that_of_the_protocol_alone(tmp_path: Path) -> None:
    read(tmp_path)
    with pytest.raises(detmap.DataError, match="no column class"):
        detmap.read_truth(tmp_path / "annotations.csv")


def test_inspect_names_the_protocol_of_the_files(tmp_path: Path) -> None:
    (tmp_path / "annotations.csv").write_text(
        "seriesuid,coordX,coordY,coordZ,diameter_mm\n1.3,1,2,3,4\n"
    )
    outcome = run("inspect", tmp_path / "annotations.csv")
    assert outcome.code == 2
    assert "-p froc-luna16" in outcome.err


HEADERS = {"renamed": f"{HEAD}score\n", "none": "", "spheres": "seriesuid,x,y,z,score\n"}


@pytest.mark.parametrize("name", HEADERS)
def test_the_benchmark_names_the_header_that_is_missing(name: str, tmp_path: Path) -> None:
    read(tmp_path)
    (tmp_path / "results.csv").write_text(f"{HEADERS[name]}s.1,1,2,3,.5\n")
    outcome = run(
        "eval", tmp_path / "annotations.csv", tmp_path / "results.csv", "-p", "froc-luna16"
    )
    assert outcome.code == 2
    assert "results.csv: line 1: no column " in outcome.err
    assert f"names the columns: {HEAD}probability" in outcome.err


def test_lines_that_end_with_a_carriage_return(tmp_path: Path) -> None:
    read(tmp_path)
    paths = tmp_path / "annotations.csv", tmp_path / "results.csv"
    metrics = detmap.evaluate(*paths, "froc-luna16").metrics
    for name, text in FILES.items():
        (tmp_path / name).write_bytes(text.replace("\n", "\r").encode())
    assert detmap.evaluate(*paths, "froc-luna16").metrics == metrics
