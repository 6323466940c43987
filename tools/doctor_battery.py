"""Print a Markdown table: which mistakes of which strength the doctor finds, alone and in pairs.

Run: python tools/doctor_battery.py [--write] [--verbose]; --write changes docs/doctor.md.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

import detmap
from detmap.core.base.resources import folder
from detmap.core.tables import selection

PAGE = Path(__file__).resolve().parents[1] / "docs" / "doctor.md"
N_GOOD = 500  # generated data sets without a mistake
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


def good(seed: int) -> Tables:
    """A data set without a mistake, and detections of a random detector."""
    rng = np.random.default_rng(seed)
    n_images, n_classes = int(rng.integers(20, 300)), int(rng.integers(1, 21))
    per_image, side = rng.uniform(1, 8), rng.uniform(0.1, 0.4)
    image = np.repeat(np.arange(n_images), rng.poisson(per_image, n_images))
    weight = rng.dirichlet(np.full(n_classes, 2.0))
    label = rng.choice(n_classes, len(image), p=weight)
    size = np.array([640.0, 480.0])

    def some(n: int) -> np.ndarray:
        sides = np.clip(size * side * rng.lognormal(0, 0.6, (n, 2)), 4, 0.95 * size)
        return np.hstack([rng.uniform(0, 1, (n, 2)) * (size - sides), sides])

    boxes = some(len(image))
    if rng.random() < 0.5:
        boxes = np.maximum(np.round(boxes), [0, 0, 1, 1])
    truth = detmap.truth_from_arrays(
        image + 1,
        label + 1,
        boxes,
        images=np.arange(1, n_images + 1),
        categories={k + 1: f"class {k + 1}" for k in range(n_classes)},
    )
    hard, off = rng.uniform(-1, 2), rng.uniform(0.01, 0.08)
    ease = rng.normal(size=len(image))
    right = np.flatnonzero(ease > rng.normal(hard - 2, 0.5, len(image)))
    moved = boxes[right] + rng.normal(0, off, (len(right), 4)) * np.tile(boxes[right, 2:], 2)
    moved[:, 2:] = np.maximum(moved[:, 2:], 1)
    n_wrong = rng.poisson(rng.lognormal(1, 1), n_images)
    wrong = np.repeat(np.arange(n_images), n_wrong)
    other = rng.random(len(right)) < rng.uniform(0, 0.1)
    found = np.where(other, rng.integers(0, n_classes, len(right)), label[right])
    logit = np.concatenate([ease[right] + 1 - hard / 2, rng.normal(-3, 1, len(wrong))])
    score = 1 / (1 + np.exp(-rng.uniform(0.8, 1.5) * (logit + rng.normal(0, 0.5, len(logit)))))
    return truth, detmap.detections_from_arrays(
        truth,
        np.concatenate([image[right], wrong]) + 1,
        np.concatenate([found, rng.choice(n_classes, len(wrong), p=weight)]) + 1,
        np.vstack([moved, some(len(wrong))]),
        np.round(score, int(rng.integers(3, 7))),
    )


def false_alarms(n: int) -> str:
    """How many of n good data sets, and of subsets of 5 of their images, have a finding."""
    counts, names = [0, 0], Counter[str]()
    for seed in range(n):
        truth, right = good(seed)
        ids = truth.images.ids[:: max(1, len(truth.images) // 5)][:5]
        for i, tables in enumerate(((truth, right), selection.part(truth, right, ids, None))):
            found = [each.name for each in detmap.doctor(*tables)]
            counts[i] += bool(found)
            names.update(found)
            if found and "--verbose" in sys.argv:
                print(seed, i, found, file=sys.stderr)
    shown = ", ".join(f"`{name}` {count}" for name, count in names.items())
    return (
        f"False alarms: {counts[0]} of {n} generated data sets without a mistake have a finding, "
        f"and {counts[1]} of {n} subsets of 5 images{f' ({shown})' if shown else ''}."
    )


def table() -> str:
    """Markdown tables: each mistake at several strengths, and pairs at the middle strength."""
    sample = folder("datasets") / "shapes"
    truth = detmap.read_truth(sample / "instances_test.json")
    right = detmap.read_detections(sample / "detections" / "contours.json", truth)

    def row(name: str, strength: str, wrong: Tables, wanted: tuple[str, ...]) -> str:
        found = [each.name for each in detmap.doctor(*wrong)]
        metrics = detmap.evaluate(*wrong, "coco-bbox").metrics
        verdict = "" if not wanted else "found" if {*wanted} & {*found} else "missed"
        shown = ", ".join(f"`{each}`" for each in found) or "none"
        return (
            f"| {name} | {strength} | {metrics['AP']:.3f} | {metrics['AP50']:.3f} | {shown} | "
            f"{verdict} |"
        )

    lines = ["| mistake | strength | AP | AP50 | findings | |", "|---|--:|--:|--:|---|---|"]
    lines.append(row("none", "", (truth, right), ()))
    for name, (make, wanted, strengths) in MISTAKES.items():
        lines += [row(name, f"{by:g}", make(truth, right, by), wanted) for by in strengths]
    lines += ["", "Pairs of mistakes at the middle strength: how many of the two are found.", ""]
    names = list(MISTAKES)
    lines += [f"| | {' | '.join(names[1:])} |", "|---|" + "--:|" * (len(names) - 1)]
    for i, one in enumerate(names[:-1]):
        cells = [""] * i + [_pair(truth, right, one, other) for other in names[i + 1 :]]
        lines.append(f"| {one} | {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def _pair(truth: detmap.Truth, right: detmap.Detections, *names: str) -> str:
    """How many of two mistakes are found."""
    wrong = truth, right
    for name in names:
        make, _, strengths = MISTAKES[name]
        wrong = make(*wrong, strengths[len(strengths) // 2])
    found = {each.name for each in detmap.doctor(*wrong)}
    if "--verbose" in sys.argv:
        print(*names, sorted(found), file=sys.stderr)
    return str(sum(bool({*MISTAKES[name][1]} & found) for name in names))


def main() -> None:
    """Print the table, or write it into the page."""
    made = f"{table()}\n{false_alarms(N_GOOD)}\n"
    if "--write" not in sys.argv:
        sys.stdout.write(made)
        return
    before, rest = PAGE.read_text().split(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n{made}{END}{rest.split(END)[1]}")


if __name__ == "__main__":
    main()
