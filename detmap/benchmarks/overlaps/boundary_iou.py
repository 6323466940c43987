"""Boundary IoU: the lower of the IoU of two masks and the IoU of their boundaries.

Only pairs whose mask IoU can match need boundaries, and each of their masks gets one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from detmap.core.base.immutable import blank
from detmap.core.overlaps.masks import MaskPairs
from detmap.core.protocol import Protocol
from detmap.core.tables import Detections, Truth
from detmap.core.tables.grouping import labels
from detmap.errors import DataError

if TYPE_CHECKING:
    from detmap.benchmarks.kernels.boundaries import Bitmaps
    from detmap.kernels.cells import Cells, ObjectColumns
    from detmap.kernels.pairs import Pairs
    from detmap.kernels.runs import Runs

AT_ONCE = 1 << 21
"""Words of boundaries in memory at a time, about; a single pair may need more."""

MOST_WORDS = 1 << 26
"""Words of a mask. Only images of fewer than 32 rows and more than 67 million columns exceed it."""


class BoundaryPairs(MaskPairs):
    """Produces pairs of masks with their boundary IoU; with a crowd it is the mask IoU alone.

    Parameters
    ----------
    truth, detections, objects, lowest : as of `MaskPairs`
    dilation : the width of boundaries, as a part of the image's diagonal

    Source: computeBoundaryIoU of boundary-iou-api's cocoeval.py; Cheng et al. 2021.
    """

    def __init__(
        self,
        truth: Truth,
        detections: Detections,
        objects: ObjectColumns,
        *,
        lowest: float,
        dilation: float,
    ) -> None:
        super().__init__(truth, detections, objects, lowest=lowest)
        self.dilation = dilation

    def __call__(
        self, cells: Cells, n_cells: int, position: NDArray[np.int32]
    ) -> Iterator[tuple[int, Pairs]]:
        """Yields pairs of cells; see `detmap.core.overlaps.Producer`."""
        for n, pairs in super().__call__(cells, n_cells, position):
            own = labels(pairs.off[: n + 1])
            places = pairs.object[: len(own)]
            self._lower(pairs, position[pairs.detection[own]], self.objects.row[places])
            kept = pairs.overlap[: len(own)] >= np.minimum(self.lowest, self.objects.enough[places])
            if n := _keep(pairs, own, kept):
                yield n, pairs

    def _lower(self, pairs: Pairs, found: NDArray[np.int32], truth: NDArray[np.int32]) -> None:
        """Lowers overlaps to those of the boundaries.

        Parameters
        ----------
        found, truth : rows of the masks of each pair
        """
        from detmap.benchmarks.kernels.boundaries import lower_overlaps

        chosen = np.flatnonzero(~pairs.absorbing[: len(found)])
        rows, objects = found[chosen].astype(np.int64), truth[chosen].astype(np.int64)
        part = np.cumsum(_spans(self.found, rows)[1] + _spans(self.truth, objects)[1]) // AT_ONCE
        for some in np.split(np.arange(len(chosen)), np.flatnonzero(np.diff(part)) + 1):
            d_rows, d = np.unique(rows[some], return_inverse=True)
            g_rows, g = np.unique(objects[some], return_inverse=True)
            lower_overlaps(
                chosen[some],
                d.astype(np.int64),
                g.astype(np.int64),
                draw(self.found, d_rows, self.dilation),
                draw(self.truth, g_rows, self.dilation),
                pairs,
            )


def producer(
    truth: Truth, detections: Detections, objects: ObjectColumns, protocol: Protocol, lowest: float
) -> BoundaryPairs:
    """Creates the producer of a protocol that compares masks by their boundaries.

    Raises `DataError` if a mask has too many columns.
    """
    width = protocol.iou.dilation
    made = BoundaryPairs(truth, detections, objects, lowest=lowest, dilation=width)
    for table, masks in ((truth, made.truth), (detections, made.found)):
        if _spans(masks, np.arange(len(table)))[1].max(initial=0) > MOST_WORDS:
            what = f"a mask has more than {MOST_WORDS} columns: its boundary takes too much memory"
            raise DataError(table.source, what, "use smaller images")
    return made


def draw(masks: Runs, rows: NDArray[np.int64], dilation: float) -> Bitmaps:
    """Draws the boundaries of some masks.

    Source: mask_to_boundary of boundary-iou-api's boundary_utils.py: a width of at least 1, rounded
    half to even.
    """
    from detmap.benchmarks.kernels.boundaries import Bitmaps, draw_boundaries

    spans, sizes = _spans(masks, rows)
    off = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    diagonal = np.sqrt((masks.size[rows] ** 2).sum(axis=1))
    depth = np.maximum(1, np.rint(dilation * diagonal)).astype(np.int64)
    maps = Bitmaps(
        rows, spans, depth, off, blank(int(off[-1]), np.uint64), blank(len(rows), np.int64)
    )
    draw_boundaries(masks, maps, blank(int(sizes.max(initial=0)), np.uint64))
    return maps


def _spans(masks: Runs, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(n, 4) the columns and words of `Bitmaps`; (n,) how many words."""
    from detmap.benchmarks.kernels.boundaries import BITS

    box = np.where(masks.pixels[rows, None] > 0, masks.boxes[rows], 0).astype(np.int64)
    first = box[:, 1] // BITS
    n_words = (box[:, 1] + box[:, 3] + BITS - 1) // BITS - first
    return np.stack([box[:, 0], box[:, 2], first, n_words], axis=1), box[:, 2] * n_words


def _keep(pairs: Pairs, own: NDArray[np.int32], kept: NDArray[np.bool_]) -> int:
    """Keeps some pairs, and the detections that still have one; returns how many these are."""
    at = np.flatnonzero(kept)
    n_pairs, begins = len(at), np.flatnonzero(np.diff(own[at], prepend=-1))
    for column in (pairs.object, pairs.overlap, pairs.absorbing):
        column[:n_pairs] = column[at]
    pairs.detection[: len(begins)] = pairs.detection[own[at[begins]]]
    pairs.off[: len(begins)], pairs.off[len(begins)] = begins, n_pairs
    return len(begins)
