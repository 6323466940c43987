"""Detections without scores: precision, recall and F1, and AP over the orders of equal scores.

Scores are not read: all detections count, and share one score. AP then depends on the order of the
detections, which does not depend on the detector. Its mean and spread over random orders do not.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.benchmarks.shared.benchmark_result import Numbers
from detmap.core.curves.scores import Scores, scores
from detmap.core.matching.engine import match
from detmap.core.protocol import Protocol
from detmap.core.statistics.ties import ties
from detmap.core.tables import Detections, Note, Truth

READS = (
    *("boxes", "iou", "matching", "detections.outside", "detections.margin"),
    *("ap", "mean", "subsets"),
)
ORDERS = 100
SHOWN = 0.5
Counts = NDArray[np.int64]


def evaluate(truth: Truth, detections: Detections, protocol: Protocol) -> Numbers:
    """Computes counts-based metrics over all classes and per class, and AP over random orders."""
    rows = ["AP", f"AP{round(100 * SHOWN)}"] if SHOWN in protocol.thresholds() else ["AP"]
    rules = protocol.override({"evaluation.rule": "matching", "metrics": rows})
    equal = _canonical_order(replace(detections, score=np.ones(len(detections))))
    matches = match(truth, equal, rules)
    found = scores(matches)
    a = rules.subset()
    tp, fp, objects = found.n_tp[a], found.n_fp[a], found.n_objects[:, a]
    metrics = _rates(tp.sum(axis=1), fp.sum(axis=1), int(objects.sum()), rules)
    orders = ties(matches, found, (truth, equal), orders=ORDERS)
    for name, tied in orders.items():
        drawn = np.isfinite(tied.mean)
        metrics |= {
            f"{name}-mean": tied.mean if drawn else tied.value,
            f"{name}-sd": tied.sd if drawn else 0.0,
            f"{name}-low": tied.low,
            f"{name}-high": tied.high,
        }
    text = "random orders of the detections (seed 0) give the mean and sd of AP, "
    text += "and its lowest and highest value"
    notes = [Note("orders-drawn", text, ORDERS)]
    if len(detections) and np.ptp(detections.score):
        text = "detections have scores, which this protocol does not read"
        notes.append(Note("scores-unread", text, len(detections), detections.source))
    lowest, *_, highest = (*rules.thresholds(), rules.thresholds()[-1])
    definitions = {
        name: (f"{SHOWN}" if "@" in name or "AP50" in name else f"{lowest:g}:{highest:g}", "", "")
        for name in metrics
    }
    return Numbers(metrics, definitions, _classes(truth, found, rules), notes)


def _canonical_order(detections: Detections) -> Detections:
    """The detections by image, class, box and shape: no number depends on their order in a file."""
    shapes = detections.shapes
    keys = detections.boxes if shapes is None else shapes.digest()[:, None]
    columns = (*keys.T[::-1], *detections.boxes.T[::-1], detections.label, detections.image)
    return detections.take(np.lexsort(columns))


def _rates(tp: Counts, fp: Counts, n_objects: int, rules: Protocol) -> dict[str, float]:
    """F1, precision and recall at 0.5 and their means over the thresholds, from (T,) counts."""
    with np.errstate(invalid="ignore"):
        curves = {
            "F1": 2 * tp / (tp + fp + np.float64(n_objects)),
            "precision": tp / (tp + fp),
            "recall": tp / np.float64(n_objects),
        }
    rates = {}
    t = rules.axes().threshold(SHOWN)
    if t is not None:
        rates = {f"{name}@{SHOWN}": float(curve[t]) for name, curve in curves.items()}
    return rates | {name: float(np.mean(curve)) for name, curve in curves.items()}


def _classes(truth: Truth, found: Scores, rules: Protocol) -> list[dict[str, Any]]:
    a = rules.subset()
    t = rules.axes().threshold(SHOWN) or 0
    rows = []
    for k, name in enumerate(truth.categories.names):
        n_objects = int(found.n_objects[k, a])
        tp, fp = found.n_tp[a, :, k], found.n_fp[a, :, k]
        counts = {"objects": n_objects, "tp": int(tp[t]), "fp": int(fp[t])}
        row = {"name": name, "id": int(truth.categories.ids[k])}
        missed = {"missed": n_objects - int(tp[t])}
        rows.append({**row, **_rates(tp, fp, n_objects, rules), **counts, **missed})
    return rows
