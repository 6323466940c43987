"""Measures the stages of an evaluation on a cluster, and plans one of a billion detections.

    python tools/hosting/scale.py FOLDER --docs docs/scale.md     # 500 MB of files, 20 minutes

The shards are like W2 of `tools/workloads.py` (Objects365), with 10,000 images of 15 objects and
167 detections each; one is drawn, the others have its boxes on images of their own, with other
scores. It runs `detmap match` of shards, `detmap merge`, the scores of the largest class, and
`detmap.distributed.evaluate` with two workers of one thread. The plan multiplies what it measured;
it does not run. --docs writes both tables between marks of a page.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from detmap.errors import counted

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import workloads

MARKS = "<!-- tools/hosting/scale.py: begin -->", "<!-- tools/hosting/scale.py: end -->"
MILLION, GB = 1e6, 1e9
PLANNED, WORKERS, LINK = 1e9, (8, 32, 128), 125e6  # detections, workers, bytes a second of each

Row = tuple[str, float, float, float, float]
"""A stage; million detections, processor seconds, peak bytes, bytes that it writes or sends."""


def command(*words: str) -> tuple[float, float]:
    """Runs a command of detmap; returns processor seconds and peak bytes."""
    process = subprocess.Popen([sys.executable, "-m", "detmap", *words], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"detmap {' '.join(words)} failed")
    return used.ru_utime + used.ru_stime, used.ru_maxrss * 1024.0


def shards(folder: Path, n: int, images: int) -> list[tuple[str, str]]:
    """Writes the ground truth and the detections of n shards; returns their paths."""
    import pyarrow
    from pyarrow import parquet

    load = replace(workloads.WORKLOADS["W2"], images=images)
    load = replace(load, objects=15 * images, detections=167 * images)
    rng, pairs = np.random.default_rng(load.seed), []
    objects = workloads.draw_objects(rng, load)
    boxes = workloads.detect(rng, objects, load)
    image, label = objects.image_ids[objects.image], objects.category_ids[objects.label]
    classes = [{"id": i, "name": f"class {i}"} for i in objects.category_ids.tolist()]
    for shard in range(n):
        shift = shard * 120 * images
        annotations = [
            {"id": i, "image_id": im, "category_id": k, "bbox": box, "area": box[2] * box[3]}
            | {"iscrowd": 0}
            for i, (im, k, box) in enumerate(
                zip((image + shift).tolist(), label.tolist(), objects.boxes.tolist(), strict=True)
            )
        ]
        each = [{"id": i} for i in (objects.image_ids + shift).tolist()]
        tree = {"images": each, "annotations": annotations, "categories": classes}
        score = boxes.score + 0.02 * rng.standard_normal(len(boxes.score)) * (shard > 0)
        columns = {"image_id": boxes.image_id + shift, "category_id": boxes.category_id}
        columns |= dict(zip("xywh", boxes.boxes.T, strict=True))
        columns["score"] = np.round(np.clip(score, 0.00001, 0.99999), 5)
        pair = folder / f"truth-{shard}.json", folder / f"detections-{shard}.parquet"
        pair[0].write_text(json.dumps(tree))
        parquet.write_table(pyarrow.table(columns), pair[1])
        pairs.append((str(pair[0]), str(pair[1])))
    return pairs


def match_and_merge(pairs: Sequence[tuple[str, str]], place: Path) -> tuple[list[Row], list[Path]]:
    """Each shard by `detmap match`, some and all of them by `detmap merge`."""
    parts, used = [], []
    for i, (truth, found) in enumerate(pairs):
        parts.append(place / f"part-{i}.npz")
        used.append(command("match", truth, found, "-p", "coco-bbox", "-o", str(parts[-1])))
    million = n_rows(pairs) / MILLION
    size = float(sum(each.stat().st_size for each in parts))
    seconds, peak = sum(s for s, _ in used), max(p for _, p in used)
    rows: list[Row] = [(f"match, {counted(len(pairs), 'shard')}", million, seconds, peak, size)]
    for n in (len(pairs) // 4, len(pairs)):
        seconds, peak = command("merge", *map(str, parts[:n]))
        rows.append((f"merge, {counted(n, 'part')}", million * n / len(pairs), seconds, peak, 0.0))
    return rows, parts


def n_rows(pairs: Sequence[tuple[str, str]]) -> int:
    from pyarrow import parquet

    return sum(parquet.read_metadata(found).num_rows for _, found in pairs)


def largest_class(parts: Sequence[Path]) -> Row:
    """Scores of the class with most match rows, as one task of the cluster computes them."""
    from detmap import Matches
    from detmap.integrations.distributed import _score

    begin = peak_now(reset=True)
    pieces = []
    for each in parts:
        part = Matches.load(each)
        k = int(np.argmax(np.diff(part.off)))
        pieces.append(part.select_classes(np.array([k])))
    start, million = time.process_time(), sum(map(len, pieces)) / MILLION
    _score(pieces, group=(0, 1))
    return "largest class", million, time.process_time() - start, peak_now() - begin, 0.0


def sent(part: Path, shard: tuple[str, str]) -> list[Row]:
    """The bytes that a worker sends of one shard: match rows by class to other workers, and what
    belongs to images to the driver.
    """
    import pickle

    from detmap import Matches
    from detmap.integrations.distributed import _deal, _head

    million, rows = n_rows([shard]) / MILLION, []
    matches = Matches.load(part)
    for name, make in (
        ("rows by class", lambda: _deal(matches, 0, offsets=[0], n_groups=2 * WORKERS[0])),
        ("images", lambda: [_head(matches)]),
    ):
        start = time.process_time()
        size = float(sum(len(pickle.dumps(each)) for each in make()))
        rows.append((f"{name}, 1 shard", million, time.process_time() - start, 0.0, size))
    return rows


def peak_now(*, reset: bool = False) -> float:
    """Bytes of this process at its highest (Linux), since the last reset."""
    if reset:
        Path("/proc/self/clear_refs").write_text("5")
    status = Path("/proc/self/status").read_text()
    return float(re.findall(r"VmHWM:\s+(\d+)", status)[0]) * 1024


def on_dask(pairs: Sequence[tuple[str, str]]) -> Row:
    """`detmap.distributed.evaluate` on two workers."""
    from distributed import Client, LocalCluster

    import detmap

    def used() -> tuple[float, float]:
        peak = float(re.findall(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[0])
        return time.process_time(), peak * 1024

    options: dict[str, Any] = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        before = client.run(used).values()
        detmap.distributed.evaluate(pairs, "coco-bbox", client, rows=False)
        after = client.run(used).values()
    seconds = sum(a[0] for a in after) - sum(a[0] for a in before)
    million = n_rows(pairs) / MILLION
    return f"Dask, {counted(len(pairs), 'shard')}", million, seconds, max(a[1] for a in after), 0.0


def measured(rows: Sequence[Row]) -> str:
    lines = [
        "| stage | million detections | processor time per million | peak memory | bytes per "
        "detection, written or sent |",
        "|---|---:|---:|---:|---:|",
    ]
    for name, million, seconds, peak, size in rows:
        moved = f"{size / million / MILLION:.1f}" if size else ""
        rate, memory = seconds / million, f"{peak / MILLION:,.0f} MB" if peak else ""
        lines.append(f"| {name} | {million:.2f} | {rate:.2f} s | {memory} | {moved} |")
    return "\n".join(lines)


def plan(rows: Sequence[Row]) -> str:
    """The table of a billion detections, from what was measured."""
    named = {name.partition(",")[0]: row for name, *row in rows}
    scale = PLANNED / MILLION
    million, seconds, _, size = named["match"]
    matching = seconds / million * scale
    of_largest, largest_seconds, largest_peak, _ = named["largest class"]
    share = of_largest / million
    ranking = largest_seconds / of_largest * scale
    moved = named["rows by class"][3] / named["rows by class"][0] * scale
    few, many = (row for row in rows if row[0].startswith("Dask"))
    held = (many[3] - few[3]) / ((many[1] - few[1]) / 2)  # bytes per million of a worker
    lines = [
        "| workers | match | move | largest class | other classes | in all | memory of a worker |",
        "|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for n in WORKERS:
        move = max(moved / n, moved * share) / LINK
        others = ranking * (1 - share) / (n - 1)
        times = (matching / n, move, ranking * share, others)
        total = times[0] + times[1] + max(times[2:])
        memory = (few[3] + held * (scale / n - few[1] / 2)) / GB
        cells = [f"{each / 60:.1f} min" for each in (*times, total)]
        lines.append(f"| {n} | " + " | ".join([*cells, f"{memory:.1f} GB"]) + " |")
    driver = named["images"][3] / named["images"][0] * scale
    merged = named["merge"][2] / named["merge"][0] * scale  # of all parts, the last of its rows
    largest = largest_peak / of_largest * scale * share / GB
    facts = [
        f"- the worker of the largest class, which has {100 * share:.0f} % of the rows, takes "
        f"{largest:.0f} GB more; the driver {driver / GB:.1f} GB",
        f"- network: {moved / GB:.0f} GB in all, {moved * share / GB:.1f} GB to that worker, at "
        f"{LINK / MILLION:.0f} MB/s for each worker",
        f"- without a framework: {size / million * scale / GB:.0f} GB of parts on disk; `detmap "
        f"merge` would take {merged / GB:.0f} GB on one machine",
    ]
    return "\n".join([*lines, "", *facts])


def read(block: str) -> list[Row]:
    """The measured rows of a page's block."""
    found = re.findall(r"^\| (\D.*?) \| ([\d.]+) \| ([\d.]+) s \| (.*?) \| (.*?) ?\|$", block, re.M)
    rows: list[Row] = []
    for name, million, rate, peak, size in found:
        number = float(million)
        memory = float(peak.removesuffix(" MB").replace(",", "") or 0) * MILLION
        moved = float(size.strip() or 0) * number * MILLION
        rows.append((name, number, float(rate) * number, memory, moved))
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--shards", type=int, default=12, help="default: 12, 20 million detections")
    parser.add_argument("--images", type=int, default=10_000, help="per shard (default: 10,000)")
    parser.add_argument("--docs", type=Path, help="Write the tables to this page.")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    pairs = shards(given.folder, given.shards, given.images)
    with tempfile.TemporaryDirectory(dir=given.folder) as place:
        rows, parts = match_and_merge(pairs, Path(place))
        rows += [largest_class(parts), *sent(parts[0], pairs[0])]
    rows += [on_dask(pairs[: len(pairs) // 4]), on_dask(pairs)]
    text = f"{measured(rows)}\n\n{plan(rows)}"
    print(text)
    if given.docs is not None:
        before, _, after = re.split("|".join(map(re.escape, MARKS)), given.docs.read_text())
        given.docs.write_text(f"{before}{MARKS[0]}\n{text}\n{MARKS[1]}{after}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
