"""The pages that say how detmap is extended are done, to the letter, on a copy of it."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from detmap import overlaps
from detmap.adapters.coco import shapes as coco_shapes
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
    return python(folder, "-m", "detmap", "eval", *argv, "--format", "json")


def python(folder: Path, *argv: Any) -> subprocess.CompletedProcess[str]:
    """A Python process that imports the copy."""
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(folder)}
    return subprocess.run(
        [sys.executable, *map(str, argv)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def circles(folder: Path, radius: int, *, boxes: bool) -> tuple[Path, Path]:
    """Objects and detections as circles of a radius: two that meet at distances 0 and 4, and an
    object without detection. With `boxes`, the squares around them are given too.
    """

    def record(of: dict[str, Any], x: int) -> dict[str, Any]:
        square = [x - radius, 20 - radius, 2 * radius, 2 * radius]
        whole = {**of, "circle": [x, 20, radius], "bbox": square}
        return whole if boxes else make.without(whole, "bbox")

    objects = [
        record(make.without(make.annotation(id=i), "area"), x)
        for i, x in enumerate((20, 60, 90), start=1)
    ]
    found = [record(make.detection(score=s), x) for x, s in ((20, 0.9), (64, 0.8))]
    return (
        make.write(folder / "gt.json", make.instances(annotations=objects)),
        make.write(folder / "dt.json", found),
    )


IN_MEMORY = """
import numpy as np, detmap
ev = detmap.Evaluator("coco-bbox", classes=["a"], settings={"iou.of": "circles"})
found = {"circle": np.array([[20, 20, 17], [64, 20, 17]]), "labels": [0, 0], "scores": [0.9, 0.8]}
objects = {"circle": [[20, 20, 17], [60, 20, 17], [90, 20, 17]], "labels": [0, 0, 0]}
ev.update([found], [objects])
print(ev.compute().metrics["AP50"])
"""


@pytest.mark.slow
def test_an_overlap_is_a_module_a_row_and_a_word(tmp_path: Path) -> None:
    """Overlaps of radii 17: 1 and 1 - 4/34 = 0.88, which 8 of 10 thresholds allow; the third object
    is alone. So AP is 67 of 101 points there and 34 else. The circle is smaller than 32 x 32
    pixels, the square around it is larger.
    """
    folder = extended("add-an-overlap.md", tmp_path)
    rules = ("-p", "coco-bbox", "--set", "iou.of=circles")
    for boxes in (False, True):
        truth, results = circles(folder, 17, boxes=boxes)
        done = evaluated(folder, truth, results, *rules)
        assert done.returncode == 0, done.stderr
        metrics = json.loads(done.stdout)["metrics"]
        assert metrics["AP50"] == pytest.approx(67 / 101)
        assert metrics["AP"] == pytest.approx((8 * 67 + 2 * 34) / 1010)
        assert metrics["APs"] == metrics["AP"]
        assert metrics["APm"] is metrics["APl"] is None
    done = python(folder, "-c", IN_MEMORY)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) == pytest.approx(67 / 101)
    done = python(folder, "-m", "detmap", "diagnose", truth, results, *rules, "--format", "json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["counts"] == {
        **dict.fromkeys(("Cls", "Loc", "Both", "Dupe", "Bkg", "beyond", "ignored"), 0),
        **{"TP": 2, "missed": 1},
    }
    assert found["olrp"]["loc"] == pytest.approx(2 / 34)  # the mean of 1 - 1 and 1 - 30 / 34
    assert found["tide"]["AP50"] == pytest.approx(6700 / 101)
    page = folder / "report.html"
    done = python(folder, "-m", "detmap", "report", truth, results, *rules, "-o", page)
    assert done.returncode == 0, done.stderr
    assert "missed objects" in page.read_text()
    results.write_text(results.read_text().replace("[64, 20, 17]", '"round"'))
    done = evaluated(folder, truth, results, *rules)
    assert done.returncode == 2
    assert "dt.json[1].circle" in done.stderr


@pytest.mark.parametrize("boxes", [False, True])
def test_a_shape_gives_its_own_area_to_objects_and_detections(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, boxes: bool
) -> None:
    """Whatever else the records have; an object whose file says its area keeps that."""
    source = next(
        text
        for kind, _, text in FENCE.findall((make.ROOT / "docs/add-an-overlap.md").read_text())
        if kind == "py"
    )
    module = types.ModuleType("circles")
    monkeypatch.setitem(sys.modules, "circles", module)
    exec(source, vars(module))
    kind = overlaps.Kind("circles", module.producer, module.CircleReader())
    for place in (overlaps, coco_shapes):
        monkeypatch.setattr(place, "KINDS", (*overlaps.KINDS, kind))
    paths = circles(tmp_path, 17, boxes=boxes)
    own = [pytest.approx(math.pi * 17**2)]
    truth = coco_shapes.read_truth(paths[0], "circles")
    assert truth.area.tolist() == 3 * own
    assert [note.text for note in truth.notes if note.code == "area-missing"] == [
        "annotations have no area: the area of their circle is used"
    ]
    detections = coco_shapes.read_detections(paths[1], truth)
    assert detections.shapes.area.tolist() == 2 * own  # type: ignore[union-attr]
    given = json.loads(paths[0].read_text())
    given["annotations"][0]["area"] = 5
    make.write(paths[0], given)
    assert coco_shapes.read_truth(paths[0], "circles").area.tolist() == [5, *(2 * own)]


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
