"""No output replaces a file that the command read, whether its line names the file or another file
does: members of folders, data sets of a suite, inputs of receipts, images of a data.yaml.
"""

import json
import shutil
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from detmap.core.base import atomic_files, open_files
from detmap.errors import DetmapError
from tests.support import builders as make
from tests.support.format_samples import SAMPLES
from tests.support.running import run

COCO, RESULTS = make.SHAPES / "instances_test.json", make.SHAPES / "detections" / "contours.json"
IS_INPUT = "is an input, and would be overwritten"


def contents(folder: Path) -> dict[Path, bytes]:
    return {file: file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}


def annotations(folder: Path) -> Iterator[Path]:
    """All files but pictures, and those that say nothing about boxes."""
    for file in contents(folder):
        if file.suffix not in (".png", ".jpg"):
            yield file


@pytest.mark.parametrize("kind", SAMPLES)
def test_files_of_every_format_are_kept(tmp_path: Path, kind: str) -> None:
    """Each file of a sample as the output: it is refused, or nothing was read from it."""
    if "parquet" in kind:
        pytest.importorskip("pyarrow")
    truth, found = SAMPLES[kind](tmp_path)
    number = run("eval", truth, found, "--format", "json").out
    before, refused = contents(tmp_path), 0
    for file in annotations(tmp_path):
        outcome = run("eval", truth, found, "-o", file, "--format", "csv")
        if outcome.code == 0:
            file.write_bytes(before[file][: len(before[file]) // 2])
            assert run("eval", truth, found, "--format", "json").out == number, file.name
            file.write_bytes(before[file])
        else:
            assert IS_INPUT in outcome.err
            refused += 1
        assert contents(tmp_path) == before
    assert refused


def test_files_that_a_suite_names_are_kept(tmp_path: Path) -> None:
    for source, name in ((COCO, "g.json"), (RESULTS, "d.json")):
        shutil.copy(source, tmp_path / name)
    (tmp_path / "p.toml").write_text('based_on = "coco-bbox"\nname = "own"\n')
    suite = tmp_path / "s.toml"
    suite.write_text(
        'protocol = "p.toml"\n[[data]]\nname = "a"\ntruth = "g.json"\n'
        'detections = "d.json"\n[[figures]]\nname = "all"\ntake = "mean"\n'
    )
    told = run("suite", suite)
    before = contents(tmp_path)
    for name in ("g.json", "d.json", "p.toml", "s.toml"):
        outcome = run("suite", suite, "-o", tmp_path / name)
        assert (outcome.code, told.code) == (2, 0), told.err
        assert IS_INPUT in outcome.err or "the format .toml is not written" in outcome.err
        assert contents(tmp_path) == before


def test_files_that_a_receipt_names_are_kept(tmp_path: Path) -> None:
    for source, name in ((COCO, "g.json"), (RESULTS, "d.json")):
        shutil.copy(source, tmp_path / name)
    files = tmp_path / "g.json", tmp_path / "d.json"
    assert run("eval", *files, "--receipt", tmp_path / "r.json").code == 0
    before = contents(tmp_path)
    for file in (*files, tmp_path / "r.json"):
        for more in ([], ["--unverified"]):
            outcome = run("cite", tmp_path / "r.json", "-o", file, *more)
            assert outcome.code == 2
            assert IS_INPUT in outcome.err
        outcome = run("verify", tmp_path / "r.json", "--format", "json", "-o", file)
        assert outcome.code == 2
        assert contents(tmp_path) == before


def test_a_file_is_remembered_in_its_block_only(tmp_path: Path) -> None:
    file, link = tmp_path / "a.json", tmp_path / "link.json"
    file.write_text(json.dumps([]))
    link.symlink_to(file)
    with open_files.remembering():
        assert not open_files.was_read(file)
        open_files.read_bytes(file)
        assert open_files.was_read(link)
        assert not open_files.was_read(tmp_path / "none")
        for place in (file, link):
            with pytest.raises(DetmapError, match=IS_INPUT):
                atomic_files.write_text(place, "lost")
        with open_files.remembering():
            assert not open_files.was_read(file)
        assert open_files.was_read(file)
    atomic_files.write_text(link, "kept")
    assert file.read_text() == "kept"


@pytest.mark.parametrize("option", ["-o", "--errors", "--per-image", "--receipt"])
@pytest.mark.parametrize("suffix", [".csv", ".json", ".txt.csv", ".md"])
def test_outputs_beside_inputs_are_no_inputs(tmp_path: Path, option: str, suffix: str) -> None:
    """Files of a folder that are only looked at, to recognize its format, are no inputs."""
    found = tmp_path / "found"
    shutil.copytree(make.SHAPES / "detections" / "contours", found)
    words = ("eval", make.SHAPES, found, "-p", "voc2012", option, found / f"out{suffix}")
    first = run(*words)
    written = (found / f"out{suffix}").read_bytes()
    assert (first.code, run(*words).code) == (0, 0)
    if option != "--receipt":  # which has a digest of the folder, and so of itself
        assert (found / f"out{suffix}").read_bytes() == written


def test_inspect_can_be_repeated_with_its_output_in_the_folder(tmp_path: Path) -> None:
    found = tmp_path / "found"
    shutil.copytree(make.SHAPES / "detections" / "contours", found)
    words = ("inspect", found, "--truth", make.SHAPES, "-o", found / "out.json")
    assert (run(*words).code, run(*words).code) == (0, 0)


def test_a_file_that_is_looked_at_is_not_remembered(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).write_text(name)
    with open_files.remembering():
        open_files.read_bytes(tmp_path / "a")
        with open_files.looking():
            open_files.read_bytes(tmp_path / "b")
        assert open_files.was_read(tmp_path / "a")
        assert not open_files.was_read(tmp_path / "b")


def test_threads_have_blocks_of_their_own(tmp_path: Path) -> None:
    """Blocks that overlap in time end in any order; a thread without a block may write."""
    (tmp_path / "a").write_text("a")
    both, one_ended = threading.Barrier(2), threading.Event()

    def first() -> None:
        with open_files.remembering():
            both.wait(10)
        one_ended.set()

    def second() -> None:
        with open_files.remembering():
            open_files.read_bytes(tmp_path / "a")
            both.wait(10)
            assert one_ended.wait(10)
            assert open_files.was_read(tmp_path / "a")

    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(first), pool.submit(second)]:
            done.result(20)
    with open_files.remembering():
        open_files.read_bytes(tmp_path / "a")
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(open_files.was_read, tmp_path / "a").result(10) is False
            pool.submit(open_files.read_bytes, COCO).result(10)
        assert open_files.was_read(COCO)  # by a thread of this command
    assert not open_files.was_read(tmp_path / "a")
    atomic_files.write_text(tmp_path / "a", "b")
