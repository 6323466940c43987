"""The evaluators of LVIS that the benchmark measures: paths of two files -> the 13 numbers.

Each has the calls at the start of its documentation. lvis-api is the reference.
"""

import contextlib
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

METRICS = (
    *("AP", "AP50", "AP75", "APs", "APm", "APl", "APr", "APc", "APf"),
    *("AR@300", "ARs@300", "ARm@300", "ARl@300"),
)
FASTER = (0, 1, 2, 3, 4, 5, 14, 15, 16, 6, 9, 10, 11)
"""Where faster-coco-eval has these numbers among its own."""


def detmap(truth: str, found: str, threads: int) -> Iterable[float]:
    import detmap

    # as the others, it leaves out what the ground truth does not list
    metrics = detmap.evaluate(truth, found, "lvis", threads=threads, unknown="drop").metrics
    return [metrics[name] for name in METRICS]


def hotcoco(truth: str, found: str, threads: int) -> Iterable[float]:
    from hotcoco import LVIS, LVISEval, LVISResults

    objects = LVIS(truth)
    run = LVISEval(objects, LVISResults(objects, found), "bbox")
    run.run()
    results = run.get_results()
    return [results[name] for name in METRICS]


def coco_style(run: Any) -> Any:
    """An evaluation of pycocotools' shape with LVIS's rules, done."""
    run.params.maxDets = [300]
    run.evaluate()
    run.accumulate()
    run.summarize()
    return run


def ultrafast(truth: str, found: str, threads: int) -> Iterable[float]:
    from ultrafast_pycocotools import COCO, COCOeval

    objects = COCO(truth, verbose=False)
    run = COCOeval(objects, objects.loadRes(found), "bbox", lvis_style=True)
    return list(coco_style(run).stats)


def vernier(truth: str, found: str, threads: int) -> Iterable[float]:
    from vernier.instance import CocoDataset, evaluate_bbox_grid

    objects = CocoDataset.from_lvis_json(Path(truth).read_bytes())
    grid = evaluate_bbox_grid(
        objects,
        Path(found).read_bytes(),
        parity_mode="strict",
        max_dets_per_image=300,
        use_cats=True,
        num_threads=threads,
    )
    return list(grid.accumulate([300]).summarize_lvis(objects, [300]).stats)


def faster(truth: str, found: str, threads: int) -> Iterable[float]:
    from faster_coco_eval import COCO, COCOeval_faster

    objects = COCO(truth)
    run = COCOeval_faster(objects, objects.loadRes(found), "bbox", lvis_style=True)
    stats = coco_style(run).all_stats
    return [stats[place] for place in FASTER]


def lvis_api(truth: str, found: str, threads: int) -> Iterable[float]:
    """It has one thread."""
    import numpy as np

    if not hasattr(np, "float"):  # which NumPy 1.24 removed
        np.float = float  # type: ignore[attr-defined]
    from lvis import LVIS, LVISEval, LVISResults

    objects = LVIS(truth)
    run = LVISEval(objects, LVISResults(objects, found), "bbox")
    run.run()
    return [run.results[name] for name in METRICS]


Call = Callable[[str, str, int], Iterable[float]]
CALLS: dict[str, Call] = {
    "detmap": detmap,
    "hotcoco": hotcoco,
    "ultrafast-pycocotools": ultrafast,
    "vernier": vernier,
    "faster-coco-eval": faster,
    "lvis-api": lvis_api,
}
DISTRIBUTIONS = {name: name for name in CALLS} | {"detmap": "detmap-eval", "lvis-api": "lvis"}
SLOW = ("faster-coco-eval", "lvis-api")


def evaluate(tool: str, truth: str, found: str, threads: int) -> list[float]:
    """The numbers of a tool, which may print; -1 where undefined."""
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        values = CALLS[tool](truth, found, threads)
    return [-1.0 if value != value else float(value) for value in values]
