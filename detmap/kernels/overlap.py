"""Box geometry: edges and area of a box under each extent, and the overlap of two boxes."""

from __future__ import annotations

from typing import Any

from detmap.kernels import kernel


@kernel
def edges_of(boxes: Any, row: Any, pixel: Any) -> Any:
    """Left, top, right, bottom and area of one box.

    boxes (N, 4) float64. pixel 0.0: x, y, width, height. Source: bbIou in pycocotools'
    maskApi.c, which adds the width to the left edge and takes the area from the sides as given.
    pixel 1.0: x1, y1, x2, y2, and the last pixel belongs to the box. Source: VOCevaldet.m of the
    VOC devkit.
    """
    a, b, c, d = boxes[row, 0], boxes[row, 1], boxes[row, 2], boxes[row, 3]
    if pixel == 0.0:
        return a, b, a + c, b + d, c * d
    return a, b, c, d, (c - a + pixel) * (d - b + pixel)


@kernel
def overlap(
    left: Any,
    top: Any,
    right: Any,
    bottom: Any,
    area: Any,
    edges: Any,
    g: Any,
    pixel: Any,
    absorb: Any,
) -> Any:
    """Intersection over union of a detection and the g-th object; over the detection's own area
    where the object absorbs.

    left to area: of the detection; edges (n, 5) of the objects; pixel as in `edges_of`. The
    order of operations is that of bbIou (maskApi.c) and of VOCevaldet.m, which agree.
    """
    width = min(right, edges[g, 2]) - max(left, edges[g, 0]) + pixel
    if width <= 0:
        return 0.0
    height = min(bottom, edges[g, 3]) - max(top, edges[g, 1]) + pixel
    if height <= 0:
        return 0.0
    shared = width * height
    if absorb:
        return shared / area
    return shared / (area + edges[g, 4] - shared)


@kernel
def count_outside(image: Any, boxes: Any, width: Any, height: Any) -> int:
    """Boxes x, y, width, height that share no area with their image.

    image (n,) int32; boxes (n, 4) float64; width, height (I,) float64, NaN where unknown.
    """
    count = 0
    for i in range(image.size):
        left, top = boxes[i, 0], boxes[i, 1]
        right, bottom = left + boxes[i, 2], top + boxes[i, 3]
        if left >= width[image[i]] or top >= height[image[i]] or right <= 0 or bottom <= 0:
            count += 1
    return count


@kernel
def find_bad_box(boxes: Any, most: Any) -> int:
    """The first box x, y, width, height with a negative side, or a number that is NaN or beyond
    `most`; -1 if there is none.

    boxes (n, 4) float64; most float.
    """
    for i in range(boxes.shape[0]):
        for j in range(4):
            if not (-most <= boxes[i, j] <= most) or (j >= 2 and boxes[i, j] < 0.0):
                return i
    return -1
