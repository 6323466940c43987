"""Bounds of all curves and of recall over all orders of tied scores.

An open cell is an image and class where tied scores affect the assignments or cross a limit.
The bounds are correct for these reasons:

- Earlier detections only affect later ones by the objects they match. So the numbers of TP and FP
  up to each score describe a cell. Cells and their components are independent, so bounds add up.
- Consider the list with the maximum of TP and the minimum of FP at every score, TP first. No order
  has fewer FP before its i-th TP, so no AP interpolation gives a higher value. The lowest value
  follows in the same way.
- A limit keeps s of n tied rows. The kept rows are the first of some order of the group, which
  adds at most s, and at least the total of the group less n - s.
"""

from __future__ import annotations

from dataclasses import fields, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.core.base.immutable import vouched
from detmap.core.curves import counts
from detmap.core.curves import scores as class_scores
from detmap.core.curves.equal_scores import (
    Orders,
    Rows,
    bits,
    cells_of,
    counts_stay,
    object_cells,
    widened,
)
from detmap.core.curves.extremes import extremes_of
from detmap.core.curves.scores import Scores
from detmap.core.matching.matches import Matches
from detmap.core.tables.grouping import labels, offsets, runs
from detmap.errors import DetmapError

AT_ONCE = 1 << 14
"""Rows per step."""
MOST, FEWEST = 0, 1
Columns = tuple[NDArray[Any], NDArray[np.float64], NDArray[Any], NDArray[Any]]
"""Class, score, and words of rows."""


class Levels(NamedTuple):
    """Runs of equal scores in open cells, by cell and descending score.

    Parameters
    ----------
    row : (n,) rows of the matches, by level
    off : (L + 1,) where each level begins
    cell : (L,) image and class
    before, size : (L,) detections before the tied group and in it, in the unit of the limit
    """

    row: Rows
    off: Rows
    cell: Rows
    before: Rows
    size: Rows


class OpenCells:
    """The open cells of matches, and their bounds.

    Parameters
    ----------
    matches : as evaluated
    orders : of the tables; None if not available, then bounds use the match results only
    """

    def __init__(self, matches: Matches, orders: Orders | None) -> None:
        self.matches, self.orders = matches, orders
        self.whole = whole = matches if orders is None else orders.whole
        self.cell, self.objects = cells_of(whole), object_cells(whole)
        self.limits = matches.protocol.max_dets()
        self.stay = counts_stay(matches.protocol)
        order = np.argsort(self.cell, kind="stable")
        off = runs(self.cell[order], whole.score[order])
        first = order[off[:-1]]
        cell = self.cell[first]
        before, size = self._groups(order, off)
        crossed = np.zeros(len(first), dtype=bool)
        for m in self.limits:
            crossed |= (before < m) & (m < before + size)
        with_objects = np.isin(cell, self.objects)
        top = (before < self.limits[-1]) & (self.limits[-1] < before + size)
        opening = cell[crossed & (with_objects | top)]
        if not self.stay:
            opening = np.concatenate([opening, self._undecided(cell, np.diff(off), with_objects)])
        self.cells = np.unique(opening)
        is_open = np.isin(cell, self.cells)
        sizes = np.diff(off)[is_open]
        row = order[np.repeat(is_open, np.diff(off))]
        begins = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self.levels = Levels(row, begins, cell[is_open], before[is_open], size[is_open])

    def __len__(self) -> int:
        return len(self.cells)

    @property
    def decide(self) -> bool:
        """Whether the order inside an image affects any result."""
        return len(self) > 0 or self.orders is None or len(self.orders.components.row) > 0

    def _groups(self, order: Rows, off: Rows) -> tuple[Rows, Rows]:
        """Detections before each level and in its tied group."""
        whole = self.whole
        first = order[off[:-1]]
        if self.orders is None:
            return self._supposed(order, off)
        if whole.protocol.limits.order == "input":  # the limit does not depend on scores
            return np.zeros_like(first), np.zeros_like(first)
        groups = self.orders.groups
        number = groups.number[whole.position[first]]
        return groups.before[number], groups.size[number]

    def _supposed(self, order: Rows, off: Rows) -> tuple[Rows, Rows]:
        """`_groups` from match results only; the number beyond the highest limit is unknown."""
        whole, limits = self.matches, self.matches.protocol.limits
        first, last = order[off[:-1]], order[off[1:] - 1]
        if limits.order == "input":
            return np.zeros_like(first), np.zeros_like(first)
        across = limits.scope == "image" or whole.unjudged.any()
        if across and (whole.beyond.any() or len(self.limits) > 1):
            raise DetmapError(
                "ties",
                "the matches do not record which tied scores a limit keeps (limits.scope=image, "
                "or excluded detections)",
                "evaluate truth and detections instead of merged parts",
            )
        before, size = whole.rank[first].astype(np.int64), np.diff(off)
        more = (whole.rank[last] == self.limits[-1] - 1) & (whole.beyond[whole.image[last]] > 0)
        return before, size + np.where(more, len(whole) + int(whole.beyond.sum()), 0)

    def _undecided(self, cell: Rows, sizes: Rows, with_objects: NDArray[np.bool_]) -> Rows:
        """Cells where tied scores may change the assignments."""
        if self.orders is None:
            return cell[with_objects & (sizes > 1)]
        return self.cell[self.orders.components.row]

    def bounds(self, scores: Scores, threads: int | None = None) -> tuple[Scores, Scores]:
        """Returns the lowest and the highest scores."""
        n_cells = len(self.levels.cell)
        begins = runs(self.levels.cell)
        n_areas, n_thresholds, _, _ = scores.terms.shape
        shape = (2, len(self.limits), n_areas, n_thresholds, len(scores.n_objects))
        moved = np.zeros(shape, dtype=np.int64)
        listed: list[list[Columns]] = [[], []]
        self._without_own(moved)
        counted = None
        if self.orders is not None and not self.stay:
            counted = self.orders.counted()
        at = 0
        while at < n_cells:
            end = begins[np.searchsorted(begins, at + AT_ONCE, "right") - 1]
            end = end if end > at else begins[np.searchsorted(begins, at, "right")]
            self._some(slice(at, end), counted, moved, listed)
            at = end
        made = []
        for extreme in (FEWEST, MOST):
            pretended = self._pretended(listed[extreme])
            own = class_scores.scores(pretended, threads=threads)
            terms = extremes_of(pretended, own, threads)[1 - extreme].terms
            made.append(replace(scores, terms=terms, recall=self._recall(scores, moved[extreme])))
        return made[0], made[1]

    def _some(
        self,
        some: slice,
        counted: NDArray[Any] | None,
        moved: NDArray[Any],
        listed: list[list[Columns]],
    ) -> None:
        """Bounds the levels `some`, of whole cells."""
        levels = self.levels
        off = levels.off[some.start : some.stop + 1]
        rows = levels.row[off[0] : off[-1]]
        cell, off = levels.cell[some], off - off[0]
        n_thresholds = moved.shape[3]
        tp, ignored = (
            bits(each[rows], n_thresholds) for each in (self.whole.tp, self.whole.ignored)
        )
        rises = np.stack([tp, tp, 1 - tp - ignored, 1 - tp - ignored])  # of rows
        if counted is not None:
            self._put(counted, rows, rises)
        rises = np.add.reduceat(rises, off[:-1], axis=1)
        if counted is None and not self.stay:
            rises = self._from_verdicts(rises, cell, np.diff(off))
        label = cell // self.whole.n_images
        first = runs(cell)
        objects = self._objects(cell)
        most = np.minimum(_up_to(rises[:1], first), objects)
        rises[0] = np.diff(most[0], axis=0, prepend=0)
        rises[0][first[:-1]] = most[0][first[:-1]]
        for i, m in enumerate(self.limits):
            within = self._within(m, some, rises, first, np.diff(off), objects)
            for extreme in (MOST, FEWEST):
                _add(moved[extreme, i], label, within[extreme])
            if m == self.limits[-1]:
                score = self.whole.score[rows[off[:-1]]]
                for extreme, pair in ((MOST, (0, 3)), (FEWEST, (1, 2))):
                    listed[extreme].append(
                        _labelled_rows(within[pair[0]], within[pair[1]], label, score, self.whole)
                    )

    def _without_own(self, moved: NDArray[Any]) -> None:
        """Subtracts the true positives of the matches in open cells."""
        own = self.matches
        rows = np.flatnonzero(np.isin(cells_of(own), self.cells))
        label = labels(own.off)
        for begin in range(0, len(rows), AT_ONCE):
            mine = rows[begin : begin + AT_ONCE]
            true = bits(own.tp[mine], moved.shape[3])
            for i, m in enumerate(self.limits):
                inside = own.rank[mine] < m
                for extreme in (MOST, FEWEST):
                    _add(moved[extreme, i], label[mine[inside]], -true[inside])

    def _put(self, counted: NDArray[Any], rows: Rows, rises: NDArray[Any]) -> None:
        """Replaces the rows of components by the bounds of their levels."""
        assert self.orders is not None
        found = self.orders.components
        place = np.full(len(self.whole), -1)
        place[rows] = np.arange(len(rows))
        mine = place[found.row]
        rises[:, mine[mine >= 0]] = 0
        before = np.concatenate([np.zeros_like(counted[:, :1]), counted[:, :-1]], axis=1)
        before[:, np.searchsorted(found.level, found.off[:-1])] = 0
        at = mine[found.level[:-1]]
        rises[:, at[at >= 0]] = (counted - before)[:, at >= 0]

    def _from_verdicts(self, rises: NDArray[Any], cell: Rows, sizes: Rows) -> NDArray[Any]:
        """Bounds from the first tied scores of a cell on, as of a single component."""
        first = runs(cell)
        total = _up_to(rises, first)
        n = _up_to(sizes[None], first)[0][:, None, None]
        tied = _up_to((sizes > 1).astype(np.int64)[None], first)[0][:, None, None] > 0
        bound = np.empty_like(total)
        for begin, end in pairwise(first):
            part = slice(begin, end)
            own = total[:, part]
            wide = widened(own[0], own[2], n[part], self.whole.protocol)
            wide = np.where(tied[part], wide, own)
            wide[[1, 3]] = np.maximum.accumulate(wide[[1, 3]], axis=1)
            bound[:, part] = wide
        before = np.concatenate([np.zeros_like(bound[:, :1]), bound[:, :-1]], axis=1)
        before[:, first[:-1]] = 0
        found: NDArray[Any] = bound - before
        return found

    def _objects(self, cell: Rows) -> NDArray[Any]:
        """(L, A, 1) counted objects in each cell."""
        counted = self.whole.counted
        total = np.concatenate([np.zeros_like(counted[:1], np.int64), counted.cumsum(axis=0)])
        first, last = (np.searchsorted(self.objects, cell, side) for side in ("left", "right"))
        found: NDArray[Any] = (total[last] - total[first])[..., None]
        return found

    def _within(
        self,
        m: int,
        some: slice,
        rises: NDArray[Any],
        first: Rows,
        sizes: Rows,
        objects: NDArray[Any],
    ) -> NDArray[Any]:
        """(4, L, A, T) what each level adds within a limit."""
        before, size = self.levels.before[some], self.levels.size[some]
        within = rises.copy()
        within[:, before >= m] = 0
        cut = np.flatnonzero((before < m) & (m < before + size))
        total = _up_to(rises, first)[:, cut]
        earlier = total - rises[:, cut]
        n, left = sizes[cut], m - before[cut]
        let_in = np.minimum(n, left)[:, None, None]
        surely = np.maximum(0, left - (size[cut] - n))[:, None, None]
        hidden = np.full(len(cut), self.orders is None) & (size[cut] > n)
        n, hidden = n[:, None, None], hidden[:, None, None]
        for kind in (0, 2):
            most = earlier[kind] + let_in
            most = np.where(hidden, most, np.minimum(most, total[kind]))
            if kind == 0:
                most = np.minimum(most, objects[cut])
            within[kind, cut] = most - earlier[kind]
            fewest = total[kind + 1] - (n - surely)
            within[kind + 1, cut] = np.maximum(fewest - earlier[kind + 1], 0)
        return within

    def _recall(self, scores: Scores, moved: NDArray[Any]) -> NDArray[np.float64]:
        """(M, A, T, J) recall with this change of true positives."""
        counted = self.matches.protocol.ap.recall_over == "counted"
        n_objects = counts.n_objects(self.matches, None, counted=counted)[scores.judged].T
        with np.errstate(invalid="ignore"):
            to_find = np.where(n_objects > 0, n_objects, np.nan)[None, :, None]
            found = np.rint(scores.recall * to_find) + moved[..., scores.judged]
            recall: NDArray[np.float64] = np.clip(found, 0, to_find) / to_find
        return recall

    def _pretended(self, listed: list[Columns]) -> Matches:
        """The matches with other rows in open cells."""
        own = self.matches
        kept = ~np.isin(cells_of(own), self.cells)
        label = np.concatenate([labels(own.off)[kept], *(each[0] for each in listed)])
        score = np.concatenate([own.score[kept], *(each[1] for each in listed)])
        tp = np.concatenate([own.tp[kept], *(each[2] for each in listed)])
        ignored = np.concatenate([own.ignored[kept], *(each[3] for each in listed)])
        order = np.lexsort((-score, label))
        none = np.zeros(len(order), np.int32)
        columns = {each.name: getattr(own, each.name) for each in fields(Matches)}
        columns |= {"off": offsets(label, len(own.categories)), "image": none, "rank": none}
        columns |= {"position": none, "score": score[order], "taken": None}
        columns |= {"tp": np.ascontiguousarray(tp[order])}
        columns |= {"ignored": np.ascontiguousarray(ignored[order])}
        return vouched(Matches, **columns)


def _add(total: NDArray[Any], label: NDArray[Any], values: NDArray[Any]) -> None:
    """Adds (n, A, T) values of ascending classes to (A, T, K) sums."""
    off = runs(label)[:-1]
    if len(off):
        total[..., label[off]] += np.add.reduceat(values, off, axis=0).transpose(1, 2, 0)


def _up_to(rises: NDArray[Any], first: Rows) -> NDArray[Any]:
    """(4, L, ...) sums within runs that begin at `first`."""
    total = rises.cumsum(axis=1, dtype=rises.dtype)
    base = (total - rises)[:, first[:-1]]
    within: NDArray[Any] = total - np.repeat(base, np.diff(first), axis=1)
    return within


def _labelled_rows(
    true: NDArray[Any], false: NDArray[Any], label: Rows, score: NDArray[np.float64], whole: Matches
) -> Columns:
    """Rows with these TP and FP at each level (L, A, T), ignored elsewhere."""
    word = whole.tp.dtype
    n_rows = (true + false).max(axis=(1, 2), initial=0)
    at = np.repeat(np.arange(len(label)), n_rows)
    place = np.arange(len(at)) - np.repeat(np.cumsum(n_rows) - n_rows, n_rows)
    place = place[:, None, None]
    shift = np.arange(true.shape[2]).astype(word)
    tp = ((place < true[at]).astype(word) << shift).sum(axis=2, dtype=word)
    ignored = ((place >= (true + false)[at]).astype(word) << shift).sum(axis=2, dtype=word)
    return label[at].astype(np.int32), score[at], tp, ignored
