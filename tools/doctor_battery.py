"""Print a Markdown table: which mistakes of which strength the doctor finds, alone and in pairs.

Run: python tools/doctor_battery.py [--write], which puts the table into docs/doctor.md.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np

import detmap
from detmap.base.resources import folder

PAGE = Path(__file__).resolve().parents[1] / "docs" / "doctor.md"
BEGIN, END = "<!-- battery -->", "<!-- end of battery -->"

Tables = tuple[detmap.Truth, detmap.Detections]
Make = Callable[[detmap.Truth, detmap.Detections, float], Tables]


def _boxes(make: Callable[[np.ndarray, float], np.ndarray]) -> Make:
    return lambda truth, right, by: (
        truth,
        replace(right, boxes=np.ascontiguousarray(make(right.boxes, by))),
    )


def _scores(make: Callable[[np.ndarray, float], np.ndarray]) -> Make:
    return lambda truth, right, by: (truth, replace(right, score=make(right.score, by)))


def _cut(truth: detmap.Truth, right: detmap.Detections, by: float) -> Tables:
    return truth, right.take(np.flatnonzero(right.score >= by))


def _shuffled(truth: detmap.Truth, right: detmap.Detections, by: float) -> Tables:
    rng = np.random.default_rng(1)
    image = np.arange(len(truth.images), dtype=np.int32)
    order = rng.permutation(np.flatnonzero(rng.random(len(image)) < by))
    image[order] = np.roll(order, 1)
    return truth, replace(right, image=image[right.image])


def _permuted(truth: detmap.Truth, right: detmap.Detections, by: float) -> Tables:
    label = np.arange(len(truth.categories), dtype=np.int32)
    label[: int(by)] = np.roll(label[: int(by)], 1)
    return truth, replace(right, label=label[right.label])


def _part(truth: detmap.Truth, right: detmap.Detections, by: float) -> Tables:
    return truth, right.take(np.flatnonzero(right.image >= by * len(truth.images)))


def _unlabeled(truth: detmap.Truth, right: detmap.Detections, by: float) -> Tables:
    return truth.take(np.flatnonzero(truth.image >= by * len(truth.images))), right


MISTAKES: dict[str, tuple[Make, tuple[str, ...], tuple[float, ...]]] = {
    "cut": (_cut, ("scores-cut",), (0.3, 0.4, 0.5, 0.6)),
    "shift": (_boxes(lambda b, by: np.add(b, [by, by, 0, 0])), ("boxes-shifted",), (2, 5, 10, 20)),
    "scale": (_boxes(lambda b, by: b * by), ("boxes-resized",), (1.01, 1.02, 1.05, 1.28, 2)),
    "corners": (
        _boxes(lambda b, by: b + np.column_stack([0 * b[:, :2], by * b[:, :2]])),
        ("boxes-xyxy",),
        (1,),
    ),
    "width": (_boxes(lambda b, by: np.add(b, [0, 0, by, 0])), ("boxes-narrow-by-one",), (-1,)),
    "permuted": (_permuted, ("classes-permuted",), (2, 3, 6)),
    "shuffled": (_shuffled, ("images-shuffled", "unexplained"), (0.25, 0.5, 1.0)),
    "half": (_part, ("images-without-detections",), (0.1, 0.25, 0.5)),
    "labels": (_unlabeled, ("truth-labels-missing",), (0.5, 0.75, 0.9)),
    "percent": (_scores(lambda s, by: s * by), ("scores-percent",), (100,)),
    "negated": (_scores(lambda s, by: s * by), ("scores-negated",), (-1,)),
}
"""How each is made, the findings that name it, and its strengths: pixels, factors, classes, or the
share of images; boxes are x, y, width, height.
"""


def table() -> str:
    """The table as Markdown."""
    sample = folder("datasets") / "shapes"
    truth = detmap.read_truth(sample / "instances_test.json")
    right = detmap.read_detections(sample / "detections" / "contours.json", truth)
    lines = ["| mistake | strength | findings | found |", "|---|---|---|---|"]

    def row(name: str, strength: str, wrong: Tables, *wanted: tuple[str, ...]) -> None:
        found = [each.name for each in detmap.doctor(*wrong)]
        n_found = sum(bool(set(each) & set(found)) for each in wanted)
        shown = ", ".join(f"`{each}`" for each in found) or "none"
        lines.append(f"| {name} | {strength} | {shown} | {n_found} of {len(wanted)} |")

    row("none", "", (truth, right))
    for name, (make, wanted, strengths) in MISTAKES.items():
        for by in strengths:
            row(name, f"{by:g}", make(truth, right, by), wanted)
    for one, other in combinations(MISTAKES, 2):
        wrong, names = (truth, right), []
        for name in (one, other):
            make, wanted, strengths = MISTAKES[name]
            wrong = make(*wrong, strengths[-1])
            names.append(wanted)
        row(f"{one} and {other}", "highest", wrong, *names)
    return "\n".join([*lines, ""])


def main() -> None:
    """Print the table, or write it into the page."""
    made = table()
    if "--write" not in sys.argv:
        sys.stdout.write(made)
        return
    before, rest = PAGE.read_text().split(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n{made}{END}{rest.split(END)[1]}")


if __name__ == "__main__":
    main()
