"""The hooks of `.pre-commit-hooks.yaml`, run by pre-commit itself."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support import builders as make
from tests.support.running import Outcome, python

pytest.importorskip("pre_commit", reason="pip install pre-commit")


def git(folder: Path, *words: str) -> None:
    who = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)


def run_hooks(folder: Path, *hooks: str) -> Outcome:
    """Hooks of this commit on all files of a repository, as its configuration has them."""
    head = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=make.ROOT, check=True, capture_output=True, text=True
    ).stdout.strip()
    listed = f"{{repo: 'file://{make.ROOT}', rev: {head}, hooks: [{', '.join(hooks)}]}}"
    (folder / ".pre-commit-config.yaml").write_text(f"repos: [{listed}]\n")
    git(folder, "add", ".")
    words = ("-m", "pre_commit", "run", "--all-files", "--verbose")
    home = folder / ".git" / "home"
    return python(*words, cwd=folder, timeout=600, PRE_COMMIT_HOME=home)


@pytest.mark.slow
def test_the_hooks_pass_and_fail(tmp_path: Path) -> None:
    (tmp_path / "annotations").mkdir()
    truth = json.loads((make.SHAPES / "instances_test.json").read_text())
    (tmp_path / "truth.json").write_text(json.dumps(truth))
    shutil.copy(make.SHAPES / "detections" / "contours.json", tmp_path / "results.json")
    git(tmp_path, "init", "-q")

    def outcome(lowest: float, extra: int) -> Outcome:
        again = [{**truth["annotations"][i], "id": 9_000 + i} for i in range(extra)]
        doubled = {**truth, "annotations": truth["annotations"] + again}
        (tmp_path / "annotations" / "a.json").write_text(json.dumps(doubled))
        return run_hooks(
            tmp_path,
            f"{{id: detmap-gate, args: [truth.json, results.json, --fail-under, AP={lowest}]}}",
            "{id: detmap-doctor, files: ^annotations/.*\\.json$}",
        )

    passed = outcome(0.4, extra=0)
    assert passed.code == 0, passed.out + passed.err
    assert "nothing found" in passed.out
    failed = outcome(0.9, extra=40)
    assert failed.code == 1
    assert "FAIL: AP 0.4478 is below 0.9" in failed.out
    assert "truth-duplicates" in failed.out
