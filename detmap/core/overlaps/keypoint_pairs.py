"""Pairs of keypoints: many cells in one computation with NumPy, whose `exp` gives COCO's bits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from detmap.kernels.cells import Cells, ObjectColumns
    from detmap.kernels.pairs import Pairs

AT_ONCE = 1 << 19
"""Distances between points that are in memory at a time."""


class KeypointPairs:
    """Produces pairs of keypoints.

    Parameters
    ----------
    found : (d, k, 3) the points of the detections
    points, boxes, area : (g, k, 3), (g, 4), (g,) of the ground truth
    objects : the ground truth in the kernels' layout
    lowest : lowest similarity that can match
    sigmas : k, the annotators' deviation per point
    """

    def __init__(
        self,
        found: NDArray[np.float64],
        points: NDArray[np.float64],
        boxes: NDArray[np.float64],
        area: NDArray[np.float64],
        objects: ObjectColumns,
        *,
        lowest: float,
        sigmas: Sequence[float],
    ) -> None:
        self.objects, self.needed = objects, np.minimum(objects.enough, lowest)
        self.found = tuple(np.ascontiguousarray(found[:, :, axis]) for axis in range(2))
        self.points = tuple(np.ascontiguousarray(points[:, :, axis]) for axis in range(2))
        self.labelled = points[:, :, 2] > 0
        self.n_labelled = self.labelled.sum(axis=1)
        self.boxes, self.area = boxes, area
        self.variances = (np.array(sigmas) * 2) ** 2

    def __call__(
        self, cells: Cells, n_cells: int, position: NDArray[np.int32]
    ) -> Iterator[tuple[int, Pairs]]:
        """Yields pairs of cells; see `detmap.core.overlaps.Producer`."""
        most = max(1, AT_ONCE // max(1, len(self.variances)))
        waiting: list[tuple[int, int, int, int]] = []
        n_pairs = 0
        for begin, end, first, last in cells.bounds[:n_cells].tolist():
            step = max(1, most // (last - first))
            for start in range(begin, end, step):
                stop = min(start + step, end)
                waiting.append((start, stop, first, last))
                n_pairs += (stop - start) * (last - first)
                if n_pairs >= most:
                    yield from self._pairs(waiting, cells, position)
                    waiting, n_pairs = [], 0
        if waiting:
            yield from self._pairs(waiting, cells, position)

    def _pairs(
        self, parts: list[tuple[int, int, int, int]], cells: Cells, position: NDArray[np.int32]
    ) -> Iterator[tuple[int, Pairs]]:
        """Yields the pairs of parts of cells, if there are any: by detection, then those that do
        not absorb and those that do, each by object.
        """
        from detmap.kernels import pairs as kernels

        start, stop, first, last = np.array(parts, dtype=np.int64).T
        member = cells.members[_ranges(start, stop)]
        first, last = (np.repeat(each, stop - start) for each in (first, last))
        d, place = np.repeat(np.arange(len(member)), last - first), _ranges(first, last)
        overlap = self.similarities(position[member[d]], self.objects.row[place])
        absorb, enough = self.objects.absorb[place], overlap >= self.needed[place]
        kinds = [np.flatnonzero(enough & some) for some in (~absorb != 0, absorb != 0)]
        chosen = np.concatenate(kinds)
        if not len(chosen):
            return
        absorbing = np.repeat([False, True], [len(each) for each in kinds])
        order = np.argsort(d[chosen], kind="stable")
        chosen, absorbing = chosen[order], absorbing[order]
        begins = np.flatnonzero(np.diff(d[chosen], prepend=-1))
        off = np.append(begins, len(chosen)).astype(np.int64)
        yield (
            len(begins),
            kernels.Pairs(
                member[d[chosen[begins]]],
                off,
                place[chosen].astype(np.int32),
                overlap[chosen],
                absorbing,
            ),
        )

    def similarities(self, detections: NDArray[Any], objects: NDArray[Any]) -> NDArray[np.float64]:
        """Returns (n,) similarities of n detections and objects; ignored regions are not special.

        Source: COCOeval.computeOks in pycocotools' cocoeval.py, with its order of operations. Only
        labeled points count. Without any, the distances to the doubled box count.
        """
        found = np.empty(len(detections))
        n_labelled = self.n_labelled[objects]
        for n in np.unique(n_labelled).tolist():  # so that a sum has as many terms as there
            some = np.flatnonzero(n_labelled == n)
            d, g = detections[some], objects[some]
            apart = self._distances(d, g) if n else self._outside(d, g)
            dx, dy = apart
            e = (dx**2 + dy**2) / self.variances / (self.area[g] + np.spacing(1))[:, None] / 2
            if 0 < n < e.shape[1]:
                e = e[self.labelled[g]].reshape(-1, n)
            found[some] = np.exp(-e).sum(axis=1) / e.shape[1]
        return found

    def _distances(self, d: NDArray[Any], g: NDArray[Any]) -> Iterator[NDArray[np.float64]]:
        """Yields (n, k) distances in x and in y."""
        for found, points in zip(self.found, self.points, strict=True):
            yield found[d] - points[g]

    def _outside(self, d: NDArray[Any], g: NDArray[Any]) -> Iterator[NDArray[np.float64]]:
        """Yields (n, k) distances to the doubled boxes in x and in y, 0 inside."""
        for found, axis in zip(self.found, range(2), strict=True):
            low, side = self.boxes[g, axis, None], self.boxes[g, axis + 2, None]
            begin, end = low - side, low + side * 2
            at = found[d]
            yield np.maximum(0, begin - at) + np.maximum(0, at - end)


def _ranges(begin: NDArray[np.int64], end: NDArray[np.int64]) -> NDArray[np.int64]:
    """Returns the numbers of several ranges, concatenated."""
    n = end - begin
    return np.repeat(begin - np.cumsum(n) + n, n) + np.arange(n.sum())
