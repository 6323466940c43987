"""Producers that compute a full overlap matrix per cell."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from detmap.kernels.cells import Cells, ObjectColumns
    from detmap.kernels.pairs import Pairs

AT_ONCE = 1 << 20
"""Overlaps that are in memory at a time."""

Piece = tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float64], NDArray[np.bool_]]


class DensePairs(ABC):
    """Produces pairs from overlap matrices.

    Parameters
    ----------
    objects : the ground truth in the kernels' layout
    lowest : lowest overlap that can match
    """

    def __init__(self, objects: ObjectColumns, lowest: float) -> None:
        self.objects = objects
        self.needed = np.minimum(objects.enough, lowest)

    @abstractmethod
    def overlaps(
        self, detections: NDArray[Any], objects: NDArray[Any], absorbing: NDArray[np.bool_]
    ) -> NDArray[np.float64]:
        """Returns (d, g) overlaps; over the detection's own area for ignored regions (g,)."""

    def __call__(
        self, cells: Cells, n_cells: int, position: NDArray[np.int32]
    ) -> Iterator[tuple[int, Pairs]]:
        """Yields pairs of cells; see `detmap.core.overlaps.Producer`."""
        waiting: list[Piece] = []
        n_pairs = 0
        for begin, end, first, last in cells.bounds[:n_cells].tolist():
            step = max(1, AT_ONCE // (last - first))
            for start in range(begin, end, step):
                members = cells.members[start : min(start + step, end)]
                piece = self._pieces(members, position, first, last)
                waiting.append(piece)
                n_pairs += len(piece[0])
                if n_pairs >= AT_ONCE:
                    yield _buffer(waiting)
                    waiting, n_pairs = [], 0
        if n_pairs:
            yield _buffer(waiting)

    def _pieces(
        self, members: NDArray[np.int32], position: NDArray[np.int32], first: int, last: int
    ) -> Piece:
        """Yields the pairs of a cell, by detection, then by object."""
        absorb = self.objects.absorb[first:last]
        pieces = []
        for absorbing, some in ((False, ~absorb != 0), (True, absorb != 0)):
            g = np.flatnonzero(some)
            if not g.size:
                continue
            rows = self.objects.row[first:last][g]
            table = self.overlaps(position[members], rows, np.full(g.size, absorbing))
            d, column = np.nonzero(table >= self.needed[first:last][g])
            pieces.append((d, (first + g[column]).astype(np.int32), table[d, column], absorbing))
        order = np.argsort(np.concatenate([each[0] for each in pieces]), kind="stable")
        columns = [
            np.concatenate([members[each[0]] for each in pieces]),
            np.concatenate([each[1] for each in pieces]),
            np.concatenate([each[2] for each in pieces]),
            np.concatenate([np.full(len(each[0]), each[3]) for each in pieces]),
        ]
        detection, place, overlap, absorbing_ = (column[order] for column in columns)
        return detection, place, overlap, absorbing_


def _buffer(pieces: list[Piece]) -> tuple[int, Pairs]:
    """Joins the pieces to one buffer; returns the number of its detections and the buffer."""
    from detmap.kernels import pairs

    detection, place, overlap, absorbing = (
        np.concatenate(column) for column in zip(*pieces, strict=True)
    )
    begins = np.flatnonzero(np.diff(detection, prepend=-1))
    off = np.append(begins, len(detection)).astype(np.int64)
    return len(begins), pairs.Pairs(detection[begins], off, place, overlap, absorbing)
