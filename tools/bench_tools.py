"""The evaluators that `bench.py` compares, one row each, and the process in which one of them is
measured.

    python tools/bench_tools.py '{"tool": "hotcoco", "job": "files", ...}'

A row says how its tool is called in the way that is fastest for it and still gives pycocotools'
numbers. To add a peer, add a row. This file imports nothing that a tool might not need: what a
process measures includes its imports.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

Stats = list[float]


class Tool(NamedTuple):
    """One evaluator.

    Parameters
    ----------
    name : of its distribution
    files : (truth path, detections path, threads) -> the twelve stats
    truth : truth path -> what `arrays` wants as truth; not timed
    detections : (D, 7) float64 ``image_id, x, y, w, h, score, category_id`` -> what `arrays` wants;
        not timed
    arrays : (truth, detections, threads) -> the twelve stats
    call : how it is called and how its threads are set, for the reader of the table
    slow : leave it out of the large workloads unless asked
    """

    name: str
    files: Callable[[str, str, int], Iterable[float]]
    truth: Callable[[str], Any]
    detections: Callable[[Any], Any]
    arrays: Callable[[Any, Any, int], Iterable[float]]
    call: str
    slow: bool = False


def same(table: Any) -> Any:
    """The (D, 7) array is what the tool wants."""
    return table


# --- detmap ---------------------------------------------------------------------------------------


def detmap_files(truth: str, detections: str, threads: int) -> Iterable[float]:
    """Two paths into `evaluate`."""
    import detmap

    return detmap.evaluate(truth, detections, "coco-bbox", threads=threads).metrics.values()


def detmap_truth(path: str) -> Any:
    """A truth table."""
    import detmap

    return detmap.read_truth(path)


def detmap_columns(table: Any) -> Any:
    """Image ids, category ids, boxes, scores, each contiguous."""
    import numpy as np

    ids = table[:, [0, 6]].astype(np.int64).T.copy()
    return ids[0], ids[1], table[:, 1:5].copy(), table[:, 5].copy()


def detmap_arrays(truth: Any, columns: Any, threads: int) -> Iterable[float]:
    """Columns into a table, tables into `evaluate`."""
    import detmap

    return detmap.evaluate(
        truth, detmap.detections_from_arrays(truth, *columns), "coco-bbox", threads=threads
    ).metrics.values()


# --- tools with the classes of pycocotools
# -----------------------------------------------------------------------------


def pycocotools_truth(path: str) -> Any:
    """A COCO object."""
    from pycocotools.coco import COCO

    return COCO(path)


def pycocotools_results(truth: Any, detections: Any, threads: int) -> Iterable[float]:
    """One thread: it has no other."""
    from pycocotools.cocoeval import COCOeval

    run = COCOeval(truth, truth.loadRes(detections), "bbox")
    run.evaluate()
    run.accumulate()
    run.summarize()
    return run.stats


def compat_truth(path: str) -> Any:
    """A COCO object of detmap's drop-in."""
    from detmap.compat import COCO

    return COCO(path)


def compat_results(truth: Any, detections: Any, threads: int) -> Iterable[float]:
    """The three calls of pycocotools; the threads are those that the process is bound to."""
    from detmap.compat import COCOeval

    run = COCOeval(truth, truth.loadRes(detections), "bbox")
    run.evaluate()
    run.accumulate()
    run.summarize()
    return run.stats


def faster_truth(path: str) -> Any:
    """A COCO object."""
    from faster_coco_eval import COCO

    return COCO(path)


def faster_results(truth: Any, detections: Any, threads: int) -> Iterable[float]:
    """Evaluation and accumulation in one C++ call, which is its default."""
    from faster_coco_eval import COCOeval_faster

    run = COCOeval_faster(truth, truth.loadRes(detections), "bbox")
    run.evaluate()
    run.accumulate()
    run.summarize()
    return run.stats


def hotcoco_truth(path: str) -> Any:
    """A COCO object."""
    from hotcoco import COCO

    return COCO(path)


def hotcoco_results(truth: Any, detections: Any, threads: int) -> Iterable[float]:
    """As its documentation begins: load_res and run."""
    from hotcoco import COCOeval

    run = COCOeval(truth, truth.load_res(detections), "bbox")
    run.run()
    return run.stats


def ultrafast_truth(path: str) -> Any:
    """A COCO object that keeps compact columns."""
    from ultrafast_pycocotools import COCO

    return COCO(path, verbose=False)


def ultrafast_results(truth: Any, detections: Any, threads: int) -> Iterable[float]:
    """As its documentation begins: loadRes and run."""
    from ultrafast_pycocotools import COCOeval

    run = COCOeval(truth, truth.loadRes(detections), "bbox")
    run.run()
    return run.stats


# --- vernier --------------------------------------------------------------------------------------


def vernier_evaluate(truth: Any, detections: Any, threads: int) -> Iterable[float]:
    """The evaluator of its own API, in the mode that promises pycocotools' numbers."""
    from vernier.instance import Bbox, Evaluator

    return (
        Evaluator(iou=Bbox(), parity_mode="strict")
        .evaluate(truth, detections, num_threads=threads)
        .stats
    )


def vernier_files(truth: str, detections: str, threads: int) -> Iterable[float]:
    """The bytes of both files: nothing is kept for a second evaluation."""
    return vernier_evaluate(Path(truth).read_bytes(), Path(detections).read_bytes(), threads)


def vernier_truth(path: str) -> Any:
    """A handle, whose derived tables are kept from one call to the next."""
    from vernier.instance import CocoDataset

    return CocoDataset.from_json(Path(path).read_bytes())


def by_paths(
    truth: Callable[[str], Any], results: Callable[[Any, Any, int], Iterable[float]]
) -> Any:
    """The `files` function of a tool whose results may be a path."""
    return lambda truth_path, path, threads: results(truth(truth_path), path, threads)


TOOLS = (
    Tool(
        "detmap",
        detmap_files,
        detmap_truth,
        detmap_columns,
        detmap_arrays,
        "evaluate(path, path, threads=N); detections_from_arrays + evaluate",
    ),
    Tool(
        "detmap.compat",
        by_paths(compat_truth, compat_results),
        compat_truth,
        same,
        compat_results,
        "the drop-in: COCO(path), loadRes(path or (D, 7) array), COCOeval, evaluate, accumulate, summarize",
    ),
    Tool(
        "ultrafast-pycocotools",
        by_paths(ultrafast_truth, ultrafast_results),
        ultrafast_truth,
        same,
        ultrafast_results,
        "COCO(path), loadRes(path or (D, 7) array), COCOeval.run(); RAYON_NUM_THREADS=N",
    ),
    Tool(
        "hotcoco",
        by_paths(hotcoco_truth, hotcoco_results),
        hotcoco_truth,
        same,
        hotcoco_results,
        "COCO(path), load_res(path or (D, 7) array), COCOeval.run(); RAYON_NUM_THREADS=N",
    ),
    Tool(
        "vernier",
        vernier_files,
        vernier_truth,
        same,
        vernier_evaluate,
        "Evaluator(Bbox(), parity_mode='strict').evaluate(bytes, bytes or CocoDataset, (D, 7) array, num_threads=N)",
    ),
    Tool(
        "faster-coco-eval",
        by_paths(faster_truth, faster_results),
        faster_truth,
        same,
        faster_results,
        "COCO(path), loadRes(path or (D, 7) array), COCOeval_faster; bound to N processors",
        slow=True,
    ),
    Tool(
        "pycocotools",
        by_paths(pycocotools_truth, pycocotools_results),
        pycocotools_truth,
        same,
        pycocotools_results,
        "COCO(path), loadRes(path or (D, 7) array), COCOeval; one thread",
        slow=True,
    ),
)
BY_NAME = {tool.name: tool for tool in TOOLS}


# --- one measurement ------------------------------------------------------------------------------


def run_files(task: dict[str, Any]) -> Callable[[], Iterable[float]]:
    """From two files to stats."""
    tool = BY_NAME[task["tool"]]
    return lambda: tool.files(task["truth"], task["detections"], task["threads"])


def run_arrays(task: dict[str, Any]) -> Callable[[], Iterable[float]]:
    """From loaded truth and arrays to stats."""
    import numpy as np

    tool = BY_NAME[task["tool"]]
    truth = tool.truth(task["truth"])
    detections = tool.detections(np.load(task["table"]))
    return lambda: tool.arrays(truth, detections, task["threads"])


def run_tables(task: dict[str, Any]) -> Callable[[], Iterable[float]]:
    """From detmap's tables to stats."""
    import detmap

    truth = detmap.read_truth(task["truth"])
    detections = detmap.read_detections(task["detections"], truth)
    return lambda: detmap.evaluate(
        truth, detections, "coco-bbox", threads=task["threads"]
    ).metrics.values()


def run_voc(task: dict[str, Any]) -> Callable[[], Iterable[float]]:
    """From a VOC tree and text files to mAP."""
    import detmap

    return lambda: [
        detmap.evaluate(
            task["truth"], task["detections"], "voc2007", threads=task["threads"]
        ).metrics["mAP"]
    ]


def run_voc_tables(task: dict[str, Any]) -> Callable[[], Iterable[float]]:
    """From detmap's tables to mAP."""
    import detmap

    truth = detmap.read_truth(task["truth"])
    found = detmap.read_detections(task["detections"], truth)
    return lambda: [
        detmap.evaluate(truth, found, "voc2007", threads=task["threads"]).metrics["mAP"]
    ]


def run_voc_twin(task: dict[str, Any]) -> Callable[[], Iterable[float]]:
    """The same mAP by the slow twin, from plain Python objects: it reads no files."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    import detmap
    from detmap.protocol import Grid
    from tests.reference import voc

    truth = detmap.read_truth(task["truth"])
    found = detmap.read_detections(task["detections"], truth)
    names, stems = truth.categories.names, truth.images.ids.tolist()
    objects: dict[str, dict[str, list[Any]]] = {
        name: {stem: [] for stem in stems} for name in names
    }
    detections: dict[str, list[Any]] = {name: [] for name in names}
    columns = (
        truth.label.tolist(),
        truth.image.tolist(),
        truth.boxes.tolist(),
        truth.difficult.tolist(),
    )
    for k, i, box, difficult in zip(*columns, strict=True):
        objects[names[k]][stems[i]].append((*box, difficult))
    columns = found.label.tolist(), found.image.tolist(), found.score.tolist(), found.boxes.tolist()
    for k, i, score, box in zip(*columns, strict=True):
        detections[names[k]].append((stems[i], score, *box))
    points = Grid("arange 0:0.1:1").values().tolist()
    return lambda: [
        voc.mean_ap(detections, objects, integrate=lambda r, p: voc.eleven_point(r, p, points))
    ]


JOBS = {
    "files": run_files,
    "arrays": run_arrays,
    "tables": run_tables,
    "voc": run_voc,
    "voc-tables": run_voc_tables,
    "voc-twin": run_voc_twin,
}


def main() -> None:
    """Do one task: call up to `calls` times, write the stats and every time to the file `answer`.

    A call that takes longer than `patience` seconds is not repeated: it has little to warm up.
    """
    task = json.loads(sys.argv[1])
    os.sched_setaffinity(0, task["cpus"])
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # some tools print their tables from compiled code
    if task["memory"]:
        resource.setrlimit(resource.RLIMIT_AS, (task["memory"], task["memory"]))
    call = JOBS[task["job"]](task)
    seconds: list[float] = []
    stats: Stats = []
    while len(seconds) < task["calls"] and (not seconds or seconds[-1] < task["patience"]):
        begin = time.perf_counter()
        values = call()
        seconds.append(time.perf_counter() - begin)
        stats = [-1.0 if value != value else float(value) for value in values]
    Path(task["answer"]).write_text(
        json.dumps({"stats": stats, "seconds": seconds}), encoding="ascii"
    )


if __name__ == "__main__":
    main()
