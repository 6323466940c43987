"""What the command of BDD100K does before pycocotools: new class names, then COCO's records.

Written from the rules of bdd100k label/to_scalabel.py with configs/det.toml, and of scalabel
eval/detect.py, eval/utils.py (reorder_preds) and label/to_coco.py.
"""

import random
from typing import Any

NAMES = (
    *("pedestrian", "rider", "car", "truck", "bus", "train", "motorcycle", "bicycle"),
    *("traffic light", "traffic sign"),
)
NAME_MAPPING = {
    "bike": "bicycle",
    "caravan": "car",
    "motor": "motorcycle",
    "person": "pedestrian",
    "van": "car",
}
IGNORED_MAPPING = {"other person": "pedestrian", "other vehicle": "car", "trailer": "truck"}

Record = dict[str, Any]


def converted(truth: list[Record], results: list[Record]) -> tuple[Record, list[Record]]:
    """Returns COCO ground truth and results of lists of frames."""
    frames = sorted(truth, key=lambda frame: str(frame["name"]))
    by_name = {frame["name"]: frame for frame in results}
    objects: list[Record] = []
    detections: list[Record] = []
    for image_id, frame in enumerate(frames, start=1):
        objects += _annotations(frame, image_id, len(objects))
        found = by_name.get(frame["name"], {"labels": []})
        detections += _annotations(found, image_id, len(detections))
    coco = {
        "images": [
            {"id": i, "file_name": frame["name"], "width": 1280, "height": 720}
            for i, frame in enumerate(frames, start=1)
        ],
        "annotations": objects,
        "categories": [{"id": i, "name": name} for i, name in enumerate(NAMES, start=1)],
    }
    keys = ("image_id", "category_id", "bbox", "score")
    return coco, [{key: each[key] for key in keys} for each in detections]


def _annotations(frame: Record, image_id: int, before: int) -> list[Record]:
    found: list[Record] = []
    for label in frame.get("labels") or []:
        attributes = label.get("attributes") or {}
        name = NAME_MAPPING.get(label["category"], label["category"])
        ignored = bool(attributes.get("ignored")) or name in IGNORED_MAPPING
        name = IGNORED_MAPPING.get(name, name)
        box = label.get("box2d")
        if box is None:
            continue
        width, height = box["x2"] - box["x1"] + 1, box["y2"] - box["y1"] + 1
        found.append(
            {
                "id": before + len(found) + 1,
                "image_id": image_id,
                "category_id": NAMES.index(name) + 1,
                "bbox": [box["x1"], box["y1"], width, height],
                "area": width * height,
                "iscrowd": int(ignored or bool(attributes.get("crowd"))),
                "score": label.get("score"),
            }
        )
    return found


def drawn_frames(seed: int, n_frames: int = 30) -> tuple[list[Record], list[Record]]:
    """Returns frames and results with names of 2018 and 2020, ignored classes, crowds, labels
    without a box, and frames without results.
    """
    draw = random.Random(seed)
    names = [*NAMES, *NAME_MAPPING, *IGNORED_MAPPING]
    truth, results = [], []
    for i in range(n_frames):
        objects, found = [], []
        for _ in range(draw.randint(0, 9)):
            name, box = draw.choice(names), _box(draw)
            attributes = {key: draw.random() < 0.2 for key in ("occluded", "truncated")}
            attributes |= {"crowd": draw.random() < 0.15, "ignored": draw.random() < 0.05}
            label = {"id": str(len(objects)), "category": name, "attributes": attributes}
            objects.append(label if draw.random() < 0.03 else label | {"box2d": box})
            for _ in range(draw.choice((0, 1, 1, 2))):
                other = draw.choice(names) if draw.random() < 0.2 else name
                moved = {key: value + draw.randint(-6, 6) for key, value in box.items()}
                score = round(draw.random(), 2)
                found.append({"category": other, "score": score, "box2d": moved})
        for _ in range(draw.randint(0, 3)):
            score = round(draw.random() / 2, 2)
            found.append({"category": draw.choice(names), "score": score, "box2d": _box(draw)})
        truth.append({"name": f"{i:02d}-{seed}.jpg", "labels": objects})
        if draw.random() < 0.95:
            labels = [{"id": str(k), **each} for k, each in enumerate(found)]
            results.append({"name": f"{i:02d}-{seed}.jpg", "labels": labels})
    return truth, results[::-1]


def _box(draw: random.Random) -> dict[str, float]:
    x, y = draw.randint(6, 900), draw.randint(6, 500)
    width, height = (draw.choice((14, 31, 40, 95, 130, 200)) for _ in range(2))
    return {"x1": x + 0.5, "y1": y, "x2": x + width, "y2": y + height + 0.25}
