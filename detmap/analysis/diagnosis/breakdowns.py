"""Breakdowns of a diagnosis: AP and recall by size, shape, crowding, position, class, attribute."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.analysis.diagnosis.analysis import Diagnosis
from detmap.analysis.diagnosis.operating_sweep import best_f1, found_from
from detmap.analysis.diagnosis.ranked_lists import Ranked, ranked, tie_order
from detmap.core.output.cell_text import or_none
from detmap.core.tables import Detections, Truth, boxes_as

Floats = NDArray[np.float64]
SIDES = (0.0, 16.0, 32.0, 96.0, 256.0, np.inf)  # pixels; 32 and 96 are COCO's
ASPECTS = (0.0, 0.4, 0.8, 1.25, 2.5, np.inf)  # width / height
CROWDING = (0.0, 1e-9, 0.1, 0.3, 0.5, np.inf)  # IoU with the nearest other object
ALONE = ("alone", "up to 0.1 IoU", "0.1 to 0.3 IoU", "0.3 to 0.5 IoU", "from 0.5 IoU")
OBJECTS = (1.0, 2.0, 4.0, 8.0, 16.0, np.inf)  # an image
FREQUENCY = (1.0, 11.0, 101.0, 1001.0, np.inf)  # objects of a class
FEW_VALUES = 8  # of an attribute that are a slice each; others are cut into quarters


@dataclass(frozen=True, slots=True)
class Slice:
    """Recall and AP of a subset of the objects.

    Parameters
    ----------
    by, name : the property and its range
    objects, found : counted objects, and how many of them a detection from `score` on matches
    recall : their ratio; ap : over all scores, mean over the classes with an object in the slice;
        NaN without one
    """

    by: str
    name: str
    objects: int
    found: int
    recall: float
    ap: float
    score: float

    def to_dict(self) -> dict[str, Any]:
        """Plain values, None for NaN."""
        return {name: or_none(value) for name, value in asdict(self).items()}


def slices(diagnosis: Diagnosis, *, confidence: float | None = None) -> list[Slice]:
    """AP and recall of the objects of each slice, from the one matching.

    Objects outside a slice are left out, and so are the detections that took them. A false positive
    counts where its own box, image or class belongs to the slice; where only an object can have the
    property (crowding, attributes) in every slice.

    confidence : recall is of detections from this score on; that of the best F1 when left out
    """
    least = best_f1(diagnosis).score if confidence is None else confidence
    hits = found_from(diagnosis, least)
    rules, found = diagnosis.protocol.ap, []
    for by, name, ranks in lists(diagnosis):
        ap = ranks.average_precision(rules.rule, rules.points(), rules.epsilon)
        objects = ranks.objects
        n, hit = int(objects.sum()), int((objects & hits).sum())
        found.append(Slice(by, name, n, hit, hit / n, float(np.nanmean(ap)), least))
    return found


def lists(diagnosis: Diagnosis) -> Iterator[tuple[str, str, Ranked]]:
    """Property, range, and the list that AP is taken of, of each slice with an object."""
    every = ranked(diagnosis, tie_order(diagnosis))
    every = every.kept(~diagnosis.ignored[every.rows]).until_last_hit()
    took = diagnosis.took[every.rows]
    for by, names, of_objects, of_detections in properties(diagnosis):
        place_of_row = None if of_detections is None else of_detections[every.rows]
        for place, name in enumerate(names):
            objects = diagnosis.to_find & (of_objects == place)
            if objects.any():
                fits: Any = True if place_of_row is None else place_of_row == place
                mine = np.where(every.right, objects[took], fits)
                yield by, name, every.kept(mine, objects=objects)


Limits = Sequence[float] | Floats
Measure = Callable[[Truth | Detections], NDArray[Any]]
Property = tuple[str, list[str], NDArray[np.int8], NDArray[np.int8] | None]


def properties(diagnosis: Diagnosis) -> Iterator[Property]:
    """Name, ranges, place of each object among them, and of each detection where it has one."""
    truth, detections = diagnosis.truth, diagnosis.detections
    per_image = np.bincount(truth.image[diagnosis.to_find], minlength=len(truth.images))
    per_class = np.bincount(truth.label[diagnosis.to_find], minlength=len(truth.categories))
    measures: tuple[tuple[str, list[str], Limits, Measure | None], ...] = (
        ("size", _ranges(SIDES, " px"), SIDES, _side),
        ("aspect", _ranges(ASPECTS, ""), ASPECTS, _aspect),
        ("crowding", list(ALONE), CROWDING, None),
        ("objects per image", _counts(OBJECTS), OBJECTS, lambda table: per_image[table.image]),
        ("objects of the class", _counts(FREQUENCY), FREQUENCY, lambda t: per_class[t.label]),
    )
    for by, names, limits, measure in measures:
        if measure is None:
            yield by, names, _cut(diagnosis.near, limits), None
        else:
            yield by, names, _cut(measure(truth), limits), _cut(measure(detections), limits)
    if not np.isnan(truth.images.width).any() and len(truth.images):
        places = ["center", "outer", "at the edge"]
        yield "position", places, _position(truth), _position(detections)
    for name, values in truth.attributes.items():
        if name != "area":
            yield name, *_attribute_ranges(values), None


def _side(table: Truth | Detections) -> Floats:
    """(n,) square root of the box's area."""
    boxes = boxes_as(table.boxes, table.box_format, "xywh")
    side: Floats = np.sqrt(np.maximum(boxes[:, 2] * boxes[:, 3], 0))
    return side


def _aspect(table: Truth | Detections) -> Floats:
    boxes = boxes_as(table.boxes, table.box_format, "xywh")
    tall = np.full(len(boxes), np.inf)
    np.divide(boxes[:, 2], boxes[:, 3], out=tall, where=boxes[:, 3] > 0)
    return tall


def _position(table: Truth | Detections) -> NDArray[np.int8]:
    """(n,) 2 where the box comes within a pixel of its image's edge, else 0 where its centre is in
    the middle ninth, else 1.
    """
    boxes = boxes_as(table.boxes, table.box_format, "xywh")
    inner, edge = np.ones(len(boxes), dtype=bool), np.zeros(len(boxes), dtype=bool)
    for axis, sides in enumerate((table.images.width, table.images.height)):
        first, side, whole = boxes[:, axis], boxes[:, axis + 2], sides[table.image]
        centre = (first + side / 2) / np.maximum(whole, 1)
        inner &= np.abs(centre - 0.5) <= 1 / 6
        edge |= (first <= 1) | (first + side >= whole - 1)
    return np.where(edge, 2, np.where(inner, 0, 1)).astype(np.int8)


def _attribute_ranges(values: Floats) -> tuple[list[str], NDArray[np.int8]]:
    """The ranges of an attribute and the place of each object; -1 where it is not known."""
    known = np.unique(values[~np.isnan(values)])
    if len(known) <= FEW_VALUES:
        place = np.searchsorted(known, values).astype(np.int8)
        return [f"{value:g}" for value in known], np.where(np.isnan(values), -1, place)
    limits = np.unique(np.quantile(values[~np.isnan(values)], [0, 0.25, 0.5, 0.75, 1]))
    limits[-1] = np.inf
    return _ranges(limits.tolist(), ""), np.where(np.isnan(values), -1, _cut(values, limits))


def _cut(values: NDArray[Any], limits: Limits) -> NDArray[np.int8]:
    """(n,) the half-open range of each value; -1 below the first, the last one for NaN.

    A comparison per limit: there are few, and bisection takes ten times as long.
    """
    place = np.full(len(values), -1, dtype=np.int8)
    for limit in limits[:-1]:
        place += ~(values < limit)
    return place


def _ranges(limits: Limits, unit: str) -> list[str]:
    def name(low: float, high: float) -> str:
        return f"from {low:g}{unit}" if high == np.inf else f"{low:g} to {high:g}{unit}"

    return [name(low, high) for low, high in itertools.pairwise(limits)]


def _counts(limits: Limits) -> list[str]:
    def name(low: float, high: float) -> str:
        if high == np.inf:
            return f"from {low:g}"
        return f"{low:g}" if high == low + 1 else f"{low:g} to {high - 1:g}"

    return [name(low, high) for low, high in itertools.pairwise(limits)]
