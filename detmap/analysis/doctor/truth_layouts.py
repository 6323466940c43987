"""Hypotheses about boxes of the ground truth, judged by its own fields: other numbers than left,
top, width and height in pixels, or exchanged sizes of images.

A layout is a candidate only if boxes contradict the sizes of their images or their `area` as they
are, and fit both in the layout. Detections choose among several.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.analysis.doctor.box_layouts import FRACTION, LAYOUTS, MEANT, SHARE, Boxes
from detmap.core.tables import Truth

BEYOND, PIXELS = 0.05, 2.0  # of a side, and pixels, that a box may reach out of its image
ODD, LEAST_ODD = 0.03, 5  # share and number of boxes beyond their image that are no accident
MENDED = 0.2  # share of these that may be left in another layout
EXACT = 0.02  # of the area of a box, by which that of the object may differ
CONSTANT = 0.01  # relative spread of area / box, if all boxes are scaled alike
LEAST = 10  # objects
LOOKED_AT = 2048  # objects whose `area` is compared to find a scale


class Reading(NamedTuple):
    """A ground truth with boxes or sizes read in another way."""

    name: str
    meaning: str
    truth: Truth


def is_odd(truth: Truth) -> bool:
    """Returns whether boxes contradict sizes of images, or are in fractions."""
    if truth.box_format != "xywh" or len(truth) < LEAST:
        return False
    boxes = truth.boxes
    first = boxes[:LOOKED_AT]
    if (np.abs(first) <= FRACTION).all(axis=1).mean() >= SHARE:
        return bool(np.nanmax(truth.images.width, initial=0) > FRACTION)
    return beyond(truth, boxes).mean() >= ODD or _scale(truth) is not None


def beyond(truth: Truth, boxes: Boxes, size: Boxes | None = None) -> NDArray[np.bool_]:
    """Returns (G,) which boxes x, y, width, height reach clearly out of their image."""
    if size is None:
        size = np.column_stack([truth.images.width, truth.images.height])
    out = np.zeros(len(boxes), dtype=bool)
    with np.errstate(invalid="ignore"):
        for axis in (0, 1):
            side = size[:, axis][truth.image]
            first, length = boxes[:, axis], boxes[:, 2 + axis]
            room = BEYOND * side + PIXELS
            out |= (first < -room) | (first + length > side + room) | (length < 0)
    return out


def _scale(truth: Truth) -> float | None:
    """The factor of all boxes that their `area` shows: the same for all, and not that of masks."""
    some = slice(0, LOOKED_AT)
    box = truth.boxes[some, 2] * truth.boxes[some, 3]
    area = truth.area[some]
    good = (box > 0) & (area > 0) & ~truth.crowd[some]
    if good.sum() < max(LEAST, 0.9 * (~truth.crowd[some]).sum()):
        return None
    ratio = area[good] / box[good]
    middle = float(np.sort(ratio)[len(ratio) // 2])  # np.median imports numpy.ma
    near = np.abs(ratio / middle - 1) < CONSTANT
    if middle <= 1 + 4 * CONSTANT or near.mean() < SHARE:
        return None
    factor = middle**0.5
    # Objects of masks or outlines fill a part of their box: only what is more is a scale.
    return None if beyond(truth, truth.boxes * factor).mean() > ODD else factor


def readings(truth: Truth) -> Iterator[Reading]:
    """Yields every reading that the ground truth's own fields allow, the likeliest first."""
    if not is_odd(truth):
        return
    size = np.column_stack([truth.images.width, truth.images.height])
    known = not np.isnan(size).any()
    boxes = truth.boxes
    fractions = (np.abs(boxes) <= FRACTION).all(axis=1).mean() >= SHARE
    now = beyond(truth, boxes)
    found = []
    for layout, change in LAYOUTS.items():
        made = np.ascontiguousarray(change(boxes.copy()))
        if fractions and known:
            made = made * np.tile(size[truth.image], 2)
            meaning = f"fractions of the image's sides, {MEANT[layout]}"
        elif fractions or layout == "xywh" or now.mean() < ODD:  # `area` alone shows a scale
            continue
        else:
            meaning = MEANT[layout]
        left = beyond(truth, made).sum()
        if left <= (0.05 * len(truth) if fractions else MENDED * now.sum()):
            found.append((_fit(truth, made), left, meaning, replace(truth, boxes=made)))
    found.sort(key=lambda each: (-round(each[0], 2), each[1]))
    for _, _, meaning, other in found:
        yield Reading("truth-boxes", f"boxes are {meaning}", other)
    factor = None if fractions else _scale(truth)
    if factor is not None:
        meaning = f"boxes are 1/{factor:.4g} of their size by `area`"
        yield Reading("truth-boxes", meaning, replace(truth, boxes=boxes * factor))
    if known and not fractions and now.mean() >= ODD:
        turned = beyond(truth, boxes, size[:, ::-1])
        if turned.sum() <= MENDED * now.sum():
            images = replace(truth.images, width=truth.images.height, height=truth.images.width)
            meaning = "width and height of images are exchanged"
            yield Reading("truth-image-sizes", meaning, replace(truth, images=images))


def _fit(truth: Truth, boxes: Boxes) -> float:
    """The share of objects whose `area` is that of the box, in pixels or as the boxes are."""
    with np.errstate(all="ignore"):
        box = boxes[:, 2] * boxes[:, 3]
        return float((np.abs(truth.area / box - 1) <= EXACT).mean())
