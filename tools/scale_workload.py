"""Write made-up detections that do not fit into memory, shard by shard, for docs/scale.md.

    python tools/scale_workload.py FOLDER --detections 100000000     # and 600,000 images
    python tools/scale_workload.py FOLDER --detections 10000000 --json

The images are those of `tools/workloads.py` (W2, like Objects365: 365 classes), with 15 objects and
167 detections each. One shard of 10,000 images is drawn; the others have its boxes on images of
their own, with other scores. Writes `instances.json` (boxes only), `detections/` with one Parquet
file per shard, and with `--json` `results.json` with the same rows.
"""

import argparse
import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))
import workloads

PER_IMAGE = (15, 167)  # objects and detections
SHARD = 10_000  # images


def write(folder: Path, n_detections: int, *, with_json: bool) -> None:
    """Writes all files, a shard at a time."""
    n_shards = max(round(n_detections / (PER_IMAGE[1] * SHARD)), 1)
    n_images = min(SHARD, -(-n_detections // PER_IMAGE[1]))
    load = replace(
        workloads.WORKLOADS["W2"],
        images=n_images,
        objects=PER_IMAGE[0] * n_images,
        detections=n_detections // n_shards,
    )
    rng = np.random.default_rng(load.seed)
    objects = workloads.draw_objects(rng, load)
    boxes = workloads.detect(rng, objects, load)
    (folder / "detections").mkdir(parents=True, exist_ok=True)
    results = folder / "results.json" if with_json else Path(os.devnull)
    images: list[str] = []
    with (folder / "instances.json").open("w") as truth, results.open("w") as found:
        truth.write('{"annotations": [')
        for shard in range(n_shards):
            shift = shard * 120 * SHARD
            score = boxes.score + 0.02 * rng.standard_normal(len(boxes.score)) * (shard > 0)
            score = np.round(np.clip(score, 0.00001, 0.99999), 5)
            some = replace(boxes, image_id=boxes.image_id + shift, score=score)
            write_parquet(folder / "detections" / f"part-{shard:04d}.parquet", some)
            moved = replace(objects, image_ids=objects.image_ids + shift)
            first = shard * len(objects.label)
            truth.write(", " * bool(shard) + ", ".join(annotations(moved, first)))
            sides = zip(moved.image_ids.tolist(), *moved.extent.T.tolist(), strict=True)
            images += [f'{{"id": {i}, "width": {w}, "height": {h}}}' for i, w, h in sides]
            if with_json:
                found.write(("[", ", ")[shard > 0] + "".join(workloads.results(some))[1:-1])
            print(f"{shard + 1} of {n_shards} shards", file=sys.stderr, flush=True)
        found.write("]")
        classes = [{"id": i, "name": f"class {i}"} for i in objects.category_ids.tolist()]
        truth.write('], "images": [' + ", ".join(images) + '], "categories": ')
        truth.write(json.dumps(classes) + "}")
    n_found = n_shards * len(boxes.score)
    n_objects = n_shards * len(objects.label)
    print(f"{folder}: {n_shards * n_images} images, {n_objects} objects, {n_found} detections")


def write_parquet(path: Path, boxes: workloads.Boxes) -> None:
    """Writes detections."""
    import pyarrow
    from pyarrow import parquet

    columns = {"image_id": boxes.image_id, "category_id": boxes.category_id}
    columns |= dict(zip("xywh", boxes.boxes.T, strict=True))
    parquet.write_table(pyarrow.table({**columns, "score": boxes.score}), path)


def annotations(objects: workloads.Objects, first: int) -> list[str]:
    """The records of objects, with ids from `first` on."""
    image, label = objects.image_ids[objects.image], objects.category_ids[objects.label]
    rows = zip(image.tolist(), label.tolist(), objects.boxes.tolist(), strict=True)
    return [
        f'{{"id": {first + i + 1}, "image_id": {im}, "category_id": {k}, "bbox": {box}, '
        f'"area": {box[2] * box[3]}, "iscrowd": 0}}'
        for i, (im, k, box) in enumerate(rows)
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--detections", type=int, default=10_000_000, metavar="N")
    parser.add_argument("--json", action="store_true", help="also results.json")
    given = parser.parse_args()
    write(given.folder, given.detections, with_json=given.json)
