"""Assignments: the object matched to each detection, and their IoU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from detmap.core.base import column_checks as checks
from detmap.core.base.immutable import Immutable, keep, own
from detmap.core.base.reprs import outlined
from detmap.core.tables.grouping import rows_of, runs

if TYPE_CHECKING:
    from detmap.kernels.match import Takings


@outlined
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Assignments(Immutable):
    """N rows, one per detection and matched object, in the order of detections and objects.

    An object that is an ignored region in some subsets may have two rows, one per overlap.

    Parameters
    ----------
    off : (D + 1,) int64, where each detection's rows begin
    object : (N,) int32, position among the objects of the image and class in file order, absent
        objects included; merging and selecting do not change it
    overlap : (N,) float64 IoU; for an ignored region the overlap over the detection's area
    words : (N, A) unsigned words, bit t for a match at threshold t
    """

    off: NDArray[np.int64]
    object: NDArray[np.int32]
    overlap: NDArray[np.float64]
    words: NDArray[np.unsignedinteger[Any]]

    def __post_init__(self) -> None:
        for each in fields(self):
            column = getattr(self, each.name)
            if type(column) is not np.ndarray:
                checks.refuse(f"Assignments.{each.name}", f"a {type(column).__name__}")
            keep(self, **{each.name: own(column)})

    def __len__(self) -> int:
        return len(self.object)

    def detection(self) -> NDArray[np.int64]:
        """(N,) the detection of each row."""
        return np.repeat(np.arange(len(self.off) - 1), np.diff(self.off))

    def take(self, detections: NDArray[Any]) -> Assignments:
        """Returns the rows of some detections, given by position or as flags."""
        if detections.dtype == bool:
            detections = np.flatnonzero(detections)
        rows, off = rows_of(self.off, detections)
        return Assignments(off, self.object[rows], self.overlap[rows], self.words[rows])

    def fault(
        self,
        tp: NDArray[np.unsignedinteger[Any]],
        ignored: NDArray[np.unsignedinteger[Any]],
        n_of_cell: NDArray[np.int64] | None,
    ) -> str:
        """Returns what contradicts the match results (D, A), or "".

        `n_of_cell` (D,) is the number of objects of each detection's image and class, if known.
        """
        n = len(self)
        kinds = [column.dtype for column in (self.off, self.object, self.overlap, self.words)]
        if kinds != [np.int64, np.int32, np.float64, tp.dtype] or self.object.ndim != 1:
            return "columns of other types"
        if (
            self.off.shape != (len(tp) + 1,)
            or self.off[0] != 0
            or self.off[-1] != n
            or (np.diff(self.off) < 0).any()
        ):
            return "offsets that do not ascend from 0 to the number of rows"
        if self.overlap.shape != (n,) or self.words.shape != (n, tp.shape[1]):
            return "columns of different lengths"
        detection = self.detection()
        beyond = n_of_cell is not None and (self.object >= n_of_cell[detection]).any()
        if (self.object < 0).any() or beyond:
            return "an object index out of range"
        if np.isnan(self.overlap).any():
            return "an IoU that is NaN"
        union, total = np.zeros_like(tp), np.zeros(tp.shape, dtype=np.int64)
        np.bitwise_or.at(union, detection, self.words)
        np.add.at(total, detection, np.bitwise_count(self.words).astype(np.int64))
        if (total != np.bitwise_count(union)).any():
            return "two objects matched to a detection at one threshold"
        if (tp & ~union).any() or (union & ~(tp | ignored)).any():
            return "assignments that contradict the match results"
        return ""


def gather(
    pieces: Sequence[Takings], place: NDArray[np.int32], tp: NDArray[np.unsignedinteger[Any]]
) -> Assignments:
    """Joins the assignments of all kernel calls, in any order.

    Parameters
    ----------
    pieces : with objects by their rows in the kernels' order
    place : (G,) position of each of these among the objects of its image and class
    tp : (D, A) the match results
    """
    detection = np.concatenate([np.zeros(0, np.int32), *(piece.detection for piece in pieces)])
    objects = place[np.concatenate([np.zeros(0, np.int32), *(piece.object for piece in pieces)])]
    overlap = np.concatenate([np.zeros(0), *(piece.overlap for piece in pieces)])
    words = np.concatenate([tp[:0], *(piece.words for piece in pieces)])
    order = np.lexsort((overlap, objects, detection))
    off = runs(detection[order], objects[order], overlap[order])
    first = order[off[:-1]]
    words = words[order]
    if len(first) < len(order):  # one row per threshold
        words = np.bitwise_or.reduceat(words, off[:-1], axis=0)
    n_taken = np.bincount(detection[first], minlength=len(tp))
    begins = np.concatenate([[0], np.cumsum(n_taken)]).astype(np.int64)
    return Assignments(begins, objects[first], overlap[first], words)


ARRAYS = [field.name for field in fields(Assignments)]


def join(parts: Sequence[Assignments | None], order: NDArray[np.int32]) -> Assignments | None:
    """Concatenates parts and reorders their detections; None if a part has no assignments."""
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    sizes = np.concatenate([np.diff(part.off) for part in known])
    whole = Assignments(
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        np.concatenate([part.object for part in known]),
        np.concatenate([part.overlap for part in known]),
        np.concatenate([part.words for part in known]),
    )
    return whole.take(order)
