"""Hints if AP50 is near 0 and no known mistake explains it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.analysis.doctor.raw_rows import best_objects
from detmap.analysis.doctor.trial import Sample
from detmap.core.overlaps.row_overlaps import edges, ious
from detmap.core.results.findings import Finding
from detmap.errors import few

DOUBTFUL = 0.05  # AP50
BINS = 5  # of the histogram
MOST_IMAGES, MOST_TOP = 60, 200  # whose detections are compared with other images
MOST_PAIRS = 2_000_000  # of an image's detections and all objects
LIKE = 0.5  # lowest mean IoU to assign detections to another image
MOST_CLASSES = 6  # rows of the table of classes
SHUFFLED = 0.5  # share of the images that match better under another name
MIXED, LEAST_MIXED = 0.05, 3  # the same if the others are correct: share, number
UNLIKE = 0.1  # lowest mean IoU with own objects to keep the name


def facts(sample: Sample, ap50: float, *, explained: bool) -> Iterator[Finding]:
    """Yields images whose detections match another image, or else a finding with three hints."""
    if not len(sample.rows) or not len(sample.truth):
        return
    if ap50 >= DOUBTFUL:
        yield from _mixed_up(sample, ap50, _better_names(sample, top_only=True), MIXED)
        return
    if explained:
        return
    others, n_tried = _better_names(sample)
    found = list(_mixed_up(sample, ap50, (others, n_tried), SHUFFLED))
    yield from found
    if not found:
        looks = [_overlaps(sample), _classes(sample), _names(others, n_tried)]
        text = f"AP50 is below {DOUBTFUL:g} and no known mistake explains it. {'. '.join(looks)}"
        yield Finding("unexplained", text, ap50)


def _mixed_up(
    sample: Sample, ap50: float, names: tuple[list[str], int], share: float
) -> Iterator[Finding]:
    """Yields the finding if at least this share of images matches better under another name."""
    others, n_tried = names
    if len(others) >= max(LEAST_MIXED, share * n_tried):
        text = (
            f"the detections of {len(others)} of {n_tried} images match another image better: "
            f"{few(others)}; image ids are probably mixed up"
        )
        yield Finding("images-shuffled", text, ap50)


def _overlaps(sample: Sample) -> str:
    """Returns the histogram of the best IoU per object with detections of any class."""
    met = best_objects(sample.rows, sample.truth, 0.0)
    best = np.zeros(len(sample.truth))
    np.maximum.at(best, met.place, met.iou)
    counts = np.histogram(best, bins=BINS, range=(0, 1))[0].tolist()
    shown = ", ".join(f"{i / BINS:g} to {(i + 1) / BINS:g}: {n}" for i, n in enumerate(counts))
    return f"Best IoU per object: {shown}"


def _classes(sample: Sample) -> str:
    """Returns the most frequent pairs of detected class and object class."""
    met = sample.met
    keys = [str(each) for each in sample.rows.classes]
    names = sample.truth.categories.names
    pairs = np.column_stack([sample.rows.label[met.row], sample.truth.label[met.place]])
    unique, count = np.unique(pairs, axis=0, return_counts=True)
    order = np.argsort(-count, kind="stable")[:MOST_CLASSES].tolist()
    shown = [f"{keys[unique[i, 0]]} on {names[unique[i, 1]]} {count[i]} times" for i in order]
    return f"Detections on objects at IoU 0.5: {', '.join(shown) or 'none'}"


def _names(others: list[str], n_tried: int) -> str:
    shown = f": {few(others)}" if others else ""
    return f"Images that match better under another name: {len(others)} of {n_tried}{shown}"


def _better_names(sample: Sample, *, top_only: bool = False) -> tuple[list[str], int]:
    """Returns images whose best detections overlap the objects of another image, and the number of
    images tested.

    Parameters
    ----------
    top_only : uses only the G highest-scoring detections of G objects, and only objects of their
        class
    """
    rows, whole = sample.rows, sample.whole
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
    found, n_tried = [], 0
    for place in sample.positions[np.unique(tried.astype(np.int64))].tolist():
        own = np.flatnonzero((image == place) & (rows.score >= least))
        n_best = max(10, 2 * objects.per_image[place])
        best = own[np.argsort(-rows.score[own], kind="stable")[:n_best]]
        if len(best) < 2 or len(best) * len(whole) > MOST_PAIRS:
            continue
        n_tried += 1
        boxes, labels = edges(rows, best), label[best] if top_only else None
        mine = objects.take(place).likeness(boxes, labels)[place]
        if 2 * mine >= 1 or (top_only and mine >= UNLIKE):
            continue
        scores = np.where(objects.per_image >= 2, objects.likeness(boxes, labels), 0.0)
        other = int(np.argmax(scores))
        if scores[other] >= LIKE and scores[other] > 2 * mine:
            found.append(f"{ids[place].item()!r} as {ids[other].item()!r}")
    return found, n_tried


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
