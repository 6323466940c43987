"""The process in which one tool does one job, and what the jobs are.

    python tools/bench_jobs.py '{"tool": "hotcoco", "job": "files", ...}'

A job is a function that takes its task, gets ready untimed, and returns a call: the call is timed
and returns the numbers by which the tools are compared. `bench.py` starts these processes. To add
a job, add a function here and what it is run on in the table of `bench.py`. Imports are inside the
functions: what a process measures includes them.
"""

import json
import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

from peers import BY_NAME, numbers

Task = dict[str, Any]
Call = Callable[[], Iterable[float]]
EXTRA: dict[str, float] = {}  # what a job measured beside its calls, seconds or bytes


# --- boxes, masks, keypoints: COCO's numbers ------------------------------------------------------


def files(task: Task) -> Call:
    """From two files to COCO's numbers."""
    peer = BY_NAME[task["tool"]]
    kind = task.get("kind", "bbox")
    return lambda: peer.files(task["truth"], task["detections"], task["threads"], kind)


def arrays(task: Task) -> Call:
    """From loaded truth and boxes in arrays to COCO's numbers."""
    import numpy as np

    peer = BY_NAME[task["tool"]]
    truth, found = peer.truth(task["truth"]), peer.detections(np.load(task["table"]))
    return lambda: peer.results(truth, found, task["threads"], "bbox")


def tables(task: Task) -> Call:
    """From detmap's tables to the numbers of a protocol."""
    import detmap

    truth = detmap.read_truth(task["truth"])
    found = detmap.read_detections(task["detections"], truth, unknown="drop")  # as the peers do
    name, threads = task.get("protocol", "coco-bbox"), task["threads"]
    return lambda: detmap.evaluate(truth, found, name, threads=threads).metrics.values()


def voc(task: Task) -> Call:
    """From a VOC tree and text files, or those of another protocol, to mAP."""
    import detmap

    how = task["truth"], task["detections"], task.get("protocol", "voc2007")
    return lambda: [detmap.evaluate(*how, threads=task["threads"]).metrics["mAP"]]


def lvis(task: Task) -> Call:
    """From two files to LVIS's thirteen numbers."""
    import lvis_peers

    paths = task["truth"], task["detections"]
    return lambda: lvis_peers.evaluate(task["tool"], *paths, task["threads"])


def voc_twin(task: Task) -> Call:
    """The same mAP by the slow twin, from plain Python objects: it reads no files."""
    import detmap
    from detmap.core.protocol import Grid
    from tests.reference import voc as twin

    truth = detmap.read_truth(task["truth"])
    found = detmap.read_detections(task["detections"], truth, unknown="drop")  # as the peers do
    names, stems = truth.categories.names, truth.images.ids.tolist()
    objects: Any = {name: {stem: [] for stem in stems} for name in names}
    detections: Any = {name: [] for name in names}
    columns = truth.label, truth.image, truth.boxes, truth.difficult
    for k, i, box, difficult in zip(*(column.tolist() for column in columns), strict=True):
        objects[names[k]][stems[i]].append((*box, difficult))
    columns = found.label, found.image, found.score, found.boxes
    for k, i, score, box in zip(*(column.tolist() for column in columns), strict=True):
        detections[names[k]].append((stems[i], score, *box))
    points = Grid("arange 0:0.1:1").values().tolist()

    def eleven(recall: Any, precision: Any) -> float:
        return twin.eleven_point(recall, precision, points)

    return lambda: [twin.mean_ap(detections, objects, integrate=eleven)]


def cells(task: Task) -> Call:
    """Evaluate, read ``evalImgs`` and accumulate from it, as torchvision's references do; 80
    classes, `images` of 7 objects and 147 detections, most of these near an object.
    """
    import contextlib

    import numpy as np

    if task["tool"] == "detmap.compat":
        from detmap.compat import COCO, COCOeval
    else:
        from pycocotools.coco import COCO
        from pycocotools.cocoeval import COCOeval
    rng, n_images, n_classes = np.random.default_rng(0), task["images"], 80
    annotations: list[Any] = []
    results: list[Any] = []
    for image in range(n_images):
        boxes = np.column_stack([rng.uniform(0, 400, (7, 2)), rng.uniform(20, 150, (7, 2))])
        labels, near = rng.integers(0, n_classes, 7), rng.integers(0, 7, 147)
        for box, label in zip(boxes.tolist(), labels.tolist(), strict=True):
            record = {"id": len(annotations) + 1, "image_id": image, "category_id": label}
            annotations.append({**record, "bbox": box, "area": box[2] * box[3], "iscrowd": 0})
        found = np.abs(boxes[near] + rng.normal(0, 8, (147, 4)))
        others = np.where(rng.random(147) < 0.1, rng.integers(0, n_classes, 147), labels[near])
        for box, label, score in zip(
            found.tolist(), others.tolist(), rng.random(147).tolist(), strict=True
        ):
            record = {"image_id": image, "category_id": label}
            results.append({**record, "bbox": box, "score": score})
    truth = COCO()
    truth.dataset = {
        "images": [{"id": i, "width": 640, "height": 480} for i in range(n_images)],
        "categories": [{"id": k, "name": str(k)} for k in range(n_classes)],
        "annotations": annotations,
    }

    def read() -> Iterable[float]:
        run = COCOeval(truth, in_coco, "bbox")
        run.evaluate()
        shape = n_classes, 4, n_images
        run.evalImgs = list(np.asarray(run.evalImgs, dtype=object).reshape(shape).flatten())
        run.accumulate()
        run.summarize()
        return list(run.stats)

    with contextlib.redirect_stdout(None):
        truth.createIndex()
        in_coco = truth.loadRes(results)
    return read


def compare(task: Task) -> Call:
    """From loaded truth and the records of two detectors to their differences with intervals, by
    detmap's jackknife, or `replicates` of hotcoco's bootstrap: AP's difference, and the ends of its
    interval.

    The second detector lacks every tenth record of the first. hotcoco drops images that are drawn
    twice, so its interval is too narrow; that is its answer, and it is shown beside.
    """
    import numpy as np

    if task["tool"] == "detmap":
        import detmap

        truth = detmap.read_truth(task["truth"])
        first = detmap.read_detections(task["detections"], truth)
        second = first.take(np.flatnonzero(np.arange(len(first)) % 10 != 0))

        def own() -> Iterable[float]:
            found = detmap.compare(
                truth, first, second, protocol="coco-bbox", threads=task["threads"]
            )
            one = found.pairs[0]
            return [one.difference, one.low, one.high]

        return own
    import hotcoco

    annotated = hotcoco.COCO(task["truth"])
    with open(task["detections"]) as file:
        records = json.load(file)
    lists = records, [each for i, each in enumerate(records) if i % 10]
    loaded = [annotated.load_res(each) for each in lists]

    def its() -> Iterable[float]:
        runs = [hotcoco.COCOeval(annotated, each, "bbox") for each in loaded]
        for run in runs:
            run.evaluate()
        found = hotcoco.compare(runs[0], runs[1], n_bootstrap=task["replicates"])
        interval = found["ci"]["AP"]
        ends = (interval["lower"], interval["upper"]) if isinstance(interval, dict) else interval
        return [found["deltas"]["AP"], *ends]

    return its


# --- image-level classifiers ----------------------------------------------------------------------


def ranking(task: Task) -> Call:
    """A ranking metric of drawn labels and scores; of curves, their lengths and moments.

    Parameters
    ----------
    task : `shape` of the labels, `digits` of the scores, `dtype`, `metric`; a tenth of the labels
        are positive, the scores somewhat right
    """
    import numpy as np

    rng = np.random.default_rng(0)
    truth = rng.random(task["shape"]) < 0.1
    score = 1 / (1 + np.exp(-(rng.normal(size=truth.shape) + 1.5 * truth)))
    score = (score.round(task["digits"]) if task["digits"] else score).astype(task["dtype"])
    labels, metric = truth.astype(np.int64), task["metric"]
    found: list[Any] = []

    def keep(result: Any) -> list[float]:
        found[:] = [result]
        return []

    def reduced() -> list[float]:
        return moments(found[0])

    EXTRA_STATS.append(reduced)
    if task["tool"] == "detmap":
        from detmap import ranking as own

        call = {
            "AP": own.average_precision,
            "AUC": own.auc,
            "PR curve": own.precision_recall_curve,
            "ROC curve": own.roc_curve,
        }[metric]
        return lambda: keep(call(labels, score, threads=task["threads"]))
    from sklearn import metrics

    call = {
        "AP": metrics.average_precision_score,
        "AUC": metrics.roc_auc_score,
        "PR curve": metrics.precision_recall_curve,
        "ROC curve": partial(metrics.roc_curve, drop_intermediate=False),
    }[metric]
    if metric.endswith("curve") and labels.ndim == 2:  # it has no other way for many classes
        return lambda: keep([call(labels[:, k], score[:, k]) for k in range(labels.shape[1])])
    return lambda: keep(call(labels, score))


EXTRA_STATS: list[Callable[[], list[float]]] = []  # numbers that are made after the timed calls


def moments(result: Any) -> list[float]:
    """Numbers that differ where any cell differs: of an array its length, mean and a mean weighted
    by place; of a tuple or list those of each.
    """
    import numpy as np

    if isinstance(result, tuple | list):
        return [number for each in result for number in moments(each)]
    values = np.atleast_1d(np.asarray(result, dtype=np.longdouble))
    values = values[np.isfinite(values)]  # the first threshold of a ROC curve is infinite
    place = np.cos(np.arange(len(values), dtype=np.float64))
    return [float(len(values)), float(values.mean()), float((values * place).mean())]


# --- batches as they come -------------------------------------------------------------------------

IMAGES = 16

Stream = tuple[Callable[[int], Any], Callable[[], Iterable[float]]]


def batches(task: Task) -> Call:
    """The images of two files in batches of 16, one a call, into a streaming evaluator or a metric
    of torchmetrics, in the form that it takes fastest; the final numbers when all are in.
    """
    truth = json.loads(Path(task["truth"]).read_bytes())
    found = json.loads(Path(task["detections"]).read_bytes())
    streams = {"detmap": own_stream, "hotcoco": hotcoco_stream, "vernier": vernier_stream}
    update, final = streams.get(task["tool"], metric_stream)(truth, found, task)
    turns = iter(range(task["calls"]))

    def finish() -> list[float]:
        begin = time.perf_counter(), time.process_time()
        values = numbers(final())
        EXTRA["final"], EXTRA["final cpu"] = (
            time.perf_counter() - begin[0],
            time.process_time() - begin[1],
        )
        return values

    EXTRA_STATS.append(finish)
    return lambda: update(next(turns)) or []


def in_batches(truth: Task, found: list[Task], dtype: Any = float) -> list[tuple[Any, Any]]:
    """Predictions and targets of 16 images at a time, a dict of arrays for each image."""
    import numpy as np

    sides: list[dict[int, list[Task]]] = []
    for records in (found, truth["annotations"]):
        sides.append({image["id"]: [] for image in truth["images"]})
        for record in records:
            sides[-1][record["image_id"]].append(record)
    of = {"labels": "category_id", "area": "area", "iscrowd": "iscrowd", "scores": "score"}

    def image(number: int, records: list[Task], *names: str) -> Task:
        arrays = {"boxes": np.array([each["bbox"] for each in records], dtype).reshape(-1, 4)}
        for name in names:
            kind = dtype if name in ("area", "scores") else np.int64
            arrays[name] = np.array([each.get(of[name], 0) for each in records], kind)
        return {"image_id": number, **arrays}

    ids = [each["id"] for each in truth["images"]]
    return [
        (
            [image(i, sides[0][i], "labels", "scores") for i in ids[start : start + IMAGES]],
            [
                image(i, sides[1][i], "labels", "area", "iscrowd")
                for i in ids[start : start + IMAGES]
            ],
        )
        for start in range(0, len(ids), IMAGES)
    ]


def own_stream(truth: Task, found: list[Task], task: Task) -> Stream:
    import detmap

    ready = in_batches(truth, found)
    classes = {each["id"]: each["name"] for each in truth["categories"]}
    stream = detmap.Evaluator(classes=classes, box_format="xywh")
    return lambda i: stream.update(*ready[i]), lambda: stream.compute().metrics.values()


def hotcoco_stream(truth: Task, found: list[Task], task: Task) -> Stream:
    import hotcoco
    import numpy as np

    stream = hotcoco.StreamingEval(truth["categories"])
    objects: dict[int, list[Task]] = {image["id"]: [] for image in truth["images"]}
    for each in truth["annotations"]:
        objects[each["image_id"]].append(each)
    ready = []
    for start, (predictions, _) in enumerate(in_batches(truth, found)):
        images = truth["images"][start * IMAGES :][:IMAGES]
        columns = [
            np.column_stack(
                [np.full(len(p["scores"]), p["image_id"]), p["boxes"], p["scores"], p["labels"]]
            )
            for p in predictions
        ]
        known = [each for image in images for each in objects[image["id"]]]
        ready.append((images, known, np.concatenate(columns)))

    def final() -> Iterable[float]:
        last = stream.finalize()
        last.accumulate()
        last.summarize()
        return last.stats

    return lambda i: stream.update(*ready[i]), final


def vernier_stream(truth: Task, found: list[Task], task: Task) -> Stream:
    """It has the ground truth up front; an update ends when its worker has taken the batch in."""
    from vernier import instance

    ready = in_batches(truth, found)
    data = instance.CocoDataset.from_json(Path(task["truth"]).read_bytes())
    stream = instance.Evaluator(parity_mode="strict").background(data, num_threads=1)

    def update(i: int) -> None:
        stream.submit(ready[i][0])
        while stream.images_seen < min((i + 1) * IMAGES, len(truth["images"])):
            time.sleep(0)

    return update, lambda: stream.finalize().stats


def metric_stream(truth: Task, found: list[Task], task: Task) -> Stream:
    """A metric of torchmetrics, as detmap's class, with the drop-in, or with its own backends."""
    import numpy as np
    import pytest
    import torch

    from detmap.compat import patch_pycocotools
    from tests.support import stand_ins

    stand_ins.torchvision(pytest.MonkeyPatch())  # where there is none for this torch
    from torchmetrics.detection.mean_ap import MeanAveragePrecision

    options = {"box_format": "xywh"}
    if task["tool"] == "detmap.integrations.torchmetrics":
        from detmap.integrations.torchmetrics import MeanAveragePrecision
    elif task["tool"] == "detmap.compat":
        patch_pycocotools()
    else:
        options["backend"] = task["tool"].rpartition(" ")[2]
    metric = MeanAveragePrecision(**options)
    metric.warn_on_many_detections = False
    ready = [
        [
            [{k: torch.from_numpy(v) for k, v in each.items() if k != "image_id"} for each in side]
            for side in batch
        ]
        for batch in in_batches(truth, found, np.float32)
    ]
    return lambda i: metric.update(*ready[i]), lambda: [float(metric.compute()["map"])]


# --- a cluster ------------------------------------------------------------------------------------


def draw_shard(shard: int, n_images: int, n_detections: int, n_classes: int = 80) -> Any:
    """Truth and detections of random boxes, half of the detections near an object."""
    import numpy as np

    import detmap

    rng = np.random.default_rng(shard)
    image = np.repeat(np.arange(n_images), 7)
    boxes = np.hstack([rng.uniform(0, 500, (len(image), 2)), rng.uniform(10, 150, (len(image), 2))])
    label = rng.integers(0, n_classes, len(image))
    first = shard * n_images
    truth = detmap.truth_from_arrays(
        image + first,
        label,
        boxes,
        images=(first + np.arange(n_images)).tolist(),
        categories={k: str(k) for k in range(n_classes)},
    )
    found = np.repeat(np.arange(n_images), n_detections)
    near = found * 7 + rng.integers(0, 7, len(found))
    moved = boxes[near] + rng.normal(0, 5, (len(found), 4))
    moved[:, 2:] = np.abs(moved[:, 2:])
    other = rng.integers(0, n_classes, len(found))
    labels = np.where(rng.random(len(found)) < 0.5, label[near], other)
    score = rng.random(len(found))
    return truth, detmap.detections_from_arrays(truth, found + first, labels, moved, score)


def cluster(task: Task) -> Call:
    """Shards matched on two workers, scores of classes back to a driver; how much memory the
    driver grows by. With `kill` a worker is killed after the first shard.
    """
    from distributed import Client, LocalCluster

    from detmap.core.streaming import distributed

    sizes = task["images"], task["per_image"]
    shards = [partial(draw_shard, s, *sizes) for s in range(task["shards"])]

    def call() -> Iterable[float]:
        limit = task.get("limit", "auto")
        with (
            LocalCluster(
                n_workers=2, threads_per_worker=1, dashboard_address=":0", memory_limit=limit
            ) as workers,
            Client(workers) as client,
        ):
            pids = list(client.run(os.getpid).values()) if task.get("kill") else []

            def kill(done: int, of: int) -> None:
                if pids:
                    os.kill(pids.pop(), signal.SIGKILL)
                    pids.clear()

            before, begin = own_peak(), time.perf_counter()
            result = distributed.evaluate(shards, "coco-bbox", client, rows=False, progress=kill)
            EXTRA["evaluate"] = time.perf_counter() - begin
            EXTRA["driver"] = own_peak() - before
            EXTRA["worker"] = max(client.run(own_peak).values())
        return result.metrics.values()

    return call


def growth(task: Task) -> Call:
    """Tables of random boxes to numbers; the processor time of the fastest call."""
    import detmap

    truth, found = draw_shard(0, task["images"], task["per_image"], task["classes"])
    thresholds = [round(0.5 + 0.45 * i / task["thresholds"], 6) for i in range(task["thresholds"])]
    settings = {"iou.thresholds": thresholds, "metrics": ["AP"]}
    EXTRA["processor"] = float("inf")

    def call() -> Iterable[float]:
        begin = time.process_time()
        result = detmap.evaluate(truth, found, "coco-bbox", settings=settings, threads=1)
        EXTRA["processor"] = min(EXTRA["processor"], time.process_time() - begin)
        return result.metrics.values()

    return call


def own_peak() -> int:
    """Bytes of this process' resident memory at its highest."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


JOBS = {
    "files": files,
    "lvis": lvis,
    "arrays": arrays,
    "tables": tables,
    "voc": voc,
    "voc twin": voc_twin,
    "ranking": ranking,
    "batches": batches,
    "cells": cells,
    "compare": compare,
    "cluster": cluster,
    "growth": growth,
}


def main() -> None:
    """Do one task: call up to `calls` times, write numbers and times to the file `answer`.

    A call that takes longer than `patience` seconds is not repeated: it has little to warm up.
    """
    task = json.loads(sys.argv[1])
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    os.sched_setaffinity(0, task["cpus"])
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # some tools print their tables from compiled code
    if task["memory"]:
        resource.setrlimit(resource.RLIMIT_AS, (task["memory"], task["memory"]))
    call = JOBS[task["job"]](task)
    seconds: list[float] = []
    cpu: list[float] = []
    values: Iterable[float] = []
    while len(seconds) < task["calls"] and (not seconds or seconds[-1] < task["patience"]):
        begin, began = time.perf_counter(), time.process_time()
        values = call()
        seconds.append(time.perf_counter() - begin)
        cpu.append(time.process_time() - began)
    stats = numbers(values) + [value for make in EXTRA_STATS for value in make()]
    answer = {"stats": stats, "seconds": seconds, "cpu": cpu, "extra": EXTRA}
    Path(task["answer"]).write_text(json.dumps(answer), encoding="ascii")


if __name__ == "__main__":
    main()
