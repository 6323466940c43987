"""What a killed process left is removed by the next one; what a living one writes is kept."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from detmap.core.base import atomic_files as files

pytestmark = pytest.mark.skipif(files.fcntl is None, reason="the system has no locks")

WRITER = """
import sys
from collections.abc import Iterator
from pathlib import Path
from detmap.core.base import atomic_files
place = Path(sys.argv[1])
with atomic_files.temporary_folder(place) as folder, atomic_files.replacing(place / "file") as file:
    (folder / "deep").mkdir()
    (folder / "deep" / "text").write_text("x")
    file.write(b"x")
    print("!", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    pipe, command = subprocess.PIPE, [sys.executable, "-c", WRITER, str(tmp_path)]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "!\n"
        yield process
        process.kill()


def drafts(folder: Path) -> list[str]:
    return sorted(each for each in os.listdir(folder) if each.startswith(files.PREFIX))


def look_again(folder: Path) -> None:
    files._swept.clear()
    files.write_text(folder / "other", "x")


@pytest.mark.slow
def test_a_killed_process_leaves_no_draft(tmp_path: Path, writer: subprocess.Popen[str]) -> None:
    before = drafts(tmp_path)
    assert len(before) == 2
    look_again(tmp_path)
    assert drafts(tmp_path) == before  # it lives
    writer.send_signal(signal.SIGKILL)
    writer.wait()
    assert drafts(tmp_path) == before
    look_again(tmp_path)
    assert drafts(tmp_path) == []


@pytest.mark.slow
def test_a_folder_is_removed_by_the_next(tmp_path: Path, writer: subprocess.Popen[str]) -> None:
    writer.kill()
    writer.wait()
    files._swept.clear()
    with files.temporary_folder(tmp_path) as folder:
        assert drafts(tmp_path) == [folder.name]
    assert drafts(tmp_path) == []


def test_drafts_of_other_machines_and_other_files_are_kept(tmp_path: Path) -> None:
    for name in (".detmap-0123456789ab-x", ".detmap-old", ".other"):
        (tmp_path / name).mkdir()
    (tmp_path / ".detmap-0123456789ab-key-0.part").write_text("x")
    (tmp_path / f".detmap-{files._machine()}-link").symlink_to(tmp_path / ".other")
    before = sorted(os.listdir(tmp_path))
    look_again(tmp_path)
    assert sorted(os.listdir(tmp_path)) == sorted([*before, "other"])


def test_without_locks_nothing_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / f".detmap-{files._machine()}-x").mkdir()
    monkeypatch.setattr(files, "_lock", lambda handle: None)
    look_again(tmp_path)
    assert len(drafts(tmp_path)) == 1
    monkeypatch.setattr(files, "fcntl", None)
    look_again(tmp_path)
    with files.temporary_folder(tmp_path):
        assert len(drafts(tmp_path)) == 2
