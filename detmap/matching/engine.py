"""Truth + Detections + Protocol -> Matches: the step that judges."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from detmap.base import memory
from detmap.base.immutable import blank, vouched
from detmap.base.parallel import each_batch
from detmap.errors import DataError
from detmap.matching.assignments import gathered
from detmap.matching.matches import Matches, distinct
from detmap.matching.matches_checks import effective_thresholds as effective_thresholds
from detmap.matching.matches_checks import least_overlap, word_of
from detmap.matching.roles import Roles, missing_roles, read_roles
from detmap.matching.scope import clipped, scope_notes
from detmap.overlaps import producer
from detmap.protocol import Protocol
from detmap.tables import Detections, Truth, require_truth_of
from detmap.tables.digests import image_digests
from detmap.tables.grouping import group, labels, offsets, places_of

if TYPE_CHECKING:
    from detmap.kernels.cells import DetectionColumns, ObjectColumns
    from detmap.kernels.match import Takings


def match(
    truth: Truth,
    detections: Detections,
    protocol: Protocol,
    *,
    threads: int | None = None,
    taken: bool = False,
) -> Matches:
    """Judge every detection in every subset and at every threshold of the protocol.

    Parameters
    ----------
    truth, detections : tables of the same images and classes (`detections` was read against
        `truth`)
    protocol : the rules
    threads : how many to use; all processors when left out. The result does not depend on it.
    taken : whether to keep who took what, `Matches.taken`

    Raises
    ------
    DataError : an attribute or image size that the protocol asks for and the truth lacks; boxes so
        small that their overlap is 0/0
    """
    for name, value, kind in (
        ("truth", truth, Truth),
        ("detections", detections, Detections),
        ("protocol", protocol, Protocol),
    ):
        if not isinstance(value, kind):
            what = f"a {type(value).__name__} where {name} is needed"
            raise DataError(f"match: {name}", what, "give truth, detections, protocol")
    require_truth_of(detections, truth)
    truth, detections = clipped(truth, detections, protocol)  # so digests see the images' sizes
    if not protocol.uses_default_order():
        from detmap.matching.general_engine import match_in_order

        return match_in_order(truth, detections, protocol, taken=taken)
    roles = read_roles(truth, detections, protocol, threads)
    return judge(truth, detections, protocol, roles, threads=threads, taken=taken)


def judge(
    truth: Truth,
    detections: Detections,
    protocol: Protocol,
    roles: Roles,
    *,
    threads: int | None = None,
    taken: bool = False,
) -> Matches:
    """`match`, where the roles are known already."""
    from detmap.kernels import cells as layout
    from detmap.kernels import match as kernels

    rule = kernels.best_free if protocol.matching.rule == "best_free" else kernels.best_any
    thresholds, word = effective_thresholds(protocol), word_of(protocol)
    n_images, n_subsets = len(truth.images), roles.n_subsets
    columns, objects = kernel_columns(truth, detections, protocol, roles)
    produce = producer(truth, detections, objects, protocol, least_overlap(protocol))
    limit = protocol.max_dets()[-1]
    off = _offsets_within(columns, limit)
    n_rows = int(off[-1])
    memory.require(
        n_rows * (20 + 2 * n_subsets * np.dtype(word).itemsize)
        + len(truth) * n_subsets * np.dtype(word).itemsize
        + 24 * int(np.diff(columns.off).max(initial=0)),
        "match",
        f"matching {n_rows} detections",
    )
    image, rank, position = (blank(n_rows, np.int32) for _ in range(3))
    tp, ignored = (blank((n_rows, n_subsets), word) for _ in range(2))
    score = blank(n_rows, np.float64)
    verdicts = layout.Verdicts(off, image, rank, position, score.view(np.uint64), tp, ignored)
    judging = kernels.Judging(
        thresholds,
        int(protocol.matching.equal == "first"),
        objects.find,
        objects.absorb,
        objects.enough,
        roles.dropped,
        np.zeros((len(truth), n_subsets), dtype=word),
        np.zeros((0, 2), dtype=np.int64),
    )
    sizes, obj_sizes = np.diff(columns.off), np.diff(objects.off)
    kept: list[Takings] = []

    def match_some(classes: NDArray[np.int32]) -> None:
        n_found, n_objects = int(sizes[classes].sum()), int(obj_sizes[classes].sum())
        cells = layout.Cells(
            np.empty(n_found, dtype=np.int32),
            np.empty((min(n_found, n_objects), 4), dtype=np.int64),
        )
        ranking = layout.ranking(n_images, int(sizes[classes].max()), roles.outside)
        n_cells = layout.lay_out(
            classes, columns, objects, limit, len(thresholds), verdicts, cells, ranking
        )
        largest = int((cells.bounds[:n_cells, 3] - cells.bounds[:n_cells, 2]).max(initial=0))
        walk = kernels.walk(n_subsets, 2 * largest)
        for n, pairs in produce(cells, n_cells, position):
            takings = kernels.empty_takings(int(pairs.off[n]) if taken else 0, n_subsets, word)
            n_taken = rule(n, pairs, judging, verdicts, takings, walk)
            if taken:
                kept.append(kernels.Takings._make(column[:n_taken].copy() for column in takings))

    digest = each_batch(match_some, sizes, threads, beside=lambda: image_digests(truth, detections))
    cut = np.ones(len(detections), dtype=bool)
    cut[position] = False
    beyond = np.bincount(detections.image[cut], minlength=n_images) - roles.unjudged
    return vouched(
        Matches,
        protocol=protocol,
        categories=truth.categories,
        image_ids=truth.images.ids,
        digest=digest,
        beyond=beyond.astype(np.int32),
        off=off,
        image=image,
        rank=rank,
        position=position,
        score=score,
        tp=tp,
        ignored=ignored,
        obj_off=objects.off,
        obj_image=objects.image,
        counted=_flags(objects.find, n_subsets),
        unjudged=roles.unjudged,
        notes=distinct(
            truth.notes,
            detections.notes,
            scope_notes(truth, protocol),
            missing_roles(truth, protocol),
        ),
        taken=gathered(kept, _places(truth)[objects.row], tp) if taken else None,
    )


def _places(truth: Truth) -> NDArray[np.int32]:
    """(G,) the place of each object among those of its image and class."""
    return places_of(truth.image, truth.label, len(truth.images), len(truth.categories))


def match_images(
    truth: Truth,
    detections: Detections,
    protocol: Protocol,
    images: NDArray[np.int32],
    *,
    taken: bool = False,
) -> Matches:
    """`match` on some of the images, given by their positions: the rows of
    ``match(...).select(ids)``, for less work.
    """
    images = np.unique(images)
    rows = np.flatnonzero(np.isin(detections.image, images))
    part = match(
        truth.select_images(images), detections.select_images(images, rows), protocol, taken=taken
    )
    return replace(part, position=rows.astype(np.int32)[part.position])


def kernel_columns(
    truth: Truth, detections: Detections, protocol: Protocol, roles: Roles
) -> tuple[DetectionColumns, ObjectColumns]:
    """Both tables as the kernels read them."""
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


def _offsets_within(columns: DetectionColumns, limit: int) -> NDArray[np.int64]:
    """(K + 1,) where each class begins when only what is within the limit is kept."""
    from detmap.kernels.cells import count_within

    n_classes = len(columns.off) - 1
    if len(columns.rank):
        return offsets(labels(columns.off)[columns.rank[columns.rows] < limit], n_classes)
    kept = np.empty(n_classes, dtype=np.int64)
    count_within(columns.image, columns.rows, columns.off, limit, kept)
    return np.concatenate([[0], np.cumsum(kept)]).astype(np.int64)


def _flags(words: NDArray[np.uint64], n_subsets: int) -> NDArray[np.bool_]:
    """(n, A) the bits of (n,) words."""
    flags = np.empty((len(words), n_subsets), dtype=bool)
    for a in range(n_subsets):
        flags[:, a] = words & np.uint64(1 << a)
    return flags
