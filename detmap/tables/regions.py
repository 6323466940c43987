"""Regions of images in which detections are dropped before the evaluation (VisDrone, UAVDT)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.base import column_checks, memory
from detmap.base.immutable import Immutable, keep
from detmap.base.reprs import outlined
from detmap.tables.grouping import runs

RULES = ("half", "inside")
COUNTED = 9  # bytes of memory per pixel of an image with regions
MOST = 2.0**31  # pixels of a side: a larger one has no other result


@outlined
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Regions(Immutable):
    """R regions of a ground truth.

    Parameters
    ----------
    rule : "half" covers boxes of which half of the pixels or more are in regions of the image;
        "inside" those that are strictly inside of one region
    image : (R,) int32, positions of images, ascending
    boxes : (R, 4) float64, x, y, width, height
    """

    rule: str
    image: NDArray[np.int32]
    boxes: NDArray[np.float64]

    def __post_init__(self) -> None:
        if self.rule not in RULES:
            column_checks.refuse("Regions.rule", f"{self.rule!r}", f"one of {', '.join(RULES)}")
        n_rows = column_checks.n_rows(self.boxes)
        boxes = column_checks.column("Regions.boxes", self.boxes, np.float64, n_rows, 4)
        column_checks.finite("Regions.boxes", boxes)
        image = column_checks.positions_in(
            "Regions.image", self.image, n_rows, column_checks.MAX_ROWS
        )
        keep(self, image=image, boxes=boxes)

    def __len__(self) -> int:
        return len(self.image)

    def select_images(self, images: NDArray[Any]) -> Regions:
        """Selects images by ascending positions."""
        rows = np.flatnonzero(np.isin(self.image, images))
        image = np.searchsorted(images, self.image[rows]).astype(np.int32)
        return Regions(self.rule, image, self.boxes[rows])

    def cover(
        self,
        image: NDArray[np.int32],
        boxes: NDArray[np.float64],
        sizes: tuple[NDArray[np.float64], NDArray[np.float64]],
    ) -> NDArray[np.bool_]:
        """Returns (n,) bool, which boxes are covered.

        Parameters
        ----------
        image : (n,) positions of images, -1 for none
        boxes : (n, 4) x, y, width, height
        sizes : (I,) widths and heights of the images
        """
        covered = np.zeros(len(image), dtype=bool)
        some = np.flatnonzero(np.isin(image, self.image))
        order = some[np.argsort(image[some], kind="stable")]
        off = runs(image[order])
        for begin, end in zip(off[:-1].tolist(), off[1:].tolist(), strict=True):
            rows = order[begin:end]
            i = int(image[rows[0]])
            own = self.boxes[self.image == i]
            if self.rule == "inside":
                covered[rows] = _inside(own, boxes[rows])
            else:
                covered[rows] = _half(own, boxes[rows], int(sizes[0][i]), int(sizes[1][i]))
        return covered


def _inside(regions: NDArray[np.float64], boxes: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Source: UAV-benchmark-MOTD CalculateDetectionPR_overall.m:36-45."""
    first, last = boxes[:, None, :2], boxes[:, None, :2] + boxes[:, None, 2:]
    begin, end = regions[None, :, :2], regions[None, :, :2] + regions[None, :, 2:]
    inside: NDArray[np.bool_] = np.all((first > begin) & (last < end), axis=2)
    return np.asarray(inside.any(axis=1))


def _half(
    regions: NDArray[np.float64], boxes: NDArray[np.float64], width: int, height: int
) -> NDArray[np.bool_]:
    """Counts pixels from 1; a region includes its end, a box begins after its first pixel.

    Source: VisDrone2018-DET-toolkit dropObjectsInIgr.m.
    """
    memory.require(COUNTED * width * height, "ignored regions", "counting pixels")
    size = np.array([width, height])
    first = np.clip(regions, 1, MOST).astype(np.int64)
    begin, end = first[:, :2], np.minimum(size, first[:, :2] + first[:, 2:])
    covered = np.zeros((height, width), dtype=np.uint8)
    for (left, top), (right, bottom) in zip(begin.tolist(), end.tolist(), strict=True):
        covered[top - 1 : bottom, left - 1 : right] = 1
    total = covered.cumsum(axis=0, dtype=np.int32).cumsum(axis=1, dtype=np.int32)
    rounded = np.clip(np.floor(boxes + 0.5), 1, MOST).astype(np.int64)
    left, top = np.minimum(size, rounded[:, :2]).T
    sides = rounded[:, 2:]
    right, bottom = np.minimum(size, np.stack([left, top], axis=1) + sides).T
    corners = [total[y - 1, x - 1] for y, x in ((top, left), (bottom, right))]
    corners += [total[y - 1, x - 1] for y, x in ((top, right), (bottom, left))]
    inside = corners[0] + corners[1] - corners[2] - corners[3]
    return np.asarray(inside / sides.prod(axis=1) >= 0.5)
