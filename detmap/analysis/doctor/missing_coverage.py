"""Facts about what is not there: images and classes without detections, one class for all."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from detmap.analysis.doctor.raw_rows import Raw
from detmap.analysis.doctor.repair import BARE, no_detection
from detmap.analysis.doctor.trial import Sample, Trial, sample
from detmap.core.results.findings import Finding
from detmap.errors import few

LEAST_EMPTY = 0.05  # share of the images with objects; fewer may happen
TIMES = 3.0  # how often as many as expected
DEVIATIONS = 4.0  # of the number of images without a found object and a false positive
LEAST_IMAGES = 5
LEAST_FOUND = 10  # objects
EXPECTED = 20.0  # detections that a class without any ought to have
LEAST_OF_CLASS = 5  # objects of a class that is missed
ALIKE = 0.8  # recall of other classes over that of the lone class, where it stands for all
LEAST_RECALL = 0.25  # of the others, where the lone class has no objects


def facts(trial: Trial, raw: Raw, ap50: float) -> Iterator[Finding]:
    """Images and classes that nothing was detected on, where that is no accident."""
    truth = trial.truth
    image, label = raw.places(truth)
    if not len(image) and len(truth):
        yield Finding(BARE, no_detection(raw.left_out), ap50)
        return
    known = image >= 0
    if not known.any():
        return
    n_rows = np.bincount(image[known], minlength=len(truth.images))
    yield from _images(trial, raw, n_rows, np.unique(label), ap50)
    alone = _one_class(trial, raw, ap50)
    if alone is not None:
        yield alone
        return
    good = known & (label >= 0)
    yield from _classes(
        trial, raw, n_rows > 0, np.bincount(label[good], minlength=len(truth.categories)), ap50
    )


def _images(
    trial: Trial, raw: Raw, n_rows: NDArray[np.int64], labels: NDArray[np.int32], ap50: float
) -> Iterator[Finding]:
    truth = trial.truth
    n_objects = np.bincount(truth.image, minlength=len(truth.images))
    there = np.zeros(len(truth.images), dtype=bool)
    there[truth.image[np.isin(truth.label, labels)]] = True  # of classes that are found at all
    empty = there & (n_rows == 0)
    n_empty = int(empty.sum())
    if n_empty < max(LEAST_IMAGES, LEAST_EMPTY * there.sum()) or not (n_rows > 0).any():
        return
    covered = np.flatnonzero(n_rows > 0)
    single = float((n_rows[covered] == 1).mean())
    part = sample(trial, raw)
    missed = (1 - _recall(part)) ** n_objects[there]
    by_count = float(there.sum() * np.exp(-_rate(single)))
    n_false = np.count_nonzero(~part.right) / max(1, len(part.right)) * n_rows.mean()
    empty_too = missed * np.exp(-n_false)
    deviation = (empty_too * (1 - empty_too)).sum() ** 0.5
    natural = max(TIMES * min(missed.sum(), by_count), empty_too.sum() + DEVIATIONS * deviation)
    if n_empty < natural + LEAST_EMPTY * there.sum():
        return
    kept = truth.select_images(covered)
    yield Finding(
        BARE,
        f"{int((n_rows == 0).sum()):,} of {len(truth.images):,} images have no detection: AP50 "
        "after is that of the others",
        ap50,
        replace(trial, truth=kept).whole(raw),
    )


def _rate(single: float) -> float:
    """The rate of the Poisson distribution whose counts of at least one are 1 with this share."""
    rates = np.linspace(0.005, 20.0, 4000)
    return float(rates[np.argmin(np.abs(rates / np.expm1(rates) - single))])


def _recall(part: Sample) -> float:
    """The share of objects that are found where another one of the image is: an image with none
    found does not lower it.
    """
    n_images = len(part.truth.images)
    n_recalled = np.bincount(part.truth.image[np.unique(part.met.place)], minlength=n_images)
    n_objects = np.bincount(part.truth.image, minlength=n_images)
    others = (n_objects - 1)[n_recalled > 0].sum()
    return float((n_recalled - 1)[n_recalled > 0].sum() / others) if others else 0.0


def _one_class(trial: Trial, raw: Raw, ap50: float) -> Finding | None:
    truth = trial.truth
    used = np.unique(raw.label)
    if len(used) != 1 or len(np.unique(truth.label)) < 2:
        return None
    part = sample(trial, raw)
    recalled = np.zeros(len(part.truth), dtype=bool)
    recalled[part.met.place] = True
    _, label = part.rows.places(part.truth)
    own = np.isin(part.truth.label, label[:1])
    if own.all() or recalled.sum() < LEAST_FOUND:
        return None
    least = recalled[own].mean() if own.sum() >= LEAST_OF_CLASS else LEAST_RECALL
    if recalled[~own].mean() < ALIKE * least:
        return None
    return Finding(
        "classes-agnostic",
        f"all detections are of class {raw.classes[int(used[0])]!r}, and overlap objects of all "
        "classes: AP50 after treats all objects as one class",
        ap50,
        trial.agnostic().whole(raw.classless()),
    )


def _classes(
    trial: Trial, raw: Raw, covered: NDArray[np.bool_], n_rows: NDArray[np.int64], ap50: float
) -> Iterator[Finding]:
    truth = trial.truth
    on_covered = covered[truth.image]
    n_objects = np.bincount(truth.label[on_covered], minlength=len(n_rows)) * trial.evaluated()
    common = (n_objects >= LEAST_OF_CLASS) & (n_rows > 0)
    if not common.any():
        return
    ratio = float(np.quantile(n_rows[common] / n_objects[common], 0.1))
    lost = (n_rows == 0) & (n_objects >= LEAST_OF_CLASS) & (ratio * n_objects >= EXPECTED)
    if not lost.any():
        return
    lost = (n_rows == 0) & (n_objects > 0)  # and with those the rarer ones
    names = [truth.categories.names[k] for k in np.flatnonzero(lost).tolist()]
    kept = truth.take(np.flatnonzero(n_rows[truth.label] > 0))
    yield Finding(
        "classes-without-detections",
        f"{len(names)} of {(n_objects > 0).sum()} classes have no detection although the ground "
        f"truth has {int(n_objects[lost].sum()):,} objects of them: {few(names)}; AP50 "
        "after is that of the others",
        ap50,
        replace(trial, truth=kept).whole(raw),
    )
