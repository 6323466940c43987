"""Data sets for the battery of the doctor: COCO files as Python objects, right ones.

Generated sets of boxes, masks and keypoints; real detections (VOC 2007, the bundled sample, COCO
val2014-100); and sets that look odd but are right.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

import detmap
from detmap.annotation_tools.conversion import writers
from detmap.core.base.resources import folder

NAMES = ("kettle", "lamp", "mug", "stop sign", "person", "bag", "Chair", "fork", "plate", "vase")
SIZES = np.array([[640, 480], [480, 640], [500, 375], [375, 500], [800, 600]])
POINTS = 17
PROTOCOLS = {"boxes": "coco-bbox", "masks": "coco-segm", "keypoints": "coco-keypoints"}


class Set(NamedTuple):
    """A ground truth and results as COCO JSON has them, and the kind of shapes."""

    truth: dict[str, Any]
    rows: list[dict[str, Any]]
    shape: str = "boxes"

    def copy(self) -> Set:
        """A copy that may be changed."""
        return Set(*msgspec.json.decode(msgspec.json.encode((self.truth, self.rows))), self.shape)


def outline(box: Any) -> list[list[float]]:
    """A polygon in a box: an octagon, higher at the left, so that no turn gives it again."""
    x, y, w, h = box
    at = ((0.3, 0), (0.7, 0.1), (1, 0.4), (1, 0.8), (0.6, 1), (0.25, 0.9), (0, 0.6), (0, 0.25))
    return [[round(float(v), 2) for u, v0 in at for v in (x + u * w, y + v0 * h)]]


def pose(box: Any, rng: np.random.Generator, at: np.ndarray | None = None) -> list[float]:
    """Keypoints in a box, labeled; `at` are those of an object that are found a little beside."""
    x, y, w, h = box
    if at is None:
        points = rng.random((POINTS, 2)) * [w, h] + [x, y]
    else:
        points = at + rng.normal(0, 0.03, at.shape) * np.sqrt(w * h)
    return [round(float(v), 2) for px, py in points for v in (px, py, 2)]


class Look(NamedTuple):
    """How a generated set looks.

    Parameters
    ----------
    n_images, n_classes, per_image : numbers of images, of classes, and of objects per image
    recall, noise, confusion : of the detector: share of objects, share of a side, share of labels
    false : mean number of false positives per image
    still : images of few scenes, as frames of a video
    """

    n_images: int = 80
    n_classes: int = 5
    per_image: float = 3.0
    recall: float = 0.85
    noise: float = 0.05
    confusion: float = 0.04
    false: float = 2.0
    still: bool = False


def look(seed: int) -> Look:
    """A look of a working detector by chance."""
    rng = np.random.default_rng(seed)
    return Look(
        int(rng.integers(40, 160)),
        int(rng.integers(3, len(NAMES) + 1)),
        float(rng.uniform(1.5, 5)),
        float(rng.uniform(0.6, 0.95)),
        float(rng.uniform(0.02, 0.07)),
        float(rng.uniform(0, 0.1)),
        float(rng.lognormal(0.7, 0.6)),
    )


def generated(seed: int, shape: str = "boxes", how: Look | None = None) -> Set:
    """A set and the results of a detector on it."""
    rng, how = np.random.default_rng(seed + 1000), look(seed) if how is None else how
    n, k = how.n_images, 1 if shape == "keypoints" else how.n_classes
    # One gap in the ids of images and of classes: what a detector must not number through.
    image_ids = np.cumsum(rng.integers(1, 4, n)) + 10
    class_ids = np.arange(1, k + 1) + (np.arange(k) >= k // 2) * (k > 2)
    names = ["puppet"] if shape == "keypoints" else list(NAMES[:k])
    scenes = max(1, n // 20) if how.still else n
    looks = [_scene(rng, how, k) for _ in range(scenes)]
    truth: dict[str, Any] = {"images": [], "annotations": [], "categories": []}
    rows: list[dict[str, Any]] = []
    numbers = 3000 + rng.permutation(2 * n)[:n]
    for i in range(n):
        size, boxes, labels = looks[i * scenes // n]
        if how.still:
            boxes = _kept(boxes + rng.normal(0, 2, boxes.shape), size)
        image = int(image_ids[i])
        truth["images"].append(
            {
                "id": image,
                "file_name": f"{numbers[i]:06d}.jpg",
                "width": int(size[0]),
                "height": int(size[1]),
            }
        )
        for box, label in zip(boxes, labels, strict=True):
            _object(truth, rows, rng, how, shape, image, box, int(class_ids[label]), class_ids)
        for _ in range(rng.poisson(how.false)):
            box = _some(rng, size, 1)[0]
            row = {"image_id": image, "category_id": int(rng.choice(class_ids))}
            _add(rows, row, box, rng.beta(1.5, 4), shape, rng, None)
    for number, name in zip(class_ids.tolist(), names, strict=True):
        category: dict[str, Any] = {"id": number, "name": name}
        if shape == "keypoints":
            category |= {"keypoints": [f"p{j}" for j in range(POINTS)], "skeleton": []}
        truth["categories"].append(category)
    order = rng.permutation(len(rows)) if seed % 2 else range(len(rows))
    return Set(truth, [rows[j] for j in order], shape)


def _scene(rng: np.random.Generator, how: Look, k: int) -> tuple[Any, Any, Any]:
    size = SIZES[rng.integers(len(SIZES))]
    count = 1 + rng.poisson(max(how.per_image - 1, 0))
    weight = 1 / np.arange(1, k + 1) ** 0.5
    return size, _some(rng, size, count), rng.choice(k, count, p=weight / weight.sum())


def _some(rng: np.random.Generator, size: Any, count: int) -> np.ndarray:
    sides = np.clip(0.2 * size.min() * rng.lognormal(0, 0.6, (count, 2)), 8, 0.8 * size)
    return np.round(np.hstack([rng.random((count, 2)) * (size - sides), sides]), 2)


def _kept(boxes: np.ndarray, size: Any) -> np.ndarray:
    corner = np.clip(boxes[:, :2], 0, size - 5)
    return np.round(np.hstack([corner, np.clip(boxes[:, 2:], 4, size - corner)]), 2)


def _object(
    truth: dict[str, Any],
    rows: list[dict[str, Any]],
    rng: np.random.Generator,
    how: Look,
    shape: str,
    image: int,
    box: np.ndarray,
    label: int,
    class_ids: np.ndarray,
) -> None:
    """Add an object, and a detection of it if it is found."""
    area = float(box[2] * box[3])
    record = {
        "id": len(truth["annotations"]) + 1,
        "image_id": image,
        "category_id": label,
        "bbox": box.tolist(),
        "area": round(area * (0.75 if shape == "masks" else 1), 2),
        "iscrowd": 0,
    }
    points = None
    if shape != "keypoints":
        record["segmentation"] = outline(box)
    else:
        record |= {"keypoints": pose(box, rng), "num_keypoints": POINTS}
        points = np.reshape(record["keypoints"], (-1, 3))[:, :2]
    truth["annotations"].append(record)
    if rng.random() < how.recall:
        moved = box + rng.normal(0, how.noise, 4) * np.tile(box[2:], 2)
        moved[2:] = np.maximum(moved[2:], 2)
        said = int(rng.choice(class_ids)) if rng.random() < how.confusion else label
        row = {"image_id": image, "category_id": said}
        _add(rows, row, moved, rng.beta(4, 1.8), shape, rng, points)


def _add(
    rows: list[dict[str, Any]],
    row: dict[str, Any],
    box: np.ndarray,
    score: float,
    shape: str,
    rng: np.random.Generator,
    points: np.ndarray | None,
) -> None:
    row["score"] = round(float(score), 5)
    if shape == "boxes":
        row["bbox"] = [round(float(v), 2) for v in box]
    elif shape == "masks":
        row["segmentation"] = outline(box)
    else:
        row["keypoints"] = pose(box, rng, points)
    rows.append(row)


# --- real detections ------------------------------------------------------------------------------


def of_tables(truth: detmap.Truth, found: detmap.Detections) -> Set:
    """Tables of boxes as COCO JSON; difficult objects are crowds, images are numbered."""
    parts = []
    with tempfile.TemporaryDirectory() as place:
        for table in (truth, found):
            writers.write(table, Path(place, "table.json"), "coco")
            parts.append(msgspec.json.decode(Path(place, "table.json").read_bytes()))
    for each in parts[0]["annotations"]:
        each["iscrowd"] |= each.pop("ignore")
    number = {stem: i for i, stem in enumerate(truth.images.stems, 1)}
    for row in parts[1]:
        row["image_id"] = number.get(row["image_id"], row["image_id"])
    return Set(*parts)


def _sample() -> Set:
    place = folder("datasets") / "shapes"
    truth = detmap.read_truth(place / "instances_test.json")
    return of_tables(truth, detmap.read_detections(place / "detections/contours.json", truth))


def _coco(data: Path, name: str) -> Set:
    place = data / "coco-val2014-100"
    truth = msgspec.json.decode((place / "instances_val2014_100.json").read_bytes())
    rows = msgspec.json.decode(
        (place / f"instances_val2014_fake{name}100_results.json").read_bytes()
    )
    return Set(truth, rows, "masks" if name == "segm" else "boxes")


def _voc(voc: Path, name: str) -> Set:
    truth = detmap.read_truth(voc / "VOCdevkit" / "VOC2007")
    found = detmap.read_detections(voc / name, truth)
    part = np.arange(0, len(truth.images), 8)
    return of_tables(truth.select_images(part), found.select_images(part))


def real(data: Path, voc: Path | None) -> dict[str, Callable[[], Set]]:
    """Real sets by name; `voc` is the folder with the unpacked archives of VOC 2007."""
    sets: dict[str, Callable[[], Set]] = {"sample": _sample}
    if data.is_dir():
        sets |= {f"coco-{name}": lambda name=name: _coco(data, name) for name in ("bbox", "segm")}
    for name in ("detector-8603", "tiny-yolov2-voc", "yolov2-voc"):
        if voc is not None and (voc / name).is_dir():
            sets[name] = lambda name=name: _voc(voc, name)
    return sets


# --- odd sets without a mistake -------------------------------------------------------------------

ODD = {
    "confused classes": Look(confusion=0.45),
    "crowded": Look(n_images=30, per_image=40, false=20),
    "weak": Look(recall=0.25, noise=0.14, false=8, confusion=0.3),
    "few images": Look(n_images=6),
    "one class": Look(n_classes=1),
    "video frames": Look(n_images=150, still=True),
    "many classes": Look(n_images=120, n_classes=10),
}


def right(seed: int) -> Set:
    """A set without a mistake: every other one looks odd."""
    rng = np.random.default_rng(seed)
    shape = ("boxes", "boxes", "boxes", "masks", "keypoints")[seed % 5]
    how = look(seed)
    if seed % 2:
        base = list(ODD.values())[int(rng.integers(len(ODD)))]
        how = base._replace(
            n_images=max(5, int(base.n_images * rng.uniform(0.5, 1.3))),
            recall=base.recall * rng.uniform(0.7, 1.1),
        )
    if shape == "masks":
        how = how._replace(per_image=min(how.per_image, 10), false=min(how.false, 5))
    return generated(seed + 10_000, shape, how)
