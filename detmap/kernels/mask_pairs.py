"""Pairs of masks: detections and objects of a cell with sufficient overlap."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from detmap.kernels import kernel
from detmap.kernels.cells import Cells, ObjectColumns
from detmap.kernels.pairs import CELL, MEMBER, Pairs
from detmap.kernels.runs import Runs, meet_runs


@kernel
def pair_masks(
    n_cells: int,
    cells: Cells,
    detections: Runs,
    truth: Runs,
    position: NDArray[np.int32],
    objects: ObjectColumns,
    lowest: float,
    cursor: NDArray[np.int64],
    pairs: Pairs,
) -> int:
    """Pairs of the cells from the cursor on, until all are
    done or the buffer is full; of how many detections.

    detections, truth: masks of the detections and of the truth, by row; position: the row of the
    detections of each row of the verdicts; cursor (2,): the next cell, n_cells at the end, and its
    next member. The buffer has space for two pairs an object of the largest cell.

    Source: rleIou of pycocotools' maskApi.c: pixels that both have over those that either has, over
    the detection's own where the object is a crowd; 0 where the boxes around them do not meet, and
    -1 where the sizes differ. Runs are not followed where even all the pixels that could be shared
    are too few: division rounds a larger number never to a smaller one.
    """
    n, at = 0, np.int64(0)
    pairs.off[0] = 0
    cell, member = cursor[CELL], cursor[MEMBER]
    while cell < n_cells:
        begin, end = cells.bounds[cell, 0], cells.bounds[cell, 1]
        first, last = cells.bounds[cell, 2], cells.bounds[cell, 3]
        while begin + member < end:
            if at + 2 * (last - first) > pairs.object.size or n == pairs.detection.size:
                cursor[CELL], cursor[MEMBER] = cell, member
                return n
            row = cells.members[begin + member]
            d = position[row]
            before = at
            for place in range(first, last):
                g = objects.row[place]
                needed, absorb = min(lowest, objects.enough[place]), objects.absorb[place]
                wide, high = shared_sides(detections.boxes, d, truth.boxes, g)
                meet = wide > 0.0 and high > 0.0
                fit = (
                    detections.size[d, 0] == truth.size[g, 0]
                    and detections.size[d, 1] == truth.size[g, 1]
                )
                most = min(detections.pixels[d], truth.pixels[g])
                if wide * high < most:
                    most = np.int64(wide * high)
                cut = (
                    detections.hollow[d] and truth.hollow[g]
                )  # then runs can end before the pixels do
                shared, either = np.int64(-1), np.int64(0)  # not yet known
                # Over the union where it does not absorb in every subset, over the detection's own
                # pixels where it does in some.
                for absorbing in range(2):
                    if absorbing == 0:
                        least = detections.pixels[d] + truth.pixels[g] - most
                        if absorb == ~np.uint64(0):
                            continue
                    else:
                        least = detections.pixels[d]
                        if absorb == np.uint64(0):
                            continue
                    overlap = 0.0
                    if meet and not fit:
                        overlap = -1.0
                    elif meet and most > 0:
                        if not cut and most / least < needed:
                            continue
                        if shared < 0:
                            shared, either = meet_runs(detections, d, truth, g)
                        if shared > 0:
                            overlap = shared / (either if absorbing == 0 else detections.pixels[d])
                    if overlap < needed:
                        continue
                    pairs.object[at] = place
                    pairs.overlap[at], pairs.absorbing[at] = overlap, absorbing == 1
                    at += 1
            if at > before:
                pairs.detection[n] = row
                n += 1
                pairs.off[n] = at
            member += 1
        cell, member = cell + 1, 0
    cursor[CELL] = cell
    return n


@kernel
def shared_sides(
    a: NDArray[np.float64], i: int, b: NDArray[np.float64], j: int
) -> tuple[float, float]:
    """Width and height of the intersection of box i of `a` and box j of `b`; not above 0 without
    intersection. Source: bbIou of pycocotools' maskApi.c.
    """
    wide = min(a[i, 0] + a[i, 2], b[j, 0] + b[j, 2]) - max(a[i, 0], b[j, 0])
    high = min(a[i, 1] + a[i, 3], b[j, 1] + b[j, 3]) - max(a[i, 1], b[j, 1])
    return wide, high
