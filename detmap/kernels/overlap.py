"""Box geometry: edges and area of a box under each extent, and the overlap of two boxes."""

from __future__ import annotations

from typing import Any

from detmap.kernels import kernel


@kernel
def find_edges(box: Any, pixel: Any, edges: Any) -> None:
    """Left, top, right, bottom and area of a box, into edges (5,).

    pixel 0.0: box (4,) is x, y, width, height. Source: bbIou in pycocotools' maskApi.c, which adds the width to the left
    edge and takes the area from the sides as given. pixel 1.0: box is x1, y1, x2, y2 and its last pixel belongs to it. Source:
    VOCevaldet.m of the VOC devkit.
    """
    edges[0], edges[1] = box[0], box[1]
    if pixel == 0.0:
        edges[2], edges[3], edges[4] = box[0] + box[2], box[1] + box[3], box[2] * box[3]
    else:
        edges[2], edges[3] = box[2], box[3]
        edges[4] = (box[2] - box[0] + pixel) * (box[3] - box[1] + pixel)


@kernel
def overlap(detection: Any, target: Any, pixel: Any, absorb: Any) -> Any:
    """Intersection over union; over the detection's own area where the object absorbs.

    detection, target (5,) edges; pixel as in `find_edges`. The order of operations is that of bbIou (maskApi.c) and of
    VOCevaldet.m, which agree.
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
