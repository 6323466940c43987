"""What stands in place of a file is named at once; a file that changes meanwhile is an error."""

import contextlib
import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

import detmap
from detmap import DataError, DetmapError
from detmap.core.adapters import read_detections, read_images, read_truth
from detmap.core.adapters.coco import instances as coco
from detmap.core.adapters.voc import devkit as voc
from detmap.core.base import open_files as opening
from detmap.ranking import csv_scores
from tests.support import builders as make


def fifo(path: Path) -> None:
    os.mkfifo(path)


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def listening_socket(path: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)  # the name of a socket has 107 bytes at most
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(here)


def circle_of_links(path: Path) -> None:
    path.symlink_to(path.name)


def folder(path: Path) -> None:
    path.mkdir()


NO_FILES = {
    fifo: "a pipe, not a file",
    device: "a device, not a file",
    listening_socket: "a socket, not a file",
    folder: "a folder, not a file",
    circle_of_links: "cannot be read: Too many levels of symbolic links",
}
no_files = pytest.mark.parametrize(
    "make_it, what", NO_FILES.items(), ids=lambda x: getattr(x, "__name__", "")
)


@no_files
def test_what_is_no_file_is_refused_at_once(make_it, what: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    make_it(path)
    with pytest.raises(opening.UnreadableError, match=what) as refused:
        opening.read_bytes(path)
    assert refused.value.where == str(path)
    with pytest.raises(opening.UnreadableError, match=what), opening.opened(path):
        pass


def known(path: Path) -> detmap.Truth:
    return read_truth(path.with_name("gt.json"))


READERS: dict[str, Callable[[Path], object]] = {
    "instances": coco.decode_instances,
    "results": lambda path: read_detections(path, known(path), format="coco"),
    "text": lambda path: voc.decode_files(path.parent, [(path, 0)], known(path)),
    "list": lambda path: read_images(path, known(path)),
    "CSV": csv_scores._sheet,
    "XML": lambda path: voc.decode_pages(path.parent, [path]),
    "protocol": detmap.load_protocol,
    "matches": detmap.Matches.load,
    "state": detmap.Evaluator.load,
}


@no_files
@pytest.mark.parametrize("kind", READERS)
def test_each_reader_refuses_what_is_no_file(kind: str, make_it, what: str, tmp_path: Path) -> None:
    make.write(tmp_path / "gt.json", make.instances())
    path = tmp_path / "file.toml"
    make_it(path)
    with pytest.raises(DetmapError):
        READERS[kind](path)


@no_files
def test_many_annotation_files_refuse_what_is_no_file(make_it, what: str, tmp_path: Path) -> None:
    stems = [f"{i:06}" for i in range(80)]
    root = make.write_voc(tmp_path / "VOC2007", {stem: make.page() for stem in stems})
    (root / "Annotations" / "000040.xml").unlink()
    make_it(root / "Annotations" / "000040.xml")
    with pytest.raises(DataError, match=what):
        read_truth(root)


def test_a_file_that_becomes_shorter_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * 10_000)
    with opening.opened(path) as file:
        assert file.read(9_990, 20) == b"x" * 10
        path.write_bytes(b"x" * 5_000)
        assert file.read(0, 5_000) == b"x" * 5_000
        with pytest.raises(DataError, match="was truncated"):
            file.read(4_990, 20)


def test_what_is_appended_meanwhile_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"abc")
    with opening.opened(path) as file:
        path.write_bytes(b"abcdef")
        assert file.read(0, 100) == b"abc"


@pytest.mark.parametrize("has_pread", [True, False])
def test_short_answers_of_the_system_are_continued(
    has_pread: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(range(250)))
    pread, read = os.pread, os.read
    if has_pread:
        monkeypatch.setattr(os, "pread", lambda fd, n, at: pread(fd, min(n, 7), at))
    else:
        monkeypatch.delattr(os, "pread")
        monkeypatch.setattr(os, "read", lambda fd, n: read(fd, min(n, 7)))
    with opening.opened(path) as file:
        assert file.read(3, 100) == bytes(range(3, 103))
    assert opening.read_bytes(path) == bytes(range(250))


def test_a_failing_disk_is_an_error_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"abc")

    def fail(*_: object) -> bytes:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "pread", fail)
    with pytest.raises(DataError, match="cannot be read: Input/output error"):
        opening.read_bytes(path)


def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    fifo(tmp_path / "pipe")
    (tmp_path / "file").write_bytes(b"abc")
    before = len(os.listdir("/proc/self/fd"))
    for name in ("pipe", "file", "none"):
        with contextlib.suppress(DataError):
            opening.read_bytes(tmp_path / name)
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_name_with_nul_and_one_that_is_not_utf8() -> None:
    with pytest.raises(DataError, match="not a path"):
        opening.read_bytes("a\0b")
    with pytest.raises(opening.MissingFileError) as refused:
        opening.read_bytes(Path(os.fsdecode(b"a\xff")))
    assert refused.value.where == r"a\xff"


def test_the_head_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b"\xef\xbb\xbf[1, 2]")
    assert opening.head(path, 3) == b"[1,"
    assert opening.head(tmp_path, 6) == opening.head(tmp_path / "missing", 6) == b""
