"""Outputs that paste: formats, one table a file, widths, colours, what a shell completes."""

import argparse
import io
import json
import math
import re
import shlex
import shutil
import subprocess
from importlib import import_module
from pathlib import Path

import pytest

import detmap
from detmap import errors
from detmap.cli import dispatch
from detmap.core.output import SUFFIXES, formats
from detmap.core.output.formats import RENDERERS
from detmap.core.output.table import PValue, Style, Table
from tests.support import builders as make
from tests.support.running import Outcome, on_a_terminal, run

COCO, RESULTS = make.SHAPES / "instances_test.json", make.SHAPES / "detections" / "contours.json"
B = make.SHAPES / "detections" / "template.json"


def evaluate(*options: object) -> Outcome:
    outcome = run("eval", COCO, RESULTS, *options)
    assert outcome.code == 0, outcome.err
    return outcome


# ---- formats


@pytest.mark.parametrize(
    ("suffix", "name"), [*SUFFIXES.items(), (".JSON", "json"), (".txt", "table")]
)
def test_the_suffix_of_the_output_names_the_format(tmp_path: Path, suffix: str, name: str) -> None:
    file = tmp_path / f"result{suffix}"
    evaluate("-o", file)
    assert file.read_text() == evaluate("--format", name).out


def test_a_format_that_is_named_wins_over_the_suffix(tmp_path: Path) -> None:
    evaluate("-o", tmp_path / "x.csv", "--format", "markdown")
    assert (tmp_path / "x.csv").read_text() == evaluate("--format", "markdown").out


HARD = Table(
    "hard",
    ("name", "value"),
    (('a,"b"\r\n', 0.1), ("50% & $x_1 {#} ~^\\", float("nan")), ("| <b>", None)),
    ("below",),
    name="hard",
)


def test_names_of_any_kind_stay_one_cell() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.read_csv(io.StringIO(formats.csv([HARD])))
    assert frame["name"].tolist() == ['a,"b"\\r\\n', "50% & $x_1 {#} ~^\\", "| <b>"]
    assert frame["value"].tolist()[0] == 0.1
    assert frame["value"].isna().tolist() == [False, True, True]
    assert "50\\% \\& \\$x\\_1 \\{\\#\\} \\textasciitilde{}" in formats.latex([HARD])
    assert "\\textbar{} \\textless{}b\\textgreater{} & -" in formats.latex([HARD])
    assert "&lt;b&gt;" in formats.html([HARD])
    assert "| \\| &lt;b&gt; | - |" in formats.markdown([HARD])
    assert json.loads(formats.json([HARD]))["hard"][1]["value"] is None


@pytest.mark.parametrize(
    ("p", "digits", "text"),
    [
        (3.2e-48, None, "<0.0001"),
        (0.0, None, "<0.0001"),
        (5e-5, None, "0.0001"),
        (0.04, None, "0.0400"),
        (0.004, 2, "<0.01"),
        (0.004, 0, "0.0040"),
        (math.nan, None, "-"),
    ],
)
def test_a_p_value_is_never_shown_as_zero(p: float, digits: int | None, text: str) -> None:
    style = Style(percent=True, digits=digits)
    table = Table("", ("p",), ((PValue(p),),))
    assert formats.text([table], style).splitlines()[-1].strip() == text
    assert json.loads(formats.json([table], style))["table"] == [{"p": None if p != p else p}]
    if digits is None and p == p:
        assert float(formats.csv([table], style).splitlines()[1]) == p


def test_latex_has_the_rules_of_booktabs() -> None:
    text = evaluate("--format", "latex", "--per-class").out
    for word in ("\\begin{tabular}", "\\toprule", "\\midrule", "\\bottomrule", "\\end{tabular}"):
        assert text.count(word) == 3  # the last has the metrics in one row
    assert "AP & 0.50:0.95 & all & 100 & 0.4478 \\\\\n" in text
    body = re.findall(r"\\midrule\n(.*?)\n\\bottomrule", text, re.DOTALL)[1]
    assert {line.count("&") for line in body.split("\n")} == {11}


COMMANDS = {
    "eval": ("eval", COCO, RESULTS),
    "classes": ("eval", COCO, RESULTS, "--table", "classes"),
    "all": ("eval", COCO, RESULTS, "--per-class", "--integrators"),
    "demo": ("demo",),
    "show": ("show",),
    "formats": ("show", "--formats"),
    "parity": ("parity", COCO, RESULTS),
}


@pytest.mark.slow
@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
def test_pandas_reads_every_csv_as_one_table(words: tuple[object, ...]) -> None:
    pandas = pytest.importorskip("pandas")
    text = run(*words, "--format", "csv").out
    frame = pandas.read_csv(io.StringIO(text))
    assert len(frame) == text.count("\n") - 1 > 0
    assert not [name for name in frame.columns if name.startswith("Unnamed")]


def test_one_table_a_file(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    result = detmap.evaluate(COCO, RESULTS)
    for table in ("metrics", "classes", "integrators"):
        evaluate("--table", table, "-o", tmp_path / f"{table}.csv")
        frame = pandas.read_csv(tmp_path / f"{table}.csv")
        pandas.testing.assert_frame_equal(frame, result.to_frame(table), check_dtype=False)
    both = evaluate("--per-class", "--format", "csv")
    assert both.out == (tmp_path / "classes.csv").read_text()
    assert "note: CSV holds the table classes; --table has metrics\n" in both.err


def test_a_table_alone_keeps_the_signature() -> None:
    lines = evaluate("--table", "classes").out.splitlines()
    assert lines[0] == "classes"
    assert lines[-1] == detmap.evaluate(COCO, RESULTS).signature


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        (("--digits", "2"), "0.45"),
        (("--digits", "0", "--percent"), "45"),
        (("--digits", "8"), "0.44777804"),
        (("--digits", "3", "--format", "csv"), "AP,0.50:0.95,all,100,0.448"),
        (("--digits", "1", "--percent", "--format", "latex"), "AP & 0.50:0.95 & all & 100 & 44.8"),
    ],
)
def test_digits_are_as_many_as_asked_for(options: tuple[str, ...], shown: str) -> None:
    text = {line[-len(shown) :] for line in evaluate(*options).out.replace(" \\\\", "").split("\n")}
    assert shown in text


@pytest.mark.parametrize("digits", ["-1", "18", "1.5", "x", ""])
def test_digits_that_cannot_be(digits: str) -> None:
    assert run("eval", COCO, RESULTS, f"--digits={digits}").code == 2


@pytest.mark.parametrize(
    ("option", "value"), [("--percent", ""), ("--digits", "3"), ("--table", "metrics")]
)
def test_json_is_what_it_always_is(tmp_path: Path, option: str, value: str) -> None:
    by_suffix = ("-o", tmp_path / "x.json")
    for form in (("--format", "json"), *([] if option == "--percent" else [by_suffix])):
        outcome = run("eval", COCO, RESULTS, *form, option, *filter(None, [value]))
        assert outcome.code == 2
        assert f"detmap: error: {option}: JSON holds " in outcome.err
    assert not (tmp_path / "x.json").exists()


# ---- frames, pages, outlines


def test_a_notebook_gets_a_table() -> None:
    pytest.importorskip("pandas")
    result = detmap.evaluate(COCO, RESULTS)
    shown = result._repr_html_()
    assert shown.count("<tr>") == 1 + len(result.metrics)
    assert '<div class="tile"><span>AP50</span><b>60.60</b></div>' in shown
    assert result.to_frame().attrs["signature"] == result.signature
    with pytest.raises(errors.DetmapError, match="no table 'x'"):
        result.to_frame("x")


def test_a_missing_package_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(errors.DetmapError, match=r"pip install 'detmap-eval\[frames\]'"):
        detmap.evaluate(COCO, RESULTS).to_frame()


def test_every_public_object_is_shown_in_fifteen_lines() -> None:
    truth = detmap.truth_from_arrays(
        [f"image-{i:05}" for i in range(300)],
        list(range(300)),
        [[1, 1, 9, 9]] * 300,
        categories={i: f"class number {i}" for i in range(300)},
    )
    found = detmap.detections_from_arrays(
        truth, truth.images.ids, truth.categories.ids, [[1, 1, 9, 9]] * 300, [0.5] * 300
    )
    result = detmap.evaluate(truth, found, "coco-bbox")
    ranking = detmap.ranking.evaluate(
        detmap.ranking.from_arrays([[0, 1] * 90] * 40 + [[1, 0] * 90], [[0.5] * 180] * 41)
    )
    objects = [truth, found, truth.images, truth.categories, result, result.matches, result.scores]
    objects += [result.protocol, result.overview, *result.notes, ranking, ranking.table]
    objects += [
        detmap.Evaluator(truth=truth),
        detmap.Evaluator(classes=[f"c{i}" for i in range(999)]),
    ]
    objects += [detmap.ranking.confusion([[0, 1] * 99] * 9, [[0.5] * 198] * 9)]
    objects += [detmap.ranking.best_f_beta([[0, 1] * 99] * 9, [[0.5] * 198] * 9)]
    for each in objects:
        lines = repr(each).split("\n")
        assert len(lines) <= 15
        assert max(map(len, lines)) <= 120 or not isinstance(each, detmap.Note)
        assert lines[0].startswith(tuple(kind.__name__ for kind in type(each).__mro__))


# ---- width, colour


@pytest.mark.parametrize("protocol", ["coco-bbox", "voc2012", "lvis"])
def test_nothing_is_folded_in_a_pipe(protocol: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "1000")  # the default is 120
    lines = evaluate("-p", protocol, "--per-class").out.splitlines()
    begin = next(i for i, line in enumerate(lines) if line.startswith("class "))
    circle = next(line for line in lines[begin:] if line.startswith("circle "))
    assert len(circle.split()) == len(lines[begin].split())
    assert sum(line.startswith("circle ") for line in lines) == 1


@pytest.mark.slow
@pytest.mark.parametrize("command", ["eval", "diagnose", "compare", "tools"])
def test_no_command_folds_wide_names_in_a_pipe(
    tmp_path: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "1000")
    name = " ".join(["a long name of a class"] * 12)
    truth = json.loads(COCO.read_text())
    truth["categories"][0]["name"] = name
    file = make.write(tmp_path / "truth.json", truth)
    wide = tmp_path / f"{'detector-' * 20}.json"
    wide.write_bytes(RESULTS.read_bytes())
    more = {"eval": ["--per-class"], "compare": [B], "tools": ["--only", "tide"]}.get(command, [])
    done = run(command, file, wide, *more)
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert all(name in line for line in lines if "a long name" in line)
    if command == "compare":
        assert any(wide.stem in line for line in lines)


def test_a_result_as_text_fits_eighty_columns() -> None:
    result = detmap.evaluate(COCO, RESULTS)
    for line in formats.text(result.tables(per_class=True, integrators=True)).splitlines():
        assert len(line) <= 80 or line == result.signature


def test_a_folded_table_loses_nothing() -> None:
    header = ("class", *(f"column {c}" for c in range(30)))
    rows = tuple((f"name {r}", *(100 * r + c for c in range(30))) for r in range(3))
    text = formats.text([Table("t", header, rows, name="t")])
    assert max(map(len, text.splitlines())) <= 80
    wanted = sorted({str(100 * r + c) for r in range(3) for c in range(30)} - {"0"}, key=int)
    assert sorted(set(re.findall(r"\b\d+\b", text)) - {"0"}, key=int) == wanted
    assert text.count("name 2") == text.count("class") > 2
    wide = formats.text([Table("", ("a", "b"), (("x" * 300, 1), ("word " * 90, 2)))])
    assert max(map(len, wide.splitlines())) <= 80
    assert wide.count("x") == 300
    assert wide.count("word") == 90


def test_colour_where_a_terminal_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[33mnote:\x1b[0m" in on_a_terminal("eval", COCO, RESULTS).err
    assert "\x1b[1;31mdetmap: error:\x1b[0m" in on_a_terminal("eval", "no", "no").err
    monkeypatch.setenv("NO_COLOR", "1")
    outcome = on_a_terminal("eval", COCO, RESULTS)
    assert "\x1b" not in outcome.out + outcome.err
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    outcome = on_a_terminal("eval", COCO, RESULTS)
    assert "\x1b" not in outcome.out + outcome.err
    assert "\x1b" not in evaluate().out + evaluate().err


@pytest.mark.parametrize("width", [40, 80, 200])
def test_a_width_is_never_overrun(width: int) -> None:
    header = ("class", *(f"column {c}" for c in range(12)))
    rows = tuple((f"name {r}", *(r + c / 7 for c in range(12))) for r in range(3))
    text = formats.text([Table("", header, rows)], Style(width=width))
    assert max(map(len, text.splitlines())) <= width
    assert all(f"{r + c / 7:.4f}" in text for r in range(3) for c in range(12))


# ---- a command line that teaches


def test_no_words_print_the_commonest_jobs() -> None:
    bare = run()
    assert (bare.code, bare.err) == (0, "")
    assert bare.out == dispatch.JOBS
    named = re.findall(r"^  detmap (\w+)", bare.out, re.MULTILINE)
    assert {"eval", "compare", "report"} <= {*named} <= {*dispatch.COMMANDS}
    assert all(name in run("--help").out for name in dispatch.COMMANDS)


@pytest.mark.parametrize("name", dispatch.COMMANDS)
def test_every_help_has_three_examples_that_are_read(name: str) -> None:
    examples = import_module(dispatch.COMMANDS[name].module).EXAMPLES
    assert len(examples) >= 3
    shown = run(name, "--help").out.split("examples:\n")[1]
    for example in examples:
        assert example in shown
        assert len(example) <= 78
        last = example.partition(" > ")[0].rpartition(" && ")[2]
        words = shlex.split(last, comments=True)
        words = words[words.index("detmap") + 1 :]
        arguments = dispatch.parser([name]).parse_args(words)
        assert words[0] == name
        assert isinstance(arguments, argparse.Namespace)


def test_what_can_be_chosen_is_listed_where_one_asks() -> None:
    text = "".join(run("eval", "--help").out.split())  # lines break at hyphens too
    for name in (*detmap.core.protocol.names(), *RENDERERS, *detmap.core.adapters.FORMATS):
        assert name in text
    rows = run("show", "--formats", "--format", "csv").out.splitlines()
    assert [row.split(",")[0] for row in rows[1:]] == list(detmap.core.adapters.FORMATS)
    assert "`detmapshow" in text


# ---- completion

TRIED = {
    "bash": "source {script}; COMP_WORDS=(detmap {words} ''); COMP_CWORD={n}; "
    "_shtab_detmap; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
    "fish": "source {script}; complete -C 'detmap {words} '",
}


@pytest.mark.slow
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_completes(shell: str, tmp_path: Path) -> None:
    pytest.importorskip("shtab")
    script = tmp_path / f"detmap.{shell}"
    assert run("completion", shell, "-o", script).code == 0
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")

    def offered(words: str) -> str:
        if shell == "zsh":  # its completions need a terminal: the script is parsed
            return subprocess.run(
                ["zsh", "-n", script], check=True, capture_output=True, text=True
            ).stderr
        code = TRIED[shell].format(script=script, words=words, n=1 + len(words.split()))
        done = subprocess.run([shell, "-c", code], check=False, capture_output=True, text=True)
        return done.stdout

    if shell == "zsh":
        assert offered("") == ""
        text = script.read_text()
        assert "--per-class" in text
        assert "voc2007-python" in text
        return
    assert {line.split("\t")[0] for line in offered("").splitlines()} >= set(dispatch.COMMANDS)
    assert "csv" in offered("eval --format").split()
    assert "voc2007-python" in offered("eval -p").split()


def test_percent_beside_a_json_file_that_the_suffix_chose(tmp_path: Path) -> None:
    """The action writes JSON and is given the options of the table."""
    path = tmp_path / "x.json"
    outcome = evaluate("-o", path, "--percent")
    assert outcome.code == 0
    assert "--percent has no effect" in outcome.err
    wanted = json.loads(evaluate("--format=json").out)["metrics"]
    assert json.loads(path.read_text())["metrics"] == wanted


def test_short_errors_never_name_the_truth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a challenge server, participants read the errors."""
    secret = tmp_path / "hidden place" / "secret.json"
    secret.parent.mkdir()
    secret.write_text('{"images": 1}')
    (tmp_path / "mine.json").write_text("[]")
    monkeypatch.setenv("DETMAP_ERRORS", "short")
    outcome = run("eval", secret, tmp_path / "mine.json")
    assert outcome.code == 2
    assert "the ground truth" in outcome.err
    assert "secret" not in outcome.err
    assert "hidden" not in outcome.err
    for missing in (secret.with_name("no.json"), secret.parent / "hall"):
        outcome = run("eval", "-p", "voc2012", missing, tmp_path / "mine.json")
        assert outcome.code == 2
        assert outcome.err.startswith("detmap: error: the ground truth: no such file or folder")
        assert "hidden" not in outcome.err
    error = errors.DataError(f"{secret}.images", f"see {secret.parent}/other.json", "mend it")
    assert error.without_paths(secret) == "the ground truth.images: see other.json (mend it)"
