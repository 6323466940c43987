"""Subsets and roles as words: bit a is the role in subset a."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.core.base.immutable import own
from detmap.core.base.parallel import map_chunks
from detmap.core.matching.class_thresholds import needed_overlap
from detmap.core.protocol import REGIONS, Protocol
from detmap.core.protocol.named_columns import MEASURES, named_attributes
from detmap.core.tables import BoxFormat, Detections, Truth, boxes_as
from detmap.errors import DataError, few

Floats = NDArray[np.float64]
Words = NDArray[np.uint64]
EVERY_SUBSET = ~np.uint64(0)


class ObjectWords(NamedTuple):
    """The roles of G objects; words have bit a for subset a.

    Parameters
    ----------
    find : (G,) uint64, where the object counts as ground truth
    absorb : (G,) uint64, where it is an ignored region, such as COCO's crowd: it matches any number
        of detections, by the overlap over their own area; all ones if in every subset
    enough : (G,) float64, the overlap that matches at any threshold; inf for none
    """

    find: Words
    absorb: Words
    enough: Floats


class DetectionWords(NamedTuple):
    """The roles of D detections; words have bit a for subset a.

    Parameters
    ----------
    outside : (D,) uint8 or uint64, where an unmatched detection is ignored
    dropped : (D,) uint64, where it cannot match; (0,) if none
    """

    outside: NDArray[np.unsignedinteger[Any]]
    dropped: Words


def object_words(truth: Truth, protocol: Protocol) -> ObjectWords:
    """Returns roles and subsets of the objects.

    Raises
    ------
    DataError : the ground truth lacks an attribute of a subset
    """
    outside = np.zeros(len(truth), dtype=np.uint64)
    for attribute in named_attributes(protocol):
        values, ranges = attribute_values(truth, attribute, protocol), _ranges(protocol, attribute)
        _mark(values, ranges, outside)
        asked: NDArray[np.bool_] = np.isfinite(ranges[:, 0]) | np.isfinite(ranges[:, 1])
        outside[np.isnan(values)] |= _word(asked)
    neutral, absorbs = np.zeros(len(truth), dtype=bool), np.zeros(len(truth), dtype=bool)
    for role, what in protocol.matching.neutral:
        if what not in ("count", "region_to_find"):
            neutral |= truth.role(role)
        if what in ("absorb", *REGIONS):
            absorbs |= truth.role(role)
    find = ~outside
    find[neutral] = 0
    absorb = np.zeros_like(outside)
    if protocol.matching.outside == "absorb":
        absorb = outside
        absorb[outside == _word(np.ones(len(protocol.subsets), dtype=bool))] = EVERY_SUBSET
    absorb[absorbs] = EVERY_SUBSET
    return ObjectWords(find, absorb, _enough(truth, protocol))


def detection_words(
    detections: Detections, protocol: Protocol, native: BoxFormat
) -> DetectionWords:
    """Returns subsets of the detections by their boxes; `native` is the ground truth's box
    format.
    """
    word = np.uint8 if len(protocol.subsets) <= 8 else np.uint64
    outside: NDArray[np.unsignedinteger[Any]] = np.zeros(len(detections), dtype=word)
    what = protocol.detections.outside
    if what != "count":
        ranges = _detection_ranges(protocol)

        def mark(rows: slice) -> None:
            boxes = detections.boxes[rows]
            words = np.zeros(len(boxes), dtype=np.uint64)
            for name, bounds in ranges.items():
                if name == "area" and protocol.iou.of != "boxes" and detections.shapes is not None:
                    _mark(detections.shapes.area[rows], bounds, words)
                    continue
                values = measure(name, boxes, detections.box_format, protocol, native)
                _mark(values, bounds, words)
            outside[rows] = words

        map_chunks(mark, len(detections), threads=1)  # as fast as several
    dropped = outside.astype(np.uint64) if what == "drop" else np.zeros(0, dtype=np.uint64)
    return DetectionWords(outside, dropped)


def measure(
    name: str,
    boxes: Floats,
    box_format: BoxFormat,
    protocol: Protocol,
    native: BoxFormat | None = None,
) -> Floats:
    """(n,) a measure of boxes (n, 4) under the protocol's box convention and precision.

    `native` is the format of the ground truth's files, if different.
    """
    first, last = boxes[:, :2], boxes[:, 2:]
    if name == "box_area" and protocol.boxes.extent == "as_written":
        sides = _written_sides(boxes, box_format, native or box_format)
    elif protocol.boxes.extent == "inclusive":  # sides that are given are not computed anew
        sides = last if box_format == "xywh" else last - first + 1.0
    else:
        boxes = boxes_as(boxes, box_format, "xywh")
        first, sides = boxes[:, :2], boxes[:, 2:]
        if _single_precision(protocol):
            first, last = _single(first), _single(first + sides)
            sides = _single(last - first) if protocol.boxes.form == "sides" else last - first
        elif protocol.boxes.form == "corners" and name == "box_area":
            sides = first + sides - first
    width, height = sides[:, 0], sides[:, 1]
    if name in ("width", "height"):
        return width if name == "width" else height
    return width * height


def _written_sides(boxes: Floats, box_format: BoxFormat, native: BoxFormat) -> Floats:
    """(n, 2) right minus left and bottom minus top corners, as the files give them.

    Source: rafaelpadilla/review_object_detection_metrics, bounding_box.py and coco_evaluator.py,
    _get_area: a right corner is left + width.
    """
    if box_format == native == "xywh":
        return boxes[:, :2] + boxes[:, 2:] - boxes[:, :2]
    written = boxes_as(boxes, box_format, "voc")
    return written[:, 2:] - written[:, :2] + (1.0 if native == "xywh" else 0.0)


def _single(values: Floats) -> Floats:
    """Rounded to float32."""
    with np.errstate(over="ignore"):  # too large for float32: infinite
        return values.astype(np.float32).astype(np.float64)


def _single_precision(protocol: Protocol) -> bool:
    return protocol.boxes.precision == "float32"


def attribute_values(truth: Truth, name: str, protocol: Protocol) -> Floats:
    """(G,) the ground truth's column, or the measure of its boxes."""
    if name in truth.attributes:
        values = truth.attributes[name]
        return _single(values) if name == "area" and _single_precision(protocol) else values
    if name in MEASURES:
        return measure(name, truth.boxes, truth.box_format, protocol)
    known = sorted({*truth.attributes, *MEASURES})
    raise DataError(
        truth.source,
        f"no object has the attribute {name!r}, which a subset of {protocol.name} uses",
        f"the attributes are {few(known)}; read it with attributes=[{name!r}] if the file has it, "
        "or change the subsets",
    )


@lru_cache(maxsize=64)  # an evaluation of few files is as short as this
def _detection_ranges(protocol: Protocol) -> Mapping[str, Floats]:
    """(A, 2) the range of each measure of detections, by name; read only."""
    what, margin = protocol.detections.outside, protocol.detections.margin
    return {
        name: own(_widened(_ranges(protocol, name), margin, upper_end=what == "neutral"))
        for name in named_attributes(protocol)
        if name in MEASURES
    }


@lru_cache(maxsize=64)
def _ranges(protocol: Protocol, attribute: str) -> Floats:
    """(A, 2) the range of an attribute in each subset; -inf to inf if none; read only."""
    bounds = np.array([[-np.inf, np.inf]] * len(protocol.subsets))
    for a, subset in enumerate(protocol.subsets):
        for r in subset.ranges:
            if r.attribute == attribute:
                bounds[a] = r.low, r.high
    return own(bounds)


def _widened(bounds: Floats, margin: float, *, upper_end: bool) -> Floats:
    """The ranges for detections; the kernel includes both ends."""
    widened = np.column_stack([bounds[:, 0] / margin, bounds[:, 1] * margin])
    if not upper_end:
        widened[:, 1] = np.nextafter(widened[:, 1], -np.inf)
        widened[np.isinf(bounds[:, 1]), 1] = np.inf
    return widened


def _mark(values: Floats, ranges: Floats, words: Words) -> None:
    from detmap.kernels.cells import mark_outside

    mark_outside(np.ascontiguousarray(values), ranges, words)


def _word(bits: NDArray[np.bool_]) -> np.uint64:
    """A word of (A,) bits."""
    places = np.arange(len(bits), dtype=np.uint64)
    return np.uint64(np.bitwise_or.reduce(bits.astype(np.uint64) << places))


def _enough(truth: Truth, protocol: Protocol) -> Floats:
    """(G,) see `ObjectWords`. Source: ILSVRC2014 eval_detection.m.

    The formula is min(0.5, w h / ((w + 10)(h + 10))).
    """
    tolerance = protocol.iou.tolerance
    if protocol.iou.classes:  # `load_toml.check` refuses both together
        return needed_overlap(truth, protocol)
    if tolerance == 0:
        return np.full(len(truth), np.inf)
    width, height = (
        measure(side, truth.boxes, truth.box_format, protocol) for side in ("width", "height")
    )
    enough = width * height / ((width + tolerance) * (height + tolerance))
    return np.nextafter(enough, np.inf) if protocol.iou.comparison == ">" else enough
