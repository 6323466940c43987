"""`detmap diagnose` and `detmap eval --errors`, as a user runs them."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from tests import builders as make
from tests.running import run

COCO, RESULTS = make.SHAPES / "instances_test.json", make.SHAPES / "detections" / "contours.json"


def test_the_summary() -> None:
    outcome = run("diagnose", COCO, RESULTS)
    assert outcome.code == 0
    assert "what costs most is Cls (right place, wrong class)" in " ".join(outcome.out.split())
    assert max(map(len, outcome.out.splitlines())) <= 80


def test_json_has_every_part() -> None:
    content = json.loads(run("diagnose", COCO, RESULTS, "--format", "json").out)
    assert content["tide"]["AP50"] == pytest.approx(60.59881102688345, abs=1e-12)
    assert content["tide"]["counts"]["Cls"] == 675
    assert content["confusion"]["matrix"]
    assert content["operating_points"][0]["name"] == "micro"
    assert len(content["images"]) == 60


def test_csv_is_the_errors(tmp_path: Path) -> None:
    file, again = tmp_path / "errors.csv", tmp_path / "again.csv"
    assert run("diagnose", COCO, RESULTS, "-o", file, "--errors", again).code == 0
    assert file.read_bytes() == again.read_bytes()
    with file.open() as text:
        rows = list(csv.DictReader(text))
    assert {row["kind"] for row in rows} == {"Cls", "Loc", "Both", "Dupe", "Bkg", "Miss"}
    assert list(rows[0]) == [
        *("kind", "image", "class", "x", "y", "w", "h", "score", "overlap", "other", "row")
    ]


def test_suspects_are_written(tmp_path: Path) -> None:
    file = tmp_path / "relabel.csv"
    assert run("diagnose", COCO, RESULTS, "--suspects", file).code == 0
    assert "missing label" in file.read_text()


def test_eval_writes_errors(tmp_path: Path) -> None:
    file = tmp_path / "errors.csv"
    outcome = run("eval", COCO, RESULTS, "--errors", file)
    assert outcome.code == 0
    assert outcome.out == run("eval", COCO, RESULTS).out
    assert file.read_text().startswith("kind,image,class,x,y,w,h,score,overlap,other,row\n")


@pytest.mark.parametrize("table", ["costs", "points", "slices", "confused", "images", "errors"])
def test_one_table_alone(table: str) -> None:
    outcome = run("diagnose", COCO, RESULTS, "--table", table, "--format", "csv")
    assert outcome.code == 0
    assert len(list(csv.DictReader(outcome.out.splitlines()))) > 0


@pytest.mark.parametrize(
    "options", [("--iou", "0"), ("--iou", "nan"), ("--background", "0.6"), ("-p", "coco-segm")]
)
def test_what_makes_no_sense_is_refused(options: tuple[str, ...]) -> None:
    outcome = run("diagnose", COCO, RESULTS, *options)
    assert (outcome.code, outcome.out) == (2, "")
    assert "fix:" in outcome.err


def test_inputs_are_not_overwritten(tmp_path: Path) -> None:
    assert "is an input" in run("diagnose", COCO, RESULTS, "--errors", RESULTS).err
    both = tmp_path / "a.csv"
    assert "asked for twice" in run("diagnose", COCO, RESULTS, "--errors", both, "-o", both).err
