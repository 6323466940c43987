"""Classes that only one of several detectors names count for all of them."""

from pathlib import Path

import pytest

import detmap
from tests.support.running import run

BOX = "10 10 60 10 60 40 10 40"


def inputs(folder: Path) -> tuple[Path, Path, Path]:
    """A DOTA truth of planes, and detectors: one also names helicopters, where none is."""
    truth, wide, narrow = (folder / name for name in ("truth", "wide", "narrow"))
    (truth / "labelTxt").mkdir(parents=True)
    for k in range(3):
        (truth / "labelTxt" / f"P{k}.txt").write_text(f"{BOX} plane 0\n")
    (truth / "imageset.txt").write_text("P0\nP1\nP2\n")
    rows = "".join(f"P{k} 0.{9 - k} {BOX}\n" for k in range(3))
    for each in (wide, narrow):
        each.mkdir()
        (each / "Task1_plane.txt").write_text(rows)
    (wide / "Task1_helicopter.txt").write_text(f"P0 0.5 {BOX}\n")
    return truth, wide, narrow


@pytest.mark.slow
@pytest.mark.parametrize("first", ["wide", "narrow"])
@pytest.mark.parametrize("suffix", ["md", "html"])
def test_a_report_has_all_classes_in_either_order(tmp_path: Path, first: str, suffix: str) -> None:
    truth, wide, narrow = inputs(tmp_path)
    pair = (wide, narrow) if first == "wide" else (narrow, wide)
    page = tmp_path / f"page.{suffix}"
    done = run("report", "-p", "dota", truth, *pair, "-o", page)
    assert done.code == 0, done.err
    text = page.read_text("utf-8")
    assert "0.0 mAP, without an interval: fewer than 50 images" in text
    assert "1 class without objects that only other detections name (helicopter)" in text
    assert "of narrow alone may give another number" in text
    assert "of wide alone" not in text


@pytest.mark.parametrize("first", ["wide", "narrow"])
def test_a_comparison_is_of_all_classes_in_either_order(tmp_path: Path, first: str) -> None:
    truth, wide, narrow = inputs(tmp_path)
    pair = (wide, narrow) if first == "wide" else (narrow, wide)
    done = run("compare", "-p", "dota", truth, *pair)
    assert done.code == 0, done.err
    assert done.err.count("(helicopter); `detmap eval` of narrow alone") == 1
    made = detmap.compare(truth, *pair, protocol="dota")
    assert made.values["mAP"] == pytest.approx((0.5, 0.5))
    assert [note.code for note in made.notes].count("class-of-others") == 1
    alone = detmap.evaluate(truth, narrow, "dota")
    assert alone.metrics["mAP"] == pytest.approx(1.0)


def test_detectors_of_the_same_classes_have_no_such_note(tmp_path: Path) -> None:
    truth, wide, _ = inputs(tmp_path)
    made = detmap.compare(truth, wide, wide, protocol="dota")
    assert "class-of-others" not in [note.code for note in made.notes]
