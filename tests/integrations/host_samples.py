"""The sample set in the forms in which hosts pass it."""

import json
from functools import cache
from typing import Any

import numpy as np

import detmap
from tests.support import builders as make

TRUTH = make.SHAPES / "instances_test.json"
FOUND = make.SHAPES / "detections" / "contours.json"


@cache
def expected(protocol: str = "coco-bbox") -> detmap.Result:
    """The files' result."""
    return detmap.evaluate(TRUTH, FOUND, protocol)


@cache
def truth() -> Any:
    return json.loads(TRUTH.read_text())


@cache
def rows() -> Any:
    return json.loads(FOUND.read_text())


def names() -> dict[int, str]:
    return {each["id"]: each["name"] for each in truth()["categories"]}


def sizes() -> dict[int, tuple[int, int]]:
    """Height and width by image id."""
    return {each["id"]: (each["height"], each["width"]) for each in truth()["images"]}


def images(entries: Any) -> dict[int, dict[str, Any]]:
    """Boxes as corners, labels as category ids, and scores or areas and flags, by image id."""
    found: dict[int, Any] = {each["id"]: [] for each in truth()["images"]}
    for each in entries:
        found[each["image_id"]].append(each)
    return {image: {"image_id": image} | _columns(some, entries) for image, some in found.items()}


def _columns(some: Any, entries: Any) -> dict[str, Any]:
    boxes = np.array([each["bbox"] for each in some], dtype=float).reshape(-1, 4)
    boxes[:, 2:] += boxes[:, :2]
    columns = {"boxes": boxes, "labels": np.array([r["category_id"] for r in some], dtype=int)}
    if "score" in entries[0]:
        return columns | {"scores": np.array([each["score"] for each in some], dtype=float)}
    columns["area"] = np.array([each["area"] for each in some], dtype=float)
    return columns | {"iscrowd": np.array([each["iscrowd"] for each in some], dtype=int)}


def predictions() -> dict[int, dict[str, Any]]:
    return images(rows())


def targets() -> dict[int, dict[str, Any]]:
    return images(truth()["annotations"])
