"""The hooks of `.pre-commit-hooks.yaml`, run by pre-commit itself."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import builders as make

pytest.importorskip("pre_commit", reason="pip install pre-commit")


def git(folder: Path, *words: str) -> None:
    who = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)


@pytest.mark.slow
def test_the_gate_passes_and_fails(tmp_path: Path) -> None:
    shutil.copy(make.SHAPES / "instances_test.json", tmp_path / "truth.json")
    shutil.copy(make.SHAPES / "detections" / "contours.json", tmp_path / "results.json")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    head = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=make.ROOT, check=True, capture_output=True, text=True
    ).stdout.strip()
    codes = []
    for least in ("0.4", "0.9"):
        gate = f"[truth.json, results.json, --fail-under, AP={least}]"
        hook = f"{{id: detmap-gate, args: {gate}}}"
        text = f"repos: [{{repo: 'file://{make.ROOT}', rev: {head}, hooks: [{hook}]}}]\n"
        (tmp_path / ".pre-commit-config.yaml").write_text(text)
        git(tmp_path, "add", ".")
        done = subprocess.run(
            [sys.executable, "-m", "pre_commit", "run", "--all-files"],
            cwd=tmp_path,
            env=os.environ | {"PRE_COMMIT_HOME": str(tmp_path / ".git" / "home")},
            capture_output=True,
            text=True,
        )
        codes.append(done.returncode)
    assert codes == [0, 1], done.stdout + done.stderr
    assert "FAIL: AP 0.4478 is below 0.9" in done.stdout
