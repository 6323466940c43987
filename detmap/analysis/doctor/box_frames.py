"""The frame that boxes are measured in: the image's own pixels, those of a resized copy, fractions.

The size of a frame is estimated from pairs: in cells of image and class with few objects, the best
detections are taken for these objects wherever they lie, and the ratio of their sides and of their
centers tells the scale. Most such pairs need not be right: the mode is taken. It is then measured
on the rows that overlap objects after this guess.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from detmap.analysis.doctor.box_layouts import Boxes
from detmap.analysis.doctor.raw_rows import Raw, best_objects
from detmap.analysis.doctor.trial import Sample
from detmap.core.tables import boxes_as
from detmap.core.tables.grouping import labels

LEAST_PAIRS = 8  # from which a scale is estimated
MOST_OBJECTS = 3  # of a cell whose objects are paired
NEAR = 0.03  # two logarithms of scales that agree
AGAIN = 4  # times that a size is measured, each time on the rows that overlap after the last one
OVERLAP = 0.3  # from which a row is taken for an object
BORDER = 0.25  # of an object's side: nearer edges are left out, as detectors clip boxes there
SOFT = 4.0  # deviations from which on an edge counts for nothing
LEAST_ERROR = 2e-4  # of a size
ERRORS = 4.0  # of a size, within which a usual one is the right one
SHIFTED = 6.0  # of the same, of an offset that is no accident
STRETCH = 1.25  # of the errors, as a real detector's edges are not independent
USUAL = (
    (320, 416, 512, 608, 640, 800, 1024, 1280),
    (224, 256, 300, 384, 448, 480, 500, 600, 720, 768, 960, 1000, 1080, 1333, 1536, 1920),
    tuple(range(32, 4097, 32)),
)
"""Sides that images are resized to, the most usual ones first."""
FACTORS = (
    (1.0, 0.5, 2.0, 1 / 3, 3.0, 0.25, 4.0, 1.5, 2 / 3),
    (0.75, 4 / 3, 1.25, 0.8, 5.0, 6.0, 8.0, 0.2, 1 / 6, 0.125, 2.5, 0.4, 0.6, 0.1, 10.0),
    tuple(n / 20 for n in range(1, 80) if n != 20),
)
"""The same of factors."""
LIKELIER = 3.0  # of the same, from which a size is told from the next one
LESS_USUAL = 1.5  # of the logarithm of a likelihood, per row of these tables


@dataclass(frozen=True, slots=True)
class Frame:
    """The pixels that boxes are measured in.

    Parameters
    ----------
    kind : "square" (stretched to the same width and height), "long" and "short" (that side has the
        length), "letterbox" (the long side, and bars around), "scale" (one factor for all images),
        "exchanged" (width and height of each image)
    size : pixels, or the factor
    error : the standard error of a measured size; 0 where nothing was measured
    offset : pixels of the frame in x and y that boxes are shifted by
    is_usual : whether the size is the only usual one that the error allows
    """

    kind: str
    size: float
    error: float = 0.0
    offset: tuple[float, float] = (0.0, 0.0)
    is_usual: bool = False

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
        bars = (self.size - scales * size) / 2 if self.kind == "letterbox" else self.offset
        return np.concatenate([(boxes[:, :2] - bars) / scales, boxes[:, 2:] / scales], axis=1)

    def per_unit(self, edges: Boxes, size: Boxes) -> Boxes:
        """(n, 4) edges of boxes of the image in the same frame of size 1."""
        unit = replace(self, size=1.0)
        scales = unit.scales(size)
        bars = (1.0 - scales * size) / 2 if self.kind == "letterbox" else np.zeros_like(size)
        return np.asarray(edges * np.tile(scales, 2) + np.tile(bars, 2))

    def guess(self, of_fractions: bool) -> str:
        """In words, how a size was guessed; "" of one that is none."""
        if self.size == 1.0:
            return ""
        if not self.error:
            return " (size guessed from few boxes)"
        inverse = of_fractions and self.kind == "scale"
        error = self.error / self.size**2 if inverse else self.error
        unit = " pixels" if of_fractions or self.kind != "scale" else ""
        return f" (size guessed; standard error {error:.1g}{unit})"

    def told(self) -> str:
        """In words."""
        number = f"{self.size:.6g}"
        x, y = self.offset
        moved = f"shifted by {x:.4g} pixels in x and {y:.4g} in y"
        if self.kind == "scale" and self.size == 1.0:
            return moved
        shifted = f", and {moved}" if x or y else ""
        return {
            "square": f"of images stretched to {number} x {number} pixels",
            "long": f"of images whose long side is {number} pixels",
            "short": f"of images whose short side is {number} pixels",
            "letterbox": f"of images letterboxed to {number} x {number} pixels",
            "scale": f"{number} times the image's pixels{shifted}",
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


def measured(
    frame: Frame, sample: Sample, layout: Callable[[Boxes], Boxes], undo: Callable[[Frame], Raw]
) -> Frame:
    """A frame with its size measured on the rows that overlap objects; itself where too few do.

    layout : four numbers of a row to left, top, width, height
    undo : a frame to the rows of the sample read in it
    """
    for _ in range(AGAIN):
        met = best_objects(undo(frame), sample.truth, OVERLAP)
        order = np.lexsort((-sample.rows.score[met.row], met.place))
        best = order[np.flatnonzero(np.diff(met.place[order], prepend=-1))]
        found = _fitted(frame, sample, layout(sample.rows.boxes[met.row[best]]), met.place[best])
        if found is None:
            return frame
        done = abs(found.size / frame.size - 1) < LEAST_ERROR and found.offset == frame.offset
        frame = found
        if done:
            break
    return frame


def _fitted(frame: Frame, sample: Sample, boxes: Boxes, place: NDArray[np.integer]) -> Frame | None:
    """The size by robust least squares on edges, in sides of their objects, with the error that
    the scatter of objects gives, and an offset if there is one; None for too few edges.
    """
    truth = sample.truth
    size = np.column_stack([truth.images.width, truth.images.height])[truth.image[place]]
    objects = boxes_as(truth.boxes, truth.box_format, "xywh")[place]
    edges = np.hstack([objects[:, :2], objects[:, :2] + objects[:, 2:]])
    sides = np.tile(objects[:, 2:], 2)
    far = (edges > BORDER * sides) & ~(edges > np.tile(size, 2) - BORDER * sides)
    unit = frame.per_unit(edges, size)
    deviation = np.tile(replace(frame, size=1.0).scales(size), 2) * np.maximum(sides, 1e-9)
    x = unit / deviation
    y = np.hstack([boxes[:, :2], boxes[:, :2] + boxes[:, 2:]]) / deviation
    far &= np.isfinite(x) & np.isfinite(y)
    x, y = np.where(far, x, 0.0), np.where(far, y, 0.0)
    if far.sum() < 2 * LEAST_PAIRS:
        return None
    found = _regressed(x[:, :, None], y, far, [frame.size])
    if found is None or not (found[0][0] > 0 and np.isfinite(found[1][0])):
        return None
    (factor,), (error,), offset = *found, (0.0, 0.0)
    if frame.kind == "scale":
        once = np.where(far, 1 / deviation, 0.0)[:, :, None] * np.tile(np.eye(2), (2, 1))
        columns = np.concatenate([x[:, :, None], once], axis=2)
        moved = _regressed(columns, y, far, [frame.size, *frame.offset])
        (_, *off), (_, *doubt) = moved or ((1.0,), (0.0,))
        if any(abs(o) > max(SHIFTED * e, 1.0) for o, e in zip(off, doubt, strict=True)):
            assert moved is not None
            factor, error = moved[0][0], moved[1][0]
            offset = (_whole(off[0], doubt[0]), _whole(off[1], doubt[1]))
    error = max(float(error), LEAST_ERROR * float(factor))
    return replace(frame, size=float(factor), error=error, offset=offset)


def _whole(offset: float, error: float) -> float:
    """An offset, or the whole number that its error allows."""
    return float(round(offset) if abs(offset - round(offset)) < 2 * error else offset)


def _regressed(
    columns: Boxes, y: Boxes, far: NDArray[np.bool_], start: Sequence[float]
) -> tuple[Boxes, Boxes] | None:
    """(k,) factors of columns (n, 4, k) by robust least squares, and their errors; None if several
    fit.
    """
    factors = np.array(start)
    for _ in range(AGAIN):
        off = y - columns @ factors
        spread = max(1.4826 * float(np.median(np.abs(off[far]))), 1e-9)
        weight = far * np.maximum(1 - (off / (SOFT * spread)) ** 2, 0.0) ** 2
        weighted = columns * weight[:, :, None]
        try:
            inverse = np.linalg.inv(np.tensordot(weighted, columns, ((0, 1), (0, 1))))
        except np.linalg.LinAlgError:
            return None
        factors = inverse @ np.tensordot(weighted, y, ((0, 1), (0, 1)))
    score = (weighted * (y - columns @ factors)[:, :, None]).sum(axis=1)
    return factors, STRETCH * np.sqrt(np.diag(inverse @ (score.T @ score) @ inverse))


def usual(frame: Frame, of_fractions: bool = False) -> list[Frame]:
    """A measured frame with the usual sizes that its error allows, the likeliest first."""
    if not frame.error:
        return []
    inverse = of_fractions and frame.kind == "scale"
    tables = USUAL if frame.kind != "scale" or of_fractions else FACTORS
    seen: dict[float, float] = {}
    for level, row in enumerate(tables):
        for value in row:
            if value == 1.0 and frame.offset == (0.0, 0.0):
                continue
            meant = 1 / value if inverse else float(value)
            off = (frame.size - meant) / frame.error
            if abs(off) <= ERRORS and meant not in seen:
                seen[meant] = off * off / 2 + LESS_USUAL * level
    sizes = sorted(seen, key=lambda each: seen[each])
    alone = len(sizes) < 2 or seen[sizes[1]] - seen[sizes[0]] > LIKELIER
    return [replace(frame, size=each, is_usual=alone and each == sizes[0]) for each in sizes]


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
