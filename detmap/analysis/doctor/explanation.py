"""Whether fixed detections have the numbers of a working detector: a cause must explain the loss.

Measured without scores: how many objects have a box on them, beside the boxes of other images.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.analysis.doctor.raw_rows import Raw, best_objects
from detmap.analysis.doctor.trial import Sample
from detmap.core.tables import Truth, boxes_as

ON, SHARP = 0.5, 0.75  # IoU of a box on an object, and of a box that fits it
CLEARLY = 0.01  # of the mean overlap of objects that a shift or a scale has to add,
MUCH = 0.05  # and another order of numbers, or a turn,
DEVIATIONS = 6.0  # of the error of that mean
LEAST_SEEN = 20  # objects that are found before or after


class Fit(NamedTuple):
    """How boxes fit objects.

    Parameters
    ----------
    recall : share of objects with a box of any class on them (IoU at least 0.5)
    own : the same with a box of their class
    chance : `recall` with the boxes of another image
    sharp : share of the objects with a box on them whose IoU is at least 0.75
    """

    recall: float
    own: float
    chance: float
    sharp: float


def best_ious(rows: Raw, truth: Truth, *, own_class: bool = False) -> NDArray[np.float64]:
    """Returns (G,) the best IoU of each object with a box of any class, or of its class."""
    met = best_objects(rows, truth, 0.1)
    same: NDArray[np.bool_] | slice = slice(None)
    if own_class:
        _, label = rows.places(truth)
        same = label[met.row] == truth.label[met.place]
    best = np.zeros(len(truth))
    np.maximum.at(best, met.place[same], met.iou[same])
    return best


def is_closer(
    before: NDArray[np.float64],
    after: NDArray[np.float64],
    least: float,
    deviations: float = DEVIATIONS,
) -> bool:
    """Returns whether the mean overlap of objects (G,) that are found before or after rises by at
    least this, and that is no accident of few objects: by so many times the error of that mean.
    """
    gains = (after - before)[np.maximum(before, after) >= ON]
    if len(gains) < LEAST_SEEN:
        return False
    return bool(gains.mean() >= max(least, deviations * gains.std() / len(gains) ** 0.5))


def is_wanted(truth: Truth) -> NDArray[np.bool_]:
    """Returns (G,) which objects are not ignored."""
    return np.asarray(~(truth.crowd | truth.difficult | truth.role("ignore")))


def measure(sample: Sample, rows: Raw) -> Fit:
    """Returns how the rows fit the objects of a sample that are not ignored."""
    truth = sample.truth
    wanted = is_wanted(truth)
    if not wanted.any() or not len(rows):
        return Fit(0.0, 0.0, 0.0, 0.0)
    best = best_ious(rows, truth)[wanted]
    own = best_ious(rows, truth, own_class=True)[wanted]
    far = best_ious(elsewhere(rows, truth), truth)[wanted]
    on = best >= ON
    return Fit(
        float(on.mean()),
        float((own >= ON).mean()),
        float((far >= ON).mean()),
        float((best[on] >= SHARP).mean()) if on.any() else 0.0,
    )


def elsewhere(rows: Raw, truth: Truth) -> Raw:
    """Returns the rows of each image on the image half the sample further; those of a single image
    exchange its corners.
    """
    image, _ = rows.places(truth)
    n = len(truth.images)
    if n == 1 and len(rows):
        boxes = boxes_as(rows.boxes, rows.box_format, "xywh")
        low, high = boxes[:, :2].min(axis=0), (boxes[:, :2] + boxes[:, 2:]).max(axis=0)
        turned = np.hstack([low + high - boxes[:, :2] - boxes[:, 2:], boxes[:, 2:]])
        return replace(rows, boxes=turned, box_format="xywh")
    moved = np.where(image < 0, -1, (image + max(1, n // 2)) % n)
    known = np.flatnonzero(moved >= 0)
    ids = tuple(truth.images.ids.tolist())
    return replace(
        rows.take(known), images=ids, image=moved[known].astype(np.int32), key="id", files=()
    )


MORE, LEAST_SHARP = 0.1, 0.15  # of a working detector: recall above chance, and `sharp`
LEAST_AP50 = 0.02


def explains(fit: Fit, ap50: float) -> bool:
    """Returns whether these are the numbers of a working detector: boxes by chance, or scaled to
    the size of objects, are on few objects, and fit hardly any.
    """
    return ap50 >= LEAST_AP50 and fit.recall >= fit.chance + MORE and fit.sharp >= LEAST_SHARP
