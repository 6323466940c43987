"""Mistakes in VOC's text, which an ordinary reader refuses or takes for something else."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import detmap
from detmap.core.base.resources import folder
from tests.support.running import run

SHAPES = folder("datasets") / "shapes"
RIGHT = SHAPES / "detections" / "contours"
MAP = 0.604  # of RIGHT under voc2007, to three digits

Row = tuple[str, float, float, float, float, float]  # image, score, x1, y1, x2, y2


def written(target: Path, change: Callable[[Row], Row], name: Callable[[str], str] = str) -> Path:
    target.mkdir()
    for file in sorted(RIGHT.iterdir()):
        rows = []
        for line in file.read_text().splitlines():
            image, *numbers = line.split()
            row = change((image, *map(float, numbers)))  # type: ignore[arg-type]
            rows.append(" ".join(map(str, row)))
        (target / name(file.name)).write_text("\n".join(rows) + "\n")
    return target


CHANGES: dict[str, tuple[Callable[[Row], Row], str]] = {
    "xywh": (lambda r: (*r[:4], r[4] - r[2] + 1, r[5] - r[3] + 1), "boxes-xywh"),
    "swapped": (lambda r: (r[0], r[1], r[3], r[2], r[5], r[4]), "boxes-xy-swapped"),
    "half": (lambda r: (r[0], r[1], *(x / 2 for x in r[2:])), "boxes-resized"),
    "names of files": (lambda r: (f"JPEGImages/{r[0]}.jpg", *r[1:]), "images-by-stem"),
    "percent": (lambda r: (r[0], 100 * r[1], *r[2:]), "scores-percent"),
}


@pytest.mark.slow
@pytest.mark.parametrize("mistake", CHANGES)
def test_a_mistake_in_text_is_found_and_repaired(tmp_path: Path, mistake: str) -> None:
    change, name = CHANGES[mistake]
    wrong = written(tmp_path / "wrong", change)
    assert [finding.name for finding in detmap.doctor(SHAPES, wrong)] == [name]
    done = run("eval", SHAPES, wrong, "--fix", name, "--format", "csv")
    assert done.code == 0
    assert float(done.out.splitlines()[1].split(",")[-1]) == pytest.approx(MAP, abs=0.003)


def test_classes_of_another_case_are_found(tmp_path: Path) -> None:
    def spelled(name: str) -> str:
        *parts, last = name.removesuffix(".txt").split("_")
        return "_".join([*parts, f"{last.upper()}s.txt"])

    wrong = written(tmp_path / "wrong", lambda r: r, spelled)
    assert [finding.name for finding in detmap.doctor(SHAPES, wrong)] == ["classes-spelling"]


# ---- what the numbers of the XML mean


@pytest.mark.parametrize(
    ("change", "option"),
    [
        ((0, 0, 0, 0), None),
        ((-1, -1, 0, 0), "--truth-box-format 'xyxy'"),
        ((-1, -1, -1, -1), "--truth-box-format 'voc from 0'"),
        ((0.25, 0, 0, 0), "--truth-box-format xyxy; if"),
    ],
)
def test_the_box_format_of_truth_that_fits(change: tuple[float, ...], option: str | None) -> None:
    right = detmap.read_truth(folder("datasets") / "shapes")
    rng = np.random.default_rng(0)
    moved = right.boxes + rng.normal(0, 0.3, right.boxes.shape)
    score = rng.random(len(right))
    found = detmap.Detections(
        right.images, right.categories, right.image, right.label, moved, score, box_format="voc"
    )
    truth = replace(right, boxes=right.boxes + np.array(change))
    findings = [each for each in detmap.doctor(truth, found) if each.name.startswith("truth-box")]
    assert len(findings) == (option is not None)
    assert not findings or str(option) in findings[0].sentence
