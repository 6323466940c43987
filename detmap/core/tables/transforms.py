"""Changes of boxes and areas before matching: clipping, areas of boxes, a common aspect.

Protocol keys request them (``boxes.clip``, ``boxes.area``, ``boxes.aspect``), so the signature
contains them and `detmap explain` names them. Classes change while files are read, by the hierarchy
of `detmap.benchmarks.open_images.label_hierarchy`.
"""

from dataclasses import replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from detmap.core.tables import Columns, Detections, Images, Truth, boxes_as

Table = TypeVar("Table", Truth, Detections)


def clip_boxes(table: Truth | Detections, images: Images) -> NDArray[np.float64]:
    """(n, 4) clipped boxes x y width height. Source: CrowdDet lib/evaluate APMRToolkits/image.py.

    The left top corner is within (width - 1, height - 1), the right bottom one within the image.
    """
    boxes = boxes_as(table.boxes, table.box_format, "xywh")
    size = np.stack([images.width, images.height], axis=1)[table.image]
    size[np.isnan(size)] = np.inf  # of an image without detections
    first, last = boxes[:, :2], boxes[:, :2] + boxes[:, 2:]
    begin, end = np.clip(first, 0, np.maximum(size - 1, 0)), np.clip(last, 0, size)
    moved = (begin != first) | (end != last)
    side = np.where(moved, np.maximum(end - begin, 0), boxes[:, 2:])
    return np.ascontiguousarray(np.concatenate([begin, side], axis=1))


def with_box_areas(truth: Truth, share: float) -> Truth:
    """Returns the ground truth with `share` of width times height as areas. Source: xtcocotools
    cocoeval.py.
    """
    boxes = boxes_as(truth.boxes, truth.box_format, "xywh")
    return replace(
        truth,
        attributes=Columns({**truth.attributes, "area": boxes[:, 2] * boxes[:, 3] * share}),
        notes=tuple(note for note in truth.notes if note.code != "area-missing"),
    )


def with_aspect(table: Table, aspect: float, chosen: NDArray[np.bool_] | None = None) -> Table:
    """Makes boxes, or the chosen ones, (n,) bool, `aspect` times as wide as they are high.

    Source: Piotr's toolbox, bbApply.m, resize.
    """
    boxes = boxes_as(table.boxes, table.box_format, "xywh").copy()
    change = boxes[:, 3] * aspect - boxes[:, 2]
    if chosen is not None:
        change[~chosen] = 0.0
    boxes[:, 0] -= change / 2
    boxes[:, 2] += change
    return replace(table, boxes=boxes_as(boxes, "xywh", table.box_format))
