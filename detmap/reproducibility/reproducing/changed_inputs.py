"""Inputs that a published number may come from: `doctor` fixes and common preprocessing steps."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.analysis.doctor import examine
from detmap.analysis.doctor.box_hypotheses import PIXELS
from detmap.analysis.doctor.duplicates import suppressed, too_many
from detmap.analysis.doctor.known_benchmarks import VOC
from detmap.analysis.doctor.raw_rows import Raw, from_table, joined
from detmap.analysis.doctor.repair import Repair
from detmap.analysis.doctor.trial import merged, sample, trial_of
from detmap.core.adapters.truth_by_protocol import TruthByProtocol
from detmap.core.tables import Detections, Truth, boxes_as, selection
from detmap.core.tables.catalog import Categories
from detmap.errors import DetmapError

Tables = tuple[Truth | TruthByProtocol, Detections]

CUTS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.2, 0.25, 0.3, 0.5)
"""Score thresholds below which detections are removed."""
BEST = (300, 100, 10)
"""Numbers of detections to keep per image."""
SUPPRESSIONS = (0.7, 0.65, 0.6, 0.5, 0.45)
"""IoU thresholds of suppression."""
AWAY = -1e5
"""A left and top edge that no detection reaches."""
PLAUSIBLE = 0.5
"""Share of AP50 that a fix must keep: published numbers rarely come from misread boxes."""


class Supposition(NamedTuple):
    """Another input.

    Parameters
    ----------
    name : of the `doctor` hypothesis
    text : the change, for users
    make : creates the tables
    """

    name: str
    text: str
    make: Callable[[], Tables]


def suppositions(truth: Truth, detections: Detections) -> Iterator[Supposition]:
    """Other inputs that these tables allow, most likely first; each changes something."""
    yield from _id_zero(truth, detections)
    yield from _score_changes(truth, detections)
    yield from _truth_changes(truth, detections)
    yield from _box_changes(truth, detections)
    yield from _duplicate_changes(truth, detections)
    yield from _subset_changes(truth, detections)
    yield from _doctor_changes(truth, detections)


def _id_zero(truth: Truth, detections: Detections) -> Iterator[Supposition]:
    if truth.shapes is None and len(truth) and any(n.code == "id-zero" for n in truth.notes):
        boxes = truth.boxes.copy()
        boxes[0, :2] = AWAY  # a file that counts from 0 has the id 0 in its first annotation
        text, alone = "the object of id 0 unmatched, as in pycocotools", replace(truth, boxes=boxes)
        yield Supposition("truth-id-zero", text, partial(_both, alone, detections))


def _kept(
    truth: Truth, detections: Detections, name: str, text: str, keep: NDArray[np.bool_]
) -> Iterator[Supposition]:
    """Some of the detections, unless that is all or none."""
    if keep.any() and not keep.all():
        yield Supposition(name, text, partial(_taken, truth, detections, keep))


def _taken(truth: Truth, detections: Detections, keep: NDArray[np.bool_]) -> Tables:
    return truth, detections.take(np.flatnonzero(keep))


def _both(truth: Truth | TruthByProtocol, detections: Detections) -> Tables:
    return truth, detections


def _score_changes(truth: Truth, detections: Detections) -> Iterator[Supposition]:
    for cut in CUTS:
        text = f"detections below {cut:g} removed"
        yield from _kept(truth, detections, "scores-cut", text, detections.score >= cut)
        if (detections.score == cut).any():
            text = f"detections of {cut:g} and below removed"
            yield from _kept(truth, detections, "scores-cut", text, detections.score > cut)
    order = np.lexsort((np.arange(len(detections)), -detections.score, detections.image))
    image = detections.image[order]
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order)) - np.searchsorted(image, image)
    for most in BEST:
        text = f"the {most} highest-scoring detections per image"
        yield from _kept(truth, detections, "scores-top-k", text, rank < most)


def _truth_changes(truth: Truth, detections: Detections) -> Iterator[Supposition]:
    for role, word in (("difficult", "difficult objects"), ("crowd", "crowds")):
        flag = truth.role(role)
        if not flag.any() or flag.all():
            continue
        others = {name: column for name, column in truth.roles.items() if name != role}
        unmarked = replace(truth, roles=others)
        without = truth.take(np.flatnonzero(~flag))
        for text, made in ((f"{word} removed", without), (f"{word} not marked", unmarked)):
            yield Supposition("truth-benchmark", text, partial(_both, made, detections))
    found = [truth.label[:, None], truth.image[:, None], truth.boxes]
    rows = np.concatenate([np.asarray(column, dtype=np.float64) for column in found], axis=1)
    once = _first(rows)
    if not once.all():
        single = truth.take(np.flatnonzero(once))
        yield Supposition(
            "truth-duplicates", "duplicate objects removed", partial(_both, single, detections)
        )
    full = np.unique(truth.image)
    if 0 < len(full) < len(truth.images):
        yield _image_subset(
            "truth-benchmark", "images without objects removed", truth, detections, full
        )


def _first(rows: NDArray[np.float64]) -> NDArray[np.bool_]:
    """(n,) whether each row is the first of its duplicates."""
    first = np.zeros(len(rows), dtype=bool)
    if len(rows):
        first[np.unique(rows + 0.0, axis=0, return_index=True)[1]] = True
    return first


def _image_subset(
    name: str, text: str, truth: Truth, detections: Detections, images: NDArray[Any]
) -> Supposition:
    ids = truth.images.ids[images]
    return Supposition(name, text, partial(selection.part, truth, detections, ids, None))


def _box_changes(truth: Truth, detections: Detections) -> Iterator[Supposition]:
    if not len(detections):
        return
    for name, (shift, _) in PIXELS.items():
        text = "detections moved by " + " ".join(f"{-each:+d}" for each in shift)
        yield Supposition(name, text, partial(_moved, truth, detections, shift))
    clipped = _clipped(truth, detections)
    if clipped is not None:
        text = "detections clipped to their images"
        yield Supposition("boxes-clipped", text, partial(_both, truth, clipped))


def _moved(truth: Truth, detections: Detections, shift: tuple[int, ...]) -> Tables:
    """Moves the corners of detections back by some pixels; sides are at least 0."""
    boxes = detections.boxes.copy()
    if detections.box_format == "voc":
        boxes -= shift
        boxes[:, 2:] = np.maximum(boxes[:, 2:], boxes[:, :2] - 1)
    else:
        boxes[:, :2] -= shift[:2]
        boxes[:, 2:] = np.maximum(boxes[:, 2:] - np.subtract(shift[2:], shift[:2]), 0.0)
    return truth, replace(detections, boxes=boxes)


def _clipped(truth: Truth, detections: Detections) -> Detections | None:
    """Clips detections to their images; None without effect or without image sizes."""
    size = np.column_stack([truth.images.width, truth.images.height])[detections.image]
    if not len(size) or np.isnan(size).any():
        return None
    boxes = boxes_as(detections.boxes, detections.box_format, "xywh")
    low, high = (np.clip(each, 0, size) for each in (boxes[:, :2], boxes[:, :2] + boxes[:, 2:]))
    cut = np.concatenate([low, high - low], axis=1)
    inside = np.all((boxes[:, :2] >= 0) & (boxes[:, :2] + boxes[:, 2:] <= size), axis=1)
    if np.all(inside):
        return None
    cut = boxes_as(cut, "xywh", detections.box_format)
    return replace(detections, boxes=np.where(inside[:, None], detections.boxes, cut))


def _duplicate_changes(truth: Truth, detections: Detections) -> Iterator[Supposition]:
    columns = (detections.image, detections.label, detections.score)
    rows = np.column_stack([*(np.asarray(each, np.float64) for each in columns), detections.boxes])
    text = "duplicate detections removed"
    yield from _kept(truth, detections, "duplicates", text, _first(rows))
    if not len(detections) or too_many(detections):
        return
    before = len(detections)
    for overlap in SUPPRESSIONS:
        keep = suppressed(detections, overlap)
        if int(keep.sum()) < before:  # not what another overlap leaves as well
            before = int(keep.sum())
            text = f"detections suppressed at IoU {overlap:g}"
            yield from _kept(truth, detections, "duplicates", text, keep)


def _subset_changes(truth: Truth, detections: Detections) -> Iterator[Supposition]:
    """Some of the images or classes."""
    images = np.unique(detections.image)
    if 0 < len(images) < len(truth.images):
        text = "only images with detections"
        yield _image_subset("images-without-detections", text, truth, detections, images)
    names = truth.categories.names
    labels = np.unique(detections.label)
    parts = []
    if 0 < len(labels) < len(names):
        found = [names[k] for k in labels.tolist()]
        parts.append(("classes-without-detections", "only classes with detections", found))
    wanted = {*VOC, "airplane", "dining table", "motorcycle", "potted plant", "couch", "tv"}
    voc = [name for name in names if name in wanted]
    if len(voc) == len(VOC) < len(names):
        parts.append(("classes-without-detections", "only the 20 VOC classes", voc))
    for name, text, classes in parts:
        made = partial(selection.part, truth, detections, None, classes)
        yield Supposition(name, text, made)
    if len(names) > 1 and len(detections) and len(truth):
        one = Categories(np.array([1], dtype=np.int64), ("object",))

        def agnostic() -> Tables:
            label = np.zeros(len(detections), dtype=np.int32)
            return merged(truth), replace(detections, categories=one, label=label)

        yield Supposition("classes-agnostic", "all classes merged into one", agnostic)


def _doctor_changes(truth: Truth, detections: Detections) -> Iterator[Supposition]:
    """The fixes that `doctor` would try and that keep at least half of AP50."""
    if not len(detections) or not len(truth):
        return
    raw = from_table(detections)
    part = sample(trial_of(truth), raw)
    least = PLAUSIBLE * part.trial.outcome(part.rows).ap50
    for tried in examine.attempts(part, ("images", "boxes", "classes", "scores")):
        repair = tried.repair
        if repair.name in PIXELS or tried.outcome.ap50 < max(least, 0.001):
            continue
        made = partial(_repaired, truth, raw, repair)
        yield Supposition(repair.name, repair.sentence, made)


def _repaired(truth: Truth, raw: Raw, repair: Repair) -> Tables:
    return truth, joined(truth, repair.apply(raw, truth))


def splits(path: Path, truth: Truth, read: Callable[[str], Tables]) -> list[Supposition]:
    """The other splits of a ground truth with their detections; none for formats without splits.

    Parameters
    ----------
    path : of the ground truth
    read : reads ground truth and detections of a split
    """
    if path.is_file() and path.suffix not in (".yaml", ".yml"):
        return []
    lists = [*path.glob("ImageSets/Main/*.txt"), *path.glob("*/ImageSets/Main/*.txt")]
    names = {file.stem for file in lists if "_" not in file.stem}
    found = []
    for name in sorted(names or {"train", "val", "test"}):
        try:
            tables = read(name) if name != truth.split else None
        except DetmapError:
            continue
        if tables is None or not len(tables[1]):
            continue
        if not np.array_equal(tables[1].images.ids, truth.images.ids):
            text = f"the split {name}"
            found.append(Supposition("images-other-split", text, partial(_both, *tables)))
    return found
