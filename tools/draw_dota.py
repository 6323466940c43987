"""Draw files of DOTA's form and about the size of its validation set, for measurements: 458 images,
29,000 objects of 15 classes, most of them on few images, and 120,000 detections.
"""

from pathlib import Path

import numpy as np

from detmap.core.overlaps.rotated_boxes import corners_of

IMAGES, OBJECTS, DETECTIONS, CLASSES = 458, 29_000, 120_000, 15


def draw(folder: Path) -> tuple[Path, Path]:
    """The folders of truth and of detections."""
    rng = np.random.default_rng(0)
    truth, found = folder / "labelTxt", folder / "results"
    for place in (truth, found):
        place.mkdir(parents=True, exist_ok=True)
    share = rng.lognormal(0, 1.6, IMAGES)
    of_class = rng.dirichlet(np.full(CLASSES, 0.5))
    lines: list[list[str]] = [[] for _ in range(CLASSES)]
    for image, count in enumerate(np.ceil(share / share.sum() * OBJECTS).astype(int)):
        side = max(1000.0, 60 * count**0.5)
        low, high = [0, 0, 15, 8, -1.5], [side, side, 60, 25, 1.5]
        boxes = rng.uniform(low, high, (count, 5))
        label = rng.choice(rng.choice(CLASSES, 2, p=of_class), count)
        hard = rng.random(count) < 0.05
        rows = zip(corners_of(boxes).reshape(-1, 8), label, hard, strict=True)
        text = [f"{_words(row, 1)} class{k} {int(flag)}\n" for row, k, flag in rows]
        (truth / f"P{image:04}.txt").write_text("imagesource:drawn\ngsd:0.2\n" + "".join(text))
        near = rng.integers(0, count, round(count * DETECTIONS / OBJECTS))
        moved = boxes[near] + rng.normal(0, [3, 3, 2, 1, 0.05], (len(near), 5))
        moved[:, 2:4] = np.abs(moved[:, 2:4])
        lost = rng.random(len(near)) < 0.4
        moved[lost, :2] = rng.uniform(0, side, (int(lost.sum()), 2))
        for row, k, score in zip(
            corners_of(moved).reshape(-1, 8), label[near], rng.random(len(near)), strict=True
        ):
            lines[k].append(f"P{image:04} {score:.6f} {_words(row, 2)}\n")
    for k, some in enumerate(lines):
        (found / f"Task1_class{k}.txt").write_text("".join(some))
    return truth, found


def _words(row: np.ndarray, decimals: int) -> str:
    return " ".join(f"{x:.{decimals}f}" for x in row.tolist())
