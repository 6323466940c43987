"""`detmap doctor`, and what `detmap eval` says, repairs and refuses by itself."""

import json
from pathlib import Path

import pytest

import detmap
from tests.analysis.doctor.sample import RIGHT, TRUTH, with_mistakes
from tests.support.builders import write
from tests.support.running import run
from tools.doctor_kinds import KINDS

AP50 = 0.6059881102688345  # of RIGHT
KIND = {"xyxy": "corners", "stems": "file stems", "from zero": "classes from 0"}
KIND |= {"percent": "percent", "first images": "the first half"}
NAME = {mistake: KINDS[kind].wanted[0] for mistake, kind in KIND.items()}


@pytest.fixture(scope="module")
def wrong(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Results files, a mistake each."""
    place = tmp_path_factory.mktemp("wrong")
    return {
        mistake: write(place / f"{mistake}.json", with_mistakes(kind).rows)
        for mistake, kind in KIND.items()
    }


@pytest.mark.slow
def test_the_command_says_what_is_wrong(wrong: dict[str, Path]) -> None:
    done = run("doctor", TRUTH, wrong["xyxy"])
    assert done.code == 1
    assert done.out.startswith("1. boxes-xyxy  ")
    assert f"{AP50:.4f}" in done.out
    assert "--fix boxes-xyxy" in done.out


@pytest.mark.slow
def test_the_command_says_it_in_json(wrong: dict[str, Path]) -> None:
    done = run("doctor", TRUTH, wrong["xyxy"], "--format", "json")
    (finding,) = json.loads(done.out)["findings"]
    assert list(finding) == ["name", "sentence", "ap50_before", "ap50_after", "fix"]
    assert finding["name"] == "boxes-xyxy"
    assert finding["fix"] == "--fix boxes-xyxy"
    assert finding["ap50_before"] < 0.1 < finding["ap50_after"] == AP50


def test_a_suffix_chooses_json(wrong: dict[str, Path], tmp_path: Path) -> None:
    assert run("doctor", TRUTH, wrong["percent"], "-o", tmp_path / "found.json").code == 1
    found = json.loads((tmp_path / "found.json").read_text())["findings"]
    assert [each["name"] for each in found] == ["scores-percent"]


@pytest.mark.slow
def test_nothing_found_is_exit_0() -> None:
    done = run("doctor", TRUTH, RIGHT, "--strict")
    assert (done.code, done.out) == (0, "nothing found\n")
    assert json.loads(run("doctor", TRUTH, RIGHT, "--format", "json").out) == {"findings": []}


@pytest.mark.slow
def test_strict_makes_a_finding_exit_2(wrong: dict[str, Path]) -> None:
    assert run("doctor", TRUTH, wrong["percent"], "--strict").code == 2
    assert run("eval", TRUTH, wrong["percent"], "--strict").code == 2
    assert run("eval", TRUTH, RIGHT, "--strict").code == 0


def test_what_nobody_can_read_is_bad_input(tmp_path: Path) -> None:
    file = tmp_path / "broken.json"
    for text in ("[{", '[{"image_id": 1}]', '{"some": "thing"}', "[1, 2]"):
        file.write_text(text)
        done = run("doctor", TRUTH, file)
        assert done.code == 2
        assert "broken.json" in done.err
    assert run("doctor", TRUTH, tmp_path / "nowhere.json").code == 2


@pytest.mark.slow
@pytest.mark.parametrize("mistake", ["xyxy", "from zero", "percent", "first images"])
def test_eval_asks_the_doctor_by_itself(wrong: dict[str, Path], mistake: str) -> None:
    done = run("eval", TRUTH, wrong[mistake])
    assert f"note: doctor: {NAME[mistake]}: " in done.err


def test_eval_asks_the_doctor_about_a_file_that_it_refuses(wrong: dict[str, Path]) -> None:
    findings = detmap.doctor(TRUTH, wrong["stems"])
    assert [finding.name for finding in findings] == ["images-by-stem"]


def test_eval_says_nothing_of_a_good_file() -> None:
    assert "doctor" not in run("eval", TRUTH, RIGHT).err


@pytest.mark.slow
@pytest.mark.parametrize("mistake", ["xyxy", "stems", "from zero", "percent"])
def test_a_repair_gives_the_right_number_and_says_so(wrong: dict[str, Path], mistake: str) -> None:
    name = NAME[mistake]
    done = run("eval", TRUTH, wrong[mistake], "--fix", name, "--format", "json")
    assert done.code == 0
    found = json.loads(done.out)
    assert found["metrics"]["AP50"] == AP50
    assert found["fixes"] == [name]
    assert f"fixed-{name}" in [note["code"] for note in found["notes"]]
    assert f"+{name}|" in found["signature"].split("data:")[1]
    assert "detections were fixed" in done.err
    assert f"--fix {name}" in run("eval", TRUTH, wrong[mistake], "--fix", name).out


def test_a_repair_that_makes_no_sense_is_refused(wrong: dict[str, Path]) -> None:
    for name, what in (
        ("boxes-upside-down", "no such fix"),
        ("xyxy", "did you mean 'boxes-xyxy'?"),
        ("images-by-stem", "fits nothing"),
    ):
        done = run("eval", TRUTH, wrong["xyxy"], "--fix", name)
        assert done.code == 2
        assert what in done.err


@pytest.mark.slow
@pytest.mark.usefixtures("small_pages")
def test_a_report_of_two_shows_which_is_mistaken(wrong: dict[str, Path], tmp_path: Path) -> None:
    """The box is above the summary; a Markdown report quotes the finding first."""
    for name in ("r.html", "r.md"):
        place = tmp_path / name
        assert run("report", TRUTH, RIGHT, wrong["percent"], "-o", place).code == 0
        text = place.read_text()
        finding = text.index(f"{wrong['percent']}: scores-percent: ")
        assert finding < text.index("AP50", finding + 300)
        mark = "Check the input files first" if name == "r.html" else "> **Probable mistake:**"
        assert text.index(mark) < finding
        assert f"{RIGHT}: scores-percent" not in text


@pytest.mark.slow
def test_compare_fixes_only_the_file_with_the_mistake(wrong: dict[str, Path]) -> None:
    done = run("compare", TRUTH, RIGHT, wrong["xyxy"], "--fix", "boxes-xyxy", "--format", "json")
    assert done.code == 0
    assert json.loads(done.out)["metrics"]["AP50"] == [AP50, AP50]
    assert done.err.count("detections were fixed") == 1
    assert f"note: {wrong['xyxy']}: detections were fixed: " in done.err


ALL = {
    "eval": (),
    "diagnose": (),
    "compare": (RIGHT,),
    "tools": ("--only", "tide"),
    "match": ("-o", "part.npz"),
    "report": ("-o", "page.html"),
    "explain": ("--to", "tide"),
    "reproduce": ("--depth", "0"),
}
"""Commands that read detections, and what else they need."""


@pytest.mark.slow
@pytest.mark.usefixtures("small_pages")
@pytest.mark.parametrize("command", ALL)
def test_every_command_checks_its_input_and_takes_a_fix(
    command: str, wrong: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["60.6"] if command == "reproduce" else []
    done = run(command, *words, TRUTH, wrong["percent"], *ALL[command])
    assert done.code in (0, 1), done.err
    assert "scores-percent: scores go up to" in done.err
    for output in (done.out, *(file.read_text() for file in tmp_path.glob("*.html"))):
        if command not in ("match", "report") or output is not done.out:
            assert "scores-percent" in output
    fixed = run(command, *words, TRUTH, wrong["percent"], *ALL[command], "--fix", "scores-percent")
    assert fixed.code in (0, 1), fixed.err
    assert "note: doctor" not in fixed.err


@pytest.mark.slow
def test_findings_are_above_the_numbers_of_every_format(wrong: dict[str, Path]) -> None:
    files = (TRUTH, wrong["percent"])
    for form in ("table", "markdown", "latex"):
        text = run("eval", *files, "--format", form).out
        assert 0 < text.index("scores-percent") < text.index("AP75")
    content = json.loads(run("eval", *files, "--format", "json").out)
    assert [each["name"] for each in content["findings"]] == ["scores-percent"]
    assert run("eval", *files, "--format", "csv").out.startswith("metric,")
    assert "scores-percent" not in run("eval", *files, "--table", "metrics").out


def test_truth_alone_and_many_files(tmp_path: Path) -> None:
    """As pre-commit calls it: names of files, and exit codes alone."""
    good = truth_file(tmp_path / "good.json", twice=0)
    bad = truth_file(tmp_path / "bad.json", twice=5)
    assert run("doctor", good).code == 0
    assert run("doctor", bad).code == 1
    outcome = run("doctor", "--each", good, bad, good)
    assert outcome.code == 1
    assert f"{good}: nothing found" in outcome.out
    assert "truth-duplicates" in outcome.out
    assert run("doctor", "--each", bad, "--strict").code == 2
    assert run("doctor", "--each", good).out == f"{good}: nothing found\n"
    lost = run("doctor", "--each", tmp_path / "none.json", bad)
    assert lost.code == 2
    assert "none.json" in lost.err
    assert "truth-duplicates" in lost.out
    third = run("doctor", good, bad, good)
    assert third.code == 2
    assert "third file" in third.err
    listed = json.loads(run("doctor", "--each", good, bad, "--format", "json").out)
    assert list(listed["findings"]) == [str(good), str(bad)]


def truth_file(path: Path, twice: int) -> Path:
    record = {"image_id": 1, "category_id": 1, "area": 400, "iscrowd": 0}
    objects = [{**record, "id": i + 1, "bbox": [9 * i, 5, 20, 20]} for i in range(9)]
    objects += [{**objects[i], "id": 90 + i} for i in range(twice)]
    images = [{"id": 1, "width": 640, "height": 480, "file_name": "1.jpg"}]
    categories = [{"id": 1, "name": "cat"}]
    content = {"images": images, "categories": categories, "annotations": objects}
    path.write_text(json.dumps(content))
    return path
