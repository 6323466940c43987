"""Drawn COCO data as some tool would write it: what its plain form has, or an error, never another
row.
"""

import gzip
import json
import random
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import detmap
from detmap.core.adapters.coco import scan_json as coco_scan
from detmap.core.base import immutable
from detmap.errors import DataError
from tests.support.drawing import draw_coco

SUFFIXES = (".jpg", ".png", "")
FOLDERS = ("", "a/", "b/c/")


def case(seed: int) -> str | None:
    """What differs between one drawn data set and the same in a tool's form."""
    rng = random.Random(seed)
    coco_scan.LEAST_SIZE = rng.choice([0, 1 << 20])
    immutable.LARGE_PAGE = (2 << 20, 4096)[seed % 2]
    instances, results = draw_coco(np.random.default_rng(seed))
    classes = {each["id"] for each in instances["categories"]}
    rows = [dict(row) for row in results if row["category_id"] in classes]
    names = {}
    for i, image in enumerate(instances["images"]):
        stem = rng.choice([f"img_{i}", f"{i:06}", "same"])
        names[image["id"]] = image["file_name"] = rng.choice(FOLDERS) + stem + rng.choice(SUFFIXES)
    for each in instances["categories"]:
        each["name"] = f"class {each['id']}"
    with tempfile.TemporaryDirectory() as place:
        truth_file, plain, other = (Path(place, name) for name in ("gt.json", "dt.json", "o.json"))
        truth_file.write_text(json.dumps(instances))
        plain.write_text(json.dumps(rows))
        truth = detmap.read_truth(truth_file)
        other.write_text(_changed(rng, rows, names, instances))
        if rng.random() < 0.3:
            packed = other.with_suffix(".json.gz")
            packed.write_bytes(gzip.compress(other.read_bytes(), 1))
            other = packed
        expected = detmap.read_detections(plain, truth)
        try:
            found = detmap.read_detections(other, truth)
        except DataError:
            return None
    for name in ("image", "label", "boxes", "score"):
        if not np.array_equal(getattr(found, name), getattr(expected, name)):
            return f"{name} differs"
    return None


def _changed(
    rng: random.Random, rows: list[dict[str, Any]], names: dict[Any, str], instances: dict[str, Any]
) -> str:
    """The rows with other names of images and classes, in another wrapper."""
    how = rng.randrange(6)
    changed: list[dict[str, Any]] = []
    for row in rows:
        new, name = dict(row), names[row["image_id"]]
        if how == 1:
            new["image_id"] = name
        elif how == 2:
            new["image_id"] = name.rpartition("/")[2].partition(".")[0]
        elif how == 3:
            new["file_name"] = name
            del new["image_id"]
        elif how == 4:
            new["file_name"] = rng.choice([name, f"/root/{name}"])
            new["image_id"] = rng.randrange(9)
        elif how == 5:
            new["image_id"] = str(row["image_id"])
        if how == 2:
            new["category_id"] = f"class {row['category_id']}"
        changed.append(new)
    wrapper = rng.randrange(5)
    if wrapper == 0:
        return "".join(f"{json.dumps(row)}\n" for row in changed)
    if wrapper == 1:
        return json.dumps({"predictions": changed})
    if wrapper == 2 and how == 0:
        return json.dumps({**instances, "annotations": changed})
    if wrapper == 3:
        return json.dumps({"annotations": changed})
    return json.dumps(changed)
