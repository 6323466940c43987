"""Whatever ends the writing of a file, the old one stays whole."""

import os
import random
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import detmap
from detmap import DetmapError, Matches
from detmap.core.base import atomic_files as files
from tests.matching.test_matches import assert_same
from tests.tables.test_box_tables import tables

WRITERS = """
import os, sys
import detmap
matches = detmap.Matches.load(sys.argv[1])
for _ in sys.stdin:
    writer = os.fork()
    while not writer:
        matches.save(sys.argv[2])
    print(writer, flush=True)
    os.waitpid(writer, 0)
    print("gone", flush=True)
"""
LIMITED = """
import resource, sys
sys.dont_write_bytecode = True  # the limit would cut the files of modules imported below it
import detmap
kind, source, place = sys.argv[1:]
matches = detmap.Matches.load(source)
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
try:
    if kind == "matches":
        matches.save(place)
    elif kind == "evaluator":
        detmap.Evaluator.load(source).save(place)
    else:
        detmap.core.base.atomic_files.write_text(place, "x" * 5000)
except detmap.DetmapError as error:
    print(error)
"""

ABANDONED = """
import os, sys, threading, time
from pathlib import Path
from detmap.core.base import atomic_files

files = {f"labels/{number}": "x" for number in range(1_000_000)}
place = Path(sys.argv[1]) / "folder"
threading.Thread(target=atomic_files.write_folder, args=(place, files), daemon=True).start()
time.sleep(float(sys.argv[2]))
sys.stderr = open(os.devnull, "w")  # the writer fails
atomic_files.abandon()
os._exit(0)
"""


@pytest.fixture(scope="module")
def matches() -> Matches:
    return detmap.match(*tables(500), detmap.load_protocol("coco-bbox"))


def test_a_file_is_replaced_with_its_permissions_and_through_links(tmp_path: Path) -> None:
    place, link = tmp_path / "a.txt", tmp_path / "link"
    files.write_text(place, "old")
    assert stat.S_IMODE(place.stat().st_mode) == 0o666 & ~os.umask(os.umask(0o22))
    place.chmod(0o640)
    link.symlink_to(place)
    files.write_text(link, "new ü")
    assert link.is_symlink()
    assert place.read_text(encoding="utf-8") == "new ü"
    assert stat.S_IMODE(place.stat().st_mode) == 0o640
    assert sorted(tmp_path.iterdir()) == [place, link]


@pytest.mark.parametrize(
    "error", [ValueError("mine"), OSError(5, "mine"), KeyError("mine"), KeyboardInterrupt("mine")]
)
def test_an_error_leaves_the_old_file_and_no_draft(tmp_path: Path, error: BaseException) -> None:
    place = tmp_path / "a.txt"
    files.write_text(place, "old")

    def failing() -> None:
        with files.replacing(place) as file:
            file.write(b"half")
            raise error

    with pytest.raises(type(error), match="mine"):
        failing()
    assert place.read_text() == "old"
    assert list(tmp_path.iterdir()) == [place]


def test_the_umask_is_never_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def changed(_: int) -> int:
        raise AssertionError("another thread makes a file meanwhile")

    monkeypatch.setattr(os, "umask", changed)
    files.write_text(tmp_path / "a.txt", "x")


KILLED = """
import os, signal, sys
from detmap.core.base import atomic_files as files
with files.replacing(sys.argv[1]) as file:
    file.write(b"x" * 100_000)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_draft_of_a_killed_writer_goes_with_the_next_writing(tmp_path: Path) -> None:
    place = tmp_path / "a.txt"
    subprocess.run([sys.executable, "-c", KILLED, place], timeout=60)
    assert len(list(tmp_path.iterdir())) == 1
    with files.replacing(place) as first, files.replacing(place) as second:
        assert len(list(tmp_path.iterdir())) == 2, "a living writer keeps its own"
        first.write(b"first")
        second.write(b"second")
    assert list(tmp_path.iterdir()) == [place]
    assert place.read_bytes() == b"first"


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [0.02, 0.1, 0.5])
def test_a_folder_is_abandoned_while_it_is_written(tmp_path: Path, seconds: float) -> None:
    words = [sys.executable, "-c", ABANDONED, str(tmp_path), str(seconds)]
    assert subprocess.run(words, timeout=60).returncode == 0
    assert os.listdir(tmp_path) == []


def test_a_folder_is_abandoned_though_a_file_is_opened_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its writer had found the folder before that was moved: it is not empty when it shall go."""
    late, rmtree = iter(["late"]), shutil.rmtree

    def with_a_late_file(place: str, ignore_errors: bool) -> None:
        if next(late, ""):
            (Path(place) / "late").write_text("x")
        else:
            rmtree(place, ignore_errors=ignore_errors)

    with files.temporary_folder(tmp_path):
        monkeypatch.setattr(shutil, "rmtree", with_a_late_file)
        files._abandon_folder(str(next(tmp_path.iterdir())))
        assert os.listdir(tmp_path) == []


def test_an_old_folder_is_not_abandoned_while_it_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, rename, waited = tmp_path / "folder", os.rename, []
    place.mkdir()

    def watched(source: Path, target: Path) -> None:
        rename(source, target)
        other = threading.Thread(target=lambda: waited.append(not files._changing.acquire(False)))
        other.start()
        other.join()

    monkeypatch.setattr(os, "rename", watched)
    with files.replacing_folder(place) as draft:
        (draft / "new").write_text("x")
    assert waited == [True], "who ends the process waits until the new folder is in place"
    assert os.listdir(place) == ["new"]


@pytest.mark.parametrize("which", [1, 2])
@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_an_interrupt_while_a_folder_is_replaced_keeps_the_old_one_or_the_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: type[BaseException], which: int
) -> None:
    place, rename, calls = tmp_path / "folder", os.rename, iter(range(1, 9))
    place.mkdir()
    (place / "old").write_text("x")

    def interrupted(function: Any, source: Path, target: Path) -> None:
        if next(calls) == which and error is OSError:
            raise OSError("full")
        function(source, target)
        if error is KeyboardInterrupt and (target == place) == (which == 2):
            raise KeyboardInterrupt

    monkeypatch.setattr(os, "rename", partial(interrupted, rename))
    monkeypatch.setattr(os, "replace", partial(interrupted, os.replace))
    with pytest.raises(error), files.replacing_folder(place) as draft:
        (draft / "new").write_text("x")
    new = error is KeyboardInterrupt and which == 2
    assert os.listdir(tmp_path) == ["folder"]
    assert os.listdir(place) == ["new" if new else "old"]


def test_what_is_no_draft_of_ours_stays(tmp_path: Path) -> None:
    place, other = tmp_path / "a.txt", tmp_path / "other"
    with files.replacing(place) as file:
        (name,) = (path.name for path in tmp_path.iterdir())
        file.write(b"x")
    other.write_text("other")
    (tmp_path / name).symlink_to(other)
    files.write_text(place, "new")
    assert (tmp_path / name).is_symlink()
    (tmp_path / name).unlink()
    os.mkfifo(tmp_path / name)
    files.write_text(place, "newer")
    assert (tmp_path / name).is_fifo()
    assert other.read_text() == "other"
    assert place.read_text() == "newer"


@pytest.mark.parametrize("place", [".", "/dev/null", "/dev/full", "absent/x", "x\0y", "a" * 300])
def test_places_that_are_none(place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DetmapError) as caught:
        files.write_text(place, "x")
    shown = place if len(place) < 200 else f"{place[:100]} ... {place[-100:]}"
    assert caught.value.where == shown  # messages cut long values
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["matches", "evaluator", "text"])
def test_a_limit_leaves_the_old_file_whole(matches: Matches, tmp_path: Path, kind: str) -> None:
    source, place = tmp_path / "source.npz", tmp_path / "place.npz"
    matches.save(source)
    matches.save(place)
    outcome = subprocess.run(
        [sys.executable, "-c", LIMITED, kind, source, place],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert "cannot be written: File too large" in outcome.stdout
    assert_same(Matches.load(place), matches)
    assert sorted(tmp_path.iterdir()) == [place, source]


def test_a_full_device_leaves_the_old_file_whole(matches: Matches, tmp_path: Path) -> None:
    device = tmp_path / "device"
    device.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", str(device)]
    if os.geteuid() or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("only root mounts a small device")
    try:
        place = device / "part.npz"
        matches.select(matches.image_ids[:9]).save(place)
        with pytest.raises(OSError, match="No space"), open(device / "filler", "wb", 0) as filler:
            filler.writelines(bytes(1 << 10) for _ in range(200))
        with pytest.raises(DetmapError, match="No space left on device"):
            matches.save(place)
        assert Matches.load(place).n_images == 9
        assert sorted(path.name for path in device.iterdir()) == ["filler", "part.npz"]
    finally:
        subprocess.run(["umount", str(device)], check=True)


@pytest.mark.slow
def test_a_writer_killed_200_times_leaves_a_whole_file(matches: Matches, tmp_path: Path) -> None:
    source, place = tmp_path / "source.npz", tmp_path / "place.npz"
    matches.save(source)
    rng = random.Random(0)
    drafts = most = 0
    with subprocess.Popen(
        [sys.executable, "-c", WRITERS, source, place],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as forks:
        assert forks.stdin is not None
        assert forks.stdout is not None
        for turn in range(200):
            forks.stdin.write("\n")
            forks.stdin.flush()
            writer = int(forks.stdout.readline())
            time.sleep(rng.uniform(0, 0.02) if turn else 0.5)
            os.kill(writer, signal.SIGKILL)
            assert forks.stdout.readline() == "gone\n"
            assert_same(Matches.load(place), matches)
            left = len(list(tmp_path.glob(".detmap-*")))
            drafts += left
            most = max(most, left)
        forks.stdin.close()
    assert most == 1, "drafts pile up"
    assert drafts > 3, "hardly any writing was interrupted"
    assert np.isfinite(detmap.summarize(Matches.load(place)).metrics["AP"])
