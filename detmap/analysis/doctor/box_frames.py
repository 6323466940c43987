"""The frame that boxes are measured in: the image's own pixels, those of a resized copy, fractions.

The size of a frame is estimated from pairs: in cells of image and class with few objects, the best
detections are taken for these objects wherever they lie, and the ratio of their sides and of their
centers tells the scale. Most such pairs need not be right: the mode is taken, and refined by AP50.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from detmap.analysis.doctor.box_layouts import Boxes
from detmap.analysis.doctor.trial import Sample
from detmap.core.tables import boxes_as
from detmap.core.tables.grouping import labels

LEAST_PAIRS = 8  # from which a scale is estimated
MOST_OBJECTS = 3  # of a cell whose objects are paired
NEAR = 0.03  # two logarithms of scales that agree
STEPS = (0.92, 0.95, 0.97, 0.985, 0.993, 1.007, 1.015, 1.03, 1.05, 1.08)
USUAL = (
    *(224, 256, 300, 320, 384, 416, 448, 480, 500, 512, 600, 608, 640, 672, 704, 720, 736, 768),
    *(800, 832, 864, 896, 960, 1000, 1008, 1024, 1080, 1120, 1200, 1280, 1333, 1344, 1536, 1920),
    *(2048, 4096),
)
"""Sides that images are resized to."""


@dataclass(frozen=True, slots=True)
class Frame:
    """The pixels that boxes are measured in.

    Parameters
    ----------
    kind : "square" (stretched to the same width and height), "long" and "short" (that side has the
        length), "letterbox" (the long side, and bars around), "scale" (one factor for all images),
        "exchanged" (width and height of each image)
    size : pixels, or the factor
    """

    kind: str
    size: float

    def scales(self, size: Boxes) -> Boxes:
        """(n, 2) pixels of the frame a pixel of the image, x and y; `size` is (n, 2)."""
        if self.kind == "scale":
            return np.full((len(size), 2), self.size)
        if self.kind == "exchanged":
            return size[:, ::-1] / size
        if self.kind == "square":
            return self.size / size
        side = size.min(axis=1) if self.kind == "short" else size.max(axis=1)
        return np.repeat((self.size / side)[:, None], 2, axis=1)

    def undone(self, boxes: Boxes, size: Boxes) -> Boxes:
        """Boxes x, y, width, height of the image, from those of the frame."""
        scales = self.scales(size)
        bars = (self.size - scales * size) / 2 if self.kind == "letterbox" else 0.0
        return np.concatenate([(boxes[:, :2] - bars) / scales, boxes[:, 2:] / scales], axis=1)

    def told(self) -> str:
        """In words."""
        number = f"{self.size:.6g}"
        return {
            "square": f"of images stretched to {number} x {number} pixels",
            "long": f"of images whose long side is {number} pixels",
            "short": f"of images whose short side is {number} pixels",
            "letterbox": f"of images letterboxed to {number} x {number} pixels",
            "scale": f"{number} times the image's pixels",
            "exchanged": "of images whose width and height are exchanged",
        }[self.kind]


def frames(sample: Sample, layout: Callable[[Boxes], Boxes], of_fractions: bool) -> Iterator[Frame]:
    """The frames of a layout that the pairs suggest."""
    sized = not np.isnan(sample.truth.images.width).any()
    if of_fractions and sized:
        yield Frame("square", 1.0)
        yield Frame("letterbox", 1.0)
        yield Frame("long", 1.0)
    if (
        sized
        and not of_fractions
        and (sample.truth.images.width != sample.truth.images.height).any()
    ):
        yield Frame("exchanged", 1.0)
    rows, wanted, size = pairs(sample, layout)
    if len(rows) < LEAST_PAIRS:
        return
    with np.errstate(all="ignore"):
        sides = rows[:, 2:] / wanted[:, 2:]
        centers = (rows[:, :2] + rows[:, 2:] / 2) / (wanted[:, :2] + wanted[:, 2:] / 2)
    both = np.concatenate([sides, centers])
    scale = mode(both.ravel())
    if scale is not None and abs(np.log(scale)) > NEAR / 2:
        yield Frame("scale", scale)
    if not sized or of_fractions:
        return
    for kind in ("square", "long", "short", "letterbox"):
        lengths = sides / Frame(kind, 1.0).scales(size)
        if kind != "letterbox":
            lengths = np.concatenate([lengths, centers / Frame(kind, 1.0).scales(size)])
        length = mode(lengths.ravel())
        if length is not None and length >= 1:
            yield Frame(kind, length)


def refined(frame: Frame, ap50: Callable[[Frame], float]) -> Frame:
    """The size near a frame's own at which AP50 is highest, a usual one where that is as good."""
    best, most = frame, ap50(frame)
    for _ in range(2):
        center = best.size
        for step in STEPS:
            tried = replace(frame, size=center * step)
            value = ap50(tried)
            if value > most:
                best, most = tried, value
        if best.size == center:
            break
    tidy = [(value, ap50(replace(frame, size=value))) for value in _usual(best)]
    good = [(value, each) for value, each in tidy if each >= most - 0.004]
    return replace(frame, size=max(good, key=lambda pair: pair[1])[0]) if good else best


def _usual(frame: Frame) -> list[float]:
    """Usual sizes within a few percent."""
    sizes: list[float] = list(map(float, USUAL))
    if frame.kind == "scale":
        whole = [float(n) for n in range(1, 9)]
        parts = [n / down for down in (2, 3, 4, 5) for n in range(1, 4 * down) if n % down]
        sizes = [*whole, *parts, *(1 / n for n in (6, 8, 16, 32)), *(1 / n for n in sizes)]
    near = [value for value in sizes if abs(frame.size / value - 1) < 0.03]
    return sorted(near, key=lambda value: abs(frame.size / value - 1))[:4]


def pairs(sample: Sample, layout: Callable[[Boxes], Boxes]) -> tuple[Boxes, Boxes, Boxes]:
    """Detections and the objects that they are taken for, and the sizes of their images.

    Returns
    -------
    (n, 4) boxes of detections in a layout, (n, 4) boxes of objects, (n, 2) width and height
    """
    truth = sample.truth
    columns = [_met(view) for view in (sample, sample.agnostic)]
    row, place = (np.concatenate(each) for each in zip(*columns, strict=True))
    boxes = layout(sample.rows.boxes[row])
    objects = boxes_as(truth.boxes, truth.box_format, "xywh")[place]
    size = np.column_stack([truth.images.width, truth.images.height])[truth.image[place]]
    good = (boxes[:, 2:] > 0).all(axis=1) & (objects[:, 2:] > 0).all(axis=1)
    return boxes[good], objects[good], size[good]


def _met(sample: Sample) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """In cells of image and class with n objects, for small n: the n best rows with each."""
    truth, raw = sample.truth, sample.rows
    image, label = raw.places(truth)
    n_classes = len(truth.categories)
    known = np.flatnonzero((image >= 0) & (label >= 0) & np.isfinite(raw.score))
    cell = image[known].astype(np.int64) * n_classes + label[known]
    order = np.lexsort((-raw.score[known], cell))
    row, cell = known[order], cell[order]
    first = np.searchsorted(cell, cell)  # where the row's cell begins
    of_object = truth.image.astype(np.int64) * n_classes + truth.label
    objects = np.argsort(of_object, kind="stable")
    of_object = of_object[objects]
    begin = np.searchsorted(of_object, cell)
    count = np.searchsorted(of_object, cell, side="right") - begin
    best = (count <= MOST_OBJECTS) & (np.arange(len(cell)) - first < count)
    off = np.concatenate([[0], np.cumsum(count[best])])
    nth = labels(off)
    place = begin[best][nth] + np.arange(off[-1]) - off[nth]
    return row[best][nth], objects[place]


def mode(values: NDArray[np.float64]) -> float | None:
    """Returns the most frequent of positive numbers, by their logarithm; None of too few."""
    values = values[np.isfinite(values) & (values > 0)]
    if len(values) < LEAST_PAIRS:
        return None
    logs = np.sort(np.log(values))
    below = np.searchsorted(logs, logs - NEAR)
    above = np.searchsorted(logs, logs + NEAR, side="right")
    best = int(np.argmax(above - below))
    return float(np.exp(np.median(logs[below[best] : above[best]])))
