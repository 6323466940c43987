"""Box geometry: edges and area of a box by box convention, and the overlap of two boxes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from detmap.kernels import kernel

Floats = NDArray[np.float64]


@kernel
def edges_of(boxes: Floats, row: int, pixel: float) -> tuple[float, float, float, float, float]:
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
def shared_area(
    box: tuple[float, float, float, float, float], edges: Floats, g: int, pixel: float
) -> float:
    """The area of the intersection of a box, as from `edges_of`, and the g-th of (n, 5) edges; -1.0
    for none, not even one too small for a number.

    Source: bbIou of pycocotools' maskApi.c, and VOCevaldet.m, with the same order of operations.
    """
    width = min(box[2], edges[g, 2]) - max(box[0], edges[g, 0]) + pixel
    if width <= 0:
        return -1.0
    height = min(box[3], edges[g, 3]) - max(box[1], edges[g, 1]) + pixel
    if height <= 0:
        return -1.0
    return float(width * height)


@kernel
def count_outside(image: NDArray[np.int32], boxes: Floats, width: Floats, height: Floats) -> int:
    """The number of boxes x, y, width, height without intersection with their image.

    image (n,) int32; boxes (n, 4) float64; width, height (I,) float64, NaN if unknown.

    Source: none; the count of a note.
    """
    count = 0
    for i in range(image.size):
        left, top = boxes[i, 0], boxes[i, 1]
        right, bottom = left + boxes[i, 2], top + boxes[i, 3]
        if left >= width[image[i]] or top >= height[image[i]] or right <= 0 or bottom <= 0:
            count += 1
    return count


@kernel
def copy_boxes(boxes: Floats, most: float, out: Floats) -> int:
    """Copy boxes x, y, width, height. Returns the first with a negative side, NaN, or a number
    above `most`; -1 if there is none.

    boxes, out (n, 4) float64; most float. Source: none; a check of readers. The loop does not
    branch, so that the compiler can vectorize.
    """
    n_bad = 0
    for i in range(boxes.shape[0]):
        a, b, c, d = boxes[i, 0], boxes[i, 1], boxes[i, 2], boxes[i, 3]
        out[i, 0], out[i, 1], out[i, 2], out[i, 3] = a, b, c, d
        place = (a >= -most) & (a <= most) & (b >= -most) & (b <= most)
        side = (c >= 0.0) & (c <= most) & (d >= 0.0) & (d <= most)
        n_bad += not (place & side)
    if n_bad:
        for i in range(boxes.shape[0]):
            for j in range(4):
                least = 0.0 if j >= 2 else -most
                if not least <= out[i, j] <= most:
                    return i
    return -1
