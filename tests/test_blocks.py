"""Every block of the README and of docs/ that a reader can paste runs: Python blocks here, shell
blocks in bash; and zsh, where there is one, understands them as bash does.
"""

import json
import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from detmap.errors import DetmapError
from tests.support import writers

ROOT = Path(__file__).resolve().parents[1]
SHAPES = ROOT / "datasets" / "shapes"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PAGES.append(ROOT / "docs" / "integrations" / "backend.md")


class Block(str):
    """A block, and the text of its page."""

    page = ""


def blocks(language: str) -> list[Any]:
    """Every fenced block of a language, page and number as its id."""
    found = []
    for page in PAGES:
        fence = rf"^```{language}\n(.*?)^```$"
        texts = re.findall(fence, page.read_text(), re.DOTALL | re.MULTILINE)
        for i, text in enumerate(texts):
            block = Block(text)
            block.page = page.read_text()
            found.append(pytest.param(block, id=f"{page.stem}-{i}"))
    return found


def skip_without_extra(block: Block, message: str) -> None:
    """A block may ask for an extra, if its page says how to install it."""
    wanted = re.search(r"pip install '(detmap-eval\[\w+\])'", message)
    missing = re.search(r"No module named '(\w+)", message)
    text = " ".join(block.page.split())
    if wanted and (wanted[0] in text or "pip install 'detmap-eval[all]'" in text):
        pytest.skip(f"needs {wanted[1]}")
    if missing and re.search(rf"pip install [^\n]*{missing[1]}", block.page):
        pytest.skip(f"needs {missing[1]}, as its page says")


COMMANDS = blocks("bash")
FOR_BASH = [
    each
    for each in COMMANDS
    if "pip install" not in each.values[0]
    and "tools/" not in each.values[0]
    and "getting-started" not in str(each.id)
]

LINES = [line.split("#")[0] for each in COMMANDS for line in each.values[0].splitlines()]
BENCHES = [line.split()[2:] for line in LINES if "tools/bench.py" in line]


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    """A folder with the files that the pages speak of, made of the sample."""
    truth = json.loads((SHAPES / "instances_test.json").read_text())
    truth["categories"][0]["name"] = "person"
    for name in ("instances_val2017.json", "instances.json"):
        (tmp_path / name).write_text(json.dumps(truth))
    shutil.copy(SHAPES / "detections" / "template.json", tmp_path / "results.json")
    (tmp_path / "results").symlink_to(SHAPES / "detections" / "contours")
    for year, split in ((2007, "test"), (2012, "val")):
        place = tmp_path / "VOCdevkit" / f"VOC{year}"
        shutil.copytree(SHAPES / "ImageSets", place / "ImageSets")
        (place / "Annotations").symlink_to(SHAPES / "Annotations")
        (place / "ImageSets" / "Main" / "test.txt").rename(
            place / "ImageSets" / "Main" / f"{split}.txt"
        )
    shutil.copytree(tmp_path / "VOCdevkit" / "VOC2007", tmp_path / "TRUTH", symlinks=True)
    shutil.copytree(tmp_path / "results", tmp_path / "DETECTIONS")
    (tmp_path / "datasets").symlink_to(ROOT / "datasets")  # as in the repository's root
    (tmp_path / "shapes").symlink_to(SHAPES)  # as `detmap demo --copy shapes` writes it
    ids = [image["id"] for image in truth["images"]]
    (tmp_path / "job1.txt").write_text("\n".join(map(str, ids[:25])))
    (tmp_path / "job2.txt").write_text("\n".join(map(str, ids[25:])))
    writers.recipes(tmp_path)
    names = {each["id"]: each["name"] for each in truth["categories"]} | {1: "circle"}
    (tmp_path / "names.json").write_text(json.dumps(names))
    (tmp_path / "hours.csv").write_text("image,hour\n000001,night\n000002,day\n")
    (tmp_path / "truth.csv").write_text("image,cat,dog\na,0,1\nb,1,0\n")
    (tmp_path / "scores.csv").write_text("image,cat,dog\na,.1,.8\nb,.9,.7\n")
    return tmp_path


class Metric:
    """What stands for torchmetrics' metric in the README: a client of pycocotools' classes."""

    def compute(self) -> Any:
        from pycocotools.coco import COCO
        from pycocotools.cocoeval import COCOeval

        truth = COCO("instances.json")
        run = COCOeval(truth, truth.loadRes("results.json"), "bbox")
        run.evaluate()
        run.accumulate()
        run.summarize()
        assert type(run).__module__.startswith("detmap.compat")
        return run.stats


@pytest.mark.slow
@pytest.mark.parametrize("block", blocks("python"))
def test_a_python_block_runs(block: Block, desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(desk)
    try:
        exec(compile(block, "block", "exec"), {"__name__": "block", "metric": Metric()})
    except (DetmapError, ModuleNotFoundError) as error:
        skip_without_extra(block, str(error))
        raise


def in_shell(shell: str, block: str, desk: Path, command: str) -> subprocess.CompletedProcess[str]:
    """A block, as pasted into a shell where `detmap` is this command; zsh as it is when somebody
    pastes there: a ``#`` begins no comment.
    """
    folder = desk / ".venv" / "bin"  # as the README's first command makes it
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "detmap").write_text(f"#!/bin/sh\n{command}\n")
    (folder / "detmap").chmod(0o755)
    environment = os.environ | {"PATH": f"{folder}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    begin = {"bash": ["bash", "-e", "-c"], "zsh": ["zsh", "-f", "-i", "-e", "-c"]}
    return subprocess.run(
        [*begin[shell], block],
        cwd=desk,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.parametrize("block", FOR_BASH)
def test_a_shell_block_runs(block: Block, desk: Path) -> None:
    done = in_shell("bash", block, desk, f'exec "{sys.executable}" -m detmap "$@"')
    if done.returncode:
        skip_without_extra(block, done.stderr)
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.slow
def test_getting_started_runs_from_top_to_bottom(tmp_path: Path) -> None:
    """Each command in the folder that the ones before it left; what the page prints is printed."""
    text = (ROOT / "docs" / "getting-started.md").read_text()
    pairs = re.findall(r"^```bash\n(.*?)^```\n(?:\n```text\n(.*?)^```$)?", text, re.DOTALL | re.M)
    assert sum(bool(printed) for _, printed in pairs) == 3
    for commands, printed in pairs:
        if "pip install" in commands:
            continue
        done = in_shell("bash", commands, tmp_path, f'exec "{sys.executable}" -m detmap "$@"')
        if done.returncode:
            block = Block(commands)
            block.page = text
            skip_without_extra(block, done.stderr)
        assert done.returncode == 0, done.stderr[-2000:]
        assert done.stdout.startswith(printed.removesuffix("...\n")), commands
    threshold = re.search(r"`(use a confidence .*?)`", text)
    assert threshold
    assert done.stdout.splitlines()[-1] == threshold[1]
    assert (tmp_path / "report" / "index.html").stat().st_size > 10_000


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("zsh"), reason="no zsh here")
@pytest.mark.parametrize("block", FOR_BASH)
def test_zsh_gives_detmap_the_words_that_bash_gives(block: Block, tmp_path: Path) -> None:
    words = tmp_path / "words"
    said = {}
    for shell in ("bash", "zsh"):
        words.write_text("")
        done = in_shell(shell, block, tmp_path, f"printf '%s\\n' detmap \"$@\" >> '{words}'")
        assert done.returncode == 0, done.stderr
        said[shell] = words.read_text()
    assert said["bash"]
    assert said["zsh"] == said["bash"]


@pytest.mark.parametrize("block", COMMANDS)
def test_no_shell_takes_an_argument_for_a_pattern(block: str) -> None:
    """zsh stops at ``--set x=[1,2]``: brackets, stars and question marks stand in quotes."""
    bare = re.sub(r"#.*|'[^']*'|\"[^\"]*\"", "", block)
    assert not re.search(r"[\[\]*?]", bare)


@pytest.mark.parametrize("words", BENCHES, ids=" ".join)
def test_bench_takes_the_printed_options(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    monkeypatch.setattr(sys, "argv", ["bench.py", *words])
    bench = runpy.run_path(str(ROOT / "tools" / "bench.py"), run_name="bench")
    assert bench["parse"]().what
