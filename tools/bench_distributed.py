"""Measure the memory of the driver of `detmap.distributed` as detections grow tenfold, on a local
cluster of processes.

    pip install -e '.[dask]' python tools/bench_distributed.py                  # exit 1 if the
    driver's peak grows by more than --slack MiB python tools/bench_distributed.py --check
    # and compare every number with one process

Each size runs in a process of its own, with fresh workers; the peak is that of resident memory
from the call of `evaluate` to its end, beside what the driver held before. Shards are drawn on
the workers, so that no file or cache is shared.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from functools import partial
from typing import Any

import numpy as np

import detmap
from detmap import distributed
from detmap.tables import Categories, Detections, Images, Truth

CLASSES, OBJECTS = 80, 7


def draw(shard: int, n_images: int, n_detections: int) -> tuple[Truth, Detections]:
    """A shard of random boxes, half of its detections near an object."""
    rng = np.random.default_rng(shard)
    image = np.repeat(np.arange(n_images, dtype=np.int32), OBJECTS)
    boxes = np.hstack([rng.uniform(0, 500, (len(image), 2)), rng.uniform(10, 150, (len(image), 2))])
    label = rng.integers(0, CLASSES, len(image)).astype(np.int32)
    unknown = np.full(n_images, np.nan)
    images = Images(shard * n_images + np.arange(n_images), ("",) * n_images, unknown, unknown)
    truth = Truth(
        images,
        Categories(np.arange(CLASSES), tuple(map(str, range(CLASSES)))),
        image,
        label,
        boxes,
        {},
        {"area": boxes[:, 2] * boxes[:, 3]},
        "xywh",
        "coco",
    )
    found = np.repeat(np.arange(n_images, dtype=np.int32), n_detections)
    near = found * OBJECTS + rng.integers(0, OBJECTS, len(found))
    moved = boxes[near] + rng.normal(0, 5, (len(found), 4))
    moved[:, 2:] = np.abs(moved[:, 2:])
    other = rng.integers(0, CLASSES, len(found))
    labels = np.where(rng.random(len(found)) < 0.5, label[near], other).astype(np.int32)
    scores = rng.random(len(found))
    return truth, Detections(images, truth.categories, found, labels, moved, scores, "xywh")


def peak() -> float:
    """MiB of this process' resident memory at its highest."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    """One evaluation: detections, seconds, memory before it and at its peak."""
    from distributed import Client, LocalCluster

    shards = [
        partial(draw, s, arguments.images, arguments.detections) for s in range(arguments.shards)
    ]
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        before, begin = peak(), time.perf_counter()
        result = distributed.evaluate(shards, "coco-bbox", client)
        seconds, after = time.perf_counter() - begin, peak()
    if arguments.check:
        parts = [detmap.match(*shard(), result.protocol) for shard in shards]
        whole = detmap.summarize(parts[0].merge(*parts[1:]))
        assert whole.as_dict() == result.as_dict(), "the numbers differ from those of one process"
    count = arguments.shards * arguments.images * arguments.detections
    return {
        "detections": count,
        "seconds": seconds,
        "before": before,
        "peak": after,
        "AP": result.metrics["AP"],
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--shards", type=int, default=20)
    parser.add_argument("--images", type=int, default=500, help="of a shard (default: 500)")
    parser.add_argument(
        "--detections", type=int, default=30, help="of an image, at first (default: 30)"
    )
    parser.add_argument(
        "--slack", type=float, default=32, help="MiB that the peak may differ by (default: 32)"
    )
    parser.add_argument("--check", action="store_true", help="compare with one process")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measure(arguments)))
        return 0
    rows = []
    print(f"{'detections':>12}{'seconds':>10}{'driver before':>16}{'driver peak':>14}")
    for factor in (1, 10):
        command = [
            sys.executable,
            __file__,
            "--one",
            "--shards",
            str(arguments.shards),
            "--images",
            str(arguments.images),
            "--detections",
            str(factor * arguments.detections),
            *["--check"] * arguments.check,
        ]
        row = json.loads(
            subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[
                -1
            ]
        )
        rows.append(row)
        print(
            f"{row['detections']:>12,}{row['seconds']:>10.1f}{row['before']:>12.0f} MiB{row['peak']:>10.0f} MiB"
        )
    return int(rows[1]["peak"] - rows[0]["peak"] > arguments.slack)


if __name__ == "__main__":
    sys.exit(main())
