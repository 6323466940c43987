"""Measure streaming evaluators: detmap's `Evaluator` beside hotcoco's `StreamingEval` and vernier's
background evaluator.

    pip install -e '.[bench]'
    python tools/bench_streaming.py
    python tools/bench_streaming.py --demand 1      # exit 1 where a peer's update is faster

Batches of 16 images with 100 detections and 8 objects each, in 80 classes. Each tool gets every
batch in the form that it takes fastest, built beforehand: detmap per-image dicts of float64
arrays; hotcoco one (n, 7) array of detections and a list of dicts of objects; vernier, which has
the truth up front, per-image dicts of arrays. The tools take turns stream by stream in one
process, one thread each; vernier's update ends when its worker has taken the batch in. The
medians count only if the twelve final numbers of all tools are equal.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import statistics
import sys
import time
from collections.abc import Sequence
from typing import Any

os.environ["RAYON_NUM_THREADS"] = "1"

import hotcoco
import numpy as np
import vernier.instance as vernier

import detmap

IMAGES, DETECTIONS, OBJECTS, CLASSES = 16, 100, 8, 80
CATEGORIES = [{"id": k, "name": f"class {k}"} for k in range(1, CLASSES + 1)]
Arrays = dict[str, Any]


def draw(rng: np.random.Generator, image: int) -> tuple[Arrays, Arrays]:
    """Detections near the objects of an image, half of them of the right class; boxes x, y,
    width, height.
    """
    corner, size = rng.uniform(0, 500, (OBJECTS, 2)), rng.uniform(10, 150, (OBJECTS, 2))
    target = {
        "image_id": image,
        "boxes": np.hstack([corner, size]).round(2),
        "labels": rng.integers(1, CLASSES + 1, OBJECTS),
    }
    near = rng.integers(0, OBJECTS, DETECTIONS)
    boxes = target["boxes"][near] + rng.normal(0, 8, (DETECTIONS, 4))
    boxes[:, 2:] = np.abs(boxes[:, 2:]) + 1
    other = rng.integers(1, CLASSES + 1, DETECTIONS)
    labels = np.where(rng.random(DETECTIONS) < 0.5, target["labels"][near], other)
    return {
        "image_id": image,
        "boxes": boxes,
        "scores": rng.random(DETECTIONS),
        "labels": labels,
    }, target


def annotations(targets: Sequence[Arrays]) -> list[dict[str, Any]]:
    """COCO's records of the objects."""
    return [
        {
            "id": 1000 * t["image_id"] + i + 1,
            "image_id": t["image_id"],
            "category_id": label,
            "bbox": box,
            "area": box[2] * box[3],
            "iscrowd": 0,
        }
        for t in targets
        for i, (box, label) in enumerate(
            zip(t["boxes"].tolist(), t["labels"].tolist(), strict=True)
        )
    ]


class Detmap:
    name = f"detmap {detmap.__version__}, Evaluator.update"

    def __init__(self, batches: Sequence[Any]) -> None:
        self.evaluator = detmap.Evaluator(
            classes={c["id"]: c["name"] for c in CATEGORIES}, box_format="xywh"
        )
        self.batches = batches

    def update(self, i: int) -> None:
        self.evaluator.update(*self.batches[i])

    def stats(self) -> list[float]:
        return list(self.evaluator.compute().metrics.values())


class Hotcoco:
    name = f"hotcoco {hotcoco.__version__}, StreamingEval.update"

    def __init__(self, batches: Sequence[Any]) -> None:
        self.evaluator = hotcoco.StreamingEval(CATEGORIES)
        self.batches = []
        for predictions, targets in batches:
            columns = [
                np.column_stack(
                    [np.full(DETECTIONS, p["image_id"]), p["boxes"], p["scores"], p["labels"]]
                )
                for p in predictions
            ]
            images = [{"id": t["image_id"], "width": 640, "height": 640} for t in targets]
            self.batches.append((images, annotations(targets), np.concatenate(columns)))

    def update(self, i: int) -> None:
        self.evaluator.update(*self.batches[i])

    def stats(self) -> list[float]:
        final = self.evaluator.finalize()
        final.accumulate()
        with contextlib.redirect_stdout(io.StringIO()):
            final.summarize()
        return list(map(float, final.stats))


class Vernier:
    name = "vernier, BackgroundEvaluator.submit"

    def __init__(self, batches: Sequence[Any]) -> None:
        images = [
            {"id": t["image_id"], "width": 640, "height": 640}
            for _, targets in batches
            for t in targets
        ]
        truth = {
            "images": images,
            "annotations": [a for _, targets in batches for a in annotations(targets)],
            "categories": CATEGORIES,
        }
        data = vernier.CocoDataset.from_json(json.dumps(truth).encode())
        self.evaluator = vernier.Evaluator(parity_mode="strict").background(data, num_threads=1)
        self.batches = [predictions for predictions, _ in batches]
        self.seen = 0

    def update(self, i: int) -> None:
        self.evaluator.submit(self.batches[i])
        self.seen += len(self.batches[i])
        while self.evaluator.images_seen < self.seen:
            time.sleep(0)

    def stats(self) -> list[float]:
        return list(self.evaluator.finalize().stats)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--batches", type=int, default=100, help="to stream (default: 100)")
    parser.add_argument("--rounds", type=int, default=5, help="streams of each tool (default: 5)")
    parser.add_argument(
        "--demand", type=float, help="exit 1 where a peer's median is under so many times detmap's"
    )
    arguments = parser.parse_args()
    rng = np.random.default_rng(0)
    batches = []
    for b in range(arguments.batches):
        drawn = [draw(rng, b * IMAGES + i + 1) for i in range(IMAGES)]
        batches.append(tuple(map(list, zip(*drawn, strict=True))))
    warm = Detmap([tuple([each] for each in draw(rng, 0))])
    warm.update(0)
    warm.stats()

    kinds = [Detmap, Hotcoco, Vernier]
    updates: list[list[float]] = [[] for _ in kinds]
    finals: list[list[float]] = [[] for _ in kinds]
    stats: list[list[float]] = [[] for _ in kinds]
    for r in range(arguments.rounds):
        for turn in range(len(kinds)):
            at = (r + turn) % len(kinds)
            tool = kinds[at](batches)
            for i in range(arguments.batches):
                begin = time.perf_counter()
                tool.update(i)
                updates[at].append(time.perf_counter() - begin)
            begin = time.perf_counter()
            stats[at] = [-1.0 if value != value else value for value in tool.stats()]
            finals[at].append(time.perf_counter() - begin)
    equal = all(each == stats[0] for each in stats)
    medians = [statistics.median(each) for each in updates]
    print(
        f"{arguments.rounds} streams of {arguments.batches} batches: {IMAGES} images, {DETECTIONS} detections each, "
        f"{CLASSES} classes; AP {stats[0][0]:.6f}"
    )
    print(f"{'tool':<42}{'update, median':>16}{'final numbers':>16}{'times detmap':>14}")
    for kind, median, final in zip(kinds, medians, finals, strict=True):
        print(
            f"{kind.name:<42}{1e3 * median:>13.2f} ms{1e3 * statistics.median(final):>13.1f} ms{median / medians[0]:>14.2f}"
        )
    if not equal:
        print("the final numbers differ")
        return 1
    return int(arguments.demand is not None and min(medians[1:]) < arguments.demand * medians[0])


if __name__ == "__main__":
    sys.exit(main())
