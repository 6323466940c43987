"""Truth + Detections + Protocol -> Matches: the step that judges."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from detmap import memory
from detmap.matches import Matches, distinct, word_of
from detmap.parallel import each_batch
from detmap.protocol import Protocol
from detmap.rows import group
from detmap.signature import image_digests
from detmap.tables import BoxFormat, Detections, Truth, boxes_as


def match(
    truth: Truth, detections: Detections, protocol: Protocol, *, threads: int | None = None
) -> Matches:
    """Judge every detection at every area range and IoU threshold of the protocol.

    Parameters
    ----------
    truth, detections : tables of the same images and classes (`detections` was read against
        `truth`)
    protocol : the rules
    threads : how many to use; all processors when left out. The result does not depend on it.
    """
    from detmap.kernels import grouping
    from detmap.kernels import match as kernels

    rule = kernels.best_free if protocol.matching.rule == "best_free" else kernels.best_any
    inclusive = protocol.boxes.extent == "inclusive"
    native: BoxFormat = "voc" if inclusive else "xywh"
    absorb, counted = _object_roles(truth, protocol)
    areas = np.array([(area.low, area.high) for area in protocol.areas])
    n_images, n_classes, n_areas = len(truth.images), len(truth.categories), len(areas)

    by_image = protocol.ranking.ties == "image"
    rows, row_off = group(detections.image, detections.label, n_images, n_classes)
    ranked_from = rows if by_image else group(None, detections.label, n_images, n_classes)[0]
    obj_rows, obj_off = group(truth.image, truth.label, n_images, n_classes)
    found = kernels.Found(
        rows,
        ranked_from,
        row_off,
        detections.image,
        boxes_as(detections.boxes, detections.box_format, native),
        detections.score.view(np.uint64),
    )
    obj_boxes = boxes_as(truth.boxes, truth.box_format, native)
    objects = kernels.Objects(obj_rows, obj_off, truth.image, obj_boxes, absorb, counted)
    rules = kernels.Rules(
        protocol.max_dets()[-1], float(inclusive), effective_thresholds(protocol), areas
    )
    kept = np.empty(n_classes, dtype=np.int64)
    grouping.count_within(
        detections.image, rows, row_off, rules.limit, np.empty(n_images, dtype=np.int32), kept
    )
    off = np.concatenate([[0], np.cumsum(kept)]).astype(np.int64)
    row_bytes = 20 + 2 * n_areas * np.dtype(word_of(protocol)).itemsize
    memory.require(
        int(off[-1]) * row_bytes + 24 * int(np.diff(row_off).max(initial=0)),
        "match",
        f"matching {off[-1]} detections",
    )
    image, rank, position = (np.empty(off[-1], dtype=np.int32) for _ in range(3))
    tp, ignored = (np.empty((off[-1], n_areas), dtype=word_of(protocol)) for _ in range(2))
    verdicts = kernels.Verdicts(off, image, rank, position, tp, ignored)
    sizes, obj_sizes = np.diff(row_off), np.diff(obj_off)

    def match_some(classes: NDArray[np.int32]) -> None:
        room = kernels.room(
            n_images, int(obj_sizes[classes].max()), n_areas, int(sizes[classes].max())
        )
        rule(classes, found, objects, rules, verdicts, room)

    digest = each_batch(match_some, sizes, threads, beside=lambda: image_digests(truth, detections))
    beyond = np.bincount(detections.image, minlength=n_images) - np.bincount(
        image, minlength=n_images
    )
    return Matches(
        protocol,
        truth.categories,
        truth.images.ids,
        digest,
        beyond.astype(np.int32),
        off,
        image,
        rank,
        position,
        detections.score[position],
        tp,
        ignored,
        obj_off,
        truth.image[obj_rows],
        counted[obj_rows],
        notes=distinct(truth.notes, detections.notes),
    )


def match_images(
    truth: Truth, detections: Detections, protocol: Protocol, images: NDArray[np.int32]
) -> Matches:
    """`match` on some of the images, given by their positions: the rows of
    ``match(...).select(ids)``, for less work.
    """
    images = np.unique(images)
    rows = np.flatnonzero(np.isin(detections.image, images))
    part = match(truth.on(images), detections.on(images, rows), protocol)
    return replace(part, position=rows.astype(np.int32)[part.position])


def effective_thresholds(protocol: Protocol) -> NDArray[np.float64]:
    """(T,) the smallest overlap that is a match at each threshold: the protocol's cap and
    comparison applied.

    ``overlap > t`` is ``overlap >=`` the next larger number, so the kernels know one comparison
    only.
    """
    thresholds = np.minimum(protocol.thresholds(), protocol.iou.cap)
    return np.nextafter(thresholds, np.inf) if protocol.iou.comparison == ">" else thresholds


def _object_roles(truth: Truth, protocol: Protocol) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """(G,) whether an object absorbs, and (G, A) whether it is one to find in each area range."""
    absorb, neutral = np.zeros(len(truth), dtype=bool), np.zeros(len(truth), dtype=bool)
    for flag, role in (
        (truth.crowd, protocol.matching.crowd),
        (truth.difficult, protocol.matching.difficult),
    ):
        if role == "absorb":
            absorb |= flag
        if role != "count":
            neutral |= flag
    inside = [(truth.area >= area.low) & (truth.area <= area.high) for area in protocol.areas]
    return absorb, np.stack(inside, axis=1) & ~neutral[:, None]
