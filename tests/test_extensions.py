"""The pages that say how detmap is extended are done, to the letter, on a copy of it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support import builders as make

FENCE = re.compile(r"^```(py|diff)\n# (\S+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def extended(page: str, folder: Path) -> Path:
    """A copy of the package with the blocks of a page applied; at most three files of it differ."""
    shutil.copytree(
        make.ROOT / "detmap", folder / "detmap", ignore=shutil.ignore_patterns("__pycache__")
    )
    for name in ("configs", "datasets"):
        (folder / name).symlink_to(make.ROOT / name)
    blocks = FENCE.findall((make.ROOT / "docs" / page).read_text())
    assert 2 <= len({path for _, path, _ in blocks}) <= 3
    for kind, path, text in blocks:
        file = folder / path
        assert file.exists() == (kind == "diff")
        if kind == "py":
            file.write_text(text)
            continue
        source = file.read_text()
        for old, new in re.findall(r"^-(.*)\n((?:^\+.*\n)+)", text, re.MULTILINE):
            assert source.count(old) == 1, old
            added = "\n".join(line[1:] for line in new.splitlines())
            source = source.replace(old, added)
        file.write_text(source)
    return folder


def evaluated(folder: Path, *argv: Any) -> subprocess.CompletedProcess[str]:
    """``detmap eval`` of the copy, its kernels as plain Python."""
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(folder)}
    return subprocess.run(
        [sys.executable, "-m", "detmap", "eval", *map(str, argv), "--format", "json"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.mark.slow
def test_an_overlap_is_a_module_a_row_and_a_word(tmp_path: Path) -> None:
    """Distances 0 and 4 of radii 10 and 10: overlaps 1 and 0.8; the third is alone. So AP is 1 up
    to recall 2/3, and 1/3 from 0.85 on: 67 of 101 points, at 7 and at 3 thresholds.
    """
    folder = extended("add-an-overlap.md", tmp_path)
    objects = [
        make.without(make.annotation(id=i, circle=[x, 20, 10]), "bbox", "area")
        for i, x in enumerate((20, 60, 90), start=1)
    ]
    found = [
        make.without(make.detection(circle=[x, 20, 10], score=s), "bbox")
        for x, s in ((20, 0.9), (64, 0.8))
    ]
    truth = make.write(folder / "gt.json", make.instances(annotations=objects))
    results = make.write(folder / "dt.json", found)
    circles = ("-p", "coco-bbox", "--set", "iou.of=circles")
    done = evaluated(folder, truth, results, *circles)
    assert done.returncode == 0, done.stderr
    metrics = json.loads(done.stdout)["metrics"]
    assert metrics["AP50"] == pytest.approx(67 / 101)
    assert metrics["AP"] == pytest.approx((7 * 67 + 3 * 34) / 1010)
    results.write_text(results.read_text().replace("[64, 20, 10]", '"round"'))
    done = evaluated(folder, truth, results, *circles)
    assert done.returncode == 2
    assert "dt.json[1].circle" in done.stderr


@pytest.mark.slow
def test_a_format_is_a_module_and_a_row(tmp_path: Path) -> None:
    folder = extended("add-a-format.md", tmp_path)
    truth = make.write(folder / "gt.lines", "a cat 10 10 20 20\nb cat 10 10 20 20\n")
    found = make.write(folder / "dt.lines", "a cat .9 10 10 20 20\nb cat .8 50 50 5 5\n")
    done = evaluated(folder, truth, found)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["metrics"]["AP50"] == pytest.approx(51 / 101)
    found.write_text("a cat .9 10 10 20\n")
    done = evaluated(folder, truth, found)
    assert done.returncode == 2
    assert "dt.lines: line 1" in done.stderr
