"""`match` for the rules that the fast path does not know: other orders, other numbers.

The fast path (`detmap.matching.engine`) ranks with a stable sort and computes overlaps in float64,
cell by cell. Here whole columns are laid out with NumPy, in the orders and numbers that the
protocol asks for, and judged by the same kernels. Under a protocol that both know the verdicts are
the same bits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from detmap.matching.assignments import gathered
from detmap.matching.candidate_pairs import (
    candidates,
    equally_near,
    excused_by,
    sorted_choice,
    sorted_own,
    to_find_first,
)
from detmap.matching.group_of_regions import judge_regions, regions
from detmap.matching.matches import Matches, distinct
from detmap.matching.matches_checks import effective_thresholds, word_of
from detmap.matching.prepare import prepare
from detmap.matching.roles import Roles, missing_roles, read_roles
from detmap.matching.scope import scope_notes
from detmap.matching.unstable_sorts import number_of, ranked_number, sort_lists
from detmap.protocol import Protocol
from detmap.tables import Detections, Note, Truth
from detmap.tables.digests import image_digests
from detmap.tables.grouping import by_image, group, places_of, runs

if TYPE_CHECKING:
    from detmap.kernels.match import Takings

Rows = NDArray[np.int32]
Offsets = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Turns:
    """The orders in which detections are cut and judged.

    Parameters
    ----------
    turn : (D,) what the detections of an image and class take objects in the order of
    rank : (D,) int32, what the limit counts
    n_undecided : detections that an unstable sort placed among equals
    """

    turn: NDArray[np.int64]
    rank: Rows
    n_undecided: int


@dataclass(frozen=True, slots=True, eq=False)
class Order:
    """Where the detections stand.

    Parameters
    ----------
    rows : (n,) those that are looked at, by class, as they rank
    off : (K + 1,) where each class begins
    listed : (n,) the same as they stand before the sort by score, all classes together
    turn : (D,) what the detections of an image and class take objects in the order of
    rank : (D,) int32, what the limit counts
    n_undecided : detections that an unstable sort placed among equals
    """

    rows: Rows
    off: Offsets
    listed: Rows
    turn: NDArray[np.int64]
    rank: Rows
    n_undecided: int


def match_in_order(
    truth: Truth, detections: Detections, protocol: Protocol, *, taken: bool = False
) -> Matches:
    """As `detmap.matching.engine.match`, for any protocol."""
    ready = prepare(truth, detections, protocol)
    turns = _turns(ready.detections, protocol)
    roles = read_roles(ready.truth, ready.detections, protocol, rank=turns.rank)
    order = _order(ready.detections, protocol, turns, roles.detections)
    places = None
    if taken:
        places = places_of(truth.image, truth.label, len(truth.images), len(truth.categories))
        places = places if ready.objects is None else places[ready.objects]
    matches, n_chosen, late = _judge(ready.truth, ready.detections, protocol, roles, order, places)
    n_undecided = order.n_undecided
    if protocol.ranking.ignored == "leave":
        matches, n_undecided = _ranked_without_ignored(
            matches, ready.detections, order, late, protocol
        )
    n_images = len(truth.images)
    looked_at = np.bincount(matches.image, minlength=n_images)
    position = matches.position if ready.rows is None else ready.rows[matches.position]
    beyond = np.bincount(detections.image, minlength=n_images) - looked_at - roles.unjudged
    notes = [*ready.notes]
    if n_undecided:
        text = (
            "detections share their score with another, and NumPy's sort, which is not stable, "
            "placed them: another version or processor may give another number"
        )
        notes.append(Note("order-undecided", text, n_undecided))
    if n_chosen:
        text = (
            "detections overlap two objects alike, and NumPy's sort, which is not stable, chose "
            "one: another version or processor may give another number"
        )
        if protocol.matching.equal == "index":
            text = (
                "detections overlap two objects alike, and the reference takes the last in the "
                "order of an index of its own, here the last of the truth: its number may be "
                "another"
            )
        notes.append(Note("choice-undecided", text, n_chosen))
    if ready.rows is not None:
        left_out = np.bincount(detections.image, minlength=n_images)
        left_out -= np.bincount(ready.detections.image, minlength=n_images)
        beyond -= left_out
    return replace(
        matches,
        digest=image_digests(truth, detections),
        position=position,
        beyond=beyond.astype(np.int32),
        notes=distinct(
            truth.notes,
            detections.notes,
            scope_notes(truth, protocol),
            missing_roles(truth, protocol),
            notes,
        ),
    )


def _turns(detections: Detections, protocol: Protocol) -> Turns:
    """The orders in which detections are cut and judged, before any is left out."""
    image, label = detections.image, detections.label
    n_images, n_classes = len(detections.images), len(detections.categories)
    score = detections.score.astype(number_of(protocol))
    matching, limits = protocol.matching, protocol.limits
    own = matching.order in ("class", "image")
    sort = matching.sort if own else "stable"
    n_undecided = 0

    def sorted_lists(whole_image: bool) -> tuple[Rows, Offsets, int]:
        """Rows by image or by image and class, sorted there."""
        if whole_image:
            rows, off = by_image(image, n_images)
        else:
            rows = group(image, label, n_images, n_classes)[0]
            off = runs(image[rows], label[rows])
        placed, n = sort_lists(score, rows, off, sort)
        return placed, off, n

    turn: NDArray[np.int64] = np.arange(len(image), dtype=np.int64)
    if own:
        placed, _, n_undecided = sorted_lists(matching.order == "image")
        turn[placed] = np.arange(len(image))
    rank = np.zeros(len(image), dtype=np.int32)
    if limits.order == "input":
        placed, off = by_image(image, n_images)
        if limits.scope == "class":
            placed = group(image, label, n_images, n_classes)[0]
            off = runs(image[placed], label[placed])
    else:
        placed, off, _ = sorted_lists(limits.scope == "image")
    rank[placed] = np.arange(len(image)) - np.repeat(off[:-1], np.diff(off))
    return Turns(turn, rank, n_undecided)


def _order(detections: Detections, protocol: Protocol, turns: Turns, some: Rows | None) -> Order:
    """Where the detections `some` stand."""
    image, label, turn = detections.image, detections.label, turns.turn
    matching, ranking = protocol.matching, protocol.ranking
    n_images = len(detections.images)
    first: NDArray[np.int64] = np.arange(len(image), dtype=np.int64)
    if ranking.ties == "matched":
        first = turn
    by = image.astype(np.int64)
    if ranking.ties == "input":
        by = np.zeros(len(image), dtype=np.int64)
    elif ranking.ties == "first_seen":
        cell = label.astype(np.int64) * n_images + image
        _, begins, inverse = np.unique(cell, return_index=True, return_inverse=True)
        by = begins[inverse]
    listed = np.arange(len(image), dtype=np.int32) if some is None else some
    listed = listed[np.lexsort((first[listed], by[listed]))]
    rows, off, n = _ranked(detections, listed, protocol)
    if matching.order == "ranking":
        turn = turn.copy()
        turn[rows] = np.arange(len(rows))
    return Order(rows, off, listed, turn, turns.rank, max(n, turns.n_undecided))


def _ranked(detections: Detections, listed: Rows, protocol: Protocol) -> tuple[Rows, Offsets, int]:
    """Rows by class as they rank, where each class begins, and how many the sort decided alone."""
    label, n_classes = detections.label, len(detections.categories)
    score, sort = detections.score.astype(ranked_number(protocol)), protocol.ranking.sort
    if protocol.ranking.of == "all":
        whole = np.array([0, len(listed)], dtype=np.int64)
        rows, n = sort_lists(score, listed, whole, sort)
        return *group(None, label, 0, n_classes, rows), n
    rows, off = group(None, label, 0, n_classes, listed)
    rows, n = sort_lists(score, rows, off, sort)
    return rows, off, n


def _ranked_without_ignored(
    matches: Matches, detections: Detections, order: Order, late: Rows, protocol: Protocol
) -> tuple[Matches, int]:
    """The matches with the detections in the order that they have where ignored ones leave the list
    before it is sorted, and those that found a region, (D,) from 1, stand last of their image.
    """
    ignored = np.zeros(len(detections), dtype=bool)
    ignored[matches.position] = (matches.ignored[:, 0] & matches.ignored.dtype.type(1)) != 0
    stay = order.listed[~ignored[order.listed]]
    if late.any():
        stay = stay[np.lexsort((late[stay], detections.image[stay]))]
    rows, off, n = _ranked(detections, stay, protocol)
    both = np.concatenate([rows, order.listed[ignored[order.listed]]])
    both, off = group(None, detections.label, 0, len(detections.categories), both)
    both, _ = sort_lists(detections.score, both, off, "stable")
    place = np.empty(len(detections), dtype=np.int64)
    place[matches.position] = np.arange(len(matches))
    moved = place[both]
    columns = ("image", "rank", "position", "score", "tp", "ignored")
    taken = None if matches.taken is None else matches.taken.take(moved)
    placed = {name: getattr(matches, name)[moved] for name in columns}
    return replace(matches, **placed, taken=taken), n


def _judge(
    truth: Truth,
    detections: Detections,
    protocol: Protocol,
    roles: Roles,
    order: Order,
    places: Rows | None,
) -> tuple[Matches, int, Rows]:
    """The verdicts, how many choices an unstable sort of pairs made, and (D,) the regions that
    detections found, from 1. Who took what is told where there are `places` (G,) of the objects
    among those of their image and class.
    """
    from detmap.kernels import cells as layout
    from detmap.kernels import match as kernels

    n_images, n_classes, n_subsets = len(truth.images), len(truth.categories), roles.n_subsets
    thresholds, word = effective_thresholds(protocol), word_of(protocol)
    obj_rows, obj_off = group(truth.image, truth.label, n_images, n_classes, roles.objects)
    counted = roles.find[obj_rows]
    if protocol.matching.equal == "first_to_find":
        neutral = roles.find[obj_rows] == 0
        again = np.lexsort((neutral, truth.image[obj_rows], truth.label[obj_rows]))
        obj_rows = obj_rows[again]
    find, absorb = roles.find[obj_rows], roles.absorb[obj_rows]
    flags = find != 0
    if protocol.matching.flags == "repeated":
        find = np.full_like(find, np.uint64(2**64 - 1))
        counted = find
    enough = roles.enough[obj_rows]
    rows = order.rows
    tp, ignored = (np.zeros((len(rows), n_subsets), dtype=word) for _ in range(2))
    full = word(2 ** len(thresholds) - 1)
    for a in range(n_subsets):
        outside = (roles.outside[rows].astype(np.uint64) >> np.uint64(a)) & np.uint64(1)
        ignored[:, a] = outside.astype(word) * full
    position = rows.astype(np.int32)
    verdicts = layout.Verdicts(
        order.off,
        detections.image[rows],
        order.rank[rows],
        position,
        detections.score[rows].view(np.uint64),
        tp,
        ignored,
    )
    of_objects = layout.ObjectColumns(
        obj_off, obj_rows, truth.image[obj_rows], find, absorb, enough
    )
    pairs = candidates(truth, detections, protocol, (rows, order.turn), of_objects)
    rule = kernels.best_free if protocol.matching.rule == "best_free" else kernels.best_any
    equal = protocol.matching.equal
    one_by_one = protocol.matching.prefer == "to_find" or equal.startswith("sorted")
    one_by_one |= protocol.matching.flags == "repeated"
    regional = regions(truth, protocol)[obj_rows]
    one_by_one |= bool(regional.any())
    late: Rows = np.zeros(len(detections), dtype=np.int32)
    cell: Offsets = np.zeros((0, 2), dtype=np.int64)
    if protocol.matching.neutral_when == "none_free":
        off = runs(truth.label[obj_rows], truth.image[obj_rows])
        cell = np.repeat(np.stack([off[:-1], off[1:]], axis=1), np.diff(off), axis=0)
    kept = []
    n_chosen = equally_near(pairs) if equal == "index" else 0
    passes = [[t] for t in range(len(thresholds))] if one_by_one else [list(range(len(thresholds)))]
    for ts in passes:
        mine, part = pairs, verdicts
        if one_by_one:
            t = ts[0]
            needed = np.minimum(enough, thresholds[t])
            of_region, reached = regional[pairs.object], pairs.reach(needed)
            of_regions = pairs.take(of_region & reached)
            best_first = protocol.iou.tolerance > 0 and protocol.matching.prefer == "overlap"
            mine = pairs.take(~of_region & (reached | best_first))
            if protocol.matching.prefer == "to_find":
                mine = to_find_first(mine, find)
            if equal == "sorted":
                turn, at = order.turn[rows], truth.image[obj_rows]
                mine, n = sorted_choice(mine, turn, obj_rows, at, number_of(protocol))
                n_chosen = max(n_chosen, n)
            if equal == "sorted_own":
                mine, n = sorted_own(mine, (truth, detections, protocol), rows, obj_rows)
                n_chosen = max(n_chosen, n)
            mine = mine.take(mine.reach(needed))
            blank = np.zeros((2, len(rows), n_subsets), dtype=np.uint16)
            part = verdicts._replace(tp=blank[0], ignored=blank[1])
            part.ignored[:] = (ignored >> word(t)) & word(1)
            if protocol.matching.flags == "repeated":
                excused = excused_by(mine, detections, rows, (truth, obj_rows, flags))
                part.ignored[mine.detection[excused]] = 1
                mine = mine.take(~excused)
        judging = kernels.Judging(
            thresholds[ts],
            int(equal not in ("last", "index")),
            find,
            absorb,
            enough,
            roles.dropped,
            np.zeros((len(obj_rows), n_subsets), dtype=part.tp.dtype),
            cell,
        )
        n, buffer = mine.buffer()
        most = int(np.diff(buffer.off).max(initial=0))
        n_asked = 0 if places is None else len(mine.object)
        takings = kernels.empty_takings(n_asked, n_subsets, part.tp.dtype)
        walk = kernels.walk(n_subsets, most)
        n_taken = rule(n, buffer, judging, part, takings, walk)
        if one_by_one:
            in_region = judge_regions(of_regions, part, find, late)
            tp |= part.tp.astype(word) << word(t)
            ignored &= ~(word(1) << word(t))
            ignored |= part.ignored.astype(word) << word(t)
        shift = word(ts[0] if one_by_one else 0)
        filled = kernels.Takings._make(column[:n_taken] for column in takings)
        filled = filled._replace(words=filled.words.astype(word) << shift)
        kept.append(_restore_overlaps(filled, absorb, protocol))
        if places is not None and one_by_one:
            kept.append(in_region._replace(words=in_region.words.astype(word) << shift))
    matches = Matches(
        protocol,
        truth.categories,
        truth.images.ids,
        np.zeros((n_images, 2), dtype=np.uint64),
        np.zeros(n_images, dtype=np.int32),
        order.off,
        verdicts.image,
        verdicts.rank,
        position,
        detections.score[rows],
        tp,
        ignored,
        obj_off,
        truth.image[obj_rows],
        (counted[:, None] & (np.uint64(1) << np.arange(n_subsets, dtype=np.uint64))) != 0,
        roles.unjudged,
        taken=None if places is None else gathered(kept, places[obj_rows], tp),
    )
    return matches, n_chosen, late


def _restore_overlaps(takings: Takings, absorb: NDArray[np.uint64], protocol: Protocol) -> Takings:
    """The takings with the overlaps of objects that absorb as they were before `Candidates.buffer`
    made them smaller.
    """
    if protocol.iou.absorb != ">" or protocol.iou.comparison == ">":
        return takings
    words = absorb[takings.object]
    subsets = np.uint64(1) << np.arange(takings.words.shape[1], dtype=np.uint64)
    absorbs = (words[:, None] & subsets) != 0
    absorbed = ((takings.words != 0) & absorbs).any(axis=1)
    larger = np.nextafter(takings.overlap, np.inf)
    return takings._replace(overlap=np.where(absorbed, larger, takings.overlap))
