"""The general engine: `match` for protocols with other orders or number types.

The fast engine (`detmap.core.matching.engine`) uses a stable sort and float64. The general engine
sorts whole columns with NumPy as the protocol requires, and runs the same kernels. If both engines
support a protocol, they give the same bits.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from detmap.core.base.immutable import blank, vouched
from detmap.core.base.last_values import LastValues
from detmap.core.matching.assignments import gather
from detmap.core.matching.candidate_pairs import (
    Candidates,
    count_equally_near,
    find_candidates,
    find_excused,
    prefer_counted,
    sort_image,
    sort_own,
)
from detmap.core.matching.engine import make_matches
from detmap.core.matching.group_of_regions import find_regions, match_regions
from detmap.core.matching.matches import Matches, distinct
from detmap.core.matching.matches_checks import effective_thresholds, word_of
from detmap.core.matching.prepare import Prepared, prepare, prepared_by
from detmap.core.matching.roles import Roles, missing_roles, read_roles
from detmap.core.matching.scope import rank_in_dataset, scope_notes
from detmap.core.matching.score_rules import limit_notes
from detmap.core.matching.unstable_sorts import number_of, ranked_number, sort_lists
from detmap.core.overlaps.likely_pairs import LikelyPairs, list_pairs
from detmap.core.protocol import Protocol
from detmap.core.tables import Detections, Note, Truth
from detmap.core.tables.digests import image_digests
from detmap.core.tables.grouping import group, group_images, places_of, reordered, runs

if TYPE_CHECKING:
    from detmap.kernels.cells import ObjectColumns, Verdicts
    from detmap.kernels.match import Takings

Rows = NDArray[np.int32]
Offsets = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Turns:
    """The orders for limits and matching: see `Order` for the fields."""

    turn: NDArray[np.int64]
    rank: Rows
    n_undecided: int


@dataclass(frozen=True, slots=True, eq=False)
class Order:
    """The orders of the detections.

    Parameters
    ----------
    rows : (n,) evaluated detections, by class and rank
    off : (K + 1,) where each class begins
    listed : (n,) the same before the sort by score, all classes together
    turn : (D,) position in the matching order of image and class
    rank : (D,) int32, rank for the detection limit
    n_undecided : detections with tied scores that an unstable sort has ordered
    """

    rows: Rows
    off: Offsets
    listed: Rows
    turn: NDArray[np.int64]
    rank: Rows
    n_undecided: int


def match_in_order(
    truth: Truth,
    detections: Detections,
    protocol: Protocol,
    *,
    taken: bool = False,
    shared: LastValues | None = None,
) -> Matches:
    """Does `detmap.core.matching.engine.match` for any protocol; see there for `shared`."""
    shared, tables = shared or LastValues(), (truth, detections)
    ready = shared.get(
        "prepared", tables, prepared_by(protocol), lambda: prepare(*tables, protocol)
    )
    turns = shared.get(
        "turns", (ready,), _turned_by(protocol), lambda: _turns(ready.detections, protocol)
    )
    roles = read_roles(ready.truth, ready.detections, protocol, rank=turns.rank)
    some = roles.detections
    order = shared.get(
        "order",
        (ready, turns),
        (*_ordered_by(protocol), None if some is None else some.tobytes()),
        lambda: _order(ready.detections, protocol, turns, some),
    )
    places = None
    if taken:
        places = places_of(truth.image, truth.label, len(truth.images), len(truth.categories))
        places = places if ready.objects is None else places[ready.objects]
    inputs = _read_inputs(ready.truth, ready.detections, protocol, roles, order, keep=taken)
    matches, n_chosen, late = _match(inputs, _likely_pairs(tables, ready, protocol, shared), places)
    n_undecided = order.n_undecided
    if protocol.ranking.ignored == "leave":
        matches, n_undecided = _ranked_without_ignored(
            matches, ready.detections, order, late, protocol
        )
    return replace(
        matches,
        digest=shared.get("digests", tables, None, lambda: image_digests(*tables)),
        position=matches.position if ready.rows is None else ready.rows[matches.position],
        notes=distinct(
            truth.notes,
            detections.notes,
            scope_notes(truth, protocol),
            limit_notes(detections, protocol),
            missing_roles(truth, protocol),
            [*ready.notes, *_sort_notes(protocol, n_undecided, n_chosen)],
        ),
    )


def _likely_pairs(
    tables: tuple[Truth, Detections], ready: Prepared, protocol: Protocol, shared: LastValues
) -> LikelyPairs | None:
    """The pairs of the prepared tables that can reach an IoU of 0.5, if they are boxes."""
    if protocol.iou.of != "boxes":
        return None
    whole = shared.get("likely pairs", tables, None, lambda: list_pairs(*tables))
    return None if whole is None else whole.select(ready.objects, ready.rows)


def _sort_notes(protocol: Protocol, n_undecided: int, n_chosen: int) -> list[Note]:
    """Notes on results that depend on an unstable sort."""
    other = "another NumPy version or processor may give another number"
    notes = []
    if n_undecided:
        text = f"detections have tied scores, ordered by NumPy's unstable sort; {other}"
        notes.append(Note("order-undecided", text, n_undecided))
    if n_chosen:
        text = (
            "detections overlap two objects equally, and NumPy's unstable sort chose one; " + other
        )
        if protocol.matching.equal == "index":
            text = (
                "detections overlap two objects equally; the reference chooses by its own index, "
                "detmap chooses the last in file order, so the numbers may differ"
            )
        notes.append(Note("choice-undecided", text, n_chosen))
    return notes


def _turned_by(protocol: Protocol) -> tuple[object, ...]:
    """The rules that `_turns` reads."""
    matching, limits = protocol.matching, protocol.limits
    return matching.order, matching.sort, limits.scope, limits.order, number_of(protocol)


def _turns(detections: Detections, protocol: Protocol) -> Turns:
    """The orders for limits and matching, before any detection is removed."""
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
            rows, off = group_images(image, n_images)
        else:
            rows = group(image, label, n_images, n_classes)[0]
            off = runs(image[rows], label[rows])
        placed, n = sort_lists(score, rows, off, sort)
        return placed, off, n

    turn: NDArray[np.int64] = np.arange(len(image), dtype=np.int64)
    if own:
        placed, off, n_undecided = sorted_lists(matching.order == "image")
        turn[placed] = np.arange(len(image))
    if limits.scope == "dataset":
        return Turns(turn, rank_in_dataset(detections, protocol), n_undecided)
    rank = np.zeros(len(image), dtype=np.int32)
    if limits.order == "input":
        placed, off = group_images(image, n_images)
        if limits.scope == "class":
            placed = group(image, label, n_images, n_classes)[0]
            off = runs(image[placed], label[placed])
    elif matching.order != limits.scope:  # else the same lists
        placed, off, _ = sorted_lists(limits.scope == "image")
    rank[placed] = np.arange(len(image)) - np.repeat(off[:-1], np.diff(off))
    return Turns(turn, rank, n_undecided)


def _ordered_by(protocol: Protocol) -> tuple[object, ...]:
    """The rules that `_order` reads."""
    ranking, number = protocol.ranking, ranked_number(protocol)
    return ranking.ties, ranking.sort, ranking.of, number, protocol.matching.order == "ranking"


def _order(detections: Detections, protocol: Protocol, turns: Turns, some: Rows | None) -> Order:
    """The orders of the detections `some`."""
    turn = turns.turn
    listed = _listed(detections, protocol.ranking.ties, turn, some)
    rows, off, n = _ranked(detections, listed, protocol)
    if protocol.matching.order == "ranking":
        turn = turn.copy()
        turn[rows] = np.arange(len(rows))
    return Order(rows, off, listed, turn, turns.rank, max(n, turns.n_undecided))


def _listed(detections: Detections, ties: str, turn: NDArray[np.int64], some: Rows | None) -> Rows:
    """The rows `some` before the sort by score, by the rule `ranking.ties`."""
    image, n_images = detections.image, len(detections.images)
    listed = np.arange(len(image), dtype=np.int32) if some is None else some
    if ties == "matched":
        chosen = np.full(len(image), -1, dtype=np.int32)
        chosen[turn[listed]] = listed
        listed = chosen[chosen >= 0]
    if ties == "input":
        return listed
    if ties == "first_seen":
        n_classes = len(detections.categories)
        rows, _ = group(image, detections.label, n_images, n_classes)
        off = runs(image[rows], detections.label[rows])
        begins = np.empty(len(image), dtype=np.int32)
        begins[rows] = np.repeat(rows[off[:-1]], np.diff(off))
        return group_images(begins, len(image), listed)[0]
    return group_images(image, n_images, listed)[0]


def _ranked(detections: Detections, listed: Rows, protocol: Protocol) -> tuple[Rows, Offsets, int]:
    """Rows by class and rank, where each class begins, and how many an unstable sort ordered."""
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
    """Moves ignored detections behind the ranked list, and matches of regions last per image."""
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
    names = ("image", "rank", "position", "score", "tp", "ignored")
    columns = {each.name: getattr(matches, each.name) for each in fields(Matches)}
    columns |= {name: columns[name][moved] for name in names}
    columns["taken"] = None if matches.taken is None else matches.taken.take(moved)
    return vouched(Matches, **columns), n


@dataclass(frozen=True, slots=True, eq=False)
class _Inputs:
    """The inputs of the matching rules.

    Parameters
    ----------
    objects : in matching order
    counted : (G,) uint64, subsets in which an object counts as ground truth
    flags : (G,) whether it counts in any, before ``matching.flags = "repeated"``
    regional : (G,) whether it is a group-of region
    keep : whether to keep the assignments
    """

    truth: Truth
    detections: Detections
    protocol: Protocol
    roles: Roles
    order: Order
    objects: ObjectColumns
    counted: NDArray[np.uint64]
    flags: NDArray[np.bool_]
    regional: NDArray[np.bool_]
    keep: bool

    def needs_passes(self) -> bool:
        """Whether a rule needs one pass per threshold."""
        matching = self.protocol.matching
        return (
            matching.prefer == "to_find"
            or matching.equal.startswith("sorted")
            or matching.flags == "repeated"
            or bool(self.regional.any())
        )


def _match(
    inputs: _Inputs, likely: LikelyPairs | None, places: Rows | None
) -> tuple[Matches, int, Rows]:
    """The matches, not checked, without digests and notes; the number of choices by an unstable
    sort, and (D,) regions found, from 1.
    """
    truth, detections, protocol = inputs.truth, inputs.detections, inputs.protocol
    roles, order, objects, rows = inputs.roles, inputs.order, inputs.objects, _start(inputs)
    pairs = find_candidates(truth, detections, protocol, (order.rows, order.turn), objects, likely)
    late: Rows = np.zeros(len(detections), dtype=np.int32)
    n_chosen = count_equally_near(pairs) if protocol.matching.equal == "index" else 0
    thresholds = effective_thresholds(protocol)
    if inputs.needs_passes():
        kept = []
        for t in range(len(thresholds)):
            assigned, n = _match_threshold(inputs, pairs, rows, t, late)
            kept += assigned
            n_chosen = max(n_chosen, n)
    else:
        kept = [_run_kernel(inputs, pairs, rows, thresholds)]
    gathered = None if places is None else gather(kept, places[objects.row], rows.tp)
    matches = make_matches(
        truth,
        protocol,
        roles,
        (objects, rows, inputs.counted, gathered),
        digest=np.zeros((len(truth.images), 2), dtype=np.uint64),
        beyond=roles.beyond,
        notes=(),
    )
    return matches, n_chosen, late


def _read_inputs(
    truth: Truth,
    detections: Detections,
    protocol: Protocol,
    roles: Roles,
    order: Order,
    *,
    keep: bool,
) -> _Inputs:
    """The objects in matching order, by the rules `matching.equal` and `matching.flags`."""
    from detmap.kernels.cells import ObjectColumns

    obj_rows, off = group(
        truth.image, truth.label, len(truth.images), len(truth.categories), roles.objects
    )
    counted = roles.find[obj_rows]
    if protocol.matching.equal == "first_to_find":  # counted objects first
        keys = (counted == 0, truth.image[obj_rows], truth.label[obj_rows])
        obj_rows = obj_rows[np.lexsort(keys)]
    find = roles.find[obj_rows]
    flags = find != 0
    if protocol.matching.flags == "repeated":  # ignored objects match as others do
        find = counted = np.full_like(find, np.uint64(2**64 - 1))
    objects = ObjectColumns(
        off, obj_rows, truth.image[obj_rows], find, roles.absorb[obj_rows], roles.enough[obj_rows]
    )
    regional = find_regions(truth, protocol)[obj_rows]
    return _Inputs(
        truth, detections, protocol, roles, order, objects, counted, flags, regional, keep
    )


def _start(inputs: _Inputs) -> Verdicts:
    """Match results before matching: ignored in the subsets that exclude a detection."""
    from detmap.kernels.cells import Verdicts

    order, detections, roles = inputs.order, inputs.detections, inputs.roles
    rows, word = order.rows, word_of(inputs.protocol)
    tp, ignored = (blank((len(rows), roles.n_subsets), word) for _ in range(2))
    full = word(2 ** len(inputs.protocol.thresholds()) - 1)
    if roles.outside.any():
        outside, bit = roles.outside[rows], roles.outside.dtype.type
        for a in range(roles.n_subsets):
            ignored[:, a] = ((outside >> bit(a)) & bit(1)).astype(word) * full
    return Verdicts(
        order.off,
        reordered(detections.image, rows),
        reordered(order.rank, rows),
        rows,
        reordered(detections.score, rows).view(np.uint64),
        tp,
        ignored,
    )


def _match_threshold(
    inputs: _Inputs, pairs: Candidates, rows: Verdicts, t: int, late: Rows
) -> tuple[list[Takings], int]:
    """Matches at one threshold; gives the assignments and the number of unstable choices."""
    protocol, objects = inputs.protocol, inputs.objects
    threshold, word = effective_thresholds(protocol)[[t]], word_of(protocol)
    needed = np.minimum(objects.enough, threshold[0])
    regional, reached = inputs.regional[pairs.object], pairs.reach(needed)
    # Only best_any chooses before it compares. Under best_free, an object that this threshold
    # excludes is no candidate: the pairs listed for a lower threshold must not change this one.
    best_first = protocol.matching.rule == "best_any" and protocol.iou.tolerance > 0
    best_first &= protocol.matching.prefer == "overlap"
    mine, n_chosen = _choose(inputs, pairs.take(~regional & (reached | best_first)))
    mine = mine.take(mine.reach(needed))
    empty = np.zeros((2, *rows.tp.shape), dtype=np.uint16)
    part = rows._replace(tp=empty[0], ignored=empty[1])
    part.ignored[:] = (rows.ignored >> word(t)) & word(1)
    if protocol.matching.flags == "repeated":
        mine = _ignore_flagged(inputs, mine, part)
    assigned = _run_kernel(inputs, mine, part, threshold)
    in_region = match_regions(pairs.take(regional & reached), part, objects.find, late)
    tp, ignored = rows.tp, rows.ignored
    tp |= part.tp.astype(word) << word(t)
    ignored &= ~(word(1) << word(t))
    ignored |= part.ignored.astype(word) << word(t)
    kept = [
        each._replace(words=each.words.astype(word) << word(t)) for each in (assigned, in_region)
    ]
    return kept, n_chosen


def _choose(inputs: _Inputs, pairs: Candidates) -> tuple[Candidates, int]:
    """The rules `matching.prefer` and `matching.equal`; the functions cite their sources."""
    protocol, objects, order = inputs.protocol, inputs.objects, inputs.order
    if protocol.matching.prefer == "to_find":
        pairs = prefer_counted(pairs, objects.find)
    if protocol.matching.equal == "sorted":
        turn = order.turn[order.rows]
        return sort_image(pairs, turn, objects.row, objects.image, number_of(protocol))
    if protocol.matching.equal == "sorted_own":
        return sort_own(pairs, (inputs.truth, inputs.detections, protocol), order.rows, objects.row)
    return pairs, 0


def _ignore_flagged(inputs: _Inputs, pairs: Candidates, part: Verdicts) -> Candidates:
    """The rule ``matching.flags = "repeated"``: ignores detections, drops their pairs."""
    excused = find_excused(
        pairs,
        inputs.detections,
        inputs.order.rows,
        (inputs.truth, inputs.objects.row, inputs.flags),
    )
    part.ignored[pairs.detection[excused]] = 1
    return pairs.take(~excused)


def _run_kernel(
    inputs: _Inputs, pairs: Candidates, rows: Verdicts, thresholds: NDArray[np.float64]
) -> Takings:
    """Runs the kernel of `matching.rule`; writes the match results, gives the assignments."""
    from detmap.kernels import match as kernels

    matching, objects = inputs.protocol.matching, inputs.objects
    cell: Offsets = np.zeros((0, 2), dtype=np.int64)
    if matching.neutral_when == "none_free":
        off = runs(inputs.truth.label[objects.row], objects.image)
        cell = np.repeat(np.stack([off[:-1], off[1:]], axis=1), np.diff(off), axis=0)
    n_subsets, word = rows.tp.shape[1], rows.tp.dtype
    judging = kernels.Judging(
        thresholds,
        int(matching.equal not in ("last", "index")),
        objects.find,
        objects.absorb,
        objects.enough,
        inputs.roles.dropped,
        np.zeros((len(objects.row), n_subsets), dtype=word),
        cell,
    )
    n, buffer = pairs.buffer()
    walk = kernels.walk(n_subsets, int(np.diff(buffer.off).max(initial=0)))
    takings = kernels.empty_takings(len(pairs.object) if inputs.keep else 0, n_subsets, word)
    rule = kernels.best_free if matching.rule == "best_free" else kernels.best_any
    n_taken = rule(n, buffer, judging, rows, takings, walk)
    kept = kernels.Takings._make(column[:n_taken] for column in takings)
    return _restore_overlaps(kept, objects.absorb, inputs.protocol)


def _restore_overlaps(takings: Takings, absorb: NDArray[np.uint64], protocol: Protocol) -> Takings:
    """Undoes the decrement of `Candidates.buffer` in the overlaps of ignored regions."""
    if protocol.iou.absorb != ">" or protocol.iou.comparison == ">":
        return takings
    words = absorb[takings.object]
    subsets = np.uint64(1) << np.arange(takings.words.shape[1], dtype=np.uint64)
    absorbs = (words[:, None] & subsets) != 0
    absorbed = ((takings.words != 0) & absorbs).any(axis=1)
    larger = np.nextafter(takings.overlap, np.inf)
    return takings._replace(overlap=np.where(absorbed, larger, takings.overlap))
