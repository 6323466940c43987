"""Absurd options, outputs that are inputs, and what nobody foresaw: one line, never a traceback."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from detmap.cli import evaluation_inputs as command
from tests.support import builders as make
from tests.support.running import python, run

COCO, RESULTS = make.SHAPES / "instances_test.json", make.SHAPES / "detections" / "contours.json"


def refused(*options: object) -> str:
    """What ``detmap eval`` on the sample says to these options."""
    outcome = run("eval", COCO, RESULTS, *options)
    assert (outcome.code, outcome.out) == (2, "")
    assert "Traceback" not in outcome.err
    assert "fault" not in outcome.err
    assert all(len(line) < 1000 for line in outcome.err.splitlines())
    return outcome.err


# ---- options


@pytest.mark.parametrize("number", ["0", "-1", "1.5", "", "x", "1" + "0" * 30, "9" * 5000, "1_0"])
def test_numbers_of_threads_that_cannot_be(number: str) -> None:
    assert "--threads: " in refused(f"--threads={number}")


@pytest.mark.parametrize("number", ["0", "1,0", "1,", "9" * 5000, "1" + "0" * 30])
def test_ranks_that_cannot_be(number: str) -> None:
    outcome = run("rank", "truth.csv", "scores.csv", f"--k={number}")
    assert outcome.code == 2
    assert "is not a whole number of at least 1" in outcome.err


@pytest.mark.parametrize("iou", ["nan", "inf", "-1", "9" * 5000])
def test_an_iou_that_is_no_threshold(iou: str) -> None:
    assert "is not among iou.thresholds" in refused(f"--iou={iou}")


@pytest.mark.parametrize("option", ["-o", "--output"])
def test_an_empty_output_is_refused(option: str) -> None:
    assert "an empty path" in refused(option, "")


@pytest.mark.parametrize("path", ["", "a\0b"])
def test_inputs_that_are_no_path(path: str) -> None:
    outcome = run("eval", path, RESULTS)
    assert outcome.code == 2
    assert "TRUTH: " in outcome.err


@pytest.mark.parametrize(
    "setting",
    ["", "=", "x", "=1", "..=1", "a\0b=1", '"iou"=1', "\udcff=1", "iou.thresholds=" + "[" * 9000],
)
def test_settings_that_cannot_be(setting: str) -> None:
    assert "--set" in refused(f"--set={setting}")


@pytest.mark.parametrize("word", ["--set=--", "--protocol=--", "-p--", "--output=--", "-o--"])
def test_two_dashes_are_no_value(word: str) -> None:
    assert "-- is not a value" in refused(word)


def test_a_setting_of_a_megabyte() -> None:
    assert "a value of 1000000 characters" in refused("--set=metrics=" + "x" * 1_000_000)


def test_a_protocol_that_would_be_read_for_ever(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.toml"
    os.mkfifo(pipe)
    for path in (pipe, "/dev/zero"):
        assert "is not a regular file" in refused("-p", path)
        assert "is not a regular file" in run("show", path).err


# ---- outputs that are inputs


def test_an_input_is_never_overwritten(tmp_path: Path) -> None:
    truth = Path(shutil.copy(COCO, tmp_path / "truth.json"))
    link = tmp_path / "link.json"
    link.symlink_to(truth)
    hard = tmp_path / "hard.json"
    hard.hardlink_to(truth)
    before = truth.read_bytes()
    for output in (truth, link, hard, tmp_path / "." / "truth.json"):
        for name in ("eval", "match"):
            outcome = run(name, truth, RESULTS, "-o", output)
            assert outcome.code == 2
            assert outcome.err.startswith(f"detmap: error: {output}: is an input")
    assert truth.read_bytes() == before


def test_parts_protocols_and_lists_are_inputs_too(tmp_path: Path) -> None:
    part, own = tmp_path / "part.npz", tmp_path / "own.toml"
    shutil.copy(make.ROOT / "configs" / "coco-bbox.toml", own)
    assert run("match", COCO, RESULTS, "-o", part).code == 0
    assert "is an input" in run("merge", part, "-o", part).err
    assert "is an input" in run("eval", COCO, RESULTS, "-p", own, "-o", own).err
    assert "is an input" in run("show", own, "-o", own).err
    assert "is an input" in run("match", COCO, RESULTS, "--images", own, "-o", own).err


# ---- what nobody foresaw


def failing(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> Any:
    def fail(*arguments: object, **options: object) -> None:
        raise error

    monkeypatch.setattr(command, "read_truth_and_protocol", fail)
    return run("eval", COCO, RESULTS)


def test_what_nobody_foresaw_is_one_line_with_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DETMAP_DEBUG", raising=False)
    outcome = failing(monkeypatch, IndexError("list index\nout of range"))
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith(
        "detmap: error: internal error in detmap at detmap/cli/evaluation_inputs.py:"
    )
    assert "(IndexError: list index out of range)" in outcome.err
    assert outcome.err.endswith("DETMAP_DEBUG=1 shows the traceback\n")
    assert outcome.err.count("\n") == 1


def test_a_file_of_another_detmap_is_not_the_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkout, a plug-in or an environment may be below a folder of this name."""
    code = compile("raise IndexError('x')", "/srv/detmap/detmap/plug_in.py", "exec")
    monkeypatch.setattr(command, "read_truth_and_protocol", lambda *_, **__: exec(code))
    outcome = run("eval", COCO, RESULTS)
    assert "in detmap at detmap/cli/evaluation_inputs.py:" in outcome.err


def test_a_path_without_permission_has_a_fix(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = failing(monkeypatch, PermissionError(13, "Permission denied", "labels"))
    assert outcome.code == 2
    wanted = "detmap: error: labels: Permission denied\n  fix: check the path and its permissions\n"
    assert outcome.err == wanted


def test_the_traceback_is_shown_where_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DETMAP_DEBUG", "1")
    outcome = failing(monkeypatch, IndexError("x"))
    assert outcome.code == 2
    assert outcome.err.startswith("Traceback (most recent call last):\n")


@pytest.mark.parametrize(
    "error, code, words",
    [
        (MemoryError("Unable to allocate 9. TiB"), 2, "does not fit (Unable to allocate 9. TiB)"),
        (RecursionError("maximum recursion depth"), 2, "nested too deeply"),
        (KeyboardInterrupt(), 130, "detmap: interrupted\n"),
        (BrokenPipeError(), 0, ""),
        (OSError(5, "Input/output error"), 2, "detmap: error: Input/output error\n"),
        (OSError(5, "Input/output error", "gt.json"), 2, "detmap: error: gt.json: Input/output"),
    ],
    ids=["memory", "recursion", "interrupt", "pipe", "system", "file"],
)
def test_each_end_has_its_line_and_its_code(
    monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int, words: str
) -> None:
    outcome = failing(monkeypatch, error)
    assert outcome.code == code
    assert words in outcome.err
    assert "Traceback" not in outcome.err


# ---- start


def test_the_help_needs_no_numpy() -> None:
    code = (
        "import sys\n"
        "from detmap.cli import main\n"
        "main(sys.argv[1:])\n"
        "print([m for m in ('numpy', 'rich', 'msgspec') if m in sys.modules], file=sys.stderr)\n"
    )
    for words in (["--help"], ["--version"], ["bogus"]):
        assert python("-c", code, *words).err.endswith("[]\n")


@pytest.mark.slow
def test_evaluate_is_the_function_in_whatever_order_modules_are_imported() -> None:
    code = (
        "import detmap, detmap.evaluate\n"
        "from detmap.evaluate import evaluate\n"
        "import detmap.cli.commands.eval\n"
        "assert detmap.evaluate is evaluate\n"
        "assert detmap.core.protocol.load is detmap.load_protocol\n"
        "assert 'evaluate' in dir(detmap)\n"
        "from detmap import *\n"
    )
    assert python("-c", code) == (0, "", "")


def test_a_name_with_a_line_end_breaks_no_message(tmp_path: Path) -> None:
    outcome = run("eval", tmp_path / "a\nfix: b.json", RESULTS)
    assert outcome.code == 2
    assert "a\\nfix: b.json" in outcome.err
    assert not any(line.startswith("fix:") for line in outcome.err.splitlines())
    outcome = run("eval", COCO, RESULTS, "-o", tmp_path / "a\nb" / "c.txt")
    assert outcome.code == 2
    assert "a\\nb" in outcome.err


@pytest.mark.parametrize("format", ["table", "markdown", "latex", "csv"])
def test_a_name_of_thousands_is_shortened_for_people_alone(tmp_path: Path, format: str) -> None:
    content, name = json.loads(COCO.read_text()), "x" * 10_000
    content["categories"][0]["name"] = name
    truth = tmp_path / "truth.json"
    truth.write_text(json.dumps(content))
    told = run("eval", truth, RESULTS, "--per-class", "--format", format)
    assert told.code == 0
    assert (name in told.out) is (format == "csv")
    assert "xxx" in told.out
