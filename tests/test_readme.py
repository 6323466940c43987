"""What the README and its page of classifiers print is what happens."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.running import run

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text()
PAGES = README + (ROOT / "docs" / "ranking.md").read_text()
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


def test_the_signature_of_changed_rules_is_as_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    sample = ("datasets/shapes/instances_test.json", "datasets/shapes/detections/template.json")
    outcome = run("eval", *sample, "--set", "limits.max_dets=[1,10,300]")
    assert outcome.out.splitlines()[-1] == block_of("coco-bbox.2|limits").strip()


def test_the_example_of_a_classifier_gives_what_is_printed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    commands, printed = block_of("$ printf").split(" --plot curves.png\n")
    for name, text in re.findall(r"printf '(.*?)' > (\w+\.csv)", commands):
        Path(text).write_text(name.replace("\\n", "\n"))
    assert run(*commands.splitlines()[-1].removeprefix("$ detmap ").split()).out == printed
