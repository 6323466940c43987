"""Drawn rules of matching: settings over coco-bbox, coco-segm or coco-keypoints."""

from typing import Any

import numpy as np

from detmap.core.protocol import Protocol
from detmap.core.protocol import load as load_protocol
from tests.support.drawing import CocoData, draw_coco, pick
from tests.support.drawing_shapes import draw_keypoints, draw_segm

PROTOCOLS = {"boxes": "coco-bbox", "masks": "coco-segm", "keypoints": "coco-keypoints"}
SUBSETS = ({"all": {}}, {"all": {}, "small": {"area": [0, 120]}, "wide": {"width": [15, 200]}})
Settings = dict[str, Any]

STOCK: dict[str, tuple[Any, ...]] = {
    "iou.comparison": (">=", ">"),
    "iou.tolerance": (0.0, 0.0, 5.0, 30.0),
    "iou.thresholds": ([0.5], [0.3, 0.5, 0.75]),
    "matching.rule": ("best_free", "best_any"),
    "matching.equal": ("last", "first"),
    "matching.outside": ("ignore", "absorb"),
    "matching.neutral.crowd": ("count", "ignore", "absorb"),
    "detections.outside": ("neutral", "drop", "count"),
    "detections.margin": (1.0, 1.25),
    "boxes.empty": ("keep", "drop"),
    "limits.scope": ("class", "image"),
    "limits.order": ("score", "input"),
    "limits.max_dets": ([], [1], [2], [3], [100]),
    "ranking.ties": ("image", "input"),
    "subsets": SUBSETS,
}
"""Values that the fast path knows."""

OTHER: dict[str, tuple[Any, ...]] = {
    "iou.absorb": (">=", ">"),
    "matching.equal": ("last", "first", "first_to_find", "sorted"),
    "matching.neutral.crowd": ("ignore", "absorb", "absent", "region", "region_to_find"),
    "matching.neutral_when": ("unmatched", "none_free"),
    "matching.order": ("ranking", "class", "image", "input"),
    "matching.sort": ("stable", "unstable", "reversed"),
    "detections.above": ([], [0.25]),
    "detections.score_precision": ("float64", "float32"),
    "boxes.empty": ("keep", "drop", "detections"),
    "ranking.ties": ("image", "input", "matched", "first_seen"),
    "ranking.sort": ("stable", "stable", "unstable", "reversed"),
    "ranking.of": ("class", "all"),
    "ranking.ignored": ("stay", "leave"),
}
"""Values beside those that it does not."""


def draw_data(rng: np.random.Generator, kind: str) -> CocoData:
    """Data with what is compared."""
    if kind == "masks":
        return draw_segm(rng)
    if kind == "keypoints":
        return draw_keypoints(rng)
    size: Settings = {"max_objects": 40, "max_detections": 50} if rng.random() < 0.2 else {}
    return draw_coco(rng, **size)


def draw_rules(rng: np.random.Generator, kind: str, *, stock: bool) -> Protocol:
    """A protocol that the fast path knows, or any."""
    table = STOCK if stock else STOCK | OTHER
    settings = {key: pick(rng, values) for key, values in table.items() if rng.random() < 0.6}
    settings = {key: value for key, value in settings.items() if value is not None}
    if kind == "boxes" and rng.random() < 0.2:
        settings["iou.epsilon"] = 1.0
    settings["metrics"] = ["AP"]
    if settings.get("limits.order") == "input":
        settings["limits.max_dets"] = [int(rng.integers(1, 4))]
    return load_protocol(PROTOCOLS[kind]).override(settings)
