"""What the README and the pages of classifiers and receipts print is what happens."""

import re
from pathlib import Path

import pytest

from tests.support import evaluators
from tests.support.running import run

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text()
PAGES = "".join(
    (ROOT / page).read_text() for page in ("README.md", "docs/ranking.md", "docs/receipts.md")
)
BLOCKS = re.findall(r"^```\w*\n(.*?)^```$", PAGES, flags=re.DOTALL | re.MULTILINE)


def block_of(start: str) -> str:
    return next(block for block in BLOCKS if block.startswith(start))


def test_ci_calls_the_test_command() -> None:
    command = next(block for block in BLOCKS if "pytest" in block).strip()
    ci = (ROOT / ".ci" / "run").read_text()
    taken = [re.search(each, README, re.MULTILINE) for each in re.findall(r"m1 '(.*)' README", ci)]
    assert [line and line[0] for line in taken if line is None or "pytest" in line[0]] == [command]


def test_the_first_output_is_what_the_command_prints(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    words = (
        next(block for block in BLOCKS if ".venv/bin/detmap eval" in block)
        .split(".venv/bin/detmap ")[1]
        .split()
    )
    outcome = run(*words)
    assert outcome.out + outcome.err == block_of("coco-bbox: COCO detection")


def test_the_second_output_is_what_the_command_prints(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    command, _, head = block_of(".venv/bin/detmap compare").partition(" | head -")
    truth, both, *options = command.split()[2:]
    begin, names = both.removesuffix("}").split("{")
    outcome = run("compare", truth, *(begin + name for name in names.split(",")), *options)
    assert outcome.out.splitlines()[: int(head)] == block_of("contours is better").splitlines()


def test_the_signature_of_changed_rules_is_as_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    sample = ("datasets/shapes/instances_test.json", "datasets/shapes/detections/template.json")
    outcome = run("eval", *sample, "--set", "limits.max_dets=[1,10,300]")
    assert outcome.out.splitlines()[-1] == block_of("coco-bbox.2|limits").strip()


def test_the_readme_is_short_and_shows_the_report_first() -> None:
    assert len(README.encode()) <= 10_240
    lines = README.splitlines()
    assert next(i for i, line in enumerate(lines) if line.startswith("![")) < 10
    assert "pip install detmap-eval`" in README
    assert "pip install 'detmap-eval[all]'" in README
    assert "`detmap` on PyPI is unrelated" in README


@pytest.mark.parametrize(
    ("row", "label"),
    [
        ("time: 5,000 images, 735,000 detections, 80 classes", "W1 | files to numbers"),
        ("time: 40,000 images, 2,400,000 detections, 365 classes", "W2 | files to numbers"),
        ("peak memory: 5,000 images", "W1 | peak memory"),
    ],
)
def test_the_times_of_evaluators_are_those_of_the_benchmark(row: str, label: str) -> None:
    page = (ROOT / "docs" / "performance.md").read_text().splitlines()
    header = next(line for line in page if line.startswith("|  |  | detmap |"))
    measured = next(line for line in page if line.startswith(f"| {label}"))
    names, rows = evaluators.table()
    values = dict(zip(evaluators.cells(header), evaluators.cells(measured), strict=True))
    numbers = {n: float(values[n].split()[0]) for n in names if values.get(n, "-") != "-"}
    assert len(numbers) >= 3
    for name, cell in zip(names, rows[row], strict=False):
        if name in numbers:
            ratio = numbers[name] / numbers["detmap"]
            assert cell == (f"{ratio:.1f}" if ratio < 10 else f"{ratio:.0f}"), name


def test_the_example_of_a_classifier_gives_what_is_printed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    commands, printed = block_of("$ printf").split(" --plot curves.png\n")
    for name, text in re.findall(r"printf '(.*?)' > (\w+\.csv)", commands):
        Path(text).write_text(name.replace("\\n", "\n"))
    assert run(*commands.splitlines()[-1].removeprefix("$ detmap ").split()).out == printed
