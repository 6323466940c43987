"""Images whose detections fit the objects of another image, beside what fits by accident."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.analysis.doctor.raw_rows import Raw
from detmap.analysis.doctor.trial import Sample
from detmap.analysis.row_overlaps import edges, ious
from detmap.core.results.findings import Finding
from detmap.core.tables import boxes_as
from detmap.errors import few

MOST_IMAGES, MOST_TOP = 60, 200  # whose detections are compared with other images
MOST_PAIRS = 2_000_000  # of an image's detections and all objects
LIKE = 0.5  # lowest mean IoU to assign detections to another image
ALONE = 0.3  # share of the images that fit better under another name, where nearly all are wrong
MIXED, LEAST_MIXED = 0.05, 3  # the same if the others are correct: share, number
OWN = 0.3  # highest mean IoU with own objects of any class
TIMES, DEVIATIONS = 2.0, 3.5  # times as many as with mirrored boxes; of a difference of counts


def facts(sample: Sample, ap50: float, *, all_wrong: bool) -> Iterator[Finding]:
    """Yields the finding if clearly more images than by accident fit another image's objects.

    `all_wrong` allows for wrong classes, and needs more images.
    """
    for top_only in (True, False) if all_wrong else (True,):
        found = list(_facts(sample, ap50, ALONE if all_wrong else MIXED, top_only=top_only))
        yield from found
        if found:
            return


def _facts(sample: Sample, ap50: float, share: float, *, top_only: bool) -> Iterator[Finding]:
    others, n_tried = better_names(sample, sample.rows, top_only=top_only)
    if len(others) < max(LEAST_MIXED, share * n_tried):
        return
    by_accident = len(better_names(sample, _mirrored(sample), top_only=top_only)[0])
    error = (len(others) + by_accident) ** 0.5
    if len(others) < max(TIMES * by_accident, by_accident + DEVIATIONS * error) and by_accident:
        return
    pairs = few(f"{one!r} as {other!r}" for one, other in others)
    text = (
        f"the detections of {len(others)} of {n_tried} images match another image better "
        f"({by_accident} with mirrored boxes): {pairs}; image ids are probably mixed up"
    )
    yield Finding("images-shuffled", text, ap50)


def _mirrored(sample: Sample) -> Raw:
    rows = sample.rows
    image, _ = rows.places(sample.truth)
    boxes = boxes_as(rows.boxes, rows.box_format, "xywh").copy()
    width = sample.truth.images.width[image]
    width = np.where(np.isnan(width), boxes[:, :1].max(initial=0) * 2, width)
    boxes[:, 0] = width - boxes[:, 0] - boxes[:, 2]
    return replace(rows, boxes=boxes, box_format="xywh")


def better_names(
    sample: Sample, rows: Raw, *, top_only: bool
) -> tuple[list[tuple[object, object]], int]:
    """Returns images whose best detections fit the objects of another image, with that image, and
    the number of images tested. Each image is named for one other only.

    Parameters
    ----------
    top_only : uses only the G highest-scoring detections of G objects, and only objects of their
        class in the other image
    """
    whole = sample.whole
    image, label = rows.places(whole)
    least = -np.inf
    if top_only and len(rows) > len(sample.truth):
        least = np.partition(rows.score, len(rows) - len(sample.truth))[-len(sample.truth)]
    objects = Objects(
        edges(whole),
        whole.label,
        whole.image,
        np.bincount(whole.image, minlength=len(whole.images)),
    )
    ids = whole.images.ids
    most = min(MOST_TOP if top_only else MOST_IMAGES, len(sample.positions))
    tried = np.linspace(0, len(sample.positions) - 1, most)
    found: dict[int, object] = {}
    n_tried = 0
    for place in sample.positions[np.unique(tried.astype(np.int64))].tolist():
        own = np.flatnonzero((image == place) & (rows.score >= least))
        n_best = max(10, 2 * objects.per_image[place])
        best = own[np.argsort(-rows.score[own], kind="stable")[:n_best]]
        if len(best) < 2 or len(best) * len(whole) > MOST_PAIRS:
            continue
        n_tried += 1
        boxes, labels = edges(rows, best), label[best] if top_only else None
        mine = objects.take(place).likeness(boxes, None)[place]
        if mine >= OWN:
            continue
        scores = np.where(objects.per_image >= 2, objects.likeness(boxes, labels), 0.0)
        other = int(np.argmax(scores))
        if scores[other] >= LIKE and scores[other] > 2 * mine:
            found.setdefault(other, ids[place].item())
    return [(one, ids[other].item()) for other, one in found.items()], n_tried


class Objects(NamedTuple):
    """Corners, class and image of objects, and how many each image has."""

    corners: NDArray[np.float64]
    label: NDArray[np.int32]
    image: NDArray[np.int32]
    per_image: NDArray[np.int64]

    def take(self, image: int) -> Objects:
        """Returns the objects of an image."""
        mine = self.image == image
        return Objects(self.corners[mine], self.label[mine], self.image[mine], self.per_image)

    def likeness(
        self, boxes: NDArray[np.float64], labels: NDArray[np.int32] | None
    ) -> NDArray[np.float64]:
        """Returns (I,) the mean best IoU of each image's objects with boxes; with `labels`, of
        equal class.
        """
        best = np.zeros(len(self.corners))
        for i, box in enumerate(boxes):
            mine = slice(None) if labels is None else self.label == labels[i]
            corners = self.corners[mine]
            best[mine] = np.maximum(best[mine], ious(np.broadcast_to(box, corners.shape), corners))
        total = np.bincount(self.image, weights=best, minlength=len(self.per_image))
        return np.asarray(total / np.maximum(self.per_image, 1))
