"""Draws files of KITTI's size: the labels of its 7,481 training images and a million results.

The same boxes are written as CSV without a header, in the form of keras-retinanet.

python tools/draw_kitti.py FOLDER
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np

IMAGES, OBJECTS, FOUND = 7_481, 7, 134  # the last two per image
NAMES = ("Car", "Pedestrian", "Cyclist", "Van", "Person_sitting", "DontCare")
SHARES = (0.55, 0.12, 0.04, 0.06, 0.01, 0.22)
DETECTED = 3  # of the names


def draw(folder: Path) -> None:
    """Writes ``label_2``, ``data``, ``boxes.csv`` and ``found.csv``."""
    rng = np.random.default_rng(0)
    for name in ("label_2", "data"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    with (folder / "boxes.csv").open("w") as truth, (folder / "found.csv").open("w") as found:
        for i in range(IMAGES):
            first = rng.uniform([0, 120], [1100, 300], (OBJECTS, 2))
            boxes = np.hstack([first, first + rng.uniform(10, 140, (OBJECTS, 2))])
            kind = rng.choice(len(NAMES), OBJECTS, p=SHARES)
            source = rng.integers(0, OBJECTS, FOUND)
            moved = boxes[source] + rng.normal(0, 8, (FOUND, 4))
            moved[:, 2:] = np.maximum(moved[:, 2:], moved[:, :2] + 1)
            label = np.where(rng.random(FOUND) < 0.6, kind[source] % DETECTED, 0)
            hidden, alpha = rng.integers(0, 3, OBJECTS), rng.uniform(-3, 3, OBJECTS + FOUND)
            own = (f"0.00 {h} {a:.2f}" for h, a in zip(hidden, alpha[:OBJECTS], strict=True))
            _write(folder / "label_2" / f"{i:06}.txt", truth, kind, own, boxes, None)
            own = (f"-1 -1 {a:.2f}" for a in alpha[OBJECTS:])
            score = rng.random(FOUND)
            _write(folder / "data" / f"{i:06}.txt", found, label, own, moved, score)


def _write(path: Path, table: Any, kinds: Any, own: Any, boxes: Any, scores: Any) -> None:
    """Writes the text file of an image, and its rows of the CSV file."""
    ends = [""] * len(boxes) if scores is None else [f"{score:.4f}" for score in scores]
    lines = []
    for k, words, box, end in zip(kinds, own, boxes.tolist(), ends, strict=True):
        sides = [f"{x:.2f}" for x in box]
        lines.append(f"{NAMES[k]} {words} {' '.join(sides)} 1.5 1.6 3.7 1 1.5 20 0 {end}".rstrip())
        table.write(",".join([f"{path.stem}.png", *sides, NAMES[k], *[end] * bool(end)]) + "\n")
    path.write_text("\n".join([*lines, ""]))


if __name__ == "__main__":
    draw(Path(sys.argv[1]))
