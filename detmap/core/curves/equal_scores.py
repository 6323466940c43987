"""Orders of tied scores inside an image: their effect on assignments and detection limits.

`Orders` matches the tables again without a limit. A component is a set of detections of one image
and class that reach the same objects; the order matters only in components with tied scores.
`OpenCells` (`detmap.core.curves.open_cells`) computes bounds from this.
"""

from __future__ import annotations

from dataclasses import fields, replace
from itertools import chain, permutations, product
from math import factorial, prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.core.base.immutable import vouched
from detmap.core.base.sums import add_integers
from detmap.core.curves.tied_in_image import limit_groups
from detmap.core.matching.engine import judge, kernel_columns
from detmap.core.matching.matches import Matches
from detmap.core.matching.matches_checks import effective_thresholds, least_overlap
from detmap.core.matching.roles import Roles, read_roles
from detmap.core.matching.scope import clipped
from detmap.core.overlaps import producer
from detmap.core.protocol import Protocol
from detmap.core.protocol.metric_rows import NO_LIMIT
from detmap.core.tables import Detections, Truth
from detmap.core.tables.grouping import labels, runs, sort_groups
from detmap.kernels import match as rules
from detmap.kernels.cells import Cells, Verdicts
from detmap.kernels.curves import Ranked
from detmap.kernels.pairs import Pairs

Rows = NDArray[np.int64]
Tables = tuple[Truth, Detections]
MAX_ORDERS = 720
"""Tried orders per component."""
ALL_ROWS = 20_000_000
"""Rows in all orders of all components; beyond this, large components get wider bounds."""
AT_ONCE = 1 << 16


def cells_of(matches: Matches) -> Rows:
    """(D,) the number of each row's image and class."""
    return labels(matches.off).astype(np.int64) * matches.n_images + matches.image


def object_cells(matches: Matches) -> Rows:
    """(G,) the number of each object's image and class, ascending."""
    return labels(matches.obj_off).astype(np.int64) * matches.n_images + matches.obj_image


def bits(words: NDArray[np.unsignedinteger[Any]], n_thresholds: int) -> NDArray[np.int32]:
    """(n, A, T) from (n, A) words."""
    places = np.arange(n_thresholds, dtype=words.dtype)
    return ((words[..., None] >> places) & words.dtype.type(1)).astype(np.int32)


def may_matter(matches: Matches) -> bool:
    """Whether tied scores of an image overlap objects or cross a limit."""
    if matches.beyond.any() and matches.protocol.limits.order == "score":
        return True
    cell = cells_of(matches)
    order = np.argsort(cell, kind="stable")
    cell, score, rank = cell[order], matches.score[order], matches.rank[order]
    same = (cell[1:] == cell[:-1]) & (score[1:] == score[:-1])
    if not same.any() and matches.protocol.limits.scope == "class":
        return False
    if matches.protocol.limits.scope == "image":
        top = int(rank.max(initial=-1)) + 1
        return bool(same.any()) or any(m < top for m in matches.protocol.max_dets())
    return bool(np.isin(cell[1:][same], object_cells(matches)).any())


def counts_stay(protocol: Protocol) -> bool:
    """Whether other orders only permute the match results of tied scores.

    Under ``best_any`` each detection has a fixed object; the first one matches, the others are
    false positives.
    """
    whole = not any(subset.ranges for subset in protocol.subsets)
    judged = protocol.scope.not_exhaustive == "judge"
    return protocol.matching.rule == "best_any" and whole and judged


class Components(NamedTuple):
    """Components with tied scores.

    Parameters
    ----------
    row : (n,) rows by component and descending score
    off : (C + 1,) where each component begins
    level : (L + 1,) where runs of equal scores begin
    """

    row: Rows
    off: Rows
    level: Rows


MOST_PAIRS, PAIRS_PER_ROW = 4_000_000, 20


class TooManyPairsError(Exception):
    """Tied detections and objects lie in heaps: their pairs are far more than both."""


class Orders:
    """The matches without a limit, and their match results under other orders of tied scores.

    Parameters
    ----------
    matches : as evaluated
    tables : truth and detections
    threads : number of threads
    """

    def __init__(self, matches: Matches, tables: Tables, threads: int | None = None) -> None:
        self.protocol = protocol = matches.protocol
        truth, detections = clipped(*tables, protocol)
        free = protocol
        if protocol.limits.order == "score":
            free = replace(protocol, limits=replace(protocol.limits, max_dets=(NO_LIMIT,)))
        roles = read_roles(truth, detections, free, threads)
        if protocol.limits.order == "score":
            _limit_pairs(truth, detections, free, roles)
        whole = judge(truth, detections, free, roles, threads=threads)
        columns = {each.name: getattr(whole, each.name) for each in fields(Matches)}
        self.whole = vouched(Matches, **{**columns, "protocol": protocol})
        self.cell = cells_of(self.whole)
        self.by_cell = np.argsort(self.cell, kind="stable")
        self.groups = limit_groups(detections, len(truth.images), protocol)
        self.crossing = np.zeros(len(self.groups.size), dtype=bool)
        if protocol.limits.order == "score":
            self.crossing = self.groups.crossing(protocol.max_dets())
        self.rule = rules.best_free if protocol.matching.rule == "best_free" else rules.best_any
        _, objects = kernel_columns(truth, detections, free, roles)
        n_subsets, word = roles.n_subsets, self.whole.tp.dtype
        self.judging = rules.Judging(
            effective_thresholds(protocol),
            int(protocol.matching.equal == "first"),
            objects.find,
            objects.absorb,
            objects.enough,
            roles.dropped,
            np.zeros((len(objects.find), n_subsets), dtype=word),
            np.zeros((0, 2), dtype=np.int64),
        )
        n_thresholds = len(protocol.thresholds())
        full = word.type((1 << n_thresholds) - 1)
        of_subset = np.arange(n_subsets).astype(roles.outside.dtype)
        outside = (roles.outside[:, None] >> of_subset) & roles.outside.dtype.type(1)
        self.outside = outside.astype(word) * full
        produce = producer(truth, detections, objects, protocol, least_overlap(protocol))
        self._pairs(produce)
        self.components = self._components()
        crossing = np.flatnonzero(self.crossing[self.groups.number])
        self.some = crossing[np.argsort(self.groups.number[crossing], kind="stable")]
        row_of = np.full(len(self.groups.number), -1)  # of each detection of the table
        row_of[self.whole.position] = np.arange(len(self.whole))
        self.row_of_some = row_of[self.some]
        self.tied, self.tied_off = self._tied()
        ordered = np.zeros(len(self.whole), dtype=bool)
        ordered[self.tied] = ordered[self.row_of_some[self.row_of_some >= 0]] = True
        self.ordered = np.flatnonzero(ordered)  # rows whose key has an effect
        ordered[self.components.row] = True
        self.changed = np.flatnonzero(ordered)  # rows of the match results that an order may change
        self.is_tied, self.in_component = np.zeros((2, len(ordered)), dtype=bool)
        self.is_tied[self.tied] = self.in_component[self.components.row] = True
        self.position = self.whole.position[self.tied]
        ordered[self.tied] = False
        self.untied = np.flatnonzero(ordered)  # of these, rows that stay in place
        whole = self.whole
        self.verdicts = Ranked(whole.off, whole.tp.copy(), whole.ignored.copy(), whole.rank.copy())
        self._list_rows()

    def _list_rows(self) -> None:
        """The rows that every order ranks: those that an order may change, and true positives. The
        others are false or ignored in every order, and only their number counts.
        """
        whole, word = self.whole, self.whole.tp.dtype.type
        full = word((1 << len(self.judging.thresholds)) - 1)
        plain = (whole.tp == 0) & ((whole.ignored == 0) | (whole.ignored == full))
        listed = ~plain.all(axis=1)
        listed[self.changed] = True
        listed[whole.off[1:][np.diff(whole.off) > 0] - 1] = True
        counted = ~listed & (whole.rank < self.protocol.max_dets()[-1])
        before = np.cumsum((whole.ignored == 0) & counted[:, None], axis=0, dtype=np.int32)
        rows = np.flatnonzero(listed)
        left_out = np.diff(before[rows], axis=0, prepend=np.zeros_like(before[:1]))
        self.ranked = Ranked(
            np.searchsorted(rows, whole.off),
            whole.tp[rows],
            whole.ignored[rows],
            whole.rank[rows],
            np.ascontiguousarray(left_out),
        )
        place = np.cumsum(listed) - 1
        self.tied_place, self.untied_place = place[self.tied], place[self.untied]

    def _tied(self) -> tuple[Rows, Rows]:
        """Rows of the whole by group of tied scores of a class, and where each group begins: those
        groups whose order can matter. The others have false positives alone, or ignored rows.
        """
        whole = self.whole
        off = runs(labels(whole.off), whole.score)
        matters = (whole.tp != 0).any(axis=1, keepdims=True)[:, 0]
        matters[self.components.row] = True
        matters[self.row_of_some[self.row_of_some >= 0]] = True
        sizes = np.diff(off)
        some = sizes > 1
        if len(sizes):
            some &= np.logical_or.reduceat(matters, off[:-1])
        rows = np.flatnonzero(np.repeat(some, sizes))
        return rows, np.concatenate([[0], np.cumsum(sizes[some])]).astype(np.int64)

    def _pairs(self, produce: Any) -> None:
        """The pairs of images and classes with objects and tied scores."""
        whole = self.whole
        cells = _tied_cells(self.by_cell, self.cell, whole.score, object_cells(whole))
        parts, left = [], _most_pairs(len(whole), len(self.judging.find))
        for n, pairs in produce(cells, len(cells.bounds), whole.position):
            size = int(pairs.off[n])
            left -= size
            if left < 0:
                raise TooManyPairsError
            row = np.repeat(pairs.detection[:n], np.diff(pairs.off[: n + 1]))
            columns = (pairs.object, pairs.overlap, pairs.absorbing)
            parts.append((row.astype(np.int64), *(each[:size].copy() for each in columns)))
        empty = (np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros(0), np.zeros(0, bool))
        found = [np.concatenate(each) for each in zip(empty, *parts, strict=True)]
        order = np.argsort(found[0], kind="stable")
        self.row, self.object, self.overlap, self.absorbing = (each[order] for each in found)
        self.off = np.searchsorted(self.row, np.arange(len(whole) + 1))

    def _components(self) -> Components:
        """Components with tied scores; ignored regions do not connect detections."""
        row, g = self.row[~self.absorbing], self.object[~self.absorbing]
        of_object = np.arange(len(self.judging.find))
        of_row = np.full(len(self.whole), len(of_object))
        while True:
            np.minimum.at(of_row, row, of_object[g])
            before = of_object.copy()
            np.minimum.at(of_object, g, of_row[row])
            if (before == of_object).all():
                break
        members = np.flatnonzero(np.bincount(row))  # np.unique would import numpy.ma
        members = members[np.argsort(of_row[members], kind="stable")]
        number, score = of_row[members], self.whole.score[members]
        same = (number[1:] == number[:-1]) & (score[1:] == score[:-1])
        members = members[np.isin(number, number[1:][same])]
        number, score = of_row[members], self.whole.score[members]
        return Components(members, runs(number), runs(number, score))

    def judged(self, key: NDArray[Any]) -> tuple[Ranked, Ranked]:
        """Returns the match results for tied scores ordered by the (D,) keys of the table.

        First of the listed rows in ranked order, then of all rows of the whole. The next call
        overwrites both: an order changes few rows, and copies of all would take longer than their
        matching.
        """
        tied, own = self.tied, self.components.row
        listed = tied[sort_groups(key[self.position], self.tied_off)]
        if len(own):
            some = np.flatnonzero(self.in_component[listed])
            still = own[~self.is_tied[own]]
            mine = np.concatenate([listed[some], still])
            mine = mine[np.argsort(np.concatenate([tied[some], still]), kind="stable")]
            found = self._judge(mine, self.judging, np.zeros(len(mine), np.int64))
            self.verdicts.tp[mine], self.verdicts.ignored[mine] = found
        self._rank(key)
        for column, given in zip(self.ranked[1:4], self.verdicts[1:4], strict=True):
            words = _word_view(given)
            _word_view(column)[self.tied_place] = words[listed]
            _word_view(column)[self.untied_place] = words[self.untied]
        return self.ranked, self.verdicts

    def _rank(self, key: NDArray[Any]) -> None:
        """Fills in the ranks for the detection limit."""
        groups = self.groups
        number = groups.number[self.some]
        off = runs(number)
        order = sort_groups(key[self.some], off)
        moved = np.arange(len(number)) - np.repeat(off[:-1], np.diff(off)) + groups.before[number]
        rows = self.row_of_some[order]
        self.verdicts.rank[rows[rows >= 0]] = moved[rows >= 0]

    def _judge(
        self, mine: Rows, judging: rules.Judging, shift: Rows
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """(n, A) match results of rows in this order; `shift` moves the objects of each."""
        n, word = len(mine), self.whole.tp.dtype
        sizes = self.off[mine + 1] - self.off[mine]
        off = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        at = np.arange(off[-1]) + np.repeat(self.off[mine] - off[:-1], sizes)
        pairs = Pairs(
            np.arange(n, dtype=np.int32),
            off,
            (self.object[at] + np.repeat(shift, sizes)).astype(np.int32),
            self.overlap[at].copy(),
            self.absorbing[at].copy(),
        )
        position = np.ascontiguousarray(self.whole.position[mine])
        n_subsets = self.whole.tp.shape[1]
        tp, ignored = np.zeros((n, n_subsets), word), self.outside[position]
        none = np.zeros(n, np.int32)
        verdicts = Verdicts(
            np.array([0, n], np.int64), none, none, position, np.zeros(n, np.uint64), tp, ignored
        )
        judging = judging._replace(taken=np.zeros_like(judging.taken))
        walk = rules.walk(n_subsets, int(sizes.max(initial=0)))
        self.rule(n, pairs, judging, verdicts, rules.empty_takings(0, n_subsets, word), walk)
        return tp, ignored

    def counted(self) -> NDArray[np.int32]:
        """(4, L, A, T) maximum and minimum of TP and of FP per level of each component.

        They hold over all orders; `widened` bounds components with too many orders.
        """
        found, n_thresholds = self.components, len(self.judging.thresholds)
        n_levels = len(found.level) - 1
        shape = (4, n_levels, self.whole.tp.shape[1], n_thresholds)
        counts = np.empty(shape, dtype=np.int32)
        first_level = np.searchsorted(found.level, found.off)
        patterns: dict[tuple[int, ...], list[int]] = {}
        sizes = np.diff(found.level)
        for c in range(len(found.off) - 1):
            pattern = tuple(sizes[first_level[c] : first_level[c + 1]].tolist())
            patterns.setdefault(pattern, []).append(c)
        left = ALL_ROWS
        for pattern, numbers in sorted(
            patterns.items(), key=lambda each: (add_integers(each[0]), each[0])
        ):
            n_orders, size = prod(map(factorial, pattern)), add_integers(pattern)
            tried = n_orders <= MAX_ORDERS and n_orders * size * len(numbers) <= left
            orders = _orders(pattern) if tried else np.arange(size)[None]
            left -= n_orders * size * len(numbers) if tried else 0
            step = max(1, AT_ONCE // orders.size)
            for begin in range(0, len(numbers), step):
                some = np.array(numbers[begin : begin + step])
                totals = self._totals(some, orders, pattern)
                at = first_level[some][:, None] + np.arange(len(pattern))
                sizes_so_far = np.cumsum(pattern)[:, None, None]
                counts[:, at] = (
                    _extremes(*totals)
                    if tried
                    else widened(totals[0][:, 0], totals[1][:, 0], sizes_so_far, self.protocol)
                )
        return counts

    def _totals(
        self, some: Rows, orders: Rows, pattern: tuple[int, ...]
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """(C, O, L, A, T) TP and FP up to each level; each order has its own objects."""
        rows = self.components.row[self.components.off[some][:, None] + np.arange(orders.shape[1])]
        mine = rows[:, orders]  # (C, O, n)
        first = self.object_range(rows)
        n_objects = first[1] - first[0]
        copies = np.repeat(n_objects, len(orders))
        begin = np.cumsum(copies) - copies
        shift = begin - np.repeat(first[0], len(orders))
        old = np.arange(int(copies.sum())) - np.repeat(shift, copies)
        judging = self.judging._replace(
            find=self.judging.find[old],
            absorb=self.judging.absorb[old],
            enough=self.judging.enough[old],
            taken=np.empty((len(old), self.whole.tp.shape[1]), self.whole.tp.dtype),
        )
        words = self._judge(mine.reshape(-1), judging, np.repeat(shift, orders.shape[1]))
        tp, ignored = (bits(each, len(self.judging.thresholds)) for each in words)
        starts = np.cumsum([0, *pattern[:-1]])
        shape = (*mine.shape, *tp.shape[1:])
        return tuple(  # type: ignore[return-value]
            np.add.reduceat(each.reshape(shape), starts, axis=2).cumsum(axis=2, dtype=np.int32)
            for each in (tp, 1 - tp - ignored)
        )

    def object_range(self, rows: Rows) -> tuple[Rows, Rows]:
        """The range of the objects of the image and class of (C, n) rows."""
        objects = object_cells(self.whole)
        own = self.cell[rows[:, 0]]
        return np.searchsorted(objects, own, "left"), np.searchsorted(objects, own, "right")


def _limit_pairs(truth: Truth, detections: Detections, free: Protocol, roles: Roles) -> None:
    """Raises `TooManyPairsError` before a matching without a limit that would take minutes."""
    columns, objects = kernel_columns(truth, detections, free, roles)
    n_images, rows = len(truth.images), columns.rows
    cell = detections.label[rows].astype(np.int64) * n_images + detections.image[rows]
    own = truth.label[objects.row].astype(np.int64) * n_images + objects.image
    score = detections.score[rows]
    cells = _tied_cells(np.lexsort((-score, cell)), cell, score, own)
    size, some = np.diff(cells.bounds.reshape(-1, 2, 2)), _most_pairs(len(rows), len(own))
    if int(size.prod(axis=1).sum()) <= some:
        return
    n_pairs = 0
    produce = producer(truth, detections, objects, free, least_overlap(free))
    for n, pairs in produce(cells, len(cells.bounds), rows):
        n_pairs += int(pairs.off[n])
        if n_pairs > some:
            raise TooManyPairsError


def _most_pairs(n_rows: int, n_objects: int) -> int:
    return max(MOST_PAIRS, PAIRS_PER_ROW * (n_rows + n_objects))


def _tied_cells(order: Rows, cell: Rows, score: NDArray[np.float64], objects: Rows) -> Cells:
    """The images and classes with objects and tied scores.

    Parameters
    ----------
    order : (D,) rows by cell and descending score
    cell, score : (D,) of each row
    objects : (G,) the cell of each object, ascending
    """
    cell, score = cell[order], score[order]
    off = runs(cell)
    same = (cell[1:] == cell[:-1]) & (score[1:] == score[:-1])
    tied = np.add.reduceat(np.append(same, False), off[:-1]) > 0 if len(cell) else off[:-1] > 0
    own = cell[off[:-1]]
    first, last = (np.searchsorted(objects, own, side) for side in ("left", "right"))
    some = np.flatnonzero(tied & (last > first))
    bounds = np.stack([off[:-1][some], off[1:][some], first[some], last[some]], axis=1)
    return Cells(order.astype(np.int32), np.ascontiguousarray(bounds, dtype=np.int64))


def _word_view(table: NDArray[Any]) -> NDArray[Any]:
    """A view with one number per row of (n,) or (n, A) words, if there is one: faster to index."""
    size = table.itemsize * (table.shape[1] if table.ndim == 2 else 1)
    return table.view(f"u{size}").reshape(-1) if size in (1, 2, 4, 8) else table


def _orders(pattern: tuple[int, ...]) -> Rows:
    """(O, n) all orders of rows in levels of these sizes."""
    starts = np.cumsum([0, *pattern[:-1]]).tolist()
    levels = [list(permutations(range(s, s + n))) for s, n in zip(starts, pattern, strict=True)]
    return np.array([list(chain(*each)) for each in product(*levels)], dtype=np.int64)


def _extremes(true: NDArray[np.int32], false: NDArray[np.int32]) -> NDArray[np.int32]:
    """(4, C, L, A, T) over orders."""
    return np.stack([true.max(1), true.min(1), false.max(1), false.min(1)])


def widened(
    true: NDArray[Any], false: NDArray[Any], n: NDArray[Any], protocol: Protocol
) -> NDArray[Any]:
    """(4, ..., L, A, T) bounds over all orders from the counts of one order, up to each level.

    If each detection takes an unmatched object when it can, the result is a maximal matching, and
    its size is at least half of any other's. Under ``best_any`` the number of matched objects is
    fixed. Each matched or ignored detection can change at most two false positives.
    """
    highest, fewest = np.minimum(2 * true, n), (true + 1) // 2
    if protocol.matching.rule == "best_any":
        highest = fewest = true
    lowest = np.maximum(false - 2 * (n - false), 0)
    return np.stack([highest, fewest, n - fewest, np.maximum.accumulate(lowest, axis=-3)])
