"""The steps of `action.yml`, run in bash as a runner would."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support import builders as make

yaml = pytest.importorskip("yaml", reason="needs detmap-eval[yolo]")

SHAPES = make.SHAPES
BETTER, WORSE = SHAPES / "detections" / "contours", SHAPES / "detections" / "template"


def act(folder: Path, **inputs: Any) -> tuple[int, str, str, str]:
    """Exit code, annotations, step summary and outputs of the comparing step."""
    action = yaml.safe_load((make.ROOT / "action.yml").read_text())
    step = action["runs"]["steps"][1]
    values = {name: str(known.get("default", "")) for name, known in action["inputs"].items()}
    values |= {name.replace("_", "-"): str(value) for name, value in inputs.items()}
    given = {}
    for name, text in step["env"].items():
        given[name] = values[text.removeprefix("${{ inputs.").removesuffix(" }}")]
    bin_folder = folder / "bin"
    bin_folder.mkdir()
    (bin_folder / "detmap").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m detmap "$@"\n')
    (bin_folder / "detmap").chmod(0o755)
    summary, output = folder / "summary.md", folder / "output.txt"
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        env=os.environ
        | given
        | {
            "PATH": f"{bin_folder}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(make.ROOT),
            "GITHUB_STEP_SUMMARY": str(summary),
            "GITHUB_OUTPUT": str(output),
        },
        cwd=folder,
        capture_output=True,
        text=True,
    )
    texts = [path.read_text() if path.exists() else "" for path in (summary, output)]
    return done.returncode, done.stdout, *texts


@pytest.mark.slow
def test_a_drop_fails_with_an_annotation_a_summary_and_a_report(tmp_path: Path) -> None:
    code, said, summary, output = act(tmp_path, truth=SHAPES, baseline=BETTER, detections=WORSE)
    assert code == 1
    assert said.startswith("::error title=detmap::mAP dropped by 0.30")
    assert "- **FAIL** mAP dropped by 0.30" in summary
    assert "| detector" in summary
    assert (tmp_path / "detmap-report.html").stat().st_size > 10_000
    assert "passed=false" in output
    assert (tmp_path / "detmap-comparison.json").exists()


@pytest.mark.slow
def test_no_drop_passes(tmp_path: Path) -> None:
    inputs = {"truth": SHAPES, "baseline": WORSE, "detections": BETTER, "protocol": "coco-bbox"}
    code, said, summary, output = act(tmp_path, **inputs, max_drop="AP50=.01", report="")
    assert (code, said) == (0, "")
    assert "- **PASS** AP50" in summary
    assert "passed=true" in output


@pytest.mark.slow
def test_bad_input_is_exit_2_with_the_place(tmp_path: Path) -> None:
    inputs = {"truth": SHAPES, "baseline": BETTER, "detections": tmp_path / "100%.json"}
    code, said, _, output = act(tmp_path, **inputs)
    assert code == 2
    assert said.startswith("::error title=detmap::detmap: error: ")
    assert "100%25.json" in said
    assert "%0A  fix: check the path" in said
    assert output == "passed=false\n"


@pytest.mark.slow
def test_several_limits(tmp_path: Path) -> None:
    inputs = {"truth": SHAPES, "baseline": BETTER, "detections": WORSE, "protocol": "coco-bbox"}
    code, said, summary, output = act(tmp_path, **inputs, max_drop="AP=.5, AP50=.01", report="")
    assert code == 1
    assert said.count("::error") == 1
    assert "- **PASS** AP dropped" in summary
    assert "- **FAIL** AP50 dropped" in summary
    assert output == "comparison=detmap-comparison.json\npassed=false\n"
