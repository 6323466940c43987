"""Pages of integrations: their blocks run, their outputs and tables are real."""

import itertools
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy._core._multiarray_umath import __cpu_features__

import detmap
from tests.integrations import host_samples as sample
from tests.support import builders as make
from tests.support import running

PAGES = make.ROOT / "docs" / "integrations"
BLOCKS = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copy(sample.TRUTH, tmp_path / "instances_val2017.json")
    shutil.copy(sample.FOUND, tmp_path / "results.json")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(text: str, **given: Any) -> dict[str, Any]:
    space: dict[str, Any] = {"__name__": "block", **given}
    exec(compile(text, "block", "exec"), space)
    return space


@pytest.mark.slow
def test_blocks_of_servers_print_what_the_page_shows(desk: Path, capsys: Any) -> None:
    blocks = BLOCKS.findall((PAGES / "servers.md").read_text())
    pairs = [(a, b) for (kind, a), (_, b) in itertools.pairwise(blocks) if kind == "python"]
    assert len(pairs) == 2
    for code, output in pairs:
        run(code)
        assert capsys.readouterr().out == output


@pytest.mark.slow
def test_the_command_of_the_page_of_differences_prints_what_it_shows(monkeypatch: Any) -> None:
    (_, command), (_, shown) = BLOCKS.findall((PAGES / "differences.md").read_text())
    files = {"TRUTH": str(sample.TRUTH), "DETECTIONS": str(sample.FOUND)}
    words = [files.get(word, word) for word in command.split()]
    monkeypatch.delenv("COLUMNS", raising=False)
    assert running.run(*words[1:]).out == shown


def sections() -> dict[str, list[str]]:
    """The Python blocks of the migration page by host."""
    parts = re.split(r"^## ", (PAGES / "migration.md").read_text(), flags=re.MULTILINE)[1:]
    return {
        part.split("\n")[0]: [text for kind, text in BLOCKS.findall(part) if kind == "python"]
        for part in parts
    }


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("host", ["pycocotools", "torchmetrics", "hotcoco"])
def test_both_sides_of_a_migration_are_equal(host: str, desk: Path) -> None:
    pytest.importorskip(host)
    given: dict[str, Any] = {"classes": sample.names()}
    if host == "torchmetrics":
        torch = pytest.importorskip("torch")
        pytest.importorskip("torchvision")
        for name, images in (("preds", sample.predictions()), ("target", sample.targets())):
            given[name] = [
                {key: torch.tensor(value) for key, value in each.items() if key != "image_id"}
                for each in images.values()
            ]
    theirs, ours = (run(block, **given) for block in sections()[host])
    assert float(theirs["ap"]) == pytest.approx(ours["ap"], abs=1e-7 * (host == "torchmetrics"))
    assert np.all(theirs.get("ap50") == ours.get("ap50"))


def test_every_host_of_the_migration_page_is_tested_or_said_not_to_be() -> None:
    assert {name for name, blocks in sections().items() if len(blocks) == 2} == {
        "pycocotools",
        "torchmetrics",
        "hotcoco",
    }


ROW = re.compile(r"^\| `(\S+)` \| `(\S+)` \| ([\d.]+) \| ([\d.]+) \| (.*) ?\|$", re.MULTILINE)


@pytest.mark.slow
@pytest.mark.parametrize("row", ROW.findall((PAGES / "differences.md").read_text()), ids=str)
def test_the_table_of_differences_is_that_of_explain(row: tuple[str, ...]) -> None:
    one, other, before, after, steps = row
    why = detmap.explain(sample.TRUTH, sample.FOUND, one, other)
    assert why.before == sample.expected(one)[why.metric[0]]
    values = (f"{100 * why.before:.6f}", f"{100 * why.after:.6f}")
    if "order of tied scores" in steps and __cpu_features__["AVX512_SKX"]:
        # The tool's sort has another order on these processors: the page names both numbers.
        assert values[0] == before
        assert f" {values[1]}" in (PAGES / "differences.md").read_text()
        return
    assert values == (before, after)
    found = [f"{each.title} {100 * float(each.change):+.4f}" for each in why.steps if each.change]
    assert "; ".join(found) == steps.strip()


HOSTS = {
    "torchmetrics": "torch[m_]*.py",  # torch_images too
    "Ultralytics": "ultralytics*.py",
    "mmengine": "mmengine.py",
    "detectron2": "detectron2.py",
    "torchvision's references": "torchvision.py",
    "evaluate": "evaluate.py",
    "transformers": "transformers.py",
    "huggingface_hub": "huggingface_hub.py",
    "supervision": "supervision.py",
    "FiftyOne": "fiftyone.py",
    "pytest, pre-commit": "pytest.py",
    "EvalAI, Codabench": "challenges.py",
    "language models": "lmms*.py",
}
"""Names in the table of docs/integrations.md and the modules of each."""


@pytest.mark.parametrize("host", HOSTS)
def test_the_table_of_hosts_has_the_lines_of_their_modules(host: str) -> None:
    page = (make.ROOT / "docs" / "integrations.md").read_text()
    row = re.search(rf"^\| \[{re.escape(host)}\].*\| *(\d+) \|$", page, re.MULTILINE)
    modules = (make.ROOT / "detmap" / "integrations").rglob(HOSTS[host])
    lines = sum(each.read_text().count("\n") for each in modules)
    assert int(row[1]) == pytest.approx(lines, rel=0.1), lines
