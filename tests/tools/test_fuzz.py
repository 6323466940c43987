"""The fuzz harness counts what it is there to count."""

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

FUZZ = Path(__file__).resolve().parents[2] / "tools" / "fuzz.py"

TOY = """
import ctypes, os, signal, time

COUNTS = {"fine": 0}

def case(seed):
    if seed == 3:
        os.kill(os.getpid(), signal.SIGSEGV)
    if seed == 5:
        time.sleep(60)
    if seed == 6:
        os._exit(7)
    if seed == 8:
        return "2 is not 3"
    if seed == 9:
        raise IndexError("list index out of range")
    COUNTS["fine"] += 1
"""


def fuzz(target: Path, *options: object) -> tuple[int, list[str]]:
    done = subprocess.run(
        [sys.executable, FUZZ, target, *map(str, options)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stderr == ""
    return done.returncode, re.sub(r"\d+ s\)", "- s)", done.stdout).splitlines()


@pytest.mark.slow
def test_a_crash_a_hang_a_traceback_and_a_wrong_answer_are_counted(tmp_path: Path) -> None:
    toy = tmp_path / "toy.py"
    toy.write_text(TOY)
    code, lines = fuzz(toy, "--cases", 12, "--limit", 2, "--jobs", 1)
    assert code == 1
    assert re.match(r'toy: seed 3: crash: SIGSEGV \(File ".*toy.py", line 8 in case\)', lines[0])
    assert re.match(r"toy: seed 5: hang: longer than 2 s \(File .*line 10 in case\)", lines[1])
    assert lines[2] == "toy: seed 6: crash: the process ended with 7"
    assert lines[3] == "toy: seed 8: wrong: 2 is not 3"
    assert lines[4] == f"toy: seed 9: traceback: IndexError: list index out of range ({toy}:16)"
    assert lines[5] == "toy: 12 cases, 2 crashes, 1 hangs, 1 tracebacks, 1 wrong (seed 0, - s)"


@pytest.mark.slow
def test_nothing_found_is_exit_0(tmp_path: Path) -> None:
    toy = tmp_path / "toy.py"
    toy.write_text(TOY)
    assert fuzz(toy, "--cases", 12, "--seed", 20) == (
        0,
        [
            "toy: 12 cases, 0 crashes, 0 hangs, 0 tracebacks, 0 wrong (seed 20, - s)",
            "  reached: fine 12",
        ],
    )


def test_a_target_that_cannot_be_imported_is_a_finding(tmp_path: Path) -> None:
    toy = tmp_path / "toy.py"
    toy.write_text("import no_such_module\n")
    code, lines = fuzz(toy, "--cases", 1)
    assert code == 1
    assert "ModuleNotFoundError: No module named 'no_such_module'" in lines[0]


@pytest.mark.slow
def test_no_tool_stands_in_for_a_package() -> None:
    """numba imports the package ``coverage`` if it can: beside a tool it found a script."""
    code = "import sys; sys.path.insert(0, 'tools'); import numba"
    command = [sys.executable, "-c", code]
    subprocess.run(command, cwd=FUZZ.parents[1], timeout=60, check=True)


def test_a_byte_read_beyond_guarded_pages_ends_the_process() -> None:
    code = (
        "import ctypes; from tests.support.guarded_pages import Guarded\n"
        "text = Guarded().holding(b'abc', last=True)\n"
        "place = text.ctypes.data\n"
        "print(ctypes.string_at(place, 3).decode(), flush=True)\n"
        "ctypes.string_at(place, 4)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=FUZZ.parents[1], capture_output=True, check=False
    )
    assert (done.stdout, done.returncode) == (b"abc\n", -signal.SIGSEGV)


@pytest.mark.slow
def test_the_scanner_reads_files_of_both_kinds() -> None:
    code, lines = fuzz(FUZZ.parent / "fuzzing" / "alike.py", "--cases", 8, "--limit", 60)
    wanted = (0, "alike: 8 cases, 0 crashes, 0 hangs, 0 tracebacks, 0 wrong")
    assert (code, lines[0].split(" (")[0]) == wanted
    reached = dict(part.rsplit(" ", 1) for part in lines[1].split(": ")[1].split(", "))
    for kind in ("results", "annotations"):
        assert reached[f"{kind} files"] == "80"
        assert 0 < int(reached[f"{kind} read"]) < 80
