"""SA-Co's cgF1: box F1 of pairs with objects, times the correlation of "is there any object".

A pair of image and phrase is an image here. Boxes are assigned once, by the largest sum of IoU, for
all thresholds. With several annotators each pair takes the one for whom the mean F1 is best.

Source: facebookresearch/sam3 sam3/eval/cgf1_eval.py, evaluateImg, accumulate, _select_best_scoring.
"""

from collections.abc import Iterable
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.benchmarks.sa_co.files import ANNOTATOR, PARTIAL
from detmap.benchmarks.shared.benchmark_result import Numbers
from detmap.benchmarks.shared.effort import Effort
from detmap.benchmarks.shared.image_pairs import AT_ONCE, corners, named, overlaps, table_areas
from detmap.core.base.assignment import largest_sum
from detmap.core.protocol import Protocol
from detmap.core.tables import Detections, Note, Truth
from detmap.core.tables.grouping import group_images

READS = ("cgf1", "iou.thresholds", "matching.neutral")
SMALL, TINY = 1e-4, 1e-6  # added to the denominators of boxes and of images
Floats = NDArray[np.float64]
Counts = NDArray[np.int64]
Rows = NDArray[np.int32]


class _Pair(NamedTuple):
    """A pair of image and phrase for one annotator: TP at each threshold, and both counts."""

    tp: Counts
    n_found: int
    n_objects: int

    @property
    def is_empty(self) -> bool:
        """Whether there is neither an object nor a detection."""
        return not (self.n_found or self.n_objects)

    def f1(self) -> Floats:
        """(T,) F1 of the pair; 0 without detections."""
        if not self.n_found:
            return np.zeros(len(self.tp))
        return _f1(self.tp / (self.n_found + SMALL), self.tp / (self.n_objects + SMALL))


def _f1(precision: Floats, recall: Floats) -> Floats:
    return 2 * precision * recall / (precision + recall + SMALL)


def evaluate(truth: Truth, detections: Detections, protocol: Protocol) -> Numbers:
    """Computes the metrics with all annotators, and those of each annotator alone."""
    roles = [name for name in truth.roles if name.startswith(ANNOTATOR)]
    roles.sort(key=lambda name: int(name.removeprefix(ANNOTATOR)))
    whose = [truth.role(name) for name in roles] or [np.ones(len(truth), dtype=bool)]
    partial = [_images(truth, own & truth.role(PARTIAL)) for own in whose]
    absent = truth.role(PARTIAL).copy()
    for role, what in protocol.matching.neutral:
        if what != "count":
            absent |= truth.role(role)
    thresholds = protocol.thresholds()
    kept = detections.take(np.flatnonzero(detections.score >= protocol.cgf1.score))
    effort = Effort(len(truth) + len(kept))
    pairs = [
        _pairs(truth.take(np.flatnonzero(own & ~absent)), kept, thresholds, effort) for own in whose
    ]
    left_out = np.logical_or.reduce(partial)
    best = [max(of_all, key=_rank) for of_all in zip(*pairs, strict=True)]
    metrics = _metrics(_some(best, left_out), thresholds)
    rows = []
    for i, (own, skipped) in enumerate(zip(pairs, partial, strict=True)):
        name = roles[i] if roles else "all"
        row: dict[str, Any] = {"name": name, "id": i + 1}
        rows.append(row | _metrics(_some(own, skipped), thresholds))
    notes = []
    if left_out.any():
        text = "pairs are not annotated exhaustively: they are not evaluated"
        notes.append(Note("not-exhaustive", text, int(left_out.sum()), truth.source))
    if len(whose) > 1:
        text = "annotators: each pair takes the one with the best mean F1"
        notes.append(Note("annotators", text, len(whose), truth.source))
    definitions = {name: (name.partition("@")[2], "all", "all") for name in metrics}
    return Numbers(metrics, definitions, rows, notes)


def _images(truth: Truth, rows: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """(I,) images with one of these rows."""
    return np.bincount(truth.image[rows], minlength=len(truth.images)) > 0


def _some(pairs: Iterable[_Pair], left_out: NDArray[np.bool_]) -> list[_Pair]:
    return [pair for pair, out in zip(pairs, left_out.tolist(), strict=True) if not out]


def _rank(pair: _Pair) -> float:
    """Of equal ranks the first annotator wins; nothing beats an empty pair."""
    return np.inf if pair.is_empty else float(np.mean(pair.f1()))


def _pairs(truth: Truth, detections: Detections, thresholds: Floats, effort: Effort) -> list[_Pair]:
    """Every image with one annotator."""
    boxes, found = corners(truth), corners(detections)
    area, found_area = table_areas(truth), table_areas(detections)
    pairs = []
    n_images = len(truth.images)
    rows, off = group_images(truth.image, n_images)
    shown, shown_off = group_images(detections.image, n_images)
    for i in range(n_images):
        g, d = rows[off[i] : off[i + 1]], shown[shown_off[i] : shown_off[i + 1]]
        tp = np.zeros(len(thresholds), dtype=np.int64)
        if len(g) and len(d):
            effort.begin(named(truth.images, i))
            effort.limit(len(d), len(g))
            overlap = _all_overlaps((found, found_area), (boxes, area), d, g)
            matched = overlap[largest_sum(overlap, effort.spend)]
            tp = (matched[:, None] >= thresholds).sum(axis=0)
        pairs.append(_Pair(tp, len(d), len(g)))
    return pairs


def _all_overlaps(
    found: tuple[Floats, Floats], objects: tuple[Floats, Floats], d: Rows, g: Rows
) -> Floats:
    """(n, m) overlaps of some detections and objects, of the corners and areas of all of them."""
    overlap = np.empty((len(d), len(g)))
    step = max(1, AT_ONCE // len(g))
    for at in range(0, len(d), step):
        some = d[at : at + step]
        i, j = np.repeat(some, len(g)), np.tile(g, len(some))
        area = found[1][i], objects[1][j]
        overlap[at : at + step] = overlaps(found[0], objects[0], (i, j), area)[1].reshape(
            -1, len(g)
        )
    return overlap


def _metrics(pairs: list[_Pair], thresholds: Floats) -> dict[str, float]:
    """The metrics of some pairs, means over thresholds first."""
    nothing = np.zeros(len(thresholds), dtype=np.int64)
    tp = reduce(np.add, (pair.tp for pair in pairs), nothing)
    found = reduce(np.add, (pair.n_found - pair.tp for pair in pairs if pair.n_found), nothing)
    beside = reduce(np.add, (pair.n_found - pair.tp for pair in pairs if pair.n_objects), nothing)
    missed = reduce(np.add, (pair.n_objects - pair.tp for pair in pairs), nothing)
    both = [pair.f1() for pair in pairs if pair.n_found and pair.n_objects]
    levels = _image_level(pairs)
    precision, recall = tp / (tp + found + SMALL), tp / (tp + missed + SMALL)
    positive = tp / (tp + beside + SMALL)
    micro = _f1(positive, recall)
    zeros = np.zeros(len(thresholds))
    curves = {
        "cgF1": micro * levels["IL_MCC"],
        "precision": precision,
        "recall": recall,
        "F1": _f1(precision, recall),
        "positive_macro_F1": reduce(np.add, both, zeros) / len(both) if both else zeros * np.nan,
        "positive_micro_F1": micro,
        "positive_micro_precision": positive,
    }
    metrics = {name: float(np.mean(curve)) for name, curve in curves.items()} | levels
    for t in (0.5, 0.75):
        for place in np.flatnonzero(thresholds == t).tolist():
            metrics |= {f"{name}@{t}": float(curve[place]) for name, curve in curves.items()}
    return metrics


def _image_level(pairs: list[_Pair]) -> dict[str, float]:
    """How well detections predict whether a pair has an object."""
    tp = sum(1 for pair in pairs if pair.n_found and pair.n_objects)
    fp = sum(1 for pair in pairs if pair.n_found and not pair.n_objects)
    fn = sum(1 for pair in pairs if pair.n_objects and not pair.n_found)
    tn = len(pairs) - tp - fp - fn
    precision, recall = tp / (tp + fp + TINY), tp / (tp + fn + TINY)
    product = float(tp + fp) * float(tp + fn) * float(tn + fp) * float(tn + fn)
    return {
        "IL_precision": precision,
        "IL_recall": recall,
        "IL_F1": 2 * precision * recall / (precision + recall + TINY),
        "IL_FPR": fp / (fp + tn + TINY),
        "IL_MCC": float(tp * tn - fp * fn) / (product**0.5 + TINY),
    }
