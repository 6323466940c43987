"""The tables of tools/official agree with the package, its page and each other."""

import re
import sys
from pathlib import Path
from typing import Any

import pytest

from detmap.core import protocol

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "benchmarks.md").read_text()


@pytest.fixture
def official(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Imports a module of tools/official, where its scripts find each other."""
    folder = ROOT / "tools" / "official"
    own = {file.stem for file in folder.glob("*.py")}
    monkeypatch.syspath_prepend(str(folder))
    yield lambda name: __import__(name)
    for name in own:
        sys.modules.pop(name, None)


def test_every_program_has_a_protocol_data_and_a_place_on_the_page(official: Any) -> None:
    programs, files = official("programs").PROGRAMS, official("measure").FILES
    assert set(files) <= set(programs)
    for name in programs:
        protocol.load(files.get(name, (name,))[0])
    listed = PAGE.partition("\nIt has ")[2].partition("\n\n")[0]
    assert set(re.findall("`([^`]+)`", listed)) == set(programs)
    elsewhere = {"openimages", "widerface-matlab"}  # other data: see the page
    assert set(official("draw").DRAWN) == set(programs) - elsewhere


def test_the_same_data_are_written_twice(
    official: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw, lines = official("draw"), official("draw_lines")
    monkeypatch.setattr(lines, "VIDEOS", {6: 1})
    small = {"counts": (3, 2, 4, 5), "sides": (200, 8, 50), "noise": 2}
    for name in ("first", "second"):
        folder = tmp_path / name
        draw.coco(folder / "coco", **small, image=draw.listed, more=draw.visible)
        lines.caltech(folder / "caltech")
    first, second = (
        {
            file.relative_to(tmp_path / name): file.read_bytes()
            for file in (tmp_path / name).rglob("*.*")
            if file.is_file()
        }
        for name in ("first", "second")
    )
    assert len(first) > 2
    assert first == second
