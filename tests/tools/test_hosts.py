"""The tables of hosts and of the plan for a billion detections: those that the tools write."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import builders as make
from tools import hosts
from tools.hosting import scale

PAGE = make.ROOT / "docs" / "integrations" / "backend.md"
ROWS = re.findall(r"^\| (\S+) \| (.*) \| (.*) \| (.*) \|$", PAGE.read_text(), re.MULTILINE)


def test_every_host_has_its_row_in_order() -> None:
    assert [name for name, *_ in ROWS if name in hosts.HOSTS] == [*hosts.HOSTS]
    text = PAGE.read_text()
    assert hosts.written(text, {}) == text


@pytest.mark.parametrize("row", [row for row in ROWS if row[0] in hosts.HOSTS], ids=str)
def test_a_row_is_of_the_version_and_the_tests_that_the_tool_runs(row: tuple[str, ...]) -> None:
    """A new version, or other tests, make the row stale until the tool has run again."""
    name, version, ours, theirs = row
    host = hosts.HOSTS[name]
    if not host.tests or ours == "not run":
        assert theirs == host.own
        return
    pinned = re.match(r".*==(.+)", host.packages[0]) if host.packages else None
    assert version == (host.version or (pinned[1] if pinned else version)), "run tools/hosts.py"
    assert re.fullmatch(rf"[1-9]\d* pass: {re.escape(host.equal)}", ours)
    if isinstance(host.own, str):
        assert theirs == host.own
        return
    failing = r"(?:; (\d+) (?!skipped)(.*?)(?= \(tests|, in place|; ))?"
    found = re.match(rf"(\d+) of (\d+) pass{failing}", theirs)
    assert found is not None, theirs
    failed, why = host.own.fails
    assert int(found[2]) - int(found[1]) == failed == int(found[3] or 0)
    assert (found[4] or "") == why
    assert theirs.endswith(f", in place of {host.own.place}")


FAKE = """
import detmap
from pycocotools.cocoeval import COCOeval

def test_in_place():
    assert COCOeval.__module__.startswith("detmap")
    detmap.evaluate("{data}", "{data}/detections/contours")

def test_fails():
    assert {wrong}
"""


@pytest.mark.slow
@pytest.mark.parametrize("wrong", [True, False])
def test_own_tests_run_with_detmap_in_place(tmp_path: Path, wrong: bool) -> None:
    (tmp_path / "test_fake.py").write_text(FAKE.format(data=make.SHAPES, wrong=not wrong))
    own = hosts.Own(("test_fake.py",), "pycocotools", fails=(int(wrong), "call nobody" * wrong))
    cell, as_known = hosts.own_tests(own, Path(sys.executable), tmp_path)
    assert as_known
    counts = "1 of 2 pass; 1 call nobody" if wrong else "2 of 2 pass"
    assert cell == f"{counts}, in place of pycocotools"
    other = hosts.Own(("test_fake.py",), "pycocotools", fails=(2, "fail"))
    assert not hosts.own_tests(other, Path(sys.executable), tmp_path)[1]
    (tmp_path / "test_fake.py").write_text("def test_without(): pass")
    assert not hosts.own_tests(own, Path(sys.executable), tmp_path)[1], "detmap ran nothing"


def test_the_plan_follows_from_what_was_measured() -> None:
    page = (make.ROOT / "docs" / "scale.md").read_text()
    block = page.split(scale.MARKS[0])[1].split(scale.MARKS[1])[0].strip()
    rows = scale.read(block)
    assert len(rows) == 8
    planned = re.findall(r"[\d.]+", block.split("\n\n", 1)[1])
    again = re.findall(r"[\d.]+", scale.plan(rows))
    assert [float(x) for x in again] == pytest.approx([float(x) for x in planned], rel=0.1, abs=0.1)


def test_both_tools_have_a_help() -> None:
    for tool in ("hosts.py", "hosting/scale.py"):
        words = [sys.executable, str(make.ROOT / "tools" / tool), "--help"]
        assert "--docs" in subprocess.run(words, capture_output=True, text=True, check=True).stdout
