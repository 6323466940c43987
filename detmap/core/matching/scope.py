"""Scope: which rows are evaluated (detection limits, annotated classes, empty boxes)."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.core.base.parallel import each_batch
from detmap.core.matching.subsets import measure
from detmap.core.protocol import Protocol
from detmap.core.tables import ABSENT, Detections, Note, Scope, Truth
from detmap.core.tables.grouping import group_images
from detmap.core.tables.transforms import clip_boxes, with_box_areas
from detmap.errors import DataError

NO_RANK, NO_FLAGS = np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.uint8)
UNLISTED, LENIENT = 1, 2  # bits, as in detmap.kernels.scope


class Looked(NamedTuple):
    """The evaluated detections.

    Parameters
    ----------
    rows : (n,) int32, ascending; None for all within the limit
    rank : (D,) int32, rank for the limit; (0,) if it is the rank in image and class
    lenient : (D,) bool, whether an unmatched detection is ignored; (0,) if none is
    unjudged : (I,) int32, excluded detections within the limit
    beyond : (I,) int32, detections beyond the limit; 0 if it is per image and class
    """

    rows: NDArray[np.int32] | None
    rank: NDArray[np.int32]
    lenient: NDArray[np.bool_]
    unjudged: NDArray[np.int32]
    beyond: NDArray[np.int32]


def objects_that_take_part(truth: Truth, protocol: Protocol) -> NDArray[np.int32] | None:
    """(n,) int32, the evaluated rows of the ground truth; None for all."""
    absent = find_absent(truth, protocol)
    if protocol.boxes.empty == "drop":
        absent |= ~(truth.area > 0)
    elif not absent.any():
        return None
    return np.flatnonzero(~absent).astype(np.int32)


def find_absent(truth: Truth, protocol: Protocol) -> NDArray[np.bool_]:
    """(G,) whether an object has a role that the protocol treats as absent."""
    absent = np.zeros(len(truth), dtype=bool)
    for role, what in protocol.matching.neutral:
        if what == "absent":
            absent |= truth.role(role)
    return absent


def look(
    truth: Truth,
    objects: NDArray[np.int32] | None,
    detections: Detections,
    protocol: Protocol,
    threads: int | None = None,
    rank: NDArray[np.int32] | None = None,
) -> Looked:
    """Applies the limit, then excludes detections of classes not annotated or without an area.

    `objects` are the rows of `objects_that_take_part`; `rank` is the rank for the limit, if known.
    Source: lvis/results.py, limit_dets_per_image; lvis/eval.py, _prepare.
    """
    n_images = len(truth.images)
    none = np.zeros((2, n_images), dtype=np.int32)
    listed = _listed(truth, protocol)
    drops = protocol.scope.unlisted != "judge" and listed is not None
    lenient = protocol.scope.not_exhaustive == "neutral" and listed is not None
    cut = protocol.limits.scope != "class" or protocol.limits.order == "input" or rank is not None
    empty = protocol.boxes.empty == "drop"
    if not (drops or lenient or cut or empty):
        return Looked(None, NO_RANK, NO_FLAGS.astype(bool), *none)
    order, off = group_images(detections.image, n_images)
    kinds = NO_FLAGS
    if listed is not None and (drops or lenient):
        kinds = _kinds(truth, listed, objects, detections, (order, off), threads)
    soft = kinds & LENIENT != 0 if lenient else NO_FLAGS.astype(bool)
    if not (drops or cut or empty):
        return Looked(None, NO_RANK, soft, *none)
    if rank is None and protocol.limits.scope == "dataset":
        rank = rank_in_dataset(detections, protocol)
    elif rank is None:
        rank = _rank(detections, len(truth.categories), protocol, (order, off), threads)
    within = rank < protocol.max_dets()[-1]
    keep = within
    if drops:
        keep = keep & (kinds & UNLISTED == 0)
    if empty:
        shapes = detections.shapes if protocol.iou.of != "boxes" else None
        own = measure("area", detections.boxes, detections.box_format, protocol)
        keep = keep & ((own if shapes is None else shapes.area) > 0)
    unjudged, beyond = (
        np.bincount(detections.image[rows], minlength=n_images).astype(np.int32)
        for rows in (within & ~keep, ~within)
    )
    return Looked(np.flatnonzero(keep).astype(np.int32), rank, soft, unjudged, beyond)


def rank_in_dataset(detections: Detections, protocol: Protocol) -> NDArray[np.int32]:
    """(D,) rank of each detection in its class over all images, by score or in file order.

    Source: GLIP lvis_eval.py, LvisEvaluatorFixedAP: a stable sort, earlier ones of equal scores.
    """
    label, by_score = detections.label, protocol.limits.order == "score"
    keys = (-detections.score, label) if by_score else (label,)
    order, rank = np.lexsort(keys), np.empty(len(label), dtype=np.int32)
    begins = np.concatenate([[0], np.cumsum(np.bincount(label))])
    rank[order] = np.arange(len(label)) - begins[label[order]]
    return rank


def _listed(truth: Truth, protocol: Protocol) -> Scope | None:
    """The annotated pairs; under ``positive`` without those that are known to be absent."""
    scope = truth.scope
    if protocol.scope.unlisted != "positive":
        return scope
    if scope is None:
        nothing = np.zeros(0, dtype=np.int32)
        off = np.zeros(len(truth.images) + 1, dtype=np.int64)
        return Scope(off, nothing, nothing.astype(np.uint8))
    kept = scope.kind != ABSENT
    off = np.concatenate([[0], np.cumsum(kept)])[scope.off]
    return Scope(off, scope.label[kept], scope.kind[kept])


def _rank(
    detections: Detections,
    n_classes: int,
    protocol: Protocol,
    grouped: tuple[NDArray[np.int32], NDArray[np.int64]],
    threads: int | None,
) -> NDArray[np.int32]:
    """(D,) rank of each detection in its image (and class), by score or in file order."""
    from detmap.kernels import scope as kernels
    from detmap.kernels.grouping import sorter

    order, off = grouped
    rank, sizes = np.empty(len(detections), dtype=np.int32), np.diff(off)
    by_score, in_class = protocol.limits.order == "score", protocol.limits.scope == "class"
    bits = detections.score.view(np.uint64)

    def rank_some(images: NDArray[np.int32]) -> None:
        most = int(sizes[images].max())
        scratch = kernels.Ranking(
            np.empty(most, np.int32), sorter(most), np.zeros(n_classes if in_class else 0, np.int32)
        )
        kernels.rank_in_images(
            images, order, off, bits, detections.label, int(by_score), scratch, rank
        )

    each_batch(rank_some, sizes, threads)
    return rank


def _kinds(
    truth: Truth,
    scope: Scope,
    objects: NDArray[np.int32] | None,
    detections: Detections,
    grouped: tuple[NDArray[np.int32], NDArray[np.int64]],
    threads: int | None,
) -> NDArray[np.uint8]:
    """(D,) bits `UNLISTED` and `LENIENT` of each detection's image and class."""
    from detmap.kernels import scope as kernels

    order, off = grouped
    n_classes, kinds = len(truth.categories), np.empty(len(detections), dtype=np.uint8)
    obj_order, obj_off = group_images(truth.image, len(truth.images), objects)
    known = kernels.Known(obj_order, obj_off, truth.label, scope.off, scope.label, scope.kind)

    def judge_some(images: NDArray[np.int32]) -> None:
        stamps = np.full((2, n_classes), -1, dtype=np.int32)
        kernels.judge_pairs(images, order, off, detections.label, known, stamps, kinds)

    each_batch(judge_some, np.diff(off), threads)
    return kinds


def noted_upright(truth: Truth, protocol: Protocol) -> Truth:
    """Returns the ground truth with a note if its boxes are rotated and the protocol compares
    others.
    """
    instead = getattr(truth.shapes, "protocol", None)
    if protocol.iou.of != "boxes" or instead is None:
        return truth
    text = f"objects are rotated: the upright boxes around them are compared; see -p {instead}"
    note = Note("rotated-upright", text, len(truth), truth.source)
    return replace(truth, notes=(*truth.notes, note))


def scope_notes(truth: Truth, protocol: Protocol) -> list[Note]:
    """Returns a note if the protocol does not fit how the ground truth is annotated."""
    judges, scope = protocol.scope.unlisted == "judge", truth.scope
    if scope is not None and judges:
        # ImageNet DET, where classes may be not exhaustive, lists pairs of some images only.
        n_listed = len(scope) + (protocol.scope.not_exhaustive == "neutral")
        n_absent = int((scope.kind == ABSENT).sum())
        text = (
            "images are annotated for some classes only, but this protocol evaluates all classes "
            "on all images; use -p lvis or -p openimages-challenge for those benchmarks' numbers"
        )
        numbers, condition = (n_listed, n_absent), "some-listed"
        count = len(truth.images)
        return [Note("scope-unused", text, count, numbers=numbers, condition=condition)]
    if truth.scope is None and protocol.scope.unlisted == "drop":
        text = "images do not list their annotated classes; all classes are evaluated on them"
        return [Note("scope-missing", text, len(truth.images))]
    return []


def clipped(truth: Truth, detections: Detections, protocol: Protocol) -> tuple[Truth, Detections]:
    """Returns the tables with the objects' areas and boxes clipped to the images, as the protocol
    requires.

    Raises
    ------
    DataError : an image without a size
    """
    if protocol.boxes.area:
        truth = with_box_areas(truth, protocol.boxes.area)
    if protocol.boxes.clip == "no":
        return truth, detections
    images = truth.images
    width, height = (
        np.where(np.isnan(ours), theirs, ours)  # result files may have the sizes
        for ours, theirs in zip(
            (images.width, images.height),
            (detections.images.width, detections.images.height),
            strict=True,
        )
    )
    images = replace(images, width=width, height=height)
    unknown = np.isnan(width) | np.isnan(height)
    if unknown[detections.image].any():
        bad = detections.image[np.argmax(unknown[detections.image])]
        raise DataError(
            truth.source,
            f"image {images.ids[bad].item()!r} has no size, which boxes.clip needs",
            "give width and height, or set boxes.clip=no",
        )
    return (
        replace(truth, boxes=clip_boxes(truth, images), box_format="xywh"),
        replace(detections, boxes=clip_boxes(detections, images), box_format="xywh"),
    )
