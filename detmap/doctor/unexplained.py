"""What to look at where AP50 is near 0 and no known mistake explains it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from detmap.doctor.findings import Finding
from detmap.doctor.raw_rows import best_objects
from detmap.doctor.trial import Sample
from detmap.errors import few
from detmap.overlaps.row_overlaps import edges, ious

DOUBTFUL = 0.05  # AP50
BINS = 5  # of the histogram
MOST_IMAGES = 60  # whose detections are tried on the others
LIKE = 0.5  # mean overlap from which detections are those of another image
MOST_CLASSES = 6  # rows of the table of classes
SHUFFLED = 0.5  # share of the images that match better under another name


def facts(sample: Sample, ap50: float, *, explained: bool) -> Iterator[Finding]:
    """Images whose detections match another image; else that nothing fits, and three looks."""
    if ap50 >= DOUBTFUL or explained or not len(sample.rows) or not len(sample.truth):
        return
    others, n_tried = _better_names(sample)
    if len(others) >= max(3, SHUFFLED * n_tried):
        text = (
            f"the detections of {len(others)} of {n_tried} images match another image better: "
            f"{few(others)}; image ids are probably mixed up"
        )
        yield Finding("images-shuffled", text, ap50)
        return
    looks = [_overlaps(sample), _classes(sample), _names(others, n_tried)]
    text = f"AP50 is below {DOUBTFUL:g} and no known mistake explains it. {'. '.join(looks)}"
    yield Finding("unexplained", text, ap50)


def _overlaps(sample: Sample) -> str:
    """The histogram of the best overlap of each object, whatever the class."""
    met = best_objects(sample.rows, sample.truth, 0.0)
    best = np.zeros(len(sample.truth))
    np.maximum.at(best, met.place, met.iou)
    counts = np.histogram(best, bins=BINS, range=(0, 1))[0].tolist()
    shown = ", ".join(f"{i / BINS:g} to {(i + 1) / BINS:g}: {n}" for i, n in enumerate(counts))
    return f"Best IoU per object: {shown}"


def _classes(sample: Sample) -> str:
    """Which classes of detections lie on which classes of objects."""
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


def _better_names(sample: Sample) -> tuple[list[str], int]:
    """Images whose best detections lie on the objects of another image, and how many were tried."""
    truth, rows = sample.truth, sample.rows
    image, _ = rows.places(truth)
    ids, n_images = truth.images.ids, len(truth.images)
    objects = edges(truth)
    n_objects = np.bincount(truth.image, minlength=n_images)
    chosen = np.unique(np.linspace(0, n_images - 1, min(MOST_IMAGES, n_images)).astype(np.int64))
    found, n_tried = [], 0
    for place in chosen.tolist():
        own = np.flatnonzero(image == place)
        best = own[np.argsort(-rows.score[own], kind="stable")[: max(10, 2 * n_objects[place])]]
        if len(best) < 2:
            continue
        n_tried += 1
        scores = _likeness(edges(rows, best), objects, truth.image, n_objects)
        other = int(np.argmax(scores))
        if scores[other] >= LIKE and scores[other] > 2 * scores[place]:
            found.append(f"{ids[place].item()!r} as {ids[other].item()!r}")
    return found, n_tried


def _likeness(
    boxes: NDArray[np.float64],
    objects: NDArray[np.float64],
    image: NDArray[np.integer],
    n_objects: NDArray[np.int64],
) -> NDArray[np.float64]:
    """(I,) the mean best overlap of each image's objects with the boxes; 0 of one object alone."""
    best = np.zeros(len(objects))
    for box in boxes:
        np.maximum(best, ious(np.broadcast_to(box, objects.shape), objects), out=best)
    total = np.bincount(image, weights=best, minlength=len(n_objects))
    return np.where(n_objects >= 2, total / np.maximum(n_objects, 1), 0.0)
