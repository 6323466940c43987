"""Facts about the ground truth: what makes its numbers other than those of its benchmark."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from detmap.analysis.doctor import (
    truth_checks,
    truth_choice,
    truth_file,
    truth_layouts,
    truth_polygons,
)
from detmap.analysis.doctor.duplicates import pairs
from detmap.analysis.doctor.known_benchmarks import differences
from detmap.analysis.doctor.quick_checks import lacks_labels
from detmap.analysis.doctor.raw_rows import Raw, best_objects
from detmap.analysis.doctor.trial import Trial
from detmap.core.results.findings import Finding
from detmap.core.tables import Truth, boxes_as
from detmap.errors import few

PAIRS = ("cgf1",)
"""Rules that list an image once per phrase, and an object once per annotator."""
ALMOST, NEAR_TWICE = 0.93, 0.01  # IoU of two objects that are one, and their share
MOST_COMPARED = 300_000  # objects
EMPTY = 0.001  # share of objects without a size, or outside of their image, that is odd


def facts(trial: Trial, rows: Raw | None = None) -> Iterator[Finding]:
    """Warnings about the ground truth, and what detections show of it."""
    truth = trial.shaped_truth
    if not len(truth) and rows is not None and len(rows):
        text = f"none of {len(truth.images):,} images has an object"
        yield Finding("truth-labels-missing", f"{text}: check the place of the label files")
    elif rows is not None and _lacks_labels(truth, rows):
        n_empty = len(truth.images) - len(np.unique(truth.image))
        text = (
            f"{n_empty:,} of {len(truth.images):,} images have no objects, and about as many "
            "high-scoring detections as the others: probably their label files are missing or empty"
        )
        yield Finding("truth-labels-missing", text)
    yield from truth_checks.facts(trial.shaped_truth)
    yield from _boxes(truth)
    yield from _rows(truth)
    yield from _flags(trial)
    if trial.asked.evaluation.rule not in PAIRS:
        yield from _repeated(truth)
        yield from _images_twice(truth)
    for known, told in differences(truth):
        yield Finding("truth-benchmark", f"the ground truth is {known.name} {' and '.join(told)}")


FEW, RARE = 5, 0.05  # objects of a class, and their share of those of a median class


def alone(trial: Trial, path: Path | None) -> list[Finding]:
    """Returns the findings of a ground truth without detections.

    Parameters
    ----------
    path : of a COCO file, whose structural errors are listed with their places
    """
    truth = trial.truth
    listed = (truth_file.check(path) if path is not None else None) or []
    found: list[Finding] = []
    for reading in truth_layouts.readings(truth):
        found.append(truth_choice.told(truth, reading, None, None))
        truth = reading.truth
        shaped = replace(truth, shapes=trial.shaped_truth.shapes)
        trial = replace(trial, truth=truth, shaped_truth=shaped)
        listed = [each for each in listed if each.name != "truth-outside"]  # explained
        break
    more = [*facts(trial)]
    more += truth_polygons.facts(trial.shaped_truth, [*found, *listed, *more])
    names = {each.name for each in listed}
    return [*found, *listed, *(each for each in more if each.name not in names)]


def rare_classes(truth: Truth) -> str:
    """Returns a remark on classes with few objects; "" if there are none."""
    counts = np.bincount(truth.label, minlength=len(truth.categories))
    used = counts[counts > 0]
    if not len(used):
        return ""
    least = min(FEW, RARE * float(np.median(used)))
    few_objects = np.flatnonzero((counts > 0) & (counts < least)).tolist()
    unused = np.flatnonzero(counts == 0).tolist()
    parts = []
    for places, what in ((few_objects, "few objects"), (unused, "no objects")):
        names = [f"{truth.categories.names[k]} ({counts[k]})" for k in places]
        if names:
            parts.append(f"{len(names)} of {len(counts)} classes have {what}: {few(names)}")
    return "; ".join(parts)


def _lacks_labels(truth: Truth, rows: Raw) -> bool:
    image, _ = rows.places(truth)
    on_object = np.zeros(len(rows), dtype=bool)
    known = np.flatnonzero(image >= 0)
    suspected = lacks_labels(truth, image[known], rows.score[known])
    if suspected:
        on_object[best_objects(rows, truth).row] = True
    return suspected and lacks_labels(truth, image[known], rows.score[known], on_object[known])


def _boxes(truth: Truth) -> Iterator[Finding]:
    boxes = boxes_as(truth.boxes, truth.box_format, "xywh")
    least = max(1, EMPTY * len(truth))
    neutral = truth.crowd | truth.difficult | truth.role("ignore")
    flat = (boxes[:, 2:] <= 0).any(axis=1) & ~neutral
    if flat.sum() >= least:
        text = (
            f"{flat.sum():,} of {len(truth):,} objects have a box without a size: nobody can find "
        )
        text += f"them; {truth_checks.first(truth, flat)}"
        yield Finding("truth-empty-boxes", text)
    size = np.column_stack([truth.images.width, truth.images.height])[truth.image]
    with np.errstate(invalid="ignore"):
        beyond = (boxes[:, :2] >= size).any(axis=1) | (boxes[:, :2] + boxes[:, 2:] <= 0).any(axis=1)
    outside = beyond & ~neutral & (boxes[:, 2:] > 0).all(axis=1)
    if outside.sum() >= least:
        text = f"{outside.sum():,} of {len(truth):,} objects lie outside of their image; "
        text += truth_checks.first(truth, outside)
        yield Finding("truth-outside", text)


def _flags(trial: Trial) -> Iterator[Finding]:
    truth = trial.truth
    notes = {note.code: note.count for note in truth.notes}
    missing = notes.get("area-missing", 0)
    by_area = any(
        each.attribute == "area" for subset in trial.rules.subsets for each in subset.ranges
    )
    if missing and by_area:
        text = f"{missing:,} of {len(truth):,} objects have no area: that of the box is used, "
        yield Finding("truth-area-missing", f"{text}where COCO has that of the mask")
    lacking = notes.get("iscrowd-missing", 0)
    if lacking and lacking < len(truth):
        text = f"{lacking:,} of {len(truth):,} objects have no crowd flag"
        yield Finding("truth-crowd-missing", text)
    used = dict(trial.rules.matching.neutral)
    ignored = truth.role("ignore")
    if ignored.any() and "ignore" not in used and not (truth.crowd[ignored]).all():
        text = (
            f"{ignored.sum():,} objects are marked ignore, and {trial.rules.name} does not read "
            "that: they have to be found; set matching.neutral.ignore"
        )
        yield Finding("truth-ignore-unused", text)
    if notes.get("id-zero"):
        text = "an object has the id 0, which pycocotools takes for no match"
        yield Finding("truth-id-zero", text)


def _repeated(truth: Truth) -> Iterator[Finding]:
    again = truth_checks.count_repeated(truth)
    if again > max(1, truth_checks.TWICE * len(truth)):
        text = f"{again:,} objects are listed twice, with the same image, class and box"
        yield Finding("truth-duplicates", text)
        return
    if len(truth) > MOST_COMPARED:
        return
    rows = replace(truth, shapes=None).take(np.flatnonzero(~truth.crowd))
    near = len(np.unique(pairs(rows, ALMOST)[1])) - again
    if near > max(3, NEAR_TWICE * len(truth)):
        text = f"{near:,} of {len(truth):,} objects are nearly another one of their class (IoU "
        text += f"above {ALMOST:g}): listed by two annotators, or exported twice?"
        yield Finding("truth-near-duplicates", text)


def _rows(truth: Truth) -> Iterator[Finding]:
    """What the reader counted."""
    notes = {note.code: note.count for note in truth.notes}
    images, classes = notes.get("image-unlisted", 0), notes.get("category-unlisted", 0)
    if images or classes:
        parts = [f"{images:,} on images that are not listed"] * bool(images)
        parts += [f"{classes:,} of categories that are not listed"] * bool(classes)
        yield Finding("truth-unlisted", f"objects were dropped: {', '.join(parts)}")
    twice = notes.get("id-twice", 0)
    if twice:
        text = f"{twice:,} objects have the id of another one: pycocotools reads the last object "
        text += "of an id for each, and gives another number"
        yield Finding("truth-ids-twice", text)


def _images_twice(truth: Truth) -> Iterator[Finding]:
    images = truth.images
    listed = Counter(path for path in images.files or images.stems if path)
    names = [path for path, n in listed.items() if n > 1]
    if names:
        twice = listed.total() - len(listed)
        text = f"{twice:,} images are listed again under another id: {few(names)}"
        yield Finding("truth-images-twice", text)
