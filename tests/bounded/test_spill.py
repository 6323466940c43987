"""The temporary file: full disks, killed and interrupted processes."""

import signal
import sys
from pathlib import Path

import numpy as np
import pytest

from detmap import DataError
from detmap.core.bounded.spill import Spill, grouped
from tests.cli.test_interrupt import begun
from tests.support import builders as make
from tests.support.running import python, run

COCO, RESULTS = make.SHAPES / "instances_test.json", make.SHAPES / "detections" / "contours.json"
EVAL = ("eval", COCO, RESULTS, "-p", "coco-bbox", "--memory", "2GB")
posix = pytest.mark.skipif(sys.platform == "win32", reason="limits and signals of POSIX")


def test_columns_come_back(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    with Spill(tmp_path, 3) as parts:
        pieces = []
        for sizes in ((2, 0, 3), (0, 0, 0), (1, 4, 0)):
            n = sum(sizes)
            columns = [rng.random((n, 4)), rng.integers(0, 9, n).astype(np.int32), rng.random(n)]
            pieces.append((columns, np.cumsum([0, *sizes])))
            parts.append(*pieces[-1])
        assert parts.sizes.tolist() == [3, 4, 3]
        for begin, end in ((0, 1), (1, 2), (2, 3), (0, 3), (1, 3), (1, 1)):
            for which in range(3):
                expected = np.concatenate([c[which][off[begin] : off[end]] for c, off in pieces])
                found = parts.read(which, begin, end)
                assert found.dtype == expected.dtype
                assert np.array_equal(found, expected)
        assert parts.size == 10 * (32 + 4 + 8)
        assert list(tmp_path.iterdir()) == [] or sys.platform == "win32"


@pytest.mark.parametrize(
    ("sizes", "most", "expected"),
    [
        ([], 3, [(0, 0)]),
        ([1, 2, 3], 3, [(0, 2), (2, 3)]),
        ([9, 1, 1, 1], 2, [(0, 1), (1, 3), (3, 4)]),
        ([0, 0, 0], 1, [(0, 3)]),
    ],
)
def test_grouped(sizes: list[int], most: int, expected: list[tuple[int, int]]) -> None:
    assert grouped(np.array(sizes, dtype=np.int64), most) == expected


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"temporary file of 0 kB.*set TMPDIR"):
        Spill(tmp_path / "missing", 1)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
def test_a_full_disk(tmp_path: Path) -> None:
    with Spill(tmp_path, 1) as spill:
        spill.file.close()
        spill.file = open("/dev/full", "r+b", buffering=0)  # noqa: SIM115 - `spill` closes it
        with pytest.raises(DataError, match=r"No space left on device.*make room") as caught:
            spill.append([np.zeros(3)], np.array([0, 3]))
        assert caught.value.where == str(tmp_path)


def test_a_file_that_somebody_truncates(tmp_path: Path) -> None:
    with Spill(tmp_path, 1) as spill:
        spill.append([np.arange(9)], np.array([0, 9]))
        spill.file.truncate(70)
        with pytest.raises(DataError, match="shorter than what was written"):
            spill.read(0, 0, 1)


@posix
@pytest.mark.slow
def test_a_full_disk_is_an_error_with_its_place(tmp_path: Path) -> None:
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000));"
        "from detmap.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    # Without compiled modules, which Python would cut at the limit too.
    done = python("-c", code, *EVAL, TMPDIR=str(tmp_path), PYTHONDONTWRITEBYTECODE="1")
    assert done.code == 2
    assert f"detmap: error: {tmp_path}: temporary file of " in done.err
    assert "File too large" in done.err
    assert "set TMPDIR to a folder on a larger disk" in done.err
    assert done.out == ""
    assert list(tmp_path.iterdir()) == []


def test_too_small_a_disk_is_an_error_before_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    from detmap.core.bounded import memory_plan as limits

    monkeypatch.setattr(limits, "ON_DISK", 1 << 60)
    done = run(*EVAL)
    assert done.code == 2
    assert "GB for temporary files" in done.err


SLOW = """
import sys, time
from detmap.core.bounded import evaluation
before = evaluation._match_blocks
def waiting(*arguments):
    print("!", end="", flush=True)
    time.sleep(60)
    yield from before(*arguments)
evaluation._match_blocks = waiting
import detmap.cli.process as process
process.begin()
from detmap.cli import main
sys.exit(main(sys.argv[1:]))
"""


@posix
@pytest.mark.slow
@pytest.mark.parametrize("how", ["SIGINT", "SIGKILL", "SIGTERM"])
def test_a_killed_run_leaves_nothing(tmp_path: Path, how: str) -> None:
    """The temporary file is full when the process ends."""
    process = begun(SLOW, *EVAL, TMPDIR=str(tmp_path))
    process.send_signal(getattr(signal, how))
    process.communicate(timeout=60)
    assert process.returncode == {"SIGINT": 130, "SIGTERM": 143, "SIGKILL": -9}[how]
    assert list(tmp_path.iterdir()) == []


def test_the_command_prints_what_it_prints_in_memory() -> None:
    bounded, whole = run(*EVAL), run(*EVAL[:-2])
    assert bounded.code == whole.code == 0
    assert bounded.out == whole.out
    only = "with tied scores in the opposite order"
    notes = [line for line in whole.err.splitlines() if only not in line]
    assert bounded.err.splitlines() == notes


def test_no_detections_are_a_finding_as_in_memory(tmp_path: Path) -> None:
    empty = make.write(tmp_path / "results.json", "[]")
    given = ("eval", COCO, empty, "-p", "coco-bbox")
    bounded, whole = run(*given, "--memory", "2GB"), run(*given)
    assert bounded.code == whole.code == 0
    assert bounded.out == whole.out
    assert bounded.err == whole.err
    assert "note: doctor: images-without-detections" in bounded.err


@pytest.mark.parametrize(
    "options",
    [
        ("--ci",),
        ("--ties",),
        ("--strict",),
        ("--best-f1",),
        ("--confidence", "0.5"),
        ("--classes", "star"),
        ("--integrators",),
        ("--table", "integrators"),
        ("--fix", "x"),
        ("--per-image", "images.csv"),
    ],
)
def test_options_that_need_the_rows_are_refused(options: tuple[str, ...]) -> None:
    done = run(*EVAL, *options)
    assert done.code == 2
    assert f"{options[0]}: needs all match rows" in done.err


@pytest.mark.parametrize("size", ["3 parsecs", "0", "-1GB", "1.5.2GB"])
def test_a_bad_size(size: str) -> None:
    done = run(*EVAL[:-1], size)
    assert done.code == 2
    assert "is not a size" in done.err or "expected one argument" in done.err


def test_it_says_when_it_chooses(monkeypatch: pytest.MonkeyPatch) -> None:
    from detmap.core.bounded import memory_plan as automatic_bound

    monkeypatch.setattr(automatic_bound, "IN_MEMORY", 1 << 50)
    done = run(*EVAL[:-2])
    assert done.code == 0
    assert "the detections do not fit into memory: evaluated in" in done.err
    assert done.out == run(*EVAL).out
