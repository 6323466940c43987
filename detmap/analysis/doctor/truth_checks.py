"""Contradictions inside a ground truth: fields that cannot both be right.

Each check looks at whole columns and takes well below a millisecond on 36,000 objects, so every
evaluation runs them (`contradicts`).
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from detmap.analysis.doctor import truth_layouts
from detmap.analysis.doctor.repeated_rows import hashes
from detmap.core.results.findings import Finding
from detmap.core.tables import Shapes, Truth, apart, boxes_as

ODD, LEAST_ODD = 0.05, 5  # share and number of objects that are no accident
MOST_AREA, LEAST_AREA = 1.2, 0.01  # of the area of the box, of a right `area`
CROWD = 0.3  # share of crowds, from which on a converter's flag is likelier
TWICE = 0.005  # share of objects that are listed again


def contradicts(truth: Truth) -> bool:
    """Returns whether a field of the ground truth contradicts another one."""
    if truth_layouts.is_odd(truth) or is_many(_is_flat(truth)):
        return True
    return any(True for _ in facts(truth)) or count_repeated(truth) > max(1, TWICE * len(truth))


def _is_flat(truth: Truth) -> NDArray[np.bool_]:
    boxes = boxes_as(truth.boxes, truth.box_format, "xywh")
    return np.asarray((boxes[:, 2] <= 0) | (boxes[:, 3] <= 0))


def facts(truth: Truth) -> Iterator[Finding]:
    """Yields the contradictions but those of layouts (`detmap.analysis.doctor.truth_layouts`)."""
    if not len(truth):
        return
    yield from _area(truth)
    yield from _crowds(truth)
    yield from _points(truth)
    yield from _masks(truth)


def is_many(odd: NDArray[np.bool_]) -> bool:
    """Returns whether so many objects are odd that it is no accident."""
    return bool(odd.sum() >= max(LEAST_ODD, ODD * len(odd)))


def first(truth: Truth, odd: NDArray[np.bool_]) -> str:
    """Returns the place of the first of some objects, for messages."""
    row = int(np.argmax(odd))
    image = int(truth.image[row])
    files = truth.images.files or truth.images.stems
    file = f" ({files[image]})" if files and files[image] else ""
    box = ", ".join(f"{v:.6g}" for v in truth.boxes[row].tolist())
    name = truth.categories.names[truth.label[row]]
    return f"first: image {truth.images.ids[image].item()}{file}, {name}, box [{box}]"


def _area(truth: Truth) -> Iterator[Finding]:
    boxes = boxes_as(truth.boxes, truth.box_format, "xywh")
    box = boxes[:, 2] * boxes[:, 3]
    known = (boxes[:, 2] > 1) & (boxes[:, 3] > 1) & ~truth.crowd
    odd = known & ((truth.area > MOST_AREA * box + 2) | (truth.area < LEAST_AREA * box))
    if is_many(odd):
        odd &= ~truth_layouts.beyond(truth, boxes)
    if is_many(odd):
        zero = int((odd & (truth.area == 0)).sum())
        what = f"{zero:,} have area 0" if zero else "it is too small or too large"
        text = (
            f"`area` of {odd.sum():,} of {len(truth):,} objects does not fit their box ({what}): "
            f"APs, APm and APl are wrong, and OKS of keypoints is; {first(truth, odd)}"
        )
        yield Finding("truth-area", text)


def _crowds(truth: Truth) -> Iterator[Finding]:
    if "crowd" not in truth.roles or ".json" not in truth.source:
        return  # readers of other formats take their ignored objects for crowds
    n = int(truth.crowd.sum())
    if n >= max(LEAST_ODD, CROWD * len(truth)):
        rest = "no object is left to match" if n == len(truth) else "they are ignored"
        text = (
            f"{n:,} of {len(truth):,} objects are crowds (iscrowd 1): {rest}; converters set it "
            "for run lengths. Set iscrowd to 0 where a single object is meant"
        )
        yield Finding("truth-crowd", text)


def _points(truth: Truth) -> Iterator[Finding]:
    points = getattr(truth.shapes, "points", None)
    if points is None or not len(truth):
        return
    labelled = points[:, :, 2] > 0
    placed = (points[:, :, :2] != 0).any(axis=(1, 2))
    unseen = placed & ~labelled.any(axis=1) & ~truth.crowd
    if is_many(unseen):
        text = (
            f"{unseen.sum():,} of {len(truth):,} objects have keypoints, but the visibility of "
            f"each is 0: they are compared by their box alone; {first(truth, unseen)}"
        )
        yield Finding("truth-keypoints", text)
    ignored = labelled.any(axis=1) & truth.role("unlabelled")
    if is_many(ignored):
        text = (
            f"num_keypoints of {ignored.sum():,} of {len(truth):,} objects is 0 beside visible "
            f"keypoints: they are ignored; {first(truth, ignored)}"
        )
        yield Finding("truth-keypoints", text)


def shape_boxes(shapes: Shapes | None) -> NDArray[np.float64] | None:
    """Returns (n, 4) the boxes around masks; None for other shapes."""
    runs = getattr(shapes, "runs", None)
    return None if runs is None else np.asarray(runs.boxes, dtype=np.float64)


def _masks(truth: Truth) -> Iterator[Finding]:
    around = shape_boxes(truth.shapes)
    if around is None:
        return
    odd = apart(around, boxes_as(truth.boxes, truth.box_format, "xywh")) & ~truth.crowd
    if is_many(odd):
        text = (
            f"masks of {odd.sum():,} of {len(truth):,} objects do not lie in their box: polygons "
            "are x1, y1, x2, y2 ... in turn, and run lengths go down the columns; "
            f"{first(truth, odd)}"
        )
        yield Finding("truth-shapes", text)


def count_repeated(truth: Truth) -> int:
    """Returns the number of objects that are listed again with the same image, class and box."""
    mixed = np.sort(hashes(truth, truth.boxes.T)[~truth.crowd])
    return int((mixed[1:] == mixed[:-1]).sum())
