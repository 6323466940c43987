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
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from peers import BY_NAME, numbers

Task = dict[str, Any]
Call = Callable[[], Iterable[float]]
EXTRA: dict[str, float] = {}  # what a job measured beside its calls, in seconds


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
    """From a VOC tree and text files to mAP."""
    import detmap

    how = task["truth"], task["detections"], "voc2007"
    return lambda: [detmap.evaluate(*how, threads=task["threads"]).metrics["mAP"]]


def lvis(task: Task) -> Call:
    """From two files to LVIS's thirteen numbers."""
    import lvis_peers

    paths = task["truth"], task["detections"]
    return lambda: lvis_peers.evaluate(task["tool"], *paths, task["threads"])


EXTRA_STATS: list[Callable[[], list[float]]] = []  # numbers that are made after the timed calls


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
        EXTRA["final"] = time.perf_counter() - begin[0]
        EXTRA["final cpu"] = time.process_time() - begin[1]
        return values

    EXTRA_STATS.append(finish)

    def call() -> list[float]:
        update(next(turns))
        return []

    return call


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

    def final() -> Iterable[float]:
        return stream.compute().metrics.values()

    if task.get("counts"):
        return lambda i: (stream.update(*ready[i]), stream.batch_metrics(0.5)), final
    return lambda i: stream.update(*ready[i]), final


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


JOBS = {
    "files": files,
    "lvis": lvis,
    "arrays": arrays,
    "tables": tables,
    "voc": voc,
    "batches": batches,
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
