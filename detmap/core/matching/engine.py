"""The fast engine: Truth + Detections + Protocol -> Matches."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from detmap.core.base import memory
from detmap.core.base.immutable import blank, vouched
from detmap.core.base.last_values import LastValues
from detmap.core.base.parallel import Workers
from detmap.core.matching.class_thresholds import reach_own
from detmap.core.matching.matches import Matches, distinct
from detmap.core.matching.matches_checks import effective_thresholds as effective_thresholds
from detmap.core.matching.matches_checks import least_overlap, word_of
from detmap.core.matching.roles import Roles, missing_roles, read_roles
from detmap.core.matching.scope import clipped, noted_upright, scope_notes
from detmap.core.matching.score_rules import limit_notes, rescored
from detmap.core.matching.undigested import Undigested
from detmap.core.overlaps import producer
from detmap.core.protocol import Protocol
from detmap.core.tables import Detections, Note, Truth, grouping, require_truth_of
from detmap.core.tables.digests import image_digests
from detmap.core.tables.grouping import group, places_of
from detmap.errors import DataError, ProtocolError

if TYPE_CHECKING:
    from detmap.core.matching.assignments import Assignments
    from detmap.kernels.cells import DetectionColumns, ObjectColumns, Verdicts
    from detmap.kernels.match import Takings
    from detmap.kernels.pairs import Pairs


LARGE = 100_000
"""Detections from which on memory of scratch arrays is given back: before and after the matching,
and at once after a batch. Results of other classes are not written then, so both are never there
together."""


def match(
    truth: Truth,
    detections: Detections,
    protocol: Protocol,
    *,
    threads: int | None = None,
    taken: bool = False,
    shared: LastValues | None = None,
    digested: bool = True,
) -> Matches:
    """Matches every detection in every subset and at every threshold of the protocol.

    Parameters
    ----------
    truth, detections : tables of the same images and classes; ``classes`` of the protocol renames
        them first
    protocol : the rules
    threads : number of threads (default: all processors); has no effect on the result
    taken : whether to keep the assignments, `Matches.taken`
    shared : keeps what the next protocol may need again, for the same tables
    digested : whether to compute the digests of the images now, beside the matching; else they are
        computed when they are first read, and the tables are kept for it

    Raises
    ------
    DataError : a missing attribute or image size; boxes with an IoU of 0/0
    """
    for name, value, kind in (
        ("truth", truth, Truth),
        ("detections", detections, Detections),
        ("protocol", protocol, Protocol),
    ):
        if not isinstance(value, kind):
            what = f"a {type(value).__name__}, not {kind.__name__}"
            raise DataError(f"match: {name}", what, "give truth, detections, protocol")
    if protocol.evaluation.rule != "matching":
        raise ProtocolError(
            f"protocol {protocol.name}",
            f"evaluation.rule {protocol.evaluation.rule} has no matches at IoU thresholds",
            "use `detmap.evaluate` or `detmap eval`",
        )
    truth, detections = prepare(truth, detections, protocol)
    if protocol.boxes.aspect or protocol.detections.margins:
        from detmap.core.matching.subset_by_subset import match_subsets

        return match_subsets(truth, detections, protocol, threads=threads, taken=taken)
    detections = rescored(detections, protocol)
    if not protocol.uses_default_order():
        from detmap.core.matching.general_engine import match_in_order

        return match_in_order(truth, detections, protocol, taken=taken, shared=shared)
    roles = read_roles(truth, detections, protocol, threads)
    how: dict[str, Any] = {"threads": threads, "taken": taken, "shared": shared}
    return judge(truth, detections, protocol, roles, **how, digested=digested)


def prepare(truth: Truth, detections: Detections, protocol: Protocol) -> tuple[Truth, Detections]:
    """Returns the tables with the protocol's classes and boxes, before scores are changed."""
    truth, detections = protocol.classes.rename(truth, detections)
    require_truth_of(detections, truth)
    return clipped(noted_upright(truth, protocol), detections, protocol)


def judge(
    truth: Truth,
    detections: Detections,
    protocol: Protocol,
    roles: Roles,
    *,
    threads: int | None = None,
    taken: bool = False,
    shared: LastValues | None = None,
    digested: bool = True,
) -> Matches:
    """Does `match` with known roles."""
    tables = truth, detections

    def digest_images() -> NDArray[np.uint64] | None:
        return digests(tables, shared) if digested else None

    with Workers(len(detections), threads) as workers:
        digest = workers.start(digest_images)  # beside what follows
        objects, rows, cut, assigned = match_cells(
            truth, detections, protocol, roles, workers, taken=taken
        )
        if len(detections) > LARGE:
            memory.give_back(
                "matching"
            )  # the scratch arrays of all threads: the curves need others
        return make_matches(
            truth,
            protocol,
            roles,
            (objects, rows, objects.find, assigned),
            digest=digest(),
            tables=tables,
            beyond=roles.beyond + cut,
            notes=distinct(
                truth.notes,
                detections.notes,
                scope_notes(truth, protocol),
                limit_notes(detections, protocol),
                missing_roles(truth, protocol),
            ),
        )


def match_cells(
    truth: Truth,
    detections: Detections,
    protocol: Protocol,
    roles: Roles,
    workers: Workers,
    *,
    taken: bool = False,
) -> tuple[ObjectColumns, Verdicts, NDArray[np.int32], Assignments | None]:
    """Returns the objects in the kernels' layout, the match results, (I,) the detections beyond the
    limit of their class, and the assignments if requested.
    """
    from detmap.kernels import cells as layout
    from detmap.kernels import match as kernels

    rule = kernels.best_free if protocol.matching.rule == "best_free" else kernels.best_any
    n_images, n_subsets, word = len(truth.images), roles.n_subsets, word_of(protocol)
    columns, objects = kernel_columns(truth, detections, protocol, roles)
    produce = producer(truth, detections, objects, protocol, least_overlap(protocol))
    limit = protocol.max_dets()[-1]
    cut = np.zeros(n_images, dtype=np.int32)
    off = _offsets_within(columns, limit, cut)
    rows = _allocate(columns, off, len(truth), n_subsets, word)
    judging = kernels.Judging(
        effective_thresholds(protocol),
        int(protocol.matching.equal == "first"),
        objects.find,
        objects.absorb,
        objects.enough,
        roles.dropped,
        np.zeros((len(truth), n_subsets), dtype=word),
        np.zeros((0, 2), dtype=np.int64),
    )
    sizes, obj_sizes = grouping.sizes(columns.off), grouping.sizes(objects.off)
    kept: list[Takings] = []

    def match_some(classes: NDArray[np.int32]) -> None:
        n_found, n_objects = int(sizes[classes].sum()), int(obj_sizes[classes].sum())
        cells = layout.Cells(
            np.empty(n_found, dtype=np.int32),
            np.empty((min(n_found, n_objects), 4), dtype=np.int64),
        )
        ranking = layout.ranking(n_images, int(sizes[classes].max()), roles.outside)
        n_cells = layout.lay_out(
            classes, columns, objects, limit, len(judging.thresholds), rows, cells, ranking
        )
        largest = int((cells.bounds[:n_cells, 3] - cells.bounds[:n_cells, 2]).max(initial=0))
        walk = kernels.walk(n_subsets, 2 * largest)
        for n, pairs in produce(cells, n_cells, rows.position):
            if protocol.iou.classes:
                pairs = _reaching_own(n, pairs, objects.enough)
            takings = kernels.empty_takings(int(pairs.off[n]) if taken else 0, n_subsets, word)
            n_taken = rule(n, pairs, judging, rows, takings, walk)
            if taken:
                kept.append(kernels.Takings._make(column[:n_taken].copy() for column in takings))
        if n_found > LARGE:
            del cells, ranking
            memory.give_back("largest class")

    workers.each_batch(match_some, sizes)
    return objects, rows, cut, _assignments(kept, truth, objects, rows) if taken else None


def _assignments(
    kept: list[Takings], truth: Truth, objects: ObjectColumns, rows: Verdicts
) -> Assignments:
    """The assignments, with positions of objects in their image and class."""
    from detmap.core.matching.assignments import gather

    places = places_of(truth.image, truth.label, len(truth.images), len(truth.categories))
    return gather(kept, places[objects.row], rows.tp)


def digests(tables: tuple[Truth, Detections], shared: LastValues | None) -> NDArray[np.uint64]:
    """(I, 2) the digests of each image, shared by all protocols."""
    kept = shared or LastValues()
    return kept.get("digests", tables, None, lambda: image_digests(*tables))


def _reaching_own(n: int, pairs: Pairs, needed: NDArray[np.float64]) -> Pairs:
    """The pairs of n detections that reach the threshold of their class; see `iou.classes`."""
    size = int(pairs.off[n])
    kept = reach_own(pairs.overlap[:size], needed[pairs.object[:size]])
    off = np.concatenate([[0], np.cumsum(kept)])[pairs.off[: n + 1]]
    return pairs._replace(
        off=off,
        object=pairs.object[:size][kept],
        overlap=pairs.overlap[:size][kept],
        absorbing=pairs.absorbing[:size][kept],
    )


def _allocate(
    columns: DetectionColumns, off: NDArray[np.int64], n_objects: int, n_subsets: int, word: type
) -> Verdicts:
    """Empty columns of match results for the detections within the limit."""
    from detmap.kernels.cells import Verdicts

    n_rows, size = int(off[-1]), n_subsets * np.dtype(word).itemsize
    memory.require(
        n_rows * (20 + 2 * size)
        + n_objects * size
        + 24 * int(grouping.sizes(columns.off).max(initial=0)),
        "match",
        f"matching {n_rows} detections",
    )
    if n_rows > LARGE:
        memory.give_back("preparation")
    image, rank, position = (blank(n_rows, np.int32) for _ in range(3))
    score = blank(n_rows, np.float64).view(np.uint64)
    tp, ignored = (blank((n_rows, n_subsets), word) for _ in range(2))
    return Verdicts(off, image, rank, position, score, tp, ignored)


def match_images(
    truth: Truth,
    detections: Detections,
    protocol: Protocol,
    images: NDArray[np.int32],
    *,
    threads: int | None = None,
    taken: bool = False,
) -> Matches:
    """Returns ``match(...).select(ids)`` for images given by position, with less work."""
    images = np.unique(images)
    rows = np.flatnonzero(np.isin(detections.image, images))
    some = truth.select_images(images), detections.select_images(images, rows)
    part = match(*some, protocol, threads=threads, taken=taken)
    return replace(part, position=rows.astype(np.int32)[part.position])


def kernel_columns(
    truth: Truth, detections: Detections, protocol: Protocol, roles: Roles
) -> tuple[DetectionColumns, ObjectColumns]:
    """Returns both tables in the kernels' layout."""
    from detmap.kernels import cells as layout

    n_images, n_classes = len(truth.images), len(truth.categories)
    some = roles.detections
    rows, row_off = group(detections.image, detections.label, n_images, n_classes, some)
    ties = rows
    if protocol.ranking.ties == "input":
        ties = group(None, detections.label, n_images, n_classes, some)[0]
    obj_rows, obj_off = group(truth.image, truth.label, n_images, n_classes, roles.objects)
    return layout.DetectionColumns(
        rows,
        ties,
        row_off,
        detections.image,
        detections.score.view(np.uint64),
        roles.outside,
        roles.dropped,
        roles.rank,
    ), layout.ObjectColumns(
        obj_off,
        obj_rows,
        truth.image[obj_rows],
        roles.find[obj_rows],
        roles.absorb[obj_rows],
        roles.enough[obj_rows],
    )


def make_matches(
    truth: Truth,
    protocol: Protocol,
    roles: Roles,
    columns: tuple[ObjectColumns, Verdicts, NDArray[np.uint64], Assignments | None],
    *,
    digest: NDArray[np.uint64] | None,
    tables: tuple[Truth, Detections] | None = None,
    beyond: NDArray[np.int32],
    notes: tuple[Note, ...],
) -> Matches:
    """Returns the matches of filled columns; the kernels guarantee what `Matches` would check.

    columns : objects, match results, (G,) the subsets in which each object counts, and the
        assignments
    digest, tables : the digests; None if they shall be computed from the tables when they are read
    """
    objects, rows, counted, assigned = columns
    return vouched(
        Undigested if digest is None else Matches,
        **{"tables": tables} if digest is None else {"digest": digest},
        protocol=protocol,
        categories=truth.categories,
        image_ids=truth.images.ids,
        beyond=beyond,
        off=rows.off,
        image=rows.image,
        rank=rows.rank,
        position=rows.position,
        score=rows.score_bits.view(np.float64),
        tp=rows.tp,
        ignored=rows.ignored,
        obj_off=objects.off,
        obj_image=objects.image,
        counted=_flags(counted, roles.n_subsets),
        unjudged=roles.unjudged,
        notes=notes,
        taken=assigned,
    )


def _offsets_within(
    columns: DetectionColumns, limit: int, cut: NDArray[np.int32]
) -> NDArray[np.int64]:
    """(K + 1,) where each class begins, within the limit; adds to `cut` (I,) what is beyond it."""
    from detmap.kernels.cells import count_within

    if len(columns.rank):  # `scope.look` has left out what is beyond it
        return columns.off
    kept = np.empty(len(columns.off) - 1, dtype=np.int64)
    count_within(columns.image, columns.rows, columns.off, limit, kept, cut)
    off = np.zeros(len(columns.off), dtype=np.int64)
    np.cumsum(kept, out=off[1:])
    return off


def _flags(words: NDArray[np.uint64], n_subsets: int) -> NDArray[np.bool_]:
    """(n, A) the bits of (n,) words."""
    flags = np.empty((len(words), n_subsets), dtype=bool)
    for a in range(n_subsets):
        flags[:, a] = words & np.uint64(1 << a)
    return flags
