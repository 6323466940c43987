"""Write made-up detections that do not fit into memory, shard by shard, for docs/scale.md.

    python tools/scale_workload.py FOLDER --detections 100000000     # and 600,000 images
    python tools/scale_workload.py FOLDER --detections 10000000 --json

The images are those of `tools/workloads.py` (W2, like Objects365: 365 classes), with 15 objects and
167 detections each. Writes `instances.json` (boxes only), `detections/` with one Parquet file per
10,000 images, and with `--json` `results.json` with the same rows.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))
import workloads

PER_IMAGE = (15, 167)  # objects and detections
SHARD = 10_000  # images


def write(folder: Path, n_detections: int, *, with_json: bool) -> None:
    """Writes all files."""
    import pyarrow
    from pyarrow import parquet

    n_images = max(round(n_detections / PER_IMAGE[1]), 1)
    n_images = round(n_images, -4) or n_images  # 100 million on 600,000
    shards = -(-n_images // SHARD)
    (folder / "detections").mkdir(parents=True, exist_ok=True)
    with (
        (folder / "instances.json").open("w", encoding="ascii") as truth,
        (folder / "results.json" if with_json else Path("/dev/null")).open("w") as results,
    ):
        truth.write('{"annotations": [')
        images: list[str] = []
        n_objects = 0
        for shard in range(shards):
            some = n_images * (shard + 1) // shards - n_images * shard // shards
            found = n_detections * (shard + 1) // shards - n_detections * shard // shards
            load = replace(
                workloads.WORKLOADS["W2"],
                images=some,
                objects=PER_IMAGE[0] * some,
                detections=found,
            )
            rng = np.random.default_rng([load.seed, shard])
            objects = workloads.draw_objects(rng, load)
            objects = replace(objects, image_ids=objects.image_ids + shard * 120 * SHARD)
            boxes = workloads.detect(rng, objects, load)
            names = ("x", "y", "w", "h")
            columns = dict(zip(names, boxes.boxes.T, strict=True))
            table = {"image_id": boxes.image_id, "category_id": boxes.category_id, **columns}
            parquet.write_table(
                pyarrow.table({**table, "score": boxes.score}),
                folder / "detections" / f"part-{shard:04d}.parquet",
            )
            truth.write(", " * bool(shard) + ", ".join(annotations(objects, n_objects)))
            n_objects += len(objects.label)
            sides = zip(objects.image_ids.tolist(), *objects.extent.T.tolist(), strict=True)
            images += [f'{{"id": {i}, "width": {w}, "height": {h}}}' for i, w, h in sides]
            if with_json:
                text = "".join(workloads.results(boxes))[1:-1]
                results.write((", " if shard else "[") + text)
            print(f"{shard + 1} of {shards} shards", file=sys.stderr)
        results.write("]")
        classes = [{"id": i, "name": f"class {i}"} for i in objects.category_ids.tolist()]
        truth.write('], "images": [' + ", ".join(images) + '], "categories": ')
        truth.write(json.dumps(classes) + "}")
    print(f"{folder}: {n_images} images, {n_objects} objects, {n_detections} detections")


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
