"""Parts of the files where the highest-scoring boxes are all wrong while the others are right: half
the images in other pixels, one class in fractions, other class ids in the second half.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.analysis.doctor.explanation import is_wanted
from detmap.analysis.doctor.trial import Sample
from detmap.errors import few

LEAST = 40  # objects, as for other parts
SEVERAL = 2  # rows of an image that are all wrong
RIGHT = 0.3  # share of right rows in the other images, to compare with
SHARE, LEAST_IMAGES = 0.12, 5  # of the images with several rows that are all wrong
TIMES, DEVIATIONS = 3.0, 4.0  # times as many as a binomial distribution gives; of its deviation
LEAST_OF_CLASS, WRONG = 20, 0.05  # highest-scoring rows of a class, and share of them on objects
OBJECTS = 0.25  # of a class, as a share of its boxes


class Counts(NamedTuple):
    """Rows of each image or class, and how many are right."""

    n: NDArray[np.int64]
    right: NDArray[np.int64]


def reason(sample: Sample) -> str:
    """Returns which images or classes are all wrong beside others; "" if none are."""
    truth, rows = sample.truth, sample.rows
    n_objects = int(is_wanted(truth).sum())
    if n_objects < LEAST or not len(rows):
        return ""
    image, label = rows.places(truth)
    top = np.argsort(-rows.score, kind="stable")[:n_objects]
    top = top[(image[top] >= 0) & (label[top] >= 0)]
    on = np.zeros(len(rows), dtype=bool)
    on[sample.met.row] = True
    labeled = np.bincount(truth.image, minlength=len(truth.images))[image[top]] > 0
    per_image = _counts(image[top[labeled]], on[top[labeled]])
    wrong = wrong_images(per_image)
    if wrong:
        return _told(sample, per_image, wrong, "is on an object")
    per_class = _counts(label[top[labeled]], on[top[labeled]])
    by_class = _wrong_class(sample, per_class)
    if by_class:
        return by_class
    top = top[on[top]]
    per_image = _counts(image[top], sample.right[top])
    wrong = wrong_images(per_image)
    return _told(sample, per_image, wrong, "has the class of its object") if wrong else ""


def _counts(group: NDArray[np.int32], right: NDArray[np.bool_]) -> Counts:
    n = np.bincount(group)
    return Counts(n, np.bincount(group[right], minlength=len(n)))


def wrong_images(counts: Counts) -> list[int]:
    """Returns the images whose rows are all wrong, if they are far more than by chance."""
    n, right = counts
    several = n >= SEVERAL
    wrong = several & (right == 0)
    # An image counts without its first right row: else images with none would be the only low ones.
    others = several & (right > 0)
    left = int((n[others] - 1).sum())
    p = float((right[others] - 1).sum()) / left if left else 0.0
    chance = (1 - p) ** n[several]
    expected, deviation = float(chance.sum()), float((chance * (1 - chance)).sum()) ** 0.5
    n_wrong = int(wrong.sum())
    if p < RIGHT or n_wrong < max(LEAST_IMAGES, SHARE * several.sum(), TIMES * expected):
        return []
    return np.flatnonzero(wrong).tolist() if n_wrong > expected + DEVIATIONS * deviation else []


def _told(sample: Sample, counts: Counts, wrong: list[int], what: str) -> str:
    n, right = (np.delete(each, wrong) for each in counts)
    ids = sample.truth.images.ids
    return (
        f"in {len(wrong)} of {int((counts.n > 0).sum())} images no high-scoring box {what}, in the "
        f"others {right.sum() / n.sum():.0%}: such as {few(repr(ids[i].item()) for i in wrong)}"
    )


def _wrong_class(sample: Sample, counts: Counts) -> str:
    objects = np.bincount(sample.truth.label, minlength=len(counts.n))[: len(counts.n)]
    has_some = objects >= OBJECTS * counts.n  # boxes of a class without objects are false
    bad = has_some & (counts.n >= LEAST_OF_CLASS) & (counts.right <= WRONG * counts.n)
    n, right = counts.n[~bad].sum(), counts.right[~bad].sum()
    if not bad.any() or n < LEAST_OF_CLASS or right < RIGHT * n:
        return ""
    names = sample.truth.categories.names
    parts = few(
        f"{counts.right[k]} of {counts.n[k]} boxes of class {names[k]}"
        for k in np.flatnonzero(bad).tolist()
    )
    return f"{parts} are on an object, of those of other classes {right / n:.0%}"
