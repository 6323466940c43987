"""ImageNet VID by speed: unmatched detections are false positives with a weight.

A detection takes the best free object of its class. It is true if that object is in the subset. One
that takes nothing is compared with the image's objects of all classes: it counts 1 if its largest
overlap is with an object in the range of motion, 0 if out of it. If both are equal, mostly 0, it
counts the share of the image's objects that are *out of* the range; on an image without objects,
the share of all objects that are in it. Outside the range of areas it counts 0.

Source: Flow-Guided-Feature-Aggregation imagenet_vid_eval_motion.py:195-275.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.benchmarks.shared.benchmark_result import Numbers
from detmap.benchmarks.shared.image_pairs import pairs_near
from detmap.core.matching import engine
from detmap.core.matching.subsets import measure
from detmap.core.overlaps import box_edges
from detmap.core.protocol import Protocol, load
from detmap.core.protocol.key_checks import Subset
from detmap.core.tables import Detections, Truth
from detmap.core.tables.grouping import group, runs
from detmap.errors import DataError, ProtocolError

READS = (
    *("metrics", "boxes.extent", "boxes.empty", "boxes.reversed", "boxes.precision", "subsets"),
    *("iou.thresholds", "iou.comparison", "iou.cap", "iou.epsilon", "iou.tolerance"),
    *("matching.rule", "matching.equal", "limits.max_dets", "ranking.ties", "ranking.sort"),
)
MOTION = "motion_iou"
FIXED = ("ap", "mean", "operating", "scope", "detections", "metrics", "groups")
"""Tables whose values this rule has; others than those of the protocol are refused."""

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


def evaluate(truth: Truth, detections: Detections, protocol: Protocol) -> Numbers:
    """Returns mAP of each subset of the protocol, over ranges of motion_iou and area."""
    _require(truth, protocol)
    everything = replace(
        protocol,
        evaluation=replace(protocol.evaluation, rule="matching"),
        subsets=(Subset("all", ()),),
    )
    matches = engine.match(truth, detections, everything, taken=True)
    taken = _objects(matches, truth, len(detections))
    free = np.flatnonzero(taken < 0)
    moving = [
        _within(truth.attributes.get(MOTION, truth.area), subset, MOTION)
        for subset in protocol.subsets
    ]
    nearest = _nearest(truth, detections, everything, free, moving)
    n_classes = len(truth.categories)
    area = measure("area", detections.boxes, detections.box_format, protocol)
    rows = [matches.position[matches.off[k] : matches.off[k + 1]] for k in range(n_classes)]
    iou = f"{protocol.thresholds()[0]:.2f}"
    metrics, definitions, ap_of = {}, {}, {}
    for subset, moves, largest in zip(protocol.subsets, moving, nearest, strict=True):
        counted = moves & _within(truth.area, subset, "area")
        false = np.zeros(len(detections))
        false[free] = _weights(truth, detections.image[free], largest, moves)
        false[free[~_within(area[free], subset, "area")]] = 0
        true = (taken >= 0) & counted[taken] if len(truth) else np.zeros(len(detections), bool)
        n_objects = np.bincount(truth.label[counted], minlength=n_classes)
        ap = np.array(
            [
                _average_precision(true[row], false[row], int(n))
                for row, n in zip(rows, n_objects, strict=True)
            ]
        )
        name = "mAP" if subset is protocol.subsets[0] else f"mAP-{subset.name}"
        metrics[name] = float(np.mean(ap[n_objects > 0])) if n_objects.any() else float("nan")
        definitions[name], ap_of[name.removeprefix("m")] = (iou, subset.name, "all"), ap
    per_class = [
        {"name": each, "id": number} | {name: float(ap[k]) for name, ap in ap_of.items()}
        for k, (each, number) in enumerate(
            zip(truth.categories.names, truth.categories.ids.tolist(), strict=True)
        )
    ]
    return Numbers(metrics, definitions, per_class, matches.notes)


def _require(truth: Truth, protocol: Protocol) -> None:
    """Raises an error for keys that this rule does not know, and for a ground truth without
    motion.
    """
    own, stock = protocol.to_dict(), load("imagenet-vid").to_dict()
    strange = [name for name in FIXED if own[name] != stock[name]]
    attributes = {each.attribute for subset in protocol.subsets for each in subset.ranges}
    if strange or len(protocol.thresholds()) != 1 or not attributes <= {MOTION, "area"}:
        what = f"evaluation.rule motion has its own {', '.join(strange) or 'thresholds, subsets'}"
        fix = "one IoU threshold, subsets by motion_iou and area, the rest as in imagenet-vid"
        raise ProtocolError(f"protocol {protocol.name}", what, fix)
    if MOTION in attributes and MOTION not in truth.attributes:
        fix = "read ImageNet VID with motion_iou.mat, or give attributes={'motion_iou': ...}"
        raise DataError(truth.source, "objects have no attribute motion_iou", fix)


def _within(values: Floats, subset: Subset, attribute: str) -> Flags:
    """Returns (n,) whether values are in a subset's range of the attribute, ends included."""
    inside = np.ones(len(values), dtype=bool)
    for each in subset.ranges:
        if each.attribute == attribute:
            inside &= (values >= each.low) & (values <= each.high)
    return inside


def _objects(matches: Any, truth: Truth, n: int) -> NDArray[np.int64]:
    """Returns (D,) the object that each detection takes, -1 for none."""
    taken = np.full(n, -1, dtype=np.int64)
    assigned, n_images = matches.taken, len(truth.images)
    rows, _ = group(truth.image, truth.label, n_images, len(truth.categories))
    cell = truth.label[rows].astype(np.int64) * n_images + truth.image[rows]
    label = np.repeat(np.arange(len(matches.off) - 1), np.diff(matches.off))
    at = assigned.detection()
    begin = np.searchsorted(cell, label[at] * n_images + matches.image[at])
    taken[matches.position[at]] = rows[begin + assigned.object]
    return taken


def _nearest(
    truth: Truth,
    detections: Detections,
    protocol: Protocol,
    free: NDArray[Any],
    moving: list[Flags],
) -> list[Floats]:
    """Returns by subset (2, n) the largest overlaps of unmatched detections with objects of their
    image in the range of motion, and out of it; -1 without one.
    """
    own, others = (
        box_edges.edges(table, protocol, truth.box_format) for table in (detections, truth)
    )
    sides, of_sides = box_edges.wide_sides(own)[free], box_edges.wide_sides(others)
    image = detections.image[free]
    ranges = {moves.tobytes(): moves for moves in moving}  # subsets by area share them
    either = [side for moves in ranges.values() for side in (moves, ~moves)]
    best = np.full((len(either), len(free)), -1.0)
    for flags, rows in zip(either, best, strict=True):
        present = np.bincount(truth.image[flags], minlength=len(truth.images)) > 0
        rows[present[image]] = 0.0  # of objects that are apart
    apart = box_edges.apart_from(sides, of_sides, protocol)
    for d, g in pairs_near(truth.images, (image, sides), (truth.image, of_sides), apart):
        overlap = box_edges.overlaps(own, others, free[d], g, protocol)
        begins = runs(d)[:-1]
        for flags, rows in zip(either, best, strict=True):
            largest = np.maximum.reduceat(np.where(flags[g], overlap, -1.0), begins)
            rows[d[begins]] = np.maximum(rows[d[begins]], largest)
    of_range = dict(zip(ranges, best.reshape(len(ranges), 2, len(free)), strict=True))
    return [of_range[moves.tobytes()] for moves in moving]


def _weights(truth: Truth, image: NDArray[np.int32], best: Floats, moves: Flags) -> Floats:
    """Returns what each unmatched detection counts as a false positive; see the module.

    Parameters
    ----------
    image : (n,) of each
    best : (2, n) largest overlaps with objects in the range of motion and out of it
    moves : (G,) objects in the range
    """
    n_images = len(truth.images)
    n_in, n_all = (np.bincount(at, minlength=n_images) for at in (truth.image[moves], truth.image))
    with np.errstate(invalid="ignore"):
        share_out = (n_all - n_in) / n_all
    best_in, best_out = best
    weight = np.where(best_in == best_out, share_out[image], best_in > best_out)
    empty = moves.mean() if len(moves) else 0.0  # of an image without objects
    return np.where(n_all[image] > 0, weight, empty)


def _average_precision(true: Flags, false: Floats, n_objects: int) -> float:
    """Returns the area below the envelope; NaN without objects. Source: vid_ap."""
    if not n_objects:
        return float("nan")
    tp, fp = np.cumsum(true, dtype=np.float64), np.cumsum(false)
    recall = np.concatenate([[0.0], tp / n_objects, [1.0]])
    precision = tp / np.maximum(tp + fp, np.finfo(np.float64).eps)
    envelope = np.concatenate([[0.0], precision, [0.0]])
    envelope = np.maximum.accumulate(envelope[::-1])[::-1]
    steps = np.flatnonzero(recall[1:] != recall[:-1])
    return float(np.sum((recall[steps + 1] - recall[steps]) * envelope[steps + 1]))
