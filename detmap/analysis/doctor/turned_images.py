"""Hypotheses about turned images: EXIF orientation that one side ignores, and mirrored boxes."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from detmap.analysis.doctor.explanation import MUCH, ON, best_ious, is_closer
from detmap.analysis.doctor.raw_rows import Raw
from detmap.analysis.doctor.repair import Repair
from detmap.analysis.doctor.trial import Sample
from detmap.core.tables import Truth, boxes_as

Boxes = NDArray[np.float64]

FOUND = 0.9  # mean IoU of objects that leaves no room for turns
TURNS = {1: "90 degrees clockwise", 2: "180 degrees", 3: "90 degrees counterclockwise"}
MIRRORS = {4: "left and right", 5: "top and bottom"}
CLEARLY = 0.1  # of the objects of a group that a turn has to match in addition,
TIMES = 1.25  # and how many times as many as without it
FITS, FITS_NOT = 0.5, 0.25  # mean IoU of an image's objects with the turn, and without it
SLIGHTLY = 0.1  # the same where most turned images have this turn
LEAST_TURNED = 0.05  # share of the images that are turned one by one
ACCIDENTS, DEVIATIONS = 2.0, 3.0  # times as many as a mirror finds; of a difference of counts


def unturned(boxes: Boxes, size: Boxes, turn: int) -> Boxes:
    """Returns (n, 4) boxes x, y, width, height of images (n, 2) that were turned or mirrored."""
    x, y, w, h = boxes.T
    width, height = size.T
    columns = {
        1: (y, height - x - w, h, w),
        2: (width - x - w, height - y - h, w, h),
        3: (width - y - h, x, h, w),
        4: (width - x - w, y, w, h),
        5: (x, height - y - h, w, h),
    }
    return np.stack(columns[turn], axis=1)


def repairs(sample: Sample) -> Iterator[Repair]:
    """Turns of all images of an orientation; of single images; mirrored boxes."""
    truth = sample.truth
    if np.isnan(truth.images.width).any() or not len(sample.rows) or not len(truth):
        return
    as_is = best_ious(sample.rows, truth)
    if as_is.mean() >= FOUND:
        return
    turned = {
        turn: best_ious(_turned(sample.rows, truth, turn=turn), truth)
        for turn in (*TURNS, *MIRRORS)
    }
    mirror = max(MIRRORS, key=lambda turn: turned[turn].mean())
    if _gains(as_is, turned[mirror]):
        text = f"boxes are mirrored: {MIRRORS[mirror]} are exchanged"
        apply = partial(_turned, turn=mirror)
        yield Repair("boxes-mirrored", text, apply, 2, guess=MIRRORS[mirror])
    chosen: dict[bool, int] = {}
    portrait = _portrait(truth)[truth.image]
    for tall, of_group in ((True, portrait), (False, ~portrait)):
        if not of_group.any():
            continue
        ranked = max(TURNS, key=lambda turn: turned[turn][of_group].mean())
        if _gains(as_is[of_group], turned[ranked][of_group]):
            chosen[tall] = ranked
    for tall, of_group in ((True, portrait), (False, ~portrait)):  # too few objects to tell alone
        other = chosen.get(not tall)
        if other and tall not in chosen and _helps(as_is[of_group], turned[other][of_group]):
            chosen[tall] = other
    if chosen:
        text, apply = _told(chosen), partial(_turn_groups, turns=chosen)
        yield Repair("boxes-turned", text, apply, 3, guess=text)
    else:
        yield from _single(sample, as_is, turned)


def _gains(before: Boxes, after: Boxes) -> bool:
    """Whether a turn matches clearly more objects."""
    n, first, then = len(before), int((before >= ON).sum()), int((after >= ON).sum())
    more = n >= 10 and then >= first + max(5, CLEARLY * n) and then >= TIMES * first
    return more or is_closer(before, after, MUCH, DEVIATIONS)


def _helps(before: Boxes, after: Boxes) -> bool:
    """Whether a turn matches more of few objects."""
    return int((after >= ON).sum()) > int((before >= ON).sum())


def _told(turns: dict[bool, int]) -> str:
    names = {True: "portrait", False: "landscape"}
    if len({*turns.values()}) < len(turns):
        turns, names = {True: turns[True]}, {True: "all"}
    parts = [f"boxes of {names[tall]} images by {TURNS[turn]}" for tall, turn in turns.items()]
    return (
        f"turned: {' and '.join(parts)}: the detector or the annotations ignore the orientation "
        "in EXIF"
    )


def _portrait(truth: Truth) -> NDArray[np.bool_]:
    return np.asarray(truth.images.height > truth.images.width)


def _sized(raw: Raw, truth: Truth) -> tuple[NDArray[np.int32], Boxes, Boxes]:
    """The image, the boxes x, y, width, height and the image's size of each row."""
    image, _ = raw.places(truth)
    size = np.column_stack([truth.images.width, truth.images.height])[image]
    return image, boxes_as(raw.boxes, raw.box_format, "xywh"), size


def _turned(raw: Raw, truth: Truth, *, turn: int) -> Raw:
    _, boxes, size = _sized(raw, truth)
    return replace(raw, boxes=unturned(boxes, size, turn), box_format="xywh")


def _turn_groups(raw: Raw, truth: Truth, *, turns: dict[bool, int]) -> Raw:
    turn = np.zeros(len(truth.images), dtype=np.int64)
    for tall, each in turns.items():
        turn[_portrait(truth) == tall] = each
    return _turned_back(raw, truth, turn)


def _turned_back(raw: Raw, truth: Truth, turn: NDArray[np.int64]) -> Raw:
    """The rows with the turn of each image undone; 0 is none."""
    image, boxes, size = _sized(raw, truth)
    of_row = np.where(image < 0, 0, turn[image])
    made = boxes.copy()
    for each in TURNS:
        rows = of_row == each
        made[rows] = unturned(boxes[rows], size[rows], each)
    return replace(raw, boxes=made, box_format="xywh")


# --- single images --------------------------------------------------------------------------------


def _single(sample: Sample, as_is: Boxes, turned: dict[int, Boxes]) -> Iterator[Repair]:
    """Turns of single images; a mirror tells how many fit by accident."""
    n_images = len(sample.truth.images)
    turn = _turn_of_images(sample.truth, as_is, turned, (1, 2, 3))
    accidents = _turn_of_images(sample.truth, as_is, turned, (4, 5))
    counts = np.bincount(turn, minlength=4)
    most, mirrored = int(counts[1:].max()), int(np.bincount(accidents, minlength=6)[1:].max())
    error = (most + mirrored) ** 0.5
    enough = most >= max(3, ACCIDENTS * mirrored, mirrored + DEVIATIONS * error if mirrored else 0)
    if not enough or counts[1:].sum() < LEAST_TURNED * n_images:
        return
    parts = [f"{counts[each]} by {name}" for each, name in TURNS.items() if counts[each]]
    text = (
        f"boxes of some images are turned, of {n_images} that were looked at {', '.join(parts)}: "
        "the detector or the annotations ignore the orientation in EXIF; the turn of each image is "
        "guessed"
    )
    yield Repair("boxes-turned", text, turn_single, 5)


def turn_single(raw: Raw, truth: Truth) -> Raw:
    """Returns the rows with the turn undone that fits the objects of each image."""
    as_is = best_ious(raw, truth)
    turned = {turn: best_ious(_turned(raw, truth, turn=turn), truth) for turn in TURNS}
    turn = _turn_of_images(truth, as_is, turned, tuple(TURNS), extend=True)
    if not raw.is_shaped:
        return _turned_back(raw, truth, turn)
    from detmap.analysis.doctor.shaped_rows import follow

    return follow(raw, truth, apply=partial(_turned_back, turn=turn))


def _turn_of_images(
    truth: Truth,
    as_is: Boxes,
    turned: dict[int, Boxes],
    turns: tuple[int, ...],
    *,
    extend: bool = False,
) -> NDArray[np.int64]:
    """Returns (I,) the turn that fits the objects of each image, where none does not. With `extend`
    also images that show little.
    """
    n_images = len(truth.images)
    n_objects = np.maximum(1, np.bincount(truth.image, minlength=n_images))

    def mean(best: Boxes) -> Boxes:
        return np.asarray(np.bincount(truth.image, best, n_images) / n_objects)

    fits = np.stack([mean(turned[turn]) for turn in turns])
    best = fits.max(axis=0)
    own = mean(as_is)
    clear = ((best >= FITS) & (own < FITS_NOT)) | (best >= 2 * own + FITS_NOT)
    turn = np.where(clear, np.array(turns)[fits.argmax(axis=0)], 0)
    if extend and clear.any():  # the commonest turn is the likelier one
        common = int(np.argmax(np.bincount(turn)[1:])) + 1
        turn[~clear & (fits[turns.index(common)] > own + SLIGHTLY)] = common
    return turn
