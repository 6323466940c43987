"""Slow twin of the evaluation of detections without scores: every order of the detections.

Written from the rules in docs/scoreless.md, not from the package. Matching and AP are those of
COCO in `tests.reference.coco_family`; the order is given by scores.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import permutations
from typing import NamedTuple

from tests.reference.coco_family import Judged, Thing, grid_ap, judge

THRESHOLDS = [round(0.5 + 0.05 * k, 2) for k in range(10)]


class Table(NamedTuple):
    """The objects and detections of a class; crowds ignore any number of detections."""

    objects: Sequence[Thing]
    crowd: Sequence[bool]
    found: Sequence[Thing]

    @property
    def n_objects(self) -> int:
        return list(self.crowd).count(False)


def judged(table: Table, order: Sequence[int], threshold: float) -> Judged:
    """TP and FP of the detections in an order."""
    n = len(order)
    ranked = [table.found[d]._replace(score=1 - place / n) for place, d in enumerate(order)]
    mode = ["absorb" if each else "find" for each in table.crowd]
    return judge(ranked, table.objects, mode, threshold)


def rates(tables: Sequence[Table]) -> dict[str, float]:
    """F1, precision and recall of the classes together; equal boxes are taken by coordinates."""
    curves: dict[str, list[float]] = {"F1": [], "precision": [], "recall": []}
    n_objects = sum(table.n_objects for table in tables)
    for threshold in THRESHOLDS:
        tp = fp = 0
        for table in tables:
            order = sorted(range(len(table.found)), key=lambda d, t=table: t.found[d][:2])
            hits = [hit for _, hit in judged(table, order, threshold)]
            tp, fp = tp + sum(hits), fp + len(hits) - sum(hits)
        curves["F1"].append(ratio(2 * tp, tp + fp + n_objects))
        curves["precision"].append(ratio(tp, tp + fp))
        curves["recall"].append(ratio(tp, n_objects))
    metrics = {f"{name}@0.5": curve[0] for name, curve in curves.items()}
    return metrics | {name: sum(curve) / len(curve) for name, curve in curves.items()}


def ratio(part: float, whole: float) -> float:
    return part / whole if whole else math.nan


def aps(tables: Sequence[Table]) -> Iterator[tuple[float, float]]:
    """AP over the thresholds and AP50, under every order of all detections of each class."""
    known = [table for table in tables if table.n_objects]

    def every(table: Table) -> Iterator[tuple[float, float]]:
        for order in permutations(range(len(table.found))):
            curve = [grid_ap(judged(table, order, t), table.n_objects)[0] for t in THRESHOLDS]
            yield sum(curve) / len(curve), curve[0]

    def joined(rest: Sequence[Table]) -> Iterator[tuple[float, float]]:
        if not rest:
            yield 0.0, 0.0
            return
        some = list(joined(rest[1:]))
        for ap, ap50 in every(rest[0]):
            yield from ((ap + more, ap50 + more50) for more, more50 in some)

    for ap, ap50 in joined(known):
        yield ratio(ap, len(known)), ratio(ap50, len(known))
