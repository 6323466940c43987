"""Box geometry: edges and area of a box under each extent, and the overlap of two boxes."""

from __future__ import annotations

from typing import Any

from detmap.kernels import kernel


@kernel
def continuous_edges(boxes: Any, rows: Any, edges: Any) -> None:
    """Left, top, right, bottom and area of boxes x, y, width, height.

    boxes (N, 4) float64; rows (n,) int32 to take; out: edges (n, 5). Source: bbIou in pycocotools' maskApi.c, which adds
    the width to the left edge and takes the area from the sides as given.
    """
    for i in range(rows.size):
        box = boxes[rows[i]]
        x, y, w, h = box[0], box[1], box[2], box[3]
        edges[i, 0], edges[i, 1], edges[i, 2], edges[i, 3] = x, y, x + w, y + h
        edges[i, 4] = w * h


@kernel
def inclusive_edges(boxes: Any, rows: Any, edges: Any) -> None:
    """Left, top, right, bottom and area of boxes x1, y1, x2, y2 whose last pixel belongs to the box.

    boxes (N, 4) float64; rows (n,) int32 to take; out: edges (n, 5). Source: VOCevaldet.m of the VOC devkit.
    """
    for i in range(rows.size):
        box = boxes[rows[i]]
        x1, y1, x2, y2 = box[0], box[1], box[2], box[3]
        edges[i, 0], edges[i, 1], edges[i, 2], edges[i, 3] = x1, y1, x2, y2
        edges[i, 4] = (x2 - x1 + 1) * (y2 - y1 + 1)


@kernel
def overlap(detection: Any, target: Any, pixel: Any, absorb: Any) -> Any:
    """Intersection over union; over the detection's own area where the object absorbs.

    detection, target (5,) edges; pixel: 1.0 where the last pixel belongs to the box, else 0.0. The order of operations is
    that of bbIou (maskApi.c) and of VOCevaldet.m, which agree.
    """
    width = min(detection[2], target[2]) - max(detection[0], target[0]) + pixel
    if width <= 0:
        return 0.0
    height = min(detection[3], target[3]) - max(detection[1], target[1]) + pixel
    if height <= 0:
        return 0.0
    shared = width * height
    if absorb:
        return shared / detection[4]
    return shared / (detection[4] + target[4] - shared)
