"""Pairs of detections and objects that reach a threshold, in the order of judging, and the rules by
which a detection comes to look at one object of several.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from detmap.errors import DataError
from detmap.overlaps.edges import edges, overlaps
from detmap.protocol import Protocol
from detmap.rows import runs
from detmap.tables import Detections, Truth

if TYPE_CHECKING:
    from detmap.kernels.pairs import Pairs

Rows = NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """Pairs of a row of the verdicts and a place among the objects, in the order of judging.

    `absorbing`: the overlap is over the detection's own area.
    """

    detection: Rows
    object: Rows
    overlap: NDArray[np.float64]
    absorbing: NDArray[np.bool_]

    def take(self, rows: NDArray[Any]) -> Candidates:
        """Some of the pairs."""
        return Candidates(
            self.detection[rows], self.object[rows], self.overlap[rows], self.absorbing[rows]
        )

    def buffer(self) -> tuple[int, Pairs]:
        """As the kernels read them, which change what they are given."""
        from detmap.kernels.pairs import Pairs

        off = runs(self.detection)
        columns = (self.object.copy(), self.overlap.copy(), self.absorbing.copy())
        return len(off) - 1, Pairs(self.detection[off[:-1]], off, *columns)


def candidates(
    truth: Truth,
    detections: Detections,
    protocol: Protocol,
    order: tuple[Rows, NDArray[np.int64]],
    of_objects: tuple[Rows, NDArray[np.uint64], NDArray[np.uint64], NDArray[np.float64]],
) -> Candidates:
    """Pairs that reach a threshold, in the order of judging.

    Parameters
    ----------
    truth, detections, protocol : what is compared
    order : (n,) rows of the detections that are looked at, as they rank; and (D,) what the
        detections of an image and class take objects in the order of
    of_objects : their (G,) rows, by class and image; whether they are to find, and absorb; and the
        least overlap that is a match

    Raises
    ------
    DataError : boxes so small that their overlap is 0/0
    """
    obj_rows, _, absorb, needed = of_objects
    n_images, (rows, turns) = len(truth.images), order
    cell = truth.label[obj_rows].astype(np.int64) * n_images + truth.image[obj_rows]
    turn = np.argsort(turns[rows], kind="stable")  # places in the verdicts, as they take
    mine = rows[turn]
    own = detections.label[mine].astype(np.int64) * n_images + detections.image[mine]
    first, last = np.searchsorted(cell, own, "left"), np.searchsorted(cell, own, "right")
    n_met = last - first
    i = np.repeat(np.arange(len(mine)), n_met)
    g = np.arange(len(i)) - np.repeat(np.cumsum(n_met) - n_met, n_met) + first[i]
    native = truth.box_format
    det_edges, obj_edges = edges(detections, protocol, native), edges(truth, protocol, native)
    parts = []
    for absorbing, some in ((False, ~absorb != 0), (True, absorb != 0)):
        if some.all():
            d, of = i, g
        else:
            d, of = i[some[g]], g[some[g]]
        overlap = overlaps(
            det_edges, obj_edges, mine[d], obj_rows[of], protocol, over_own_area=absorbing
        )
        if np.isnan(overlap).any():
            row = int(mine[d[np.argmax(np.isnan(overlap))]])
            raise DataError(
                f"{detections.source}: row {row}",
                f"the box {detections.boxes[row].tolist()} and an object's have areas that are 0 "
                "in double precision: their overlap is 0/0",
                "give boxes with sides above 1e-150",
            )
        if absorbing and protocol.iou.absorb == ">":
            overlap = np.nextafter(overlap, -np.inf)  # so that >= is >
        enough = overlap >= needed[of]
        if protocol.matching.rule == "best_any":
            enough &= overlap > 0
        parts.append((d[enough], of[enough], overlap[enough], absorbing))
    d = np.concatenate([part[0] for part in parts])
    placed = np.argsort(d, kind="stable")
    return Candidates(
        turn[d[placed]].astype(np.int32),
        np.concatenate([part[1] for part in parts])[placed].astype(np.int32),
        np.concatenate([part[2] for part in parts])[placed],
        np.concatenate([np.full(len(part[0]), part[3]) for part in parts])[placed],
    )


def to_find_first(pairs: Candidates, find: NDArray[np.uint64]) -> Candidates:
    """Without the neutral objects of detections that reach one to find."""
    counts = find[pairs.object] != 0
    has = np.zeros(int(pairs.detection.max(initial=-1)) + 1, dtype=bool)
    has[pairs.detection[counts]] = True
    return pairs.take(counts | ~has[pairs.detection])


def sorted_choice(
    pairs: Candidates,
    turn: NDArray[np.int64],
    obj_rows: Rows,
    image: Rows,
    number: type[np.floating[Any]],
) -> tuple[Candidates, int]:
    """Each detection with the first of its objects after a sort of all pairs of the image, by
    NumPy's unstable argsort, backwards; and how many detections had equals to choose from.

    Source: yolov5 val.py, process_batch; Ultralytics 8.3 engine/validator.py, match_predictions.
    """
    off = runs(pairs.detection)
    begins, sizes = off[:-1], np.diff(off)
    best = np.maximum.reduceat(pairs.overlap, begins) if len(begins) else pairs.overlap
    is_best = pairs.overlap == np.repeat(best, sizes)
    n_best = np.add.reduceat(is_best.astype(np.int64), begins) if len(begins) else sizes
    keep = is_best
    doubtful = np.unique(image[pairs.object[np.repeat(n_best > 1, sizes)]])
    where = image[pairs.object]
    for each in doubtful.tolist():
        mine = np.flatnonzero(where == each)
        detection = pairs.detection[mine]
        listed = mine[np.lexsort((turn[detection], obj_rows[pairs.object[mine]]))]
        backwards = listed[np.argsort(pairs.overlap[listed].astype(number))[::-1]]
        _, chosen = np.unique(pairs.detection[backwards], return_index=True)
        keep[mine] = False
        keep[backwards[chosen]] = True
    return pairs.take(keep), int((n_best > 1).sum())


def sorted_own(
    pairs: Candidates, given: tuple[Truth, Detections, Protocol], rows: Rows, obj_rows: Rows
) -> tuple[Candidates, int]:
    """Each detection with the object that NumPy's unstable argsort of its overlaps with all objects
    of its image and class puts last; and how many had equals to choose from.

    Source: mean_average_precision utils.py, row_to_vars and check_box (greedy).
    """
    truth, detections, protocol = given
    off = runs(pairs.detection)
    begins, sizes = off[:-1], np.diff(off)
    best = np.maximum.reduceat(pairs.overlap, begins) if len(begins) else pairs.overlap
    keep = pairs.overlap == np.repeat(best, sizes)
    n_best = np.add.reduceat(keep.astype(np.int64), begins) if len(begins) else sizes
    det_edges, obj_edges = (
        edges(table, protocol, truth.box_format) for table in (detections, truth)
    )
    image, label = truth.image[obj_rows], truth.label[obj_rows]
    for i in np.flatnonzero(n_best > 1).tolist():
        mine = slice(off[i], off[i + 1])
        row = rows[pairs.detection[off[i]]]
        cell = np.flatnonzero((image == detections.image[row]) & (label == detections.label[row]))
        d = np.full(len(cell), row)
        overlap = overlaps(det_edges, obj_edges, d, obj_rows[cell], protocol)
        keep[mine] = pairs.object[mine] == cell[np.argsort(overlap)[-1]]
    return pairs.take(keep), int((n_best > 1).sum())


def excused_by(
    pairs: Candidates,
    detections: Detections,
    rows: Rows,
    of_objects: tuple[Truth, Rows, NDArray[np.bool_]],
) -> NDArray[np.bool_]:
    """(n,) whether the flag that a pair meets is that of a neutral object; see `matching.flags`."""
    truth, obj_rows, find = of_objects
    n_images = len(truth.images)
    cell = truth.label[obj_rows].astype(np.int64) * n_images + truth.image[obj_rows]
    own = detections.label.astype(np.int64) * n_images + detections.image
    order = np.argsort(own, kind="stable")
    row, g = rows[pairs.detection], pairs.object
    at = np.empty(len(own), dtype=np.int64)
    at[order] = np.arange(len(own)) - np.searchsorted(own[order], own[order], "left")
    ends = [np.searchsorted(own[order], own[row], side) for side in ("left", "right")]
    n = ends[1] - ends[0]
    first = np.searchsorted(cell, own[row], "left")
    m = np.searchsorted(cell, own[row], "right") - first
    flag = first + (at[row] * m + (g - first)) // np.maximum(n, 1)
    excused: NDArray[np.bool_] = ~find[flag]
    return excused
