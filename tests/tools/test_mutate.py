"""The mutation tool kills what a test notices, and lists the rest."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

MUTATE = Path(__file__).resolve().parents[2] / "tools" / "mutate.py"

TOY = """
def grade(points, bonus=0):
    skipped(points + 1)
    if points > 10:
        points = 10
    if points >= 5:
        return "pass"
    return "fail"

def skipped(points):
    pass

class Pair:
    @property
    def total(self):
        return 1 + 2
"""

TESTS = """
from toy import Pair, grade

def test_grades():
    assert grade(4) == "fail" and grade(5) == "pass" and grade(12) == "pass"

def test_total():
    assert Pair().total == 3

def test_that_fails_anyway():
    assert grade(5) == "fail"
"""

LIST = """
skip = ["skipped"]
[modules]
"toy.py" = ["test_toy.py"]
"""
EQUIVALENT = """
[[equivalent]]
module = "toy.py"
function = "grade"
line = "if points > 10:"
mutation = "{}"
reason = "10 and 11 both pass"
"""


def mutate(folder: Path, listed: str, tests: str = TESTS) -> tuple[int, list[str]]:
    (folder / "toy.py").write_text(TOY)
    (folder / "test_toy.py").write_text(tests)
    (folder / "list.toml").write_text(LIST + listed)
    settings = "[pytest]\nmarkers = slow\naddopts = -n 2\n"  # as here; the tool uses no workers
    (folder / "pytest.ini").write_text(settings)
    command = [sys.executable, MUTATE, "--list", "list.toml", "--jobs", "1"]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=100, check=False
    )
    return done.returncode, done.stdout.splitlines()


@pytest.mark.slow
def test_every_mutant_that_is_listed_exists() -> None:
    """An entry whose line has changed or moved tells nothing; a run says so, but takes hours."""
    done = subprocess.run(
        [sys.executable, MUTATE, "--check"],
        cwd=MUTATE.parents[1],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.slow
def test_survivors_are_listed_unless_they_are_equivalent(tmp_path: Path) -> None:
    code, lines = mutate(tmp_path, EQUIVALENT.format("points > 10 -> points >= 10"))
    assert code == 1
    assert lines[0] == "left out, as it fails without a mutant: test_toy.py::test_that_fails_anyway"
    survived = [line.split("grade: ")[1] for line in lines if line.startswith("survived")]
    assert survived == ["10 -> 11", "10 -> 11"]
    assert "equivalent: toy.py:4 grade: points > 10 -> points >= 10" in lines
    assert "    10 and 11 both pass" in lines
    assert lines[-1].split() == ["all", "10", "7", "1", "2", "77.8"]


@pytest.mark.long
def test_a_listed_mutant_that_is_killed_or_does_not_exist_is_a_fault(tmp_path: Path) -> None:
    tests = TESTS.replace('5) == "fail"', '5) == "pass"')
    elsewhere = EQUIVALENT.format("10 -> 11").replace("toy.py", "gone.py")
    code, lines = mutate(tmp_path, elsewhere, tests)
    assert code == 1
    assert lines[0].startswith("listed, but there is no such mutant: gone.py, grade")
    for mutation, said in (
        ("10 -> 12", "listed, but there is no such mutant: toy.py, grade"),
        ("points >= 5 -> points > 5", "listed as equivalent, but killed: toy.py:6 grade"),
    ):
        line = "if points >= 5:" if "5" in mutation else "points = 10"
        entry = EQUIVALENT.format(mutation).replace("if points > 10:", line)
        code, lines = mutate(tmp_path, entry, tests)
        assert code == 1
        assert any(line.startswith(said) for line in lines), lines
