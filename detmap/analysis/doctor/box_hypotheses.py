"""Hypotheses about boxes: the order of their numbers, and the frame that they are measured in."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache, partial

import numpy as np

from detmap.analysis.doctor.box_frames import LEAST_PAIRS, Frame, frames, measured, pairs, usual
from detmap.analysis.doctor.box_layouts import FRACTION, LAYOUTS, MEANT, SHARE, Boxes, corners
from detmap.analysis.doctor.explanation import CLEARLY, best_ious, is_closer
from detmap.analysis.doctor.quick_checks import (
    EXACT,
    LEAST_EXACT,
    SHARE_EXACT,
    TIMES_EXACT,
    best_pairs,
    narrow_axes,
)
from detmap.analysis.doctor.raw_rows import Raw, best_objects
from detmap.analysis.doctor.repair import Repair
from detmap.analysis.doctor.trial import Sample
from detmap.analysis.row_overlaps import Met
from detmap.core.adapters.voc import xml_boxes
from detmap.core.results.findings import Finding
from detmap.core.tables import Truth, boxes_as, reversed_boxes
from detmap.core.tables.notes import ODD

REFINED = 3  # of the frames
COSTLY = 0.02  # of AP, that two standard errors of a guessed size may cost
AS_GOOD = 0.01  # of AP50 that a usual size may lose
NEAR = 6.0  # pixels that two offsets of centers differ by at most, of one mistake


def _centers(b: Boxes) -> Boxes:
    return np.column_stack([b[:, :2] + b[:, 2:] / 2, b[:, 2:]])


WRITTEN: dict[str, tuple[Callable[[Boxes], Boxes], str, tuple[str, ...]]] = {
    "xywh": (_centers, "cxcywh", ("xyxy", "xywh")),  # YOLO, "cxcywh"
    "xyxy": (corners, "xywh", ("xyxy",)),  # "voc xywh"
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
    of_points = sample.raw.is_shaped  # boxes around shapes: their numbers have one meaning
    layouts = ("xywh", "yxhw") if of_points else tuple(LAYOUTS)
    undo, read_as, others = WRITTEN[native]
    for layout in () if of_fractions else layouts:
        if layout != native:
            yield _other_order(layout, native, None, 2 if layout == "yxyx" else 1)
    if native == "xywh" and not of_fractions and not of_points:
        text = "boxes are left, top, height, width, and are read as left, top, width, height"
        yield Repair("boxes-xyhw", text, _exchanged)
    for layout in () if of_fractions or of_points else others:
        yield _other_order(layout, read_as, undo, 2)

    def ap50(layout: str, frame: Frame) -> float:
        rows = reread(sample.rows, sample.truth, layout=layout, frame=frame)
        return sample.trial.whole(rows)

    candidates = [
        (ap50(layout, frame), layout, frame)
        for layout in layouts
        for frame in frames(sample, LAYOUTS[layout], of_fractions)
    ]
    as_is = sample.trial.whole(sample.rows)
    for value, layout, frame in sorted(candidates, key=lambda each: -each[0])[:REFINED]:
        if value < as_is:
            continue
        best = _sized(sample, layout, frame, of_fractions)
        weight = 2 + 2 * (layout != native) + (best.kind in ("letterbox", "short", "long"))
        weight += 2 * any(best.offset)
        yield Repair(
            _name(best, of_fractions, layout, native),
            _sentence(best, of_fractions, layout, native) + best.guess(of_fractions),
            partial(reread, layout=layout, frame=best),
            weight,
            of_fractions,
            best.told(),
        )


def _other_order(
    layout: str, read_as: str, undo: Callable[[Boxes], Boxes] | None, weight: int
) -> Repair:
    text = f"boxes are {MEANT[layout]}, and are read as {MEANT[read_as]}"
    apply = partial(reread, layout=layout, frame=None, undo=undo)
    return Repair(_named(layout), text, apply, weight)


def _sized(sample: Sample, layout: str, frame: Frame, of_fractions: bool) -> Frame:
    """A frame with its measured size, or a usual one that the error of this allows."""
    if frame.size == 1.0:
        return frame

    def undo(tried: Frame) -> Raw:
        return reread(sample.rows, sample.truth, layout=layout, frame=tried)

    best = measured(frame, sample, LAYOUTS[layout], undo)
    most = sample.trial.whole(undo(best)) - AS_GOOD
    tidy = usual(best, of_fractions)
    return next((each for each in tidy if sample.trial.whole(undo(each)) >= most), best)


def _named(layout: str) -> str:
    return "boxes-xy-swapped" if layout.startswith("yx") else f"boxes-{layout}"


def _exchanged(raw: Raw, _: Truth) -> Raw:
    return replace(raw, boxes=np.ascontiguousarray(raw.boxes[:, [0, 1, 3, 2]]))


def _name(frame: Frame, of_fractions: bool, layout: str, native: str) -> str:
    if of_fractions:
        return "boxes-normalised"
    if frame.kind == "scale" and frame.size == 1.0:
        return "boxes-shifted" if layout == native else _named(layout)
    if frame.kind == "exchanged":
        return "boxes-sizes-swapped"
    return "boxes-letterboxed" if frame.kind == "letterbox" else "boxes-resized"


def _sentence(frame: Frame, of_fractions: bool, layout: str, native: str) -> str:
    order = f", as {MEANT[layout]}" if layout != native else ""
    if not of_fractions:
        return f"boxes are {frame.told()}{order}"
    if frame == Frame("square", 1.0):
        return f"boxes are in fractions of the image's sides{order}"
    if frame.kind == "scale":
        return f"boxes are in fractions of {1 / frame.size:.0f} pixels{order}"
    if frame == Frame("long", 1.0):
        return f"boxes are in fractions of the image's long side{order}"
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


def doubted(repair: Repair, sample: Sample) -> Repair:
    """A repair whose sentence says that the number is approximate, where the error of a guessed
    size may cost much AP.
    """
    keywords = getattr(repair.apply, "keywords", {})
    inner = getattr(keywords.get("apply"), "keywords", keywords)
    frame = inner.get("frame")
    if frame is None or frame.size == 1.0 or (frame.is_usual and frame.error):
        return repair
    most = sample.trial.whole_ap(repair.apply(sample.rows, sample.truth))
    for sign in (-1, 1) if frame.error else ():
        other = replace(frame, size=frame.size + 2 * sign * frame.error)
        rows = reread(sample.rows, sample.truth, **{**inner, "frame": other})
        if most - sample.trial.whole_ap(rows) > COSTLY:
            break
    else:
        if frame.error:
            return repair
    return replace(repair, sentence=f"{repair.sentence}; the fixed number is approximate")


# --- corners the wrong way round ------------------------------------------------------------------


def turned(raw: Raw) -> Iterator[Repair]:
    """Corners of VOC's text in the other order, where some boxes have them the wrong way round."""
    bad = reversed_boxes(raw.boxes, raw.box_format) & (raw.box_format == "voc")
    if bad.any():
        text = f"{bad.sum():,} of {len(raw):,} boxes have their last pixel before the first: they "
        yield Repair("boxes-reversed", f"{text}overlap nothing", _turned, 1, True)


def _turned(raw: Raw, _: Truth) -> Raw:
    first, last = raw.boxes[:, :2], raw.boxes[:, 2:]
    boxes = np.where(
        reversed_boxes(raw.boxes, "voc")[:, None],
        np.hstack([np.minimum(first, last), np.maximum(first, last)]),
        raw.boxes,
    )
    return replace(raw, boxes=boxes)


# --- a shift, or a scale near 1 -------------------------------------------------------------------


@lru_cache(maxsize=2)  # asked twice for a sample; an examination clears this at its end
def moves(sample: Sample) -> tuple[Repair, ...]:
    """All boxes shifted by the same pixels, or scaled by a little, where that shows in the overlap
    of objects: a real detector's mean error is far smaller.
    """
    return tuple(_found_moves(sample))


def _found_moves(sample: Sample) -> Iterator[Repair]:
    before = best_ious(sample.rows, sample.truth, own_class=True)
    near = best_objects(sample.rows, sample.truth, 0.1)
    _, label = sample.rows.places(sample.truth)
    same = label[near.row] == sample.truth.label[near.place]
    overlapping = best_pairs(
        Met(near.row[same], near.place[same], near.iou[same]), sample.rows, sample.truth
    )

    def layout(given: Boxes) -> Boxes:
        return boxes_as(given, sample.rows.box_format, "xywh")

    native = "xyxy" if sample.raw.box_format == "voc" else "xywh"
    found: list[tuple[str, str, Callable[[Raw, Truth], Raw]]] = []
    tried = []
    for boxes, wanted in (overlapping, pairs(sample, layout)[:2]):
        if len(boxes) < LEAST_PAIRS:
            continue
        centers, objects = (b[:, :2] + b[:, 2:] / 2 for b in (boxes, wanted))
        shift = np.array([_middle(off) for off in (centers - objects).T])
        far = objects > np.median(objects, axis=0)
        factor = float(np.median((centers / np.maximum(objects, 1e-9))[far])) if far.any() else 1.0
        x, y = (float(each) for each in np.round(shift, 1))
        text = f"boxes are shifted by {x:g} pixels in x and {y:g} in y"
        found.append(("boxes-shifted", text, partial(_moved, shift=(x, y, x, y))))
        if 0.5 < factor < 2 and abs(factor - 1) > 0.002:
            frame = _sized(sample, native, Frame("scale", factor), False)
            again = partial(reread, layout=native, frame=frame)
            text = f"boxes are {frame.told()}{frame.guess(False)}"
            found.append((_name(frame, False, native, native), text, again))
    for name, text, apply in found:
        after = best_ious(apply(sample.rows, sample.truth), sample.truth, own_class=True)
        if is_closer(before, after, CLEARLY):
            tried.append((float(after.mean()), name, text, apply))
    for mean, name, guess, apply in sorted(tried, key=lambda each: -each[0])[:1]:
        text = f"{guess}: mean IoU of objects {before.mean():.2f}, {mean:.2f} after the fix"
        yield Repair(
            name, text, apply, 1, True, guess.partition(" (")[0].removeprefix("boxes are ")
        )


def _middle(offsets: Boxes) -> float:
    """The median of the offsets around the most frequent one."""
    offsets = np.sort(offsets)
    ends = np.searchsorted(offsets, offsets + NEAR, side="right")
    best = int(np.argmax(ends - np.arange(len(offsets))))
    return float(np.median(offsets[best : ends[best]]))


# --- what the numbers of the ground truth mean ----------------------------------------------------

TRUTH_READINGS = (
    ("xyxy", (1, 1, 0, 0), "continuous pixels from 0"),
    ("voc from 0", (1, 1, 1, 1), "first and last pixels from 0"),
)
"""Box formats of VOC XML, how they change corners that were read as ``voc``; what they mean."""


def truth_readings(sample: Sample) -> Iterator[Finding]:
    """The box format of VOC XML that fits the detections clearly better than the devkit's, or
    numbers that the devkit's cannot be.
    """
    truth, rows = sample.truth, sample.rows
    if truth.family != "voc" or truth.box_format != "voc" or not len(truth):
        return
    before, found = best_ious(rows, truth, own_class=True), []
    for box_format, change, meaning in TRUTH_READINGS:
        other = replace(truth, boxes=truth.boxes + np.array(change, dtype=np.float64))
        after = best_ious(rows, other, own_class=True)
        if is_closer(before, after, CLEARLY):
            found.append((float(after.mean()), box_format, meaning))
    for mean, box_format, meaning in sorted(found, reverse=True)[:1]:
        text = (
            f"boxes of the ground truth fit the detections as {meaning}: mean IoU of objects "
            f"{before.mean():.2f}, then {mean:.2f}; if its tool writes these, use "
            f"--truth-box-format '{box_format}'"
        )
        columns = rows.box_format != "voc" and not sample.raw.source.endswith("json")
        if columns and box_format == "xyxy" and (rows.boxes == np.floor(rows.boxes)).all():
            text += "; if the detections are first and last pixels, --detections-box-format voc"
        yield Finding("truth-box-format", text)
    odd = (truth.boxes[:, :2] < 1).any(axis=1) | (truth.boxes != np.floor(truth.boxes)).any(axis=1)
    if not found and odd.mean() > ODD:
        text = f"{odd.sum():,} of {len(truth):,} objects begin before pixel 1 or have decimals"
        yield Finding("truth-box-format", f"{text}: {xml_boxes.CHOICES}")


# --- a pixel --------------------------------------------------------------------------------------

PIXELS = {
    "boxes-zero-based": ((-1, -1, -1, -1), "boxes count pixels from 0, the ground truth from 1"),
    "boxes-one-based": ((1, 1, 1, 1), "boxes count pixels from 1, the ground truth from 0"),
    "boxes-off-by-one": ((0, 0, -1, -1), "boxes are one pixel too narrow and too low"),
    "boxes-too-wide-by-one": ((0, 0, 1, 1), "boxes are one pixel too wide and too high"),
}
"""How corners differ from the ground truth's; what it means."""

NARROW = (
    ("boxes-narrow-by-one", (0, 0, -1, 0), "widths are one pixel too small"),
    ("boxes-low-by-one", (0, 0, 0, -1), "heights are one pixel too small"),
)
"""Of x and y alone."""


def pixels(sample: Sample) -> Iterator[Repair]:
    """A pixel more or less, where many boxes are else exactly those of objects: what a real
    detector is off by on average is no such mistake.
    """
    met = sample.met
    right = sample.right[met.row]
    boxes, wanted = best_pairs(
        Met(met.row[right], met.place[right], met.iou[right]), sample.rows, sample.truth
    )
    if not len(boxes):
        return
    for axis in np.flatnonzero(narrow_axes(boxes, wanted)).tolist():
        name, shift, text = NARROW[axis]
        yield Repair(name, text, partial(_moved, shift=shift), 1, True)
    off = _edges(boxes) - _edges(wanted)
    exact = _exact(off, (0, 0, 0, 0))
    shown = []
    for name, (shift, text) in PIXELS.items():
        there = _exact(off, shift)
        enough = there >= max(LEAST_EXACT, SHARE_EXACT * len(off))
        if (there >= exact).all() and (enough & (there > TIMES_EXACT * exact)).any():
            shown.append((there.sum(), Repair(name, text, partial(_moved, shift=shift), 1, True)))
    yield from [repair for _, repair in sorted(shown, key=lambda each: -each[0])[:1]]


def _exact(off: Boxes, shift: tuple[int, ...]) -> Boxes:
    """(2,) how many boxes are off by exactly this, in x and in y."""
    near = np.abs(off - shift) < EXACT
    return np.array([(near[:, 0] & near[:, 2]).sum(), (near[:, 1] & near[:, 3]).sum()], dtype=float)


def _edges(boxes: Boxes) -> Boxes:
    return np.concatenate([boxes[:, :2], boxes[:, :2] + boxes[:, 2:]], axis=1)


def _moved(raw: Raw, _: Truth, *, shift: tuple[float, ...]) -> Raw:
    boxes = boxes_as(raw.boxes, raw.box_format, "xywh").copy()
    boxes[:, :2] -= shift[:2]
    boxes[:, 2:] -= np.subtract(shift[2:], shift[:2])
    boxes[:, 2:] = np.maximum(boxes[:, 2:], 0.0)
    return replace(raw, boxes=boxes, box_format="xywh")
