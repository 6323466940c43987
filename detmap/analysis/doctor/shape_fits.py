"""How masks, keypoints and rotated boxes fit objects whose boxes fit: another order of points, or
another meaning of an angle, leaves the boxes around them right.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from detmap.analysis.doctor.explanation import ON, best_ious, is_wanted
from detmap.analysis.doctor.raw_rows import Raw, best_objects
from detmap.analysis.doctor.trial import Sample, merged
from detmap.core.base.assignment import assign_all
from detmap.core.curves import aggregation
from detmap.core.curves import scores as curves
from detmap.core.overlaps.keypoints import Keypoints
from detmap.core.overlaps.rotated_boxes import RotatedBoxes
from detmap.core.tables import Shapes, Truth
from detmap.errors import few

Change = Callable[[Shapes], Shapes]

LEAST, LEAST_BOXES = 40, 0.3  # objects, and share of them with a box on them
TIMES = 2.0  # times as many objects with a box on them as with a shape: real masks have 1.0 to 1.2
BETTER, CLEARLY = 1.5, 0.2  # times as many shapes after a change, and share of the objects more


def recall(sample: Sample, rows: Raw, change: Change = lambda shapes: shapes) -> float:
    """Returns the share of objects with a shape of any class on them, overlap at least 0.5."""
    truth = merged(sample.trial.shaped_truth.select_images(sample.positions))
    matches = sample.trial.match_shapes(truth, replace(rows.classless(), names=None), change)
    if matches is None:
        return 0.0
    counts = aggregation.count(curves.scores(matches), matches.protocol)
    return float(counts.tp.sum() / max(1, counts.objects.sum()))


def reason(sample: Sample, rows: Raw) -> str:
    """Returns what differs where boxes fit and shapes do not; "" if both do, or neither."""
    wanted = is_wanted(sample.truth)
    boxes = float((best_ious(rows, sample.truth)[wanted] >= ON).mean()) if wanted.any() else 0.0
    if wanted.sum() < LEAST or boxes < LEAST_BOXES:
        return ""
    shapes = recall(sample, rows)
    if boxes < BETTER * shapes:
        return ""
    truth = sample.trial.shaped_truth.select_images(sample.positions)
    said = {Keypoints: "keypoints", RotatedBoxes: "rotated boxes"}
    what = next((name for kind, name in said.items() if isinstance(truth.shapes, kind)), "masks")
    text = f"{boxes:.0%} of the objects have a box on them, but {shapes:.0%} {what} that fit"
    for meaning, change in _changes(rows, truth):
        after = recall(sample, rows, change)
        if after >= max(BETTER * shapes, shapes + CLEARLY):
            return f"{text}; {after:.0%} if {meaning}"
    return text if boxes >= TIMES * shapes else ""


def _changes(rows: Raw, truth: Truth) -> Iterator[tuple[str, Change]]:
    if isinstance(truth.shapes, Keypoints):
        order = _order(rows, truth)
        moved = [k for k, j in enumerate(order) if k != j]
        if moved:
            pairs = few(f"number {order[k] + 1} is point {k + 1}" for k in moved)
            yield f"the points are in another order: {pairs}", lambda s: _ordered(s, order)
    if isinstance(truth.shapes, RotatedBoxes):
        yield "width and height are exchanged, or angles are 90 degrees off", _quarter
        yield "angles have the other sign", _mirrored
        yield "their corners are put in order around the box", _around


def _order(rows: Raw, truth: Truth) -> list[int]:
    """For each point of the ground truth the point of detections that lies nearest to it."""
    from detmap.analysis.doctor.shaped_rows import shapes_of

    met = best_objects(rows, truth)
    found, objects = shapes_of(rows, truth), truth.shapes
    if not isinstance(found, Keypoints) or not isinstance(objects, Keypoints):
        return []
    mine, there = found.points[met.row], objects.points[met.place]
    side = np.sqrt(np.maximum(truth.area[met.place], 1.0))[:, None, None]
    n_points = there.shape[1]
    near = np.zeros((n_points, n_points))  # of a point of the ground truth and one of detections
    for j in range(n_points):
        off = np.linalg.norm(mine[:, j, None, :2] - there[:, :, :2], axis=2) / side[:, :, 0]
        near[:, j] = (np.exp(-10 * off) * (there[:, :, 2] > 0)).sum(axis=0)
    chosen, order = assign_all(near)
    out = np.arange(n_points)
    out[chosen] = order
    return [int(j) for j in out]


def _ordered(shapes: Shapes, order: list[int]) -> Shapes:
    assert isinstance(shapes, Keypoints)
    return Keypoints(np.ascontiguousarray(shapes.points[:, order]), shapes.area)


def _with_corners(change: Callable[[NDArray[np.float64]], NDArray[np.float64]]) -> Change:
    """Of corners (n, 4, 2) around the middle of each box."""

    def made(shapes: Shapes) -> Shapes:
        assert isinstance(shapes, RotatedBoxes)
        corners = shapes.corners()
        middle = corners.mean(axis=1, keepdims=True)
        moved = change(corners - middle) + middle
        return RotatedBoxes(np.ascontiguousarray(moved.reshape(-1, 8)))

    return made


def _sorted(corners: NDArray[np.float64]) -> NDArray[np.float64]:
    order = np.argsort(np.arctan2(corners[:, :, 1], corners[:, :, 0]), axis=1)
    return np.take_along_axis(corners, order[:, :, None], axis=1)


_quarter = _with_corners(lambda corners: corners[:, :, ::-1] * [-1, 1])
_mirrored = _with_corners(lambda corners: corners * [1, -1])
_around = _with_corners(_sorted)
