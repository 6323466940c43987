"""Pairs of keypoints: many cells at once, with the `exp` of NumPy, whose bits pycocotools has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

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
        self.columns = found, points, boxes, area, (np.array(sigmas) * 2) ** 2

    def __call__(
        self, cells: Cells, n_cells: int, position: NDArray[np.int32]
    ) -> Iterator[tuple[int, Pairs]]:
        """Yields pairs of cells; see `detmap.core.overlaps.Producer`."""
        most = max(1, AT_ONCE // max(1, len(self.columns[-1])))
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

    def similarities(
        self, detections: NDArray[np.int32], objects: NDArray[np.int32]
    ) -> NDArray[np.float64]:
        """Returns (n,) similarities of n detections and objects; ignored regions are not special.

        Source: COCOeval.computeOks in pycocotools' cocoeval.py, with its order of operations.
        """
        from detmap.kernels import keypoints as kernels

        *_, area, variances = self.columns
        n = len(detections)
        off, terms = np.empty(n + 1, dtype=np.int64), np.empty(n * len(variances))
        kernels.list_terms(*self.columns, detections, objects, off, terms)
        terms, found = terms[: off[-1]], np.empty(n)
        np.exp(terms, out=terms)
        kernels.average_terms(terms, off, area, objects, found)
        for i in np.flatnonzero(np.diff(off) > kernels.MOST_TERMS).tolist():
            found[i] = terms[off[i] : off[i + 1]].mean()
        return found


def _ranges(begin: NDArray[np.int64], end: NDArray[np.int64]) -> NDArray[np.int64]:
    """Returns the numbers of several ranges, concatenated."""
    n = end - begin
    return np.repeat(begin - np.cumsum(n) + n, n) + np.arange(n.sum())
