"""What was measured where no known mistake explains the numbers: so that a person sees where to
look.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.analysis.doctor import shape_fits, shuffled_images, uneven_parts
from detmap.analysis.doctor.explanation import (
    LEAST_AP50,
    LEAST_SHARP,
    MORE,
    ON,
    Fit,
    best_ious,
    elsewhere,
    is_wanted,
    measure,
)
from detmap.analysis.doctor.trial import Sample
from detmap.core.results.findings import Finding
from detmap.core.tables import Truth, boxes_as

DOUBTFUL = 0.05  # AP50
CHANCE = 0.04  # more than the recall of boxes of other images that is still chance
WELL = 0.5  # recall of a part that no boxes of other images have to be compared with
LEAST, LEAST_RECALL = 40, 0.3  # objects of a part; recall above chance of the other part
MOST_CLASSES = 6  # that are listed
NO_CLASSES = 3  # groupings that parts of right files do not differ by
QUARTERS = np.array(["top left", "top right", "bottom left", "bottom right"])
SMALL, LARGE = 32.0**2, 96.0**2  # area in pixels, as COCO divides it


class Part(NamedTuple):
    """Some objects: how many have a box on them, and how many a box of another image."""

    name: str
    n: int
    recall: float
    chance: float

    @property
    def is_chance(self) -> bool:
        """Whether boxes are on these objects no more often than by chance."""
        return self.n >= LEAST and self.recall <= self.chance + CHANCE

    @property
    def is_good(self) -> bool:
        """Whether these objects show what a part by chance lacks."""
        return self.recall >= self.chance + LEAST_RECALL

    def __str__(self) -> str:
        return f"{self.name} {self.recall:.2f} of {self.n}"


def facts(sample: Sample, ap50: float, *, explained: bool, shapes: bool) -> Iterator[Finding]:
    """Yields shuffled images; or what was measured if the numbers, or those of a part of the
    images, are no working detector's. With `shapes` also that shapes are not where boxes are.
    """
    if not len(sample.rows) or not len(sample.truth):
        return
    if not is_wanted(sample.truth).any():
        return
    low = ap50 < DOUBTFUL
    if low and explained:
        return
    shuffled = list(shuffled_images.facts(sample, ap50, all_wrong=low))
    yield from shuffled
    if shuffled:
        return
    uneven = uneven_parts.reason(sample)
    shaped = shapes and sample.trial.compares_shapes and sample.raw.is_shaped
    unlike = shape_fits.reason(sample, sample.rows) if shaped else ""
    if explained and not uneven and not unlike:
        return
    wanted = is_wanted(sample.truth)
    best = best_ious(sample.rows, sample.truth)[wanted]
    names = [(name, each[wanted]) for name, each in _groupings(sample.truth)]
    parts = (part for _, each in names[:NO_CLASSES] for part in _parts(each, best))
    if not (low or uneven or unlike) and all(part.recall >= WELL for part in parts):
        return
    far = best_ious(elsewhere(sample.rows, sample.truth), sample.truth)[wanted]
    groups = {name: list(_parts(each, best, far)) for name, each in names}
    fit = measure(sample, sample.rows)
    why = _reason(sample, fit, ap50, groups) or uneven or unlike
    if why:
        shown = [
            f"by {name}: {', '.join(map(str, parts))}" for name, parts in groups.items() if parts
        ]
        measured = (
            f"{fit.recall:.2f} of the objects have a box of any class on them (IoU at least 0.5), "
            f"{fit.own:.2f} one of their class, {fit.chance:.2f} one of another image's boxes"
        )
        text = f"{why}, and no known mistake explains it. {measured}. Objects with a box on them "
        text += f"{'; '.join(shown)}. {_coordinates(sample)}"
        yield Finding("unexplained", text, ap50)


def _reason(sample: Sample, fit: Fit, ap50: float, groups: dict[str, list[Part]]) -> str:
    """What is unlike a working detector; "" if nothing is."""
    every = Part("", int(is_wanted(sample.truth).sum()), fit.recall, fit.chance)
    if every.n < LEAST:
        return ""
    if every.is_chance:
        return "boxes are on objects hardly more often than by chance"
    share = np.bincount(sample.truth.label, minlength=len(sample.truth.categories))
    said = np.bincount(np.maximum(sample.rows.places(sample.truth)[1], 0), minlength=len(share))
    by_chance = float((share / share.sum() * (said / said.sum())).sum())
    agree = fit.own >= 2 * by_chance * fit.recall
    few = ap50 < LEAST_AP50 and fit.recall < fit.chance + MORE and fit.sharp < LEAST_SHARP
    if few and not agree:  # where classes agree, the detector may be as weak as that
        return "boxes are on few objects, and hardly any fits its object well"
    for name in ("order of images", "orientation", "position"):
        bad = [part for part in groups[name] if part.is_chance]
        if bad and any(part.is_good for part in groups[name]):
            return f"boxes on one part of the objects ({bad[0].name}) match as by chance"
    if ap50 < DOUBTFUL and fit.recall > LEAST_RECALL and not agree:
        return "boxes are on objects, but their classes agree as by chance"
    return ""


def _groupings(truth: Truth) -> Iterator[tuple[str, NDArray[np.str_]]]:
    """Names of parts for each object: file order, orientation, place in the image, size, class."""
    half = np.where(truth.image < len(truth.images) / 2, "first half", "second half")
    yield "order of images", half
    tall = truth.images.height > truth.images.width
    yield "orientation", np.where(tall, "portrait", "landscape")[truth.image]
    boxes = boxes_as(truth.boxes, truth.box_format, "xywh")
    size = np.column_stack([truth.images.width, truth.images.height])[truth.image]
    x, y = (boxes[:, :2] + boxes[:, 2:] / 2 > size / 2).T  # of unknown sizes all are the first
    yield "position", QUARTERS[y * 2 + x]
    area = boxes[:, 2] * boxes[:, 3]
    sizes = np.where(area < SMALL, "small", np.where(area < LARGE, "medium", "large"))
    yield "size", sizes
    yield "class", np.array(truth.categories.names, dtype=np.str_)[truth.label]


def _parts(
    names: NDArray[np.str_], best: NDArray[np.float64], far: NDArray[np.float64] | None = None
) -> Iterator[Part]:
    unique, code, counts = np.unique(names, return_inverse=True, return_counts=True)
    if len(unique) < 2:
        return
    far = np.zeros(len(best)) if far is None else far
    hits = np.bincount(code, best >= ON), np.bincount(code, far >= ON)
    for i in sorted(range(len(unique)), key=lambda i: -int(counts[i]))[:MOST_CLASSES]:
        n = int(counts[i])
        yield Part(str(unique[i]), n, float(hits[0][i]) / n, float(hits[1][i]) / n)


def _coordinates(sample: Sample) -> str:
    boxes, images = boxes_as(sample.rows.boxes, sample.rows.box_format, "xywh"), sample.truth.images
    low, high = boxes[:, :2].min(axis=0), (boxes[:, :2] + boxes[:, 2:]).max(axis=0)
    sizes = "unknown"
    if not np.isnan(images.width).any():
        sizes = f"up to {images.width.max():g} x {images.height.max():g} pixels"
    return (
        f"Boxes go from x {low[0]:.4g} to {high[0]:.4g} and y {low[1]:.4g} to {high[1]:.4g}; "
        f"sizes of images: {sizes}"
    )
