"""Computes edges, areas and overlaps of boxes under any protocol, whole columns at once.

`detmap.core.overlaps.box_iou` is faster, for float64 protocols only.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.core.overlaps.near_boxes import EVERY_PAIR
from detmap.core.protocol import Protocol
from detmap.core.tables import BoxFormat, Detections, Truth, boxes_as
from detmap.errors import DataError

MOST_SCALED = 2.0**50
"""Up to which a product has digits to spare for where it lies between two whole numbers."""
AT_ONCE = 1 << 19
"""Pairs whose overlaps are computed at a time."""

Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True, slots=True, eq=False)
class Edges:
    """Edges of n boxes (left, top, right, bottom) and their areas; each (n,)."""

    sides: tuple[Floats, Floats, Floats, Floats]
    area: Floats


def edges(table: Truth | Detections, protocol: Protocol, native: BoxFormat) -> Edges:
    """Converts boxes to the protocol's box convention, form, precision and arithmetic.

    Parameters
    ----------
    table : objects or detections
    protocol : the rules
    native : format of the ground-truth files, whose corners ``boxes.extent = "as_written"`` uses
    """
    with np.errstate(over="ignore", invalid="ignore"):  # too large for float32: infinite
        return _edges(table, protocol, native)


def _edges(table: Truth | Detections, protocol: Protocol, native: BoxFormat) -> Edges:
    number = np.float32 if protocol.boxes.precision == "float32" else np.float64
    wide = np.float64 if protocol.iou.arithmetic == "float64" else number
    if protocol.boxes.extent == "continuous":
        x1, y1, width, height = boxes_as(table.boxes, table.box_format, "xywh").T
        x2, y2 = x1 + width, y1 + height
    else:
        boxes = boxes_as(table.boxes, table.box_format, "voc")
        if protocol.boxes.extent == "as_written" and native == "xywh":
            boxes = boxes - np.array([1.0, 1.0, 0.0, 0.0])
        x1, y1, x2, y2 = boxes.T
        if protocol.boxes.first_pixel == "zero" and not (
            protocol.boxes.extent == "as_written" and native == "xywh"
        ):
            x1, y1, x2, y2 = x1 - 1, y1 - 1, x2 - 1, y2 - 1
        width, height = x2 - x1, y2 - y1
    if isinstance(table, Truth) and protocol.boxes.object_shift:
        x1, y1, x2, y2 = (side + protocol.boxes.object_shift for side in (x1, y1, x2, y2))
    if protocol.boxes.form == "center":
        x, y = ((x1 + x2) / 2).astype(number), ((y1 + y2) / 2).astype(number)
        width, height = width.astype(number), height.astype(number)
        half = number(2)
        x1, x2 = x - width / half, x + width / half
        y1, y2 = y - height / half, y + height / half
        return Edges((x1, y1, x2, y2), (width * height).astype(wide))
    if protocol.boxes.form in ("fractions", "thousandths"):
        across, down = _scale(table, protocol.boxes.form)
        x1, width = x1 / across, width / across
        y1, height = y1 / down, height / down
        x1, y1, width, height = (side.astype(number) for side in (x1, y1, width, height))
        return Edges((x1, y1, x1 + width, y1 + height), width * height)
    as_given = protocol.boxes.form != "corners" and protocol.boxes.extent == "continuous"
    if number is np.float64 and as_given:
        return Edges((x1, y1, x2, y2), width * height)  # the area of the sides as given: bbIou
    x1, y1, x2, y2 = (side.astype(number) for side in (x1, y1, x2, y2))
    if isinstance(table, Detections) and protocol.detections.box_decimals >= 0:
        digits = protocol.detections.box_decimals
        x1, y1, x2, y2 = (written(side, digits) for side in (x1, y1, x2, y2))
    if protocol.boxes.form == "sides":
        width, height = (x2 - x1).astype(wide), (y2 - y1).astype(wide)
        x1, y1 = x1.astype(wide), y1.astype(wide)
        return Edges((x1, y1, x1 + width, y1 + height), width * height)
    if protocol.boxes.extent == "padded":
        x2, y2 = x2 + number(1), y2 + number(1)
    x1, y1, x2, y2 = (side.astype(wide) for side in (x1, y1, x2, y2))
    pixel = wide(1 if protocol.boxes.extent == "inclusive" else 0)
    return Edges((x1, y1, x2, y2), (x2 - x1 + pixel) * (y2 - y1 + pixel))


def _scale(table: Truth | Detections, form: str) -> tuple[Floats, Floats]:
    """Returns the width and height that each row's box is divided by."""
    if form == "thousandths":
        return np.full(len(table), 1000.0), np.full(len(table), 1000.0)
    images = table.images
    unknown = np.isnan(images.width) | np.isnan(images.height)
    if unknown.any():
        raise DataError(
            table.source,
            f"image {images.ids[np.argmax(unknown)]!r} has no size, but boxes.form requires it",
            "give width and height, or set boxes.form=thousandths",
        )
    return images.width[table.image], images.height[table.image]


def wide_sides(boxes: Edges) -> NDArray[np.float64]:
    """Returns (n, 4) float64 edges, for `detmap.core.overlaps.near_boxes`."""
    return np.stack(boxes.sides, axis=1).astype(np.float64, copy=False)


def apart_from(
    sides: NDArray[np.float64], of_sides: NDArray[np.float64], protocol: Protocol
) -> float:
    """Returns what boxes with an overlap of 0 share at most, for `detmap.core.overlaps.near_boxes`.

    It leaves room for the protocol's rounding: float32 edges are float64 numbers, and a difference
    never rounds across a whole number.
    """
    if np.isnan(sides).any() or np.isnan(of_sides).any():
        return EVERY_PAIR
    return -2.0 if protocol.boxes.extent == "inclusive" else 0.0


def overlaps(
    det_edges: Edges,
    obj_edges: Edges,
    d: NDArray[Any],
    g: NDArray[Any],
    protocol: Protocol,
    *,
    over_own_area: bool = False,
) -> NDArray[np.float64]:
    """Returns (n,) overlaps of pairs of rows, optionally over the detection's own area.

    NaN where it is 0/0 or inf/inf.

    Source: bbIou (maskApi.c), VOCevaldet.m and the tools in `configs/tools`: shared / (detection +
    object - shared), in the protocol's precision.
    """
    found = np.empty(len(d))
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        for at in range(0, len(d), AT_ONCE):
            some = slice(at, at + AT_ONCE)
            found[some] = _overlaps(det_edges, obj_edges, d[some], g[some], protocol, over_own_area)
    return found


def _overlaps(
    det_edges: Edges,
    obj_edges: Edges,
    d: NDArray[Any],
    g: NDArray[Any],
    protocol: Protocol,
    over_own_area: bool,
) -> NDArray[np.float64]:
    pixel = 1 if protocol.boxes.extent == "inclusive" else 0
    left, top, right, bottom = det_edges.sides
    of_left, of_top, of_right, of_bottom = obj_edges.sides
    one = left.dtype.type(pixel)
    met = np.zeros(len(d))
    width = np.minimum(right[d], of_right[g]) - np.maximum(left[d], of_left[g]) + one
    rows = np.flatnonzero(~(width <= 0))  # most boxes of an image are apart
    d, g, width = d[rows], g[rows], width[rows]
    height = np.minimum(bottom[d], of_bottom[g]) - np.maximum(top[d], of_top[g]) + one
    near = np.flatnonzero(~(height <= 0))
    rows, d, g, width, height = rows[near], d[near], g[near], width[near], height[near]
    if protocol.iou.arithmetic == "mixed":
        width, height = width.astype(np.float64), height.astype(np.float64)
    shared = width * height
    divisor = det_edges.area[d] if over_own_area else det_edges.area[d] + obj_edges.area[g] - shared
    if protocol.iou.epsilon:
        divisor = divisor + divisor.dtype.type(protocol.iou.epsilon)
    if protocol.iou.least_union:
        divisor = np.maximum(divisor, divisor.dtype.type(protocol.iou.least_union))
    met[rows] = shared / divisor
    return met


def written(values: Floats, decimals: int) -> NDArray[np.float64]:
    """Rounds as ``float('%.1f' % value)`` does.

    Near ties, and where digits run out, it formats the text itself.
    """
    with np.errstate(over="ignore"):
        scaled = values.astype(np.float64) * 10.0**decimals
    large = ~(np.abs(scaled) < MOST_SCALED)
    scaled[large] = 0.0
    rounded = np.rint(scaled)
    result = rounded / 10.0**decimals
    near = np.abs(np.abs(scaled - np.floor(scaled)) - 0.5) < 1e-6
    for i in np.flatnonzero(near | large).tolist():
        result[i] = float(f"{values[i]:.{decimals}f}")
    return result
