"""Boundary AP by pixels: pycocotools' and lvis-api's evaluations with the overlap of Cheng et al.
2021, whose boundaries OpenCV erodes. Written from the definition.
"""

import math
from collections.abc import Sequence
from typing import Any

import cv2
import numpy as np
from pycocotools import mask as runs
from pycocotools.cocoeval import COCOeval

from tests.reference import official
from tests.support.drawing import CocoData

HALF_OPEN = [[0, 1e10], [0, 1024], [1024, 9216], [9216, 1e10]]
"""Areas of LVIS: the upper end is outside."""


def boundary(pixels: Any, ratio: float) -> Any:
    """The pixels (h, w) of a mask within the distance of its edge or of the image's."""
    width = max(1, round(ratio * math.sqrt(pixels.shape[0] ** 2 + pixels.shape[1] ** 2)))
    inner = cv2.erode(np.pad(pixels, 1), np.ones((3, 3), np.uint8), iterations=width)
    return pixels - inner[1:-1, 1:-1]


def overlaps(found: Sequence[Any], objects: Sequence[Any], crowd: Sequence[int], r: float) -> Any:
    """(d, g) overlaps of run lengths: the lower of both; with a crowd that of the masks."""
    both = [[runs.encode(np.asfortranarray(boundary(runs.decode(m), r))) for m in side]
            for side in (found, objects)]  # fmt: skip
    of_masks = np.array(runs.iou(list(found), list(objects), list(crowd)))
    of_boundaries = np.array(runs.iou(*both, list(crowd)))
    return np.where(np.array(crowd, bool), of_masks, np.minimum(of_masks, of_boundaries))


class OnCoco(COCOeval):  # type: ignore[misc]
    """pycocotools' evaluation of masks."""

    ratio = 0.02

    def computeIoU(self, imgId: Any, catId: Any) -> Any:  # noqa: N802, N803
        p = self.params
        classes = [catId] if p.useCats else p.catIds
        objects = [each for k in classes for each in self._gts[imgId, k]]
        found = [each for k in classes for each in self._dts[imgId, k]]
        found.sort(key=lambda each: -each["score"])
        found = found[: p.maxDets[-1]]
        if not objects or not found:
            return []
        shapes = ([each["segmentation"] for each in side] for side in (found, objects))
        return overlaps(*shapes, [each["iscrowd"] for each in objects], self.ratio)


def run(data: CocoData, ratio: float = 0.02, **params: Any) -> Any:
    """COCO's Boundary AP; `params` are those of pycocotools, without a summary then."""
    made = type("OnCoco", (OnCoco,), {"ratio": ratio})
    return official.run(*data, made=made, kind="segm", **params)


def run_lvis(data: CocoData) -> Any:
    """LVIS's Boundary AP of data without crowds."""
    from tests.reference import lvis_official

    class OnLvis(lvis_official.LVISEval):  # type: ignore[misc]
        def compute_iou(self, img_id: Any, cat_id: Any) -> Any:
            objects, found = self._get_gt_dt(img_id, cat_id)
            if not objects or not found:
                return []
            found = sorted(found, key=lambda each: -each["score"])
            shapes = ([each["segmentation"] for each in side] for side in (found, objects))
            return overlaps(*shapes, [0] * len(objects), 0.02)

    areas = [[low, np.nextafter(high, 0)] for low, high in HALF_OPEN]
    return lvis_official.run(*data, made=OnLvis, kind="segm", area_rng=areas)
