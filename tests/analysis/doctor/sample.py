"""The bundled sample with mistakes of the battery (`tools.doctor_kinds`), as files and columns."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from detmap.core.base.resources import folder
from tools.doctor_battery import base_set
from tools.doctor_kinds import KINDS
from tools.doctor_sets import Set

SHAPES = folder("datasets") / "shapes"
TRUTH = SHAPES / "instances_test.json"
RIGHT = SHAPES / "detections" / "contours.json"

Columns = dict[str, np.ndarray]


def with_mistakes(*kinds: str) -> Set:
    """The sample with these mistakes, one on top of the other."""
    given = base_set("sample", SHAPES / "no data", None).copy()
    for kind in kinds:
        given = KINDS[kind].make(given, np.random.default_rng(5)) or given
    return given


def write(place: Path, given: Set) -> tuple[Path, Path]:
    """The files of a set."""
    files = place / "truth.json", place / "found.json"
    for file, content in zip(files, given[:2], strict=True):
        file.write_text(json.dumps(content, default=float))
    return files


def columns(rows: list[dict[str, Any]]) -> Columns:
    """Results as arrays, as the API takes them."""
    names = ("image_id", "category_id", "bbox", "score")
    arrays = {name: np.array([row[name] for row in rows]) for name in names}
    return {"boxes" if name == "bbox" else name: array for name, array in arrays.items()}


BoxChange = Callable[[Any, float, float], Any]
"""Four numbers and the width and height of their image to other numbers."""
Change = Callable[[dict[str, Any], float, float], dict[str, Any]]
"""The same of a row, to the fields that change."""


def of_boxes(change: BoxChange) -> Change:
    return lambda row, w, h: {"bbox": [float(v) for v in change(np.array(row["bbox"]), w, h)]}


def changed(given: Set, *changes: Change) -> list[dict[str, Any]]:
    """Rows with mistakes on top of each other."""
    size = {each["id"]: (each["width"], each["height"]) for each in given.truth["images"]}
    rows = []
    for row in given.rows:
        made = row
        for change in changes:
            made = made | change(made, *size[row["image_id"]])
        rows.append(made)
    return rows


def corners(b: Any, w: float, h: float) -> Any:
    return [*b[:2], *(b[:2] + b[2:])]


def take(given: Columns, rows: Any) -> Columns:
    return {name: array[rows] for name, array in given.items()}
