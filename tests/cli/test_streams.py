"""Streams that are closed, full, without a reader, or cannot encode: quiet and exact."""

import json
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from detmap.cli import main, streams
from detmap.core.base import atomic_files
from tests.support import builders as make
from tests.support.running import Outcome, python, run

COCO, RESULTS = make.SHAPES / "instances_test.json", make.SHAPES / "detections" / "contours.json"
WORDS = ("eval", str(COCO), str(RESULTS))
EVAL = shlex.join(WORDS)
CLOSED = "detmap: error: stdout: is closed\n  fix: write to a file with -o\n"
FULL = "detmap: error: stdout: No space left on device\n  fix: write to a file with -o\n"

pytestmark = pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")


def shell(command: str, cwd: Path, **environment: str) -> Outcome:
    """A command line of bash, in which detmap is this one."""
    done = subprocess.run(
        ["bash", "-c", f'detmap() {{ "{sys.executable}" -m detmap "$@"; }}\n{command}'],
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    assert "Traceback" not in done.stderr
    assert "detmap's fault" not in done.stderr
    return Outcome(done.returncode, done.stdout, done.stderr)


@pytest.mark.slow
def test_stdout_that_is_closed(tmp_path: Path) -> None:
    assert shell(f"detmap {EVAL} >&-", tmp_path) == (2, "", CLOSED)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["&-", "/dev/full"])
def test_stderr_that_is_closed_or_full(tmp_path: Path, target: str) -> None:
    outcome = shell(f"detmap {EVAL} 2>{target}", tmp_path)
    assert outcome == (0, run(*WORDS).out, "")


@pytest.mark.slow
def test_all_streams_closed_and_a_file_named(tmp_path: Path) -> None:
    assert shell(f"detmap {EVAL} -o out >&- 2>&- <&-", tmp_path) == (0, "", "")
    assert (tmp_path / "out").read_text() == run(*WORDS).out


@pytest.mark.slow
def test_all_streams_closed_is_exit_2(tmp_path: Path) -> None:
    assert shell("detmap show >&- 2>&- <&-", tmp_path) == (2, "", "")
    assert shell("detmap show nothing >&- 2>&- <&-", tmp_path) == (2, "", "")


@pytest.mark.slow
@pytest.mark.parametrize("command", ["show", "--help", "show --help"])
def test_stdout_that_is_full(tmp_path: Path, command: str) -> None:
    assert shell(f"detmap {command} > /dev/full", tmp_path) == (2, "", FULL)


@pytest.mark.slow
def test_the_answer_of_verify_is_a_result(tmp_path: Path) -> None:
    assert run(*WORDS, "--receipt", tmp_path / "run.json").code == 0
    words = ("verify", "run.json", "--truth", str(COCO), "--detections", str(RESULTS))
    command = f"detmap {shlex.join(words)}"
    assert shell(f"{command} > /dev/full", tmp_path) == (2, "", FULL)


@pytest.mark.slow
def test_a_message_that_is_lost_is_no_error_where_the_part_is_written(tmp_path: Path) -> None:
    command = EVAL.replace("eval", "match", 1)
    assert shell(f"detmap {command} -o part.npz > /dev/full", tmp_path) == (0, "", "")
    assert run("merge", tmp_path / "part.npz").code == 0


@pytest.mark.slow
@pytest.mark.parametrize("device", ["/dev/full", "/dev/null", "."])
@pytest.mark.parametrize("command", ["eval", "match"])
def test_an_output_that_is_no_file_is_blamed(tmp_path: Path, command: str, device: str) -> None:
    code, out, err = shell(f"detmap {EVAL.replace('eval', command, 1)} -o {device}", tmp_path)
    assert (code, out) == (2, "")
    assert err.startswith(f"detmap: error: {device}: is ")
    assert "stdout" not in err
    assert "-o" not in err


@pytest.mark.slow
@pytest.mark.parametrize("device", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "link"])
def test_a_stream_is_no_output_file(tmp_path: Path, device: str) -> None:
    """It would replace the file that the shell appends to."""
    (tmp_path / "log").write_text("before\n")
    (tmp_path / "link").symlink_to("/dev/stdout")
    code, _, err = shell(
        f"detmap {EVAL} -o {device} >> log; c=$?; echo after >> log; exit $c", tmp_path
    )
    assert code == 2
    assert err.startswith(f"detmap: error: {device}: is a stream of this process, not a file")
    assert (tmp_path / "log").read_text() == "before\nafter\n"


def test_files_in_shared_memory_are_files() -> None:
    """They are in /dev."""
    if not os.access("/dev/shm", os.W_OK):
        pytest.skip("no /dev/shm here")
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        atomic_files.write_text(Path(folder, "a"), "content")
        assert Path(folder, "a").read_text() == "content"


@pytest.mark.slow
def test_a_reader_that_leaves(tmp_path: Path) -> None:
    outcome = shell(f"detmap {EVAL} --per-class 2>&1 | head -1", tmp_path)
    assert outcome.out.count("\n") == 1
    assert outcome.err == ""


@pytest.mark.slow
def test_a_terminal_that_cannot_encode(tmp_path: Path) -> None:
    instances = make.instances(categories=[make.category(name="caf\N{LATIN SMALL LETTER E}\u0301")])
    make.write(tmp_path / "gt.json", instances)
    make.write(tmp_path / "dt.json", [make.detection()])
    environments = [{"PYTHONIOENCODING": "ascii"}]
    if (sys.prefix + str(make.ROOT)).isascii():  # else Python cannot read its own .pth files
        environments.append({"LC_ALL": "C", "PYTHONUTF8": "0"})
    for environment in environments:
        outcome = shell("detmap eval gt.json dt.json --per-class", tmp_path, **environment)
        assert outcome.code == 0
        assert "cafe\\u0301" in outcome.out
        as_json = shell("detmap eval gt.json dt.json --format json", tmp_path, **environment)
        assert json.loads(as_json.out)["per_class"][0]["name"] == "cafe\u0301"


@pytest.mark.parametrize("format", ["table", "csv", "markdown", "json"])
def test_a_file_name_that_is_not_utf_8(tmp_path: Path, format: str) -> None:
    """Names that Python holds as surrogates are escaped in what is written."""
    strange = os.fsdecode(b"caf\xe9")
    folder = tmp_path / strange
    folder.mkdir()
    make.write(folder / "gt.json", make.instances())
    make.write(folder / "dt.json", [make.detection()])
    text = (make.ROOT / "configs" / "coco-bbox.toml").read_text(encoding="utf-8")
    make.write(folder / "own.toml", text)
    outcome = run(
        *("eval", folder / "gt.json", folder / "dt.json", "-p", folder / "own.toml"),
        *("--format", format, "-o", folder / "out"),
    )
    assert (outcome.code, outcome.out) == (0, "")
    written = (folder / "out").read_text(encoding="utf-8")
    assert json.loads(written) if format == "json" else written


ESCAPES = "\x1b[31m\x9b\r\u202e\x07"


@pytest.mark.parametrize(
    "words",
    [
        ["eval", "truth.json", "found.json", "--per-class"],
        ["eval", "truth.json", "found.json", "--classes", ESCAPES],
        ["eval", "truth.json", f"{ESCAPES}.json"],
        ["eval", "truth.json", "found.json", "-p", ESCAPES],
        ["eval", "truth.json", "found.json", "--set", f"{ESCAPES}=1"],
        ["match", "truth.json", "found.json", "-o", f"{ESCAPES}.npz"],
        ["merge", f"{ESCAPES}.npz"],
        ["eval", f"--{ESCAPES}"],
    ],
)
def test_names_write_nothing_to_a_terminal_but_themselves(
    words: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Those of classes in the fix of an error, and of an output, once came through."""
    monkeypatch.chdir(tmp_path)
    truth = make.instances(categories=[make.category(name=f"cat{ESCAPES}")])
    make.write(Path("truth.json"), truth)
    make.write(Path("found.json"), [make.detection()])
    main(words)
    printed = "".join(capsys.readouterr())
    assert printed
    assert all(line.isprintable() for line in printed.split("\n"))


@pytest.mark.slow
def test_who_watches_the_process_is_heard_at_its_end(tmp_path: Path) -> None:
    python("-m", "cProfile", "-o", tmp_path / "profile", "-m", "detmap", "show")
    assert (tmp_path / "profile").stat().st_size > 0
    program = (
        "import atexit, runpy, sys; atexit.register(print, 'the last word');"
        "sys.argv = ['detmap', 'show']; runpy.run_module('detmap', run_name='__main__')"
    )
    assert python("-c", program).out.endswith("the last word\n")


def test_progress_in_a_log_file_is_a_line_now_and_then(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    show = streams.counter("evaluations")
    show(1, 3)
    assert capsys.readouterr().err == ""  # less than a minute
    monkeypatch.setattr(streams, "PER_LINE", 0)
    show(2, 3)
    assert capsys.readouterr().err == "2 of 3 evaluations, about 0 s left\n"
    show(3, 3)
    assert capsys.readouterr().err == ""
