"""Regions of images in which detections are dropped before the evaluation (VisDrone, UAVDT)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.core.base import column_checks
from detmap.core.base.immutable import Immutable, keep
from detmap.core.base.reprs import outlined
from detmap.core.tables.covered_pixels import half_covered
from detmap.core.tables.grouping import runs

RULES = ("half", "inside")
AT_ONCE = 1 << 16  # pairs of a box and a region that are compared at once


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
            i = image[rows[0]]
            own = self.boxes[slice(*np.searchsorted(self.image, [i, i + 1]).tolist())]
            if self.rule == "inside":
                covered[rows] = _inside(own, boxes[rows])
            else:
                width, height = (int(side[i]) for side in sizes)
                covered[rows] = half_covered(own, boxes[rows], width, height, f"image {i + 1}")
        return covered


def _inside(regions: NDArray[np.float64], boxes: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Source: UAV-benchmark-MOTD CalculateDetectionPR_overall.m:36-45."""
    begin, end = regions[:, :2].T, (regions[:, :2] + regions[:, 2:]).T
    first, last = boxes[:, :2, None], boxes[:, :2, None] + boxes[:, 2:, None]
    found = np.zeros(len(boxes), dtype=bool)
    step = max(1, AT_ONCE // len(regions))
    for at in range(0, len(boxes), step):
        some = slice(at, at + step)
        inside = np.ones((len(boxes[some]), len(regions)), dtype=bool)
        for k in range(2):
            inside &= first[some, k] > begin[k]
            inside &= last[some, k] < end[k]
        found[some] = inside.any(axis=1)
    return found
