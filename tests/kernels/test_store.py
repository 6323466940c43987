"""Machine code on disk: found again without numba, whole or not used, shared by processes that
start at once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = """
import sys
import numpy as np
from detmap.kernels.grouping import group
key, rows, off = np.array([1, 0, 1, 2], dtype=np.int32), np.empty(4, dtype=np.int32), np.empty(4, dtype=np.int64)
group(key, np.arange(4, dtype=np.int32), rows, off)
print(rows.tolist(), off.tolist(), "numba" in sys.modules)
"""
RIGHT = "[1, 0, 2, 3] [0, 1, 3, 4]"


def start(cache: Path) -> subprocess.Popen[str]:
    environment = {**os.environ, "DETMAP_CACHE_DIR": str(cache), "DETMAP_COMPILE_ALONE": "1"}
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT],
        cwd=ROOT,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def finish(process: subprocess.Popen[str]) -> tuple[str, str]:
    out, err = process.communicate()
    assert process.returncode == 0, err
    return out.strip(), err


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, str]:
    """A cache after a first process, and what that process printed."""
    cache = tmp_path_factory.mktemp("cache") / "detmap"
    return cache, *finish(start(cache))


def test_the_first_process_compiles_and_says_so_once(filled: tuple[Path, str, str]) -> None:
    cache, out, err = filled
    assert out == f"{RIGHT} True"
    assert err.count("compiling kernels") == 1
    assert [path.suffix for path in cache.iterdir()] == [".kernel"]


def test_the_second_process_needs_no_numba(filled: tuple[Path, str, str]) -> None:
    assert finish(start(filled[0])) == (f"{RIGHT} False", "")


@pytest.mark.parametrize("damage", ["empty", "cut", "flipped"])
def test_a_damaged_file_is_compiled_anew(
    filled: tuple[Path, str, str], tmp_path: Path, damage: str
) -> None:
    (kernel,) = filled[0].iterdir()
    data = kernel.read_bytes()
    broken = {
        "empty": b"",
        "cut": data[:-100],
        "flipped": data[:500] + bytes([data[500] ^ 1]) + data[501:],
    }[damage]
    (tmp_path / kernel.name).write_bytes(broken)
    assert finish(start(tmp_path))[0] == f"{RIGHT} True"
    assert (tmp_path / kernel.name).read_bytes() != broken


def test_processes_that_start_at_once_share_the_work(tmp_path: Path) -> None:
    outcomes = [finish(process) for process in [start(tmp_path) for _ in range(3)]]
    assert {out.removesuffix(" True").removesuffix(" False") for out, _ in outcomes} == {RIGHT}
    assert [path.suffix for path in tmp_path.iterdir()] == [".kernel"]


def test_the_claim_of_a_dead_process_is_not_believed(
    tmp_path: Path, filled: tuple[Path, str, str]
) -> None:
    (kernel,) = filled[0].iterdir()
    (tmp_path / kernel.name).with_suffix(".claim").write_text(
        "4194304"
    )  # no process has this number
    assert finish(start(tmp_path))[0] == f"{RIGHT} True"


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("in the way")
    out, err = finish(start(file))
    assert out == f"{RIGHT} True"
    assert "cannot be kept" in err
    assert "DETMAP_CACHE_DIR" in err
