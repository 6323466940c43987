"""A format is a module and a row; what a path is, the registry decides."""

import dataclasses
import os
from pathlib import Path
from typing import Any

import pytest

from detmap import DataError, ranking, read_detections, read_truth
from detmap.core.adapters import FORMATS, read_images, registry
from detmap.core.adapters.coco import instances as coco
from tests.support import builders as make
from tests.support.running import run


def lines_truth(path: Path, unit: str = "pixels") -> Any:
    return dataclasses.replace(
        coco.read_truth(path.with_name("gt.json")), source=f"{path.name} in {unit}"
    )


LINES = registry.Format(
    "lines",
    "a file",
    lambda path: 2 * (path.suffix == ".lines"),
    lambda path: 0,
    lines_truth,
    coco.read_detections,
    options=("unit",),
)


def test_a_row_is_all_that_a_format_takes(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(registry, "FORMATS", (*registry.FORMATS, LINES))
    make.write(tmp_path / "gt.json", make.instances())
    path = make.write(tmp_path / "x.lines", "")
    assert read_truth(path).source == "x.lines in pixels"
    assert read_truth(path, format="lines").source == "x.lines in pixels"
    row, _ = registry.choose_noted(registry.FORMATS, path, lambda row: row.truth_looks)
    assert registry.told(row.name, row.options, path, unit="feet", split=None) == {"unit": "feet"}
    with pytest.raises(DataError, match="split 'val' is not an option of LINES files"):
        read_truth(path, split="val")


def test_what_looks_like_two_formats_has_to_be_named(tmp_path: Path, monkeypatch: Any) -> None:
    other = LINES._replace(name="other")
    monkeypatch.setattr(registry, "FORMATS", (LINES, other))
    path = make.write(tmp_path / "x.lines", "")
    with pytest.raises(DataError, match=r"the format is ambiguous: lines and other .*lines, other"):
        read_truth(path)
    with pytest.raises(DataError, match="the format is unknown"):
        read_truth(make.write(tmp_path / "gt.json", make.instances()))


def test_the_command_line_offers_every_row() -> None:
    assert tuple(row.name for row in registry.FORMATS) == FORMATS
    outcome = run("eval", "a", "b", "--truth-format", "nope")
    assert outcome.code == 2
    assert all(name in outcome.err for name in FORMATS)


@pytest.mark.parametrize("path", [5, None, b"gt.json", ["gt.json"], 1.5])
def test_what_is_no_path(path: Any, tmp_path: Path) -> None:
    truth = read_truth(make.write(tmp_path / "gt.json", make.instances()))
    for read in (
        lambda: read_truth(path),
        lambda: read_detections(path, truth),
        lambda: read_images(path, truth),
        lambda: ranking.read(path, tmp_path),
    ):
        with pytest.raises(DataError, match=r"is not a path|where a path is needed"):
            read()


def test_a_circle_of_links_and_a_nul(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(DataError, match="Too many levels of symbolic links"):
        read_truth(tmp_path / "a")
    with pytest.raises(DataError, match=r"cannot be read: (stat: )?embedded null"):
        read_truth("a\0b")
    (tmp_path / "gone").symlink_to("nowhere")
    with pytest.raises(DataError, match="no such file or folder"):
        read_truth(tmp_path / "gone")


def test_a_pipe_in_place_of_any_path_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    truth = read_truth(make.write(tmp_path / "gt.json", make.instances()))
    for read in (
        lambda: read_truth(tmp_path / "pipe"),
        lambda: read_detections(tmp_path / "pipe", truth),
        lambda: read_images(tmp_path / "pipe", truth),
        lambda: ranking.read(tmp_path / "pipe", tmp_path / "pipe"),
    ):
        with pytest.raises(DataError, match="a pipe, not a file"):
            read()


@pytest.mark.parametrize("name", ["a.txt", "a.csv", "a", "a.json"])
def test_content_decides_the_format_and_not_the_name(tmp_path: Path, name: str) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    rows = [make.detection(score=0.5), make.detection(score=0.25, bbox=[1, 2, 30, 40])]
    truth, file = read_truth(make.write(tmp_path / "gt.json", make.instances())), tmp_path / name
    frame = pandas.DataFrame(rows)
    make.write(file, rows)
    known = read_detections(file, truth)
    for write in (lambda: frame.to_csv(file, index=False), lambda: frame.to_parquet(file)):
        write()
        found = read_detections(file, truth)
        assert found.boxes.tolist() == known.boxes.tolist()
        assert found.score.tolist() == [0.5, 0.25]
