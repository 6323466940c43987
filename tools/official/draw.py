"""Draws data sets of a benchmark's size, in its own files, for `measure.py`.

python tools/official/draw.py FOLDER [NAME ...]
"""

import json
import sys
import tomllib
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import draw_lines
import numpy as np
from boxes import Random, Row, anywhere, classes_near, near

from detmap.core.overlaps.keypoints import PARTS


def coco(
    folder: Path,
    counts: tuple[int, int, int, int],
    sides: tuple[float, float, float],
    noise: float,
    more: Callable[[Random, list[float]], Row] = lambda rng, box: {},
    image: Callable[[Random, set[int]], Row] = lambda rng, classes: {},
    names: Sequence[str] = (),
) -> None:
    """Writes COCO files; counts are those of images, objects and detections each, and classes."""
    rng = np.random.default_rng(0)
    n_images, n_objects, n_found, n_classes = counts
    images: list[Row] = []
    objects: list[Row] = []
    found: list[Row] = []
    for i in range(1, n_images + 1):
        labels = rng.integers(1, n_classes + 1, 4)[rng.integers(0, 4, n_objects)]
        boxes = anywhere(rng, n_objects, *sides)
        size = {"id": i, "width": sides[0], "height": sides[0], "file_name": f"{i}.jpg"}
        images.append({**size, **image(rng, set(labels.tolist()))})
        for label, box in zip(labels.tolist(), boxes.tolist(), strict=True):
            row = {"id": len(objects) + 1, "image_id": i, "category_id": label, "iscrowd": 0}
            objects.append({**row, "bbox": box, "area": box[2] * box[3], **more(rng, box)})
        source, moved = near(rng, boxes, n_found, noise, sides)
        labels = classes_near(rng, labels, source, n_classes)
        scores = rng.random(n_found).round(6)
        columns = labels.tolist(), moved.tolist(), scores.tolist()
        for label, box, score in zip(*columns, strict=True):
            found.append({"image_id": i, "category_id": label, "bbox": box, "score": score})
    called = names or [f"c{k}" for k in range(1, n_classes + 1)]
    classes = [{"id": k, "name": n, "frequency": "rcf"[k % 3]} for k, n in enumerate(called, 1)]
    save(folder, images, objects, classes, found)


def save(folder: Path, images: Any, objects: Any, classes: Any, found: Any) -> None:
    """Writes ``truth.json`` and ``dets.json``."""
    folder.mkdir(parents=True, exist_ok=True)
    truth = {"images": images, "annotations": objects, "categories": classes}
    (folder / "truth.json").write_text(json.dumps(truth))
    (folder / "dets.json").write_text(json.dumps(found))


def listed(rng: Random, classes: set[int]) -> Row:
    """LVIS' lists of an image: classes that are absent, and one that is not annotated in full."""
    absent = [k for k in rng.integers(1, 1204, 10).tolist() if k not in classes]
    partly = rng.choice(sorted(classes), 1).tolist()
    return {"neg_category_ids": absent, "not_exhaustive_category_ids": partly}


def visible(rng: Random, box: list[float]) -> Row:
    """CityPersons' columns of an object."""
    seen = round(float(rng.random()), 2)
    return {"height": box[3], "vis_ratio": seen, "ignore": int(rng.random() < 0.15)}


def phrase(rng: Random, classes: set[int]) -> Row:
    return {"text_input": "a car", "is_instance_exhaustive": 1}


def crowdhuman(folder: Path) -> None:
    """Writes ``annotation.odgt`` and ``results.odgt``: 1,000 images, 100 detections each."""
    rng, sides = np.random.default_rng(0), (1000, 20, 200)
    folder.mkdir(parents=True, exist_ok=True)
    truth, results = [], []
    for i in range(1000):
        boxes = anywhere(rng, 23, *sides)
        ignored = (rng.random(23) < 0.1).tolist()
        _, moved = near(rng, boxes, 100, 6, sides)
        rows = zip(boxes.tolist(), ignored, strict=True)
        people = [
            {"tag": "person", "fbox": b, "hbox": b, "vbox": b, "head_attr": {},
             "extra": {"ignore": int(off)}}
            for b, off in rows
        ]  # fmt: skip
        scores = rng.random(100).round(6).tolist()
        found = zip(moved.tolist(), scores, strict=True)
        beside = [
            {"box": one["fbox"], "tag": -1 if one["extra"]["ignore"] else 1} for one in people
        ]
        truth.append({"ID": f"{i}", "gtboxes": people})
        dets = [{"box": box, "score": score, "tag": 1} for box, score in found]
        size = {"width": 1000, "height": 1000}
        results.append({"ID": f"{i}", **size, "dtboxes": dets, "gtboxes": beside})
    for name, rows in (("annotation", truth), ("results", results)):
        lines = [json.dumps(row) for row in rows]
        (folder / f"{name}.odgt").write_text("\n".join([*lines, ""]))


def crowdpose(folder: Path) -> None:
    """Writes COCO files of 14 keypoints: 2,000 images of 5 people and 10 detections."""
    rng = np.random.default_rng(0)
    images: list[Row] = []
    objects: list[Row] = []
    found: list[Row] = []
    for i in range(1, 2001):
        index = round(float(rng.random()), 3)
        images.append({"id": i, "width": 1000, "height": 1000, "crowdIndex": index})
        boxes = anywhere(rng, 5, 1000, 60, 300)
        points = boxes[:, None, :2] + rng.random((5, 14, 2)) * boxes[:, None, 2:]
        for box, own, seen in zip(boxes, points, rng.integers(0, 3, (5, 14)), strict=True):
            flat = np.column_stack([own * (seen > 0)[:, None], seen]).round(1).ravel().tolist()
            row = {"id": len(objects) + 1, "image_id": i, "category_id": 1, "iscrowd": 0}
            count = int((seen > 0).sum())
            more = {"bbox": box.tolist(), "num_keypoints": count, "keypoints": flat}
            objects.append({**row, **more})
        for _ in range(10):
            own = points[rng.integers(0, 5)] + rng.normal(0, 8, (14, 2))
            flat = np.column_stack([own, np.ones(14)]).round(1).ravel().tolist()
            row = {"image_id": i, "category_id": 1, "score": round(float(rng.random()), 6)}
            found.append({**row, "keypoints": flat})
    people = {"id": 1, "name": "person", "keypoints": list("abcdefghijklmn"), "skeleton": []}
    save(folder, images, objects, [people], found)


def wholebody(folder: Path) -> None:
    """Writes COCO files of 133 keypoints: 1,000 images of 3 people and 8 detections."""
    rng = np.random.default_rng(0)
    images = [{"id": i, "width": 1000, "height": 1000} for i in range(1, 1001)]
    objects: list[Row] = []
    found: list[Row] = []
    for image in images:
        boxes = anywhere(rng, 3, 1000, 60, 300)
        points = boxes[:, None, :2] + rng.random((3, 133, 2)) * boxes[:, None, 2:]
        row = {"image_id": image["id"], "category_id": 1}
        for box, own, seen in zip(
            boxes.tolist(), points, rng.integers(0, 3, (3, 133)), strict=True
        ):
            flat = np.column_stack([own * (seen > 0)[:, None], seen])
            more = {"bbox": box, "area": box[2] * box[3] * 0.5, "iscrowd": 0}
            objects.append({"id": len(objects) + 1, **row, **more, **parts(flat)})
        for source in rng.integers(0, 3, 8):
            own = points[source] + rng.normal(0, 4, (133, 2))
            scores = {name: round(float(rng.random()), 6) for name in SCORES}
            found.append({**row, **scores, **parts(np.column_stack([own, np.ones(133)]))})
    save(folder, images, objects, [{"id": 1, "name": "person"}], found)


def parts(points: Any) -> Row:
    """(133, 3) points as the fields of COCO-WholeBody."""
    split = np.split(points.round(1), np.cumsum([part.n for part in PARTS])[:-1])
    return {part.field: own.ravel().tolist() for part, own in zip(PARTS, split, strict=True)}


def open_vocabulary(folder: Path) -> None:
    """Writes COCO files of the 65 classes of OV-COCO."""
    rules = Path(__file__).resolve().parents[2] / "configs" / "ov-coco.toml"
    groups = tomllib.loads(rules.read_text())["groups"]
    names = [*groups["base"], *groups["novel"]]
    coco(folder, counts=(2000, 7, 100, 65), sides=(640, 8, 200), noise=5, names=names)


SCORES = (*(part.score for part in PARTS), "wholebody_score")
SMALL = (800, 4, 40)
DRAWN: dict[str, Callable[[Path], None]] = {
    "lvis": partial(coco, counts=(400, 12, 300, 1203), sides=(640, 8, 200), noise=5, image=listed),
    "citypersons": partial(
        coco, counts=(500, 8, 100, 1), sides=(1000, 20, 200), noise=6, more=visible
    ),
    "aitod": partial(coco, counts=(1000, 40, 200, 8), sides=SMALL, noise=2),
    "cgf1": partial(coco, counts=(5000, 3, 6, 1), sides=(640, 8, 200), noise=5, image=phrase),
    "crowdhuman": crowdhuman,
    "crowdpose": crowdpose,
    "wholebody": wholebody,
    "ov-coco": open_vocabulary,
    "deeplesion": partial(coco, counts=(4817, 1, 20, 1), sides=(512, 10, 80), noise=4),
    **draw_lines.DRAWN,
}


if __name__ == "__main__":
    for name in sys.argv[2:] or DRAWN:
        DRAWN[name](Path(sys.argv[1]) / name)
