"""Ray, Spark and Dask: one evaluation on each, with a worker that is killed.

    python tools/hosting/cluster.py ray|spark|dask

Each recipe is what a user writes; the numbers and the signature must be those of one process.
"""

import os
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import detmap

CLASSES = {1: "person", 2: "dog"}


def images(n: int = 200) -> pa.Table:
    """One row an image, some of them without objects."""
    rng, rows = np.random.default_rng(0), []
    for image in range(n):
        boxes = np.column_stack([rng.uniform(0, 400, (image % 6, 2)), np.full((image % 6, 2), 60)])
        truth = [{"bbox": b, "category_id": 1 + i % 2} for i, b in enumerate(boxes.tolist())]
        near = (boxes + rng.normal(0, 6, boxes.shape)).clip(0).tolist()
        found = [
            {"bbox": b, "category_id": 1 + i % 2, "score": float(rng.integers(1, 9)) / 8}
            for i, b in enumerate(near)
        ]
        rows.append({"image_id": image, "truth": truth, "detections": found})
    return pa.Table.from_pylist(rows)


def die_once(mark: str) -> None:
    """Kills the worker that comes first."""
    try:
        os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    os.kill(os.getpid(), signal.SIGKILL)


def with_ray(table: pa.Table, mark: str) -> detmap.Result:
    import ray

    def match(part: pa.Table) -> dict[str, list[bytes]]:
        die_once(mark)
        return {"part": [detmap.distributed.match_shard(part, CLASSES)]}

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    data = ray.data.from_arrow(table).repartition(8)
    found = data.map_batches(match, batch_format="pyarrow", batch_size=None).take_all()
    ray.shutdown()
    return detmap.distributed.reduce(row["part"] for row in found)


def with_spark(table: pa.Table, mark: str) -> detmap.Result:
    from pyspark.sql import SparkSession

    def match(batches: Any) -> Any:
        die_once(mark)
        for batch in batches:
            part = detmap.distributed.match_shard(batch, CLASSES)
            yield pa.RecordBatch.from_pydict({"part": [part]})

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = SparkSession.builder.master("local[2, 4]").getOrCreate()  # 4: tries of a task
    data = spark.createDataFrame(table).repartition(8)
    found = data.mapInArrow(match, "part binary").collect()
    spark.stop()
    return detmap.distributed.reduce(bytes(row.part) for row in found)


def with_dask(table: pa.Table, mark: str) -> detmap.Result:
    from distributed import Client, LocalCluster

    def match(part: pa.Table) -> bytes:
        die_once(mark)
        return detmap.distributed.match_shard(part, CLASSES)

    parts = [table.slice(i, 25) for i in range(0, len(table), 25)]
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        return detmap.distributed.reduce(client.gather(client.map(match, parts, pure=False)))


ENGINES: dict[str, Callable[[pa.Table, str], detmap.Result]] = {
    "ray": with_ray,
    "spark": with_spark,
    "dask": with_dask,
}


def check(engine: str) -> str:
    """Runs an engine; raises `AssertionError` unless the result is that of one process."""
    table = images()
    whole = detmap.distributed.reduce([detmap.distributed.match_shard(table, CLASSES)])
    with tempfile.TemporaryDirectory() as folder:
        mark = Path(folder) / "killed"
        result = ENGINES[engine](table, str(mark))
        assert mark.exists(), "no worker was killed"
    assert result.to_dict() == whole.to_dict()
    assert result.signature == whole.signature
    return f"{engine}: AP {result.metrics['AP']:.4f}, equal after a killed worker"


if __name__ == "__main__":
    for name in sys.argv[1:]:
        print(check(name))
