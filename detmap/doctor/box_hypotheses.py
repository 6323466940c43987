"""Hypotheses about boxes: the order of their numbers, and the frame that they are measured in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from detmap.doctor.box_frames import Boxes, Frame, frames, refined
from detmap.doctor.findings import Repair
from detmap.doctor.quick_checks import FRACTION, SHARE
from detmap.doctor.raw_rows import Raw
from detmap.doctor.trial import Sample
from detmap.tables import Truth, boxes_as, reversed_boxes

REFINED = 2  # of the frames
EXACT = 0.26  # pixels
LEAST_EXACT = 10  # boxes that are exactly a pixel off,
SHARE_EXACT = 0.03  # of those on an object,
TIMES_EXACT = 3  # times as many as are exactly right


def _corners(b: Boxes) -> Boxes:
    return np.column_stack([b[:, 0], b[:, 1], b[:, 2] - b[:, 0], b[:, 3] - b[:, 1]])


def _centered(b: Boxes) -> Boxes:
    return np.column_stack([b[:, 0] - b[:, 2] / 2, b[:, 1] - b[:, 3] / 2, b[:, 2], b[:, 3]])


def _swapped(b: Boxes) -> Boxes:
    return b[:, [1, 0, 3, 2]]


LAYOUTS: dict[str, Callable[[Boxes], Boxes]] = {
    "xywh": lambda b: b,
    "xyxy": _corners,
    "cxcywh": _centered,
    "yxhw": _swapped,
    "yxyx": lambda b: _corners(_swapped(b)),
}
"""Four numbers to left, top, width, height."""

MEANT = {
    "xywh": "left, top, width, height",
    "xyxy": "left, top, right, bottom",
    "cxcywh": "center, width, height",
    "yxhw": "top, left, height, width",
    "yxyx": "top, left, bottom, right",
}


def _centers(b: Boxes) -> Boxes:
    return np.column_stack([b[:, :2] + b[:, 2:] / 2, b[:, 2:]])


WRITTEN: dict[str, tuple[Callable[[Boxes], Boxes], str, tuple[str, ...]]] = {
    "xywh": (_centers, "cxcywh", ("xyxy", "xywh")),  # YOLO, "cxcywh"
    "xyxy": (_corners, "xywh", ("xyxy",)),  # "voc xywh"
}
"""By what a table holds: how to undo what a reader made of other numbers, what these were read as,
and what else they may be."""


def fractional(raw: Raw) -> bool:
    """Whether boxes are in fractions of something."""
    boxes = raw.boxes
    return bool(len(boxes)) and float((np.abs(boxes) <= FRACTION).all(axis=1).mean()) >= SHARE


def repairs(sample: Sample) -> Iterator[Repair]:
    """Every layout, and the best of the frames that the sample makes possible."""
    native = "xyxy" if sample.raw.box_format == "voc" else "xywh"
    of_fractions = fractional(sample.raw)
    for layout in () if of_fractions else LAYOUTS:
        if layout != native:
            yield Repair(
                "boxes-xy-swapped" if layout.startswith("yx") else f"boxes-{layout}",
                f"boxes are {MEANT[layout]}, and are read as {MEANT[native]}",
                partial(reread, layout=layout, frame=None),
                2 if layout == "yxyx" else 1,
            )
    undo, read_as, others = WRITTEN[native]
    for layout in () if of_fractions else others:
        yield Repair(
            f"boxes-{layout}",
            f"boxes are {MEANT[layout]}, and are read as {MEANT[read_as]}",
            partial(reread, layout=layout, frame=None, undo=undo),
            2,
        )

    def ap50(layout: str, frame: Frame) -> float:
        rows = reread(sample.rows, sample.truth, layout=layout, frame=frame)
        return sample.trial.whole(rows)

    candidates = [
        (ap50(layout, frame), layout, frame)
        for layout in LAYOUTS
        for frame in frames(sample, LAYOUTS[layout], of_fractions)
    ]
    as_is = sample.trial.whole(sample.rows)
    for value, layout, frame in sorted(candidates, key=lambda each: -each[0])[:REFINED]:
        if value < as_is:
            continue
        best = frame if frame.size == 1.0 else refined(frame, partial(ap50, layout))
        yield Repair(
            _name(best, of_fractions),
            _sentence(best, of_fractions, layout, native),
            partial(reread, layout=layout, frame=best),
            2 + 2 * (layout != native) + (best.kind in ("letterbox", "short", "long")),
            of_fractions,
        )


def _name(frame: Frame, of_fractions: bool) -> str:
    if of_fractions:
        return "boxes-normalised"
    return "boxes-letterboxed" if frame.kind == "letterbox" else "boxes-resized"


def _sentence(frame: Frame, of_fractions: bool, layout: str, native: str) -> str:
    order = f", as {MEANT[layout]}" if layout != native else ""
    if not of_fractions:
        return f"boxes are {frame.told()}{order}"
    if frame == Frame("square", 1.0):
        return f"boxes are in fractions of the image's sides{order}"
    if frame.kind == "scale":
        return f"boxes are in fractions of {1 / frame.size:.0f} pixels{order}"
    return f"boxes are in fractions, {frame.told().replace('1 x 1 pixels', 'a square')}{order}"


def reread(
    raw: Raw,
    truth: Truth,
    *,
    layout: str,
    frame: Frame | None,
    undo: Callable[[Boxes], Boxes] | None = None,
) -> Raw:
    """The rows with their boxes read in a layout and a frame, after what a reader did is undone."""
    boxes = LAYOUTS[layout](raw.boxes.copy() if undo is None else undo(raw.boxes))
    if frame is not None:
        image, _ = raw.places(truth)
        size = np.column_stack([truth.images.width, truth.images.height])[image]
        size[image < 0] = np.nan
        boxes = frame.undone(boxes, size)
    if raw.box_format == "voc" and not fractional(raw):
        boxes[:, :2] -= 1  # from 1 to 0
        if layout in ("xyxy", "yxyx"):
            boxes[:, 2:] += 1  # the last pixel belongs to the box
    return replace(raw, boxes=np.ascontiguousarray(boxes), box_format="xywh")


# --- corners the wrong way round ------------------------------------------------------------------


def turned(raw: Raw) -> Iterator[Repair]:
    """Corners of VOC's text in the other order, where some boxes have them the wrong way round."""
    bad = reversed_boxes(raw.boxes, raw.box_format) & (raw.box_format == "voc")
    if bad.any():
        text = f"{bad.sum():,} of {len(raw):,} boxes have their last pixel before the first: they "
        yield Repair("boxes-reversed", f"{text}overlap nothing", _turned, 1, True)


def _turned(raw: Raw, truth: Truth) -> Raw:
    del truth
    first, last = raw.boxes[:, :2], raw.boxes[:, 2:]
    boxes = np.where(
        reversed_boxes(raw.boxes, "voc")[:, None],
        np.hstack([np.minimum(first, last), np.maximum(first, last)]),
        raw.boxes,
    )
    return replace(raw, boxes=boxes)


# --- a pixel --------------------------------------------------------------------------------------

PIXELS = {
    "boxes-zero-based": ((-1, -1, -1, -1), "boxes count pixels from 0 where the truth is from 1"),
    "boxes-one-based": ((1, 1, 1, 1), "boxes count pixels from 1 where the truth is from 0"),
    "boxes-off-by-one": ((0, 0, -1, -1), "boxes are one pixel too narrow and too low"),
    "boxes-too-wide-by-one": ((0, 0, 1, 1), "boxes are one pixel too wide and too high"),
}
"""How corners differ from the truth's; what it means."""


def pixels(sample: Sample) -> Iterator[Repair]:
    """A pixel more or less, where many boxes are else exactly those of objects: what a real
    detector is off by on average is no such mistake.
    """
    met = sample.met
    order = np.lexsort((-met.iou, met.place))
    order = order[sample.right[met.row[order]]]
    best = order[np.unique(met.place[order], return_index=True)[1]]
    boxes = boxes_as(sample.rows.boxes[met.row[best]], sample.rows.box_format, "xywh")
    wanted = boxes_as(sample.truth.boxes[met.place[best]], sample.truth.box_format, "xywh")
    off = _edges(boxes) - _edges(wanted)
    exact = _exact(off, (0, 0, 0, 0))
    shown = []
    for name, (shift, text) in PIXELS.items():
        there = _exact(off, shift)
        enough = there.max() >= max(LEAST_EXACT, SHARE_EXACT * len(off))
        if enough and (there >= exact).all() and (there > TIMES_EXACT * exact).any():
            shown.append((there.sum(), Repair(name, text, partial(_moved, shift=shift), 1, True)))
    yield from [repair for _, repair in sorted(shown, key=lambda each: -each[0])[:1]]


def _exact(off: Boxes, shift: tuple[int, ...]) -> Boxes:
    """(2,) how many boxes are off by exactly this, in x and in y."""
    near = np.abs(off - shift) < EXACT
    return np.array([(near[:, 0] & near[:, 2]).sum(), (near[:, 1] & near[:, 3]).sum()], dtype=float)


def _edges(boxes: Boxes) -> Boxes:
    return np.concatenate([boxes[:, :2], boxes[:, :2] + boxes[:, 2:]], axis=1)


def _moved(raw: Raw, truth: Truth, *, shift: tuple[int, ...]) -> Raw:
    del truth
    boxes = boxes_as(raw.boxes, raw.box_format, "xywh").copy()
    boxes[:, :2] -= shift[:2]
    boxes[:, 2:] -= np.subtract(shift[2:], shift[:2])
    boxes[:, 2:] = np.maximum(boxes[:, 2:], 0.0)
    return replace(raw, boxes=boxes, box_format="xywh")
