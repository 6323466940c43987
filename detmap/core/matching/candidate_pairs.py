"""Candidate pairs of detections and objects, and the rules that choose among several objects."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from detmap.core.base.pair_limits import limit_listed
from detmap.core.matching.class_thresholds import reach_own
from detmap.core.matching.matches_checks import least_overlap
from detmap.core.overlaps import producer
from detmap.core.overlaps.box_edges import Edges, apart_from, edges, overlaps, wide_sides
from detmap.core.overlaps.likely_pairs import LikelyPairs, can_use
from detmap.core.overlaps.near_boxes import EVERY_PAIR, near
from detmap.core.protocol import Protocol
from detmap.core.tables import Detections, Truth
from detmap.core.tables.grouping import cell_bounds, labels, rows_of, runs
from detmap.errors import OverlapError

if TYPE_CHECKING:
    from detmap.kernels.cells import ObjectColumns
    from detmap.kernels.pairs import Pairs

Rows = NDArray[np.int32]
Part = tuple[NDArray[np.int64], Rows, NDArray[np.float64], NDArray[np.bool_]]
"""Detections by matching order, objects, overlaps, and whether the object is a region."""

AT_ONCE = 1 << 20
"""Pairs of boxes per step."""


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """Pairs of a detection (row of the match results) and an object, in matching order.

    `absorbing`: the overlap is over the detection's area. `above`: it must exceed the threshold.
    """

    detection: Rows
    object: Rows
    overlap: NDArray[np.float64]
    absorbing: NDArray[np.bool_]
    above: bool

    def take(self, rows: NDArray[Any]) -> Candidates:
        """Returns some of the pairs."""
        return Candidates(
            self.detection[rows],
            self.object[rows],
            self.overlap[rows],
            self.absorbing[rows],
            self.above,
        )

    def compared(self) -> NDArray[np.float64]:
        """(p,) overlaps to compare with `>=`."""
        if not self.above:
            return self.overlap
        return np.where(self.absorbing, np.nextafter(self.overlap, -np.inf), self.overlap)

    def reach(self, needed: NDArray[np.float64]) -> NDArray[np.bool_]:
        """(p,) whether the overlap is at least what the object needs, (G,)."""
        reached: NDArray[np.bool_] = self.compared() >= needed[self.object]
        return reached

    def buffer(self) -> tuple[int, Pairs]:
        """Returns a copy for the kernels, which modify it."""
        from detmap.kernels.pairs import Pairs

        off = runs(self.detection)
        columns = (self.object.copy(), self.compared().copy(), self.absorbing.copy())
        return len(off) - 1, Pairs(self.detection[off[:-1]], off, *columns)


def find_candidates(
    truth: Truth,
    detections: Detections,
    protocol: Protocol,
    order: tuple[Rows, NDArray[np.int64]],
    objects: ObjectColumns,
    likely: LikelyPairs | None = None,
) -> Candidates:
    """Returns the pairs that reach a threshold, in matching order.

    Under ``best_any`` with a tolerance it returns all overlapping pairs, as the best object may
    not reach its threshold.

    Parameters
    ----------
    truth, detections, protocol : what is matched
    order : (n,) evaluated detections by rank, and (D,) positions in the matching order
    objects : the ground truth in the kernels' layout
    likely : pairs of these tables that can reach an IoU of 0.5, if known

    Raises
    ------
    OverlapError : boxes with an IoU of 0/0 or inf/inf
    CrowdedError : too many overlapping pairs
    """
    rows, turns = order
    lowest = least_overlap(protocol)
    if likely is not None and not can_use(protocol, likely, objects, lowest):
        likely = None
    met = np.arange(len(rows)) if likely is None else np.flatnonzero(np.diff(likely.off)[rows])
    turn = np.full(len(detections), -1)
    turn[turns[rows[met]]] = met
    turn = turn[turn >= 0]  # places in the match results, in matching order
    mine = rows[turn]
    if protocol.iou.of == "boxes":
        parts = list(_box_pairs(truth, detections, protocol, mine, objects, lowest, likely))
    else:
        tables = (truth, detections, objects)
        parts = list(_shape_pairs(tables, protocol, (rows, turn), lowest))
    d = np.concatenate([np.zeros(0, np.int64), *(part[0] for part in parts)])
    placed = np.argsort(d, kind="stable")
    pairs = Candidates(
        turn[d[placed]].astype(np.int32),
        np.concatenate([np.zeros(0), *(part[1] for part in parts)])[placed].astype(np.int32),
        np.concatenate([np.zeros(0), *(part[2] for part in parts)])[placed],
        np.concatenate([np.zeros(0, bool), *(part[3] for part in parts)])[placed],
        protocol.iou.absorb == ">" and protocol.iou.comparison == ">=",
    )
    if protocol.iou.classes:
        pairs = pairs.take(reach_own(pairs.compared(), objects.enough[pairs.object]))
    return pairs.take(pairs.overlap > 0) if protocol.matching.rule == "best_any" else pairs


def _box_pairs(
    truth: Truth,
    detections: Detections,
    protocol: Protocol,
    mine: Rows,
    objects: ObjectColumns,
    lowest: float,
    likely: LikelyPairs | None,
) -> Iterator[Part]:
    """Pairs of boxes, by step; `mine` are rows in matching order."""
    native = truth.box_format
    obj_edges = edges(truth, protocol, native)
    n_kept, row = 0, mine.astype(np.int64)
    if likely is None:
        det_edges = edges(detections, protocol, native)
        ranges = _objects_of_cells(truth, detections, mine, objects)
        near = _near(det_edges, obj_edges, (mine, *ranges), objects, protocol, lowest)
    else:  # boxes that are in no pair are not converted
        det_edges, row = edges(detections.take(mine), protocol, native), np.arange(len(mine))
        near = iter([_known_pairs(likely, mine, objects)])
    for i, g in near:
        for absorbing, chosen in ((False, ~objects.absorb != 0), (True, objects.absorb != 0)):
            d, of = (i, g) if chosen.all() else (i[chosen[g]], g[chosen[g]])
            pairs = (det_edges, obj_edges, row[d], objects.row[of], protocol)
            if absorbing and protocol.iou.absorb_from == "iou":
                overlap = _share_from_iou(
                    overlaps(*pairs), truth.area[objects.row[of]], det_edges.area[row[d]]
                )
            else:
                overlap = overlaps(*pairs, over_own_area=absorbing)
            if np.isnan(overlap).any():
                at = int(np.argmax(np.isnan(overlap)))
                areas = det_edges.area[row[d[at]]], obj_edges.area[objects.row[of[at]]]
                raise _undefined(detections, int(mine[d[at]]), *areas)
            # Disjoint boxes never match, even if an object needs an overlap of 0.
            enough = (overlap >= lowest) | ((overlap >= objects.enough[of]) & (overlap > 0))
            n_kept += int(enough.sum())
            limit_listed(_last_image(detections, mine[d]), n_kept, len(truth) + len(detections))
            yield d[enough], of[enough], overlap[enough], np.full(int(enough.sum()), absorbing)


def _last_image(detections: Detections, rows: NDArray[Any]) -> str:
    """Names the image of the last of some detections as the place of an error."""
    if not len(rows):
        return "match"
    return f"image {detections.images.ids[detections.image[rows[-1]]].item()!r}"


def _known_pairs(
    likely: LikelyPairs, mine: Rows, objects: ObjectColumns
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The pairs of rows in matching order: places in `mine`, and objects, in ascending order."""
    at, off = rows_of(likely.off, mine)
    place = np.full(len(likely.regional), -1)
    place[objects.row] = np.arange(len(objects.row))
    i, g = labels(off).astype(np.int64), place[likely.object[at]]
    i, g = i[g >= 0], g[g >= 0]
    if ((i[1:] == i[:-1]) & (g[1:] < g[:-1])).any():  # not in the file order
        order = np.lexsort((g, i))
        return i[order], g[order]
    return i, g


def _objects_of_cells(
    truth: Truth, detections: Detections, rows: Rows, objects: ObjectColumns
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where the objects of each row's image and class begin and end."""
    n_images = len(truth.images)
    cell = labels(objects.off).astype(np.int64) * n_images + objects.image
    own = detections.label[rows].astype(np.int64) * n_images + detections.image[rows]
    return cell_bounds(cell, own, n_images * len(truth.categories))


def _undefined(detections: Detections, row: int, *areas: np.floating[Any]) -> OverlapError:
    """The error on a detection and an object of these areas, whose IoU is not a number."""
    number = areas[0].dtype.name
    least, most = ("1e-18", "1e18") if number == "float32" else ("1e-150", "1e100")
    large = not np.isfinite(areas).all()
    size, iou = ("an infinite area", "inf/inf") if large else ("areas of 0", "0/0")
    return OverlapError(
        f"{detections.source}: row {row}",
        f"the box {detections.boxes[row].tolist()} and its object have {size} in {number}, "
        f"so the IoU is {iou}",
        f"use boxes with sides below {most}" if large else f"use boxes with sides above {least}",
    )


def _near(
    det_edges: Edges,
    obj_edges: Edges,
    met: tuple[Rows, NDArray[np.int64], NDArray[np.int64]],
    objects: ObjectColumns,
    protocol: Protocol,
    lowest: float,
) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
    """Pairs whose boxes may overlap, by step: places in the matching order, and objects."""
    mine, first, last = met
    sides, of_sides = wide_sides(det_edges), wide_sides(obj_edges)[objects.row]
    apart = apart_from(sides, of_sides, protocol) if lowest > 0 else EVERY_PAIR
    return near(mine, (first, last), (sides, of_sides), apart, AT_ONCE)


def _share_from_iou(
    iou: NDArray[np.float64], area: NDArray[np.float64], own: NDArray[Any]
) -> NDArray[np.float64]:
    """(n,) overlaps over the detections' `own` area, of objects of an `area`; 0 where `iou` is 0.

    Source: TinyBenchmark cocoeval.py, IOD_by_IOU, with its order of operations.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(iou == 0, 0.0, iou / (1 + iou) * (1 + area / own))


def _shape_pairs(
    tables: tuple[Truth, Detections, ObjectColumns],
    protocol: Protocol,
    order: tuple[Rows, NDArray[np.int64]],
    lowest: float,
) -> Iterator[Part]:
    """Pairs of masks or keypoints; `order` has rows by rank and their places in matching order."""
    from detmap.kernels.cells import Cells

    (truth, detections, objects), (rows, turn) = tables, order
    mine = rows[turn]
    own = detections.label[mine].astype(np.int64) * len(truth.images) + detections.image[mine]
    first, last = _objects_of_cells(truth, detections, mine, objects)
    produce = producer(truth, detections, objects, protocol, lowest)
    by_cell = np.argsort(own, kind="stable")
    by_cell = by_cell[last[by_cell] > first[by_cell]]
    off = runs(own[by_cell])
    at = by_cell[off[:-1]]
    bounds = np.stack([off[:-1], off[1:], first[at], last[at]], axis=1)
    place = np.empty(len(rows), dtype=np.int64)
    place[turn] = np.arange(len(rows))
    cells = Cells(turn[by_cell].astype(np.int32), np.ascontiguousarray(bounds))
    n_kept = 0
    for n, pairs in produce(cells, len(bounds), rows):
        size = int(pairs.off[n])
        d = place[np.repeat(pairs.detection[:n], np.diff(pairs.off[: n + 1]))]
        n_kept += size
        limit_listed(_last_image(detections, mine[d]), n_kept, len(truth) + len(detections))
        overlap, absorbing = pairs.overlap[:size].copy(), pairs.absorbing[:size].copy()
        yield d, pairs.object[:size].copy(), overlap, absorbing


def count_equally_near(pairs: Candidates) -> int:
    """Counts the detections with two objects of the highest overlap."""
    if not len(pairs.detection):
        return 0
    off = runs(pairs.detection)
    best = np.maximum.reduceat(pairs.overlap, off[:-1])
    is_best = pairs.overlap == np.repeat(best, np.diff(off))
    return int((np.add.reduceat(is_best.astype(np.int64), off[:-1]) > 1).sum())


def prefer_counted(pairs: Candidates, find: NDArray[np.uint64]) -> Candidates:
    """Removes ignored objects of detections that also reach a counted one."""
    counts = find[pairs.object] != 0
    has = np.zeros(int(pairs.detection.max(initial=-1)) + 1, dtype=bool)
    has[pairs.detection[counts]] = True
    return pairs.take(counts | ~has[pairs.detection])


def sort_image(
    pairs: Candidates,
    turn: NDArray[np.int64],
    obj_rows: Rows,
    image: Rows,
    number: type[np.floating[Any]],
) -> tuple[Candidates, int]:
    """Chooses an object per detection by NumPy's unstable argsort of all pairs of the image.

    Also returns the number of detections with tied overlaps. Source: yolov5 val.py, process_batch;
    Ultralytics 8.3 engine/validator.py, match_predictions.
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


def sort_own(
    pairs: Candidates, tables: tuple[Truth, Detections, Protocol], rows: Rows, obj_rows: Rows
) -> tuple[Candidates, int]:
    """Chooses an object per detection by NumPy's unstable argsort of its own overlaps.

    Also returns the number of detections with tied overlaps. Source: mean_average_precision
    utils.py, row_to_vars and check_box (greedy).
    """
    truth, detections, protocol = tables
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


def find_excused(
    pairs: Candidates,
    detections: Detections,
    rows: Rows,
    of_objects: tuple[Truth, Rows, NDArray[np.bool_]],
) -> NDArray[np.bool_]:
    """(n,) whether a pair's flag is that of an ignored object; see `matching.flags`."""
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
