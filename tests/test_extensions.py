"""The pages that say how detmap is extended are done, to the letter, on a copy of it."""

import json
import math
import re
import shutil
import sys
import types
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from detmap.core import overlaps
from detmap.core.adapters.coco import shapes as coco_shapes
from tests import test_repository
from tests.support import builders as make
from tests.support import running

FENCE = re.compile(r"^```(py|toml|diff)\n# (\S+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def extended(page: str, folder: Path, most: int, heading: str = "") -> Path:
    """A copy of the package with the blocks of a page, or below one heading of it, applied; at most
    so many files of it differ.
    """
    copy(folder, ("detmap", "configs", "docs"))
    return applied(page, folder, most, heading)


def copy(folder: Path, names: Iterable[str]) -> None:
    """Copy folders and files of the root; the sample is large and is linked."""
    for name in names:
        source = make.ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, folder / name)
    (folder / "datasets").symlink_to(make.ROOT / "datasets")


def applied(page: str, folder: Path, most: int, heading: str = "") -> Path:
    """The copy with the blocks applied; see `extended`."""
    whole = (make.ROOT / "docs" / page).read_text()
    parts = dict(re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", whole, re.DOTALL | re.MULTILINE))
    blocks = FENCE.findall(parts[heading] if heading else whole)
    assert 1 <= len({path for _, path, _ in blocks}) <= most
    for kind, path, text in blocks:
        file = folder / path
        assert file.exists() == (kind == "diff")
        if kind != "diff":
            file.write_text(text)
            continue
        source = file.read_text()
        for old, new in re.findall(r"^-(.*)\n((?:^\+.*\n)+)", text, re.MULTILINE):
            assert source.count(old) == 1, old
            added = "\n".join(line[1:] for line in new.splitlines())
            source = source.replace(old, added)
        file.write_text(source)
    return folder


def evaluated(folder: Path, *argv: Any) -> running.Outcome:
    """``detmap eval`` of the copy, its kernels as plain Python."""
    return detmap_of(folder, "eval", *argv, "--format", "json")


def detmap_of(folder: Path, *argv: Any) -> running.Outcome:
    """A command of the copy."""
    return python(folder, "-m", "detmap", *argv)


def python(folder: Path, *argv: Any, **changes: str) -> running.Outcome:
    """A Python process that imports the copy."""
    given = {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": folder} | changes
    return running.python(*argv, cwd=folder, timeout=300, **given)


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
    folder = extended("add-an-overlap.md", tmp_path, 4)
    rules = ("-p", "coco-bbox", "--set", "iou.of=circles")
    for boxes in (False, True):
        truth, results = circles(folder, 17, boxes=boxes)
        done = evaluated(folder, truth, results, *rules)
        assert done.code == 0, done.err
        metrics = json.loads(done.out)["metrics"]
        assert metrics["AP50"] == pytest.approx(67 / 101)
        assert metrics["AP"] == pytest.approx((8 * 67 + 2 * 34) / 1010)
        assert metrics["APs"] == metrics["AP"]
        assert metrics["APm"] is metrics["APl"] is None
    done = python(folder, "-c", IN_MEMORY)
    assert done.code == 0, done.err
    assert float(done.out) == pytest.approx(67 / 101)
    done = detmap_of(folder, "diagnose", truth, results, *rules, "--format", "json")
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert found["counts"] == {
        **dict.fromkeys(("Cls", "Loc", "Both", "Dupe", "Bkg", "beyond", "ignored"), 0),
        **{"TP": 2, "missed": 1},
    }
    assert found["olrp"]["loc"] == pytest.approx(2 / 34)  # the mean of 1 - 1 and 1 - 30 / 34
    assert found["tide"]["AP50"] == pytest.approx(6700 / 101)
    page = folder / "report.html"
    done = detmap_of(folder, "report", truth, results, *rules, "-o", page)
    assert done.code == 0, done.err
    assert "missed objects" in page.read_text()
    results.write_text(results.read_text().replace("[64, 20, 17]", '"round"'))
    done = evaluated(folder, truth, results, *rules)
    assert done.code == 2
    assert "dt.json[1].circle" in done.err


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
    module = types.ModuleType("detmap.core.overlaps.circles")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(source, vars(module))
    kind = overlaps.Kind("circles", "circles.producer", "circles.CircleReader")
    for place in (overlaps, coco_shapes):
        monkeypatch.setattr(place, "KINDS", (*overlaps.KINDS, kind))
    paths = circles(tmp_path, 17, boxes=boxes)
    own = [pytest.approx(math.pi * 17**2)]
    truth = coco_shapes.read_truth(paths[0], "circles")
    assert truth.area.tolist() == 3 * own
    wanted = ["annotations have no area: the area of their circle is used"]
    assert [note.text for note in truth.notes if note.code == "area-missing"] == wanted
    detections = coco_shapes.read_detections(paths[1], truth)
    assert detections.shapes.area.tolist() == 2 * own  # type: ignore[union-attr]
    given = json.loads(paths[0].read_text())
    given["annotations"][0]["area"] = 5
    make.write(paths[0], given)
    assert coco_shapes.read_truth(paths[0], "circles").area.tolist() == [5, *(2 * own)]


@pytest.mark.slow
def test_a_format_is_a_module_and_a_row(tmp_path: Path) -> None:
    folder = extended("add-a-format.md", tmp_path, 2)
    truth = make.write(folder / "gt.lines", "a cat 10 10 20 20\nb cat 10 10 20 20\n")
    found = make.write(folder / "dt.lines", "a cat .9 10 10 20 20\nb cat .8 50 50 5 5\n")
    done = evaluated(folder, truth, found)
    assert done.code == 0, done.err
    assert json.loads(done.out)["metrics"]["AP50"] == pytest.approx(51 / 101)
    found.write_text("a cat .9 10 10 20\n")
    done = evaluated(folder, truth, found)
    assert done.code == 2
    assert "dt.lines: line 1" in done.err


# ---- docs/extend.md

SQUARE = [10, 10, 20, 20]


def two_images(folder: Path) -> tuple[Path, Path]:
    """An object on the first of two images; a true positive, a duplicate, and a false positive on
    the second image.
    """
    images = [{"id": i, "width": 100, "height": 100} for i in (1, 2)]
    truth = make.instances(
        images=images, annotations=[make.annotation(id=1, image_id=1, bbox=SQUARE, area=400)]
    )
    found = [
        make.detection(image_id=image, bbox=SQUARE, score=score)
        for image, score in ((1, 0.9), (1, 0.8), (2, 0.7))
    ]
    return make.write(folder / "gt.json", truth), make.write(folder / "dt.json", found)


def metrics(done: running.Outcome) -> dict[str, float]:
    assert done.code == 0, done.err
    return dict(json.loads(done.out)["metrics"])


@pytest.mark.slow
def test_a_protocol_is_a_file(tmp_path: Path) -> None:
    folder = extended("extend.md", tmp_path, 1, "Add a protocol")
    files = two_images(tmp_path)
    assert metrics(evaluated(folder, *files, "-p", "coco-90")) == pytest.approx({"AP": 1.0})
    assert "coco-90" in detmap_of(folder, "show").out


@pytest.mark.slow
def test_a_metric_is_a_module_and_a_row(tmp_path: Path) -> None:
    """Two false positives on two images; half as many where the second weighs nothing."""
    folder = extended("extend.md", tmp_path, 2, "Add a metric")
    files = two_images(tmp_path)
    rules = ("-p", "coco-bbox", "--set", 'metrics=["AP", "FPI50"]')
    assert metrics(evaluated(folder, *files, *rules)) == pytest.approx({"AP": 1.0, "FPI50": 1.0})
    done = detmap_of(folder, "eval", *files, *rules, "--percent", "--fail-under", "FPI50=0.5")
    assert done.code == 1
    assert "FAIL: FPI50 1.0000 is above 0.5 (lower is better)" in done.err
    shown = {line.split()[0]: line.split()[-1] for line in done.out.splitlines() if line}
    assert (shown["AP"], shown["FPI50"]) == ("100.00", "1.00")
    done = detmap_of(folder, "eval", *files, *rules, "--ci")
    assert done.code == 0, done.err
    assert "jackknife" in done.out
    weighted = (
        "import detmap, sys; m = detmap.match(*sys.argv[1:], 'coco-bbox', "
        "settings={'metrics': ['FPI50']}); "
        "print(detmap.summarize(m, weights=[1, 0]).metrics['FPI50'])"
    )
    done = python(folder, "-c", weighted, *files)
    assert done.out.split() == ["1.0"]  # the duplicate, on one image


@pytest.mark.slow
def test_an_interpolation_is_a_row(tmp_path: Path) -> None:
    folder = extended("extend.md", tmp_path, 2, "Add an AP interpolation")
    truth, found = two_images(tmp_path)
    rules = ("-p", "coco-bbox", "--set", "ap.integrator=half_and_full")
    assert metrics(evaluated(folder, truth, found, *rules))["AP50"] == pytest.approx(1)
    first = json.loads(found.read_text())
    first[0]["score"] = 0.1  # the duplicate finds the object
    first[1]["bbox"] = [60, 60, 5, 5]
    make.write(found, first)
    assert metrics(evaluated(folder, truth, found, *rules))["AP50"] == pytest.approx(1 / 3)
    done = detmap_of(folder, "eval", truth, found, *rules, "--ci")
    assert done.code == 0, done.err
    assert "jackknife" in done.out


@pytest.mark.slow
def test_a_command_is_a_module_and_a_row(tmp_path: Path) -> None:
    folder = extended("extend.md", tmp_path, 2, "Add a command")
    truth, _ = two_images(tmp_path)
    assert detmap_of(folder, "count", truth).out == "1 objects\n"
    assert "detmap count instances_val2017.json" in detmap_of(folder, "count", "--help").out
    assert detmap_of(folder, "count", tmp_path / "none").code == 2


@pytest.mark.slow
def test_a_section_is_a_module_and_a_row(tmp_path: Path) -> None:
    heading = "Add a section of the error analysis"
    folder = extended("extend.md", tmp_path, 2, heading)
    inputs = (*two_images(tmp_path), "-p", "coco-bbox")
    done = detmap_of(folder, "diagnose", *inputs, "--format", "json")
    assert done.code == 0, done.err
    (row,) = json.loads(done.out)["duplicates"]
    assert row["duplicates"] == 1
    done = detmap_of(folder, "diagnose", *inputs, "--table", "duplicates")
    assert done.out.split()[-2:] == [row["class"], "1"]
    page = tmp_path / "report.html"
    done = detmap_of(folder, "report", *inputs, "-o", page)
    assert done.code == 0, done.err
    shown = page.read_text()
    assert '<section id="duplicates"><h2>Duplicates</h2>' in shown
    assert '<a href="#duplicates">' in shown


# ---- the tests of a project that followed the recipes

TESTED = (
    *("tests/test_architecture.py", "tests/test_docs.py", "tests/test_packaging.py"),
    *("tests/test_repository.py", "tests/protocol", "tests/benchmarks/test_completeness.py"),
    "tests/benchmarks/test_command_table.py",
)


@pytest.mark.slow
def test_who_follows_all_recipes_has_green_tests(tmp_path: Path) -> None:
    """The tests of the architecture, the documentation and the protocols, in a whole copy."""
    names = {path.name for path in make.ROOT.iterdir()} & test_repository.KNOWN - {"datasets"}
    folder = tmp_path / "detmap"
    folder.mkdir()
    copy(folder, sorted(names))
    for page in ("extend.md", "add-a-format.md", "add-an-overlap.md"):
        applied(page, folder, 10)
    words = ("-n", "2", "-p", "no:cacheprovider", "-m", "not slow", *TESTED)
    done = python(folder, "-m", "pytest", *words, NUMBA_DISABLE_JIT="0")
    assert done.code == 0, done.out[-5000:]
