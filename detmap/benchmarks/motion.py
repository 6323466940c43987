"""ImageNet VID by speed: unmatched detections are false positives with a weight.

A detection takes the best free object of its class. It is true if that object is in the subset. One
that takes nothing is compared with the image's objects of all classes: it counts 1 if its largest
overlap is with an object in the range of motion, 0 if out of it. If both are equal, mostly 0, it
counts the share of the image's objects that are *out of* the range; on an image without objects,
the share of all objects that are in it. Outside the range of areas it counts 0.

Source: Flow-Guided-Feature-Aggregation imagenet_vid_eval_motion.py:195-275.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.benchmarks.benchmark_result import Numbers
from detmap.errors import DataError, ProtocolError
from detmap.matching import engine
from detmap.matching.subsets import measure
from detmap.overlaps import box_edges
from detmap.protocol import Protocol, load
from detmap.protocol.key_checks import Subset
from detmap.tables import Detections, Truth
from detmap.tables.grouping import group, group_images

READS = (
    *("metrics", "boxes.extent", "boxes.empty", "boxes.reversed", "boxes.precision", "subsets"),
    *("iou.thresholds", "iou.comparison", "iou.cap", "iou.epsilon", "iou.tolerance"),
    *("matching.rule", "matching.equal", "limits.max_dets", "ranking.ties", "ranking.sort"),
)
MOTION = "motion_iou"
PAIRS = 1 << 20  # of a detection and an object, compared at once
FIXED = ("ap", "mean", "operating", "scope", "detections", "metrics", "groups")
"""Tables whose values this rule has; others than those of the protocol are refused."""

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


class _Nearest(NamedTuple):
    """Pairs of unmatched detections and the objects of their images, by detection.

    Parameters
    ----------
    row : (n,) detections, with objects on their images
    begin : (n,) the first pair of each
    object, overlap : (P,)
    """

    row: NDArray[Any]
    begin: NDArray[Any]
    object: NDArray[Any]
    overlap: Floats


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
    near = _nearest(truth, detections, everything, free)
    n_classes = len(truth.categories)
    area = measure("area", detections.boxes, detections.box_format, protocol)
    rows = [matches.position[matches.off[k] : matches.off[k + 1]] for k in range(n_classes)]
    iou = f"{protocol.thresholds()[0]:.2f}"
    metrics, definitions, ap_of = {}, {}, {}
    for subset in protocol.subsets:
        moves = _within(truth.attributes.get(MOTION, truth.area), subset, MOTION)
        counted = moves & _within(truth.area, subset, "area")
        false = np.zeros(len(detections))
        false[free] = _weights(truth, detections, free, near, moves)
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
    truth: Truth, detections: Detections, protocol: Protocol, free: NDArray[Any]
) -> _Nearest:
    """Returns the overlaps of unmatched detections with all objects of their images."""
    objects, off = group_images(truth.image, len(truth.images))
    size = np.diff(off)[detections.image[free]]
    row, size = free[size > 0], size[size > 0]
    end = np.cumsum(size)
    begin = end - size
    d = np.repeat(row, size)
    g = objects[np.arange(len(d)) - np.repeat(begin - off[detections.image[row]], size)]
    edges = [box_edges.edges(table, protocol, truth.box_format) for table in (detections, truth)]
    parts = [
        box_edges.overlaps(edges[0], edges[1], d[at : at + PAIRS], g[at : at + PAIRS], protocol)
        for at in range(0, len(d), PAIRS)
    ]
    return _Nearest(row, begin, g, np.concatenate([np.zeros(0), *parts]))


def _weights(
    truth: Truth, detections: Detections, free: NDArray[Any], near: _Nearest, moves: Flags
) -> Floats:
    """Returns what each unmatched detection counts as a false positive; see the module."""
    n_images = len(truth.images)
    n_in, n_all = (
        np.bincount(image, minlength=n_images) for image in (truth.image[moves], truth.image)
    )
    with np.errstate(invalid="ignore"):
        share_out = (n_all - n_in) / n_all
    weight = np.full(len(detections), moves.mean() if len(moves) else 0.0)
    if len(near.row):
        inside = moves[near.object]
        best_in, best_out = (
            np.maximum.reduceat(np.where(flags, near.overlap, -1.0), near.begin)
            for flags in (inside, ~inside)
        )
        equal = share_out[detections.image[near.row]]
        weight[near.row] = np.where(best_in == best_out, equal, best_in > best_out)
    return np.asarray(weight[free])


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
